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

"""Fits what production uses: one pooled model a response and host type."""

from __future__ import annotations

from typing import Any
from typing import Iterable
from typing import Iterator
from typing import Mapping

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher import errors
from tracon_watcher.models import dataset
from tracon_watcher.models import per_application
from tracon_watcher.models import points as measured
from tracon_watcher.models import pooled
from tracon_watcher.models import validation
from tracon_watcher.prediction import anchored
from tracon_watcher.prediction import polynomial
from tracon_watcher.prediction import weighted_mean


def production_models(datasets: Iterable[dataset.Dataset]) -> list[anchored.AnchoredModel]:
    """Return the pooled models of slowdown and IOPS ratio of each host type.

    Data sets of one host type are fitted together. A response with too few points has no model,
    unless it is the slowdown.

    :raises tracon_watcher.errors.NotEnoughData: when not even a slowdown can be fitted
    """
    models = []
    for points, origin in _by_host_type(datasets):
        for response in anchored.RESPONSES:
            try:
                models.append(pooled_model(points, response, origin))
            except errors.NotEnoughData:
                if response == 'slowdown':
                    raise
    return models


def application_models(
        datasets: Iterable[dataset.Dataset],
) -> list[polynomial.PolynomialModel | weighted_mean.WeightedMeanModel]:
    """Return TRACON's own models, WMM, LM and NLM, of each application, response and host type.

    An application with too few points has none.
    """
    return [model for points, origin in _by_host_type(datasets)
            for model in _application_models(points, origin)]


def _application_models(
        points: measured.Points, origin: Mapping[str, Any],
) -> Iterator[polynomial.PolynomialModel | weighted_mean.WeightedMeanModel]:
    for response in anchored.RESPONSES:
        for name in per_application.applications(points):
            own = per_application.of_application(points, response, name)
            if not per_application.enough(own):
                continue
            training = {**origin, 'points': len(own)}
            for model in per_application.ESTIMATORS:
                held_out = _errors(per_application.by_background(own, response, model), own,
                                   response)
                yield per_application.to_stored(
                    per_application.fit(own, response, model), model, response,
                    points.host_type, name, training, {'by_background': held_out})


def pooled_model(points: measured.Points, response: str,
                 origin: Mapping[str, Any]) -> anchored.AnchoredModel:
    """Fit one response of one host type, with interval and held-out errors.

    :param origin: what is known of where the points came from; it is stored
    """
    fitted = points.defined(response, measured.FITTED)
    capacity = measured.capacity(points)
    model = regressor(fitted, response, capacity)
    factory = factory_like(model)
    exponent = fitted.exponent(response)
    known = validation.by_background(fitted, response, factory)
    unknown = validation.by_target(fitted, response, factory)
    held_out = {name: _errors(measured.from_exponent(exponents, response), fitted, response)
                for name, exponents in (('by_background', known),
                                        ('by_target_and_background', unknown))}
    columns = pooled.design(fitted) / np.tile(capacity, 2)
    training = {**origin, 'points': len(fitted), **pooled.identified(columns),
                'ridge': model.alpha_, 'pieces': model.atoms_}
    return model.to_model(response, points.host_type, validation.interval(unknown, exponent),
                          training, held_out)


def regressor(fitted: measured.Points, response: str,
              capacity: FloatArray) -> pooled.PooledRegressor:
    """Fit the pooled regressor, its ridge chosen by programs kept out in turn."""
    return pooled.PooledRegressor(capacity).fit(
        pooled.design(fitted), fitted.exponent(response), validation.program_folds(fitted))


def factory_like(model: pooled.PooledRegressor) -> validation.Factory:
    """Return what makes unfitted models for cross-validation: same capacity, settings and ridge.

    The ridge, one number chosen by cross-validation itself, is not chosen anew in each fold.
    """
    return lambda: pooled.PooledRegressor(model.capacity, (model.alpha_,), model.most_kinks)


def provenance(parts: Iterable[dataset.Dataset]) -> dict[str, Any]:
    """Return what a stored model tells of the measurements behind it."""
    return {'files': [{'name': part.name, 'sha256': part.sha256,
                       **{key: part.header[key] for key in sorted(part.header)}}
                      for part in parts]}


def _by_host_type(datasets: Iterable[dataset.Dataset],
                  ) -> Iterator[tuple[measured.Points, dict[str, Any]]]:
    by_type: dict[str, list[dataset.Dataset]] = {}
    for one in datasets:
        by_type.setdefault(one.host_type, []).append(one)
    for parts in by_type.values():
        yield measured.join([part.points for part in parts]), provenance(parts)


def _errors(predicted: FloatArray, fitted: measured.Points, response: str) -> dict[str, Any]:
    known = np.isfinite(predicted)
    found = validation.Errors.of(predicted[known], fitted.response(response)[known])
    if not found.points:
        return {'mean': None, 'standard_deviation': None, 'points': 0}
    return {'mean': found.mean, 'standard_deviation': found.deviation, 'points': found.points}
