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

"""One run of the simulator from plain values, which may happen in a process of its own."""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from typing import Callable

import numpy as np

from tracon_lab.models import dataset
from tracon_lab.scheduling import catalogue
from tracon_lab.scheduling import objective as objectives
from tracon_lab.scheduling import saturation
from tracon_lab.simulator import audit as audits
from tracon_lab.simulator import dynamic
from tracon_lab.simulator import published
from tracon_lab.simulator import static
from tracon_lab.simulator import trace
from tracon_lab.simulator import workload
from tracon_lab.simulator import world as worlds
from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher import errors
from tracon_watcher import tie_breaking

#: Name of the row that is no scheduler: the best that is possible.
OPTIMUM = 'optimum'
#: Where the truth comes from.
MEASURED, PUBLISHED = 'measured', published.NAME
TRUTHS = (MEASURED, *published.NAMES)
#: Numbers of hosts and tasks beyond these are a slip of the pen.
MOST_MACHINES = 1_000_000
MOST_TASKS = 1e9
Progress = Callable[[float], None]


@dataclasses.dataclass(frozen=True)
class Setup:
    """What the world is made of; see :func:`tracon_lab.simulator.world.build`.

    :param files: measurements
    :param host_types: names
    :param parts: of each host type, in any unit
    :param slots: of a host of each type
    :param truth: one of :data:`TRUTHS`: what was measured, or one that schedulers know, the
        paper's Table 1 (:data:`PUBLISHED`) or its host by the law of queueing
    :param calc_ranks: of Table 1, see :func:`tracon_lab.simulator.published.truth`
    """

    files: tuple[str, ...]
    host_types: tuple[str, ...]
    parts: tuple[float, ...] = (1.0,)
    slots: tuple[int, ...] = (2,)
    minutes: float = 3.0
    model: str = 'nlm'
    work: str = worlds.WINDOW
    plan: str = ''
    truth: str = MEASURED
    calc_ranks: int = published.CALC_RANKS

    def hosts(self, machines: int) -> IntArray:
        """Return (m,) the index of each host's type, types alternating by their parts.

        :raises tracon_watcher.errors.InvalidOption: for no machine, or far too many
        """
        if not 1 <= machines <= MOST_MACHINES:
            raise errors.InvalidOption('machines', machines, f'from 1 to {MOST_MACHINES}')
        # The least served so far comes next, so that any number of them has about these shares.
        served = np.zeros(len(self.parts))
        kinds = np.empty(machines, dtype=np.intp)
        shares = np.array(self.parts) / sum(self.parts)
        for host in range(machines):
            kinds[host] = tie_breaking.argmin((served + 0.5) / shares)
            served[kinds[host]] += 1
        return kinds


@dataclasses.dataclass(frozen=True)
class Case:
    """One scheduler and one drawing of tasks.

    :param rate: tasks a minute; 0 for the static case
    :param hours: simulated
    :param trace: file to take tasks from instead; their number and times are its own
    :param audit_minutes: between audits, 0 for none
    :param pause: seconds for which a task that migrates stands still
    """

    setup: Setup
    scheduler: str
    machines: int
    mix: str = 'medium'
    objective: str = objectives.RT
    rate: float = 0.0
    hours: float = 10.0
    sigma: float = workload.SIGMA
    seed: int = 1
    trace: str = ''
    audit_minutes: float = 0.0
    pause: float = 30.0

    @property
    def weight(self) -> float:
        """How long it takes, roughly and in any unit."""
        if not self.rate and not self.trace:
            return float(self.machines)
        slow = 3.0 if self.scheduler.startswith(('MIX', 'MIBS', 'MINMIN', 'PRICED')) else 1.0
        return slow * self.machines * max(self.hours, 0.01) * 20

    @property
    def name(self) -> str:
        """What progress shows."""
        return f'{self.scheduler} on {self.machines}'


@dataclasses.dataclass(frozen=True)
class Result:
    """What came of a case.

    :param tasks: completed, or in the static case placed
    :param arrived: tasks
    :param runtime: static: eq. 3 in seconds; dynamic: mean seconds from start to end
    :param iops: eq. 4
    :param best_runtime: static: of the optimum for RT
    :param best_iops: static: of the optimum for IO
    :param most: dynamic: what could be completed at most: all that arrived, or the saturated
        optimum
    :param valued: dynamic: what was completed of that; above saturation tasks count by the prices
        of their classes in the optimum, which no scheduler can exceed (weak duality)
    :param load: ρ, what arrives over what all slots complete without interference
    :param waited: mean seconds before the start
    :param occupied: dynamic: mean share of the slots in which a task runs
    :param scheduling: seconds of computing
    :param events: of the event loop, and ``elapsed`` the seconds of computing that it took
    """

    case: Case
    tasks: int
    arrived: int
    runtime: float
    iops: float
    best_runtime: float = float('nan')
    best_iops: float = float('nan')
    most: float = float('nan')
    valued: float = float('nan')
    load: float = float('nan')
    waited: float = 0.0
    occupied: float = float('nan')
    overtaken: int = 0
    migrations: int = 0
    scheduling: float = 0.0
    events: int = 0
    elapsed: float = float('nan')
    factor: float = float('nan')


