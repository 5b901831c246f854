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

"""``tracon snapshot``: write and look at what Nova's filter and Watcher's strategy judge by."""

import argparse
import datetime
import time

from cliff import command
from cliff import lister
import numpy as np

from tracon_watcher import numerals
from tracon_watcher.placement import assessment
from tracon_watcher.placement import snapshot
from tracon_watcher.placement import table


class Build(command.Command):
    """Write a snapshot from a table of hosts and VMs."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('state', metavar='STATE.csv',
                            help=f'table with columns {", ".join(table.REQUIRED)} and optionally '
                            f'{", ".join(table.OPTIONAL)}')
        parser.add_argument('--output', required=True, metavar='FILE',
                            help='snapshot file to write; [tracon] snapshot_file of nova.conf '
                                 'names it')
        parser.add_argument('--host-type', help='type of hosts without a type in the table')
        parser.add_argument('--maximum-age', type=numerals.number(1, 2592000), default=900.0,
                            metavar='SECONDS',
                            help='age of its data after which a host is unknown (default: '
                                 '%(default)s)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        now = time.time()
        state = table.read(parsed_args.state, now, parsed_args.host_type)
        snapshot.write(parsed_args.output, state, parsed_args.maximum_age)
        self.app.stdout.write(
            f'{parsed_args.output}: {len(state.hosts)} hosts, {len(state.uuids)} VMs\n')
        lost = np.flatnonzero(np.isnan(state.cores))
        if len(lost):
            self.app.LOG.warning('no cores are stated for %d hosts, such as %s: they are unknown; '
                                 'state column cores', len(lost), state.hosts[lost[0]])


class Check(lister.Lister):
    """Read a snapshot and show for each host the predicted slowdown of its VMs now."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('file', metavar='FILE')
        return parser

    def take_action(self, parsed_args: argparse.Namespace):  # type: ignore[no-untyped-def]
        read = snapshot.read(parsed_args.file)
        assessor = assessment.Assessor(read.cluster, read.settings())
        slow, ratio = (np.exp(sign * log_response)
                       for sign, log_response in zip((1, -1), assessor.log_responses()))
        breached = assessor.breaches()
        stale = assessor.stale(time.time())
        rows = []
        for index, name in enumerate(read.cluster.hosts):
            chosen = slice(read.cluster.first[index], read.cluster.first[index + 1])
            updated = read.cluster.updated_at[index]
            status = assessment.Status(assessor.status[index])
            if not status and stale[index]:
                status = assessment.Status.STALE
            rows.append((
                name, read.cluster.host_type[index] or '', status.name.lower(),
                datetime.datetime.fromtimestamp(updated, datetime.timezone.utc).isoformat(
                    timespec='seconds'),
                len(slow[chosen]), _worst(slow[chosen], np.max), _worst(ratio[chosen], np.min),
                int(breached[chosen].sum())))
        return (('host', 'type', 'status', 'updated', 'vms', 'worst slowdown',
                 'worst IOPS ratio', 'in breach'), rows)


def _worst(values, extreme) -> float | str:  # type: ignore[no-untyped-def]
    known = values[~np.isnan(values)]
    return round(float(extreme(known)), 3) if len(known) else ''
