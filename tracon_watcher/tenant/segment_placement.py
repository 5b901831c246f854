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

"""Which workers of an OLAP system store new segments: EASY, and two strategies beside it.

Javadi, Analytical Approaches for Dynamic Scheduling in Cloud Environments (PhD thesis, Stony Brook
2019), sections 6.3.3 and 6.5.4; Javadi et al., EASY, ICDCS'18. Every strategy gives each worker a
cost, and a new segment goes to the r workers of least cost; of equal ones the first are taken.
"""

from __future__ import annotations

import math
from typing import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tracon_watcher import errors
from tracon_watcher.tenant.latency_model import FloatArray
from tracon_watcher import tie_breaking

IntArray = npt.NDArray[np.intp]
#: Which worker holds which segment, shape (workers, segments).
Held = npt.NDArray[np.bool_]
#: Tells the cost of every worker, shape (workers,), for the new segment of an index.
Cost = Callable[[int, Held], FloatArray]


def easy(loads: FloatArray, tables: IntArray, table_weight: float = 0.0) -> Cost:
    """Return EASY's cost, the sum of remaining loads of a worker's segments (eq. 6.6).

    Eq. 6.6 does not ask which table a segment is of, and may put segments that the same queries
    read on one worker. With a ``table_weight``, which is ours, the loads of segments of the
    newcomer's own table count so much more: a large one balances each table by itself.

    :param loads: remaining load of every segment, shape (segments,)
    :param tables: index of its table, likewise
    """
    def cost(new: int, held: Held) -> FloatArray:
        return np.asarray(held @ (loads * (1.0 + table_weight * (tables == tables[new]))))
    return cost


def count(tables: IntArray) -> Cost:
    """Return the cost of Pinot's default, the number of the worker's segments of the table.

    Of workers with as many, Pinot takes the first of its list, for every table the same.
    """
    def cost(new: int, held: Held) -> FloatArray:
        return np.asarray(held @ (tables == tables[new]).astype(np.float64))
    return cost


def spread(starts: FloatArray, ends: FloatArray, tables: IntArray,
           decay: float = math.log(2.0)) -> Cost:
    """Return Druid's cost, which is high where segments of near times are (eq. 6.7).

    In closed form: K(u) = |u| / decay + exp(-decay |u|) / decay^2 has the second derivative
    exp(-decay |u|). Pairs of segments of one table count twice (section 6.5.5).

    :param starts: begin of each segment's time, in days, shape (segments,); ``ends`` likewise
    :param decay: in 1/day; the thesis does not state it, Druid's cost halves in a day
    """
    def second(distance: FloatArray) -> FloatArray:
        size = decay * np.abs(distance)
        return np.asarray((size + np.exp(-size)) / decay ** 2)

    def cost(new: int, held: Held) -> FloatArray:
        near = (second(ends[new] - starts) + second(starts[new] - ends)
                - second(ends[new] - ends) - second(starts[new] - starts))
        return np.asarray(held @ (near * (1.0 + (tables == tables[new]))))
    return cost


def place(new: Sequence[int] | IntArray, held: Held, cost: Cost, replicas: int = 1) -> IntArray:
    """Put new segments one after the other on the workers of least cost (section 6.3.3).

    :param new: indices of the new segments, in the order in which they are placed
    :param held: is changed
    :param replicas: r, workers that hold each new segment
    :returns: indices of the workers, the cheapest first, shape (new, replicas)
    :raises tracon_watcher.errors.InvalidOption: when there are fewer workers than replicas
    """
    if not 1 <= replicas <= len(held):
        raise errors.InvalidOption('replicas', replicas, f'expected 1 to {len(held)} workers')
    chosen = np.zeros((len(new), replicas), dtype=np.intp)
    for row, segment in enumerate(new):
        costs = cost(segment, held)
        # Relative to the greatest: costs have the unit of the strategy, and may all be small.
        chosen[row] = tie_breaking.argsort(costs / (costs.max() or 1.0))[:replicas]
        held[chosen[row], segment] = True
    return chosen
