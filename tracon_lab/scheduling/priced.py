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

"""PRICED: an online scheduler that values hosts by the prices of the saturated optimum.

MIOS counts what a newcomer will suffer. It counts neither what residents will, nor what another
task in the same slot would be worth. Here every configuration has a value, Σ_a price_a r_a(m): its
completions a second at the prices of :mod:`~tracon_lab.scheduling.saturation`. A task is worth
what it adds to the value of its host. That counts the newcomer and the residents in one sum; the
prices reflect the mix of tasks that is expected, which is that of the tasks placed so far. Four
rules follow from it:

* Of all tasks in the window and all free slots the two are put together that add most.
* A task that adds less than a share θ of what a slot earns in the optimum waits, even beside a
  free slot: the residents there are worth more without it, or with another one. It never waits
  where a host is empty.
* When the window is full, the share of a class in it beyond its share among all tasks adds to its
  worth. So tasks that suit no host do not block the window: in the end all must be done.
* A task that was overtaken by a full window many times is placed at the next chance, beside any
  resident, so that no task waits for ever.

Without interference every task adds what a slot earns, and none waits beside a free slot.

Ranks are kept by class and configuration, so a decision looks at no hosts.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np

from tracon_lab.scheduling import base
from tracon_lab.scheduling import configurations as configuration
from tracon_lab.scheduling import performance as performances
from tracon_lab.scheduling import pool as pools
from tracon_lab.scheduling import saturation
from tracon_watcher import tie_breaking

#: θ and the weight of a class's surplus in the window, in what a slot earns. Chosen on three mixes
#: and two host types; ``tracon simulate tune`` shows what a choice on one is worth on the other.
THRESHOLD = 0.4
SURPLUS = 2.0
#: Prices are computed again when twice as many tasks were placed, and every so many.
_PERIOD = 4096
_FIRST = 32
#: Windows by which the longest waiting task may be overtaken.
_OVERTAKEN = 32


class Priced:
    """The online scheduler of this product; see the module for its rules.

    It has one objective, the completed work of the mix that comes; since each task has its number
    of requests, those a second grow with it. It learns from one stream of tasks.

    :param performance: as predicted
    :param window: tasks it looks at
    :param threshold: θ; 0 lets a task wait only where it does harm, minus infinity never
    :param surplus: weight of a class's surplus in the window
    """

    batch: base.Batch | None = None
    order: str | None = None

    def __init__(self, performance: performances.Performance, window: int = 8,
                 threshold: float = THRESHOLD, surplus: float = SURPLUS) -> None:
        self.name = f'PRICED_{window}'
        self.window = window
        self.patient = threshold > -np.inf
        self._performance = performance
        self._threshold = threshold
        self._surplus = surplus
        self._seen = np.ones(len(performance.configurations.classes))
        self._placed = 0
        self._due = 0
        self._overtaken = 0
        self._shares: list[float] = []
        # (what it adds, configuration), the best first: of all, and of empty hosts.
        self._ranked: list[list[tuple[float, int]]] = []
        self._alone: list[list[tuple[float, int]]] = []

    def schedule(self, queue: Sequence[int], pool: pools.Pool) -> base.Placements:
        """Place the tasks that are worth it; see :class:`~.base.Scheduler`."""
        if self._placed >= self._due:
            self._learn(pool)
        left = list(range(len(queue)))
        count = [0] * len(self._shares)
        for task in queue:
            count[task] += 1
        placed = []
        while left and pool.free:
            if left[0] == 0 and self._overtaken >= _OVERTAKEN * self.window:
                task = queue[0]
                index = next(one for _worth, one in self._ranked[task] if pool.hosts[one])
            else:
                task, index = self._best(count, len(left), pool)
            if index < 0:
                break
            position = next(one for one in left if queue[one] == task)
            self._overtaken = self._overtaken + 1 if position and left[0] == 0 else 0
            left.remove(position)
            count[task] -= 1
            host = pool.hosts[index][-1]
            pool.add(host, task)
            self._seen[task] += 1
            placed.append((position, host))
        self._placed += len(placed)
        return placed

    def _best(self, count: Sequence[int], waiting: int, pool: pools.Pool) -> tuple[int, int]:
        """Return the class and the configuration that add most; -1 where all had better wait."""
        best, most = (-1, -1), -np.inf
        for task, number in enumerate(count):
            if not number:
                continue
            more = 0.0
            if waiting >= self.window:
                more = self._surplus * (number / waiting - self._shares[task])
            worth, index = self._best_of(task, more, pool.hosts)
            if index >= 0 and worth > most + tie_breaking.TOLERANCE:
                best, most = (task, index), worth
        return best

    def _best_of(self, task: int, more: float,
                 hosts: Sequence[Sequence[int]]) -> tuple[float, int]:
        """Return what a class adds at most and where; -1 where it had better wait."""
        for worth, index in self._ranked[task]:
            if worth + more <= self._threshold:
                break
            if hosts[index]:
                return worth + more, index
        # On an empty host it need not be worth it.
        for worth, index in self._alone[task]:
            if hosts[index]:
                return worth + more, index
        return 0.0, -1

    def _learn(self, pool: pools.Pool) -> None:
        """Compute prices for the mix of tasks so far."""
        space = pool.configurations
        shares = self._seen / self._seen.sum()
        if self._placed >= _PERIOD:
            # What was long ago counts ever less.
            self._seen = np.maximum(self._seen / 2, 1.0)
        self._due = max(_FIRST, min(2 * self._placed, self._placed + _PERIOD))
        optimum = saturation.solve(self._performance, shares,
                                   np.bincount(pool.host_types, minlength=len(space.slots)))
        value = self._performance.completions @ optimum.price
        earned = (optimum.earned / np.array(space.slots))[space.host_type]
        added = np.array(space.added)
        # Compared with a threshold and with each other, so rounding must not decide.
        worth = tie_breaking.rounded(np.where(
            added == configuration.NONE, -np.inf,
            (value[added] - value[:, None]) / earned[:, None]), 8)
        self._shares = tie_breaking.rounded(shares).tolist()
        self._ranked = [[(float(column[index]), int(index))
                         for index in tie_breaking.argsort(-column)
                         if np.isfinite(column[index])] for column in worth.T]
        self._alone = [[one for one in ranked if not space.size[one[1]]]
                       for ranked in self._ranked]
