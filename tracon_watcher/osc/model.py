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

"""``openstack interference model``: which models there are, and how good they are."""

from __future__ import annotations

import argparse
from typing import Any, Iterator

from osc_lib.command import command

from tracon_watcher.osc import columns
from tracon_watcher.osc import options

KEYS = ('id', 'host_type', 'response', 'hosts', 'vms')

_COLUMNS = ('ID', 'Host Type', 'Response', 'Hosts', 'VMs', 'Source', 'Trust', 'Drift Alarms',
            'Points', 'Error', 'Error of Unknown VMs')


class ListModel(command.Lister):
    """List models: of which host type and response, and their mean held-out errors

    Error is that of VMs like those measured beside neighbours never seen; Error of Unknown VMs
    that of VMs and neighbours never seen; of a model that was refitted, of VMs that were kept
    out. Trust falls when slowdowns that are observed and predicted part ways, which is a drift
    alarm; alarms are counted since the engine started.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--host-type', metavar='<host-type>',
                            help='Only models of this host type')
        parser.add_argument('--response', choices=('slowdown', 'iops_ratio'),
                            help='Only models of this response')
        options.add(parser, KEYS, 'id', 'id')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        client = self.app.client_manager.interference
        query = {**options.sorting(parsed_args.sort, KEYS), 'host_type': parsed_args.host_type,
                 'response': parsed_args.response}
        found = list(client.find('models', 'id', query, parsed_args.limit, parsed_args.marker))
        return _COLUMNS, (_row(one) for one in found)


class ShowModel(command.ShowOne):
    """Show a model: where it comes from, what it covers, and how good it is"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('model', metavar='<id>', help='Host type, "-" and response')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Any]:
        one = self.app.client_manager.interference.show('models', parsed_args.model)['model']
        document = one['document']
        shown = ('errors', 'training', 'capacity', 'hull', 'interval', 'crowding', 'ceiling',
                 'schema', 'checksum')
        return (*_COLUMNS, *(name.capitalize() for name in shown)), (
            *_row(one), *(columns.Value(document[name], _nested(document[name]))
                          for name in shown))


def _row(one: dict[str, Any]) -> tuple[Any, ...]:
    errors = one['errors']
    return (one['id'], one['host_type'], one['response'], one['hosts'], one['vms'],
            _source(one['source']), columns.Value(one['trust'], f'{100 * one["trust"]:.0f} %'),
            one['drift_alarms'], columns.text(one['training'].get('points')),
            _error(errors.get('by_background')),
            _error(errors.get('by_target_and_background', errors.get('by_vm'))))


def _source(found: dict[str, Any]) -> columns.Value:
    if found['kind'] != 'refit':
        return columns.Value(found, found['kind'])
    return columns.Value(found, f'{found["how"]} {found["at"]}')


def _error(found: Any) -> columns.Value:
    mean = found.get('mean') if isinstance(found, dict) else None
    return columns.Value(mean, columns.NONE if mean is None else f'{100 * mean:.1f} %')


def _nested(value: Any) -> str:
    """Return a document in lines, for people."""
    if isinstance(value, dict):
        return '\n'.join(f'{name}: {_plain(part)}' for name, part in value.items()) or columns.NONE
    return _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f'{value:.6g}'
    if isinstance(value, list):
        return ', '.join(_plain(one) for one in value)
    if isinstance(value, dict):
        return '; '.join(f'{name}={_plain(part)}' for name, part in value.items())
    return str(value)
