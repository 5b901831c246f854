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

"""The most that a saturated data centre can complete, and what each class is worth there.

Whatever a scheduler does, its hosts spend a share x_m of their time in each configuration m, and
while one is in m, tasks of class a are completed at a rate r_a(m). If tasks of class a are a share
p_a of all, the throughput T obeys

    T p_a ≤ Σ_m x_m r_a(m) for every class a,   Σ_m x_m = hosts, for every host type.

The largest T is a linear program. Its dual has a price for each class, what one more completion of
it would be worth, and no host earns more than in a configuration of the optimum. Not even an
optimal scheduler reaches T, since tasks come and end at random moments.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.optimize

from tracon_lab.scheduling import performance as performances
from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher import tie_breaking


@dataclasses.dataclass(frozen=True)
class Saturation:
    """The optimum of the fluid limit.

    :param throughput: tasks a second
    :param shares: (n,) hosts in each configuration
    :param price: (c,) of a completion of each class; Σ p_a price_a = 1
    :param earned: (t,) what a host of each type earns a second at these prices; over all hosts
        that is the throughput
    """

    throughput: float
    shares: FloatArray
    price: FloatArray
    earned: FloatArray


def solve(performance: performances.Performance, mix: FloatArray,
          hosts: IntArray) -> Saturation:
    """Solve the linear program.

    :param mix: (c,) share of each class among all tasks, above 0 in all
    :param hosts: (t,) number of each host type
    """
    space = performance.configurations
    count, classes = performance.completions.shape
    kinds = (space.host_type[None, :] == np.arange(len(space.slots))[:, None]).astype(np.float64)
    # In units of what hosts would do alone, so that the solver's tolerances mean something.
    scale = float(np.median(1 / performance.solo_seconds))
    rates = tie_breaking.rounded(performance.completions / scale)
    mix = tie_breaking.rounded(mix)
    found = scipy.optimize.linprog(
        np.concatenate([np.zeros(count), [-1.0]]),
        A_ub=np.hstack([-rates.T, mix[:, None]]), b_ub=np.zeros(classes),
        A_eq=np.hstack([kinds, np.zeros((len(kinds), 1))]), b_eq=hosts.astype(np.float64),
        method='highs')
    return Saturation(-found.fun * scale, found.x[:count], -found.ineqlin.marginals,
                      -found.eqlin.marginals * scale)
