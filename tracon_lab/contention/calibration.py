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
for a VM that no other disturbs. None of them is the slowdown: a calibration on measured points,
where the slowdown is known, turns a signal into an estimate of it, and says how wrong that is.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import stats
from sklearn import isotonic

from tracon_lab.contention import signals
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.contention import calibration
from tracon_watcher import errors

# Where production evaluates them they are wanted without scikit-learn.
Calibration = calibration.Calibration
Counters = signals.Counters
SIGNALS = signals.SIGNALS
cpu_stretch = signals.cpu_stretch
io_stretch = signals.io_stretch
time_stretch = signals.time_stretch

#: Fewest points that a calibration is made from.
LEAST_POINTS = 20


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
