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

"""First in, first out: the baseline. The longest waiting task takes the first free slot."""

from __future__ import annotations

from typing import Sequence

from tracon_lab.scheduling import base
from tracon_lab.scheduling import pool as pools

#: One VM a host: the other slots stay empty.
SINGLE = 'single'
ORDERS = (*pools.ORDERS, SINGLE)


class Fifo:
    """The baseline of TRACON's evaluation (Chiang & Huang, SC'11, §4.2).

    :param order: over free slots, which the paper does not tell: ``packed`` or ``spread``;
        ``single`` places tasks on empty hosts only, so that no task has a neighbour
    """

    window = 1
    batch: base.Batch | None = None

    def __init__(self, order: str = pools.SPREAD) -> None:
        self._single = order == SINGLE
        self.order: str | None = pools.SPREAD if self._single else order
        self.patient = self._single
        self.name = f'FIFO-{order}'

    def schedule(self, queue: Sequence[int], pool: pools.Pool) -> base.Placements:
        """Place tasks in their order; see :class:`~.base.Scheduler`."""
        placed = []
        for position, task in enumerate(queue):
            if not pool.free:
                break
            host = pool.first()
            # The emptiest host comes first.
            if self._single and pool.configurations.size[pool.of[host]]:
                break
            pool.add(host, task)
            placed.append((position, host))
        return placed
