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

"""A stored weighted-mean model (WMM) of one application, evaluated with numpy alone."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from tracon_lab.models import application
from tracon_watcher.characteristics import COUNT
from tracon_watcher.characteristics import FloatArray
from tracon_watcher import document
from tracon_watcher import tie_breaking

_WIDTH = 2 * COUNT
_ARRAYS = ('mean', 'scale', 'components', 'points', 'responses')


def weighted_mean(scores: FloatArray, points: FloatArray, responses: FloatArray,
                  neighbours: int) -> FloatArray:
    """Return the mean of the nearest points' responses, weighted by 1/distance, shape (n,).

    Of points that are equally near the first ones count.

    :param scores: (n, k) where to predict, in the space of the principal components
    :param points: (m, k) training points in that space
    :param responses: (m,)
    :param neighbours: how many nearest points count
    """
    squares = np.sum((scores[:, None, :] - points) ** 2, axis=2)
    nearest = tie_breaking.argsort(squares)[:, :neighbours]
    distances = np.sqrt(np.take_along_axis(squares, nearest, axis=1))
    # Rounding makes a point that coincides with a training point look a hair away from it.
    spread = np.sqrt(np.max(np.sum(points ** 2, axis=1), initial=0.0))
    same = distances <= 1e-12 * spread
    weights = np.where(same.any(axis=1, keepdims=True), same,
                       1.0 / np.where(same, 1.0, distances))
    mean: FloatArray = (weights * responses[nearest]).sum(axis=1) / weights.sum(axis=1)
    return mean


@dataclasses.dataclass(frozen=True)
class WeightedMeanModel:
    """The nearest training points in component space (Chiang & Huang, TRACON, SC'11, §3.1).

    :param mean: (8,) subtracted from the columns of X
    :param scale: (8,) by which they are divided then; infinite where a column was constant
    :param components: (k, 8) principal components
    :param points: (m, k) the training points' scores
    :param responses: (m,)
    """

    head: application.Head
    mean: FloatArray
    scale: FloatArray
    components: FloatArray
    points: FloatArray
    responses: FloatArray
    neighbours: int

    form: ClassVar[str] = 'weighted_mean'

    def predict(self, target: FloatArray, background: FloatArray) -> FloatArray:
        """Return the response, (n,), for (n, 4) targets and backgrounds, clamped to the hull."""
        values = (self.head.hull.clamp(target, background) - self.mean) / self.scale
        return weighted_mean(values @ self.components.T, self.points, self.responses,
                             self.neighbours)

    def to_document(self) -> dict[str, Any]:
        """Return the sealed JSON form; a scale of 0 stands for an infinite one."""
        content = {**self.head.to_document(self.form), 'neighbours': self.neighbours,
                   **{name: getattr(self, name).tolist() for name in _ARRAYS}}
        content['scale'] = np.where(np.isinf(self.scale), 0.0, self.scale).tolist()
        return document.sealed(content)

    @classmethod
    def from_fields(cls, fields: document.Fields) -> WeightedMeanModel:
        """Read the JSON form.

        :raises tracon_watcher.errors.InvalidDocument: naming the offending field
        """
        fields.only((*application.FIELDS, 'neighbours', *_ARRAYS))
        head = application.Head.from_fields(fields, cls.form)
        responses = fields.array('responses', (-1,), minimum=0.0)
        components = fields.array('components', (-1, _WIDTH))
        neighbours = fields.number('neighbours', minimum=1.0, maximum=float(len(responses)))
        if neighbours != round(neighbours):
            fields.refuse('neighbours', neighbours, 'expected a whole number')
        scale = fields.array('scale', (_WIDTH,), minimum=0.0)
        model = cls(head, fields.array('mean', (_WIDTH,)), np.where(scale > 0, scale, np.inf),
                    components, fields.array('points', (len(responses), len(components))),
                    responses, int(neighbours))
        fields.check_seal('run `tracon model fit` again')
        return model
