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

Two questions are asked of a model for any program. *A known program beside an unknown background*:
folds by background. *An unknown program*, which is what production meets: target and background
are both kept out of the fit, and that is what intervals are made of.
"""

from __future__ import annotations

import dataclasses
from typing import Any
from typing import Callable
from typing import Iterable

import numpy as np
import scipy.optimize

from tracon_watcher.characteristics import BoolArray
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray
from tracon_watcher import errors
from tracon_watcher.models import pairwise
from tracon_watcher.models import points as measured
from tracon_watcher.prediction import interval as intervals

#: Folds that backgrounds are dealt out to.
BACKGROUND_FOLDS = 5
#: Probabilities at which a stored interval has quantiles.
LEVELS = (0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975)
#: Share of what is measured that an interval is to hold.
SHARE = 0.9
# No width is smaller than this: a share of a percent of the response.
_LEAST_WIDTH = 0.003
#: Fewest residuals that an interval is made of: it has a quantile at 1/40.
LEAST_RESIDUALS = 20
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


def helping(points: measured.Points) -> BoolArray:
    """Say, (n,), which points only help to fit, and are neither tested nor choose anything.

    That is the generator as target beside a named program. Its units come and go by the clock, as
    those of few programs do.
    """
    return np.asarray(points.kind == 'reverse')


def background_folds(points: measured.Points) -> IntArray:
    """Return the fold of each point's background, (n,)."""
    return measured.folds(points.background, BACKGROUND_FOLDS)


def program_folds(points: measured.Points) -> IntArray:
    """Return a fold, (n,), for each named program, on whichever side it is.

    Points of the generator beside itself share a few.
    """
    target, beside = _target_groups(points)
    return np.where(points.kind == 'reverse', beside, target)


def by_background(points: measured.Points, response: str, factory: Factory) -> FloatArray:
    """Return the exponents (n,) predicted by fits that never saw the point's background.

    Neither as background nor as target: both directions of a window share its noise. Points of
    kind ``reverse`` only help to fit; theirs are NaN.
    """
    behind, front = _background_names(points)
    tested = ~helping(points)
    return _held_out(points, response, factory, (
        (tested & (behind == fold), (behind != fold) & (front != fold))
        for fold in range(BACKGROUND_FOLDS)))


def by_target(points: measured.Points, response: str, factory: Factory) -> FloatArray:
    """Return the exponents (n,) predicted by fits that saw neither target nor background.

    Neither of them on either side. A fit that would leave too few points predicts nothing: NaN,
    as do points of kind ``reverse``.
    """
    behind, front = _background_names(points)
    target, beside = _target_groups(points)
    tested = ~helping(points)
    return _held_out(points, response, factory, (
        (tested & (target == group) & (behind == fold),
         (target != group) & (beside != group) & (behind != fold) & (front != fold))
        for group in range(int(target.max(initial=0)) + 1) for fold in range(BACKGROUND_FOLDS)))


def _background_names(points: measured.Points) -> tuple[IntArray, IntArray]:
    """Return the folds, (n,), of each point's background and of its target as a background.

    -1 for a program that is background only in points of kind ``reverse``.
    """
    names = np.unique(points.background[points.kind != 'reverse'])
    return (_index(points.background, names, BACKGROUND_FOLDS),
            _index(points.target, names, BACKGROUND_FOLDS))


def _target_groups(points: measured.Points) -> tuple[IntArray, IntArray]:
    """Return the groups, (n,), of each point's target and of its background as a target.

    Each program is a group; the generator's settings as targets share a few.
    """
    programs = np.unique(points.target[points.kind == 'background'])
    settings = np.unique(points.target[points.kind == 'generator'])

    def group(names: measured.StringArray) -> IntArray:
        generated = _index(names, settings, _GENERATOR_FOLDS)
        return np.where(generated >= 0, len(programs) + generated,
                        _index(names, programs, max(len(programs), 1)))
    return group(points.target), group(points.background)


