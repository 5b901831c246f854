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

"""``openstack interference capacity``: what is idle, and what background work may have of it."""

from __future__ import annotations

import argparse
from typing import Any, Iterator

from osc_lib.command import command

from tracon_watcher.osc import columns

GROUPS = ('host', 'hour', 'cloud')
_RESOURCES = {'cpu': 'CPU', 'memory': 'Memory', 'disk': 'Disk'}
KEYS = ('name', *_RESOURCES)
_IDLE = ('CPU Idle', 'Memory Idle', 'Disk Idle', 'Unknown Hours')
_NOW = ('Cores', 'Idle Cores', 'For Background', 'VMs', 'With Limit')
_CLOUD = ('Hosts', 'Unknown Hosts')


class ListCapacity(command.Lister):
    """List how much of hosts is idle, and how much of it background work may have

    CPU Idle, Memory Idle and Disk Idle are the mean of the hours of up to a week, and in
    parentheses the 5th and the 95th percentile; JSON has more of them. They are from the counters
    of the hosts. Unknown Hours are those without counters. Idle Cores are those that VMs leave
    idle now. For Background is how many of them background work may have without a breach of a
    VM's limit; where no VM has a limit, all of them.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--by', choices=GROUPS, default=GROUPS[0],
                            help='Rows of the list: each host, each hour of the day in UTC, or '
                                 'the cloud (default: host)')
        columns.add(parser, KEYS, 'name:asc', 'name')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        client, by = self.app.client_manager.interference, parsed_args.by
        query = {**columns.sorting(parsed_args.sort, KEYS), 'by': by}
        found = list(client.find('capacity', 'name', query, parsed_args.limit,
                                 parsed_args.marker))
        if parsed_args.formatter == 'table':
            self.app.stdout.write(_told(client.show('capacity', by='cloud')) + '\n')
        names = (by.capitalize(), *_IDLE)
        if by != 'hour':
            names += _NOW
        return names + _CLOUD * (by == 'cloud'), (_row(one, by) for one in found)


def _row(one: dict[str, Any], by: str) -> tuple[Any, ...]:
    idle = one['idle']
    unknown = {name: idle[name]['unknown'] for name in _RESOURCES}
    row = (one['name'], *(_idle(idle[name]) for name in _RESOURCES),
           columns.Value(unknown, ', '.join(
               f'{_RESOURCES[name]} {count}' for name, count in unknown.items() if count) or '0',
               float(sum(unknown.values()))))
    if by == 'hour':
        return row
    row = (*row, columns.number(one['cores'], 0), columns.number(one['idle_cores']),
           columns.number(one['background_cores']), one['vms'], one['limited_vms'])
    return row if by == 'host' else (*row, one['hosts'], one['unknown_hosts'])


def _idle(found: dict[str, Any]) -> columns.Value:
    percentiles = found['percentiles']
    if percentiles is None:
        return columns.Value(None, columns.NONE)
    return columns.Value(
        {'mean': found['mean'], 'percentiles': percentiles},
        f'{columns.share(found["mean"])} ({100 * percentiles["5"]:.0f} to '
        f'{columns.share(percentiles["95"])})', found['mean'])


def _told(document: dict[str, Any]) -> str:
    """Return the lines on the cloud."""
    (one,) = document['capacity']
    hours, known = document['hours'], one['hosts'] - one['unknown_hosts']
    lines = [f'{one["hosts"]} hosts, no hour of counters yet']
    if hours['count']:
        lines = [f'{one["hosts"]} hosts, {hours["count"]} hours from {hours["from"]} to '
                 f'{hours["to"]}',
                 'idle: ' + ', '.join(f'{_RESOURCES[name]} {columns.share(found["mean"])}'
                                      for name, found in one['idle'].items())]
    unknown = [f'{_RESOURCES[name]} in {found["unknown"]} of {found["known"] + found["unknown"]}'
               for name, found in one['idle'].items() if found['unknown']]
    if unknown:
        lines.append(f'unknown hours of hosts: {", ".join(unknown)}')
    lines.append(f'now: {one["idle_cores"]:.1f} of {one["cores"]:.0f} cores idle on {known} '
                 f'hosts, {one["background_cores"]:.1f} of them for background work; '
                 f'{one["unknown_hosts"]} hosts unknown' if known else 'now: all hosts unknown')
    return '\n'.join(lines)
