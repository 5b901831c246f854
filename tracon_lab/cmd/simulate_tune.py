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

"""``tracon simulate tune``: PRICED's settings, chosen on one host type and shown on others."""

from __future__ import annotations

import argparse
import copy
from typing import Any

from cliff import lister
from tracon_lab.cmd import simulate
from tracon_watcher import errors
from tracon_watcher import numerals

_HOST_TYPES = ('same-core-raw-disk', 'shared-slow-device')
COLUMNS = ('shown_on', 'scheduler', 'chosen_on', 'threshold', 'surplus', 'mix',
           'normalised_throughput', 'interval_95', 'ceiling', 'occupied_slots')


class Tune(lister.Lister):
    """Choose PRICED's threshold and surplus on each host type, and show them on every one.

    A setting is chosen for the mean gain over the mixes, and shown with other tasks. The table
    also has one VM a host (FIFO-single) and PRICED without waiting (threshold=-inf).
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('--rate', type=numerals.number(0, 1e9), default=60.0, metavar='λ',
            help='arrival rate, in tasks a minute (default: %(default)s)')
        add('--hours', type=numerals.number(0, 1e6), default=2.0,
            help='simulated hours (default: %(default)s)')
        add('--machines', type=numerals.whole(1), default=64, metavar='N',
            help='number of hosts (default: %(default)s)')
        add('--mix', type=simulate.words, default=['light', 'medium', 'heavy'],
            metavar='NAME[,NAME…]',
            help='mixes of the tasks by I/O intensity (default: light,medium,heavy)')
        add('--runs', type=numerals.whole(2), default=20, metavar='N',
            help='number of runs, whose mean is shown with its 95 %% interval (default: '
                 '%(default)s)')
        add('--choice-runs', type=numerals.whole(1), default=5, metavar='N',
            help='number of earlier runs, from which settings are chosen (default: %(default)s)')
        add('--seed', type=numerals.whole(0), default=1,
            help='random seed of the first run (default: %(default)s)')
        add('--processes', type=numerals.whole(1), default=2, metavar='N',
            help='processes at the same time (default: %(default)s)')
        simulate.add_world(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_lab.cmd import simulate_run
        from tracon_lab.simulator import experiment
        from tracon_lab.simulator import tuning
        setups = {name: _setup(parsed_args, name)
                  for name in parsed_args.host_type or _HOST_TYPES}
        if len(setups) < 2:
            raise errors.InvalidOption('--host-type', ','.join(setups),
                                       'name two at least, so that one is not the other')
        if not parsed_args.mix:
            raise errors.InvalidOption('--mix', '', 'name one at least')
        case = experiment.Case(next(iter(setups.values())), 'PRICED_8', parsed_args.machines,
                               rate=parsed_args.rate, hours=parsed_args.hours,
                               seed=parsed_args.seed)
        if not case.rate > 0:
            raise errors.InvalidOption('--rate', case.rate, 'tasks must come at a rate above 0')
        experiment.check(case)
        found = tuning.tune(setups, tuning.settings(), case,
                            list(dict.fromkeys(parsed_args.mix)), parsed_args.choice_runs,
                            parsed_args.runs,
                            lambda cases: simulate_run.run(cases, parsed_args.processes))
        return COLUMNS, [_listed(one, parsed_args) for one in found]


def _setup(arguments: argparse.Namespace, name: str) -> Any:
    """Return the world of one host type; Table 1 of the paper is one as well."""
    own = copy.copy(arguments)
    own.host_type = [name]
    if name == 'table1':
        own.truth, own.host_type = name, []
    return simulate.setup(own)


def _listed(one: Any, arguments: argparse.Namespace) -> tuple[Any, ...]:
    row, setting = one.row, one.setting
    name = row.scheduler if setting is None else 'PRICED_8'
    chosen = ('', '', '') if setting is None else (
        setting.chosen_on, f'{setting.threshold:g}', f'{setting.surplus:g}')
    return (one.host_type, name, *chosen, row.mix, *(
        numerals.shown(value, arguments)
        for value in (row.throughput, row.interval, row.ceiling, row.occupied)))
