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
"""``openstack interference host type list``."""

from __future__ import annotations

import argparse
from typing import Any, Iterator

from osc_lib.command import command

from tracon_watcher.osc import columns
from tracon_watcher.osc import options

KEYS = ('host_type', 'hosts', 'vms', 'vm_hours', 'error', 'trust')

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
        options.add(parser, KEYS, 'host_type', 'host type')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        client = self.app.client_manager.interference
        found = client.find('host_types', 'host_type', options.sorting(parsed_args.sort, KEYS),
                            parsed_args.limit, parsed_args.marker)
        return _COLUMNS, (_row(one) for one in found)


def _row(one: dict[str, Any]) -> tuple[Any, ...]:
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
