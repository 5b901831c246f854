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

"""``tracon simulate``: a data centre in the computer, with measured interference as the truth."""

from __future__ import annotations

import argparse
import sys
from typing import Any, Sequence

from cliff import command
from cliff import lister

from tracon_lab.cmd import arguments as common
from tracon_lab.cmd import packaged
from tracon_watcher import errors
from tracon_watcher import files
from tracon_watcher import numerals

_MIXES = ('light', 'medium', 'heavy', 'uniform')
_STREAM = 'FIFO-packed,FIFO-spread,FIFO-single,MIOS,MIBS_8,MIX_8,PRICED_8'
_BATCH = 'FIFO-packed,FIFO-spread,MIOS,MIBS,MIBS_8,MIX_8,matching,optimum'
_SCHEDULERS = (
    'schedulers: FIFO-packed, FIFO-spread (the baseline of ratios), FIFO-single (one VM a host), '
    'MIOS, MIOS-residents, MIBS_q, MIX_q, MINMIN_q, PRICED_q, MIBS (all waiting tasks), matching, '
    'matching-spread; q is the length of the queue. '
    'A batch is decided when its queue is full and as many slots are free; with the suffix '
    '-partial when the queue is full and one slot is free, with -eager when one slot is free. '
    ':wait=S limits the seconds that a task waits for a full queue. -paired places the second of '
    'two tasks beside the first. PRICED_q:threshold=θ:surplus=s changes its settings')
#: Of a row: what stands in the table, and what else in JSON.
COLUMNS = ('scheduler', 'machines', 'mix', 'objective', 'lambda', 'rho', 'speedup', 'io_boost',
           'normalised_throughput', 'interval_95', 'distance_to_optimum', 'ceiling',
           'occupied_slots', 'scheduling_seconds')
MORE = ('deviation', 'runs', 'tasks_per_minute', 'runtime_seconds', 'waiting_seconds',
        'overtaken_by', 'migrations', 'sigma', 'model', 'host_type', 'event_seconds')
_FIELDS = ('scheduler', 'machines', 'mix', 'objective', 'rate', 'load', 'speedup', 'io_boost',
           'throughput', 'interval', 'distance', 'ceiling', 'occupied', 'scheduling', 'deviation',
           'runs', 'per_minute', 'runtime', 'waited', 'overtaken', 'migrations', 'sigma',
           'model', 'host_type', 'event_cost')


