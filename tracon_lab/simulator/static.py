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

"""A list of tasks that all wait at once, one for each slot (Chiang & Huang, TRACON, SC'11, §4.2).

Each host's tasks are taken to run beside each other from beginning to end, as they were measured:
eqs 3 and 4 over the data centre.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Sequence

import numpy as np

from tracon_lab.scheduling import base
from tracon_lab.scheduling import matching
from tracon_lab.scheduling import objective as objectives
from tracon_lab.scheduling import performance as performances
from tracon_lab.scheduling import pool as pools
from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher import errors


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a schedule comes to.

    :param placed: tasks
    :param runtime: eq. 3, seconds
    :param iops: eq. 4, requests per second
    :param scheduling: seconds of computing
    """

    placed: int
    runtime: float
    iops: float
    scheduling: float


def run(truth: performances.Performance, host_types: Sequence[int], scheduler: base.Scheduler,
        tasks: IntArray) -> Outcome:
    """Schedule all tasks, as many at a time as the scheduler's queue holds, and judge the result.

    :param truth: what really happens
    :param host_types: index of each host's type
    :param tasks: classes in the order in which they wait
    :raises tracon_watcher.errors.InvalidOption: for a scheduler that lets tasks wait
    """
    if scheduler.patient:
        raise errors.InvalidOption(
            'scheduler', scheduler.name, 'lets tasks wait for a better moment, which does not '
            'come where all must be placed at once; of PRICED append :threshold=-inf')
    pool = pools.Pool(truth.configurations, host_types, scheduler.order)
    queue = tasks.tolist()
    start = time.perf_counter()
    placed = 0
    while queue and pool.free:
        shown = queue[:scheduler.window]
        positions = {position for position, _host in scheduler.schedule(shown, pool)}
        if not positions:
            break
        placed += len(positions)
        queue[:len(shown)] = [task for position, task in enumerate(shown)
                              if position not in positions]
    seconds = time.perf_counter() - start
    return Outcome(placed, *_judged(truth, np.bincount(pool.of, minlength=len(truth.speed))),
                   seconds)


def optimum(truth: performances.Performance, host_types: Sequence[int], tasks: IntArray,
            objective: str) -> Outcome:
    """Return the best that any schedule can come to, knowing the truth."""
    space = truth.configurations
    hosts = np.zeros(len(space), dtype=np.intp)
    for kind, number in enumerate(np.bincount(host_types, minlength=len(space.slots))):
        hosts[space.empty[kind]] = number
    start = time.perf_counter()
    plan = matching.solve(space, hosts, np.bincount(tasks, minlength=len(space.classes)),
                          objectives.host_cost(truth, objective))
    seconds = time.perf_counter() - start
    after = np.zeros(len(space))
    for column, number in zip(plan.columns, plan.hosts):
        after[column.after] += number
    placed = sum(len(column.tasks) * number for column, number in zip(plan.columns, plan.hosts))
    return Outcome(placed, *_judged(truth, after), seconds)


def _judged(truth: performances.Performance, hosts: FloatArray | IntArray) -> tuple[float, float]:
    return (float(hosts @ objectives.host_cost(truth, objectives.RT)),
            -float(hosts @ objectives.host_cost(truth, objectives.IO)))
