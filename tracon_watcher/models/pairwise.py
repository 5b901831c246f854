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

"""Fits the pairwise model: what one neighbour does to one program.

The form, and how several neighbours add up, is that of :mod:`tracon_watcher.prediction.pairwise`.
Coefficients are those of a ridge regression on the exponents, so what is minimised is, to first
order, the relative error of the response.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np
from sklearn.base import BaseEstimator

from tracon_watcher.characteristics import BoolArray
from tracon_watcher.characteristics import COUNT
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray
from tracon_watcher import errors
from tracon_watcher.models import points as measured
from tracon_watcher.prediction import hull as hulls
from tracon_watcher.prediction import interval as intervals
from tracon_watcher.prediction import pairwise
from tracon_watcher import tie_breaking

#: Ridges that are tried, and how many times stronger they are for terms of the third degree.
ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1)
STIFFNESSES = (1.0, 10.0, 100.0, 1000.0)
#: Compressions of the four characteristics that are tried: of none, of the two rates of requests,
#: and of the host's work for them as well.
COMPRESSIONS = ((0.0, 0.0, 0.0, 0.0), (100.0, 100.0, 0.0, 0.0), (100.0, 100.0, 0.0, 10.0))
#: Weights that are tried of points that only help to fit.
WEIGHTS = (1.0, 0.3, 0.1, 0.03)
# Share of the error with the first weight below which another one is taken: less is chance.
_CONVINCING = 0.98
_FOLDS = 5


class PairwiseRegressor(BaseEstimator):  # type: ignore[misc]
    """Exponent of a response over eight columns: the target's four, then its neighbour's.

    :param capacity: (4,) what the host type can do; characteristics are divided by it
    :param alphas: ridges that cross-validation chooses from
    :param stiffnesses: factors of the ridge of terms of the third degree, likewise
    :param compressions: of characteristics, likewise
    :param degree: of the terms, 2 or 3
    :param signed: whether exponents may be negative, as those of a correction are, while the
        ridge is chosen
    :param weights: of points that only help to fit, likewise

    After ``fit``: ``coefficients_`` (see :mod:`tracon_watcher.prediction.pairwise`), ``low_``,
    ``high_`` and ``top_`` (the hull over capacity), ``ceiling_``, ``alpha_``,
    ``stiffness_``, ``compression_`` and ``weight_``.
    """

    def __init__(self, capacity: FloatArray, alphas: Sequence[float] = ALPHAS,
                 stiffnesses: Sequence[float] = STIFFNESSES,
                 compressions: Sequence[Sequence[float]] = COMPRESSIONS,
                 degree: int = 3, signed: bool = False,
                 weights: Sequence[float] = WEIGHTS) -> None:
        self.capacity = capacity
        self.alphas = alphas
        self.stiffnesses = stiffnesses
        self.compressions = compressions
        self.degree = degree
        self.signed = signed
        self.weights = weights

    def fit(self, X: FloatArray, y: FloatArray, groups: Any = None,
            helping: BoolArray | None = None) -> PairwiseRegressor:
        """Fit to X (n, 8) and exponents (n,).

        :param groups: (n,) folds for the choice of the ridge
        :param helping: (n,) points that only help to fit: they choose nothing, and weigh less
            where the others are predicted better so. By default none
        :raises tracon_watcher.errors.NotEnoughData: for fewer than
            :data:`~tracon_watcher.models.points.LEAST_POINTS` points
        """
        if len(X) < measured.LEAST_POINTS:
            raise errors.NotEnoughData('a pairwise model', len(X), measured.LEAST_POINTS)
        target, neighbour = X[:, :COUNT] / self.capacity, X[:, COUNT:] / self.capacity
        self.low_, self.high_ = target.min(axis=0), target.max(axis=0)
        self.top_ = neighbour.max(axis=0)
        self.ceiling_ = float(max(np.max(y), 0.0))
        fold: IntArray = np.asarray(np.arange(len(y)) % _FOLDS if groups is None else groups,
                                    dtype=np.intp)
        terms = pairwise.terms(self.degree)
        third = (~pairwise.terms(2))[terms]
        ridges = {(float(alpha), float(stiffness)): alpha * np.where(third, stiffness, 1.0)
                  for alpha in self.alphas
                  for stiffness in (self.stiffnesses if third.any() else (1.0,))}
        columns = {tuple(map(float, one)): self._columns(X, np.asarray(one))
                   for one in self.compressions}
        if helping is None:
            helping = np.zeros(len(y), dtype=bool)
        weighed = {float(one): np.where(helping, one, 1.0)
                   for one in (self.weights if helping.any() else (1.0,))}
        choices = [(one, weight, *ridge) for one in columns for weight in weighed
                   for ridge in ridges]
        chosen = choices[0]
        if len(choices) > 1 and len(np.unique(fold)) > 1:
            wrong = np.concatenate([
                _held_out(columns[one], y, fold, list(ridges.values()), self.signed, helping,
                          weights) for one in columns for weights in weighed.values()])
            alike = [choice[1] == choices[0][1] for choice in choices]
            # Of those that are equally wrong, the first.
            best, plain = (tie_breaking.argmin(values, tie_breaking.FITTED) for values in (
                wrong, np.where(alike, wrong, np.inf)))
            chosen = choices[best if wrong[best] < _CONVINCING * wrong[plain] else plain]
        self.compression_, self.weight_ = np.array(chosen[0]), chosen[1]
        self.alpha_, self.stiffness_ = chosen[2:]
        self.coefficients_ = np.zeros(pairwise.SHAPE)
        self.coefficients_[terms] = _solve(columns[chosen[0]], y, [ridges[chosen[2:]]],
                                           weighed[chosen[1]])[0]
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """Return exponents (n,) for X (n, 8), clamped to the hull."""
        target = np.clip(X[:, :COUNT], self.low_ * self.capacity, self.high_ * self.capacity)
        neighbour = np.minimum(X[:, COUNT:], self.top_ * self.capacity)
        exponent: FloatArray = (
            (pairwise.target_features(self._shares(target, self.compression_))
             @ self.coefficients_)
            * pairwise.neighbour_features(self._shares(neighbour, self.compression_))).sum(axis=1)
        return np.clip(exponent, 0.0, self.ceiling_)

    def identified(self, X: FloatArray) -> dict[str, int]:
        """Return how many terms there are, and how many the points X (n, 8) tell apart."""
        columns = self._columns(X, self.compression_)
        scale = np.linalg.norm(columns, axis=0)
        rank = np.linalg.matrix_rank(columns / np.where(scale > 0, scale, 1.0),
                                     tol=1e-8 * len(columns))
        return {'terms': columns.shape[1], 'rank': int(rank)}

    def to_model(self, response: str, host_type: str, interval: intervals.Interval,
                 training: Mapping[str, Any], held_out: Mapping[str, Any],
                 crowding: float = 0.0) -> pairwise.PairwiseModel:
        """Return the form that is stored and that production evaluates.

        :param crowding: κ of several neighbours; it takes points with several to tell
        """
        capacity = np.asarray(self.capacity)
        hull = hulls.Hull(self.low_ * capacity, self.high_ * capacity, self.top_ * capacity)
        return pairwise.PairwiseModel(
            response, host_type, capacity, self.compression_, self.coefficients_,
            self.ceiling_, crowding, hull, interval, training, held_out)

    def _columns(self, X: FloatArray, compression: FloatArray) -> FloatArray:
        products = (
            pairwise.target_features(self._shares(X[:, :COUNT], compression))[:, :, None]
            * pairwise.neighbour_features(self._shares(X[:, COUNT:], compression))[:, None, :])
        columns: FloatArray = products[:, pairwise.terms(self.degree)]
        return columns

    def _shares(self, values: FloatArray, compression: FloatArray) -> FloatArray:
        return pairwise.shares(values, np.asarray(self.capacity), compression)


def _solve(columns: FloatArray, y: FloatArray, ridges: Sequence[FloatArray],
           weights: FloatArray) -> list[FloatArray]:
    """Minimise Σ w (y − Xc)² / Σ w + Σ α_j (s_j c_j)² for each α.

    s_j is column j's root mean square, weighed like the points.
    """
    share = weights / weights.sum()
    scale = np.sqrt(share @ columns ** 2)
    used = scale > 1e-12 * scale.max(initial=1e-300)
    scaled = columns[:, used] / scale[used]
    gram, moment = (scaled.T * share) @ scaled, scaled.T @ (share * y)
    found = []
    for ridge in ridges:
        coefficients = np.zeros(columns.shape[1])
        coefficients[used] = np.linalg.solve(gram + np.diag(ridge[used]), moment) / scale[used]
        found.append(coefficients)
    return found


def _held_out(columns: FloatArray, y: FloatArray, fold: IntArray,
              ridges: Sequence[FloatArray], signed: bool, helping: BoolArray,
              weights: FloatArray) -> FloatArray:
    """Return how wrong exponents are whose fold was left out, for each ridge.

    Errors are relative, and alike in both directions: twice too much is as wrong as half.
    """
    total = np.zeros(len(ridges))
    for name in np.unique(fold):
        out = fold == name
        asked = out & ~helping
        # As it will predict: neither below nothing nor beyond what it has seen.
        most = max(float(np.max(y[~out])), 0.0)
        for index, coefficients in enumerate(
                _solve(columns[~out], y[~out], ridges, weights[~out])):
            predicted = columns[asked] @ coefficients
            if not signed:
                predicted = np.clip(predicted, 0.0, most)
            total[index] += np.expm1(np.abs(y[asked] - predicted)).sum()
    return total
