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

"""The event loop: tasks come, run beside each other, and end.

A task's remaining work is kept in *runs*: 1 when it starts, 0 when it is done. It falls at the
speed that its host's configuration allows, and whenever a neighbour comes or goes the rest is
re-timed (Chiang & Huang, TRACON, SC'11, §4.2). Each host has one event in the heap, its next
completion; older ones are known by their number and passed over. So an event costs the same
whatever the number of hosts, but for the heap's logarithm.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
import time
from typing import Callable, Protocol, Sequence

import numpy as np

from tracon_lab.scheduling import base
from tracon_lab.scheduling import performance as performances
from tracon_lab.scheduling import pool as pools
from tracon_lab.simulator import queue as queues
from tracon_lab.simulator import workload
from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher import errors

_SHOWN_EVERY = 20_000


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What has happened.

    :param seconds: simulated
    :param arrived: tasks
    :param started: tasks
    :param completed: (c,) tasks of each class
    :param done: (c,) runs that were done, of completed tasks and others, and what migrations cost
    :param lost: (c,) of these, what migrations cost
    :param spent: (n,) host seconds in each configuration
    :param started_work: runs that started tasks have altogether; for tasks of a drawn mix one each
    :param waited: seconds that started tasks have waited altogether
    :param overtaken: by how many later ones a task was overtaken, at most
    :param events: that were worked off
    :param scheduling: seconds of computing that the scheduler took
    :param migrations: that were made
    """

    seconds: float
    arrived: int
    started: int
    started_work: float
    completed: IntArray
    done: FloatArray
    lost: FloatArray
    spent: FloatArray
    waited: float
    overtaken: int
    events: int
    scheduling: float
    migrations: int = 0

    def work(self, truth: performances.Performance) -> FloatArray:
        """Return runs of each class that the configurations allow in the time spent, (c,)."""
        done: FloatArray = self.spent @ truth.completions
        return done

    def mean_runtime(self, truth: performances.Performance) -> float:
        """Return the mean seconds from start to end of a task; NaN for nothing."""
        busy = float(self.spent @ truth.configurations.residents.sum(axis=1))
        done = float(self.work(truth).sum())
        return busy / done * self.started_work / self.started if done else math.nan

    def mean_iops(self, truth: performances.Performance) -> float:
        """Return requests per second of all tasks together."""
        of_host = (truth.configurations.residents * truth.iops).sum(axis=1)
        return float(self.spent @ of_host) / self.seconds


class Audit(Protocol):
    """Looks at the data centre now and then, and proposes moves, as Watcher does.

    ``interval`` seconds lie between two audits; ``pause`` is how many seconds a task that moves
    stands still.
    """

    interval: float
    pause: float

    def moves(self, residents: Sequence[Sequence[int]], now: float) -> list[tuple[int, int, int]]:
        """Return (source host, place among its residents, destination host) of each move.

        :param residents: classes on each host
        """
        ...


def run(truth: performances.Performance, host_types: Sequence[int], scheduler: base.Scheduler,
        source: workload.Source, seconds: float, audit: Audit | None = None,
        progress: Callable[[float], None] | None = None) -> Outcome:
    """Simulate a data centre.

    :param truth: what really happens
    :param host_types: index of each host's type
    :param scheduler: which knows no more than what is predicted
    :param seconds: to simulate
    :param audit: migrates tasks; None for none
    :param progress: is told the share that is done, now and then
    """
    if not seconds > 0 or not math.isfinite(seconds):
        raise errors.InvalidOption('hours', seconds / 3600, 'a time above 0')
    return _Simulation(truth, host_types, scheduler, source, seconds, audit, progress).run()


