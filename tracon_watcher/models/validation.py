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

"""How wrong models are on points that they were not fitted to, and how wide that makes them.

Two questions are asked of the pooled model. *A known program beside an unknown background*:
folds by background. *An unknown program*, which is what production meets: target and background
are both kept out of the fit, and that is what intervals are made of.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import numpy as np
import scipy.optimize

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray
from tracon_watcher.models import points as measured
from tracon_watcher.models import pooled
from tracon_watcher.prediction import interval as intervals

#: Folds that backgrounds are dealt out to.
BACKGROUND_FOLDS = 5
#: Probabilities at which a stored interval has quantiles.
LEVELS = (0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975)
# No width is smaller than this: a share of a percent of the response.
_LEAST_WIDTH = 0.003
_GENERATOR_FOLDS = 3

#: Anything that is fitted to (n, 8) columns and exponents and predicts exponents.
Factory = Callable[[], Any]


@dataclasses.dataclass(frozen=True)
class Errors:
    """Mean and standard deviation of |predicted − actual| / actual (TRACON, §4.3)."""

    mean: float
    deviation: float
    points: int

    @classmethod
    def of(cls, predicted: FloatArray, actual: FloatArray) -> Errors:
        """Compare (n,) responses; NaN everywhere for no points."""
        relative = np.abs(predicted - actual) / actual
        if not len(relative):
            return cls(float('nan'), float('nan'), 0)
        return cls(float(relative.mean()), float(relative.std()), len(relative))


def target_folds(points: measured.Points) -> IntArray:
    """Return a fold a program, (n,); the generator's settings as targets share a few."""
    generated = points.kind == 'generator'
    fold = np.empty(len(points), dtype=np.intp)
    names = np.unique(points.target[~generated])
    fold[~generated] = np.searchsorted(names, points.target[~generated])
    fold[generated] = len(names) + measured.folds(points.target[generated], _GENERATOR_FOLDS)
    return fold


def background_folds(points: measured.Points) -> IntArray:
    """Return the fold of each point's background, (n,)."""
    return measured.folds(points.background, BACKGROUND_FOLDS)


def by_background(points: measured.Points, response: str, factory: Factory) -> FloatArray:
    """Return the exponents (n,) predicted by fits that never saw the point's background."""
    columns, exponent = pooled.design(points), points.exponent(response)
    fold = background_folds(points)
    predicted = np.full(len(points), np.nan)
    for name in np.unique(fold):
        out = fold == name
        predicted[out] = _fit(factory, columns[~out], exponent[~out], fold[~out],
                              ).predict(columns[out])
    return predicted


def by_target(points: measured.Points, response: str, factory: Factory) -> FloatArray:
    """Return the exponents (n,) predicted by fits that saw neither target nor background.

    A fit that would leave too few points predicts nothing: NaN.
    """
    columns, exponent = pooled.design(points), points.exponent(response)
    target, background = target_folds(points), background_folds(points)
    predicted = np.full(len(points), np.nan)
    for program in np.unique(target):
        for fold in np.unique(background):
            held = (target == program) & (background == fold)
            kept = (target != program) & (background != fold)
            if held.any() and kept.sum() >= pooled.LEAST_POINTS:
                predicted[held] = _fit(factory, columns[kept], exponent[kept], background[kept],
                                       ).predict(columns[held])
    return predicted


def interval(predicted: FloatArray, actual: FloatArray) -> intervals.Interval:
    """Return the width of predictions, from held-out exponents (n,); NaN is left out."""
    known = np.isfinite(predicted) & np.isfinite(actual)
    predicted, residual = predicted[known], (actual - predicted)[known]
    if len(residual):
        columns = np.column_stack([np.ones(len(predicted)), predicted])
        offset, slope = scipy.optimize.nnls(columns, np.abs(residual))[0]
    else:
        offset, slope = 0.0, 0.0
    offset = max(float(offset), _LEAST_WIDTH)
    normalised = residual / (offset + slope * predicted)
    quantiles = np.quantile(normalised, LEVELS) if len(normalised) else np.zeros(len(LEVELS))
    return intervals.Interval(offset, float(slope), np.array(LEVELS), quantiles)


def noise(points: measured.Points, response: str) -> FloatArray:
    """Return the relative error, (n,), that even a perfect prediction of repeated points has.

    A perfect prediction is the mean of the same target beside the same background. The mean of m
    repetitions contains a share of each one's own noise, for which √(m/(m−1)) makes up. The
    result belongs to the points in their order; NaN where nothing was repeated.
    """
    values = points.response(response)
    floor = np.full(len(points), np.nan)
    pair = np.char.add(np.char.add(points.target, '\n'), points.background)
    for name in np.unique(pair[points.kind == 'repeat']):
        same = np.flatnonzero((pair == name) & np.isfinite(values))
        count = len(same)
        if count > 1:
            spread = np.abs(values[same] - values[same].mean()) / values[same]
            floor[same] = spread * np.sqrt(count / (count - 1))
    return floor


def fit_one(factory: Factory, points: measured.Points, response: str) -> Any:
    """Return a model fitted to all these points."""
    return _fit(factory, pooled.design(points), points.exponent(response),
                background_folds(points))


def _fit(factory: Factory, columns: FloatArray, exponent: FloatArray, fold: IntArray) -> Any:
    model = factory()
    if isinstance(model, pooled.PooledRegressor):
        return model.fit(columns, exponent, fold)
    return model.fit(columns, exponent)
