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

"""How VMs share the cores of a host: fairly between VMs, by weight, as control groups do.

With R_g of the vCPUs of VM g ready, it is served min(R_g, w_g t), where the level t fills the
cores: Σ_g min(R_g, w_g t) = c. At level t the others of VM i take F(t) = Σ_{g≠i} min(R_g, w_g t),
a sum of independent parts, of mean M(t) and variance V(t). So the level that i meets with k ready
is less than t with the probability

    Q(t) = P(F(t) > c − w_i t)

and 0 below the lowest level there can be, c / Σ_g w_g. Each of i's ready vCPUs takes for its work,
in units of that alone,

    s_i(k) = E[(k / w_i) / min(t, k / w_i)] = 1 + (k / w_i) ∫₀^{k/w_i} Q(t) / t² dt

if the others stay as they are meanwhile, and where vCPUs share evenly that is exact (processor
sharing has a product form). A VM of little weight among heavy ones waits so long that it meets
their mean instead, w_i ∫₀^{k/w_i} (1 − Q(t)) dt served. What i is served, x_i(k), lies between by
its weight over the mean weight of its others. How many of its v_i vCPUs are ready follows (birth
and death):

    P_i(k) ∝ Π_{j≤k} (v_i − j + 1) o_i / x_i(j),    o_i = a_i / z_i

where a_i is a vCPU's time on the CPU and z_i its other time, in units of a unit of work alone.
"""

from __future__ import annotations

import copy
import dataclasses

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray
from tracon_watcher.queueing import capacity
from tracon_watcher.queueing import normal

#: Levels at which sums are kept, from the lowest there can be to where each VM is served whole.
#: One more than a power of two: their ratio is then a root that every CPU takes alike.
LEVELS = 17
#: How many times as often as alone a VM may be ready beside others.
_OFTEN = 20.0
_TINY = 1e-12
_NO_LOOPS = 1e-9
_NOT_OF_VMS = ('_begin', '_count')
#: Numbers beyond it are scaled down before they overflow.
_LARGE = 1e100


@dataclasses.dataclass(frozen=True)
class State:
    """What VMs take of their hosts' cores.

    :ivar mean: (VMs, levels), the mean of min(R, w t)
    :ivar variance: (VMs, levels), its variance
    :ivar served: (VMs,), cores that each is served, in the mean
    """

    mean: FloatArray
    variance: FloatArray
    served: FloatArray


