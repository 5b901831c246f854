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

from django import urls
from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import views

from tracon_dashboard import api
from tracon_dashboard import exceptions as tracon_exceptions
from tracon_dashboard import listing
from tracon_dashboard.vms import tables


class IndexView(listing.ListView):
    table_class = tables.VMsTable
    page_title = _('VMs')
    resource = 'vms'
    order = {'sort_key': 'slowdown', 'sort_dir': 'desc'}


class DetailView(views.HorizonTemplateView):
    template_name = 'tracon_dashboard/vm.html'
    page_title = '{{ vm.name|default:vm.uuid }}'

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        uuid = self.kwargs['uuid']
        try:
            context['vm'] = api.get(self.request, 'vms', uuid)['vm']
        except Exception:
            exceptions.handle(self.request, _('Nothing is known of VM %s.') % uuid,
                              redirect=urls.reverse('horizon:admin:interference_vms:index'))
        try:
            (context['decision'],) = api.get(
                self.request, 'explanations', uuid, limit=1,
                now='true' if 'now' in self.request.GET else 'false')['explanations']
        except tracon_exceptions.NotFound:
            context['decision'] = None
        except Exception:
            exceptions.handle(self.request, _('The last decision on it is not to be had.'))
        return context
