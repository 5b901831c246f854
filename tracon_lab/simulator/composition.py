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

from tracon_lab.scheduling import configurations as configuration
from tracon_lab.scheduling import performance
from tracon_lab.simulator import truth as truths
from tracon_watcher.characteristics import FloatArray, IntArray, request_rate


def true_performance(space: configuration.Configurations, truths_of: Sequence[truths.Truth],
                     solo_seconds: FloatArray) -> performance.Performance:
    """Return what was measured of one or two tasks, and what follows from it for more.

    Each neighbour takes what it was measured to take beyond 1, of the slowdown and of one over the
    IOPS ratio, and several take the sum of that.

    :param truths_of: of each of t host types, all of the same programs in the same order
    :param solo_seconds: (t, c)
    """
    slowdown, delay = (np.full(space.residents.shape, np.nan) for _response in range(2))
    for kind, truth in enumerate(truths_of):
        rows = space.host_type == kind
        slowdown[rows] = together(space.residents[rows], truth.slowdown)
        delay[rows] = together(space.residents[rows], 1.0 / truth.iops_ratio)
    solo_iops = np.stack([request_rate(truth.typical) for truth in truths_of])
    return performance.Performance(space, solo_seconds, solo_iops, slowdown, 1.0 / delay)


def together(residents: IntArray, pairs: FloatArray) -> FloatArray:
    """Return 1 + Σ (what each neighbour makes of 1, less 1), (n, c); NaN for who is not there.

    :param residents: (n, c) how many tasks of each class there are
    :param pairs: (c, c) of each class beside each, NaN where undefined
    """
    beyond = np.nan_to_num(pairs - 1.0)
    total = 1.0 + residents @ beyond.T - np.diag(beyond)
    # What is undefined beside one of the neighbours is so beside all of them; a class of which
    # nothing is defined has no response alone either.
    missing = np.isnan(pairs)
    undefined = residents @ missing.T - np.diag(missing) > 0
    found: FloatArray = np.where((residents > 0) & ~undefined & ~missing.all(axis=1), total,
                                 np.nan)
    return found
