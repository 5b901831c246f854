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

"""The contract of all schedulers, and what those of TRACON share."""

from __future__ import annotations

from typing import Protocol, Sequence

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.scheduling import objective as objectives
from tracon_watcher.scheduling import performance as performances
from tracon_watcher.scheduling import pool as pools

#: (position in the queue, host) of each task that was placed.
Placements = list[tuple[int, int]]
#: How names of schedulers end that wait for a full queue and as many free slots.
FULL = '-full'


class Scheduler(Protocol):
    """Decides where waiting tasks go.

    ``name`` is shown in tables; ``window`` is how many of the longest waiting tasks it looks at;
    ``batch`` says that it wants as many free slots as there are tasks in its queue, and a full
    queue, before it decides (Chiang & Huang, TRACON, SC'11, §3.2); ``order`` which order over
    free slots it needs, None for none; ``patient`` that it may let tasks wait beside free slots.
    """

    name: str
    window: int
    batch: bool
    order: str | None
    patient: bool

    def schedule(self, queue: Sequence[int], pool: pools.Pool) -> Placements:
        """Place tasks on free slots of ``pool``, which is changed, and say which went where.

        A task may be left waiting. After the same calls, the same queue and pool give the same
        placements.

        :param queue: classes of the waiting tasks, the longest waiting first
        """
        ...


class Preference:
    """Where the next task of each class does best, by what is predicted of that task alone.

    This is MIOS's score (Algorithm 1): of all free slots the one with the best predicted
    performance. Residents' harm does not enter.
    """

    def __init__(self, performance: performances.Performance, objective: str) -> None:
        cost = objectives.newcomer_cost(performance, objective)
        self.ranked = [[int(place) for place in np.argsort(column, kind='stable')
                        if np.isfinite(column[place])] for column in cost.T]
        self.lost: list[list[float]] = _listed(objectives.lost(performance, objective))
        self.pair: list[list[float]] = _listed(objectives.pair_interference(
            performance, objective))

    def best(self, task: int, hosts: Sequence[Sequence[int]]) -> int:
        """Return the best configuration with a host in ``hosts``, -1 for none."""
        for index in self.ranked[task]:
            if hosts[index]:
                return index
        return -1


def _listed(array: FloatArray) -> list[list[float]]:
    # Looked up one by one, lists are several times faster than arrays.
    listed: list[list[float]] = array.tolist()
    return listed
