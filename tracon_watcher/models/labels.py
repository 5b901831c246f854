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

"""What production measures of itself: slowdowns of VMs beside several others, with their error."""

from __future__ import annotations

import dataclasses

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray

# Error, in exponents, that every measurement has beside its own.
_LEAST_DEVIATION = 0.05


@dataclasses.dataclass(frozen=True)
class Labels:
    """n measured slowdowns on hosts of one type, beside m neighbours altogether.

    :param vm: (n,) a number for each VM, the same for the same VM
    :param target: (n, 4) uncontended demand of each VM
    :param neighbour: (m, 4) that of the neighbours
    :param owner: (m,) index of the VM whose neighbour it is
    :param share: (n,) of the whole excess, what these neighbours account for; above 0, to 1
    :param exponent: (n,) log slowdown
    :param deviation: (n,) its standard error
    """

    vm: IntArray
    target: FloatArray
    neighbour: FloatArray
    owner: IntArray
    share: FloatArray
    exponent: FloatArray
    deviation: FloatArray

    def __len__(self) -> int:
        return len(self.exponent)

    @property
    def weight(self) -> FloatArray:
        """(n,) how much each tells: one over the square of its error."""
        found: FloatArray = 1 / (self.deviation ** 2 + _LEAST_DEVIATION ** 2)
        return found

    def take(self, chosen: BoolArray) -> Labels:
        """Return the labels that (n,) selects, with their neighbours."""
        place = np.cumsum(chosen) - 1
        inside = chosen[self.owner]
        return Labels(self.vm[chosen], self.target[chosen], self.neighbour[inside],
                      place[self.owner[inside]].astype(np.intp), self.share[chosen],
                      self.exponent[chosen], self.deviation[chosen])
