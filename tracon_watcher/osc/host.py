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

"""``openstack interference host`` and ``host type``: interference by host."""

from __future__ import annotations

import argparse
from typing import Any, Iterator

from osc_lib.command import command

from tracon_watcher import numerals
from tracon_watcher.osc import columns

KEYS = ('slowdown', 'harm', 'in_breach', 'vms', 'name', 'type', 'status', 'updated_at')

_SHORT = ('Name', 'Type', 'Status', 'VMs', 'In Breach', 'Slowdown', 'Efficiency', 'Worst VM',
          'Harm')
_LONG = ('Observed', 'Predicted', 'Storage', 'Updated')


class ListHost(command.Lister):
    """List compute hosts with the slowdown of the slowest VM on each, and the harm of all

    Harm is the sum of the logarithms of the slowdowns of its VMs, and of their loss of IOPS: 0.69
    is one VM made twice as slow. Efficiency is 1 over the slowdown.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--long', action='store_true', help='Show more columns')
        parser.add_argument('--name', metavar='<text>',
                            help='Show only hosts with this text in their names')
        parser.add_argument('--type', metavar='<host-type>', help='Show only hosts of this type')
        parser.add_argument('--status', metavar='<status>',
                            help='Show only hosts of this status: known, unknown_cores, stale, …')
        parser.add_argument('--in-breach', action='store_true', default=None,
                            help='Show only hosts with a VM that breaches a limit')
        parser.add_argument('--min-slowdown', metavar='<factor>', type=numerals.number(1, 1e6),
                            help='Show only hosts with a VM of at least this slowdown')
        columns.add(parser, KEYS, 'slowdown:desc', 'name')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        client = self.app.client_manager.interference
        query = {**columns.sorting(parsed_args.sort, KEYS), 'name': parsed_args.name,
                 'type': parsed_args.type, 'status': parsed_args.status,
                 'in_breach': 'true' if parsed_args.in_breach else None,
                 'min_slowdown': parsed_args.min_slowdown}
        found = list(client.find('hosts', 'name', query, parsed_args.limit, parsed_args.marker))
        return (_SHORT + _LONG * parsed_args.long,
                (_row(one, parsed_args.long) for one in found))


class ShowHost(command.ShowOne):
    """Show a compute host and its VMs, the one that harms others most first"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='<host>', help='Name of the host\'s compute service')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Any]:
        one = self.app.client_manager.interference.show('hosts', parsed_args.host)['host']
        return _SHORT + _LONG + ('Contention', 'Residents'), (
            *_row(one, True), columns.Value(one['contention'], _contention(one['contention'])),
            columns.lines(one['residents'], _resident))


def _row(one: dict[str, Any], long: bool) -> tuple[Any, ...]:
    slow, worst = one['slowdown'], one['worst']
    row = (one['name'], columns.text(one['type']), one['status'], one['vms'], one['in_breach'],
           columns.number(slow['now']), columns.percentage(one['efficiency']),
           columns.vm(worst), columns.number(one['harm']))
    if not long:
        return row
    return (*row, columns.number(slow['observed']), columns.number(slow['predicted']),
            columns.text(one['storage']), columns.text(one['updated_at']))


def _contention(found: dict[str, Any]) -> str:
    """Say what the host's probe VM feels: quiet, contended or unknown, and why."""
    phases = found['phases']
    if all(one['updated_at'] is None for one in phases.values()):
        return 'unknown: no reading of a probe VM'
    if found['state'] == 'quiet':
        return 'quiet'
    counts = ''
    if found['state'] == 'contended':
        slower = found['slowdown']
        counts = (f'; each VM counts as {slower:.2f} times as slow' if slower > 1 else
                  '; no more than its own VMs explain')
    return '\n'.join([found['state'] + counts,
                      *(f'{phase}: {_felt(one)}' for phase, one in phases.items())])


def _felt(one: dict[str, Any]) -> str:
    if one['state'] == 'contended':
        return (f'{columns.number(one["ratio"]).human_readable()} times as long as undisturbed, '
                f'at least {columns.number(one["low"]).human_readable()}')
    if one['state'] == 'quiet':
        return 'quiet'
    return 'unknown, ' + ('no reading' if one['updated_at'] is None else
                          'one reading so far, and two are needed')


def _resident(one: dict[str, Any]) -> str:
    slow = columns.number(one['slowdown']['now']).human_readable()
    harm = columns.number(one.get('harm_to_others')).human_readable()
    return (f'{one["name"] or one["uuid"]}: slowdown {slow}, culprit '
            f'{columns.culprit(one).human_readable()}, harm to others {harm}')


TYPE_KEYS = ('host_type', 'hosts', 'vms', 'vm_hours', 'error', 'trust')

_COLUMNS = ('Host Type', 'Hosts', 'VMs', 'Cores', 'Status', 'Trust', 'VM Hours', 'Error',
            'Error of a Constant', 'Covered', 'Waits for Cores', 'Requests at Once')


class ListHostType(command.Lister):
    """List host types with the learnt numbers and the trust in predictions

    A law of queueing assesses hosts. Its predictions are compared with the slowdowns by counters;
    VM Hours is the amount of compared data, in which older hours count less. Error is the mean
    relative error, beside that of a constant (each VM as slow as all on average). Covered is the
    share of slowdowns in their 80 % interval; Trust is that share over 80 %. Waits for Cores is
    the factor by which waits are longer than the law predicts, Requests at Once the number of
    requests that disks serve at once; both are learnt.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        columns.add(parser, TYPE_KEYS, 'host_type', 'host type')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        client = self.app.client_manager.interference
        found = client.find('host_types', 'host_type',
                            columns.sorting(parsed_args.sort, TYPE_KEYS),
                            parsed_args.limit, parsed_args.marker)
        return _COLUMNS, (_type_row(one) for one in found)


def _type_row(one: dict[str, Any]) -> tuple[Any, ...]:
    return (columns.text(one['host_type']), one['hosts'], one['vms'],
            columns.Value(one['cores'], ', '.join(map(str, one['cores'])) or columns.NONE),
            one['status'],
            columns.Value(one['trust'], columns.share(one['trust']) if one['checked']
                          else 'not yet checked'),
            columns.number(one['vm_hours'], 1),
            *(columns.Value(one[name], columns.NONE if one[name] is None
                            else f'{100 * one[name]:.1f} %')
              for name in ('error', 'constant_error', 'coverage')),
            columns.Value(one['gain'], columns.NONE if one['gain'] is None
                          else f'× {one["gain"]:.2f}'),
            columns.Value(one['disk'], columns.NONE if one['disk'] is None
                          else f'{one["disk"]:g}'))
