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

"""How wrong predictions are, and what of that is the noise of the measurements."""

from __future__ import annotations

import dataclasses
from typing import Iterable

import numpy as np

from tracon_lab.models import points as measured
from tracon_watcher.characteristics import FloatArray


@dataclasses.dataclass(frozen=True)
class Errors:
    """Mean and standard deviation of |predicted − actual| / actual (TRACON, §4.3)."""

    mean: float
    deviation: float
    points: int

    @classmethod
    def of(cls, predicted: FloatArray, actual: FloatArray) -> Errors:
        """Compare (n,) responses; NaN everywhere for no points."""
        relative = np.abs(predicted - actual) / actual
        if not len(relative):
            return cls(float('nan'), float('nan'), 0)
        return cls(float(relative.mean()), float(relative.std()), len(relative))


def noise(points: measured.Points, response: str) -> FloatArray:
    """Return the relative error, (n,), that even a perfect prediction of repeated points has.

    A perfect prediction is the mean of the same target beside the same background. The mean of m
    repetitions contains a share of each one's own noise, for which √(m/(m−1)) makes up. The
    result belongs to the points in their order; NaN where nothing was repeated.
    """
    values = points.response(response)
    floor = np.full(len(points), np.nan)
    pair = np.char.add(np.char.add(points.target, '\n'), points.background)
    for name in np.unique(pair[points.kind == 'repeat']):
        same = np.flatnonzero((pair == name) & np.isfinite(values))
        count = len(same)
        if count > 1:
            spread = np.abs(values[same] - values[same].mean()) / values[same]
            floor[same] = spread * np.sqrt(count / (count - 1))
    return floor


def noise_floor(points: measured.Points, response: str,
                targets: Iterable[str] | None = None) -> float:
    """Return the mean error that a perfect prediction has; each program counts as much as another.

    Some are repeated more often than others, which must not make them the rule.

    :param targets: the programs, of which those count that were repeated; all when none was
    :returns: NaN where nothing was repeated
    """
    values = noise(points, response)
    of_each = {str(name): float(values[(points.target == name) & np.isfinite(values)].mean())
               for name in np.unique(points.target[np.isfinite(values)])}
    chosen = [of_each[name] for name in targets or () if name in of_each] or [*of_each.values()]
    return float(np.mean(chosen)) if chosen else float('nan')
