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

"""Least squares with coefficients that are not negative, and a ridge that data choose."""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import numpy as np
import scipy.linalg
import scipy.optimize
from sklearn.base import BaseEstimator
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted
from sklearn.utils.validation import validate_data

from tracon_watcher.characteristics import FloatArray
from tracon_watcher import tie_breaking

#: Ridges that are tried: share of the mean square of a feature, the features having unit RMS.
ALPHAS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


# Newton's steps on the squares beyond the ceiling, the share of the sum of squares that one must
# bring for another to follow, and the least part of a step that is tried.
_MOST_STEPS = 25
_GAIN = 1e-4
_LEAST_SHARE = 1e-3


@dataclasses.dataclass(frozen=True)
class _Cap:
    """Rows (m, p) at which the response must not pass the ceiling."""

    rows: FloatArray
    ceiling: float


class NonNegativeRidge(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Minimise |y − Xa|²/n + α Σ (s_j a_j)² over a ≥ 0, without a constant.

    s_j is the root mean square of feature j, so that units do not matter. A combination with
    a ≥ 0 of features that never fall never falls, which is what makes the pooled model monotone;
    a constant is left out, since without a background there is no interference.

    Where a response must not pass a ceiling although nothing was measured there, each pass beyond
    it counts like a point's error: Σ max(0, z·a − ceiling)² over such rows z is added to the sum
    of squares.

    :param alphas: the ridges to choose from by cross-validation; the only one is taken as it is
    :param folds: number of folds when no groups are given to ``fit``

    After ``fit``: ``coef_`` (p,), ``alpha_``, and ``scores_``, the mean squared error of each α
    held out (empty when there was no choice).
    """

    def __init__(self, alphas: Sequence[float] = ALPHAS, folds: int = 5) -> None:
        self.alphas = alphas
        self.folds = folds

    def fit(self, X: Any, y: Any, groups: Any = None, capped: FloatArray | None = None,
            ceiling: float = np.inf) -> NonNegativeRidge:
        """Fit to (n, p) features and the (n,) response.

        :param groups: (n,) fold of each point, for the choice of α; by default points are dealt
            out in turn
        :param capped: (m, p) features at which the response must not pass the ceiling
        """
        values, response = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        response = np.asarray(response, dtype=np.float64)
        fold = np.arange(len(response)) % self.folds if groups is None else np.asarray(groups)
        alphas = np.asarray(self.alphas, dtype=np.float64)
        self.scores_ = np.empty(0)
        cap = None if capped is None else _Cap(capped, ceiling)
        if len(alphas) > 1 and len(np.unique(fold)) > 1:
            self.scores_ = self._scores(values, response, fold, alphas, cap)
            self.alpha_ = float(alphas[tie_breaking.argmin(self.scores_, tie_breaking.FITTED)])
        else:
            self.alpha_ = float(alphas[0])
        self.coef_ = _solve_capped(values.T @ values, values.T @ response, len(response),
                                   self.alpha_, cap)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the response, (n,), for (n, p) features."""
        check_is_fitted(self)
        values = validate_data(self, X, dtype=np.float64, reset=False)
        response: FloatArray = values @ self.coef_
        return response

    def _scores(self, values: FloatArray, response: FloatArray, fold: Any,
                alphas: FloatArray, cap: _Cap | None) -> FloatArray:
        total = np.zeros(len(alphas))
        for name in np.unique(fold):
            out = fold == name
            kept, held, held_response = values[~out], values[out], response[out]
            # Anew for each fold: what subtraction from the whole leaves of a feature that only
            # the fold has is rounding, and no longer positive definite.
            gram, moment = kept.T @ kept, kept.T @ response[~out]
            for index, alpha in enumerate(alphas):
                coefficients = _solve_capped(gram, moment, len(kept), float(alpha), cap)
                total[index] += float(np.sum((held_response - held @ coefficients) ** 2))
        return total / len(response)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # It cannot follow what falls, nor a constant.
        tags.regressor_tags.poor_score = True
        return tags


def _solve_capped(gram: FloatArray, moment: FloatArray, points: int, alpha: float,
                  cap: _Cap | None) -> FloatArray:
    """Return the coefficients with the squares beyond the ceiling added to those of the errors.

    The sum is convex, and quadratic as long as the same rows are beyond. So each of Newton's steps
    solves for those that are, and is halved until the sum falls.
    """
    scale = _scale(gram, points)
    coefficients = solve(gram, moment, points, alpha, scale)
    if cap is None:
        return coefficients
    ridge = points * alpha * scale ** 2

    def loss(values: FloatArray) -> float:
        beyond = np.maximum(cap.rows @ values - cap.ceiling, 0.0)
        return float(values @ gram @ values - 2 * moment @ values + ridge @ values ** 2
                     + beyond @ beyond)

    least = loss(coefficients)
    for _step in range(_MOST_STEPS):
        rows = cap.rows[cap.rows @ coefficients > cap.ceiling]
        step = solve(gram + rows.T @ rows, moment + cap.ceiling * rows.sum(axis=0), points,
                     alpha, scale) - coefficients
        share, found = 1.0, loss(coefficients + step)
        while found > least and share > _LEAST_SHARE:
            share /= 2
            found = loss(coefficients + share * step)
        if least - found <= _GAIN * abs(least):
            break
        least, coefficients = found, coefficients + share * step
    return coefficients


def _scale(gram: FloatArray, points: int) -> FloatArray:
    """Return the root mean square of each feature, (p,)."""
    scale: FloatArray = np.sqrt(np.maximum(np.diag(gram), 0.0) / max(points, 1))
    return scale


def solve(gram: FloatArray, moment: FloatArray, points: int, alpha: float,
          scale: FloatArray | None = None) -> FloatArray:
    """Return the coefficients (p,) from XᵀX (p, p) and Xᵀy (p,) of ``points`` points.

    :param scale: (p,) of the features, when it is not that of ``gram``
    """
    if scale is None:
        scale = _scale(gram, points)
    used = scale > 1e-12 * max(float(scale.max(initial=0.0)), 1e-300)
    coefficients = np.zeros(len(moment))
    if not used.any():
        return coefficients
    size = scale[used]
    # The least ridge keeps the factor in existence where features are collinear.
    square = gram[np.ix_(used, used)] / np.outer(size, size) / points
    square = square + max(alpha, 1e-10) * np.eye(len(size))
    upper = scipy.linalg.cholesky(square)
    right = scipy.linalg.solve_triangular(upper, moment[used] / size / points, trans='T')
    coefficients[used] = scipy.optimize.nnls(upper, right, maxiter=30 * len(size))[0] / size
    return coefficients
