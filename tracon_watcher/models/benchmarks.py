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

"""Other people's learners on the same points, to know what is attainable.

None of them is stored or used in production: a forest and boosted trees are flat outside their
data and jump inside it, a Gaussian process is not monotone, and none gives exactly 1 beside
nobody.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping
import warnings

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel
from sklearn.gaussian_process.kernels import RBF
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tracon_watcher.characteristics import COUNT
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.models import validation


def forest(capacity: FloatArray) -> validation.Factory:
    """Return a maker of random forests."""
    return lambda: RandomForestRegressor(200, min_samples_leaf=2, random_state=0)


def boosting(capacity: FloatArray) -> validation.Factory:
    """Return a maker of boosted trees that never fall when the background grows."""
    return lambda: HistGradientBoostingRegressor(
        max_iter=150, learning_rate=0.08, min_samples_leaf=8,
        monotonic_cst=[0] * COUNT + [1] * COUNT)


class _GaussianProcess(GaussianProcessRegressor):  # type: ignore[misc]
    """Says nothing of lengths at their bounds: that is a characteristic that does not matter."""

    def fit(self, X: FloatArray, y: FloatArray) -> _GaussianProcess:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', ConvergenceWarning)
            super().fit(X, y)
        return self


def gaussian_process(capacity: FloatArray) -> validation.Factory:
    """Return a maker of Gaussian processes over characteristics divided by capacity."""
    scale = np.tile(capacity, 2)

    def make() -> Any:
        kernel = (ConstantKernel(0.3) * RBF(np.ones(2 * COUNT), (0.05, 100.0))
                  + WhiteKernel(0.005, (1e-5, 1.0)))
        return make_pipeline(FunctionTransformer(lambda columns: columns / scale),
                             _GaussianProcess(kernel, normalize_y=True))
    return make


OTHERS: Mapping[str, Callable[[FloatArray], validation.Factory]] = {
    'random forest': forest, 'boosted trees': boosting, 'Gaussian process': gaussian_process}
