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

"""A stored model as the estimator that it came from, so that more can be learnt."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracon_watcher.models import pairwise
from tracon_watcher.prediction import pairwise as stored


def regressor(model: stored.PairwiseModel) -> pairwise.PairwiseRegressor:
    """Return the estimator, fitted; it predicts what the model does beside one neighbour.

    How strong its ridge was and how much stiffer for terms of the third degree, the model tells
    by ``training``. Where it does not, the first of what is tried is taken.
    """
    found = pairwise.PairwiseRegressor(np.array(model.capacity))
    found.coefficients_ = np.array(model.coefficients)
    found.low_ = model.hull.target_minimum / model.capacity
    found.high_ = model.hull.target_maximum / model.capacity
    found.top_ = model.hull.background_maximum / model.capacity
    found.ceiling_ = model.ceiling
    found.compression_ = np.array(model.compression)
    found.alpha_ = _positive(model.training.get('ridge'), pairwise.ALPHAS[0])
    found.stiffness_ = _positive(model.training.get('stiffness'), pairwise.STIFFNESSES[0])
    found.weight_ = 1.0
    return found


def _positive(value: Any, otherwise: float) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if number and 0 < value < float('inf') else otherwise
