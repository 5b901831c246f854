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

"""Closed loops on shared cores, solved exactly: processor sharing has a product form (BCMP).

P(those of a set are ready) ∝ Π a / (1 − a) · k! / Π_{j≤k} min(j, c), for a set of k; a loop finds
the network as it is without it (arrival theorem).
"""

import numpy as np


def slowdown(shares, cores, one):
    """Return how much a loop is slowed down.

    :param shares: part of its time alone in which each loop is ready
    :param one: index of the loop
    """
    # Coefficients of Π (1 + x a / (1 − a)): of those with k ready.
    sums = np.ones(1)
    for index, share in enumerate(shares):
        if index != one:
            odds = share / (1.0 - share)
            sums = np.append(sums, 0.0) + odds * np.append(0.0, sums)
            sums /= sums.max()
    ready = np.arange(len(sums))
    factors = np.cumsum(np.log(np.maximum(ready, 1) / np.clip(ready, 1, cores)))
    with np.errstate(divide='ignore'):
        logs = np.log(sums) + factors
    chance = np.exp(logs - logs.max())
    stretch = (chance * np.maximum((1.0 + ready) / cores, 1.0)).sum() / chance.sum()
    return 1.0 + shares[one] * (stretch - 1.0)
