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

"""NLM, TRACON's non-linear model: a full quadratic of which AIC keeps some terms."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted
from sklearn.utils.validation import validate_data

from tracon_lab.models import stepwise
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray


def powers(features: int, degree: int) -> IntArray:
    """Return the exponents of all monomials of degree 1 to ``degree`` (at most 2), (m, features).

    The linear ones come first, so that of collinear terms the lower degree is the one kept.
    """
    unit = np.eye(features, dtype=np.intp)
    if degree == 1:
        return unit
    first, second = np.triu_indices(features)
    return np.vstack([unit, unit[first] + unit[second]])


def monomials(values: FloatArray, exponents: IntArray) -> FloatArray:
    """Return the (n, m) monomials with these (m, p) exponents of the (n, p) values."""
    columns: FloatArray = np.prod(values[:, None, :] ** exponents, axis=2)
    return columns


class StepwiseQuadratic(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """All terms of (1 + ΣX)², chosen stepwise by AIC (Chiang & Huang, TRACON, SC'11, eq. 2).

    The paper finds the coefficients by Gauss–Newton on the sum of squares. The model is linear in
    its coefficients, so from any start one Gauss–Newton step *is* ordinary least squares; it is
    solved by an orthogonal decomposition, which does not square the condition number as the
    normal equations do.

    Where a feature is constant, as are the target's when one application is fitted, its terms
    are not identifiable: see :mod:`.stepwise`.

    :param start: ``empty`` or ``full``, where the stepwise search starts

    After ``fit``: ``scale_`` (p,), by which features are divided; ``powers_`` (m, p);
    ``coef_`` (m,) and ``intercept_`` over the scaled monomials; ``chosen_`` and
    ``identifiable_`` (m,); ``rank_``; ``aic_``.
    """

    _degree = 2

    def __init__(self, start: str = 'empty') -> None:
        self.start = start

    def fit(self, X: Any, y: Any) -> StepwiseQuadratic:
        """Fit to (n, p) features and the (n,) response.

        :raises ValueError: for fewer than three points, or a ``start`` that there is not
        """
        if self.start not in ('empty', 'full'):
            raise ValueError(f"start={self.start!r}: expected 'empty' or 'full'")
        values, response = validate_data(self, X, y, y_numeric=True, dtype=np.float64,
                                         ensure_min_samples=3)
        top = np.abs(values).max(axis=0)
        self.scale_ = np.where(top > 0, top, 1.0)
        self.powers_ = powers(values.shape[1], self._degree)
        found = stepwise.search(monomials(values / self.scale_, self.powers_),
                                np.asarray(response, dtype=np.float64), self.start)
        self.coef_, self.intercept_ = found.coefficients, found.intercept
        self.chosen_, self.identifiable_ = found.chosen, found.identifiable
        self.rank_, self.aic_ = found.rank, found.aic
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the response, (n,), for (n, p) features."""
        check_is_fitted(self)
        values = validate_data(self, X, dtype=np.float64, reset=False)
        columns = monomials(values / self.scale_, self.powers_[self.chosen_])
        response: FloatArray = self.intercept_ + columns @ self.coef_[self.chosen_]
        return response
