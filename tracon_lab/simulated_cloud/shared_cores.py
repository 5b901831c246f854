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
"""What VMs that share the cores of a host really do to each other: the truth of the simulation.

It knows nothing of :mod:`tracon_watcher.queueing`, and uses none of its means: draws of how many
vCPUs of each VM are ready share the cores as control groups do, one by one.
"""

from __future__ import annotations

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray

#: Draws of a host's ready vCPUs, rounds at most, and change of the shares that ends them.
DRAWS, ROUNDS, CHANGE = 128, 30, 1e-3
#: Hosts with so many standard deviations of spare cores are not drawn: no vCPU waits there.
_SURE = 4.0
#: Numbers that are worked on at a time.
_AT_ONCE = 4_000_000


class SharedCores:
    """Hosts with a number of cores each.

    :param cores: of each host
    :param seed: of the draws, which are the same in all intervals
    """

    def __init__(self, cores: int, seed: int) -> None:
        self._cores, self._rng = cores, np.random.default_rng(seed)
        self._drawn = np.empty((0, DRAWS))

    def slowdowns(self, host: IntArray, vcpus: IntArray, used: FloatArray,
                  ready: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return how much VMs slow each other down.

        A vCPU works for a part a of its time alone, and is ready for a part p of its time, which
        grows with the stretch s of its work: p = a s / (1 − a + a s). With R vCPUs ready, a VM is
        served min(R, t) cores, where the level t fills the cores, and s = E[R] / E[min(R, t)].
        VMs are ready independently of each other.

        :param host: (VMs,)
        :param vcpus: (VMs,)
        :param used: (VMs,) a, more than 0 and less than 1
        :param ready: (VMs,) p to begin with, NaN where unknown, as in the interval before
        :returns: (VMs,) time for a unit of work over that alone, S = 1 + a (s − 1); and p
        """
        order = np.lexsort((-vcpus, host))
        place = np.empty(len(host), dtype=np.intp)
        begin = np.flatnonzero(np.diff(host[order], prepend=-1))
        size = np.diff(np.append(begin, len(host)))
        place[order] = np.arange(len(host)) - np.repeat(begin, size)
        row = np.empty(len(host), dtype=np.intp)
        row[order] = np.repeat(np.arange(len(begin)), size)
        shape = len(begin), int(size.max(initial=0))
        count, share, start = np.zeros(shape, dtype=np.intp), np.zeros(shape), np.zeros(shape)
        count[row, place], share[row, place] = vcpus, used
        start[row, place] = used if ready is None else np.where(np.isnan(ready), used, ready)
        stretch = np.ones(shape)
        load = (count * share).sum(axis=1)
        spread = np.sqrt((count * share * (1.0 - share)).sum(axis=1))
        busy = np.flatnonzero(load + _SURE * spread + 1.0 > self._cores)
        while self._drawn.shape[0] < shape[1]:
            # Of each VM the draws are spread evenly, so that its own mean is right.
            one = (np.arange(DRAWS) + self._rng.uniform(size=DRAWS)) / DRAWS
            self._drawn = np.vstack([self._drawn, self._rng.permutation(one)])
        step = max(_AT_ONCE // (DRAWS * max(shape[1], 1)), 1)
        for first in range(0, len(busy), step):
            some = busy[first:first + step]
            stretch[some], start[some] = self._solved(count[some], share[some], start[some])
        return (1.0 + used * (stretch[row, place] - 1.0), start[row, place])

    def _solved(self, vcpus: IntArray, used: FloatArray,
                ready: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return stretches and p of VMs, (hosts, VMs), the largest of each host first."""
        stretch = np.ones(used.shape)
        left = np.arange(len(used))
        for number in range(ROUNDS):
            served, wanted = self._served(vcpus[left], ready[left])
            found = np.where(served > 0.0, wanted / np.maximum(served, 1e-9), 1.0)
            stretch[left] = found
            new = used[left] * found / (1.0 - used[left] + used[left] * found)
            change = np.abs(new - ready[left]).max(axis=1)
            ready[left] = new if number < 3 else (new + ready[left]) / 2.0
            left = left[change > CHANGE]
            if not len(left):
                break
        return stretch, ready

    def _served(self, vcpus: IntArray, ready: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean cores that VMs are served, and want, (hosts, VMs)."""
        hosts, count = vcpus.shape
        wanted = np.zeros((hosts, count, DRAWS), dtype=np.int8)
        drawn = self._drawn[:count]
        largest = int(vcpus.max(initial=1))
        # By a binomial distribution: R is how many sums of its chances are below the draw.
        chance = (1.0 - ready) ** vcpus
        odds = ready / np.maximum(1.0 - ready, 1e-9)
        total = chance.copy()
        # Of each host the largest come first: so many columns have a VM with more vCPUs.
        widths = [int(np.count_nonzero((vcpus > one).any(axis=0))) for one in range(largest)]
        for one, width in enumerate(widths):
            wanted[:, :width] += ((drawn[:width] > total[:, :width, np.newaxis])
                                  & (vcpus[:, :width] > one)[:, :, np.newaxis])
            chance = chance * odds * np.maximum(vcpus - one, 0) / (one + 1)
            total += chance
        # G(j) = Σ min(R, j) grows by how many VMs have more than j ready; the level lies between.
        level = np.full((hosts, DRAWS), float(largest))
        below, found = np.zeros((hosts, DRAWS)), np.zeros((hosts, DRAWS), dtype=bool)
        for one, width in enumerate(widths):
            more = (wanted[:, :width] > one).sum(axis=1)
            here = ~found & (below + more > self._cores)
            level[here] = one + (self._cores - below[here]) / more[here]
            found |= here
            below += more
        served = np.minimum(wanted, level[:, np.newaxis, :])
        return served.mean(axis=2), wanted.mean(axis=2)
