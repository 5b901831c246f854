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

"""The queueing law: two programs that queue for one core and one disk, with seven constants.

Alone, a unit of a program's work takes the time 1. In it the program uses a core for u, guest and
host CPU together, and makes n = (reads, writes). Beside a neighbour v the target t takes 1 + E:

    E = (γ u_t + δ·n_t) o_v + (σ·n_t) q_v
    o_v = (1 − u_t) u_v + u_t u_v / (1 + δ·n_v)
    q_v = τ·n_v / (1 + τ·n_v)

o_v is the share of the time in which v holds the core, q_v that in which a request of v is at the
disk: utilisations that a customer meets who arrives (the arrival theorem; Reiser & Lavenberg,
J. ACM 27(2), 1980). A program that returns from a request waits δ for a core which another one
holds, and σ for a disk that serves the other's. So one that makes many requests and waits for
each gets less than half of a core, and leaves the rest to its neighbour: u_v / (1 + δ·n_v).

With γ = 1 two programs that only compute take twice as long on one core; what displaced caches
cost makes γ larger, and with a core for each it is 0. The IOPS ratio of a closed loop, which
begins its next unit at once, is 1 / (1 + E).
"""

from __future__ import annotations

import numpy as np
import scipy.optimize
from sklearn.base import BaseEstimator

from tracon_watcher.characteristics import BoolArray
from tracon_watcher.characteristics import COUNT
from tracon_watcher.characteristics import CPU
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IO
from tracon_watcher import errors
from tracon_watcher.models import points as measured

#: Weight of points that only help to fit: those with the generator, whose units come by the clock,
#: as the target.
HELPING = 0.3
# γ, then δ, τ and σ of reads and of writes, in milliseconds: what is expected before anything is
# measured, and where the search ends. To be wrong by a decade counts as much as one point that is
# wrong by the noise, so that data that say nothing of a constant leave it where it is.
_START = np.array([1.2, 0.5, 2.0, 1.0, 1.0, 1.0, 1.0])
_LEAST = np.array([1e-3, 1e-4, 1e-4, 1e-3, 1e-3, 1e-4, 1e-4])
_MOST = np.array([3.0, 50.0, 50.0, 100.0, 100.0, 100.0, 100.0])
# Residual, in exponents, from which on it counts as it is and not squared: about the noise.
_OUTLIER = 0.1
_EVALUATIONS = 60
_MILLI = 1e-3


class QueueingRegressor(BaseEstimator):  # type: ignore[misc]
    """Exponent of the slowdown over eight columns: the target's four, then its neighbour's.

    After ``fit``: ``stretch_`` (γ), ``core_wait_`` (δ), ``disk_time_`` (τ) and ``disk_wait_`` (σ),
    (2,) each, of reads and of writes, seconds; and ``ceiling_``, the largest exponent that was
    measured, which no prediction exceeds.
    """

    def fit(self, X: FloatArray, y: FloatArray,
            helping: BoolArray | None = None) -> QueueingRegressor:
        """Fit the seven constants by robust least squares of exponents.

        :param X: (n, 8)
        :param y: (n,) log slowdown
        :param helping: (n,) points that weigh :data:`HELPING`. By default none
        :raises tracon_watcher.errors.NotEnoughData: for fewer than
            :data:`~tracon_watcher.models.points.LEAST_POINTS` points
        """
        if len(X) < measured.LEAST_POINTS:
            raise errors.NotEnoughData('a queueing law', len(X), measured.LEAST_POINTS)
        weight = np.ones(len(y)) if helping is None else np.where(helping, HELPING, 1.0)

        def residual(logarithms: FloatArray) -> FloatArray:
            wrong = np.sqrt(weight) * (np.log1p(_increase(X, np.exp(logarithms))) - y)
            unexpected = (logarithms - np.log(_START)) / np.log(10.0)
            return np.concatenate([wrong, _OUTLIER * unexpected])
        self._set(np.exp(scipy.optimize.least_squares(
            residual, np.log(_START), bounds=(np.log(_LEAST), np.log(_MOST)), loss='soft_l1',
            f_scale=_OUTLIER, max_nfev=_EVALUATIONS).x))
        self.ceiling_ = max(float(np.max(y)), 0.0)
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """Return log slowdown, (n,), of (n, 8)."""
        constants = np.concatenate([[self.stretch_], *(one / _MILLI for one in (
            self.core_wait_, self.disk_time_, self.disk_wait_))])
        found: FloatArray = np.minimum(np.log1p(_increase(X, constants)), self.ceiling_)
        return found

    def _set(self, constants: FloatArray) -> None:
        self.stretch_ = float(constants[0])
        self.core_wait_, self.disk_time_, self.disk_wait_ = (
            constants[1:].reshape(3, 2) * _MILLI)


def _increase(columns: FloatArray, constants: FloatArray) -> FloatArray:
    """Return E, (n,), of (n, 8).

    :param constants: (7,) γ, and milliseconds
    """
    target, neighbour = columns[:, :COUNT], columns[:, COUNT:]
    stretch, (core_wait, disk_time, disk_wait) = constants[0], (
        constants[1:].reshape(3, 2) * _MILLI)
    # Both programs are threads of one core: no share is above 1 but by errors of measurement.
    used, held = (np.clip(one[:, CPU].sum(axis=1), 0.0, 1.0) for one in (target, neighbour))
    core = (1 - used) * held + used * held / (1 + neighbour[:, IO] @ core_wait)
    work = neighbour[:, IO] @ disk_time
    found: FloatArray = ((stretch * used + target[:, IO] @ core_wait) * core
                         + (target[:, IO] @ disk_wait) * work / (1 + work))
    return found
