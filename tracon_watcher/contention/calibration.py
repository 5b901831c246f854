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

"""How much a VM is slowed down, as far as that is seen without looking inside.

Production knows no running times. What it has is how long a VM's virtual CPUs waited to run and
how long its requests took, now and while the VM was alone; each is a *signal*, a ratio that is 1
for a VM that nobody disturbs. None of them is the slowdown: a calibration on measured points,
where the slowdown is known, turns a signal into an estimate of it, and says how wrong that is.
"""

from __future__ import annotations

import dataclasses
from typing import Callable
from typing import Mapping

import numpy as np
from scipy import stats
from sklearn import isotonic

from tracon_watcher.characteristics import FloatArray
from tracon_watcher import errors

#: Fewest points that a calibration is made from.
LEAST_POINTS = 20
# A running share below this says nothing of how CPU time stretches.
_LEAST_SHARE = 0.01


@dataclasses.dataclass(frozen=True)
class Counters:
    """What is counted of n VMs over a window each, per second; NaN where it is not.

    :param running: (n,) seconds that virtual CPUs ran
    :param delay: (n,) seconds that they were ready and waited for a core
    :param reads: (n,) requests, and ``writes``
    :param read_latency: (n,) seconds a request, and ``write_latency``; NaN without requests
    :param instructions: (n,) and ``cycles``, where the host counts them
    :param switches: (n,) context switches
    """

    running: FloatArray
    delay: FloatArray
    reads: FloatArray
    writes: FloatArray
    read_latency: FloatArray
    write_latency: FloatArray
    instructions: FloatArray
    cycles: FloatArray
    switches: FloatArray

    def waiting(self) -> FloatArray:
        """Return the seconds in a second that requests were under way, one after the other, (n,).

        NaN where a rate is unknown, or the latency of requests that there were.
        """
        total: FloatArray = (
            np.where(self.reads == 0, 0.0, self.reads * self.read_latency)
            + np.where(self.writes == 0, 0.0, self.writes * self.write_latency))
        return total


def cpu_stretch(now: Counters, alone: Counters) -> FloatArray:
    """Return by how much CPU time stretches: (running + waiting) / running, against alone."""
    return _stretch(now) / _stretch(alone)


def _stretch(seen: Counters) -> FloatArray:
    running = np.where(seen.running >= _LEAST_SHARE, seen.running, np.nan)
    stretch: FloatArray = (running + seen.delay) / running
    return stretch


def io_stretch(now: Counters, alone: Counters) -> FloatArray:
    """Return by how much requests take longer; reads and writes weigh as the VM alone has them.

    A VM without requests, now or alone, has none to stretch: NaN.
    """
    parts, weights = [], []
    for rate, was, latency, before in (
            (now.reads, alone.reads, now.read_latency, alone.read_latency),
            (now.writes, alone.writes, now.write_latency, alone.write_latency)):
        weight = np.nan_to_num(was * before) * (rate > 0)
        parts.append(np.where(weight > 0, weight * latency / before, 0.0))
        weights.append(weight)
    total = sum(weights)
    with np.errstate(invalid='ignore', divide='ignore'):
        stretch: FloatArray = np.where(total > 0, sum(parts) / total, np.nan)
    return stretch


def time_stretch(now: Counters, alone: Counters) -> FloatArray:
    """Return how the time of a unit of work stretches, of which CPU and requests each have a part.

    The parts are those the VM has alone, requests as far as they do not overlap with running.
    """
    cpu = alone.running + alone.delay
    requests = np.minimum(alone.waiting(), np.maximum(1 - cpu, 0))
    io = np.where(np.isfinite(io_stretch(now, alone)), io_stretch(now, alone), 1.0)
    stretched: FloatArray = (cpu * cpu_stretch(now, alone) + requests * io) / (cpu + requests)
    return stretched


def instruction_stretch(now: Counters, alone: Counters) -> FloatArray:
    """Return cycles per instruction against alone; NaN where the host does not count them."""
    stretch: FloatArray = (now.cycles / now.instructions) / (alone.cycles / alone.instructions)
    return stretch


def switch_ratio(now: Counters, alone: Counters) -> FloatArray:
    """Return context switches per second of running against alone."""
    ratio: FloatArray = (now.switches / now.running) / (alone.switches / alone.running)
    return ratio


