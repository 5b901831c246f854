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

"""Stored models of applications: one sealed JSON document a file."""

from __future__ import annotations

import os

from tracon_lab.models import application
from tracon_lab.models import polynomial
from tracon_lab.models import weighted_mean
from tracon_watcher import document

Model = polynomial.PolynomialModel | weighted_mean.WeightedMeanModel
_FORMS: dict[str, type[polynomial.PolynomialModel] | type[weighted_mean.WeightedMeanModel]] = {
    one.form: one for one in (polynomial.PolynomialModel, weighted_mean.WeightedMeanModel)}


def load(path: str | os.PathLike[str]) -> Model:
    """Read one model from a JSON file.

    :raises tracon_watcher.errors.InvalidDocument: naming file, field and value
    """
    fields = document.read(path, 'tracon model fit')
    fields.string('schema', (application.SCHEMA,))
    return _FORMS[fields.string('form', tuple(_FORMS))].from_fields(fields)


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write one model, atomically."""
    document.write(model.to_document(), path)