@functools.lru_cache(maxsize=4)
def world_of(setup: Setup) -> worlds.World:
    """Return the world of a set-up; the last few are kept."""
    if setup.truth != MEASURED:
        return worlds.build_published(setup.slots, setup.minutes, setup.calc_ranks, setup.truth)
    return worlds.build(dataset.read_all(setup.files), setup.host_types, setup.slots,
                        setup.minutes, setup.model, setup.work, setup.plan)


def check(case: Case) -> None:
    """See what can be seen beforehand.

    :raises tracon_watcher.errors.InvalidOption: naming what is wrong
    """
    objectives.check(case.objective)
    case.setup.hosts(case.machines)
    workload.mix(case.mix, 1, case.sigma)
    if case.audit_minutes and case.setup.truth != MEASURED:
        raise errors.InvalidOption('audit_minutes', case.audit_minutes, (
            f'audits need the CPU use of tasks, of which the truth {case.setup.truth} says nothing'
            ))
    if case.audit_minutes and not 1 / 60 <= case.audit_minutes < math.inf:
        raise errors.InvalidOption('audit_minutes', case.audit_minutes,
                                   'expected 0 for no audits, or a second at least, 1/60')
    if not 0 <= case.pause < math.inf:
        raise errors.InvalidOption('pause', case.pause, 'a number of seconds not below 0')
    if case.trace and not 0 <= case.hours < math.inf:
        raise errors.InvalidOption('hours', case.hours, 'how long to go on is not below 0')
    if case.rate * 60 * case.hours > MOST_TASKS:
        raise errors.InvalidOption('rate', case.rate, f'{case.rate * 60 * case.hours:.3g} tasks '
                                   f'in {case.hours:g} hours are more than {MOST_TASKS:.0g}')


def run(case: Case, progress: Progress | None = None) -> Result:
    """Run one case; the same case gives the same result in any process."""
    check(case)
    hosts = case.setup.hosts(case.machines)
    world = world_of(case.setup)
    shares = workload.mix(case.mix, len(world.classes), case.sigma)
    if case.rate or case.trace:
        return _dynamic(case, world, hosts, shares, progress)
    return _static(case, world, hosts, shares)


def _static(case: Case, world: worlds.World, hosts: IntArray, shares: FloatArray) -> Result:
    slots = int(np.array(case.setup.slots)[hosts].sum())
    tasks = workload.draw(np.random.default_rng([case.seed, case.machines]), shares, slots)
    best = {name: _optimum(case, name, tuple(tasks.tolist())) for name in objectives.ALL}
    if case.scheduler == OPTIMUM:
        found = best[case.objective]
    else:
        scheduler = catalogue.build(case.scheduler, world.predicted, case.objective)
        found = static.run(world.truth, hosts.tolist(), scheduler, tasks)
    return Result(case, found.placed, slots, found.runtime, found.iops,
                  best[objectives.RT].runtime, best[objectives.IO].iops,
                  scheduling=found.scheduling, factor=world.factor)


@functools.lru_cache(maxsize=256)
def _best(setup: Setup, machines: int, objective: str, tasks: tuple[int, ...]) -> static.Outcome:
    return static.optimum(world_of(setup).truth, setup.hosts(machines).tolist(),
                          np.array(tasks, dtype=np.intp), objective)


def _optimum(case: Case, objective: str, tasks: tuple[int, ...]) -> static.Outcome:
    return _best(case.setup, case.machines, objective, tasks)


def _dynamic(case: Case, world: worlds.World, hosts: IntArray, shares: FloatArray,
             progress: Progress | None) -> Result:
    scheduler = catalogue.build(case.scheduler, world.predicted, case.objective)
    seconds = case.hours * 3600
    source: workload.Source
    if case.trace:
        source, last = trace.read(case.trace, world.classes, world.truth.solo_seconds[0])
        seconds = last + seconds
    else:
        source = workload.Poisson(case.rate / 60, shares, (case.seed, case.machines), seconds)
    audit = None
    if case.audit_minutes:
        audit = audits.Audit(case.audit_minutes * 60, case.pause, hosts.tolist(),
                             case.setup.slots, world.cores, world.profiles, world.storage_waits)
    start = time.perf_counter()
    found = dynamic.run(world.truth, hosts.tolist(), scheduler, source, seconds, audit, progress)
    elapsed = time.perf_counter() - start
    numbers = np.bincount(hosts, minlength=len(case.setup.slots))
    tasks = float(found.completed.sum())
    most, valued, load = float(found.arrived), tasks, float('nan')
    if not case.trace:
        load = case.rate / 60 / world.capacity(shares, numbers)
        optimum = saturation.solve(world.truth, shares, numbers)
        if optimum.throughput * seconds < most:
            most = optimum.throughput * seconds
            valued = float(found.completed @ optimum.price)
    return Result(case, int(found.completed.sum()), found.arrived,
                  found.mean_runtime(world.truth), found.mean_iops(world.truth), most=most,
                  valued=valued, load=float(load), waited=found.waited / max(found.started, 1),
                  occupied=_occupied(found, world, numbers), overtaken=found.overtaken,
                  migrations=found.migrations,
                  scheduling=found.scheduling, events=found.events, elapsed=elapsed,
                  factor=world.factor)


def _occupied(found: dynamic.Outcome, world: worlds.World, hosts: IntArray) -> float:
    slots = float(hosts @ np.array(world.configurations.slots))
    busy = float(found.spent @ world.configurations.residents.sum(axis=1))
    return busy / (slots * found.seconds)