class ProcessorSharing:
    """VMs that share the cores of hosts."""

    def __init__(self, cores: FloatArray, physical: FloatArray, host: IntArray,
                 vcpus: IntArray, weight: FloatArray, used: FloatArray,
                 gain: FloatArray, residents: ProcessorSharing | None = None) -> None:
        """Prepare what does not change with the state.

        :param cores: (hosts,), threads that VMs share
        :param physical: (hosts,), cores that these threads are of
        :param host: (VMs,), in ascending order
        :param vcpus: (VMs,)
        :param weight: (VMs,), of which only the ratio on a host matters
        :param used: (VMs,), time on the CPU of each vCPU, 0 … 1
        :param gain: (hosts,), by which the wait is longer than the law says
        :param residents: if each of these VMs is one more on its host, the VMs that are there
        """
        self._host, self._vcpus, self._weight, self._used = host, vcpus, weight, used
        self._begin = np.flatnonzero(np.diff(host, prepend=-1))
        self._segment = np.cumsum(np.diff(host, prepend=-1) > 0) - 1
        self._cores, self._physical = cores[host], physical[host]
        self._gain = gain[host][:, np.newaxis]
        self._most = int(vcpus.max(initial=1))
        self._count = np.arange(1.0, self._most + 1.0)

        if residents is None:
            # A VM of next to no demand does not move the levels of the others.
            there = np.minimum(_OFTEN * vcpus * used, 1.0)
            greatest = self._greatest(weight)
            # There is room for a newcomer.
            lowest = self._cores / (np.maximum(self.total(weight * there), greatest) + greatest)
            highest = np.maximum(self._greatest(np.maximum(vcpus * there, 1.0) / weight), lowest)
            self._levels = _spread(lowest, highest)
            others = self.total(vcpus * used) - vcpus * used
            weights = self.total(weight * vcpus * used) - weight * vcpus * used
        else:
            levels = residents._levels[residents._begin]
            # Beyond theirs, all of them are served whole. Theirs leave room for one that weighs
            # what the heaviest of them does; one that weighs more meets lower ones.
            self._levels = np.column_stack([
                self._cores / (self._cores / levels[:, 0] + weight), levels,
                np.maximum(vcpus / weight, levels[:, -1])])
            lowest, highest = self._levels[:, 0], self._levels[:, -1]
            others, weights = residents._size[residents._begin].T
        self._taken = weight[:, np.newaxis] * self._levels
        self._room = self._cores[:, np.newaxis] - self._taken
        self._width = np.diff(self._levels, axis=1)
        self._inverse = -np.diff(1.0 / self._levels, axis=1)

        top = self._count / weight[:, np.newaxis]
        self._top = top
        inside = np.clip(top, lowest[:, np.newaxis], highest[:, np.newaxis])
        self._place = np.minimum((self._levels[:, np.newaxis, :] <= inside[:, :, np.newaxis])
                                 .sum(axis=2) - 1, self._levels.shape[1] - 2)
        below = np.take_along_axis(self._levels, self._place, axis=1)
        self._part = inside - below
        self._widths = np.maximum(np.take_along_axis(self._width, self._place, axis=1), _TINY)
        self._inverse_part = 1.0 / below - 1.0 / inside
        self._fraction = self._inverse_part / np.maximum(
            np.take_along_axis(self._inverse, self._place, axis=1), _TINY)
        self._assured = np.minimum(top, lowest[:, np.newaxis])

        self._size: FloatArray = np.column_stack([self.total(vcpus * used),
                                                  self.total(weight * vcpus * used)])
        self._even = np.minimum(weight * others / np.maximum(weights, _TINY), 1.0)[:, np.newaxis]

        whole = np.minimum(self._taken, vcpus[:, np.newaxis])
        self.most = whole
        self._whole = whole.astype(np.intp)
        self._rest = whole - self._whole
        self._rest_square = whole ** 2 - self._whole ** 2

    def __len__(self) -> int:
        return len(self._host)

    def some(self, rows: IntArray) -> ProcessorSharing:
        """Return some of the VMs, also several times, each beside whatever others are given."""
        found = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and name not in _NOT_OF_VMS:
                setattr(found, name, value[rows])
        return found

    def newcomers(self, vcpus: int, weight: float, used: FloatArray | float) -> ProcessorSharing:
        """Return what is one more VM on each host that has any, each beside the VMs there.

        It has two levels more than these: see :meth:`on_levels`.
        """
        count = len(self._begin)
        hosts = np.arange(count)
        return ProcessorSharing(self._cores[self._begin], self._physical[self._begin], hosts,
                                np.full(count, vcpus), np.full(count, weight),
                                np.broadcast_to(used, count).astype(float),
                                self._gain[self._begin, 0], self)

    def on_levels(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what VMs take at a newcomer's levels, of what they take at their own.

        Below their lowest level each takes its share of it; at the highest one, as at their last,
        they are served whole.

        :param mean: (hosts, levels)
        :param variance: (hosts, levels)
        """
        part = self._levels[:, 0] / self._levels[:, 1]
        return (np.column_stack([part * mean[:, 0], mean, mean[:, -1]]),
                np.column_stack([part ** 2 * variance[:, 0], variance, variance[:, -1]]))

    def of_hosts(self, values: FloatArray) -> FloatArray:
        """Return the sum over the VMs of each host that has any.

        :param values: (VMs, …)
        """
        found: FloatArray = np.add.reduceat(values, self._begin, axis=0)
        return found

    def on_hosts(self, values: FloatArray) -> FloatArray:
        """Return for each VM what is given for its host, of those that have any.

        :param values: (hosts with VMs, …)
        """
        found: FloatArray = values[self._segment]
        return found

    def _greatest(self, values: FloatArray) -> FloatArray:
        found: FloatArray = np.maximum.reduceat(values, self._begin)[self._segment]
        return found

    def total(self, values: FloatArray) -> FloatArray:
        """Return the sum over the VMs of its host for each VM.

        :param values: (VMs, …)
        """
        return self.on_hosts(self.of_hosts(values))

    def alone(self, other: FloatArray) -> State:
        """Return the state of VMs each of which is alone.

        :param other: (VMs,), other time of each vCPU in a unit of work
        """
        return self._state(np.minimum(self._count, self._cores[:, np.newaxis]), other)

    def beside(self, mean: FloatArray, variance: FloatArray, other: FloatArray) -> State:
        """Return the state of VMs beside others.

        :param mean: (VMs, levels), what the others of each take at each level, in the mean
        :param variance: (VMs, levels), of what they take
        :param other: (VMs,), other time of each vCPU in a unit of work
        """
        deviation = np.sqrt(np.maximum(variance, _TINY))
        scale = normal.scale(mean, deviation)
        spare = self._room / scale - mean
        # Between two levels, the deviation is the one where the spare cores end, or nearest to it.
        fraction = np.clip(spare[:, :-1] / np.maximum(-np.diff(spare, axis=1), _TINY), 0.0, 1.0)
        deviation = deviation[:, :-1] + fraction * np.diff(deviation, axis=1)
        # It grows with the level; were there single vCPUs alone, just as the level.
        level = self._levels[:, :-1] + fraction * self._width
        begin, end = spare[:, :-1] / deviation, spare[:, 1:] / deviation
        steps, last = self._steps(begin, end, self._part / self._widths)
        fluid = self._weight[:, np.newaxis] * (
            self._assured + self._up_to((1.0 - steps) * self._width) + (1.0 - last) * self._part)

        begin, end = begin * level / self._levels[:, :-1], end * level / self._levels[:, 1:]
        steps, last = self._steps(begin, end, self._fraction)
        # What the normal distribution has below the lowest level belongs to the mean.
        tail = normal.integral_beyond(begin[:, :1]) * self._inverse[:, :1] / np.minimum(
            end[:, :1] - begin[:, :1], -_TINY)
        frozen = self._count / (1.0 + self._top * (
            tail + self._up_to(steps * self._inverse) + last * self._inverse_part))
        served = np.minimum(self._even * frozen + (1.0 - self._even) * fluid, self._count)
        # A loop that is alone gets the cores whole, and fills them at most.
        served = np.where(mean[:, -1:] < _NO_LOOPS, self._count, served)
        served = np.minimum(served, self._cores[:, np.newaxis])
        served = self._count / (1.0 + self._gain * (self._count / served - 1.0))
        busy = np.clip(mean[:, -1:] + self._count, 1.0, self._cores[:, np.newaxis])
        return self._state(served * self._speed(busy), other)

    def _steps(self, begin: FloatArray, end: FloatArray,
               fraction: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Q between levels, and that in the first part of each number's own step."""
        first = np.take_along_axis(begin, self._place, axis=1)
        last = np.take_along_axis(end, self._place, axis=1)
        return (normal.mean_beyond(begin, end),
                normal.mean_beyond(first, first + fraction * (last - first)))

    def _up_to(self, steps: FloatArray) -> FloatArray:
        """Return the sum of the steps below the place of each number of vCPUs."""
        sums = np.concatenate([np.zeros((len(steps), 1)), np.cumsum(steps, axis=1)], axis=1)
        return np.take_along_axis(sums, self._place, axis=1)

    def _speed(self, busy: FloatArray) -> FloatArray:
        """Return how fast a thread is when so many are busy, in units of one alone."""
        shape = (slice(None), np.newaxis)
        found: FloatArray = capacity.threads(self._cores[shape], self._physical[shape],
                                             busy=busy) / busy
        return found

    def _state(self, served: FloatArray, other: FloatArray) -> State:
        """Return the state of VMs that are served so much by the number ready.

        :param served: (VMs, most vCPUs)
        """
        odds = self._used / other
        chances = np.zeros((len(odds), self._most + 1))
        chances[:, 0] = 1.0
        for ready in range(1, self._most + 1):
            idle = np.maximum(self._vcpus - ready + 1, 0)
            chances[:, ready] = chances[:, ready - 1] * odds * idle / served[:, ready - 1]
            if chances[:, ready].max() > _LARGE:
                chances[chances[:, ready] > _LARGE] /= _LARGE
        sums = np.cumsum(chances, axis=1)
        chances /= sums[:, -1:]
        # P(R ≥ j), j = 1 … most + 1, by which E[min(R, y)] = ∫₀^y P(R > u) du.
        least = np.cumsum(chances[:, :0:-1], axis=1)[:, ::-1]
        least = np.concatenate([least, np.zeros((len(odds), 1))], axis=1)
        none = np.zeros((len(odds), 1))
        first = np.concatenate([none, np.cumsum(least, axis=1)], axis=1)
        second = np.concatenate([none, np.cumsum(least[:, :-1] * (2.0 * self._count - 1.0),
                                                 axis=1)], axis=1)
        after = np.take_along_axis(least, self._whole, axis=1)
        mean = np.take_along_axis(first, self._whole, axis=1) + self._rest * after
        square = np.take_along_axis(second, self._whole, axis=1) + self._rest_square * after
        return State(mean, np.maximum(square - mean * mean, 0.0),
                     np.cumsum(chances[:, 1:] * served, axis=1)[:, -1])


def _spread(lowest: FloatArray, highest: FloatArray) -> FloatArray:
    """Return levels in even ratios, (VMs, levels)."""
    step = highest / lowest
    between = LEVELS - 1
    while between > 1:
        step, between = np.sqrt(step), between // 2
    levels = np.empty((len(lowest), LEVELS))
    levels[:, 0] = lowest
    for place in range(1, LEVELS):
        levels[:, place] = levels[:, place - 1] * step
    levels[:, -1] = highest
    return levels
