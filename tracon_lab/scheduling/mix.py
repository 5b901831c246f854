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

"""MIX: MIBS with every task of the queue once in front, and the best of all these."""

from __future__ import annotations

from typing import Sequence

from tracon_lab.scheduling import base
from tracon_lab.scheduling import mibs
from tracon_lab.scheduling import performance as performances
from tracon_lab.scheduling import pool as pools
from tracon_watcher import tie_breaking


class Mix:
    """Minimum interference mixed scheduler (Chiang & Huang, TRACON, SC'11, Algorithm 3).

    The paper compares assignments of a whole queue. Where slots do not suffice for it, assignments
    place different tasks; what they lose by interference is compared then
    (:func:`~tracon_lab.scheduling.objective.lost`), which comes to the same where they do, on
    hosts of one type.

    :param performance: as predicted
    :param objective: ``RT`` or ``IO``
    :param reading: length of the queue, when a batch is decided and where candidate 2 goes
    """

    order: str | None = None
    patient = False

    def __init__(self, performance: performances.Performance, objective: str,
                 reading: base.Reading = base.Reading()) -> None:
        self.name = reading.name('MIX')
        self.window = reading.length
        self.batch = reading.batch
        self._paired = reading.paired
        self._preference = base.Preference(performance, objective)

    def schedule(self, queue: Sequence[int], pool: pools.Pool) -> base.Placements:
        """Place the best of as many assignments as there are tasks; see :class:`Scheduler`."""
        best: list[tuple[int, int]] = []
        least, tried = float('inf'), set()
        for first, task in enumerate(queue):
            # The same classes in the same order come to the same; of one slot, the same first.
            order = (task,) if pool.free == 1 else (task, *queue[:first], *queue[first + 1:])
            if order in tried:
                continue
            tried.add(order)
            plan, lost = self._attempt(queue, first, pool)
            # The earlier of equals is kept; rounding makes none better.
            less = lost < least - tie_breaking.TOLERANCE * max(1.0, abs(lost))
            if len(plan) > len(best) or (len(plan) == len(best) and less):
                best, least = plan, lost
        placed = []
        for position, index in best:
            host = pool.hosts[index][-1]
            pool.add(host, queue[position])
            placed.append((position, host))
        return placed

    def _attempt(self, queue: Sequence[int], first: int,
                 pool: pools.Pool) -> tuple[list[tuple[int, int]], float]:
        """Return positions with the configurations they would come to, and what they lose."""
        space, preference = pool.configurations, self._preference
        change: dict[int, int] = {}
        # The tasks of this queue on the hosts that it has come to, by configuration. As in
        # Pool.hosts, the host that was changed last is the first to be taken again.
        together: dict[int, list[list[int]]] = {}
        plan: list[tuple[int, int]] = []
        free = pool.free
        grown = -1
        for position, second in mibs.pairwise_order(preference, queue, first):
            if not free:
                break
            task = queue[position]
            if second and self._paired and grown >= 0 and not space.full[grown]:
                # Candidate 1's host was changed last, so it stands last among its equals.
                index = grown
            else:
                grown = -1
                for index in preference.ranked[task]:
                    if len(pool.hosts[index]) + change.get(index, 0) > 0:
                        break
                else:
                    continue
            grown = space.added[index][task]
            change[index] = change.get(index, 0) - 1
            if not space.full[grown]:
                change[grown] = change.get(grown, 0) + 1
            waiting = together.get(index)
            together.setdefault(grown, []).append([*(waiting.pop() if waiting else ()), task])
            plan.append((position, index))
            free -= 1
        lost = sum(preference.lost[index][task] for index, groups in together.items()
                   for group in groups for task in group)
        return plan, lost