class _Simulation:
    def __init__(self, truth: performances.Performance, host_types: Sequence[int],
                 scheduler: base.Scheduler, source: workload.Source, seconds: float,
                 audit: Audit | None, progress: Callable[[float], None] | None) -> None:
        space = truth.configurations
        self._seconds = seconds
        self._scheduler = scheduler
        self._audit = audit
        self._progress = progress
        self._pool = pools.Pool(space, host_types, scheduler.order)
        self._slots = self._pool.free
        self._queue = queues.Queue(source, scheduler.window)
        # Runs a second of one task of a class; lists are faster than arrays one by one.
        rate = truth.speed / truth.solo_seconds[space.host_type]
        self._rate: list[list[float]] = rate.tolist()
        count = len(self._pool.of)
        self._of = list(self._pool.of)
        self._tasks: list[list[int]] = [[] for _host in range(count)]
        self._left: list[list[float]] = [[] for _host in range(count)]
        self._since = [0.0] * count
        self._version = [0] * count
        self._heap: list[tuple[float, int, int]] = []
        self._spent = [0.0] * len(space)
        self._completed = [0] * len(space.classes)
        self._waited = 0.0
        self._started = 0
        self._started_work = [0.0] * len(space.classes)
        self._events = 0
        self._scheduling = 0.0
        self._migrations = 0
        self._lost = [0.0] * len(space.classes)

    def run(self) -> Outcome:
        queue, pool, heap = self._queue, self._pool, self._heap
        window, shown = self._scheduler.window, _SHOWN_EVERY
        audit_at = math.inf if self._audit is None else self._audit.interval
        while True:
            now = heap[0][0] if heap else math.inf
            # An arrival is an event only where it might change something.
            arrival = pool.free and len(queue.classes) < window and queue.next < now
            if arrival:
                now = queue.next
            if (deadline := self._deadline()) < now:
                now, arrival = deadline, True
            if audit_at < now:
                now, arrival = audit_at, True
            if now > self._seconds:
                break
            touched = []
            if audit_at == now and self._audit is not None:
                touched += self._migrate(self._audit, now)
                audit_at = now + self._audit.interval
            elif not arrival:
                _time, host, version = heapq.heappop(heap)
                if version != self._version[host]:
                    continue
                self._complete(host, now)
                touched.append(host)
            self._events += 1
            if self._events >= shown and self._progress is not None:
                shown += _SHOWN_EVERY
                self._progress(now / self._seconds)
            queue.admit(now)
            touched += self._place(now)
            for host in touched if len(touched) < 2 else dict.fromkeys(touched):
                self._retime(host, now)
        return self._outcome()

    def _ready(self, now: float) -> bool:
        batch, queue = self._scheduler.batch, self._queue
        if batch is None:
            return True
        if len(queue.classes) == self._scheduler.window:
            return not batch.whole or self._pool.free >= min(self._scheduler.window, self._slots)
        # What no task can follow would wait for ever.
        return queue.next == math.inf or now >= self._deadline()

    def _deadline(self) -> float:
        """Return when a batch scheduler stops waiting for a full queue."""
        batch, queue = self._scheduler.batch, self._queue
        if batch is None or not self._pool.free or not (
                0 < len(queue.classes) < self._scheduler.window):
            return math.inf
        return queue.times[0] + batch.wait

    def _settle(self, host: int, now: float) -> None:
        """Book the time since the host's last change."""
        passed = now - self._since[host]
        if passed > 0:
            index = self._of[host]
            self._spent[index] += passed
            rate, left = self._rate[index], self._left[host]
            for place, task in enumerate(self._tasks[host]):
                left[place] -= passed * rate[task]
        self._since[host] = now

    def _retime(self, host: int, now: float) -> None:
        """Enter the host's next completion."""
        self._version[host] += 1
        tasks = self._tasks[host]
        if not tasks:
            return
        rate, left = self._rate[self._of[host]], self._left[host]
        least = min([runs / rate[task] for runs, task in zip(left, tasks)])
        heapq.heappush(self._heap, (now + max(least, 0.0), host, self._version[host]))

    def _complete(self, host: int, now: float) -> None:
        self._settle(host, now)
        tasks, left = self._tasks[host], self._left[host]
        rate = self._rate[self._of[host]]
        times = [runs / rate[task] for runs, task in zip(left, tasks)]
        place = times.index(min(times))
        task = tasks.pop(place)
        del left[place]
        self._completed[task] += 1
        self._pool.remove(host, task)
        self._of[host] = self._pool.of[host]

    def _place(self, now: float) -> list[int]:
        queue, pool = self._queue, self._pool
        touched: list[int] = []
        # Places in the window become free for others, who may find a slot as well.
        while pool.free and queue.classes and self._ready(now):
            start = time.perf_counter()
            placed = self._scheduler.schedule(queue.classes, pool)
            self._scheduling += time.perf_counter() - start
            if not placed:
                break
            for position, host in placed:
                self._settle(host, now)
                task = queue.classes[position]
                self._tasks[host].append(task)
                self._left[host].append(queue.work[position])
                self._started_work[task] += queue.work[position]
                self._waited += now - queue.times[position]
                touched.append(host)
            for _position, host in placed:
                self._of[host] = pool.of[host]
            self._started += len(placed)
            queue.take([position for position, _host in placed])
            queue.admit(now)
        return touched

    def _migrate(self, audit: Audit, now: float) -> list[int]:
        touched = []
        for source, place, destination in audit.moves(self._tasks, now):
            for host in (source, destination):
                self._settle(host, now)
            task = self._tasks[source].pop(place)
            left = self._left[source].pop(place)
            self._pool.remove(source, task)
            self._pool.add(destination, task)
            for host in (source, destination):
                self._of[host] = self._pool.of[host]
            # It stands still for a while: as if that much of its work had to be done again.
            again = audit.pause * self._rate[self._of[destination]][task]
            self._lost[task] += again
            self._tasks[destination].append(task)
            self._left[destination].append(left + again)
            self._migrations += 1
            touched += [source, destination]
        return touched

    def _outcome(self) -> Outcome:
        remaining = [0.0] * len(self._completed)
        for host, tasks in enumerate(self._tasks):
            self._settle(host, self._seconds)
            for task, runs in zip(tasks, self._left[host]):
                remaining[task] += runs
        done = np.array(self._started_work) + np.array(self._lost) - np.array(remaining)
        arrived = self._queue.arrived(self._seconds)
        if self._progress is not None:
            self._progress(1.0)
        return Outcome(self._seconds, arrived, self._started,
                       float(sum(self._started_work)),
                       np.array(self._completed, dtype=np.intp), done, np.array(self._lost),
                       np.array(self._spent), self._waited, self._queue.overtaken, self._events,
                       self._scheduling, self._migrations)
