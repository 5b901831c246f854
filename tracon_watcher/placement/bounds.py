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

"""One-sided confidence bounds of predicted exponents."""

from __future__ import annotations

import statistics

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.prediction import pairwise


def lower(model: pairwise.PairwiseModel, exponent: FloatArray, spread: FloatArray | float,
          confidence: float) -> FloatArray:
    """Return lower bounds of exponents, (n,).

    :param spread: (n,) standard deviation due to an uncertain profile, in exponents
    """
    return _bound(model, exponent, spread, 1 - confidence, -1)


def upper(model: pairwise.PairwiseModel, exponent: FloatArray, spread: FloatArray | float,
          confidence: float) -> FloatArray:
    """Return upper bounds of exponents, (n,); parameters as for :func:`lower`."""
    return _bound(model, exponent, spread, confidence, 1)


def exponent_at(model: pairwise.PairwiseModel, bound: FloatArray, confidence: float,
                spread: FloatArray | float = 0.0) -> FloatArray:
    """Return the exponents whose lower bounds are just these, (n,).

    :param spread: (n,) as for :func:`lower`
    """
    interval = model.interval
    quantile = min(interval.quantile(1 - confidence), 0.0)
    remaining = 1 + quantile * interval.slope
    if remaining <= 0:
        return np.full(len(bound), np.inf)
    found: FloatArray = (bound - quantile * interval.offset) / remaining
    if np.any(spread):
        # The distance that is due to the model is taken as it is without the spread; it would be
        # a little larger.
        distance = np.maximum(found - bound, 0.0)
        found = bound + np.hypot(
            distance, statistics.NormalDist().inv_cdf(1 - confidence) * spread)
    return found


def _bound(model: pairwise.PairwiseModel, exponent: FloatArray, spread: FloatArray | float,
           level: float, sign: int) -> FloatArray:
    # A lower bound is never above the prediction, however the residuals lie.
    distance = np.maximum(sign * (model.interval.bound(exponent, level) - exponent), 0.0)
    if np.any(spread):
        distance = np.hypot(distance, statistics.NormalDist().inv_cdf(level) * spread)
    bound: FloatArray = np.maximum(exponent + sign * distance, 0.0)
    return bound
