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

"""A stored linear or quadratic model (LM, NLM) of one application."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from tracon_lab.models import application
from tracon_watcher.characteristics import COUNT
from tracon_watcher.characteristics import FloatArray
from tracon_watcher import document

_WIDTH = 2 * COUNT
_DEGREE = 2


@dataclasses.dataclass(frozen=True)
class PolynomialModel:
    """c + Σ_k a_k Π_j (x_j / scale_j)^p_kj (Chiang & Huang, TRACON, SC'11, eq. 1 and 2).

    :param scale: (8,) by which the columns of X are divided
    :param powers: (m, 8) p, of degree 1 or 2
    :param coefficients: (m,) a
    :param intercept: c
    """

    head: application.Head
    scale: FloatArray
    powers: FloatArray
    coefficients: FloatArray
    intercept: float

    form: ClassVar[str] = 'polynomial'

    def predict(self, target: FloatArray, background: FloatArray) -> FloatArray:
        """Return the response, (n,), for (n, 4) targets and backgrounds, clamped to the hull."""
        values = self.head.hull.clamp(target, background) / self.scale
        terms = np.prod(values[:, None, :] ** self.powers, axis=2)
        response: FloatArray = self.intercept + terms @ self.coefficients
        return response

    def to_document(self) -> dict[str, Any]:
        """Return the sealed JSON form."""
        return document.sealed({
            **self.head.to_document(self.form), 'scale': self.scale.tolist(),
            'powers': self.powers.astype(int).tolist(),
            'coefficients': self.coefficients.tolist(), 'intercept': self.intercept})

    @classmethod
    def from_fields(cls, fields: document.Fields) -> PolynomialModel:
        """Read the JSON form.

        :raises tracon_watcher.errors.InvalidDocument: naming the offending field
        """
        fields.only((*application.FIELDS, 'scale', 'powers', 'coefficients', 'intercept'))
        head = application.Head.from_fields(fields, cls.form)
        coefficients = fields.array('coefficients', (-1,))
        powers = fields.array('powers', (len(coefficients), _WIDTH), 0.0, float(_DEGREE))
        for index, row in enumerate(powers):
            if (row != row.round()).any() or not 1 <= row.sum() <= _DEGREE:
                fields.refuse(f'powers[{index}]', row.tolist(),
                              'expected whole exponents with a sum of 1 or 2')
        model = cls(head, fields.array('scale', (_WIDTH,), minimum=1e-12), powers, coefficients,
                    fields.number('intercept'))
        fields.check_seal('run `tracon model fit` again')
        return model
