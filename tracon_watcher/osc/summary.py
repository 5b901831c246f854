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

"""``openstack interference summary``: interference in the whole cloud."""

from __future__ import annotations

import argparse
from typing import Any

from osc_lib.command import command

from tracon_watcher.osc import columns


class ShowSummary(command.ShowOne):
    """Show the slowdown and the efficiency of all VMs together

    Efficiency is 1 over the slowdown of a VM. The means leave out VMs whose slowdown is unknown;
    Unknown is the number of these.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Any]:
        found = self.app.client_manager.interference.show('summary')['summary']
        slow, statuses = found['slowdown'], found['hosts_by_status']
        told = [f'{name}: {count}' for name, count in statuses.items() if count]
        return ('VMs', 'Unknown', 'In Breach', 'Mean Efficiency', 'Mean Slowdown',
                'Worst Slowdown', 'Hosts', 'Hosts by Status'), (
            found['vms'], found['unknown'], found['in_breach'],
            columns.percentage(found['efficiency']['mean']), columns.number(slow['mean']),
            columns.number(slow['worst']), found['hosts'],
            columns.Value(statuses, '\n'.join(told) or columns.NONE))
