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

"""The two objectives of TRACON: least total runtime (eq. 3), or most IOPS (eq. 4).

Both are kept as something to be made small.
"""

from __future__ import annotations

import numpy as np

from tracon_lab.scheduling import configurations as configuration
from tracon_lab.scheduling import performance as performances
from tracon_watcher.characteristics import FloatArray
from tracon_watcher import errors

RT, IO = 'RT', 'IO'
ALL = (RT, IO)


def check(objective: str) -> str:
    """Return an objective that is known.

    :raises tracon_watcher.errors.InvalidOption: for any other
    """
    if objective not in ALL:
        raise errors.InvalidOption('objective', objective, f'expected one of {", ".join(ALL)}')
    return objective


def task_cost(performance: performances.Performance, objective: str) -> FloatArray:
    """Return what one task of a class costs in each configuration, (n, c).

    RT: its runtime in seconds; IO: its IOPS with the sign changed. NaN where there is none.
    """
    if check(objective) == RT:
        return performance.runtime
    return np.where(performance.configurations.residents > 0, -performance.iops, np.nan)


def lost(performance: performances.Performance, objective: str) -> FloatArray:
    """Return what a task loses by its neighbours, (n, c): seconds, or requests per second.

    Among assignments of the same tasks to hosts of one type it orders as eqs 3 and 4 do; unlike
    those it can also be compared between assignments of different tasks. NaN where there is none.
    """
    kinds = performance.configurations.host_type
    alone = (performance.solo_seconds if check(objective) == RT else -performance.solo_iops)[kinds]
    if objective == IO:
        # Who does no I/O loses none.
        alone = np.where(np.isnan(performance.iops_ratio), 0.0, alone)
    found: FloatArray = task_cost(performance, objective) - alone
    return found


def host_cost(performance: performances.Performance, objective: str) -> FloatArray:
    """Return eq. 3, or minus eq. 4, of all residents of each configuration, (n,)."""
    found: FloatArray = (performance.configurations.residents
                         * np.nan_to_num(task_cost(performance, objective))).sum(axis=1)
    return found


def newcomer_cost(performance: performances.Performance, objective: str) -> FloatArray:
    """Return what a task of a class costs when it comes to each configuration, (n, c).

    Infinite where it cannot.
    """
    return _of_newcomers(performance, task_cost(performance, objective))


def total_cost(performance: performances.Performance, objective: str) -> FloatArray:
    """Return what a task of a class and all residents cost more, (n, c), when it comes.

    Infinite where it cannot.
    """
    cost = host_cost(performance, objective)
    added = np.array(performance.configurations.added)
    return np.where(added == configuration.NONE, np.inf, cost[added] - cost[:, None])


def newcomer_slowdown(performance: performances.Performance) -> FloatArray:
    """Return the slowdown of a task of a class when it comes to each configuration, (n, c).

    Infinite where it cannot.
    """
    return _of_newcomers(performance, performance.slowdown)


def _of_newcomers(performance: performances.Performance, table: FloatArray) -> FloatArray:
    added = np.array(performance.configurations.added)
    return np.where(added == configuration.NONE, np.inf, table[added, np.arange(added.shape[1])])


def pair_interference(performance: performances.Performance, objective: str) -> FloatArray:
    """Return how much a class, rows, suffers beside one of another, columns, (c, c).

    As a share of what it does alone: slowdown, or minus the IOPS ratio. On the first host type
    with two slots; where there is none, all are the same.
    """
    space = performance.configurations
    count = len(space.classes)
    found = np.ones((count, count))
    for kind, slots in enumerate(space.slots):
        if slots < 2:
            continue
        pair = np.array([[space.added[space.added[space.empty[kind]][other]][own]
                          for other in range(count)] for own in range(count)])
        rows = np.arange(count)[:, None]
        if check(objective) == RT:
            return np.asarray(performance.slowdown[pair, rows])
        ratio = performance.iops_ratio[pair, rows]
        return np.where(np.isnan(ratio), -1.0, -ratio)
    return found
