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

"""Fits what production uses: one pairwise model a response and host type."""

from __future__ import annotations

from typing import Any
from typing import Iterable
from typing import Iterator
from typing import Mapping

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import RESPONSES
from tracon_watcher import errors
from tracon_watcher.models import baseline
from tracon_watcher.models import crowd
from tracon_watcher.models import dataset
from tracon_watcher.models import pairwise
from tracon_watcher.models import per_application
from tracon_watcher.models import points as measured
from tracon_watcher.models import validation
from tracon_watcher.prediction import pairwise as stored
from tracon_watcher.prediction import polynomial
from tracon_watcher.prediction import weighted_mean

# A response whose largest value exceeds its smallest by no more than this share is constant.
_CONSTANT = 1e-9


def production_models(datasets: Iterable[dataset.Dataset]) -> list[stored.PairwiseModel]:
    """Return the models, for any program, of slowdown and IOPS ratio of each host type.

    Data sets of one host type are fitted together. A response with too few points has no model,
    unless it is the slowdown.

    :raises tracon_watcher.errors.NotEnoughData: when not even a slowdown can be fitted
    """
    models = []
    for points, origin in _by_host_type(datasets):
        for response in RESPONSES:
            try:
                models.append(pairwise_model(points, response, origin))
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


def models_of(datasets: Iterable[dataset.Dataset], name: str,
              kind: str) -> dict[str, per_application.Fitted]:
    """Return one of TRACON's models of one application, by response, without held-out errors.

    A response with too few points has none.

    :param datasets: of one host type
    :param kind: one of :data:`~tracon_watcher.models.per_application.ESTIMATORS`
    """
    points = measured.join([baseline.steady(one) for one in datasets])
    found = {}
    for response in RESPONSES:
        own = per_application.of_application(points, response, name)
        if per_application.enough(own):
            found[response] = per_application.fit(own, response, kind)
    return found


def _application_models(
        points: measured.Points, origin: Mapping[str, Any],
) -> Iterator[polynomial.PolynomialModel | weighted_mean.WeightedMeanModel]:
    for response in RESPONSES:
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


def pairwise_model(points: measured.Points, response: str,
                   origin: Mapping[str, Any]) -> stored.PairwiseModel:
    """Fit one response of one host type, with interval and held-out errors.

    :param origin: what is known of where the points came from; it is stored
    :raises tracon_watcher.errors.NotEnoughData: for fewer than
        :data:`~tracon_watcher.models.points.LEAST_POINTS` points
    :raises tracon_watcher.errors.InvalidDocument: for a response that is the same everywhere
    """
    fitted = learnable(points, response)
    model = regressor(fitted, response, measured.capacity(points))
    factory = factory_like(model)
    exponent = fitted.exponent(response)
    known = validation.by_background(fitted, response, factory)
    unknown = validation.by_target(fitted, response, factory)
    held_out = {name: _errors(measured.from_exponent(exponents, response), fitted, response)
                for name, exponents in (('by_background', known),
                                        ('by_target_and_background', unknown))}
    training = {**origin, 'points': len(fitted), **model.identified(measured.design(fitted)),
                'ridge': model.alpha_, 'stiffness': model.stiffness_,
                'weight_of_generator_targets': model.weight_}
    return model.to_model(response, points.host_type, validation.interval(unknown, exponent),
                          training, held_out, crowd.fitted_crowding(points, response))


def learnable(points: measured.Points, response: str) -> measured.Points:
    """Return the points that a model of a response is fitted to.

    :raises tracon_watcher.errors.NotEnoughData: for fewer than
        :data:`~tracon_watcher.models.points.LEAST_POINTS` points
    :raises tracon_watcher.errors.InvalidDocument: for a response that is the same everywhere
    """
    fitted = points.defined(response, measured.FITTED)
    if len(fitted) < measured.LEAST_POINTS:
        raise errors.NotEnoughData(f'a model of {points.host_type}, {response}', len(fitted),
                                   measured.LEAST_POINTS)
    values = fitted.response(response)
    if np.ptp(values) <= _CONSTANT * values.max():
        raise errors.InvalidDocument(
            f'measurements of {points.host_type}', response, float(values[0]),
            f'it is the same in all {len(values)} points, from which nothing can be learnt; were '
            'the programs really beside each other?')
    return fitted


def regressor(fitted: measured.Points, response: str,
              capacity: FloatArray) -> pairwise.PairwiseRegressor:
    """Fit the pairwise regressor, its ridge chosen by programs kept out in turn.

    They are asked for as targets, as in validation: points whose target is the generator beside
    them only help to fit.
    """
    return pairwise.PairwiseRegressor(capacity).fit(
        measured.design(fitted), fitted.exponent(response), validation.program_folds(fitted),
        validation.helping(fitted))


def factory_like(model: pairwise.PairwiseRegressor) -> validation.Factory:
    """Return what makes unfitted models for cross-validation: same capacity, terms and ridge.

    What was chosen by cross-validation itself, a few numbers, is not chosen anew in each fold.
    """
    return lambda: pairwise.PairwiseRegressor(
        model.capacity, (model.alpha_,), (model.stiffness_,), (tuple(model.compression_),),
        model.degree, weights=(model.weight_,))


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
        yield measured.join([baseline.steady(part) for part in parts]), provenance(parts)


def _errors(predicted: FloatArray, fitted: measured.Points, response: str) -> dict[str, Any]:
    known = np.isfinite(predicted)
    found = validation.Errors.of(predicted[known], fitted.response(response)[known])
    if not found.points:
        return {'mean': None, 'standard_deviation': None, 'points': 0}
    return {'mean': found.mean, 'standard_deviation': found.deviation, 'points': found.points}
