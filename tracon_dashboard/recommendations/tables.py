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

from django import urls
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _
from horizon import tables

from tracon_dashboard import columns
from tracon_dashboard import listing
from tracon_dashboard.recommendations import plans


class AuditNow(tables.LinkAction):
    name = 'audit'
    verbose_name = _('Audit Now')
    url = 'horizon:admin:interference_recommendations:audit'
    classes = ('ajax-modal',)
    icon = 'refresh'


def _before_after(name, decimals):
    def cell(plan):
        found = plans.efficacy(plan)
        before, after = found.get(f'{name}_before'), found.get(f'{name}_after')
        return f'{columns.number(before, decimals)} → {columns.number(after, decimals)}'
    return cell


def _moves(plan):
    if not plan['moves']:
        count = plans.efficacy(plan).get('live_migrations_count')
        return columns.number(count, 0) if count else _now('none')
    return '; '.join(f'{one["vm"]["name"] or one["vm"]["uuid"]}: {one["source"]} → '
                     f'{one["destination"]}' for one in plan['moves'])


class PlansTable(listing.Table):
    made = tables.Column(
        lambda plan: _now('%s ago') % columns.age(plan['created_at']),
        verbose_name=_('Recommended'), link=lambda plan: urls.reverse(
            'horizon:admin:interference_recommendations:detail', args=(plan['uuid'],)))
    moves = tables.Column(_moves, verbose_name=_('Live Migrations'))
    in_breach = tables.Column(_before_after('vms_in_breach', 0),
                              verbose_name=_('VMs Beyond a Limit'))
    worst = tables.Column(_before_after('worst_slowdown', 2), verbose_name=_('Worst Slowdown'))
    mean = tables.Column(_before_after('mean_slowdown', 3), verbose_name=_('Mean Slowdown'))
    state = tables.Column(lambda plan: columns.state(plan['state']), verbose_name=_('State'))

    class Meta:
        name = 'plans'
        verbose_name = _('What audits recommend, the latest first')
        pagination_param = 'marker'
        table_actions = (AuditNow,)
        multi_select = False
