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

"""A model brought up to date after the world changed, from few new points.

TRACON refits every 160 new points, when they have replaced old ones (§4.6). Here an alarm says
when the old points are no more to be believed; from then on there are four candidates: the old
model; the old model with its exponents times a factor, for which a handful of points is enough;
that one with a correction, which a ridge keeps small until points speak for it; and a model of
the new points alone. The one that predicts new points left out in turn best is taken.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Callable

import numpy as np
import sklearn.base

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray
from tracon_watcher import errors
from tracon_watcher.models import pairwise
from tracon_watcher.models import points as measured
from tracon_watcher.prediction import pairwise as stored
from tracon_watcher import tie_breaking

#: Fewest new points that anything is learnt from.
LEAST_POINTS = 5
KEPT, RESCALED, CORRECTED, REFITTED = 'kept', 'rescaled', 'corrected', 'refitted'
_FACTORS = (0.05, 20.0)
_FOLDS = 5

Way = Callable[[FloatArray, FloatArray], pairwise.PairwiseRegressor]


@dataclasses.dataclass(frozen=True)
class Adapted:
    """The model to use from now on.

    :param how: kept, rescaled, corrected or refitted
    :param errors: of each candidate, the root mean square of new exponents left out in turn
    """

    model: pairwise.PairwiseRegressor
    how: str
    errors: dict[str, float]


def adapt(old: pairwise.PairwiseRegressor, X: FloatArray, y: FloatArray,
          groups: IntArray | None = None) -> Adapted:
    """Return the model that suits new points best.

    :param old: fitted; it stays as it is
    :param X: (n, 8) new points' columns
    :param y: (n,) their exponents
    :param groups: (n,) folds; by default points are dealt out in turn
    :raises tracon_watcher.errors.NotEnoughData: for fewer than :data:`LEAST_POINTS`
    """
    if len(X) < LEAST_POINTS:
        raise errors.NotEnoughData('an adapted model', len(X), LEAST_POINTS)
    fold = np.arange(len(y)) % _FOLDS if groups is None else groups
    # A fold less must suffice as well.
    ways = candidates(old, len(X) * (_FOLDS - 1) // _FOLDS)
    found = {name: _left_out(way, X, y, fold) for name, way in ways.items()}
    # Of equals the one that changes least: they come in that order.
    how = list(found)[tie_breaking.argmin(list(found.values()), tie_breaking.FITTED)]
    return Adapted(ways[how](X, y), how, found)


def candidates(old: pairwise.PairwiseRegressor, count: int) -> dict[str, Way]:
    """Return, by name, what makes a model out of new points' columns and exponents.

    Those that change the old model less come first.

    :param count: new points that each is sure to be given
    """
    ways: dict[str, Way] = {KEPT: lambda _X, _y: old, RESCALED: lambda X, y: rescaled(old, X, y)}
    if count >= measured.LEAST_POINTS:
        ways[CORRECTED] = lambda X, y: corrected(old, X, y)
        ways[REFITTED] = lambda X, y: _like(old).fit(X, y)
    return ways


def rescaled(old: pairwise.PairwiseRegressor, X: FloatArray,
             y: FloatArray) -> pairwise.PairwiseRegressor:
    """Return the old model with its exponents times the factor that suits the points best."""
    new = copy.copy(old)
    factor = _factor(old.predict(X), y)
    new.coefficients_ = old.coefficients_ * factor
    new.ceiling_ = min(max(old.ceiling_ * factor, float(np.max(y))), stored.MOST_CEILING)
    return new


def corrected(old: pairwise.PairwiseRegressor, X: FloatArray,
              y: FloatArray) -> pairwise.PairwiseRegressor:
    """Return the rescaled model plus what a ridge finds in what it leaves unexplained."""
    new = rescaled(old, X, y)
    rest = _like(old).set_params(signed=True).fit(X, y - new.predict(X))
    new.coefficients_ = new.coefficients_ + rest.coefficients_
    new.low_, new.high_ = np.minimum(old.low_, rest.low_), np.maximum(old.high_, rest.high_)
    new.top_ = np.maximum(old.top_, rest.top_)
    return new


def _factor(before: FloatArray, y: FloatArray) -> float:
    square = float(before @ before)
    return float(np.clip(before @ y / square, *_FACTORS)) if square > 0 else 1.0


def _like(old: pairwise.PairwiseRegressor) -> pairwise.PairwiseRegressor:
    """Return an unfitted model with the same shares and terms, whose ridge is open.

    Coefficients can be added up only where they belong to the same shares, and so few points
    would choose by chance.
    """
    new: pairwise.PairwiseRegressor = sklearn.base.clone(old).set_params(
        compressions=(tuple(old.compression_),), stiffnesses=(old.stiffness_,))
    return new


def _left_out(way: Way, X: FloatArray, y: FloatArray, fold: IntArray) -> float:
    """Return the root mean square error of points left out in turn."""
    wrong = np.zeros(len(y))
    for name in np.unique(fold):
        out = fold == name
        wrong[out] = y[out] - way(X[~out], y[~out]).predict(X[out])
    return float(np.sqrt(np.mean(wrong ** 2)))
