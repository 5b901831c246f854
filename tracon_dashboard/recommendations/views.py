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

from django import shortcuts
from django import urls
from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import forms
from horizon import messages
from horizon import views

from tracon_dashboard import api
from tracon_dashboard import exceptions as tracon_exceptions
from tracon_dashboard import listing
from tracon_dashboard.recommendations import forms as tracon_forms
from tracon_dashboard.recommendations import plans
from tracon_dashboard.recommendations import tables

_INDEX = urls.reverse_lazy('horizon:admin:interference_recommendations:index')


class IndexView(listing.ListView):
    table_class = tables.PlansTable
    template_name = 'tracon_dashboard/recommendations.html'
    page_title = _('Recommendations')
    service = api.WATCHER
    resource = 'action_plans'
    rest = ('detail',)
    order = {'strategy': plans.STRATEGY, 'sort_key': 'created_at', 'sort_dir': 'desc'}

    def get_data(self) -> list[dict[str, Any]]:
        found = super().get_data()
        moves = []
        if found:
            try:
                moves = api.get(self.request, 'moves')['moves']
            except Exception:
                exceptions.handle(self.request, _('Which VMs are moved is not to be had.'))
        return [{**one, 'moves': plans.moves_of(one, moves)} for one in found]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), 'audit': _left(self.request, 'latest')}


class DetailView(views.HorizonTemplateView):
    template_name = 'tracon_dashboard/recommendation.html'
    page_title = _('Recommendation')

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        try:
            plan = api.get(self.request, 'action_plans', self.kwargs['uuid'], service=api.WATCHER)
        except Exception:
            exceptions.handle(self.request, _('There is no such recommendation.'),
                              redirect=_INDEX)
        context.update(plan=plan, efficacy=plans.efficacy(plan),
                       startable=plan['state'] == plans.RECOMMENDED)
        try:
            context['migrations'] = list(plans.migrations(self.request, plan))
        except Exception:
            exceptions.handle(self.request, _('Its migrations are not to be had.'))
        context['audit'] = _left(self.request, plan['audit_uuid'])
        return context

    def post(self, request: Any, uuid: str) -> Any:
        """Start the plan."""
        try:
            api.post(request, 'action_plans', uuid, 'start')
            messages.success(request, _('The migrations begin.'))
        except Exception:
            exceptions.handle(request, _('The plan cannot be started.'))
        return shortcuts.redirect('horizon:admin:interference_recommendations:detail', uuid)


class AuditView(forms.ModalFormView):
    form_class = tracon_forms.AuditForm
    template_name = 'tracon_dashboard/audit.html'
    modal_header = page_title = _('Audit Now')
    submit_label = _('Audit')
    submit_url = urls.reverse_lazy('horizon:admin:interference_recommendations:audit')
    success_url = _INDEX


def _left(request: Any, audit: str) -> dict[str, Any] | None:
    """Return what an audit has left, and why; None where none has told."""
    try:
        return api.get(request, 'audits', audit)['audit']
    except tracon_exceptions.NotFound:
        return None
    except Exception:
        exceptions.handle(request, _('Why no more VMs are moved is not to be had.'))
        return None
