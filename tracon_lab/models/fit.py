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

"""Fits TRACON's models, one an application, response and host type."""

from __future__ import annotations

from typing import Any
from typing import Iterable
from typing import Iterator
from typing import Mapping

from tracon_lab.models import baseline
from tracon_lab.models import dataset
from tracon_lab.models import per_application
from tracon_lab.models import points as measured
from tracon_lab.models import store
from tracon_lab.models import validation
from tracon_watcher.characteristics import RESPONSES


def application_models(datasets: Iterable[dataset.Dataset]) -> list[store.Model]:
    """Return WMM, LM and NLM of each application, response and host type.

    Data sets of one host type are fitted together. An application with too few points has none.

    :raises tracon_watcher.errors.NotEnoughData: when no application of a host type has points
        enough
    """
    by_type: dict[str, list[dataset.Dataset]] = {}
    for one in datasets:
        by_type.setdefault(one.host_type, []).append(one)
    found: list[store.Model] = []
    for parts in by_type.values():
        points = measured.join([baseline.steady(part) for part in parts])
        models = list(_of_host_type(points, provenance(parts)))
        if not models:
            raise per_application.too_few(points)
        found += models
    return found


def models_of(datasets: Iterable[dataset.Dataset], name: str,
              kind: str) -> dict[str, per_application.Fitted]:
    """Return one of TRACON's models of one application, by response, without held-out errors.

    A response with too few points has none.

    :param datasets: of one host type
    :param kind: one of :data:`~tracon_lab.models.per_application.ESTIMATORS`
    """
    points = measured.join([baseline.steady(one) for one in datasets])
    found = {}
    for response in RESPONSES:
        own = per_application.of_application(points, response, name)
        if per_application.enough(own):
            found[response] = per_application.fit(own, response, kind)
    return found


def provenance(parts: Iterable[dataset.Dataset]) -> dict[str, Any]:
    """Return what a stored document tells of the measurements behind it."""
    return {'files': [{'name': part.name, 'sha256': part.sha256,
                       **{key: part.header[key] for key in sorted(part.header)}}
                      for part in parts]}


def _of_host_type(points: measured.Points, origin: Mapping[str, Any]) -> Iterator[store.Model]:
    for response in RESPONSES:
        for name in per_application.applications(points):
            own = per_application.of_application(points, response, name)
            if not per_application.enough(own):
                continue
            for model in per_application.ESTIMATORS:
                wrong = validation.Errors.of(
                    per_application.by_background(own, response, model), own.response(response))
                held_out = {'mean': wrong.mean, 'standard_deviation': wrong.deviation,
                            'points': wrong.points}
                yield per_application.to_stored(
                    per_application.fit(own, response, model), model, response,
                    points.host_type, name, {**origin, 'points': len(own)},
                    {'by_background': held_out})
