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

"""Tasks that have arrived and wait, of which a scheduler sees the longest waiting few."""

from __future__ import annotations

import math
from typing import Iterable

from tracon_lab.simulator import workload


class Queue:
    """The window over what has arrived.

    Tasks beyond the window are not looked at, so that a data centre may be overloaded
    by millions of tasks and each event takes the same time.

    :param source: of the tasks
    :param window: how many are shown

    ``classes`` of those in the window, the longest waiting first, with ``times`` of arrival and
    ``work`` in runs; ``next`` is when the next one arrives that is not in the window.
    """

    def __init__(self, source: workload.Source, window: int) -> None:
        self.classes: list[int] = []
        self.times: list[float] = []
        self.work: list[float] = []
        self.next = math.inf
        #: Tasks that were taken before one that had come earlier: how many at most for one task.
        self.overtaken = 0
        self._numbers: list[int] = []
        self._taken = 0
        self._window = window
        self._chunks = iter(source.chunks())
        self._chunk = workload.Chunk([], [])
        self._at = 0
        self._seen = 0
        self._advance()

    def admit(self, now: float) -> None:
        """Let those who have arrived into the window, as far as it has room."""
        while self.next <= now and len(self.classes) < self._window:
            chunk, at = self._chunk, self._at
            self.classes.append(chunk.classes[at])
            self.times.append(self.next)
            self.work.append(1.0 if chunk.work is None else chunk.work[at])
            self._numbers.append(self._seen)
            self._seen += 1
            self._at = at + 1
            if self._at < len(chunk.times):
                self.next = chunk.times[self._at]
            else:
                self._advance()

    def take(self, positions: Iterable[int]) -> None:
        """Remove tasks from the window."""
        for position in sorted(positions, reverse=True):
            del self.classes[position], self.times[position], self.work[position]
            del self._numbers[position]
            self._taken += 1
        if self._numbers:
            # Of the _taken so far, those before the first that waits had come earlier.
            self.overtaken = max(self.overtaken, self._taken - self._numbers[0])

    def arrived(self, until: float) -> int:
        """Return how many tasks come until a moment, and admit none of them."""
        count = self._seen
        while self.next <= until:
            count += 1
            self._at += 1
            if self._at < len(self._chunk.times):
                self.next = self._chunk.times[self._at]
            else:
                self._advance()
        return count

    def _advance(self) -> None:
        for chunk in self._chunks:
            if chunk.times:
                self._chunk, self._at, self.next = chunk, 0, chunk.times[0]
                return
        self.next = math.inf
