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

"""The synthetic side of the soak: hosts, VMs and what their agents count. None of it was measured.

VMs do what their kind does, all the time, and what the law of queueing predicts becomes of it, so
that predictions and counters agree. On a few hosts, the *hot* ones, large VMs tolerate each other
and no others; on those without large VMs, the *quiet* ones, all VMs are welcome as long as they
are few. Audits may move large VMs, and change which are which.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
import time
from typing import Any, Container, Iterator, Sequence
import uuid

import numpy as np

from tracon_watcher.contention import calibration
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.telemetry import meters

#: What agents count of each VM, in the order of the columns.
METERS = tuple(one.name for one in (
    meters.CLOCK, meters.CPU_GUEST, meters.CPU_DELAY, meters.CPU_HOST, meters.READ_REQUESTS,
    meters.WRITE_REQUESTS, meters.READ_TIME, meters.WRITE_TIME, meters.CPU_THROTTLED))
#: VMs with which a quiet host is still one that no VM may be refused on.
FEW = 10
#: Large VMs on a hot host.
LARGE = 3
#: The storage backend of volumes, as Cinder names it.
POOL = 'north@ceph#fast'
#: Threads of a host's CPU.
CORES = 32
_CAPACITY = np.array([10000.0, 5000.0, CORES, CORES])
#: CPU time that the host needs for a VM, of what the VM needs.
_HOST_CPU = 0.1
#: Seconds that a read and a write take on a disk of one's own.
_LATENCY = 1e-4, 2e-4
_NOISE = 0.02
_KEPT = 40
_LOGGED = 20_000


@dataclasses.dataclass(frozen=True)
class Kind:
    """What VMs have in common.

    :param share: of what a host can do of CPU
    :param io_share: of what its disks can do, or the pool that volumes are on
    """

    project: str
    flavor: str
    image: str
    vcpus: int
    share: float
    io_share: float
    extra_specs: dict[str, str]

    @property
    def demand(self) -> np.ndarray:
        """What its VMs demand, (4,)."""
        return _CAPACITY * [self.io_share, self.io_share, self.share, _HOST_CPU * self.share]

    @property
    def storage(self) -> str | None:
        """Where its I/O goes; None for its host's own disk."""
        return None if self.image else POOL

    def resident(self, name: str) -> cluster.Resident:
        """Return a VM of this kind as predictions see it."""
        return cluster.Resident(
            name, self.demand, limits.NONE, self.storage, vcpus=self.vcpus,
            storage_wait=float(self.demand[:2] @ _LATENCY) / self.vcpus)


SMALL = Kind('shop', 'small', str(uuid.UUID(int=1)), 4, 0.05, 0.012, {'tracon:max_slowdown': '3'})
#: Three of them on a host suffer 1.14, and 1.26 beside a small one.
BIG = Kind('research', 'big', str(uuid.UUID(int=2)), 64, 0.3, 0.3, {'tracon:max_slowdown': '1.15'})
#: Of a small one that boots from a volume, the image is in that. All of them share one pool.
ON_VOLUME = dataclasses.replace(SMALL, image='', io_share=2e-5)


@dataclasses.dataclass
class Vm:
    """A VM.

    :param row: of its counters
    :param launched: seconds since the epoch
    """

    uuid: str
    kind: Kind
    host: int
    row: int
    launched: float
    volumes: list[str]


@dataclasses.dataclass(frozen=True)
class Poll:
    """What all agents that are not silent have counted at one time.

    :param counters: (n, 9) of the VMs in the order of ``uuids``
    :param places: by the last digit of a uuid, where it is among them
    """

    at: float
    uuids: list[str]
    counters: np.ndarray
    places: dict[str, list[int]]


