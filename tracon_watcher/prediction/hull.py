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

"""Where a model was trained: a box of targets and what was beside them."""

from __future__ import annotations

import dataclasses
from typing import Any

from tracon_watcher.characteristics import COUNT
from tracon_watcher.characteristics import FloatArray
from tracon_watcher import document

_NAMES = ('target_minimum', 'target_maximum', 'background_maximum')


@dataclasses.dataclass(frozen=True)
class Hull:
    """The box of the training data, in requests per second and cores; (4,) each."""

    target_minimum: FloatArray
    target_maximum: FloatArray
    background_maximum: FloatArray

    def to_document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name).tolist() for name in _NAMES}

    @classmethod
    def from_fields(cls, fields: document.Fields, strict: bool = True) -> Hull:
        """Read the JSON form.

        :param strict: whether fields are refused that are not known, rather than passed over
        :raises tracon_watcher.errors.InvalidDocument: naming the offending field
        """
        if strict:
            fields.only(_NAMES)
        hull = cls(*(fields.array(name, (COUNT,), minimum=0.0) for name in _NAMES))
        if (hull.target_minimum > hull.target_maximum).any():
            fields.refuse('target_minimum', hull.target_minimum.tolist(),
                          'lies above target_maximum')
        return hull
