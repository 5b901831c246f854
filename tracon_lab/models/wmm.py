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

"""WMM, TRACON's weighted mean method."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted
from sklearn.utils.validation import validate_data

from tracon_lab.models import weighted_mean
from tracon_watcher.characteristics import FloatArray
from tracon_watcher import tie_breaking

# Share of the largest singular value below which one is rounding.
_NOTHING = 1e-10


class WeightedMeanRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """The nearest points in the space of the principal components, weighted by 1/distance.

    Chiang & Huang, TRACON, SC'11, §3.1: the first four components, the three nearest points,
    Euclidean distance. The paper does not say whether features are standardised before; here
    they are, since requests a second would leave nothing of CPU shares. A constant feature
    counts nothing. A point at distance zero decides alone (several: their mean).

    :param components: how many principal components
    :param neighbours: how many nearest points

    After ``fit``: ``mean_`` and ``scale_`` (p,); ``components_`` (k, p); ``points_`` (n, k), the
    training points' components; ``responses_`` (n,).
    """

    def __init__(self, components: int = 4, neighbours: int = 3) -> None:
        self.components = components
        self.neighbours = neighbours

    def fit(self, X: Any, y: Any) -> WeightedMeanRegressor:
        """Keep the (n, p) features and the (n,) response."""
        values, response = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        self.mean_ = values.mean(axis=0)
        spread = values.std(axis=0)
        level = np.abs(values).max(axis=0)
        self.scale_ = np.where(spread > 1e-12 * level, spread, np.inf)
        standard = (values - self.mean_) / self.scale_
        _left, sizes, axes = np.linalg.svd(standard, full_matrices=False)
        # Along the others points do not differ but by rounding, which also turns those axes.
        axes = np.where(sizes > _NOTHING * sizes.max(initial=0.0), axes.T, 0.0).T[
            :self.components]
        # The sign of a component is the solver's whim; fixed, so that stored models compare.
        signs = np.sign(axes[np.arange(len(axes)), tie_breaking.argmax_of_each(np.abs(axes))])
        self.components_ = axes * np.where(signs == 0, 1.0, signs)[:, None]
        self.points_ = standard @ self.components_.T
        self.responses_ = np.asarray(response, dtype=np.float64)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the response, (n,), for (n, p) features."""
        check_is_fitted(self)
        values = validate_data(self, X, dtype=np.float64, reset=False)
        scores = (values - self.mean_) / self.scale_ @ self.components_.T
        return weighted_mean.weighted_mean(scores, self.points_, self.responses_,
                                           self.neighbours)
