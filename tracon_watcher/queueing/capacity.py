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

"""How much a resource does at once, by the number of loops that are ready for it.

A capacity is a row of numbers: the work done with 1, 2, … loops ready, in units of one loop alone.
With more loops than numbers it stays as the last one.
"""

from __future__ import annotations

import math

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.queueing import normal

#: What a second thread of a core adds, as a part of the first, until it is known of a host type.
THREAD_GAIN = 0.3
#: At most so many numbers are kept: more requests at once change little.
DEEPEST = 64
#: Values that observation may give: by which waits for cores are longer than the law says, and
#: requests that a disk serves at once; below 1 it serves one, and each wait is longer by its
#: inverse.
GAINS = tuple(2.0 ** (step / 4) for step in range(-4, 5))
DISKS = (0.5, 0.7, 1.0, 2.0, 4.0, 8.0, 32.0)


def servers(count: int) -> FloatArray:
    """Return the capacity of ``count`` equal servers, such as cores: min(k, count)."""
    if count < 1:
        raise ValueError(f'servers: {count} is less than 1')
    return np.arange(1.0, count + 1.0)


def at_most(count: FloatArray) -> FloatArray:
    """Return, as rows of one table, the capacities of so many servers: min(k, count).

    :param count: (n,), at least 1
    """
    depths = np.arange(1.0, math.ceil(count.max(initial=1.0)) + 1.0)
    return np.minimum(depths, count[:, np.newaxis])


def disks(at_once: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the capacities and the gains of disks, see :data:`DISKS`.

    :param at_once: (n,) requests that each serves at once, more than 0
    """
    return at_most(np.maximum(at_once, 1.0)), np.maximum(1.0 / at_once, 1.0)


def threads(count: FloatArray, cores: FloatArray, gain: float | FloatArray = THREAD_GAIN,
            busy: FloatArray | None = None) -> FloatArray:
    """Return how much ``busy`` threads do on cores with several threads each: SMT.

    Threads share a core only when each core has one: min(k, cores) + gain · (min(k, count) −
    cores)⁺.

    :param count: of threads, each in units of a core's only busy one
    :param cores: not more than threads
    :param gain: of each thread beyond the cores, 0 … 1
    :param busy: threads, all of them if not given
    :returns: capacity in units of a core with one busy thread
    """
    at_once = np.minimum(count if busy is None else busy, count)
    return np.minimum(at_once, cores) + gain * np.maximum(at_once - cores, 0.0)


def by_depth(depths: list[int], work: list[float]) -> FloatArray:
    """Return the capacity of a disk that was measured with some numbers of requests at once.

    Between those it is interpolated; beyond the deepest it stays. It never falls: who sends more
    at once than helps could send less.

    :param depths: of requests at once, in ascending order, beginning with 1
    :param work: requests a second at each, in any unit
    """
    if not depths or depths[0] != 1 or any(b <= a for a, b in zip(depths, depths[1:])):
        raise ValueError(f'depths: {depths} do not ascend from 1')
    if len(work) != len(depths) or not all(0.0 < one < np.inf for one in work):
        raise ValueError(f'work: {work} is not a positive number for each of the depths {depths}')
    found = np.interp(np.arange(1.0, min(depths[-1], DEEPEST) + 1.0), depths,
                      np.array(work) / work[0])
    rising: FloatArray = np.maximum.accumulate(found)
    return rising


def table(capacities: list[FloatArray]) -> FloatArray:
    """Return several capacities as rows of one array, each going on as it ends."""
    if not capacities:
        return np.ones((0, 1))
    longest = max(len(one) for one in capacities)
    return np.stack([np.pad(one, (0, longest - len(one)), mode='edge') for one in capacities])


def stretch(capacities: FloatArray, mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return E[(1 + N) / cap(1 + N)]: how long work takes beside N others, over that alone.

    N is what :func:`tracon_watcher.queueing.normal.excess` takes. Between whole numbers (1 + N) /
    cap is linear, so its mean is a sum over depths.

    :param capacities: (n, depths), a row for each
    :param mean: (n,) of the others that are ready
    :param deviation: (n,), more than 0
    :returns: (n,), at least 1
    """
    depths = capacities.shape[1]
    time = np.arange(1.0, depths + 1.0) / capacities
    slopes = np.concatenate([np.diff(time, axis=1), 1.0 / capacities[:, -1:]], axis=1)
    found = 1.0 + slopes[:, 0] * mean
    for depth in range(1, depths):
        change = slopes[:, depth] - slopes[:, depth - 1]
        if change.any():
            found += change * normal.excess(mean, deviation, float(depth))
    limited: FloatArray = np.maximum(found, 1.0)
    return limited
