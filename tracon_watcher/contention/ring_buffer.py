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

"""Ring buffers of time slots for each VM, and the estimate of demand over a window."""

from __future__ import annotations

import dataclasses
import math
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher.contention import calibration as documents
from tracon_watcher.contention import demand_estimator

#: Share of the largest, and of the smallest, that robust statistics leave out.
TRIM = 0.2
# Standard deviations from the middle beyond which that share of normally distributed values lies.
_BEYOND = 0.8416
_NONE = -1


class RingBuffer:
    """Rings of slots of n VMs.

    :param count: slots of a ring
    :param length: seconds that a slot covers
    :param columns: what is summed in each
    """

    def __init__(self, count: int, length: float, columns: int) -> None:
        self.length = length
        self._number: npt.NDArray[np.int32] = np.full((0, count), _NONE, dtype=np.int32)
        self._sums: npt.NDArray[np.float32] = np.zeros((0, count, columns), dtype=np.float32)

    @property
    def nbytes(self) -> int:
        """Bytes of all rings."""
        return self._number.nbytes + self._sums.nbytes

    def resize(self, count: int) -> None:
        """Have rings for so many VMs; those of new ones are empty."""
        self._number = resized(self._number, count, _NONE)
        self._sums = resized(self._sums, count, 0.0)

    def clear(self, rows: IntArray) -> None:
        """Forget all slots of these VMs."""
        self._number[rows] = _NONE
        self._sums[rows] = 0.0

    def add(self, rows: IntArray, at: FloatArray, values: FloatArray) -> None:
        """Add (m, columns) values to the slots that hold these times, of m different VMs.

        :param at: (m,) seconds, not before an earlier time of the same VM
        """
        number = (at // self.length).astype(np.int32)
        place = number % self._number.shape[1]
        begun = self._number[rows, place] != number
        self._sums[rows[begun], place[begun]] = 0.0
        self._number[rows, place] = number
        self._sums[rows, place] += values

    def put_back(self, rows: IntArray, seconds: float) -> None:
        """Move all slots of these VMs to times that are so much earlier."""
        count = math.ceil(seconds / self.length)
        number = self._number[rows]
        self._number[rows] = np.roll(np.where(number == _NONE, _NONE, number - count), -count, 1)
        self._sums[rows] = np.roll(self._sums[rows], -count, 1)

    def replace(self, rows: IntArray, sums: FloatArray) -> None:
        """Put other sums, (m, slots, columns), into the slots of these VMs."""
        self._sums[rows] = sums

    def sums(self, rows: IntArray, at: FloatArray) -> FloatArray:
        """Return the sums of these VMs, (m, slots, columns); 0 in slots older than the window.

        :param at: (m,) or one for all: seconds, where the window ends
        """
        oldest = np.asarray(at // self.length, dtype=np.int32) - self._number.shape[1]
        inside = self._number[rows] > np.atleast_1d(oldest)[:, None]
        return np.where(inside[:, :, None], self._sums[rows], 0.0)


_Scalar = TypeVar('_Scalar', bound=np.generic)


def resized(array: npt.NDArray[_Scalar], count: int, fill: float) -> npt.NDArray[_Scalar]:
    """Return the array with ``count`` rows, new ones filled."""
    if count <= len(array):
        return array[:count].copy()
    found = np.full((count, *array.shape[1:]), fill, dtype=array.dtype)
    found[:len(array)] = array
    return found


class Weighted:
    """Statistics along the last axis of values with weights; what weighs 0 does not count.

    The values' places are those of the middles of their weights, put side by side and taken
    for 1 in sum, so that three values of the same weight are at 1/6, 1/2 and 5/6.
    """

    def __init__(self, values: FloatArray, weights: FloatArray) -> None:
        order = np.argsort(np.where(weights > 0, values, np.inf), axis=-1, kind='stable')
        self._weights = np.take_along_axis(weights, order, axis=-1)
        total = self._weights.sum(axis=-1, keepdims=True)
        with np.errstate(invalid='ignore'):
            self._weights /= total
        values = np.take_along_axis(values, order, axis=-1)
        # The end is repeated, not that what weighs nothing gets into a sum.
        last = np.maximum((self._weights > 0).sum(axis=-1, keepdims=True) - 1, 0)
        self._values = np.where(self._weights > 0, values,
                                np.take_along_axis(values, last, axis=-1))
        self._values[np.broadcast_to(~(total > 0), values.shape)] = np.nan
        self._upper = np.cumsum(self._weights, axis=-1)

    def trimmed_mean(self) -> FloatArray:
        """Return the mean without the largest and the smallest, :data:`TRIM` of each, (...)."""
        kept = (np.clip(self._upper, TRIM, 1 - TRIM)
                - np.clip(self._upper - self._weights, TRIM, 1 - TRIM))
        with np.errstate(invalid='ignore'):
            mean: FloatArray = (kept * self._values).sum(axis=-1) / kept.sum(axis=-1)
        return mean

    def quantile(self, level: float) -> FloatArray:
        """Return the value at a level, (...), interpolated; beyond the outermost ones, these."""
        middle = self._upper - self._weights / 2
        above = (middle < level).sum(axis=-1, keepdims=True)
        right = np.minimum(above, middle.shape[-1] - 1)
        left = np.maximum(right - 1, 0)

        def at(of: FloatArray, place: IntArray) -> FloatArray:
            return np.take_along_axis(of, place, axis=-1)[..., 0]
        low, high = at(middle, left), at(middle, right)
        with np.errstate(invalid='ignore', divide='ignore'):
            share = np.where(high > low, (level - low) / (high - low), 1.0)
        share = np.clip(share, 0.0, 1.0)
        found: FloatArray = ((1 - share) * at(self._values, left)
                             + share * at(self._values, right))
        return found

    def deviation(self) -> FloatArray:
        """Return a standard deviation, (...), that the outermost values do not touch.

        It is that of a normal distribution with the same quantiles; of a single value 0.
        """
        spread: FloatArray = (self.quantile(1 - TRIM) - self.quantile(TRIM)) / (2 * _BEYOND)
        return spread


#: Below these there is no telling demands apart: requests a second, cores.
LEAST = np.array([5.0, 5.0, 0.05, 0.05])
# By how much a demand differs from slot to slot anyway, as a share; no slot tells more exactly.
_VARIES = 0.1
# Of a VM with fewer slots than this its spread is not known, and taken for this share of it.
_FEW, _UNSURE = 3, 0.5


@dataclasses.dataclass(frozen=True)
class WindowEstimate:
    """What the windows of n VMs say.

    :param mean: (n, 4) demand, NaN of an empty window
    :param spread: (n, 4) standard deviation between slots
    :param correction: (n, 4) standard error of the correction
    :param slots: (n,) slots that something is known of
    """

    mean: FloatArray
    spread: FloatArray
    correction: FloatArray
    slots: IntArray

    def scatter(self) -> FloatArray:
        """Return the standard deviation, (n, 4), of an interval in which nothing has changed."""
        spread = np.where((self.slots < _FEW)[:, None],
                          np.maximum(self.spread, _UNSURE * self.mean), self.spread)
        return np.hypot(spread, self.correction)

    def unknown(self) -> FloatArray:
        """Return the standard deviation of what is not known of the demand, (n, 4).

        Of a single slot, as uncertain as the demand is large; of few, the spread is uncertain as
        well, as Student's t has it.
        """
        count = np.maximum(self.slots, 2)[:, None]
        spread = np.where(self.slots[:, None] > 1,
                          self.spread * np.sqrt((count + 1) / (count - 1)),
                          np.maximum(self.mean, LEAST))
        deviation: FloatArray = np.hypot(spread, self.correction)
        return deviation


def window_estimate(seconds: FloatArray, usage: demand_estimator.Usage,
                    baseline: demand_estimator.Baseline,
                    learnt: documents.Calibrated, vcpus: FloatArray,
                    bounds: demand_estimator.Bounds | None = None) -> WindowEstimate:
    """Return what windows say.

    :param seconds: (n, s) that were seen in each of s slots; 0 for nothing
    :param usage: of the n × s slots
    :param baseline: of these
    :param vcpus: (n,)
    :param bounds: what owners allow in each of the n × s slots, by default anything
    """
    count, width = seconds.shape
    found = demand_estimator.uncontended(usage, baseline, learnt, np.repeat(vcpus, width), bounds)
    seen = seconds > 0
    # (n, 4, s)
    demands, deviations = (np.moveaxis(values.reshape(count, width, -1), 1, 2)
                           for values in (found.demand, found.deviation))
    weights = seconds / (_VARIES ** 2 + np.mean(np.square(deviations), axis=1))
    weights = np.broadcast_to(np.where(seen, weights, 0.0)[:, None, :], demands.shape)
    middle = Weighted(np.where(seen[:, None, :], demands, 0.0), weights)
    mean, total = middle.trimmed_mean(), weights.sum(axis=2)
    with np.errstate(invalid='ignore', divide='ignore'):
        relative = np.sqrt((weights * np.where(seen[:, None, :], deviations, 0.0) ** 2
                            ).sum(axis=2) / total)
    return WindowEstimate(mean, middle.deviation(), relative * mean, seen.sum(axis=1))
