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
"""A day of a simulated cloud under one way to run it.

Each interval, VMs leave and come, hosts slow them down (:mod:`.shared_cores`), a pollster reads
counters, and the product's own code makes profiles, a snapshot and judgements of these. It knows
nothing of the truth but what counters tell, late, with noise and with gaps.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import multiprocessing
import time
from typing import Any, Callable, Sequence, TextIO

import numpy as np

from tracon_lab.simulated_cloud import demand as demands
from tracon_lab.simulated_cloud import nova_scheduler
from tracon_lab.simulated_cloud import shared_cores
from tracon_watcher import assignment
from tracon_watcher.characteristics import BoolArray
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray
from tracon_watcher.contention import calibration
from tracon_watcher.contention import profile_tracker
from tracon_watcher.engine import collector
from tracon_watcher.engine import state
from tracon_watcher.engine import view
from tracon_watcher.inventory import cloud
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cooldown
from tracon_watcher.placement import limits
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement import plan
from tracon_watcher.placement import planner
from tracon_watcher.placement import snapshot
from tracon_watcher.telemetry import samples

START = 1.8e9
#: Standard deviations by which counters of CPU time and of delay are off, each interval, and the
#: share of samples that is lost.
_NOISE, _LOST = np.array([0.02, 0.05]), 0.01
#: Of CPU time, what the hypervisor itself uses.
_EMULATOR = 0.02
#: A live migration takes two minutes, in which a VM works at half its speed.
_MIGRATION = 1.0 / (1.0 - 0.5 * 120.0 / demands.SECONDS)
#: Seconds that snapshots are valid.
_AGE = 3.0 * demands.SECONDS
_NO_HOST = -1


@dataclasses.dataclass(frozen=True)
class Settings:
    """A cloud.

    :ivar cores: of each host
    :ivar ratio: vCPUs that a host takes for each core
    :ivar limit: slowdown that every VM tolerates
    :ivar hidden: share of hosts whose VMs slow each other down by what no counter shows, too
    :ivar hidden_slowdown: by how much, beyond 1, where all cores are in use
    :ivar candidates: hosts that Placement names
    :ivar audit_steps: intervals between two audits
    :ivar migrations: of an audit, at most
    """

    hosts: int = 40
    cores: int = 16
    ratio: float = 16.0
    limit: float = 1.2
    hidden: float = 0.1
    hidden_slowdown: float = 0.1
    candidates: int = 100
    audit_steps: int = 12
    migrations: int = 10
    seed: int = 1


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of a day.

    :ivar slowdown: (n,) of each VM in each interval in which it ran
    :ivar stretched: share of the hosts and intervals in which work on the CPU stretches beyond
        the limit in the mean
    :ivar running: VMs that run in the mean
    :ivar placed: VMs that were asked for and placed
    :ivar refused: VMs that were asked for and found no host
    :ivar in_error: of these, those that some host would have taken without a breach
    :ivar migrations: live migrations
    :ivar seconds: of CPU that this extension took, telemetry and all
    """

    slowdown: FloatArray
    stretched: float
    running: float
    placed: int
    refused: int
    in_error: int
    migrations: int
    seconds: float


