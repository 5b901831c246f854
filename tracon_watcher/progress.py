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

"""How far it is, and how much time is left, on one line of standard error."""

from __future__ import annotations

import sys
import threading
import time
from typing import TextIO

#: Share of all work from which on a task's end is shown at once.
_LARGE = 0.05


class Progress:
    """Shows the share that is done of many tasks.

    :param total: number of tasks, or the sum of their weights
    :param stream: a terminal gets one line that is written over; anything else a line now and then
    """

    def __init__(self, total: float, stream: TextIO | None = None) -> None:
        self._total = total
        self._stream = stream if stream is not None else sys.stderr
        self._shares: dict[object, float] = {}
        self._weights: dict[object, float] = {}
        self._started = time.monotonic()
        self._shown = -1e9
        self._lock = threading.Lock()
        self._terminal = self._stream.isatty()
        self._width = 0

    def report(self, task: object, share: float, weight: float = 1.0) -> None:
        """Take down which share of a task is done, and show it."""
        with self._lock:
            ended = share == 1 and self._shares.get(task) != 1
            self._shares[task] = share
            self._weights[task] = weight
            now = time.monotonic()
            # Of many small tasks each one's end is not worth a line, but the last one's is.
            everything = self._done() >= self._total * (1 - 1e-9)
            told = ended and (weight >= _LARGE * self._total or everything)
            if now - self._shown < (0.5 if self._terminal else 15.0) and not told:
                return
            self._shown = now
            running = ', '.join(f'{getattr(one, "name", one)} {share:.0%}'
                                for one, share in self._shares.items() if 0 < share < 1)
            self._show(f'{self.line(now)}  {running}'.rstrip())

    def line(self, now: float) -> str:
        """Return how much is done and when the rest will be."""
        done = self._done() / self._total
        passed = now - self._started
        # The first seconds go into starting Nova, so that little can be told of the rest.
        left = f', about {_time(passed * (1 - done) / done)} left' if done > 0.04 else ''
        return f'{done:4.0%} after {_time(passed)}{left}'

    def _done(self) -> float:
        return sum(share * self._weights[one] for one, share in self._shares.items())

    def say(self, text: str) -> None:
        """Show a line that stays."""
        with self._lock:
            self._show(text)
            if self._terminal:
                self._stream.write('\n')
                self._width = 0

    def _show(self, text: str) -> None:
        if self._terminal:
            self._stream.write('\r' + text[:150].ljust(self._width))
            self._width = min(len(text), 150)
        else:
            self._stream.write(text + '\n')
        self._stream.flush()


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f'{minutes} min {rest:02} s' if minutes else f'{rest} s'
