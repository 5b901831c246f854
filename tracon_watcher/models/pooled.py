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

"""A model with kinks that never falls when a background grows, to compare with.

An empty background gives exactly 1; that the exponent never falls inside the hull comes from
:mod:`.basis`. It takes the sum of all neighbours' characteristics for the background. Production
uses the pairwise model (:mod:`.pairwise`): a neighbour that writes more leaves the CPU to others,
so that what was measured does fall, and several neighbours are not the sum of their
characteristics.
"""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np
from sklearn.base import BaseEstimator

from tracon_watcher.characteristics import COUNT
from tracon_watcher.characteristics import CPU
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IO
from tracon_watcher import errors
from tracon_watcher.models import basis
from tracon_watcher.models import nonnegative
from tracon_watcher.models import points as measured
from tracon_watcher import tie_breaking

#: Ridges that are tried; they are large, since programs never measured are what is predicted.
ALPHAS = (0.003, 0.03, 0.1, 0.3)
#: Most kinks that a model has.
MOST_KINKS = 12
# Shares of the capacity by which targets, and backgrounds, are told apart for the ceiling.
_GRAIN = 0.2
# What a kink adds to exponents below this is rounding.
_UNIMPORTANT = 1e-9


class PooledRegressor(BaseEstimator):  # type: ignore[misc]
    """Exponent of a response over eight columns: the target's four, then the background's.

    :param capacity: (4,) what the host type can do; characteristics are divided by it
    :param alphas: ridges that cross-validation chooses from
    :param most_kinks: how many kinks the model may keep

    After ``fit``: ``box_`` (the hull over capacity), ``kinks_``, ``raw_`` (their coefficients,
    see :mod:`.basis`) and ``alpha_``.
    """

    def __init__(self, capacity: FloatArray, alphas: Sequence[float] = ALPHAS,
                 most_kinks: int = MOST_KINKS) -> None:
        self.capacity = capacity
        self.alphas = alphas
        self.most_kinks = most_kinks

    def fit(self, X: FloatArray, y: FloatArray, groups: Any = None) -> PooledRegressor:
        """Fit to X (n, 8) and exponents (n,).

        :param groups: (n,) folds for the choice of the ridge
        :raises tracon_watcher.errors.NotEnoughData: for fewer than :data:`LEAST_POINTS` points
        """
        if len(X) < measured.LEAST_POINTS:
            raise errors.NotEnoughData('a pooled model', len(X), measured.LEAST_POINTS)
        target, background = X[:, :COUNT] / self.capacity, X[:, COUNT:] / self.capacity
        self.box_ = basis.Box(target.min(axis=0), target.max(axis=0), background.max(axis=0))
        kinks = candidates(self.capacity)
        corners = crossed(target, background)
        alphas = self.alphas
        while True:
            expand = basis.atoms(self.box_, kinks)
            solver = nonnegative.NonNegativeRidge(alphas)
            solver.fit(basis.raw_columns(target, background, kinks) @ expand, y, groups,
                       basis.raw_columns(*corners, kinks) @ expand, float(np.max(y)))
            raw = expand @ solver.coef_
            importance = _importance(raw, target, background, kinks)
            if np.count_nonzero(importance > _UNIMPORTANT) <= self.most_kinks:
                break
            # The ridge is chosen once, with all kinks; then the least important ones go.
            alphas = (solver.alpha_,)
            first = tie_breaking.argsort(-importance)[:self.most_kinks]
            kinks = kinks.take(np.sort(first))
        self.kinks_, self.raw_ = kinks, raw
        self.alpha_ = solver.alpha_
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """Return exponents (n,) for X (n, 8), clamped to the hull."""
        target = np.clip(X[:, :COUNT] / self.capacity, self.box_.low, self.box_.high)
        background = np.minimum(X[:, COUNT:] / self.capacity, self.box_.top)
        exponent: FloatArray = basis.raw_columns(target, background, self.kinks_) @ self.raw_
        return np.maximum(exponent, 0.0)


def candidates(capacity: FloatArray) -> basis.Kinks:
    """Return the hinges that may enter, for characteristics divided by ``capacity`` (4,).

    A hinge watches the demand on a core (guest and host CPU, in shares of the larger of the two
    capacities) or on a device (reads and writes, each as a share of what the device does of
    them), of target and background together or of the background alone; or one characteristic
    of the background.
    """
    core, device, nothing = np.zeros(COUNT), np.zeros(COUNT), np.zeros(COUNT)
    core[CPU] = capacity[CPU] / capacity[CPU].max()
    device[IO] = 1.0
    places = [(core, core, (0.5, 0.75, 1.0, 1.25, 1.5)), (nothing, core, (0.2, 0.4, 0.6, 0.8)),
              (device, device, (0.25, 0.5, 0.75, 1.0))]
    places += [(nothing, one, (0.05, 0.15, 0.3, 0.6)) for one in np.eye(COUNT)]
    found = [(target, background, share)
             for target, background, shares in places for share in shares]
    return basis.Kinks(*(np.array(part) for part in zip(*found)))


def crossed(target: FloatArray, background: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return each sort of target beside each sort of background, as (m, 4) and (m, 4).

    Most of these were never measured, though they lie inside the hull, which is a box: two
    programs that are both far heavier than the workload generator, for instance. The exponent is
    kept from passing there what was measured anywhere.
    """
    sorts = [np.unique(np.round(values / _GRAIN), axis=0) * _GRAIN
             for values in (target, background)]
    sorts[0] = np.clip(sorts[0], target.min(axis=0), target.max(axis=0))
    sorts[1] = np.minimum(sorts[1], background.max(axis=0))
    first, second = np.indices((len(sorts[0]), len(sorts[1]))).reshape(2, -1)
    return sorts[0][first], sorts[1][second]


def _importance(raw: FloatArray, target: FloatArray, background: FloatArray,
                kinks: basis.Kinks) -> FloatArray:
    """Return the root mean square of what each kink adds to the exponents, (k,)."""
    per_hinge = 1 + COUNT
    count = len(kinks) * per_hinge
    weights = raw[len(raw) - count:]
    columns = basis.raw_columns(target, background, kinks)[:, len(raw) - count:] * weights
    parts = columns.reshape(len(target), len(kinks), per_hinge).sum(axis=2)
    importance: FloatArray = np.sqrt(np.mean(parts ** 2, axis=0))
    return importance
