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

"""A synthetic OLAP system: tables of segments, workers that hold them, queries, and their tail.

It shows what placements of segments are worth (:mod:`tracon_watcher.tenant.segment_placement`), in
the six settings of Javadi's thesis of 2019, sections 6.5.5 and 6.5.6. Whatever the thesis leaves
open is synthetic: the tables' curves, rates and load. None of it is fitted to its results.

A segment holds one day. A query reads the last days of one table, Zipf-distributed in number (the
first of them in part), and comes at random (Poisson), whatever the state of the system. Each
worker works on its part of a query with all its cores, one query after the other; a query ends
with the last of its parts.
"""

from __future__ import annotations

import dataclasses
from typing import Sequence

import numpy as np
import numpy.typing as npt

from tracon_watcher.tenant.latency_model import FloatArray
from tracon_watcher.tenant import segment_load
from tracon_watcher.tenant import segment_placement

#: Age at which segments are removed, in days.
EXPIRY = 90.0
#: Pinot's own, the same with even ties, Druid's.
BASELINES = ('count', 'even', 'spread')
STRATEGIES = (*BASELINES, 'easy', 'easy, by table')
#: Of "easy, by table": of 1, 10 and 30 the least that was nowhere worse than "even".
TABLE_WEIGHT = 10.0
_ROWS = 30000.0
_HOURS_OF_LOG = 1.0


@dataclasses.dataclass(frozen=True)
class Table:
    """A table, its queries, and the CPU time of its rows.

    :ivar share: of all queries
    :ivar zipf: exponent of the number of days that a query reads
    :ivar cpu: CPU seconds for each scanned row over the age of its segment, in days
    """

    share: float
    zipf: float
    cpu: segment_load.Curve


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A setting of the thesis.

    :ivar tables: that there are
    :ivar days: of each table, with a segment each
    :ivar workers: in the end
    :ivar spread: standard deviation of the rows of segments, of 30,000
    :ivar added: how many of the workers come late
    :ivar new: days that are placed after they have come
    """

    tables: Sequence[Table]
    days: int
    workers: int
    spread: float = 1000.0
    added: int = 0
    new: int = 0


def _table(share: float, zipf: float, cpu: float = 1e-6) -> Table:
    return Table(share, zipf, segment_load.Curve(0.5 * cpu, 0.5 * cpu, -0.5))


_ONE = (_table(1.0, 1.5),)
_THREE = (_table(0.5, 1.5), _table(0.2, 1.2), _table(0.3, 2.0))
_UNEQUAL = (_table(0.5, 1.5), _table(0.2, 1.2, 4e-6), _table(0.3, 2.0, 0.5e-6))
SCENARIOS = {
    'one table, sizes ± 5K': Scenario(_ONE, 90, 4, 5000.0),
    'one table, sizes ± 15K': Scenario(_ONE, 90, 4, 15000.0),
    'one table, sizes ± 25K': Scenario(_ONE, 90, 4, 25000.0),
    'one table, worker added': Scenario(_ONE, 90, 4, added=1, new=30),
    'three tables': Scenario(_THREE, 28, 4),
    'unequal tables': Scenario(_UNEQUAL, 90, 2),
    'unequal tables, worker added': Scenario(_UNEQUAL, 90, 2, added=1, new=45),
}


@dataclasses.dataclass(frozen=True)
class Segments:
    """The segments of all tables, of one day after the other; each shape (segments,).

    :ivar table: index of its table
    :ivar begin: day with which it begins, from 0
    :ivar rows: that it holds
    """

    table: npt.NDArray[np.intp]
    begin: FloatArray
    rows: FloatArray


@dataclasses.dataclass(frozen=True)
class Queries:
    """Queries over all segments.

    :ivar arrivals: in units of the mean time between two, shape (queries,)
    :ivar rows: that each scans of each segment, shape (queries, segments)
    :ivar work: CPU seconds that this takes, likewise
    """

    arrivals: FloatArray
    rows: FloatArray
    work: FloatArray


def draw_segments(scenario: Scenario, rng: np.random.Generator) -> Segments:
    """Draw the rows of all segments, at least 1000 each."""
    count = len(scenario.tables)
    begin = np.repeat(np.arange(scenario.days), count).astype(np.float64)
    rows = np.maximum(np.rint(rng.normal(_ROWS, scenario.spread, len(begin))), 1000.0)
    return Segments(np.tile(np.arange(count), scenario.days), begin, rows)


def draw_queries(scenario: Scenario, segments: Segments, number: int,
                 rng: np.random.Generator) -> Queries:
    """Draw queries that come on the day after the last segment's."""
    shares = np.array([table.share for table in scenario.tables])
    table = rng.choice(len(shares), number, p=shares / shares.sum())
    length = np.zeros(number)
    cpu = np.zeros(len(segments.table))
    age = scenario.days - segments.begin
    days = np.arange(1.0, scenario.days + 1.0)
    for index, one in enumerate(scenario.tables):
        own = table == index
        chance = days ** -one.zipf
        length[own] = rng.choice(days, int(own.sum()), p=chance / chance.sum())
        cpu[segments.table == index] = one.cpu(age[segments.table == index])
    length -= rng.uniform(0.0, 1.0, number)
    part = np.clip(length[:, np.newaxis] - (age - 1.0), 0.0, 1.0)
    rows = np.where(table[:, np.newaxis] == segments.table, part * segments.rows, 0.0)
    # Queries of one range differ: mean 1, a quarter above 1.2.
    kind = rng.lognormal(-0.125, 0.5, number)
    return Queries(np.cumsum(rng.exponential(1.0, number)), rows,
                   rows * cpu * kind[:, np.newaxis])


