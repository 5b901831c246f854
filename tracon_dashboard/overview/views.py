# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import views

from tracon_dashboard import api

#: VMs in breach, and host types, that are shown at most.
_SHOWN = 20


class IndexView(views.HorizonTemplateView):
    template_name = 'tracon_dashboard/overview.html'
    page_title = _('Interference Overview')

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        try:
            found = api.get(self.request, 'summary')
            context['state'], context['summary'] = found['state'], found['summary']
            context['worst'] = api.get(
                self.request, 'vms', in_breach='true', sort_key='slowdown', sort_dir='desc',
                limit=_SHOWN)['vms']
            context['host_types'] = api.get(
                self.request, 'host_types', sort_key='trust', limit=_SHOWN)['host_types']
        except Exception:
            exceptions.handle(self.request, _('What tracon-engine knows is not to be had.'))
            return context
        bars = context['summary']['slowdown']['distribution']
        most = max([bar['vms'] for bar in bars], default=0) or 1
        for bar in bars:
            bar['part'] = round(100 * bar['vms'] / most)
        return context
