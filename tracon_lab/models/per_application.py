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

"""TRACON's own way: a model for each application, of its points beside the generator."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Mapping

import numpy as np

from tracon_lab.models import application as stored
from tracon_lab.models import linear
from tracon_lab.models import nonlinear
from tracon_lab.models import points as measured
from tracon_lab.models import polynomial
from tracon_lab.models import weighted_mean
from tracon_lab.models import wmm
from tracon_watcher.characteristics import COUNT
from tracon_watcher.characteristics import FloatArray
from tracon_watcher import errors

#: The paper's models by the names of its Fig. 3.
ESTIMATORS: Mapping[str, Callable[[], Any]] = {
    'WMM': wmm.WeightedMeanRegressor, 'LM': linear.StepwiseLinear,
    'NLM': nonlinear.StepwiseQuadratic}
#: Fewest points that a model of one application is fitted to, the solo point beside them.
LEAST_POINTS = 8
#: Fewest points of which a fold of backgrounds can be held out.
ENOUGH_POINTS = 10
_FOLDS = 5
_HOST_CPU = (COUNT - 1, 2 * COUNT - 1)


@dataclasses.dataclass(frozen=True)
class Fitted:
    """An estimator with the box that its points lay in.

    :param host_cpu: whether the fourth characteristic was among the features
    """

    estimator: Any
    hull: stored.Hull
    host_cpu: bool = True

    def predict(self, target: FloatArray, background: FloatArray) -> FloatArray:
        """Return the response, (n,), for (n, 4) targets and backgrounds, clamped to the hull."""
        columns = self.hull.clamp(target, background)
        response: FloatArray = self.estimator.predict(_features(columns, self.host_cpu))
        return response


def applications(points: measured.Points) -> list[str]:
    """Return the names of the targets that were measured beside the generator."""
    return sorted(set(points.target[points.kind == 'background'].tolist()))


def of_application(points: measured.Points, response: str, name: str) -> measured.Points:
    """Return an application's defined points beside the generator.

    Its own characteristics alone are one thing, measured often: each point gets their median.
    """
    chosen = points.defined(response, ('background',))
    chosen = chosen.take(chosen.target == name)
    if not len(chosen):
        return chosen
    typical = np.median(chosen.target_alone, axis=0)
    return dataclasses.replace(chosen, target_alone=np.tile(typical, (len(chosen), 1)))


def fit(points: measured.Points, response: str, model: str, host_cpu: bool = True) -> Fitted:
    """Fit one of :data:`ESTIMATORS` to one application's points, and to its being alone.

    :param points: as :func:`of_application` gives them
    :raises tracon_watcher.errors.NotEnoughData: for fewer than :data:`LEAST_POINTS` points
    """
    if len(points) < LEAST_POINTS:
        raise errors.NotEnoughData(f'{model} of one application', len(points), LEAST_POINTS)
    alone = np.concatenate([points.target_alone[0], np.zeros(COUNT)])
    columns = np.vstack([measured.design(points), alone])
    values = np.append(points.response(response), 1.0)
    hull = stored.Hull(points.target_alone.min(axis=0), points.target_alone.max(axis=0),
                       points.background_alone.max(axis=0))
    return Fitted(ESTIMATORS[model]().fit(_features(columns, host_cpu), values), hull, host_cpu)


def enough(points: measured.Points) -> bool:
    """Say whether points suffice for a fit, also when a fold is held out."""
    return len(points) >= ENOUGH_POINTS


def too_few(points: measured.Points) -> errors.NotEnoughData:
    """Return the error that says that no application has points enough for a model."""
    most = max((len(of_application(points, 'slowdown', name)) for name in applications(points)),
               default=0)
    return errors.NotEnoughData(f'a model of an application on {points.host_type}', most,
                                ENOUGH_POINTS)


def by_background(points: measured.Points, response: str, model: str,
                  host_cpu: bool = True) -> FloatArray:
    """Return responses (n,) predicted by fits that never saw the point's background."""
    fold = measured.folds(points.background, _FOLDS)
    predicted = np.full(len(points), np.nan)
    for index in np.unique(fold):
        out = fold == index
        fitted = fit(points.take(~out), response, model, host_cpu)
        predicted[out] = fitted.predict(points.target_alone[out], points.background_alone[out])
    return predicted


def to_stored(fitted: Fitted, model: str, response: str, host_type: str, name: str,
              training: Mapping[str, Any], held_out: Mapping[str, Any],
              ) -> polynomial.PolynomialModel | weighted_mean.WeightedMeanModel:
    """Return the form that is stored, of a model with all four characteristics."""
    estimator = fitted.estimator
    details: dict[str, Any] = {'model': model}
    if model != 'WMM':
        details |= {'terms': len(estimator.coef_), 'rank': int(estimator.rank_),
                    'aic': float(estimator.aic_)}
    head = stored.Head(response, host_type, name, fitted.hull, {**training, **details}, held_out)
    if model == 'WMM':
        return weighted_mean.WeightedMeanModel(
            head, estimator.mean_, estimator.scale_, estimator.components_, estimator.points_,
            estimator.responses_, min(estimator.neighbours, len(estimator.responses_)))
    chosen = estimator.chosen_
    return polynomial.PolynomialModel(
        head, estimator.scale_, estimator.powers_[chosen].astype(np.float64),
        estimator.coef_[chosen], float(estimator.intercept_))


def _features(columns: FloatArray, host_cpu: bool) -> FloatArray:
    return columns if host_cpu else np.delete(columns, _HOST_CPU, axis=1)
