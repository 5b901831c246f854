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
from tracon_dashboard.hosts import tables
from tracon_dashboard import listing


class IndexView(listing.ListView):
    table_class = tables.HostsTable
    page_title = _('Hosts')
    resource = 'hosts'
    order = {'sort_key': 'slowdown', 'sort_dir': 'desc'}


class DetailView(views.HorizonTemplateView):
    template_name = 'tracon_dashboard/host.html'
    page_title = '{{ host.name }}'

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        name = self.kwargs['name']
        try:
            context['host'] = api.get(self.request, 'hosts', name)['host']
        except Exception:
            exceptions.handle(self.request, _('Nothing is known of host %s.') % name,
                              redirect=urls.reverse('horizon:admin:interference_hosts:index'))
        return context
