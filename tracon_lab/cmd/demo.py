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

"""``tracon demo``: stock Nova and Nova with this extension place the same VMs."""

import argparse
import math
import pathlib
from typing import Any

from cliff import lister

from tracon_lab.cmd import packaged
from tracon_watcher import numerals


class Demo(lister.Lister):
    """Place the same VMs with stock Nova and this extension, and compare measured interference.

    A real nova-scheduler, with Nova's API, conductor and Placement, places 24 VMs on 16 hosts of
    two slots, once for each arm. The interference between the VMs is looked up in measured pairs
    of programs, which no prediction uses. Afterwards some VMs end, one changes its behaviour, and
    real Watcher audits run until they recommend nothing more. A report with plots is written as
    one HTML file.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('--seed', type=numerals.whole(0), default=1,
            help='first random seed (default: %(default)s)')
        add('--seeds', type=numerals.whole(1), default=3, metavar='N',
            help='number of seeds, with confidence intervals from two on; results are kept in the '
                 'output folder, so a run may be stopped and continued (default: %(default)s)')
        add('--host-type',
            help='measured host type (default: the one with the most measured pairs, real devices '
                 'before emulated ones)')
        add('--measurements', action='append', default=[], metavar='FILE',
            help='measurements (CSV); may be repeated (default: those in the package)')
        add('--output', default='tracon-demo', metavar='DIR',
            help='folder for results and the report (default: %(default)s)')
        add('--fresh', action='store_true',
            help='ignore results in the output folder, and run everything again')
        add('--processes', type=numerals.whole(1), default=2, metavar='N',
            help='processes with a Nova each (default: %(default)s)')
        add('--hosts', type=numerals.whole(2), default=16, metavar='N',
            help='compute hosts of two slots each (default: %(default)s)')
        add('--vms', type=numerals.whole(1), default=24, metavar='N',
            help='number of requests (default: %(default)s)')
        add('--concentration', type=numerals.number(0, 1e6), default=0.5, metavar='X',
            help='similarity of projects: near 0 each project runs one program, so history '
                 'predicts well; with a large number all run the same mix (default: %(default)s)')
        add('--on-all-refused', choices=('refuse', 'least_harm'), default='refuse',
            help='treatment of a VM that every host would be refused to (default: %(default)s)')
        add('--departing', type=numerals.number(0, 1), default=0.2, metavar='X',
            help='share of VMs that end before one changes its behaviour; audits use the room '
                 'that they leave (default: %(default)s)')
        add('--audits', choices=('first', 'all', 'none'), default='all',
            help='number of seeds after which a VM changes its behaviour and audits run (default: '
                 '%(default)s)')
        add('--audits-only', action='store_true',
            help='run only the audits and the arm before them, for example with many seeds')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_lab.demo import session
        outcome = session.run(session.Wish(
            range(parsed_args.seed, parsed_args.seed + parsed_args.seeds),
            parsed_args.measurements or packaged.measurements(), parsed_args.host_type,
            pathlib.Path(parsed_args.output), parsed_args.fresh, parsed_args.processes,
            parsed_args.audits, parsed_args.audits_only, dict(
                hosts=parsed_args.hosts, vms=parsed_args.vms,
                concentration=parsed_args.concentration, departing=parsed_args.departing,
                on_all_refused=parsed_args.on_all_refused)))
        return _table(outcome.rows, parsed_args.formatter == 'table')


def _table(rows: list[Any], for_people: bool) -> tuple[tuple[str, ...], list[Any]]:
    if for_people:
        return (('scheduler', 'VMs placed', 'mean slowdown (to stock)',
                 'VMs in breach (to stock)'),
                [[row.arm, f'{row.placed:.3g}', f'{row.mean_slowdown:.2f}{_shown(row.slowdown)}',
                  f'{row.in_breach:.3g} of {row.limited:.3g}{_shown(row.breaches)}']
                 for row in rows])
    columns = ('arm', 'seeds', 'placed', 'refused', 'mean_slowdown', 'geometric_mean',
               'worst_slowdown', 'in_breach', 'limited')
    table = [[row.arm, row.seeds, *(_rounded(getattr(row, name), 3) for name in columns[2:])]
             for row in rows]
    more = []
    for name in ('slowdown', 'log_slowdown', 'breaches'):
        more += [f'{name}_difference', f'{name}_low', f'{name}_high', f'{name}_verdict']
        for line, row in zip(table, rows):
            found = getattr(row, name)
            line += [None] * 4 if found is None else [
                _rounded(found.mean, 5), _rounded(found.low, 5), _rounded(found.high, 5),
                found.verdict]
    return (*columns, *more), table


def _rounded(value: float, digits: int) -> float | None:
    return None if math.isnan(value) else round(value, digits)


def _shown(difference: Any) -> str:
    if difference is None:
        return ''
    if math.isnan(difference.low):
        return f'  ({difference.mean:+.2f})'
    return f'  ({difference.mean:+.2f} ± {difference.high - difference.mean:.2f})'
