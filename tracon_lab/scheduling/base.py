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

import dataclasses
import math
from typing import Protocol, Sequence

import numpy as np

from tracon_lab.scheduling import objective as objectives
from tracon_lab.scheduling import performance as performances
from tracon_lab.scheduling import pool as pools
from tracon_watcher.characteristics import FloatArray
from tracon_watcher import tie_breaking

#: (position in the queue, host) of each task that was placed.
Placements = list[tuple[int, int]]
#: Length of a queue that holds all waiting tasks.
ALL_WAITING = 1 << 30


@dataclasses.dataclass(frozen=True)
class Batch:
    """The condition for deciding a batch.

    :param whole: ask for as many free slots as the queue has tasks, so that the whole batch is
        placed; False: for one
    :param wait: longest time, seconds, that the first task waits for the queue to fill; by
        default until it is full, or no task can follow
    """

    whole: bool = True
    wait: float = math.inf


class Scheduler(Protocol):
    """Decides where waiting tasks go.

    ``name`` is shown in tables; ``window`` is the number of the longest waiting tasks that it
    looks at; ``batch`` the condition under which it decides, None: as soon as a slot is free;
    ``order`` which order over free slots it needs, None for none; ``patient`` that it may let
    tasks wait beside free slots.
    """

    name: str
    window: int
    batch: Batch | None
    order: str | None
    patient: bool

    def schedule(self, queue: Sequence[int], pool: pools.Pool) -> Placements:
        """Place tasks on free slots of ``pool``, which is changed, and return which went where.

        A task may be left waiting. After the same calls, the same queue and pool give the same
        placements.

        :param queue: classes of the waiting tasks, the longest waiting first
        """
        ...


@dataclasses.dataclass(frozen=True)
class Reading:
    """Choices where the text of TRACON's batch algorithms can be read in several ways.

    :param window: length of the queue; None: all waiting tasks, decided whenever a slot is free
    :param batch: None: decide whenever a slot is free
    :param paired: place candidate 2 of Algorithm 2 on candidate 1's machine
    """

    window: int | None = 8
    batch: Batch | None = Batch()
    paired: bool = False

    @property
    def length(self) -> int:
        """Number of tasks in the queue."""
        return ALL_WAITING if self.window is None else self.window

    def name(self, family: str) -> str:
        """Return the name of an algorithm in this reading."""
        name = family if self.window is None else f'{family}_{self.window}'
        if self.paired:
            name += '-paired'
        if self.window is not None:
            if self.batch is None:
                name += '-eager'
            elif not self.batch.whole:
                name += '-partial'
        if self.batch is not None and self.batch.wait < math.inf:
            name += f':wait={self.batch.wait:g}'
        return name


class Preference:
    """The configurations in which the next task of each class does best itself.

    This is MIOS's score (Algorithm 1): of all free slots the one with the best predicted
    performance. Residents' harm does not enter. Of equals, the one with the smaller slowdown is
    preferred, then the one that is numbered first; equality has a tolerance, so that rounding
    decides nothing (:mod:`tracon_watcher.tie_breaking`).

    :param residents: count what residents lose as well, which TRACON does not

    Attributes: ``ranked[task]`` configurations, the best first; ``cost[index][task]`` of a
    newcomer, ``lost[index][task]`` by its neighbours, ``pair[one][other]`` slowdown of one class
    beside another, or minus its IOPS ratio.
    """

    def __init__(self, performance: performances.Performance, objective: str,
                 residents: bool = False) -> None:
        cost = (objectives.total_cost if residents else objectives.newcomer_cost)(
            performance, objective)
        slowdown = objectives.newcomer_slowdown(performance)
        self.ranked = [_ranked(column, slow) for column, slow in zip(cost.T, slowdown.T)]
        self.cost = _listed(cost)
        self.lost = _listed(objectives.lost(performance, objective))
        self.pair = _listed(objectives.pair_interference(performance, objective))

    def best(self, task: int, hosts: Sequence[Sequence[int]]) -> int:
        """Return the best configuration with a host in ``hosts``, -1 for none."""
        for index in self.ranked[task]:
            if hosts[index]:
                return index
        return -1


def _ranked(cost: FloatArray, slowdown: FloatArray) -> list[int]:
    order = tie_breaking.argsort(slowdown)
    order = order[tie_breaking.argsort(cost[order])]
    return [int(place) for place in order if np.isfinite(cost[place])]


def _listed(array: FloatArray) -> list[list[float]]:
    # Looked up one by one, lists are several times faster than arrays.
    listed: list[list[float]] = tie_breaking.rounded(array).tolist()
    return listed
