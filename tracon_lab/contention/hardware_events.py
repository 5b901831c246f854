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

"""Running time as a linear function of hardware events (Lim et al.).

The time of a unit of work is regressed on what the host counts meanwhile: loads and misses of the
last-level cache and migrations between cores. A host without counters still has events that its
kernel counts; what cannot be had is named, not replaced by zero.
"""

from __future__ import annotations

import dataclasses
from typing import Mapping

import numpy as np
import scipy.stats

from tracon_watcher.characteristics import BoolArray, FloatArray
from tracon_watcher import errors

FITTED, NOT_AVAILABLE, CONSTANT = 'fitted', 'not available', 'constant'


@dataclasses.dataclass(frozen=True)
class Slope:
    """One event's share in the running time.

    :param status: fitted; not available: the host does not count it; constant: it never varied
    :param seconds: per event; NaN unless fitted
    :param deviation: its standard error
    :param p_value: of the slope being zero
    """

    event: str
    status: str
    seconds: float = float('nan')
    deviation: float = float('nan')
    p_value: float = float('nan')


@dataclasses.dataclass(frozen=True)
class EventRegression:
    """Time of a unit = intercept + Σ seconds × events (Lim et al., Fig. 5 and 6).

    :param intercept: seconds
    :param r_squared: share of the variance that is explained
    """

    points: int
    intercept: float
    slopes: tuple[Slope, ...]
    r_squared: float

    def predict(self, events: Mapping[str, FloatArray]) -> FloatArray:
        """Return seconds per unit, (n,), from events per unit, each (n,)."""
        total = np.full(len(next(iter(events.values()))), self.intercept)
        for slope in self.slopes:
            if slope.status == FITTED:
                total = total + slope.seconds * events[slope.event]
        return total


def fit(seconds: FloatArray, events: Mapping[str, FloatArray]) -> EventRegression:
    """Fit by ordinary least squares.

    :param seconds: (n,) running time of a unit of work
    :param events: by name, each (n,), counted per unit; NaN where the host does not count it
    :raises tracon_watcher.errors.NotEnoughData: for fewer points than terms and two more
    """
    status, known = _chosen(seconds, events)
    used = [name for name, found in status.items() if found == FITTED]
    needed = len(used) + 3
    if known.sum() < needed:
        raise errors.NotEnoughData('a regression on hardware events', int(known.sum()), needed)
    y = seconds[known]
    # Events are counted in very different numbers; scaling keeps the solution exact.
    scale = np.array([np.abs(events[name][known]).max() for name in used])
    X = np.column_stack([np.ones(len(y)), *(events[name][known] / one
                                            for name, one in zip(used, scale))])
    solution, _, rank, _ = np.linalg.lstsq(X, y, rcond=None)
    residual = y - X @ solution
    freedom = len(y) - rank
    variance = float(residual @ residual) / freedom
    deviation = np.sqrt(np.diag(variance * np.linalg.pinv(X.T @ X)))
    slopes = []
    for name, found in status.items():
        if found != FITTED:
            slopes.append(Slope(name, found))
            continue
        place = 1 + used.index(name)
        t = solution[place] / deviation[place] if deviation[place] > 0 else np.inf
        slopes.append(Slope(name, FITTED, float(solution[place] / scale[place - 1]),
                            float(deviation[place] / scale[place - 1]),
                            float(2 * scipy.stats.t.sf(abs(t), freedom))))
    spread = float(((y - y.mean()) ** 2).sum())
    explained = 1 - float(residual @ residual) / spread if spread > 0 else float('nan')
    return EventRegression(len(y), float(solution[0]), tuple(slopes), explained)


def _chosen(seconds: FloatArray, events: Mapping[str, FloatArray],
            ) -> tuple[dict[str, str], BoolArray]:
    """Return each event's status, and the points, (n,), at which all that are fitted are known."""
    status = {name: FITTED if np.isfinite(counted[np.isfinite(seconds)]).any() else NOT_AVAILABLE
              for name, counted in events.items()}
    while True:
        used = [name for name, found in status.items() if found == FITTED]
        known = np.isfinite(seconds)
        for name in used:
            known &= np.isfinite(events[name])
        constant = [name for name in used if not known.any() or np.ptp(events[name][known]) == 0]
        if not constant:
            return status, known
        # Without these, more points may be left, and others vary again: one at a time.
        status[constant[0]] = CONSTANT
