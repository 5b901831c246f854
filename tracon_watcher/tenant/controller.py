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

"""The controller of DIAL: from what is seen of workers to their shares, without input or output.

Javadi, Analytical Approaches for Dynamic Scheduling in Cloud Environments (PhD thesis, Stony Brook
2019), section 4.3.3: detect, classify, estimate, share load. The load of every resource is the
rate of requests over the peak rate.

What the thesis leaves open, and what is done here:

- *The 95 % interval of quiet times.* It says confidence interval of the mean. A single reading of
  T_x is outside that far more often than once in twenty, and the more so the longer it was
  learnt. Here it is the interval of a reading. Its centre and width are the median and the median
  deviation of the readings of all workers, which are of one size: so it is learnt rightly even
  while fewer than half of them are contended.
- *Load.* T_x also rises with a worker's own load, be it a surge or because others were relieved.
  So the interval of T_x over what eq. 4.1 expects at the own load has to be left, too.
- *The end.* A worker that gets a trickle is fast in spite of contention. So contention has ended
  when two successive readings are within the interval of T_x over expectation.
- *Few requests.* A percentile of a handful is no reading: a window goes on until it has enough.
- *The kind.* It is told from the readings by which contention begins: those of a trickle are
  unlike any that were trained. Where it is ``load``, no contention begins, and it is asked again
  with the next reading.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from typing import Mapping, Sequence

import numpy as np

from tracon_watcher.tenant import classification
from tracon_watcher.tenant import latency_model
from tracon_watcher.tenant import load_balancing
from tracon_watcher.tenant import settings as dial_settings

#: Successive readings that begin or end contention, and blind intervals that end in equal weights.
SUCCESSIVE = 2
#: Requests of a window that are beyond its percentile, at least.
_BEYOND = 5
#: Change of a share, of an equal share, that is within the noise of estimates.
_DEADBAND = 0.15
#: How many times ``quiet_readings`` are remembered.
_MEMORY = 12
#: The standard deviation over the median deviation, and the ends of the middle 95 %, of a normal
#: distribution.
_DEVIATION, _SPREAD = 1.4826, 1.96
#: Of HAProxy's times.
_RESOLUTION_MS = 1.0
_HIGHEST_WEIGHT = 256
NO_READING = (math.nan,) * len(classification.FEATURES)


@dataclasses.dataclass(frozen=True)
class Observation:
    """What was seen of an interval.

    :ivar seconds: how long it was
    :ivar available: workers that HAProxy sends requests to
    :ivar latencies: of requests that ended, ms, for each worker
    :ivar arrivals: number of requests that each worker got, also those without a latency
    :ivar blind: why nothing is known of the interval; empty otherwise
    :ivar readings: of each worker whose metrics are known, as ``classification.FEATURES`` says
    """

    seconds: float = 0.0
    available: Sequence[str] = ()
    latencies: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)
    arrivals: Mapping[str, int] = dataclasses.field(default_factory=dict)
    blind: str = ''
    readings: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Worker:
    """What is known of a worker; NaN is unknown.

    :ivar tail_ms: T_x of its last window
    :ivar background_load: rho_bg, 0 while it is not contended
    :ivar kind: of contention; empty without contention or model
    """

    tail_ms: float = math.nan
    background_load: float = math.nan
    contended: bool = False
    kind: str = ''
    # What metrics say while contention begins.
    evidence: list[Sequence[float]] = dataclasses.field(default_factory=list)
    # Readings in a row that say otherwise, and the window: latencies, requests and seconds.
    contrary: int = 0
    latencies: list[float] = dataclasses.field(default_factory=list)
    arrivals: int = 0
    seconds: float = 0.0

    def clear(self) -> None:
        """Begin a window."""
        self.latencies, self.arrivals, self.seconds = [], 0, 0.0


class Controller:
    """Keeps what is known of workers, and their shares.

    :ivar workers: those that are available
    :ivar shares: of all requests, of sum 1; the same workers
    :ivar blind: successive intervals of which nothing is known
    """

    def __init__(self, settings: dial_settings.Settings,
                 model: classification.Model | None = None) -> None:
        self._settings = settings
        self._model = model
        self._tail = f'T{settings.percentile:g}'
        self._least = math.ceil(_BEYOND / (1.0 - settings.percentile / 100.0) - 1e-9)
        #: Worker, T_x and T_x over what eq. 4.1 expects.
        self._quiet: collections.deque[tuple[str, float, float]] = collections.deque(
            maxlen=_MEMORY * settings.quiet_readings)
        self.workers = {name: Worker() for name in settings.workers}
        self.shares = _equal(self.workers)
        self.blind = 0

    @property
    def learning(self) -> bool:
        """Whether there are too few readings of quiet times to tell contention from them."""
        return len(self._quiet) < self._settings.quiet_readings

    def decide(self, seen: Observation) -> list[str]:
        """Take in an interval, change :attr:`shares`, and return what is new, for the log."""
        if seen.blind:
            return self._decide_blind(seen.blind)
        news = ['sees again'] if self.blind >= SUCCESSIVE else []
        self.blind = 0
        news += self._track(seen.available)
        for name, worker in self.workers.items():
            worker.latencies.extend(seen.latencies.get(name, ()))
            worker.arrivals += seen.arrivals.get(name, 0)
            worker.seconds += seen.seconds
            if len(worker.latencies) >= self._least:
                news += self._read(name, worker, seen.readings.get(name, NO_READING))
                worker.clear()
        self._steer(seen)
        return news

    def _decide_blind(self, reason: str) -> list[str]:
        self.blind += 1
        for worker in self.workers.values():
            worker.clear()
        if self.blind != SUCCESSIVE:
            return []
        # Until now the last shares stood: a rotated log is back by then. What was known of
        # contention grows old, and a share for a contended worker that is not may harm the others.
        self.workers = {name: Worker() for name in self.workers}
        self.shares = _equal(self.workers)
        return [f'blind, so weights are equal: {reason}']

    def _track(self, available: Sequence[str]) -> list[str]:
        """Follow workers that come and go; the others keep their proportions."""
        new = [name for name in available if name not in self.shares]
        gone = [name for name in self.shares if name not in available]
        if not new and not gone:
            return []
        self.workers = {name: self.workers.get(name, Worker()) for name in available}
        kept = {name: share for name, share in self.shares.items() if name not in gone}
        scale = (1.0 - len(new) / len(available)) / sum(kept.values()) if kept else 0.0
        self.shares = {name: kept[name] * scale if name in kept else 1.0 / len(available)
                       for name in available}
        return ([f'{name} is not available' for name in gone]
                + [f'{name} is available' for name in new])

    def _read(self, name: str, worker: Worker, reading: Sequence[float]) -> list[str]:
        """Take a reading of a window that is full."""
        settings = self._settings
        own_load = min(worker.arrivals / worker.seconds / settings.peak_rate, 0.99)
        worker.tail_ms = float(np.percentile(worker.latencies, settings.percentile))
        curves = self._model.coefficients if self._model else {}
        over = max(worker.tail_ms, 0.5 * _RESOLUTION_MS) / float(latency_model.latency(
            own_load, curves.get(dial_settings.LOAD, settings.coefficients)))
        if self.learning:
            self._quiet.append((name, worker.tail_ms, over))
            return []
        tail_end, middle, end = self._interval()
        outside = over > end and (worker.contended
                                  or worker.tail_ms > max(tail_end, settings.objective_ms))
        worker.contrary = worker.contrary + 1 if outside != worker.contended else 0
        worker.evidence = [*worker.evidence, reading] if outside and worker.contrary else []
        changes = worker.contrary >= SUCCESSIVE
        if changes:
            worker.evidence = worker.evidence[-SUCCESSIVE:]
            kind = (self._model.classify(np.array(worker.evidence))
                    if self._model and outside else '')
            changes = kind != dial_settings.LOAD
        if changes:
            worker.contended, worker.contrary, worker.kind = outside, 0, kind
        if not worker.contended:
            worker.background_load = 0.0
            self._quiet.append((name, worker.tail_ms, over))
            return [f'{name} is contended no more: {self._tail} {worker.tail_ms:.0f} ms'
                    ] if changes else []
        # The curve of a kind is in ms, that of the settings in any unit.
        curve = curves.get(worker.kind)
        estimate = float(latency_model.background_load(
            worker.tail_ms / (1.0 if curve else middle), own_load,
            curve or curves.get(dial_settings.LOAD, settings.coefficients)))
        if changes:
            worker.background_load = estimate
            kind = f' ({worker.kind})' if worker.kind else ''
            return [f'{name} is contended{kind}: {self._tail} {worker.tail_ms:.0f} ms, quiet up '
                    f'to {tail_end:.0f} ms; background load {estimate:.2f}']
        # A window that a trickle fills has few requests: half of the last estimate stays.
        worker.background_load = (worker.background_load + estimate) / 2.0
        return []

    def _interval(self) -> tuple[float, float, float]:
        """Return the upper end for T_x, and the middle and the upper end for T_x over expectation.

        The readings of workers that are contended now are left out where enough others remain.
        """
        quiet = [one for one in self._quiet
                 if not (one[0] in self.workers and self.workers[one[0]].contended)]
        if len(quiet) < self._settings.quiet_readings:
            quiet = list(self._quiet)
        values = np.array([one[1:] for one in quiet])
        middle = np.median(values, axis=0)
        deviation = _DEVIATION * np.median(np.abs(values - middle), axis=0)
        resolution = _RESOLUTION_MS * middle / max(middle[0], _RESOLUTION_MS)
        end = middle + np.maximum(_SPREAD * deviation * math.sqrt(1.0 + 1.0 / len(values)),
                                  resolution)
        return float(end[0]), float(middle[1]), float(end[1])

    def _steer(self, seen: Observation) -> None:
        """Change shares by a bounded step towards those of least tail latency (eq. 4.3)."""
        settings, number = self._settings, len(self.workers)
        if not number:
            return
        contended = any(worker.contended for worker in self.workers.values())
        target = np.full(number, 1.0 / number)
        if contended:
            rate = sum(seen.arrivals.get(name, 0) for name in self.workers) / seen.seconds
            if not rate:
                return
            throughputs = settings.peak_rate * np.array([
                1.0 - (worker.background_load if worker.contended else 0.0)
                for worker in self.workers.values()])
            try:
                best = load_balancing.optimal_shares(throughputs, rate)
            except load_balancing.Overloaded:
                # The limit of eq. 4.3 as the rate approaches all throughput.
                best = throughputs / throughputs.sum()
            target = settings.trickle + (1.0 - number * settings.trickle) * best
        shares = np.array([self.shares[name] for name in self.workers])
        change = target - shares
        most = np.abs(change).max()
        if most > (_DEADBAND / number if contended else 0.0):
            shares = target if most <= settings.step else shares + change * settings.step / most
            self.shares = dict(zip(self.workers, shares.tolist()))


def _equal(workers: Mapping[str, object]) -> dict[str, float]:
    return {name: 1.0 / len(workers) for name in workers}


def weights(shares: Mapping[str, float], configured: Mapping[str, int]) -> dict[str, int]:
    """Return the weights of HAProxy for shares.

    :param shares: of each worker
    :param configured: weight of each worker in HAProxy's configuration
    :returns: the configured weight (the greatest) for all where shares are equal, so that all is
        as if there were no DIAL; otherwise 256 for the greatest share, and 1 at least
    """
    most = max(shares.values(), default=0.0)
    if most - min(shares.values(), default=0.0) < 1e-9:
        return dict.fromkeys(shares, max((configured[name] for name in shares), default=1))
    return {name: max(1, round(_HIGHEST_WEIGHT * share / most)) for name, share in shares.items()}
