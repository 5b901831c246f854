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

"""The free slots of a data centre, by configuration and in order."""

from __future__ import annotations

import heapq
from typing import Sequence

from tracon_lab.scheduling import configurations as configuration
from tracon_watcher import errors

#: FIFO's order over free slots is not published: fill a host before the next, or fill evenly.
PACKED, SPREAD = 'packed', 'spread'
ORDERS = (PACKED, SPREAD)


class Pool:
    """Hosts and their configurations; every change takes the same time whatever their number.

    :param configurations: of all host types
    :param host_types: index of each host's type
    :param order: keep the first free slot at hand as well, :data:`PACKED` or :data:`SPREAD`

    ``hosts[i]`` are the hosts with a free slot in configuration i, ``of[h]`` the configuration of
    host h,
    ``host_types`` the index of each host's type, and ``free`` the number of free slots.
    """

    def __init__(self, configurations: configuration.Configurations, host_types: Sequence[int],
                 order: str | None = None) -> None:
        if not len(host_types):
            raise errors.InvalidOption('machines', 0, 'there must be one at least')
        if order is not None and order not in ORDERS:
            raise errors.InvalidOption('order', order, f'expected one of {", ".join(ORDERS)}')
        self.configurations = configurations
        self.host_types = tuple(host_types)
        self.of = [configurations.empty[kind] for kind in host_types]
        self.hosts: list[list[int]] = [[] for _one in range(len(configurations))]
        self.free = sum(configurations.slots[kind] for kind in host_types)
        self._place = [0] * len(self.of)
        self._order = order
        self._heap: list[int] = []
        self._queued: set[int] = set()
        for host in range(len(self.of) - 1, -1, -1):
            self._enter(host, self.of[host])

    def add(self, host: int, task: int) -> None:
        """Start a task of a class on a host.

        :raises tracon_watcher.errors.InvalidOption: when the host has no free slot
        """
        old = self.of[host]
        new = self.configurations.added[old][task]
        if new < 0:
            raise errors.InvalidOption('host', host, 'has no free slot')
        self._leave(host, old)
        self.of[host] = new
        self.free -= 1
        if not self.configurations.full[new]:
            self._enter(host, new)

    def remove(self, host: int, task: int) -> None:
        """End a task of a class on a host.

        :raises tracon_watcher.errors.InvalidOption: when none of that class runs there
        """
        old = self.of[host]
        new = self.configurations.removed[old][task]
        if new < 0:
            raise errors.InvalidOption('host', host, 'runs no task of class '
                                                     + self.configurations.classes[task])
        if not self.configurations.full[old]:
            self._leave(host, old)
        self.of[host] = new
        self.free += 1
        self._enter(host, new)

    def first(self) -> int:
        """Return the host of the first free slot, in the order that was asked for."""
        heap = self._heap
        while True:
            key = heap[0]
            host, size = self._unpack(key)
            now = self.of[host]
            if self.configurations.size[now] == size and not self.configurations.full[now]:
                return host
            heapq.heappop(heap)
            self._queued.discard(key)

    def _enter(self, host: int, index: int) -> None:
        members = self.hosts[index]
        self._place[host] = len(members)
        members.append(host)
        if self._order is not None:
            key = self._key(host, self.configurations.size[index])
            # Only what is not waiting already, or the heap would grow with time.
            if key not in self._queued:
                self._queued.add(key)
                heapq.heappush(self._heap, key)

    def _leave(self, host: int, index: int) -> None:
        members = self.hosts[index]
        last = members.pop()
        if last != host:
            place = self._place[host]
            members[place] = last
            self._place[last] = place

    def _key(self, host: int, size: int) -> int:
        if self._order == PACKED:
            return host * (max(self.configurations.slots) + 1) + size
        return size * len(self.of) + host

    def _unpack(self, key: int) -> tuple[int, int]:
        if self._order == PACKED:
            return divmod(key, max(self.configurations.slots) + 1)
        size, host = divmod(key, len(self.of))
        return host, size