class World:
    """All of it. Safe for use by several threads.

    :param hosts: how many
    :param vms: small ones for each host
    :param hot: share of the hosts that are hot in the beginning
    """

    def __init__(self, hosts: int, vms: int, hot: float = 0.1, seed: int = 1) -> None:
        self.rng = np.random.default_rng(seed)
        self.hosts = [f'compute-{number:04}' for number in range(hosts)]
        chosen = np.sort(self.rng.permutation(hosts)[:round(hot * hosts)])
        self.vms: dict[str, Vm] = {}
        #: Hosts whose agents say nothing.
        self.silent: set[int] = set()
        self.migrations: collections.deque[dict[str, Any]] = collections.deque(maxlen=2000)
        self.polls: collections.deque[Poll] = collections.deque(maxlen=_KEPT)
        self.lock = threading.RLock()
        self._counts = np.zeros(hosts, dtype=np.intp)
        self._large = np.zeros(hosts, dtype=np.intp)
        self._log: collections.deque[tuple[float, int, int, Vm]] = collections.deque(
            maxlen=_LOGGED)
        self._followers: list[collections.deque[tuple[int, str, int]]] = []
        size = 2 * hosts * (vms + LARGE) + 1000
        self._free = list(range(size))
        self._counters = np.zeros((size, len(METERS)))
        self._polled = time.time()
        self._calibrated = calibration.packaged()
        for host in chosen:
            for _number in range(LARGE):
                self.create(str(uuid.uuid4()), BIG, int(host))
        quiet = np.flatnonzero(~self.hot())
        for number in range(hosts * vms):
            self.create(str(uuid.uuid4()), SMALL, int(quiet[number % len(quiet)]))

    def follow(self) -> collections.deque[tuple[int, str, int]]:
        """Return where every change to come is noted: host, uuid, and 1 or -1."""
        with self.lock:
            changes = collections.deque(
                (vm.host, vm.uuid, 1) for vm in self.vms.values())
            self._followers.append(changes)
            return changes

    def quiet(self) -> np.ndarray:
        """Return on which hosts no VM may be refused, (h,)."""
        with self.lock:
            found: np.ndarray = (self._large == 0) & (self._counts <= FEW)
            return found

    def hot(self) -> np.ndarray:
        """Return on which hosts large VMs tolerate no others, (h,)."""
        with self.lock:
            found: np.ndarray = self._large >= LARGE
            return found

    def create(self, name: str, kind: Kind, host: int, volumes: Sequence[str] = ()) -> Vm:
        """Let a VM run."""
        with self.lock:
            row = self._free.pop()
            self._counters[row] = 0.0
            made = self.vms[name] = Vm(name, kind, host, row, time.time(), list(volumes))
            self._tell(made, host, 1)
            return made

    def delete(self, name: str) -> Vm | None:
        """Let it run no more; return what it was."""
        with self.lock:
            vm = self.vms.pop(name, None)
            if vm is not None:
                self._free.append(vm.row)
                self._tell(vm, vm.host, -1)
            return vm

    def migrate(self, name: str, host: int) -> Vm | None:
        """Let it run elsewhere, in a new process that counts from nothing."""
        with self.lock:
            vm = self.vms.get(name)
            if vm is None or vm.host == host:
                return None
            now = time.strftime('%Y-%m-%dT%H:%M:%S.000000', time.gmtime())
            self.migrations.append({
                'id': len(self.migrations), 'uuid': str(uuid.uuid4()), 'status': 'completed',
                'instance_uuid': name, 'source_compute': self.hosts[vm.host],
                'dest_compute': self.hosts[host], 'migration_type': 'live-migration',
                'created_at': now, 'updated_at': now})
            self._tell(vm, vm.host, -1)
            self._tell(vm, host, 1)
            vm.host = host
            self._counters[vm.row] = 0.0
            return vm

    def attach(self, name: str) -> Vm | None:
        """Give it one more volume."""
        with self.lock:
            vm = self.vms.get(name)
            if vm is not None:
                vm.volumes.append(str(uuid.uuid4()))
            return vm

    def any_small(self) -> Vm | None:
        """Return one of the small VMs."""
        with self.lock:
            names = list(self.vms)
            for _try in range(100):
                vm = self.vms[names[self.rng.integers(len(names))]]
                if vm.kind is not BIG:
                    return vm
        return None

    def poll(self) -> float:
        """Let agents count what has happened since the last time; return the seconds since."""
        with self.lock:
            now = time.time()
            passed, self._polled = now - self._polled, now
            vms = list(self.vms.values())
            hosts = np.array([vm.host for vm in vms], dtype=np.intp)
            rows = np.array([vm.row for vm in vms], dtype=np.intp)
            ages = np.minimum(passed, now - np.array([vm.launched for vm in vms]))
            silent = set(self.silent)
        demand = np.array([vm.kind.demand for vm in vms])
        slowed = self._slowdowns(vms, hosts)
        reads, writes, guest, host = demand.T * self.rng.normal(1.0, _NOISE, len(vms))
        reading, writing = _LATENCY[0] * reads, _LATENCY[1] * writes
        # All of them are open loops, with idle time left however slow they are: they do as much
        # as alone, and wait for a core.
        learnt = self._calibrated
        stretch = np.interp(slowed, learnt.curve.slowdown, learnt.curve.signal)
        alone = learnt.self_delay[0] * guest + learnt.self_delay[1] * host
        delay = alone + (stretch - 1) * (guest + alone + reading + writing)
        rates = 1e9 * np.column_stack([
            np.ones(len(vms)), guest, delay, host, 1e-9 * reads, 1e-9 * writes, reading, writing,
            np.zeros(len(vms))])
        with self.lock:
            self._counters[rows] += rates * ages[:, None]
            heard = [index for index, vm in enumerate(vms)
                     if hosts[index] not in silent and self.vms.get(vm.uuid) is vm
                     and hosts[index] == vm.host]
            uuids = [vms[index].uuid for index in heard]
            places: dict[str, list[int]] = {}
            for place, name in enumerate(uuids):
                places.setdefault(name[-1], []).append(place)
            self.polls.append(Poll(now, uuids, self._counters[rows[heard]], places))
        return passed

    def listed(self) -> Iterator[Vm]:
        """Yield a copy of each VM."""
        with self.lock:
            yield from [dataclasses.replace(vm) for vm in self.vms.values()]

    def gains(self, moves: Sequence[tuple[str, int, int]], at: float) -> list[float]:
        """Return by how much the sum of log slowdowns falls with each move of a plan.

        :param moves: uuid, source and destination of each, in the order of the plan, each of which
            rests on those before it
        :param at: seconds since the epoch; hosts count as they were then
        """
        hosts = {host: self._on(host, at) for _name, *both in moves for host in both}
        gains = []
        for name, source, destination in moves:
            beside = {host: hosts[host] for host in (source, destination)}
            before = self._harm(beside)
            if name in hosts[source]:
                hosts[destination][name] = hosts[source].pop(name)
            gains.append(before - self._harm(beside))
        return gains

    def moments(self, hosts: Container[int], since: float, until: float) -> list[float]:
        """Return times at which all is seen that was true of some hosts, one after the other."""
        with self.lock:
            return sorted({since, *(at for at, host, _step, _vm in self._log
                                    if host in hosts and since < at <= until)})

    def story(self, hosts: Container[int], since: float) -> list[dict[str, Any]]:
        """Return who came to some hosts, 1, and who went, -1, since a time."""
        with self.lock:
            return [{'at': at, 'host': self.hosts[host], 'step': step, 'vm': vm.uuid,
                     'large': vm.kind is BIG, 'volume': not vm.kind.image,
                     'age': at - vm.launched}
                    for at, host, step, vm in self._log if host in hosts and at >= since]

    def _on(self, host: int, at: float) -> dict[str, Kind]:
        """Return the kinds of the VMs that were on a host at a time."""
        with self.lock:
            found = {vm.uuid: vm.kind for vm in self.vms.values() if vm.host == host}
            for then, where, step, vm in reversed(self._log):
                if then <= at:
                    break
                if where == host and step < 0:
                    found[vm.uuid] = vm.kind
                elif where == host:
                    found.pop(vm.uuid, None)
        return found

    def _harm(self, hosts: dict[int, dict[str, Kind]]) -> float:
        state = cluster.build([
            cluster.Host(self.hosts[host],
                         tuple(kind.resident(name) for name, kind in kinds.items()), cores=CORES)
            for host, kinds in hosts.items()])
        return float(assessment.Assessor(state).log_responses()[0].sum())

    def _slowdowns(self, vms: list[Vm], hosts: np.ndarray) -> np.ndarray:
        beside: list[list[int]] = [[] for _host in self.hosts]
        for place, host in enumerate(hosts):
            beside[host].append(place)
        state = cluster.build([
            cluster.Host(name, tuple(vms[place].kind.resident(vms[place].uuid)
                                     for place in places), cores=CORES)
            for name, places in zip(self.hosts, beside)])
        found = np.exp(assessment.Assessor(state).log_responses()[0])
        order = np.array([place for places in beside for place in places], dtype=np.intp)
        slowed = np.empty(len(vms))
        slowed[order] = found
        return slowed

    def _tell(self, vm: Vm, host: int, step: int) -> None:
        self._counts[host] += step
        self._large[host] += step if vm.kind is BIG else 0
        self._log.append((time.time(), host, step, vm))
        for one in self._followers:
            one.append((host, vm.uuid, step))
