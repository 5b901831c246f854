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

"""TRACON's figures of schedulers (Chiang & Huang, SC'11): what to run for each of them.

Figures 4 and 8 are static, 9 to 12 dynamic. Three more are ours: what the schedulers do where the
interference is the paper's own Table 1; what the standard deviation of the mixes and FIFO's order
do, which the paper does not tell; and what an event costs.
"""

from __future__ import annotations

import dataclasses
from typing import Sequence

from tracon_lab.scheduling import objective as objectives
from tracon_lab.simulator import experiment
from tracon_lab.simulator import results
from tracon_lab.simulator import workload
from tracon_watcher import errors

_MIXES = tuple(workload.MIXES)
_MACHINES = (8, 16, 32, 64, 128, 256, 512, 1024)
#: Of the dynamic figures.
_FEWER_MACHINES = (8, 32, 128, 512, 1024)
#: The paper's largest data centre, with as many tasks a minute.
_MOST = 10_000
_RATES = (20.0, 25.0, 30.0, 40.0, 60.0, 100.0)
#: Machine hours of a run of Figures 11 and 12, and the least hours: with many machines a short run
#: completes as many tasks as a long one with few.
_MACHINE_HOURS, _LEAST_HOURS = 512.0, 1.0
#: From so many machines on, half as many runs are enough for as small an interval.
_MANY_MACHINES = 512
_MIBS = ('MIBS_2', 'MIBS_4', 'MIBS_8')
_ONLINE = ('FIFO-single', 'MIOS', 'MIBS_8', 'MIX_8', 'MIX_8-eager', 'PRICED_8')
#: Batches of 32 tasks differ much; the paper shows their standard deviation.
_BATCHES = 2


@dataclasses.dataclass(frozen=True)
class Published:
    """A number of the paper.

    :param scheduler: that it is of
    :param panel: value of the figure's ``panels``
    :param value: of ``field``
    :param at: value of the figure's ``x``, None for all
    """

    scheduler: str
    panel: str
    field: str
    value: float
    at: float | None = None

    def belongs(self, figure: Figure, row: results.Row) -> bool:
        """Say whether a row has this number's place."""
        objective = {'speedup': objectives.RT, 'io_boost': objectives.IO}.get(self.field)
        return (row.scheduler == self.scheduler and getattr(row, figure.panels) == self.panel
                and self.at in (None, getattr(row, figure.x))
                and objective in (None, row.objective))


@dataclasses.dataclass(frozen=True)
class Figure:
    """One figure.

    :param name: such as ``8``; also the stem of its files
    :param x: field of a row that runs along the axis
    :param y: fields of rows that are shown, a line of panels each
    :param panels: field of a row of which each value has a column of panels
    :param published: what the paper tells in numbers
    :param said: what the paper says, in our words
    :param cases: what to run
    """

    name: str
    title: str
    x: str
    y: tuple[str, ...]
    panels: str
    published: tuple[Published, ...]
    said: str
    cases: tuple[experiment.Case, ...]


