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

"""How wide a prediction is: quantiles of a model's own held-out residuals."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher import document


@dataclasses.dataclass(frozen=True)
class Interval:
    """Quantiles of normalised held-out residuals in the space that the model is fitted in.

    A residual r = measured exponent − predicted exponent is divided by offset + slope × predicted
    exponent, since strong interference is predicted less exactly than weak.

    :param offset: width that does not depend on the prediction, > 0
    :param slope: width for each unit of predicted exponent, ≥ 0
    :param levels: probabilities, rising, shape (k,)
    :param quantiles: the residuals' quantiles at these levels, not falling, shape (k,)
    """

    offset: float
    slope: float
    levels: FloatArray
    quantiles: FloatArray

    def quantile(self, level: float) -> float:
        """Return the normalised residual at probability ``level``, interpolated."""
        return float(np.interp(level, self.levels, self.quantiles))

    def bound(self, exponent: FloatArray, level: float) -> FloatArray:
        """Return the exponent at probability ``level``; never below 0, which is no interference.

        That of a VM beside nobody is known exactly, which its exponent alone doesn't tell.

        :param exponent: predicted exponents, shape (n,)
        """
        width = self.offset + self.slope * exponent
        bound: FloatArray = np.maximum(exponent + self.quantile(level) * width, 0.0)
        return bound

    def to_document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {'offset': self.offset, 'slope': self.slope, 'levels': self.levels.tolist(),
                'quantiles': self.quantiles.tolist()}

    @classmethod
    def from_fields(cls, fields: document.Fields, strict: bool = True) -> Interval:
        """Read the JSON form.

        :param strict: whether fields are refused that are not known, rather than passed over
        :raises tracon_watcher.errors.InvalidDocument: naming the offending field
        """
        if strict:
            fields.only(('offset', 'slope', 'levels', 'quantiles'))
        levels = fields.array('levels', (-1,), 0.0, 1.0)
        quantiles = fields.array('quantiles', (len(levels),))
        if len(levels) < 2 or (np.diff(levels) <= 0).any():
            fields.refuse('levels', levels.tolist(), 'expected two or more rising probabilities')
        if (np.diff(quantiles) < 0).any():
            fields.refuse('quantiles', quantiles.tolist(), 'quantiles rise with their level')
        return cls(fields.number('offset', minimum=1e-9), fields.number('slope', minimum=0.0),
                   levels, quantiles)
