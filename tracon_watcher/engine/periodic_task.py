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

"""Periodic tasks, each in its own thread, and their reports, each logged once."""

from __future__ import annotations

import logging
import math
import threading
import time
from typing import Any, Callable

from tracon_watcher import errors

_MOST = 200


class Reports:
    """Collects texts during a cycle, and logs those that the cycle before did not have.

    :param log: logger
    """

    def __init__(self, log: Any) -> None:
        #: Error of each failing activity, by activity. The caller of the activity logs it.
        self.failures: dict[str, str] = {}
        self._log = log
        self._told: set[tuple[str, str]] = set()
        self._now: set[tuple[str, str]] = set()

    def __call__(self, kind: str, text: str) -> None:
        """Take a text.

        :param kind: what it is about; beyond the first of a kind, many are only counted
        """
        self._now.add((kind, text))

    def __len__(self) -> int:
        """How many there were in the last whole cycle, with what fails now."""
        return len(self._told) + len(self.failures)

    def end(self) -> None:
        """Log what is new, and forget what is over."""
        new = sorted(self._now - self._told)
        for _kind, text in new[:_MOST]:
            self._log.warning('%s', text)
        if len(new) > _MOST:
            self._log.warning('%d more of this kind are not logged', len(new) - _MOST)
        self._told, self._now = self._now, set()


LOG = logging.getLogger(__name__)
#: Seconds a failing activity waits at most before it is tried again.
LONGEST_WAIT = 60.0
_FIRST_WAIT = 1.0


class Reported(errors.TraconError):
    """A failure that was reported where it was found, so that it is not logged once more."""


class PeriodicTask:
    """Calls ``work`` at an interval, in a thread.

    An error is logged when it first happens and when it is over, not each time. What fails is
    tried again after a pause that doubles, as long as that is shorter than the interval; ``woken``
    does not shorten that pause.

    :param name: for the log and the metrics
    :param interval: seconds from one beginning to the next
    :param woken: when set, the work is done as soon as ``shortest`` allows
    :param longest: seconds from one beginning to the next where the work lasts long: then there is
        a pause as long as the work, so that other services that it keeps busy are so half of the
        time; None: there is none
    :param shortest: seconds from the end of the work to its next beginning at least, however often
        ``woken`` is set; :meth:`wake` alone does not wait for them
    :param overdue: seconds since the last success after which it does not work, failure or none:
        what it waits for may never answer
    """

    def __init__(self, name: str, work: Callable[[], object], interval: float,
                 woken: threading.Event | None = None,
                 clock: Callable[[], float] = time.monotonic,
                 longest: float | None = None, shortest: float = 0.0,
                 overdue: float = math.inf) -> None:
        self.name = name
        self.interval = interval
        self.succeeded_at: float | None = None
        self.failure: str | None = None
        self._began_at = clock()
        self.seconds = 0.0
        self._work = work
        self._woken = threading.Event() if woken is None else woken
        self._at_once = threading.Event()
        self._shortest = shortest
        self._overdue = overdue
        self._clock = clock
        self._longest = interval if longest is None else longest
        self._failures = 0
        self._stopped = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, at once."""
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End after the work at hand; returns at once."""
        self._stopped = True
        self.wake()

    def stop(self, timeout: float = 10.0) -> None:
        """End after the work at hand, which is waited for so many seconds at most."""
        self.end()
        if self._thread is not None:
            self._thread.join(timeout)

    def wake(self) -> None:
        """Have the work done now, whatever came before."""
        self._at_once.set()
        self._woken.set()

    def works(self) -> bool:
        """Return whether it has not failed, nor been silent for longer than ``overdue``."""
        last = self._began_at if self.succeeded_at is None else self.succeeded_at
        return self.failure is None and self._clock() - last <= self._overdue

    def once(self) -> float:
        """Do the work, and return after how many seconds it is to be done again."""
        began = self._clock()
        caught = None
        try:
            self._work()
        except Exception as error:
            # Nothing else would see it, and the other activities need this process.
            caught = error
        if caught is not None:
            # Told from out here: within, oslo.log would append the error to every line.
            self._failed(caught)
            return min(_FIRST_WAIT * 2.0 ** (self._failures - 1), LONGEST_WAIT, self.interval)
        now = self._clock()
        self.seconds, self.succeeded_at = now - began, now
        if self._failures:
            LOG.info('%s works again, after %d failures', self.name, self._failures)
        self._failures, self.failure = 0, None
        return max(self.interval - self.seconds,
                   min(self.seconds, self._longest - self.seconds), 0.0)

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        text = str(error) or type(error).__name__
        if text != self.failure and not isinstance(error, Reported):
            # What was raised on purpose says all there is to know.
            expected = isinstance(error, errors.TraconError)
            LOG.error('%s failed: %s', self.name, text, exc_info=None if expected else error)
        self.failure = text

    def _run(self) -> None:
        while not self._stopped:
            self._at_once.clear()
            self._woken.clear()
            self.wait(self.once())

    def wait(self, pause: float) -> None:
        """Wait as long as :meth:`once` said, or less where there is a reason to."""
        # While the work fails, each notification would otherwise be one more attempt.
        least = pause if self.failure is not None else min(self._shortest, pause)
        if not self._at_once.wait(least):
            self._woken.wait(pause - least)
