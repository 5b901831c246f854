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
from tracon_dashboard.vms import tables
from tracon_dashboard.vms import views as vm_views


class IndexView(vm_views.IndexView):
    table_class = tables.OwnVMsTable
    page_title = _('Interference')

    def query(self) -> dict[str, str]:
        # An administrator's token would list all projects.
        return {**super().query(), 'project_id': self.request.user.project_id}


class DetailView(views.HorizonTemplateView):
    template_name = 'tracon_dashboard/own_vm.html'
    page_title = '{{ vm.name|default:vm.uuid }}'

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        uuid = self.kwargs['uuid']
        try:
            found = api.get(self.request, 'vms', uuid)['vm']
            if found['project_id'] != self.request.user.project_id:
                raise tracon_exceptions.NotFound(_('It is of another project.'))
        except Exception:
            exceptions.handle(self.request, _('Nothing is known of VM %s.') % uuid,
                              redirect=urls.reverse('horizon:project:interference:index'))
        return {**super().get_context_data(**kwargs), 'vm': found}
