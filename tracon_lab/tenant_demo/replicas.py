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
"""DIAL where a request is served by some workers only: a scatter-gather service of replicas.

A query asks each of three segments, whose two replicas are on different workers, and ends with the
slowest answer. A worker that is contended gets the share of its segments that eq. 4.6 says
(:func:`tracon_watcher.tenant.load_balancing.replica_shares`); the estimate is that of DIAL's
controller, from the latencies that the queries themselves see.
"""

from __future__ import annotations

import asyncio
import dataclasses
import pathlib
import random
import threading
import time

import numpy as np

from tracon_lab.tenant_demo import experiment
from tracon_lab.tenant_demo import hosts
from tracon_lab.tenant_demo import load
from tracon_lab.tenant_demo import programs
from tracon_watcher.tenant import controller
from tracon_watcher.tenant import load_balancing
from tracon_watcher.tenant import settings

#: Workers by number that have a replica of each segment, and queries a second.
SEGMENTS, RATE = ((0, 1), (1, 2), (2, 0)), 62.0
COLUMNS = ('contention', 'equal_shares_ms', 'dial_ms', 'against_equal_percent')
_NAMES = tuple(f'w{host.number}' for host in hosts.HOSTS)
_TRICKLE = 0.05


class Queries(load.Load):
    """Sends queries at random times, and takes down which worker answered in what time.

    :ivar shares: of each segment, the share of its queries that its first replica gets
    """

    def __init__(self, seed: int) -> None:
        super().__init__(0, RATE, seed)
        self.shares = [0.5] * len(SEGMENTS)
        self._chance = random.Random(seed + 1)
        self._answers: list[tuple[int, float]] = []

    def answers(self) -> list[tuple[int, float]]:
        """Return worker and seconds of each answer since the last call."""
        found, self._answers = self._answers, []
        return found

    async def _ask(self, due: float) -> None:
        chosen = [pair[self._chance.random() >= share]
                  for pair, share in zip(SEGMENTS, self.shares)]
        taken = await asyncio.gather(*(load.fetch(
            hosts.HOSTS[one].address, hosts.PORT, due) for one in chosen))
        self._answers.extend(zip(chosen, taken))
        self.done.append((due, max(taken)))


class Steering(threading.Thread):
    """Sets the shares of replicas every interval, by what queries have seen.

    :param interval: s
    """

    def __init__(self, queries: Queries, interval: float) -> None:
        super().__init__(daemon=True)
        self._queries, self._interval = queries, interval
        self._ended = threading.Event()
        self.controller = controller.Controller(settings.Settings(
            pathlib.Path(), pathlib.Path(), 'segments', _NAMES, experiment.PEAK_RATE,
            quiet_readings=20, interval_seconds=interval, trickle=_TRICKLE))

    def run(self) -> None:
        """Steer until :meth:`stop`."""
        last = time.monotonic()
        while not self._ended.wait(self._interval):
            now = time.monotonic()
            self.step(self._queries.answers(), now - last)
            last = now

    def step(self, answers: list[tuple[int, float]], seconds: float) -> None:
        """Take in an interval, and set shares."""
        seen = {name: [1e3 * taken for worker, taken in answers if worker == place]
                for place, name in enumerate(_NAMES)}
        self.controller.decide(controller.Observation(
            seconds, _NAMES, seen, {name: len(one) for name, one in seen.items()}))
        worst = max(range(len(_NAMES)), key=lambda place: self._background(place))
        self._queries.shares = [0.5] * len(SEGMENTS)
        if self._background(worst) > 0.0 and answers:
            share, _other = load_balancing.replica_shares(
                experiment.PEAK_RATE, experiment.PEAK_RATE * (1.0 - self._background(worst)),
                len(_NAMES), 2, min(len(answers) / seconds, 2.0 * experiment.PEAK_RATE))
            share = min(max(share, _TRICKLE), 0.5)
            self._queries.shares = [
                share if pair[0] == worst else 1.0 - share if pair[1] == worst else 0.5
                for pair in SEGMENTS]

    def stop(self) -> None:
        """Stop."""
        self._ended.set()
        self.join()

    def _background(self, place: int) -> float:
        worker = self.controller.workers[_NAMES[place]]
        return worker.background_load if worker.contended else 0.0


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What queries took.

    :ivar tails_ms: T95 of the queries sent during each kind of contention
    """

    tails_ms: dict[str, float]


def play(site: experiment.Site, steered: bool, seed: int) -> Outcome:
    """Play all kinds of contention beside the first worker, whose workers run."""
    queries = Queries(seed)
    steering = Steering(queries, site.interval)
    began, windows = time.monotonic(), {}
    queries.start()
    if steered:
        steering.start()
    try:
        site.sleep(experiment.LEAST_QUIET)
        windows[experiment.QUIET] = began, time.monotonic()
        for kind in programs.KINDS:
            with experiment.running(site.program(hosts.HOSTS[0], kind)):
                start = time.monotonic()
                site.sleep(site.contention)
                windows[kind] = start, time.monotonic()
            site.sleep(experiment.END)
    finally:
        if steered:
            steering.stop()
        queries.stop()
    sent, taken = np.array(sorted(queries.done)).T
    return Outcome({kind: 1e3 * float(np.percentile(taken[(sent >= begin) & (sent < end)], 95))
                    for kind, (begin, end) in windows.items()})


def table(equal: list[Outcome], steered: list[Outcome]) -> list[tuple[str, float, float, float]]:
    """Return rows of :data:`COLUMNS`: medians over rounds."""
    rows = []
    for kind in (experiment.QUIET, *programs.KINDS):
        first, second = (float(np.median([one.tails_ms[kind] for one in found]))
                         for found in (equal, steered))
        rows.append((kind, first, second, 100.0 * (second / first - 1.0)))
    return rows