class Pollster:
    """Counters of all VMs, as a reader of telemetry gives them to the engine.

    :param count: VMs of the day
    """

    resolution = 1.0
    ahead = 0.0

    def __init__(self, count: int, seed: int) -> None:
        self._rng = np.random.default_rng([seed, 1])
        self._counters = np.zeros((count, len(collector.METERS)))
        self._polls: list[tuple[float, IntArray, FloatArray]] = []

    def poll(self, now: float, rows: IntArray, used: FloatArray, delay: FloatArray) -> None:
        """Read the counters of VMs that run.

        :param rows: (m,) which they are
        :param used: (m,) CPU time that each took a second since the last poll
        :param delay: (m,) time that its vCPUs waited for the CPU, likewise
        """
        noise = np.maximum(1.0 + self._rng.normal(size=(2, len(rows))) * _NOISE[:, None], 0.0)
        rate = np.zeros((len(rows), self._counters.shape[1]))
        rate[:, 0] = 1e9
        rate[:, 1], rate[:, 2] = 1e9 * np.stack([used, delay]) * noise
        rate[:, 3] = _EMULATOR * rate[:, 1]
        self._counters[rows] += demands.SECONDS * rate
        there = rows[self._rng.uniform(size=len(rows)) >= _LOST]
        self._polls = [*self._polls[-4:], (now, there, self._counters[there])]

    def read(self, since: float, until: float, meters: Sequence[str]) -> samples.Readings:
        """Return the samples in between."""
        found = [one for one in self._polls if since <= one[0] < until]
        rows = np.concatenate([np.zeros(0, dtype=np.intp), *(one[1] for one in found)])
        values = np.concatenate([np.zeros((0, self._counters.shape[1])),
                                 *(one[2] for one in found)])
        named, place = np.unique(rows, return_inverse=True)
        # No VM has limits of its own.
        none = np.zeros((len(rows), len(meters) - values.shape[1]))
        return samples.Readings(
            tuple(demands.vm_uuid(int(one)) for one in named), tuple(meters), place,
            np.concatenate([np.zeros(0), *(np.full(len(one[1]), one[0]) for one in found)]),
            np.hstack([values, none]))


class Engine:
    """The product from counters to snapshots, and its audits."""

    def __init__(self, settings: Settings, names: Sequence[str], count: int) -> None:
        self._settings, self._names = settings, names
        self.pollster = Pollster(count, settings.seed)
        self._collector = collector.Collector(
            self.pollster, profile_tracker.ProfileTracker(calibration.packaged()),
            demands.SECONDS, 5.0 * demands.SECONDS)
        self._defaults = state.Defaults(limits=limits.Limits(max_slowdown=settings.limit))
        self._hypervisors = {name: cloud.Hypervisor(name, True, True, cores=settings.cores)
                             for name in names}
        self._servers: dict[str, cloud.Server] = {}
        self._moves: dict[str, list[float]] = {}
        self._told: Any = None
        self._version = 0

    def came(self, number: int, vcpus: int, project: int, host: int, now: float) -> None:
        """Take down that a VM runs."""
        uuid = demands.vm_uuid(number)
        self._servers[uuid] = cloud.Server(
            uuid, uuid, f'project-{project}', self._names[host], demands.flavor(vcpus), {},
            demands.IMAGE, 'active', vcpus=vcpus, launched_at=now)

    def left(self, number: int) -> None:
        """Take down that a VM is gone."""
        self._servers.pop(demands.vm_uuid(number), None)

    def snapshot(self, now: float) -> snapshot.Snapshot:
        """Collect what was polled, and return the snapshot that is published."""
        inventory = cloud.Inventory(dict(self._servers), self._hypervisors, (), {}, now)
        found = self._collector.collect(inventory, now)
        self._version += 1
        self._told = view.deadband(self._told, state.build(
            inventory, found.demand, self._defaults, self._version, now,
            lambda kind, text: None))
        return snapshot.Snapshot(self._told, _AGE)

    def audit(self, content: snapshot.Snapshot, free: Sequence[float],
              now: float) -> list[tuple[str, int]]:
        """Return the migrations of an audit: uuids and hosts."""
        lasting = {uuid: at[-1] + cooldown.length(len(at)) for uuid, at in self._moves.items()
                   if now - at[-1] < cooldown.LONGEST}
        rules = placement_constraints.Constraints(
            needs={uuid: (float(one.vcpus), 0.0, 0.0) for uuid, one in self._servers.items()},
            free={name: (room, 0.0, 0.0) for name, room in zip(self._names, free)},
            cooldown_until=lasting)
        made = planner.plan_moves(
            assessment.Assessor(content.cluster, content.settings()), rules,
            plan.Parameters(max_migrations=self._settings.migrations, noise=0.1), now,
            assignment.least_cost)
        index = {name: place for place, name in enumerate(self._names)}
        for move in made.moves:
            recent = [at for at in self._moves.get(move.uuid, []) if now - at < 86400.0]
            self._moves[move.uuid] = [*recent, now]
            self._servers[move.uuid] = dataclasses.replace(self._servers[move.uuid],
                                                           host=move.destination)
        return [(move.uuid, index[move.destination]) for move in made.moves]


