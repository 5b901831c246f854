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

"""What the VMs on one host do to each other: every one beside every other one of its host."""

from __future__ import annotations

import dataclasses
from typing import Iterator

import numpy as np

from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher.prediction import pairwise

# Pairs that are looked at at once; a few megabytes.
_AT_ONCE = 1 << 18


@dataclasses.dataclass(frozen=True)
class Behaviour:
    """What m VMs suffer from and do to others, by one model; rows stand in host order.

    :param sensitivity: (m, 14)
    :param pressure: (m, 14) on those on the same host and storage
    :param cpu_pressure: (m, 14) on those on the same host whose storage is another one
    :param domain: (m,) storage
    """

    model: pairwise.PairwiseModel
    sensitivity: FloatArray
    pressure: FloatArray
    cpu_pressure: FloatArray
    domain: IntArray

    def excess(self, rows: IntArray) -> FloatArray:
        """Return what VMs do to each other, (k, m, m) for k hosts with m VMs each.

        :param rows: (k, m) the VMs of each host
        :returns: e of target (axis 1) beside neighbour (axis 2); 0 beside itself
        """
        sensitivity = self.sensitivity[rows]
        exponent = sensitivity @ self.pressure[rows].swapaxes(1, 2)
        apart = self.domain[rows][:, :, None] != self.domain[rows][:, None, :]
        if apart.any():
            without = sensitivity @ self.cpu_pressure[rows].swapaxes(1, 2)
            exponent = np.where(apart, without, exponent)
        found = self.model.excess(exponent)
        diagonal = np.arange(rows.shape[1])
        found[:, diagonal, diagonal] = 0.0
        return found


def sums(behaviour: Behaviour, place: IntArray, hosts: int) -> tuple[FloatArray, FloatArray]:
    """Return the sums of the parts of each VM's neighbours on its host, (m,) each.

    :param place: (m,) index of each VM's host, not falling
    """
    found = np.zeros(len(place)), np.zeros(len(place))
    for rows in by_size(place, hosts):
        for total, part in zip(found, behaviour.model.parts(behaviour.excess(rows))):
            total[rows] = part.sum(axis=2)
    return found


def by_size(place: IntArray, hosts: int) -> Iterator[IntArray]:
    """Yield the rows of hosts with equally many VMs, (k, m), some hosts at a time."""
    counts = np.bincount(place, minlength=hosts)
    first = np.cumsum(counts) - counts
    for size in np.unique(counts[counts > 1]):
        starts = first[counts == size]
        step = max(_AT_ONCE // int(size * size), 1)
        for begin in range(0, len(starts), step):
            yield starts[begin:begin + step, None] + np.arange(size)[None, :]
