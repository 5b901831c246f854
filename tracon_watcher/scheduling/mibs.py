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

"""MIBS: the first of the queue, then whoever interferes least with it, and so on."""

from __future__ import annotations

from typing import Sequence

from tracon_watcher.scheduling import base
from tracon_watcher.scheduling import performance as performances
from tracon_watcher.scheduling import pool as pools


class Mibs:
    """Minimum interference batch scheduler (Chiang & Huang, TRACON, SC'11, Algorithm 2).

    :param performance: as predicted
    :param objective: ``RT`` or ``IO``
    :param window: length of the queue
    :param batch: decide when the queue is full and as many slots are free (§3.2); False: as soon
        as a slot is (§4.2), which makes it FIFO where one at a time becomes free
    """

    order: str | None = None
    patient = False

    def __init__(self, performance: performances.Performance, objective: str, window: int = 8,
                 batch: bool = False) -> None:
        self.name = f'MIBS_{window}' + (base.FULL if batch else '')
        self.window = window
        self.batch = batch
        self._preference = base.Preference(performance, objective)

    def schedule(self, queue: Sequence[int], pool: pools.Pool) -> base.Placements:
        """Place tasks, two by two; see :class:`~.base.Scheduler`."""
        placed = []
        for position in pairwise_order(self._preference, queue, 0):
            index = self._preference.best(queue[position], pool.hosts)
            if index < 0:
                continue
            host = pool.hosts[index][-1]
            pool.add(host, queue[position])
            placed.append((position, host))
        return placed


def pairwise_order(preference: base.Preference, queue: Sequence[int], first: int) -> list[int]:
    """Return the positions of a queue in the order in which MIBS places them.

    :param first: position of the task that is taken first of all
    """
    left = list(range(len(queue)))
    order: list[int] = []
    if not left:
        return order
    left.insert(0, left.pop(first))
    while left:
        one = left.pop(0)
        order.append(one)
        if left:
            beside = queue[one]
            other = min(left, key=lambda position: preference.pair[queue[position]][beside])
            left.remove(other)
            order.append(other)
    return order