class Day:
    """One day.

    :param demand: the VMs
    """

    def __init__(self, demand: demands.Demand, settings: Settings,
                 arm: nova_scheduler.Arm) -> None:
        self._demand, self._settings, self._arm = demand, settings, arm
        rng = np.random.default_rng([settings.seed, 2])
        self._names = names = [f'host-{place:04d}' for place in range(settings.hosts)]
        self._numbers = {demands.vm_uuid(number): number
                         for number in range(len(demand.vcpus))}
        self._scheduler = nova_scheduler.Scheduler(arm, names, settings.cores, settings.ratio,
                                                   settings.limit)
        self._engine = Engine(settings, names, len(demand.vcpus)) if arm.judged else None
        self._cores = shared_cores.SharedCores(settings.cores, settings.seed)
        # Options of Nova and of Watcher have the same names: each needs a process of its own.
        self._watcher = concurrent.futures.ProcessPoolExecutor(
            1, multiprocessing.get_context('spawn'))
        self._hidden = rng.uniform(size=settings.hosts) < settings.hidden
        self._placement = np.random.default_rng([settings.seed, 3])
        self._host = np.full(len(demand.vcpus), _NO_HOST)
        self._ready = np.full(len(demand.vcpus), np.nan)
        #: (hosts, intervals) cores that VMs of each host will use; the oracle's.
        self._future = np.zeros((settings.hosts, demands.STEPS))
        self._moved: list[int] = []
        self._seconds = 0.0
        #: (running VMs,) share of its vCPUs' time that each used in the interval before.
        self._share = np.zeros(0)
        self._counts = dict.fromkeys(('placed', 'refused', 'in_error', 'migrations'), 0)

    def run(self, report: Callable[[float], None] = lambda share: None,
            decisions: TextIO | None = None) -> Outcome:
        """Let the day pass.

        :param decisions: gets the decisions that nova-scheduler would record, a JSON document a
            line, where this extension works there
        """
        slowdowns, stretched, running = [], 0.0, 0
        try:
            # Those that are there at midnight came one after the other, with telemetry between.
            first = np.flatnonzero(self._demand.arrives < 0)
            parts = np.array_split(first, 20)
            for number, some in enumerate(parts):
                self._arrive(some, 0, START + (number - len(parts)) * demands.SECONDS)
                self._suffer(0, START + (number - len(parts) + 1) * demands.SECONDS)
            self._counts = dict.fromkeys(self._counts, 0)
            if decisions is not None:
                self._scheduler.record(decisions)
            for step in range(demands.STEPS):
                report(step / demands.STEPS)
                now = START + step * demands.SECONDS
                self._leave(step)
                self._arrive(np.flatnonzero(self._demand.arrives == step), step, now)
                found, share = self._suffer(step, now + demands.SECONDS)
                slowdowns.append(found)
                stretched += share / demands.STEPS
                running += len(found)
                if (step + 1) % self._settings.audit_steps == 0:
                    self._move(self._audit(step, now + demands.SECONDS))
        finally:
            self._watcher.shutdown()
        return Outcome(np.concatenate(slowdowns), stretched, running / demands.STEPS,
                       seconds=self._seconds, **self._counts)

    def _leave(self, step: int) -> None:
        for number in np.flatnonzero(
                (self._demand.leaves == step) & (self._host >= 0)).tolist():
            self._scheduler.move(number, int(self._demand.vcpus[number]),
                                 int(self._host[number]), None)
            self._host[number] = _NO_HOST
            if self._engine is not None:
                self._engine.left(int(number))

    def _arrive(self, numbers: IntArray, step: int, now: float) -> None:
        settings = self._settings
        for place, number in enumerate(numbers.tolist()):
            self._scheduler.now = now + demands.SECONDS * place / len(numbers)
            vcpus, project = int(self._demand.vcpus[number]), int(self._demand.project[number])
            began = time.process_time()
            candidates = nova_scheduler.order(
                self._placement, settings.hosts, settings.candidates)
            if self._arm.oracle:
                chosen = self._foretold(number, step, candidates)
            else:
                chosen = self._scheduler.choose(number, vcpus, project, candidates)
            if self._arm.mode is not None:
                self._seconds += time.process_time() - began
            if chosen is None:
                self._counts['refused'] += 1
                self._counts['in_error'] += self._would_do(number, step)
                continue
            self._counts['placed'] += 1
            self._host[number] = chosen
            if self._engine is not None:
                self._engine.came(number, vcpus, project, chosen, self._scheduler.now)

    def _foretold(self, number: int, step: int, candidates: Sequence[int]) -> int | None:
        """Place a VM where the sum of squares of what hosts will use rises least."""
        vcpus, free = int(self._demand.vcpus[number]), self._scheduler.free()
        hosts = np.array([one for one in candidates if free[one] >= vcpus], dtype=np.intp)
        if not len(hosts):
            return None
        life = slice(step, self._demand.leaves[number])
        own = vcpus * self._demand.used[number, life]
        chosen = int(hosts[np.argmin(self._future[hosts, life] @ own)])
        self._future[chosen, life] += own
        self._scheduler.move(number, vcpus, None, chosen)
        return chosen

    def _would_do(self, number: int, step: int) -> bool:
        """Say whether a host would have taken a VM without a breach, now."""
        used = self._demand.used[:, min(step, demands.STEPS - 1)]
        there = np.flatnonzero(self._host >= 0)
        load = np.bincount(self._host[there], self._demand.vcpus[there] * used[there],
                           self._settings.hosts)
        least = int(np.argmin(load))
        rows = np.append(there[self._host[there] == least], number)
        found, _ready = self._cores.slowdowns(np.zeros(len(rows), dtype=np.intp),
                                              self._demand.vcpus[rows], used[rows])
        return bool((found <= self._settings.limit).all())

    def _suffer(self, step: int, now: float) -> tuple[FloatArray, float]:
        """Let an interval pass; return slowdowns, and the share of stretched hosts."""
        settings, demand = self._settings, self._demand
        rows = np.flatnonzero(self._host >= 0)
        host, vcpus, used = self._host[rows], demand.vcpus[rows], demand.used[rows, step]
        alone, self._ready[rows] = self._cores.slowdowns(host, vcpus, used, self._ready[rows])
        # Time on the CPU and time in its queue, a second.
        taken = vcpus * used / alone
        waited = vcpus * (alone - 1.0) / alone
        busy = np.bincount(host, taken, settings.hosts) / settings.cores
        beyond = np.bincount(host, taken + waited, settings.hosts) > settings.limit * np.bincount(
            host, taken, settings.hosts)
        found = alone * np.where(self._hidden, 1.0 + settings.hidden_slowdown * busy, 1.0)[host]
        found[np.isin(rows, self._moved)] *= _MIGRATION
        self._moved = []
        self._share = used / alone
        self._scheduler.now = now
        self._scheduler.used(busy)
        if self._engine is not None:
            began = time.process_time()
            self._engine.pollster.poll(now, rows, taken, waited)
            self._content = self._engine.snapshot(now)
            self._scheduler.take(self._content)
            self._seconds += time.process_time() - began
        return found.astype(np.float32), float(beyond.mean())

    def _audit(self, step: int, now: float) -> list[tuple[int, int]]:
        """Return the migrations of an audit: numbers of VMs, and hosts."""
        if self._arm.audits in nova_scheduler.AUDITS:
            settings, rows = self._settings, np.flatnonzero(self._host >= 0)
            return self._watcher.submit(
                nova_scheduler.AUDITS[self._arm.audits], self._names, settings.cores,
                settings.ratio * settings.cores, self._host[rows], rows, self._demand.vcpus[rows],
                self._share, step).result()
        if self._engine is None or self._arm.audits is None:
            return []
        began = time.process_time()
        moves = self._engine.audit(self._content, self._scheduler.free(), now)
        self._seconds += time.process_time() - began
        return [(self._numbers[uuid], destination) for uuid, destination in moves]

    def _move(self, moves: list[tuple[int, int]]) -> None:
        for number, destination in moves:
            self._scheduler.move(number, int(self._demand.vcpus[number]),
                                 int(self._host[number]), destination)
            self._host[number] = destination
            self._moved.append(number)
        self._counts['migrations'] += len(moves)


def in_breach(outcome: Outcome, limit: float) -> float:
    """Return the share of VM time in which a VM is slowed down beyond a limit."""
    beyond: BoolArray = outcome.slowdown > limit
    return float(beyond.mean())
