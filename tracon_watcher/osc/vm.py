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

"""``openstack interference vm``: how slow VMs are now, and who causes it."""

from __future__ import annotations

import argparse
from typing import Any, Iterator

from osc_lib.command import command

from tracon_watcher import numerals
from tracon_watcher.osc import columns

KEYS = ('slowdown', 'predicted', 'observed', 'iops_ratio', 'share', 'harm_to_others', 'name',
        'uuid', 'project_id', 'host')

_SHORT = ('Name', 'UUID', 'Project', 'Host', 'Slowdown', 'Efficiency', 'Predicted', 'Limit',
          'Culprit', 'Harm to Others')
_LONG = ('Predicted Low', 'Predicted High', 'Agreement', 'IOPS Ratio', 'IOPS Limit',
         'In Breach', 'In Breach This Month', 'Status', 'Updated')


class ListVM(command.Lister):
    """List VMs with their slowdown now, the prediction, and the culprit

    Slowdown is the slowdown by the hypervisor's counters, with its error; Predicted is the
    slowdown that its neighbours explain. Efficiency is 1 over the slowdown by counters, or over
    the predicted one if counters do not show it. The culprit is the VM that contributes most to
    the slowdown, with its share. Harm to Others is the sum over all VMs of the logarithms by which
    it makes them slower and reduces their IOPS: 0.69 is one VM made twice as slow.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--long', action='store_true', help='Show more columns')
        parser.add_argument('--host', metavar='<host>', help='Show only VMs on this compute host')
        parser.add_argument('--project', metavar='<project-id>',
                            help='Show only VMs of this project')
        parser.add_argument('--name', metavar='<text>',
                            help='Show only VMs with this text in their names')
        parser.add_argument('--culprit', metavar='<vm>',
                            help='Show only VMs that this VM, by name or uuid, slows down most')
        parser.add_argument('--in-breach', action='store_true', default=None,
                            help='Show only VMs that breach a limit')
        parser.add_argument('--min-slowdown', metavar='<factor>', type=numerals.number(1, 1e6),
                            help='Show only VMs of at least this slowdown')
        columns.add(parser, KEYS, 'slowdown:desc', 'uuid')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        client = self.app.client_manager.interference
        query = {**columns.sorting(parsed_args.sort, KEYS), 'host': parsed_args.host,
                 'project_id': parsed_args.project, 'name': parsed_args.name,
                 'culprit': (None if parsed_args.culprit is None else
                             client.uuid_of(parsed_args.culprit)),
                 'in_breach': 'true' if parsed_args.in_breach else None,
                 'min_slowdown': parsed_args.min_slowdown}
        found = list(client.find('vms', 'uuid', query, parsed_args.limit, parsed_args.marker))
        return (_SHORT + _LONG * parsed_args.long,
                (_row(one, parsed_args.long) for one in found))


class ShowVM(command.ShowOne):
    """Show a VM: its slowdown, all VMs that cause it, and all VMs that it slows down"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('vm', metavar='<vm>', help='Name or uuid of the VM')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Any]:
        client = self.app.client_manager.interference
        one = client.show('vms', client.uuid_of(parsed_args.vm))['vm']
        names = _SHORT + _LONG + ('Own Limits', 'Demand', 'Culprits', 'Joint', 'Victims')
        demand = [{'name': name, 'value': value} for name, value in one['demand'].items()]
        return names, (
            *_row(one, True), columns.lines(one['own_limits'], _own_limit),
            columns.lines(demand, _demand), columns.lines(one['culprits'], _culprit),
            columns.Value(one['joint'], columns.share(one['joint'])),
            columns.lines(one['victims'], _victim))


def _row(one: dict[str, Any], long: bool) -> tuple[Any, ...]:
    slow, ratio = one['slowdown'], one['iops_ratio']
    row = (columns.text(one['name']), one['uuid'], columns.text(one['project_id']),
           columns.text(one.get('host')), columns.observed(slow),
           columns.percentage(one['efficiency']), columns.number(slow['predicted']),
           columns.limit(one), columns.culprit(one),
           columns.number(one.get('harm_to_others')))
    if not long:
        return row
    return (*row, columns.number(slow['lower']), columns.number(slow['upper']),
            columns.text(one['agreement']),
            columns.number(ratio['predicted']), columns.number(one['limits']['min_iops_ratio']),
            columns.text(one['in_breach']), columns.minutes(one.get('breach_seconds')),
            columns.text(one['status']),
            columns.text(one['updated_at']))


def _demand(one: dict[str, Any]) -> str:
    value = columns.NONE if one['value'] is None else f'{one["value"]:g}'
    return f'{one["name"]}: {value}'


def _own_limit(one: dict[str, Any]) -> str:
    said = one['name']
    if one['value'] is not None:
        said += f' {one["value"]:g} {one["unit"]}'
    if one['reached'] is not None:
        said += f', reached {columns.share(one["reached"])} of the time'
    return said


def _culprit(one: dict[str, Any]) -> str:
    said = f'{one["name"] or one["uuid"]}: {columns.share(one["share"])}'
    if one['slowdown_without'] is not None:
        said += f', without it {one["slowdown_without"]:.2f}'
    return said


def _victim(one: dict[str, Any]) -> str:
    return (f'{one["name"] or one["uuid"]}: {one["slowdown"]:.2f}, without this VM '
            f'{one["slowdown_without"]:.2f}')
