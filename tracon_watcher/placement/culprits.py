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

"""Of all VMs at once: who slows each down most, and what each costs the others.

To leave out each VM in turn, as :mod:`~tracon_watcher.placement.attribution` does, would take a
solution for each pair. Here what a VM suffers is put down to those who take the cores, the disk or
the pool that it waits for, by how much of each they take.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import queues
from tracon_watcher import tie_breaking

#: Less of an excess is rounding, which no VM causes.
_NOTHING = 1e-9


@dataclasses.dataclass(frozen=True)
class Culprits:
    """Arrays over the n residents of a cluster.

    :param culprit: (n,) row of the VM that does most to each; -1 for none or unknown
    :param share: (n,) of the excess, that VM's; NaN where unknown
    :param harm: (n,) exponents, log slowdown and −log IOPS ratio together, that each adds to what
        others suffer, wherever they are; NaN where unknown
    """

    culprit: IntArray
    share: FloatArray
    harm: FloatArray


def find(assessor: assessment.Assessor) -> Culprits:
    """Find the worst culprit of every resident, and the harm every one does to others."""
    law, count = assessor.law, len(assessor.cluster.uuids)
    culprit, share = np.full(count, -1, dtype=np.intp), np.full(count, np.nan)
    harm = np.full(count, np.nan)
    if len(law.residents):
        who, most, done = _of_law(law)
        culprit[law.residents] = np.where(who >= 0, law.residents[who], -1)
        share[law.residents] = most
        harm[law.residents] = done
    return Culprits(culprit, share, harm)


def _of_law(law: queues.Queues) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the worst culprit of each resident, -1 for none, its share, and each one's harm."""
    parts = law.parts()
    suffered = np.nan_to_num(law.by_neighbours).sum(axis=0)
    something = np.expm1(law.by_neighbours[0]) > _NOTHING
    harm = np.zeros(len(suffered))
    others = []
    for part in parts:
        total = np.bincount(part.key + 1, part.amount)
        rest = np.maximum(total[part.key + 1] - part.amount, 1e-9)
        others.append(rest)
        each = suffered * part.share / rest
        harm += part.amount * (np.bincount(part.key + 1, each)[part.key + 1] - each)
    culprit, most = np.full(len(harm), -1, dtype=np.intp), np.zeros(len(harm))
    for part in parts:
        candidate = _largest_other(part)
        relief = np.zeros(len(harm))
        for one, rest in zip(parts, others):
            together = one.key[candidate] == one.key
            relief += np.where(together, one.share * one.amount[candidate] / rest, 0.0)
        # Of equals the one that was looked at first, not the one that rounding favours.
        worse = (candidate >= 0) & something & tie_breaking.less(most, relief)
        culprit[worse], most[worse] = candidate[worse], relief[worse]
    return culprit, np.minimum(most, 1.0), harm


def _largest_other(part: queues.Part) -> IntArray:
    """Return who else takes most of what each one uses, (n,); -1 for no other."""
    count = len(part.key)
    order = np.lexsort((np.arange(count), -part.amount, part.key))
    key = part.key[order]
    first = np.searchsorted(key, part.key)
    second = np.minimum(first + 1, count - 1)
    found = order[first]
    itself = found == np.arange(count)
    found[itself] = np.where((second > first) & (key[second] == part.key),
                             order[second], -1)[itself]
    found[(part.amount[found] <= 0.0) | (part.key < 0)] = -1
    return np.asarray(found)
