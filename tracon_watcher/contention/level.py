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

"""What the window of a VM says of its demand: one estimate for each slot, and their middle.

A slot in which the VM was not disturbed tells its demand far better than one in which it was, and
weighs by the inverse of its variance. The middle is a trimmed mean, so that a slot unlike the
others does not count.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher.contention import calibration_document as documents
from tracon_watcher.contention import demand
from tracon_watcher.contention import slots

#: Below these there is no telling demands apart: requests a second, cores.
LEAST = np.array([5.0, 5.0, 0.05, 0.05])
# By how much a demand differs from slot to slot anyway, as a share; no slot tells more exactly.
_VARIES = 0.1
# Of a VM with fewer slots than this its spread is not known, and taken for this share of it.
_FEW, _UNSURE = 3, 0.5


@dataclasses.dataclass(frozen=True)
class Level:
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


def level(seconds: FloatArray, usage: demand.Usage, baseline: demand.Baseline,
          learnt: documents.Calibrated, vcpus: FloatArray,
          bounds: demand.Bounds | None = None) -> Level:
    """Return what windows say.

    :param seconds: (n, s) that were seen in each of s slots; 0 for nothing
    :param usage: of the n × s slots
    :param baseline: of these
    :param vcpus: (n,)
    :param bounds: what owners allow in each of the n × s slots, by default anything
    """
    count, width = seconds.shape
    found = demand.uncontended(usage, baseline, learnt, np.repeat(vcpus, width), bounds)
    seen = seconds > 0
    # (n, 4, s)
    demands, deviations = (np.moveaxis(values.reshape(count, width, -1), 1, 2)
                           for values in (found.demand, found.deviation))
    weights = seconds / (_VARIES ** 2 + np.mean(np.square(deviations), axis=1))
    weights = np.broadcast_to(np.where(seen, weights, 0.0)[:, None, :], demands.shape)
    middle = slots.Weighted(np.where(seen[:, None, :], demands, 0.0), weights)
    mean, total = middle.trimmed_mean(), weights.sum(axis=2)
    with np.errstate(invalid='ignore', divide='ignore'):
        relative = np.sqrt((weights * np.where(seen[:, None, :], deviations, 0.0) ** 2
                            ).sum(axis=2) / total)
    return Level(mean, middle.deviation(), relative * mean, seen.sum(axis=1))
