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

"""Min-Min: of all waiting tasks and all free slots, the pair with the best score, repeatedly."""

from __future__ import annotations

from typing import Sequence

from tracon_lab.scheduling import base
from tracon_lab.scheduling import performance as performances
from tracon_lab.scheduling import pool as pools


class MinMin:
    """The heuristic that TRACON's text names as the origin of MIBS (SC'11, §3.2).

    The best machine is found for each queued task (the first "Min"), then the best of these pairs
    (the second "Min"); that task is placed, until the queue is empty. The score is the newcomer's
    predicted runtime, or minus its IOPS, as for MIOS. Of equal pairs the longest waiting task is
    taken.

    :param performance: as predicted
    :param objective: ``RT`` or ``IO``
    :param reading: length of the queue and when a batch is decided
    """

    order: str | None = None
    patient = False

    def __init__(self, performance: performances.Performance, objective: str,
                 reading: base.Reading = base.Reading()) -> None:
        self.name = reading.name('MINMIN')
        self.window = reading.length
        self.batch = reading.batch
        self._preference = base.Preference(performance, objective)

    def schedule(self, queue: Sequence[int], pool: pools.Pool) -> base.Placements:
        """Place the best pair of task and slot again and again; see :class:`~.base.Scheduler`."""
        preference = self._preference
        waiting: dict[int, list[int]] = {}
        for position in range(len(queue) - 1, -1, -1):
            waiting.setdefault(queue[position], []).append(position)
        placed = []
        while waiting and pool.free:
            best = {task: index for task in waiting
                    if (index := preference.best(task, pool.hosts)) >= 0}
            if not best:
                break
            _cost, _position, task = min((preference.cost[index][task], waiting[task][-1], task)
                                         for task, index in best.items())
            host = pool.hosts[best[task]][-1]
            pool.add(host, task)
            placed.append((waiting[task].pop(), host))
            if not waiting[task]:
                del waiting[task]
        return placed
