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

"""``openstack interference what-if``: predicted effects of changes that are not made."""

from __future__ import annotations

import argparse
from typing import Any, Iterator

from osc_lib import exceptions

from tracon_watcher.osc import columns
from tracon_watcher.osc import explain

_CHANGES = ('VM', 'Host', 'To', 'Limit', 'Before', 'After', 'Breach')
#: Least ratio of slowdowns, after over before, that counts as harm.
_VISIBLE = 1.005


class WhatIf(explain.Report):
    """Predict the effects of a host that is down, of a new VM, or of a live migration

    Nothing is changed. Before and After are predicted slowdowns with their confidence bounds, of
    all VMs that are affected. Constraints of Nova, such as room, zones and server groups, are not
    considered.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument('--host-down', metavar='<host>',
                          help='Compute host whose VMs would go to other hosts')
        what.add_argument('--boot', metavar='<flavor>,<image>,<project>',
                          help='Name of the flavor, id of the image (empty for a VM that boots '
                               'from a volume) and id of the project (empty for any) of a new VM')
        what.add_argument('--migrate', metavar='<vm>,<host>',
                          help='VM, by name or uuid, and the host that it would go to')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        client, table = self.app.client_manager.interference, parsed_args.formatter == 'table'
        if parsed_args.boot is not None:
            names = _parts('--boot', parsed_args.boot, ('<flavor>', '<image>', '<project>'))
            found = client.show('what_if', **dict(zip(('flavor', 'image', 'project_id'), names)))[
                'what_if']
            if table:
                self.app.stdout.write(_boot(found, *names) + '\n')
                self._below = [explain.sentences(host) for host in found['hosts']]
            return (*explain.COLUMNS, 'Hurts Most', *(() if table else ('Why',))), (
                (*explain.row(host), _hurt(host), *(() if table else (host['why'],)))
                for host in found['hosts'])
        if parsed_args.host_down is not None:
            found = client.show('what_if', host_down=parsed_args.host_down)['what_if']
            head = _host_down(found)
            self._below = _unplaced(found) if table else []
        else:
            vm, host = _parts('--migrate', parsed_args.migrate, ('<vm>', '<host>'))
            found = client.show('what_if', vm=client.uuid_of(vm), host=host)['what_if']
            head = _migrate(found)
        if table:
            self.app.stdout.write('\n'.join([*head, _breaches(found)]) + '\n')
        return _CHANGES, (_change(one) for one in found['changes'])


def _parts(option: str, given: str, names: tuple[str, ...]) -> list[str]:
    """Return the parts of a value with commas.

    :raises osc_lib.exceptions.CommandError: when there are more or fewer, or the first is empty
    """
    parts = [part.strip() for part in given.split(',')]
    if len(parts) != len(names) or not parts[0]:
        raise exceptions.CommandError(
            f'{option} {given}: expected {",".join(names)}, with {len(names) - 1} commas')
    return parts


def _boot(found: dict[str, Any], flavor: str, image: str, project: str) -> str:
    newcomer = found['newcomer'] or {}
    return '\n'.join([
        f'new VM of flavor {flavor}, '
        + (f'image {image}, ' if image else 'booted from a volume, ')
        + (f'project {project}' if project else 'any project'),
        f'{found["considered"]} hosts considered, {found["refused"]} refused, '
        f'{found["unknown"]} unknown',
        f'its demand is taken from: {newcomer.get("source") or "nothing"}'])


def _hurt(host: dict[str, Any]) -> columns.Value:
    """Return the resident that a newcomer slows down most."""
    for one in host.get('residents', ()):
        before, after = one['slowdown']
        if before is not None and after is not None and after >= _VISIBLE * before:
            return columns.Value(one, explain.resident(one), after / before)
    return columns.Value(None, columns.NONE)


def _host_down(found: dict[str, Any]) -> list[str]:
    placed = [one for one in found['moves'] if one['destination'] is not None]
    return [f'host {found["host"]} down: {len(found["moves"])} VMs, {len(placed)} of them have a '
            'host',
            f'{found["assessed"]} of {found["hosts"]} other hosts assessed']


def _unplaced(found: dict[str, Any]) -> list[str]:
    said = []
    for one in found['moves']:
        name = columns.name(one['vm'])
        if one['destination'] is None:
            said.append(f'{name}: no host; its demand is unknown, or no known host has its '
                        'storage')
        elif one['refused']:
            said.append(f'{name}: a limit would be breached on each assessed host; '
                        f'{one["destination"]} has the lowest harm')
    return said


def _migrate(found: dict[str, Any]) -> list[str]:
    return [f'VM {columns.name(found["vm"])} from {found["source"]} to {found["destination"]}',
            f'against it: {found["why"] or "nothing"}']


def _breaches(found: dict[str, Any]) -> str:
    kinds = [_breach(one) for one in found['changes']]
    return (f'breaches that end: {kinds.count("ends")}, that begin: {kinds.count("begins")}; '
            f'VMs there that are not affected: {found["unaffected"]}')


def _change(one: dict[str, Any]) -> tuple[Any, ...]:
    return (columns.vm(one['vm']), one['host'], columns.text(one['destination']),
            columns.number(one['limit']), _predicted(one['before']), _predicted(one['after']),
            columns.text(_breach(one)))


def _predicted(found: dict[str, Any]) -> columns.Value:
    value, low, high = (found[name] for name in ('predicted', 'lower', 'upper'))
    if value is None:
        return columns.Value(None, columns.NONE)
    if low is None or high is None:
        return columns.number(value)
    return columns.Value(value, f'{value:.2f} ({low:.2f}–{high:.2f})')


def _breach(one: dict[str, Any]) -> str | None:
    """Return what happens to the breach of a VM's limit; None for nothing or if unknown."""
    before, after = one['before']['in_breach'], one['after']['in_breach']
    if before is None or after is None:
        return 'unknown' if before or after else None
    if before:
        return 'stays' if after else 'ends'
    return 'begins' if after else None
