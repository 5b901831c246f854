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

Figures 4 and 8 are static, 9 to 12 dynamic. Two more are ours: what the standard deviation of the
mixes and FIFO's order do, which the paper does not tell, and what an event costs.
"""

from __future__ import annotations

import dataclasses
from typing import Sequence

from tracon_watcher import errors
from tracon_watcher.scheduling import objective as objectives
from tracon_watcher.simulator import experiment
from tracon_watcher.simulator import results
from tracon_watcher.simulator import workload

_FIFOS = ('FIFO-packed', 'FIFO-spread')
_MIXES = tuple(workload.MIXES)
_MACHINES = (8, 16, 32, 64, 128, 256, 512, 1024)
#: The paper's largest data centre, with as many tasks a minute.
_MOST = 10_000
_RATES = (10.0, 20.0, 25.0, 30.0, 40.0, 60.0, 80.0, 100.0)
_MIBS = ('MIBS_2', 'MIBS_4', 'MIBS_8')
_MIBS_FULL = tuple(name + '-full' for name in _MIBS)
_ONLINE = ('MIOS', 'MIBS_8', 'MIX_8', 'PRICED_8')
#: Batches of 32 tasks differ much; the paper shows their standard deviation.
_BATCHES = 10


@dataclasses.dataclass(frozen=True)
class Published:
    """A number of the paper, always of MIBS_8.

    :param panel: value of the figure's ``panels``
    :param value: of ``field``
    :param at: value of the figure's ``x``, None for all
    """

    panel: str
    field: str
    value: float
    at: float | None = None

    def belongs(self, figure: Figure, row: results.Row) -> bool:
        """Say whether a row has this number's place."""
        objective = {'speedup': objectives.RT, 'io_boost': objectives.IO}.get(self.field)
        return (row.scheduler == 'MIBS_8' and getattr(row, figure.panels) == self.panel
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

    batches = range(seed, seed + runs * _BATCHES)
    rest = (*_FIFOS, *_ONLINE, 'MIBS_8-full', 'MIX_8-full')
    queues = (*_FIFOS, *_MIBS, *_MIBS_FULL)
    return [
        Figure('4', 'A batch of 32 tasks on 16 machines, by model', 'model',
               ('speedup', 'io_boost'), 'objective', (),
               'With NLM the scheduler gains more than with LM or WMM.',
               tuple(case for model in ('wmm', 'lm', 'nlm', 'linked', 'both')
                     for objective in objectives.ALL
                     for case in static([16], workload.UNIFORM, objective,
                                        (*_FIFOS, 'MIBS_8', 'matching', 'optimum'), batches,
                                        model=model))),
        Figure('8', 'Static: one task for each slot', 'machines', ('speedup', 'io_boost'), 'mix',
               (Published('light', 'speedup', 1.3), Published('light', 'io_boost', 1.3),
                Published('medium', 'speedup', 1.4), Published('medium', 'io_boost', 1.4),
                Published('medium', 'io_boost', 1.5, 1024)),
               'MIBS gains over 40 % with the medium mix, about 30 % with the light one and '
               'little with the heavy one; for IOPS 1.5 times on 1,024 machines.',
               tuple(case for mix in _MIXES for objective in objectives.ALL
                     for case in static(machines, mix, objective,
                                        (*_FIFOS, 'MIOS', 'MIBS_8', 'MIX_8', 'matching',
                                         'optimum')))),
        Figure('9', 'Dynamic: throughput on 64 machines by arrivals', 'rate', ('throughput',),
               'mix', (),
               'At few arrivals all are alike; above, MIX_8 is best, MIBS_8 close to it, MIOS '
               'least; most is gained with the medium mix.',
               tuple(case for mix in _MIXES for case in dynamic([64], mix, _RATES, rest))),
        Figure('10', 'Dynamic: MIBS on 64 machines by arrivals and length of the queue', 'rate',
               ('throughput',), 'mix', (),
               'The longer the queue, the better: at 100 tasks a minute MIBS_8 completes about '
               '10 % more than MIBS_4 and MIBS_2.',
               tuple(case for mix in _MIXES for case in dynamic([64], mix, _RATES, queues))),
        Figure('11', 'Dynamic: throughput at 1,000 tasks a minute by machines', 'machines',
               ('throughput',), 'mix', (Published('medium', 'throughput', 1.4, _MOST),),
               'MIX_8 is best, MIBS_8 comes ever closer to it with more machines, MIOS gains '
               'least; with 10,000 machines at 10,000 tasks a minute MIBS_8 gains 40 %.',
               tuple(case for mix in _MIXES for case in (
                   *dynamic(machines, mix, [1000.0], rest),
                   *(dynamic([_MOST], mix, [float(_MOST)], rest) if largest >= _MOST else ())))),
        Figure('12', 'Dynamic: MIBS at 1,000 tasks a minute by machines and length of the queue',
               'machines', ('throughput',), 'mix', (),
               'The longer the queue, the better, at every number of machines.',
               tuple(case for mix in _MIXES
                     for case in dynamic(machines, mix, [1000.0], queues))),
        Figure('sigma', 'What the standard deviation of the mixes does: 64 machines, 100 tasks a '
               'minute', 'sigma', ('throughput', 'distance'), 'mix', (),
               'Not published.',
               tuple(case for mix in _MIXES for sigma in (0.75, 1.0, 1.5, 2.0, 3.0)
                     for case in dynamic([64], mix, [100.0], (*_FIFOS, *_ONLINE), sigma))),
        Figure('cost', 'What an event costs: as many tasks a minute as machines', 'machines',
               ('event_cost',), 'mix', (),
               'Not published; computing for each arrival or completion should not depend on '
               'the number of machines.',
               tuple(case for number in (100, 300, 1000, 3000, 10000)
                     if number <= max(largest * 10, 300)
                     for case in dynamic([number], 'medium', [float(number)],
                                         ('FIFO-spread', 'MIOS', 'MIBS_8', 'MIX_8', 'PRICED_8'),
                                         many=[seed], hours=min(hours, max(
                                             0.5, 2000 / number))))),
    ]
