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

"""A reading: mean, interval and percentiles of the times of one phase.

The interval of a mean comes from the means of successive batches, since the times of neighbouring
requests are alike: contention comes and goes more slowly than requests do.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Sequence

from hdrh import histogram
import numpy as np
from scipy import stats

from tracon_watcher.characteristics import FloatArray
from tracon_watcher import errors
from tracon_watcher.probe import phases

#: Of all intervals.
CONFIDENCE = 0.95
#: In tables.
PERCENTILES = (50.0, 90.0, 99.0, 100.0)
_BATCHES = 10
# Microseconds: an hour is more than any request may take.
_LONGEST, _DIGITS = 3_600_000_000, 3


class NoReading(errors.TraconError):
    """A phase that tells nothing, and why.

    :param reason: unreachable, late, overloaded, or what is wrong with answers
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


@dataclasses.dataclass(frozen=True)
class Reading:
    """What one phase of one sensor took.

    :param phase: its name
    :param at: seconds since the epoch, by the generator's clock, when the phase ended
    :param mean: seconds; R of the connection phase, E of the memory phase
    :param half: half of the interval's width in seconds; NaN of a single value
    :param percentiles: seconds, of :data:`PERCENTILES`
    :param answers: that count
    :param lost: requests that failed
    :param lag: seconds by which the generator started its requests too late, on average
    """

    phase: str
    setting: phases.Setting
    at: float
    mean: float
    half: float
    percentiles: tuple[float, ...]
    answers: int
    lost: int = 0
    lag: float = 0.0


def interval(values: Sequence[float] | FloatArray) -> tuple[float, float]:
    """Return mean and half width of Student's interval of independent values."""
    found = np.asarray(values, dtype=np.float64)
    count = len(found)
    if count < 2:
        return float(found.mean()) if count else math.nan, math.nan
    quantile = float(stats.t.ppf(0.5 + CONFIDENCE / 2, count - 1))
    return float(found.mean()), quantile * float(found.std(ddof=1)) / math.sqrt(count)


def summarise(phase: phases.Phase, setting: phases.Setting, at: float, times: FloatArray,
              lost: int = 0, lag: float = 0.0) -> Reading:
    """Return the reading of times in the order of their requests.

    :param times: (n,) seconds, NaN of those that failed
    """
    known = times[np.isfinite(times)]
    batches = [float(one.mean()) for one in np.array_split(known, min(_BATCHES, len(known)))]
    counts = histogram.HdrHistogram(1, _LONGEST, _DIGITS)
    for one in known:
        counts.record_value(min(max(round(one * 1e6), 1), _LONGEST))
    return Reading(phase.name, setting, at, float(known.mean()), interval(batches)[1],
                   tuple(counts.get_value_at_percentile(one) * 1e-6 for one in PERCENTILES),
                   len(known), lost, lag)
