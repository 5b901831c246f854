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

"""MIOS: each task at once to the slot where its own predicted performance is best."""

from __future__ import annotations

from typing import Sequence

from tracon_lab.scheduling import base
from tracon_lab.scheduling import performance as performances
from tracon_lab.scheduling import pool as pools


class Mios:
    """Minimum interference online scheduler (Chiang & Huang, TRACON, SC'11, Algorithm 1).

    :param performance: as predicted
    :param objective: ``RT`` or ``IO``
    :param residents: add what residents lose to the score, which the paper does not
    """

    window = 1
    batch: base.Batch | None = None
    order: str | None = None
    patient = False

    def __init__(self, performance: performances.Performance, objective: str,
                 residents: bool = False) -> None:
        self.name = 'MIOS-residents' if residents else 'MIOS'
        self._preference = base.Preference(performance, objective, residents)

    def schedule(self, queue: Sequence[int], pool: pools.Pool) -> base.Placements:
        """Place tasks in their order; see :class:`~.base.Scheduler`."""
        placed = []
        for position, task in enumerate(queue):
            index = self._preference.best(task, pool.hosts)
            if index < 0:
                continue
            host = pool.hosts[index][-1]
            pool.add(host, task)
            placed.append((position, host))
        return placed