#: Signals by name.
SIGNALS: Mapping[str, Callable[[Counters, Counters], FloatArray]] = {
    'vCPU delay': cpu_stretch, 'block latency': io_stretch, 'both': time_stretch,
    'cycles per instruction': instruction_stretch, 'context switches': switch_ratio}


@dataclasses.dataclass(frozen=True)
class Calibration:
    """A monotone curve from a signal to the slowdown.

    :param signal: (k,) rising
    :param slowdown: (k,) rising, at least 1
    :param error: mean |estimated − actual| / actual for programs that it was not made from
    """

    signal: FloatArray
    slowdown: FloatArray
    error: float

    def estimate(self, signal: FloatArray) -> FloatArray:
        """Return the slowdown, (n,); beyond the curve's ends it is that of the ends."""
        known = np.isfinite(signal)
        estimated = np.full(len(signal), np.nan)
        estimated[known] = np.exp(np.interp(np.log(signal[known]), np.log(self.signal),
                                            np.log(self.slowdown)))
        return estimated


def calibrate(signal: FloatArray, slowdown: FloatArray,
              programs: FloatArray | None = None) -> Calibration:
    """Return the calibration of a signal.

    :param slowdown: (n,) as measured inside
    :param programs: (n,) names; for the error each is left out in turn. Without two of them it is
        NaN
    :raises tracon_watcher.errors.NotEnoughData: for fewer than :data:`LEAST_POINTS` points
    """
    known = np.isfinite(signal) & np.isfinite(slowdown) & (signal > 0)
    if known.sum() < LEAST_POINTS:
        raise errors.NotEnoughData('a calibration', int(known.sum()), LEAST_POINTS)
    error = float('nan')
    if programs is not None:
        wrong = _left_out(signal[known], slowdown[known], programs[known])
        if np.isfinite(wrong).any():
            error = float(np.nanmean(wrong))
    return dataclasses.replace(_curve(signal[known], slowdown[known]), error=error)


def _curve(signal: FloatArray, slowdown: FloatArray) -> Calibration:
    fitted = isotonic.IsotonicRegression().fit(np.log(signal), np.log(slowdown))
    # A VM may seem a little faster than alone; it is not slowed down less than not at all.
    return Calibration(np.exp(fitted.X_thresholds_),
                       np.maximum(np.exp(fitted.y_thresholds_), 1.0), float('nan'))


def _left_out(signal: FloatArray, slowdown: FloatArray, programs: FloatArray) -> FloatArray:
    """Return relative errors, (n,), each estimated from the other programs' points."""
    wrong = np.full(len(signal), np.nan)
    for name in np.unique(programs):
        own = programs == name
        if (~own).any():
            estimated = _curve(signal[~own], slowdown[~own]).estimate(signal[own])
            wrong[own] = np.abs(estimated - slowdown[own]) / slowdown[own]
    return wrong


@dataclasses.dataclass(frozen=True)
class Tracking:
    """How well a signal follows the slowdown.

    :param correlation: of their logarithms
    :param rank_correlation: Spearman's
    :param raw_error: mean relative error of taking the signal for the slowdown as it is
    :param calibrated_error: likewise, calibrated on other programs
    """

    signal: str
    points: int
    correlation: float
    rank_correlation: float
    raw_error: float
    calibrated_error: float


def tracking(now: Counters, alone: Counters, slowdown: FloatArray,
             programs: FloatArray) -> list[Tracking]:
    """Return a row for each signal; one that this host does not count has no points."""
    rows = []
    for name, function in SIGNALS.items():
        with np.errstate(invalid='ignore', divide='ignore'):
            signal = function(now, alone)
        known = np.isfinite(signal) & np.isfinite(slowdown) & (signal > 0)
        if known.sum() < LEAST_POINTS or np.ptp(signal[known]) == 0:
            rows.append(Tracking(name, 0, *[float('nan')] * 4))
            continue
        seen, true = signal[known], slowdown[known]
        rows.append(Tracking(
            name, int(known.sum()), float(np.corrcoef(np.log(seen), np.log(true))[0, 1]),
            float(stats.spearmanr(seen, true).statistic),
            float(np.mean(np.abs(seen - true) / true)),
            calibrate(seen, true, programs[known]).error))
    return rows