def _index(names: measured.StringArray, known: measured.StringArray, count: int) -> IntArray:
    """Return each name's place among the ``known`` (sorted) modulo ``count``, -1 where absent."""
    if not len(known):
        return np.full(len(names), -1)
    place = np.minimum(np.searchsorted(known, names), len(known) - 1)
    return np.where(known[place] == names, place % count, -1)


def _held_out(points: measured.Points, response: str, factory: Factory,
              splits: Iterable[tuple[BoolArray, BoolArray]]) -> FloatArray:
    """Return exponents (n,) where a split tests a point, by a fit to the points it keeps."""
    columns = measured.design(points)
    predicted = np.full(len(points), np.nan)
    for tested, kept in splits:
        if tested.any() and kept.sum() >= measured.LEAST_POINTS:
            predicted[tested] = fit_one(factory, points.take(kept), response,
                                        ).predict(columns[tested])
    return predicted


def interval(predicted: FloatArray, actual: FloatArray) -> intervals.Interval:
    """Return the width of predictions, from held-out exponents (n,); NaN is left out.

    :raises tracon_watcher.errors.NotEnoughData: for fewer than :data:`LEAST_RESIDUALS`: a model
        of unknown width would seem to be certain
    """
    known = np.isfinite(predicted) & np.isfinite(actual)
    predicted, residual = predicted[known], (actual - predicted)[known]
    if len(residual) < LEAST_RESIDUALS:
        raise errors.NotEnoughData(
            'the interval of a model, of points on programs and backgrounds kept out of its fit,',
            len(residual), LEAST_RESIDUALS)
    columns = np.column_stack([np.ones(len(predicted)), predicted])
    offset, slope = scipy.optimize.nnls(columns, np.abs(residual))[0]
    offset = max(float(offset), _LEAST_WIDTH)
    normalised = residual / (offset + slope * predicted)
    return intervals.Interval(offset, float(slope), np.array(LEVELS),
                              np.quantile(normalised, LEVELS))


def inside(width: intervals.Interval, predicted: FloatArray, actual: FloatArray,
           share: float = SHARE) -> BoolArray:
    """Say which exponents, (n,), lie in the interval that should hold this share of them."""
    low, high = (width.bound(predicted, level) for level in ((1 - share) / 2, (1 + share) / 2))
    # Interference below none is noise: the interval ends there, and so does what is measured.
    value = np.maximum(actual, 0.0)
    return np.asarray((low <= value) & (value <= high))


def inside_held_out(predicted: FloatArray, actual: FloatArray, groups: IntArray) -> FloatArray:
    """Say, (n,), which exponents lie in intervals made of the residuals of all other groups.

    1 for inside, 0 for outside, NaN where nothing was predicted or too little is left to make an
    interval of.
    """
    found = np.full(len(actual), np.nan)
    known = np.isfinite(predicted)
    for group in np.unique(groups[known]):
        out = known & (groups == group)
        kept = known & ~out
        if kept.sum() >= LEAST_RESIDUALS:
            found[out] = inside(interval(predicted[kept], actual[kept]), predicted[out],
                                actual[out])
    return found


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


def noise_floor(points: measured.Points, response: str,
                targets: Iterable[str] | None = None) -> float:
    """Return the mean error that a perfect prediction has; each program counts as much as another.

    Some are repeated more often than others, which must not make them the rule.

    :param targets: the programs, of which those count that were repeated; all when none was
    :returns: NaN where nothing was repeated
    """
    values = noise(points, response)
    of_each = {str(name): float(values[(points.target == name) & np.isfinite(values)].mean())
               for name in np.unique(points.target[np.isfinite(values)])}
    chosen = [of_each[name] for name in targets or () if name in of_each] or [*of_each.values()]
    return float(np.mean(chosen)) if chosen else float('nan')


def fit_one(factory: Factory, points: measured.Points, response: str) -> Any:
    """Return a model fitted to all these points."""
    model = factory()
    columns, exponent = measured.design(points), points.exponent(response)
    if isinstance(model, pairwise.PairwiseRegressor):
        return model.fit(columns, exponent, helping=helping(points))
    return model.fit(columns, exponent)
