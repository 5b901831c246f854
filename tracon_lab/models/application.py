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

"""What the stored models of one application have in common: head, hull, training, errors.

These are the models of TRACON (Chiang & Huang, SC'11, §3.1), one an application and response; X
has eight columns, the target's four characteristics and then the background's. Outside the box of
its training data a model is evaluated at the nearest point of the box.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping

import numpy as np

from tracon_watcher.characteristics import COUNT
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import NAMES
from tracon_watcher.characteristics import RESPONSES
from tracon_watcher.characteristics import UNITS
from tracon_watcher import document

SCHEMA = 'tracon-model/2'
#: Fields that every stored model of an application has.
FIELDS = ('schema', 'form', 'response', 'host_type', 'application', 'characteristics', 'units',
          'hull', 'training', 'errors', 'checksum')
_HULL = ('target_minimum', 'target_maximum', 'background_maximum')


@dataclasses.dataclass(frozen=True)
class Hull:
    """The box of the training data, in requests per second and cores; (4,) each."""

    target_minimum: FloatArray
    target_maximum: FloatArray
    background_maximum: FloatArray

    def clamp(self, target: FloatArray, background: FloatArray) -> FloatArray:
        """Return X, (n, 8), of (n, 4) targets and backgrounds, moved into the box."""
        return np.hstack([np.clip(target, self.target_minimum, self.target_maximum),
                          np.minimum(background, self.background_maximum)])

    def to_document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name).tolist() for name in _HULL}

    @classmethod
    def from_fields(cls, fields: document.Fields) -> Hull:
        """Read the JSON form.

        :raises tracon_watcher.errors.InvalidDocument: naming the offending field
        """
        fields.only(_HULL)
        hull = cls(*(fields.array(name, (COUNT,), minimum=0.0) for name in _HULL))
        if (hull.target_minimum > hull.target_maximum).any():
            fields.refuse('target_minimum', hull.target_minimum.tolist(),
                          'lies above target_maximum')
        return hull


@dataclasses.dataclass(frozen=True)
class Head:
    """Whose model it is, where it holds and where it came from.

    :param response: ``slowdown`` or ``iops_ratio``
    :param application: name of the target in the measurements
    :param training: where the data came from
    :param errors: held-out errors, and the rank of the fit
    """

    response: str
    host_type: str
    application: str
    hull: Hull
    training: Mapping[str, Any]
    errors: Mapping[str, Any]

    def to_document(self, form: str) -> dict[str, Any]:
        """Return the common part of the JSON form, not yet sealed."""
        return {
            'schema': SCHEMA, 'form': form, 'response': self.response,
            'host_type': self.host_type, 'application': self.application,
            'characteristics': list(NAMES), 'units': list(UNITS),
            'hull': self.hull.to_document(), 'training': dict(self.training),
            'errors': dict(self.errors)}

    @classmethod
    def from_fields(cls, fields: document.Fields, form: str) -> Head:
        """Read the common part.

        :raises tracon_watcher.errors.InvalidDocument: naming the offending field
        """
        fields.string('schema', (SCHEMA,))
        fields.string('form', (form,))
        for name, expected in (('characteristics', NAMES), ('units', UNITS)):
            if fields.strings(name) != list(expected):
                fields.refuse(name, fields.raw(name), f'expected {", ".join(expected)}')
        hull = Hull.from_fields(fields.section('hull'))
        for name in ('training', 'errors'):
            fields.section(name)
        return cls(fields.string('response', RESPONSES), fields.string('host_type'),
                   fields.string('application'), hull, dict(fields.raw('training')),
                   dict(fields.raw('errors')))
