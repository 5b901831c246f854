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
from django.utils.translation import gettext_lazy as _
from horizon import tables

from tracon_dashboard import columns
from tracon_dashboard import listing


class Filter(tables.FilterAction):
    name = 'vms_filter'
    filter_type = 'server'
    filter_choices = (
        ('name', _('Name ='), True), ('host', _('Host ='), True),
        ('project_id', _('Project ID ='), True),
        ('min_slowdown', _('Slowdown at least ='), True, _('A number, such as 1.2')),
        ('in_breach', _('Limit crossed ='), True, _('yes or no')))


class VMsTable(listing.Table):
    name = tables.Column(
        'name', verbose_name=_('Name'),
        link=lambda vm: urls.reverse('horizon:admin:interference_vms:detail', args=(vm['uuid'],)))
    host = tables.Column(lambda vm: columns.host_link(vm.get('host')), verbose_name=_('Host'))
    slowdown = tables.Column(lambda vm: columns.number(vm['slowdown']['now']),
                             verbose_name=_('Slowdown'), help_text=_(
                                 'How many times as long its work takes now; what counters '
                                 'show, or else what is predicted'))
    efficiency = tables.Column(lambda vm: columns.share(vm['efficiency']),
                               verbose_name=_('Efficiency'), help_text=_(
                                   'Share of its speed alone: 1 over the slowdown'))
    observed = tables.Column(lambda vm: columns.observed(vm['slowdown']),
                             verbose_name=_('Observed'))
    predicted = tables.Column(lambda vm: columns.interval(vm['slowdown']),
                              verbose_name=_('Predicted'))
    limit = tables.Column(columns.limit, verbose_name=_('Limit'))
    breach = tables.Column(lambda vm: columns.minutes(vm.get('breach_seconds')),
                           verbose_name=_('Beyond it this month'))
    culprit = tables.Column(lambda vm: columns.culprit(vm['culprit']),
                            verbose_name=_('Slowed down most by'))
    harm = tables.Column(lambda vm: columns.number(vm.get('harm_to_others')),
                         verbose_name=_('Harm to others'), help_text=_(
                             'Sum over its neighbours of log slowdown and −log IOPS ratio'))

    class Meta:
        name = 'vms'
        verbose_name = _('VMs, the slowest first')
        pagination_param = 'marker'
        table_actions = (Filter,)
        multi_select = False


class OwnFilter(tables.FilterAction):
    name = 'own_vms_filter'
    filter_type = 'server'
    filter_choices = tuple(one for one in Filter.filter_choices
                           if one[0] not in ('host', 'project_id'))


class OwnVMsTable(VMsTable):
    name = tables.Column(
        'name', verbose_name=_('Name'),
        link=lambda vm: urls.reverse('horizon:project:interference:detail', args=(vm['uuid'],)))
    culprit = tables.Column(columns.own_culprits, verbose_name=_('Slowed down by'))

    class Meta:
        name = 'own_vms'
        verbose_name = _('VMs of this project, the slowest first')
        pagination_param = 'marker'
        columns = ('name', 'slowdown', 'efficiency', 'observed', 'predicted', 'limit', 'breach',
                   'culprit')
        table_actions = (OwnFilter,)
        multi_select = False
