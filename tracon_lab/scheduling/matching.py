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

"""The exact optimum of a batch: which tasks belong together, as a small integer program.

Two slots a host and n tasks make a minimum-weight matching of n nodes. But tasks of a class are
the same, and so are hosts in a configuration: what has to be found is how many hosts of each
configuration get which multiset of tasks. For eight classes and two slots that are 45 integers,
whatever n is. For k slots it is the same program over multisets of up to k.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Sequence

import numpy as np
import scipy.optimize
import scipy.sparse

from tracon_lab.scheduling import base
from tracon_lab.scheduling import configurations as configuration
from tracon_lab.scheduling import objective as objectives
from tracon_lab.scheduling import performance as performances
from tracon_lab.scheduling import pool as pools
from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher import errors
from tracon_watcher import tie_breaking


@dataclasses.dataclass(frozen=True)
class Column:
    """One thing that may be done with hosts.

    :param before: configuration that they are in
    :param after: configuration that they come to
    :param tasks: classes that they get
    """

    before: int
    after: int
    tasks: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Plan:
    """How many hosts get what.

    :param columns: those with at least one host
    :param hosts: of each column
    :param cost: of all residents of the hosts afterwards, minus that before
    :param bound: no plan costs less; the same as ``cost`` but for the solver's tolerance
    """

    columns: tuple[Column, ...]
    hosts: tuple[int, ...]
    cost: float
    bound: float


def solve(space: configuration.Configurations, hosts: IntArray, tasks: IntArray,
          cost: FloatArray, seconds: float = 60.0) -> Plan:
    """Place as many tasks as there are free slots for, at the least cost.

    :param hosts: (n,) how many hosts are in each configuration
    :param tasks: (c,) how many tasks of each class wait
    :param cost: (n,) of a host in each configuration; where not all tasks find a slot, a cost
        that does not grow with the mere number of tasks decides best which are placed
    :param seconds: after which the best that was found is taken; ``bound`` tells how good it is
    :raises tracon_watcher.errors.InvalidOption: when the solver finds nothing in that time
    """
    columns = _columns(space, hosts, tasks)
    # The same program on every CPU: where several plans are best, the solver finds the same one.
    even = tie_breaking.rounded(cost)
    change = np.array([even[one.after] - even[one.before] for one in columns])
    count = len(columns)
    groups = np.flatnonzero(hosts)
    place = {int(index): row for row, index in enumerate(groups)}
    number = np.array([len(one.tasks) for one in columns])
    own = scipy.sparse.csr_array(
        (np.ones(count), ([place[one.before] for one in columns], np.arange(count))),
        shape=(len(groups), count))
    listed = np.array([(task, column) for column, one in enumerate(columns)
                       for task in one.tasks], dtype=np.intp).reshape(-1, 2)
    of_class = scipy.sparse.coo_array(
        (np.ones(len(listed)), (listed[:, 0], listed[:, 1])),
        shape=(len(tasks), count)).tocsr()
    free = int(sum(hosts[index] * (space.slots[space.host_type[index]] - space.size[index])
                   for index in groups))
    placed = min(free, int(tasks.sum()))
    found = scipy.optimize.milp(
        change, integrality=np.ones(count), bounds=scipy.optimize.Bounds(0, np.inf),
        constraints=[scipy.optimize.LinearConstraint(own, hosts[groups], hosts[groups]),
                     scipy.optimize.LinearConstraint(of_class, 0, tasks),
                     scipy.optimize.LinearConstraint(
                         scipy.sparse.csr_array(number[None, :].astype(np.float64)),
                         placed, placed)],
        options={'time_limit': seconds, 'mip_rel_gap': 1e-9})
    if found.x is None:
        raise errors.InvalidOption('seconds', seconds, f'the solver found no plan for {placed} '
                                                       f'tasks: {found.message}')
    chosen = np.rint(found.x).astype(np.intp)
    used = np.flatnonzero(chosen)
    return Plan(tuple(columns[index] for index in used), tuple(int(n) for n in chosen[used]),
                float(sum((cost[columns[index].after] - cost[columns[index].before])
                          * chosen[index] for index in used)), float(found.mip_dual_bound))


def _columns(space: configuration.Configurations, hosts: IntArray,
             tasks: IntArray) -> list[Column]:
    waiting = [int(task) for task in np.flatnonzero(tasks)]
    columns = []
    for before in np.flatnonzero(hosts).tolist():
        room = space.slots[space.host_type[before]] - space.size[before]
        for size in range(room + 1):
            for chosen in itertools.combinations_with_replacement(waiting, size):
                after = before
                for task in chosen:
                    after = space.added[after][task]
                columns.append(Column(before, after, chosen))
    return columns


class Matching:
    """Places a whole queue at once, as well as the predictions allow.

    :param performance: as predicted
    :param objective: ``RT`` or ``IO``
    :param spread: give every empty host one of the tasks first, in their order, and place only
        the rest at once; tells what it costs that each task prefers to be alone
    """

    batch: base.Batch | None = None
    order: str | None = None
    patient = False

    def __init__(self, performance: performances.Performance, objective: str,
                 spread: bool = False) -> None:
        self.name = 'matching-spread' if spread else 'matching'
        self.window = base.ALL_WAITING
        self._spread = spread
        self._cost = _comparable(performance, objective)

    def schedule(self, queue: Sequence[int], pool: pools.Pool) -> base.Placements:
        """Place all tasks at once; see :class:`~.base.Scheduler`."""
        space = pool.configurations
        if not queue or not pool.free:
            return []
        placed = self._alone(queue, pool) if self._spread else []
        if len(placed) == len(queue) or not pool.free:
            return placed
        hosts = np.array([len(members) for members in pool.hosts], dtype=np.intp)
        tasks = np.bincount(queue[len(placed):], minlength=len(space.classes)).astype(np.intp)
        plan = solve(space, hosts, tasks, self._cost)
        waiting: list[list[int]] = [[] for _one in space.classes]
        for position in range(len(queue) - 1, len(placed) - 1, -1):
            waiting[queue[position]].append(position)
        members = [list(one) for one in pool.hosts]
        for column, number in zip(plan.columns, plan.hosts):
            for _host in range(number):
                host = members[column.before].pop()
                for task in column.tasks:
                    pool.add(host, task)
                    placed.append((waiting[task].pop(), host))
        return placed

    @staticmethod
    def _alone(queue: Sequence[int], pool: pools.Pool) -> base.Placements:
        placed: base.Placements = []
        for index in pool.configurations.empty:
            while pool.hosts[index] and len(placed) < len(queue):
                host = pool.hosts[index][-1]
                pool.add(host, queue[len(placed)])
                placed.append((len(placed), host))
        return placed


def _comparable(performance: performances.Performance, objective: str) -> FloatArray:
    """Return what all residents of each configuration lose by each other, (n,)."""
    lost = objectives.lost(performance, objective)
    found: FloatArray = (performance.configurations.residents * np.nan_to_num(lost)).sum(axis=1)
    return found