def all_figures(setup: experiment.Setup, runs: int, seed: int, hours: float,
                largest: int) -> list[Figure]:
    """Return the figures.

    :param largest: most machines of Figures 8, 11 and 12; from 10,000 on Figure 11 has these as
        well. The cost is shown for up to ten times as many
    """
    seeds = range(seed, seed + runs)
    machines = [number for number in _MACHINES if number <= largest]
    if not machines:
        raise errors.InvalidOption('largest', largest, f'at least {_MACHINES[0]} machines')

    def static(sizes: Sequence[int], mix: str, objective: str, schedulers: Sequence[str],
               many: Sequence[int] = seeds, model: str = setup.model) -> list[experiment.Case]:
        world = dataclasses.replace(setup, model=model)
        return [experiment.Case(world, scheduler, number, mix, objective, seed=one)
                for number in sizes for scheduler in schedulers for one in many]

    def dynamic(sizes: Sequence[int], mix: str, rates: Sequence[float],
                schedulers: Sequence[str], sigma: float = workload.SIGMA,
                many: Sequence[int] = seeds, hours: float = hours) -> list[experiment.Case]:
        return [experiment.Case(setup, scheduler, number, mix, rate=rate, hours=hours,
                                sigma=sigma, seed=one)
                for number in sizes for rate in rates for scheduler in schedulers for one in many]

    def table_1() -> list[experiment.Case]:
        world = experiment.Setup((), (experiment.PUBLISHED,), minutes=setup.minutes, model='truth',
                                 truth=experiment.PUBLISHED, calc_ranks=setup.calc_ranks)
        return [dataclasses.replace(case, setup=world) for mix in _MIXES for case in dynamic(
            [64], mix, (30.0, 45.0, 60.0, 100.0),
            (results.BASELINE, 'FIFO-single', 'MIOS', *_MIBS, 'MIX_8', 'MIX_8-eager'))]

    def by_machines(mix: str, schedulers: Sequence[str]) -> list[experiment.Case]:
        sizes = [number for number in _FEWER_MACHINES if number <= largest]
        return [case for number in sizes for case in dynamic(
            [number], mix, [1000.0], schedulers,
            many=seeds if number < _MANY_MACHINES else seeds[:(runs + 1) // 2],
            hours=min(hours, max(_LEAST_HOURS, _MACHINE_HOURS / number)))]

    batches = range(seed, seed + runs * _BATCHES)
    online = (results.BASELINE, *_ONLINE)
    queues = (results.BASELINE, *_MIBS)
    return [
        Figure('4', 'A batch of 32 tasks on 16 machines, by model', 'model',
               ('speedup', 'io_boost'), 'objective', (),
               'With NLM the scheduler gains more than with LM or WMM.',
               tuple(case for model in ('wmm', 'lm', 'nlm', 'law')
                     for objective in objectives.ALL
                     for case in static([16], workload.UNIFORM, objective,
                                        (results.BASELINE, 'MIBS', 'MIX_8-paired', 'matching',
                                         'optimum'), batches, model=model))),
        Figure('8', 'Static: one task for each slot', 'machines', ('speedup', 'io_boost'), 'mix',
               (Published('MIBS', 'light', 'speedup', 1.3),
                Published('MIBS', 'light', 'io_boost', 1.3),
                Published('MIBS', 'medium', 'speedup', 1.4),
                Published('MIBS', 'medium', 'io_boost', 1.4),
                Published('MIBS', 'medium', 'io_boost', 1.5, 1024)),
               'MIBS gains over 40 % with the medium mix, about 30 % with the light one and '
               'little with the heavy one; for IOPS 1.5 times on 1,024 machines.',
               tuple(case for mix in _MIXES for objective in objectives.ALL
                     for case in static(machines, mix, objective,
                                        (results.BASELINE, 'MIOS', 'MIOS-residents', 'MIBS',
                                         'MIX_8', 'MIX_8-paired', 'matching', 'optimum')))),
        Figure('9', 'Dynamic: throughput on 64 machines by arrivals', 'rate', ('throughput',),
               'mix', (),
               'At few arrivals all are alike; above, MIX_8 is best, MIBS_8 close to it, MIOS '
               'least; most is gained with the medium mix.',
               tuple(case for mix in _MIXES for case in dynamic([64], mix, _RATES, online))),
        Figure('10', 'Dynamic: MIBS on 64 machines by arrivals and length of the queue', 'rate',
               ('throughput',), 'mix', (),
               'The longer the queue, the better: at 100 tasks a minute MIBS_8 completes about '
               '10 % more than MIBS_4 and MIBS_2.',
               tuple(case for mix in _MIXES for case in dynamic(
                   [64], mix, _RATES, (*queues, 'MIBS_8-paired')))),
        Figure('11', 'Dynamic: throughput at 1,000 tasks a minute by machines', 'machines',
               ('throughput',), 'mix',
               (Published('MIBS_8', 'medium', 'throughput', 1.4, _MOST),),
               'MIX_8 is best, MIBS_8 comes ever closer to it with more machines, MIOS gains '
               'least; with 10,000 machines at 10,000 tasks a minute MIBS_8 gains 40 %.',
               tuple(case for mix in _MIXES for case in (
                   *by_machines(mix, online),
                   *(dynamic([_MOST], mix, [float(_MOST)], online, many=seeds[:1],
                             hours=min(hours, _LEAST_HOURS)) if largest >= _MOST else ())))),
        Figure('12', 'Dynamic: MIBS at 1,000 tasks a minute by machines and length of the queue',
               'machines', ('throughput',), 'mix', (),
               'The longer the queue, the better, at every number of machines.',
               tuple(case for mix in _MIXES for case in by_machines(mix, queues))),
        Figure('table1', 'Dynamic, with the interference of the paper\'s Table 1: 64 machines by '
               'arrivals', 'rate', ('throughput', 'occupied'), 'mix',
               (Published('MIBS_8', 'medium', 'throughput', 1.4),),
               'Figures 9 and 10: MIX_8 is best, MIBS_8 close to it, shorter queues gain less, '
               'MIOS least; most with the medium mix, 40 % with 10,000 machines.',
               tuple(table_1())),
        Figure('sigma', 'What the standard deviation of the mixes does: 64 machines, 100 tasks a '
               'minute', 'sigma', ('throughput', 'distance'), 'mix', (),
               'Not published.',
               tuple(case for mix in _MIXES for sigma in (0.75, 1.5, 3.0)
                     for case in dynamic([64], mix, [100.0], (
                         results.BASELINE, 'FIFO-packed', 'FIFO-single', 'MIBS_8', 'MIX_8-eager',
                         'PRICED_8'), sigma))),
        Figure('cost', 'What an event costs: as many tasks a minute as machines', 'machines',
               ('event_cost',), 'mix', (),
               'Not published; computing for each arrival or completion should not depend on '
               'the number of machines.',
               tuple(case for number in (100, 300, 1000, 3000, 10000)
                     if number <= max(largest * 10, 300)
                     for case in dynamic([number], 'medium', [float(number)],
                                         (results.BASELINE, 'MIOS', 'MIBS_8', 'MIX_8-eager',
                                          'PRICED_8'),
                                         many=[seed], hours=min(hours, max(
                                             0.5, 1000 / number))))),
    ]
