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

"""The true performance of every configuration, composed of measured pairs."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from tracon_watcher.characteristics import FloatArray, request_rate
from tracon_watcher.prediction import pairwise
from tracon_watcher.scheduling import configurations as configuration
from tracon_watcher.scheduling import performance
from tracon_watcher.simulator import truth as truths


def true_performance(space: configuration.Configurations, truths_of: Sequence[truths.Truth],
                     solo_seconds: FloatArray) -> performance.Performance:
    """Return what was measured of one or two tasks, and what follows from it for more.

    One neighbour does what was measured, also where that is less than nothing. Several add up by
    what each takes beyond 1 and a share for each two that get in each other's way
    (:mod:`tracon_watcher.prediction.pairwise`).

    :param truths_of: of each of t host types, all of the same programs in the same order
    :param solo_seconds: (t, c)
    """
    found = [np.full(space.residents.shape, np.nan) for _response in range(2)]
    for kind, truth in enumerate(truths_of):
        exponents = (np.log(truth.slowdown), -np.log(truth.iops_ratio))
        rows = [row for row in np.flatnonzero(space.host_type == kind).tolist()
                if space.members[row]]
        for row in rows:
            members = space.members[row]
            for task in set(members):
                others = list(members)
                others.remove(task)
                for table, each, crowding in zip(found, exponents, truth.crowding):
                    table[row, task] = np.exp(_together(each[task, others], crowding))
    solo_iops = np.stack([request_rate(truth.typical) for truth in truths_of])
    # Undefined stays undefined, alone as well.
    for kind, truth in enumerate(truths_of):
        without = np.isnan(truth.iops_ratio).all(axis=1)
        found[1][np.ix_(space.host_type == kind, without)] = np.nan
    return performance.Performance(space, solo_seconds, solo_iops, found[0], 1 / found[1])


def _together(each: FloatArray, crowding: float) -> float:
    """Return the exponent beside neighbours, from (k,) exponents beside each of them."""
    if len(each) == 0:
        return 0.0
    if len(each) == 1:
        return float(each[0])
    return float(pairwise.together(each, crowding))