def add_world(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what the simulated world is made of."""
    add = parser.add_argument
    add('--truth', default='measured', metavar='NAME',
        help='source of interference: measured, table1 (Table 1 of the TRACON paper) or spindle '
             '(its host, a core for each VM and one disk, by the law of queueing); the last two '
             'are then also the model (default: %(default)s)')
    add('--calc-ranks', type=numerals.whole(1), default=3, metavar='N',
        help='number of applications of the lowest ranks of I/O intensity that behave as Calc of '
             'Table 1, the others as SeqRead; the paper does not state it (default: %(default)s)')
    add('--measurements', action='append', default=[], metavar='FILE',
        help='measurements (CSV); may be repeated (default: those in the package)')
    add('--host-type', action='append', default=[], metavar='NAME[=PARTS]',
        help='measured host type, with its parts of the machines if repeated (default: the real '
             'device with the most measured pairs)')
    add('--slots', type=common.listed(numerals.whole(1)), default=[2], metavar='N[,N…]',
        help='VMs on a host, one number or one for each host type (default: 2); interference '
             'among more than two is composed of measured pairs')
    add('--plan', default='', metavar='NAME',
        help='plan of the measurements whose programs are the tasks (default: "full", or '
             '"applications")')
    add('--model', metavar='NAME',
        help='model of the schedulers: wmm, lm or nlm (TRACON\'s, of each application), law (the '
             'law of queueing, as in production) or truth (default: nlm)')
    add('--solo-minutes', type=numerals.number(1e-3, 1e6), default=3.0, metavar='M',
        help='mean runtime alone, to which all measured times are scaled by one factor (default: '
             '%(default)s)')
    add('--work', default='window', metavar='NAME',
        help='definition of a task: window (the work of a program alone in one measured window, '
             'so all take equally long) or unit (the same number of units of each) (default: '
             '%(default)s)')


def add_runs(parser: argparse.ArgumentParser, schedulers: str) -> None:
    """Add the options that say what is simulated, and how often."""
    add = parser.add_argument
    add('--machines', type=common.listed(numerals.whole(1)), default=[64], metavar='N[,N…]',
        help='number of hosts (default: 64)')
    add('--schedulers', type=words, default=words(schedulers), metavar='NAME[,NAME…]',
        help=f'{_SCHEDULERS} (default: {schedulers})')
    add('--objective', type=words, default=['RT'], metavar='NAME[,NAME]',
        help='objective: RT, least total runtime, or IO, most IOPS (default: RT)')
    add('--seed', type=numerals.whole(0), default=1,
        help='random seed of the first run (default: %(default)s)')
    add('--runs', type=numerals.whole(1), default=20, metavar='N',
        help='number of runs, whose mean is shown with its 95 %% interval (default: %(default)s)')
    add('--processes', type=numerals.whole(1), default=2, metavar='N',
        help='processes at the same time; results do not depend on it (default: %(default)s)')


def add_mixes(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which tasks come."""
    parser.add_argument(
        '--mix', type=words, default=['medium'], metavar='NAME[,NAME…]',
        help=f'mixes of the tasks by I/O intensity: {", ".join(_MIXES)} (default: medium)')
    parser.add_argument(
        '--sigma', type=common.listed(numerals.number(0, 1e6)), default=[1.5], metavar='X[,X…]',
        help='standard deviation of a mix, in ranks of I/O intensity (default: 1.5)')


class Static(lister.Lister):
    """Schedule as many tasks as there are slots, all at once."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_runs(parser, _BATCH)
        add_mixes(parser)
        add_world(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        return simulate(parsed_args, cases(parsed_args))


class Dynamic(lister.Lister):
    """Schedule tasks that arrive at random for some hours."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--rate', type=common.listed(numerals.number(0, 1e9)),
                            default=[100.0], metavar='λ[,λ…]',
                            help='arrival rate, in tasks a minute (default: 100)')
        parser.add_argument('--hours', type=numerals.number(0, 1e6), default=10.0,
                            help='simulated hours (default: %(default)s)')
        add_runs(parser, _STREAM)
        add_mixes(parser)
        _add_audit(parser)
        add_world(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        if not parsed_args.rate:
            raise errors.InvalidOption('--rate', '', 'name one at least')
        for rate in dict.fromkeys(parsed_args.rate):
            if not rate > 0:
                raise errors.InvalidOption('--rate', rate, 'tasks must come at a rate above 0')
        found = [one for rate in dict.fromkeys(parsed_args.rate) for one in cases(
            parsed_args, rate=rate, hours=parsed_args.hours,
            audit_minutes=parsed_args.audit_minutes, pause=parsed_args.pause)]
        return simulate(parsed_args, found)


class Trace(lister.Lister):
    """Schedule the tasks of a trace file.

    The file is CSV with the columns arrival_seconds, class and solo_seconds (may be empty), in the
    order of arrival. "tracon simulate convert" makes such files from public traces.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('file', metavar='FILE', help='trace (CSV)')
        parser.add_argument('--hours', type=numerals.number(0, 1e6), default=1.0, metavar='H',
                            help='simulated hours after the last arrival (default: %(default)s)')
        add_runs(parser, _STREAM)
        _add_audit(parser)
        add_world(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        # Nothing is drawn, so that another run would be the same.
        parsed_args.runs, parsed_args.mix, parsed_args.sigma = 1, ['uniform'], [1.5]
        found = cases(parsed_args, trace=parsed_args.file, hours=parsed_args.hours,
                      audit_minutes=parsed_args.audit_minutes, pause=parsed_args.pause)
        return simulate(parsed_args, found, mix='trace')


class Convert(command.Command):
    """Make a trace file from a public trace: Azure's VMs or Alibaba's batch tasks.

    Neither has disk use, so classes are assigned by CPU use: equal parts of the lines, those with
    the least use for the class that uses least.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('layout', choices=('azure', 'alibaba'),
                            help='layout of the trace: azure (vmtable.csv of 2017 or 2019) or '
                                 'alibaba (batch_task.csv of 2018)')
        parser.add_argument('file', metavar='FILE', help='trace file (CSV), also compressed (.gz)')
        parser.add_argument('--output', metavar='FILE',
                            help='output file (default: standard output)')
        add_world(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        from tracon_lab.simulator import convert
        from tracon_lab.simulator import experiment
        found = setup(parsed_args)
        if found.truth != experiment.MEASURED:
            raise errors.InvalidOption('--truth', found.truth, 'its applications have no CPU use')
        world = experiment.world_of(found)
        arguments = (parsed_args.file, parsed_args.layout, world.classes,
                     world.profiles[0, :, 2])
        if not parsed_args.output:
            count, passed = convert.convert(*arguments, sys.stdout)
        else:
            with files.replaced(parsed_args.output) as file:
                count, passed = convert.convert(*arguments, file)
        print(f'{count} tasks; {passed} lines without a beginning, an end or CPU were passed over',
              file=sys.stderr)


def _add_audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--audit-minutes', type=numerals.number(0, 1e6), default=0.0, metavar='M',
                        help='minutes between two audits by the interference strategy, 1/60 at '
                             'least (default: no audits)')
    parser.add_argument('--pause', type=numerals.number(0, 86400), default=30.0, metavar='S',
                        help='seconds for which a migrating VM stands still (default: '
                             '%(default)s)')


def words(text: str) -> list[str]:
    """Return the words of a list."""
    return [word.strip() for word in text.split(',') if word.strip()]


def setup(arguments: argparse.Namespace) -> Any:
    """Return what the options say of the world."""
    from tracon_lab.models import dataset
    from tracon_lab.simulator import experiment
    from tracon_lab.simulator import truth
    if arguments.truth not in experiment.TRUTHS:
        raise errors.InvalidOption('--truth', arguments.truth,
                                   f'expected one of {", ".join(experiment.TRUTHS)}')
    if arguments.truth != experiment.MEASURED:
        return _published(arguments)
    files = tuple(arguments.measurements or packaged.measurements())
    names, parts = [], []
    for text in arguments.host_type:
        name, equals, part = text.partition('=')
        try:
            parts.append(numerals.parse(part, 1e-6, 1e6) if equals else 1.0)
        except numerals.InvalidNumber as error:
            raise errors.InvalidOption('--host-type', text, 'expected NAME or NAME=PARTS: PARTS '
                                       f'is {error}') from None
        names.append(name)
    if not names:
        measured = truth.host_types(dataset.read_all(files))
        if not measured:
            raise errors.NotEnoughData('a simulation', 0, 1)
        names, parts = measured[:1], [1.0]
    slots = arguments.slots if len(arguments.slots) > 1 else arguments.slots * len(names)
    if len(slots) != len(names):
        raise errors.InvalidOption('--slots', ','.join(map(str, arguments.slots)),
                                   f'one number, or one for each of {len(names)} host types')
    return experiment.Setup(files, tuple(names), tuple(parts), tuple(slots),
                            arguments.solo_minutes, arguments.model or 'nlm',
                            arguments.work, arguments.plan)


def _published(arguments: argparse.Namespace) -> Any:
    """Return the world of a truth that has one host type and no measurements."""
    from tracon_lab.simulator import experiment
    from tracon_lab.simulator import published
    for name, value, allowed in (('--model', arguments.model, (None, 'truth')),
                                 ('--work', arguments.work, ('window',)),
                                 ('--plan', arguments.plan, ('',)),
                                 ('--host-type', arguments.host_type, ([],)),
                                 ('--measurements', arguments.measurements, ([],))):
        if value not in allowed:
            raise errors.InvalidOption(name, value, f'the truth {arguments.truth} has no such '
                                                    f'choice; leave it out')
    if len(arguments.slots) != 1:
        raise errors.InvalidOption('--slots', ','.join(map(str, arguments.slots)), 'one number')
    if arguments.truth == published.SPINDLE and arguments.calc_ranks != published.CALC_RANKS:
        raise errors.InvalidOption('--calc-ranks', arguments.calc_ranks,
                                   'the truth spindle has no such choice; leave it out')
    published.truth(arguments.calc_ranks)
    return experiment.Setup((), (arguments.truth,), slots=tuple(arguments.slots),
                            minutes=arguments.solo_minutes, model='truth',
                            truth=arguments.truth, calc_ranks=arguments.calc_ranks)


def cases(arguments: argparse.Namespace, **more: Any) -> list[Any]:
    """Return a case for each scheduler and run of each setting."""
    from tracon_lab.scheduling import catalogue
    from tracon_lab.simulator import experiment
    for name in ('machines', 'schedulers', 'objective', 'mix', 'sigma'):
        if not getattr(arguments, name):
            raise errors.InvalidOption(f'--{name}', '', 'name one at least')
    for name in arguments.schedulers:
        # "optimum" knows the truth, and only of tasks that all wait at once.
        if name != experiment.OPTIMUM or more:
            catalogue.check(name)
    world = setup(arguments)
    return [experiment.Case(world, scheduler, machines, mix, objective, sigma=sigma, seed=seed,
                            **more)
            for sigma in dict.fromkeys(arguments.sigma) for mix in dict.fromkeys(arguments.mix)
            for objective in dict.fromkeys(arguments.objective)
            for machines in dict.fromkeys(arguments.machines)
            for scheduler in dict.fromkeys(arguments.schedulers)
            for seed in range(arguments.seed, arguments.seed + arguments.runs)]


def simulate(arguments: argparse.Namespace, found: Sequence[Any],
             mix: str = '') -> tuple[tuple[str, ...], list[Any]]:
    """Run cases, and return the columns and rows of the table."""
    from tracon_lab.cmd import simulate_run
    from tracon_lab.simulator import experiment
    from tracon_lab.simulator import results
    for case in found:
        experiment.check(case)
    done = simulate_run.run(found, arguments.processes)
    people = arguments.formatter == 'table'
    if people and done:
        print(world_in_words(done[0].case.setup, done[0].factor), file=sys.stderr)
    columns = COLUMNS if people else COLUMNS + MORE
    return columns, [listed(row, arguments, mix)[:len(columns)] for row in results.rows(done)]


def world_in_words(setup: Any, factor: float) -> str:
    """Return a sentence on what the truth is and by what schedulers decide."""
    if setup.truth == 'spindle':
        return ('Truth: the law of queueing on a core for each VM and one disk; decisions by the '
                'truth.')
    if setup.truth != 'measured':
        return (f'Truth: Table 1 of the TRACON paper, ranks 1 to {setup.calc_ranks} as Calc, the '
                f'others as SeqRead; decisions by the truth.')
    world = ' and '.join(setup.host_types)
    return (f'Truth: pairs measured on {world}, times multiplied by {factor:.3g}; decisions by '
            f'model "{setup.model}".')


def listed(row: Any, arguments: argparse.Namespace, mix: str = '') -> tuple[Any, ...]:
    """Return a row's values in the order of the columns."""
    values = [getattr(row, name) for name in _FIELDS]
    if mix:
        values[2] = mix
    return tuple(numerals.shown(value, arguments) for value in values)
