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
    name = 'hosts_filter'
    filter_type = 'server'
    filter_choices = (
        ('name', _('Name ='), True), ('type', _('Type ='), True),
        ('status', _('Status ='), True, _('known, stale, unknown_cores, drifted, …')),
        ('min_slowdown', _('Slowdown at least ='), True, _('A number, such as 1.2')),
        ('in_breach', _('Limit crossed ='), True, _('yes or no')))


class HostsTable(listing.Table):
    key = 'name'

    name = tables.Column('name', verbose_name=_('Name'), link=lambda host: urls.reverse(
        'horizon:admin:interference_hosts:detail', args=(host['name'],)))
    type = tables.Column(lambda host: host['type'] or columns.NONE, verbose_name=_('Type'))
    status = tables.Column(lambda host: columns.status(host['status']), verbose_name=_('Status'))
    vms = tables.Column('vms', verbose_name=_('VMs'))
    in_breach = tables.Column('in_breach', verbose_name=_('VMs Beyond a Limit'))
    slowdown = tables.Column(lambda host: columns.number(host['slowdown']['now']),
                             verbose_name=_('Worst Slowdown'))
    efficiency = tables.Column(lambda host: columns.share(host['efficiency']),
                               verbose_name=_('Efficiency'), help_text=_(
                                   'Of the slowest VM: 1 over its slowdown'))
    worst = tables.Column(lambda host: columns.vm_link(host['worst']),
                          verbose_name=_('Slowest VM'))
    harm = tables.Column(lambda host: columns.number(host['harm']), verbose_name=_('Harm'),
                         help_text=_('Sum over its VMs of log slowdown and −log IOPS ratio'))

    class Meta:
        name = 'hosts'
        verbose_name = _('Hosts, those with the slowest VMs first')
        pagination_param = 'marker'
        table_actions = (Filter,)
        multi_select = False