def learn(scenario: Scenario, number: int, rng: np.random.Generator
          ) -> list[segment_load.Model]:
    """Return the models of all tables, from a log of one hour in which each worker logs totals."""
    segments = draw_segments(scenario, rng)
    queries = draw_queries(scenario, segments, number, rng)
    age = scenario.days - segments.begin
    on = np.arange(len(age)) // len(scenario.tables) % scenario.workers
    cpu, scanned = np.zeros(len(age)), np.zeros(len(age))
    for worker in range(scenario.workers):
        own = np.flatnonzero(on == worker)
        query, part = np.nonzero(queries.rows[:, own])
        rows = queries.rows[:, own]
        for target, each in ((cpu, queries.work), (scanned, queries.rows)):
            target[own] = segment_load.attribute(each[:, own].sum(axis=1), query, part,
                                                 rows[query, part], len(own))
    models = []
    for index in range(len(scenario.tables)):
        own = segments.table == index
        with np.errstate(invalid='ignore'):
            per_row = cpu[own] / scanned[own]
        scans = scanned[own] / segments.rows[own] * 24.0 / _HOURS_OF_LOG
        models.append(segment_load.Model(segment_load.fit(age[own], per_row, EXPIRY, scanned[own]),
                                         segment_load.fit(age[own], scans, EXPIRY), 1.0, EXPIRY))
    return models


def place(scenario: Scenario, segments: Segments, strategy: str,
          models: Sequence[segment_load.Model]) -> npt.NDArray[np.bool_]:
    """Place all segments, day by day, and return which worker holds which."""
    held = np.zeros((scenario.workers, len(segments.begin)), dtype=bool)
    for day in range(scenario.days):
        late = scenario.added if day < scenario.days - scenario.new else 0
        new = np.flatnonzero(segments.begin == day)
        if strategy == 'count':
            cost = segment_placement.count(segments.table)
        elif strategy == 'even':
            cost = _even(segments.table)
        elif strategy == 'spread':
            cost = segment_placement.spread(segments.begin, segments.begin + 1.0, segments.table)
        else:
            # Those that come later are held by none; their age is of no consequence.
            age = np.maximum(day + 1.0 - segments.begin, 1.0)
            loads = np.zeros(len(age))
            for index, model in enumerate(models):
                own = segments.table == index
                loads[own] = segment_load.remaining_load(model, segments.rows[own], age[own])
            cost = segment_placement.easy(loads, segments.table,
                                          0.0 if strategy == 'easy' else TABLE_WEIGHT)
        # A view: what is placed there is held in the whole as well.
        segment_placement.place(new, held[:scenario.workers - late], cost)
    return held


def _even(tables: npt.NDArray[np.intp]) -> segment_placement.Cost:
    """Return Pinot's cost, with the number of all segments where those of the table are equal."""
    of_table = segment_placement.count(tables)

    def cost(new: int, held: npt.NDArray[np.bool_]) -> FloatArray:
        return np.asarray(of_table(new, held) + held.sum(axis=1) / (len(tables) + 1.0))
    return cost


def latencies(queries: Queries, held: npt.NDArray[np.bool_], load: float,
              cores: float) -> tuple[FloatArray, FloatArray]:
    """Return the latency of each query, in seconds, and the utilisation of each worker.

    :param load: of all cores of all workers, on the average
    """
    work = queries.work @ held.T.astype(np.float64) / cores
    arrivals = queries.arrivals * work.sum() / (load * len(held) * len(work))
    found = np.zeros(len(work))
    for worker in range(len(held)):
        own = work[:, worker] > 0
        done = np.cumsum(work[own, worker])
        came = arrivals[own]
        # Lindley's recursion: the end is max(end before, arrival) + work.
        end = done + np.maximum.accumulate(came - done + work[own, worker])
        found[own] = np.maximum(found[own], end - came)
    return found, work.sum(axis=0) / (arrivals[-1] or 1.0)
