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

"""MIBS: the first of the queue, then the task that interferes least with it, and so on."""

from __future__ import annotations

import collections
from typing import Iterator, Sequence

from tracon_lab.scheduling import base
from tracon_lab.scheduling import performance as performances
from tracon_lab.scheduling import pool as pools


class Mibs:
    """Minimum interference batch scheduler (Chiang & Huang, TRACON, SC'11, Algorithm 2).

    :param performance: as predicted
    :param objective: ``RT`` or ``IO``
    :param reading: length of the queue, when a batch is decided and where candidate 2 goes
    """

    order: str | None = None
    patient = False

    def __init__(self, performance: performances.Performance, objective: str,
                 reading: base.Reading = base.Reading()) -> None:
        self.name = reading.name('MIBS')
        self.window = reading.length
        self.batch = reading.batch
        self._paired = reading.paired
        self._preference = base.Preference(performance, objective)

    def schedule(self, queue: Sequence[int], pool: pools.Pool) -> base.Placements:
        """Place tasks, two by two; see :class:`~.base.Scheduler`."""
        placed: base.Placements = []
        full, host = pool.configurations.full, -1
        for position, second in pairwise_order(self._preference, queue, 0):
            if not (second and self._paired and host >= 0 and not full[pool.of[host]]):
                index = self._preference.best(queue[position], pool.hosts)
                host = pool.hosts[index][-1] if index >= 0 else -1
            if host < 0:
                continue
            pool.add(host, queue[position])
            placed.append((position, host))
            if not pool.free:
                break
        return placed


def pairwise_order(preference: base.Preference, queue: Sequence[int],
                   first: int) -> Iterator[tuple[int, bool]]:
    """Yield positions of a queue in the order in which MIBS places them, in O(n c).

    With each comes whether the task is candidate 2 of the one before it. Of equal candidates the
    longest waiting one is taken.

    :param first: position of the task that is taken first of all
    """
    waiting: dict[int, collections.deque[int]] = {}
    for position, task in enumerate(queue):
        if position != first:
            waiting.setdefault(task, collections.deque()).append(position)
    taken = [False] * len(queue)
    one, start = first, 0
    while queue:
        taken[one] = True
        yield one, False
        beside = queue[one]
        if not waiting:
            return
        _score, other = min((preference.pair[task][beside], positions[0])
                            for task, positions in waiting.items())
        _take(waiting, queue[other])
        taken[other] = True
        yield other, True
        if not waiting:
            return
        while taken[start]:
            start += 1
        one = start
        _take(waiting, queue[one])


def _take(waiting: dict[int, collections.deque[int]], task: int) -> None:
    positions = waiting[task]
    positions.popleft()
    if not positions:
        del waiting[task]
