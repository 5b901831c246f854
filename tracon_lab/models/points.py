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

"""Measured points as arrays, as the models want them."""

from __future__ import annotations

import dataclasses
from typing import Iterable
from typing import Sequence

import numpy as np
import numpy.typing as npt

from tracon_watcher.characteristics import BoolArray
from tracon_watcher.characteristics import COUNT
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray
from tracon_watcher import errors

StringArray = npt.NDArray[np.str_]

#: Kinds of points that may be learnt from: those with the generator on one side at least. Pairs of
#: programs are the truth that schedules are judged by, and repeats tell the noise; neither is ever
#: fitted.
FITTED = ('background', 'generator', 'reverse')
#: All kinds with one other beside the target.
BESIDE = (*FITTED, 'pair', 'repeat')


@dataclasses.dataclass(frozen=True)
class Points:
    """n measured points of one host type.

    :param kind: (n,) see :data:`tracon_lab.models.dataset.KINDS`
    :param target: (n,) name of the program whose response was measured
    :param background: (n,) name of the program or generator setting beside it
    :param target_alone: (n, 4) the target's characteristics alone
    :param background_alone: (n, 4) the background's, alone
    :param slowdown: (n,) NaN where undefined
    :param iops_ratio: (n,) NaN where undefined
    :param observed: (n, 4) target's and background's characteristics during the point, added up;
        NaN where not measured
    """

    host_type: str
    kind: StringArray
    target: StringArray
    background: StringArray
    target_alone: FloatArray
    background_alone: FloatArray
    slowdown: FloatArray
    iops_ratio: FloatArray
    observed: FloatArray

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, index: BoolArray | IntArray) -> Points:
        """Return the points that ``index`` selects."""
        return Points(self.host_type, *(
            getattr(self, field.name)[index] for field in dataclasses.fields(self)[1:]))

    def response(self, name: str) -> FloatArray:
        """Return the ``slowdown`` or the ``iops_ratio``, (n,)."""
        values: FloatArray = getattr(self, name)
        return values

    def defined(self, response: str, kinds: Sequence[str]) -> Points:
        """Return the points of these kinds whose response and characteristics are defined.

        :raises tracon_watcher.errors.InvalidDocument: when a response is not above zero
        """
        values = self.response(response)
        known = (np.isfinite(values) & np.isfinite(self.target_alone).all(axis=1)
                 & np.isfinite(self.background_alone).all(axis=1))
        chosen = self.take(known & np.isin(self.kind, kinds))
        wrong = np.flatnonzero(chosen.response(response) <= 0)
        if len(wrong):
            raise errors.InvalidDocument(
                f'measurements of {self.host_type}',
                f'{response} of {chosen.target[wrong[0]]} beside {chosen.background[wrong[0]]}',
                float(chosen.response(response)[wrong[0]]), 'expected a ratio above 0')
        return chosen

    def log_response(self, response: str) -> FloatArray:
        """Return log slowdown, or minus log IOPS ratio, (n,)."""
        values: FloatArray = np.log(self.response(response))
        return values if response == 'slowdown' else -values


def design(points: Points) -> FloatArray:
    """Return the eight columns of models, (n, 8): target alone, background alone."""
    return np.hstack([points.target_alone, points.background_alone])


def from_log_response(log_response: FloatArray, response: str) -> FloatArray:
    """Return the response of which (n,) is the log response."""
    values: FloatArray = np.exp(log_response if response == 'slowdown' else -log_response)
    return values


def join(parts: Sequence[Points]) -> Points:
    """Return the points of several measurements of one host type, one after the other."""
    return Points(parts[0].host_type, *(
        np.concatenate([getattr(part, field.name) for part in parts])
        for field in dataclasses.fields(Points)[1:]))


def by_host_type(parts: Iterable[Points]) -> list[Points]:
    """Return the points joined by host type, in the order in which host types appear."""
    found: dict[str, list[Points]] = {}
    for part in parts:
        found.setdefault(part.host_type, []).append(part)
    return [join(same) for same in found.values()]


def capacity(points: Points) -> FloatArray:
    """Return what the host type can do, (4,): the most that was seen of each characteristic.

    Solo windows count, and what target and background achieved together; pairs and repeats do
    not, since nothing of a model may rest on them. A characteristic never seen counts as 1.
    """
    seen = points.take(np.isin(points.kind, ('solo', *FITTED)))
    most = np.fmax.reduce(np.vstack([np.zeros(COUNT), seen.target_alone, seen.background_alone,
                                     seen.observed]))
    return np.where(most > 0, most, 1.0)


def folds(names: StringArray, count: int) -> IntArray:
    """Deal distinct names out to ``count`` folds, (n,); equal names share a fold.

    The order of the names decides, no chance: neighbouring settings of the generator, whose
    names sort together, fall into different folds.
    """
    distinct, index = np.unique(names, return_inverse=True)
    fold: IntArray = (np.arange(len(distinct)) % count)[index].astype(np.intp)
    return fold
