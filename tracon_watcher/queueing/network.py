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

"""Hosts and their VMs as closed networks of queues, and how much each VM is slowed down.

A vCPU works on the CPU for a part a of its time alone, on other resources r for a_r, and thinks
for the rest. Beside others, what it does at r takes s_r times as long, and a unit of work

    S = 1 + (waits for the CPU) + Σ_r a_r (s_r − 1) + wδ min(1, m / c)

where w are the times a second that it wakes up alone, δ what each costs while the cores are busy,
m the mean number of ready vCPUs of others and c the cores. The loop is closed: who waits asks
less. So states and stretches are a fixed point, and a VM meets the others as they are without it
(arrival theorem; Reiser & Lavenberg, J. ACM 27(2), 1980).

How the others would be without it is not solved again for each VM. They are solved once beside all
others, and once beside one of them less, by a part of their sums for each. The difference is
scaled by what the VM itself takes (as linearizers do; Chandy & Neuse, CACM 25(2), 1982).
"""

from __future__ import annotations

import collections
import dataclasses
import itertools

import numpy as np

from tracon_watcher.characteristics import BoolArray
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray
from tracon_watcher.queueing import capacity
from tracon_watcher.queueing import cores

#: What a wake-up costs while the cores are busy, in seconds, until a host type has taught it.
WAKE_UP = 40e-6
#: From what was solved without a newcomer, so many lead to what VMs suffer with it: the first is
#: within some per cent of that by which they suffer more.
ROUNDS = 1
#: Where spare cores are more than so many standard deviations, no loop waits.
_SURE = 4.0
#: vCPUs of a newcomer for which everything is ready; a larger one may take longer once.
_EXPECTED = 4
#: Requests of it that are under way at once, likewise.
_EXPECTED_REQUESTS = 1.0
_MOST_USED = 0.9999
_LEAST_OTHER = 1e-4
_TINY = 1e-12
_ROUNDS = 50
_TIMES = 2
_TOLERANCE = 1e-4
#: So many VMs are worked on at once: their arrays stay in the CPU's cache.
_AT_ONCE = 2000
#: Pairs of VMs, likewise.
_PAIRS = 20000
#: Groups of hosts that were solved before, at most.
_GROUPS = 6


@dataclasses.dataclass(frozen=True)
class Hosts:
    """Hosts whose VMs share cores.

    :ivar cores: (hosts,), how many threads VMs share; at least 1
    :ivar physical: (hosts,), cores that these threads are of; as many, if not given
    :ivar gain: (hosts,), by which waits are longer than the law says; 1 if not given
    """

    cores: FloatArray
    physical: FloatArray | None = None
    gain: FloatArray | None = None

    def some(self, rows: IntArray) -> Hosts:
        """Return these hosts."""
        return Hosts(self.cores[rows], _taken(self.physical, rows), _taken(self.gain, rows))


@dataclasses.dataclass(frozen=True)
class VMs:
    """VMs on hosts.

    :ivar host: (VMs,), in ascending order
    :ivar vcpus: (VMs,), whole numbers of at least 1
    :ivar used: (VMs,), part of its time alone in which each vCPU is on the CPU, 0 … 1
    :ivar weight: (VMs,), of which only ratios matter; 1 if not given
    :ivar wake_ups: (VMs,), a second of each vCPU alone; none if not given
    """

    host: IntArray
    vcpus: IntArray
    used: FloatArray
    weight: FloatArray | None = None
    wake_ups: FloatArray | None = None

    def some(self, rows: IntArray) -> VMs:
        """Return these VMs."""
        return VMs(self.host[rows], self.vcpus[rows], self.used[rows],
                   _taken(self.weight, rows), _taken(self.wake_ups, rows))


@dataclasses.dataclass(frozen=True)
class Usage:
    """What VMs use of resources other than cores, a row for each VM and resource.

    A resource belongs to one host here. Where several hosts use it, each has a row of its own for
    it, and what VMs of other hosts do there is given by its mean and variance.

    :ivar vm: (uses,), index
    :ivar resource: (uses,), index
    :ivar used: (uses,), part of its time alone that each vCPU of the VM spends there
    :ivar capacities: (resources, depths), see :func:`capacity.table`
    :ivar gain: (resources,), by which waits are longer than the law says; 1 if not given
    :ivar outside: (resources, 2), mean and variance of the loops of other hosts that are ready
        there; none if not given
    """

    vm: IntArray
    resource: IntArray
    used: FloatArray
    capacities: FloatArray
    gain: FloatArray | None = None
    outside: FloatArray | None = None


@dataclasses.dataclass(frozen=True)
class Newcomer:
    """A VM that could be placed on each of some hosts.

    :ivar vcpus: at least 1
    :ivar used: part of its time alone in which each vCPU is on the CPU, 0 … 1; (hosts,) or one
        for all
    :ivar resource: (hosts, uses), index of each resource that it would use on each host
    :ivar resource_used: (uses,), part of its time alone that each vCPU spends there
    """

    vcpus: int
    used: FloatArray | float
    weight: float = 1.0
    wake_ups: float = 0.0
    resource: IntArray | None = None
    resource_used: FloatArray | None = None


@dataclasses.dataclass(frozen=True)
class Effects:
    """How much VMs are slowed down.

    :ivar slowdown: (VMs,), time for a unit of work over that alone on the host, at least 1; its
        inverse is the IOPS ratio
    :ivar stretch: (VMs,), time that work on the CPU takes over that alone, at least 1
    :ivar resource_stretch: (uses,), the same of each use of a resource
    :ivar by_itself: (VMs,), how much the VM's own vCPUs slow each other down while it is alone,
        at least 1; no part of the others
    """

    slowdown: FloatArray
    stretch: FloatArray
    resource_stretch: FloatArray
    by_itself: FloatArray


@dataclasses.dataclass(frozen=True)
class _Solved:
    """Hosts that were solved together.

    :ivar begin: (hosts + 1,), the first of each one's VMs in the network, and ``uses``, the first
        of their uses of resources
    :ivar resources: of each host, indices of the resources that its VMs use, in order
    """

    network: _Network
    effects: Effects
    begin: IntArray
    uses: IntArray
    resources: list[IntArray]


class SolvedHosts:
    """Remembers hosts that were solved, by all that their solution depends on.

    Those that were solved first are forgotten first. Threads may share it: the worst that they do
    to each other is that a host is solved again.

    :param most: VMs of which it remembers the hosts, each about 4 kB
    """

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._places: dict[bytes, tuple[_Solved, int]] = {}
        self._order: collections.deque[tuple[_Solved, list[bytes]]] = collections.deque()

    def get(self, key: bytes) -> tuple[_Solved, int] | None:
        """Return what a host is part of, and its place there."""
        return self._places.get(key)

    def keep(self, keys: list[bytes], solved: _Solved) -> None:
        """Remember hosts, given in the order of their places."""
        self._places.update((key, (solved, place)) for place, key in enumerate(keys))
        self._order.append((solved, keys))
        beyond = sum(int(old.begin[-1]) for old, _keys in list(self._order)) - self._most
        while beyond > 0 and len(self._order) > 1:
            try:
                old, forgotten = self._order.popleft()
            except IndexError:      # other threads have forgotten them meanwhile
                return
            beyond -= int(old.begin[-1])
            for key in forgotten:
                # It may have been solved again since.
                if self._places.get(key, (None,))[0] is old:
                    self._places.pop(key, None)


@dataclasses.dataclass(frozen=True)
class _Part:
    """Some of the hosts, solved together.

    :ivar hosts: their indices, −1 for hosts that are none of these
    :ivar rows: indices of their VMs, −1 likewise
    :ivar resources: (resources,) index in the network of each resource, −1 for those that it has
        not; None where the indices are the same
    """

    hosts: IntArray
    rows: IntArray
    network: _Network
    resources: IntArray | None = None

    def newcomer(self, newcomer: Newcomer, used: FloatArray, resource: IntArray) -> Newcomer:
        """Return a newcomer on these hosts.

        :param used: (all hosts,), and ``resource``, (all hosts, uses), as of a newcomer
        """
        resource = resource[self.hosts]
        if self.resources is not None:
            there = (resource >= 0) & (self.hosts >= 0)[:, np.newaxis]
            resource = np.where(there, self.resources[resource], -1)
        return dataclasses.replace(newcomer, used=used[self.hosts], resource=resource)


class SolvedNetwork:
    """Hosts and their VMs, ready for one more VM.

    :ivar effects: how much the VMs slow each other down now
    """

    def __init__(self, hosts: Hosts, vms: VMs, uses: Usage | None = None,
                 known: SolvedHosts | None = None) -> None:
        """Find out how much VMs slow each other down.

        :param known: hosts that are not solved again; those that are solved are added
        :raises ValueError: on a number that is none, or out of its range
        """
        uses = nothing() if uses is None else uses
        _check(hosts, vms, uses)
        self._hosts, self._vms, self._uses, self._known = hosts, vms, uses, known
        self._order = np.argsort(uses.vm, kind='stable')
        self._used_by = uses.vm[self._order]
        count = len(vms.host)
        self.effects = Effects(np.ones(count), np.ones(count), np.ones(len(uses.vm)),
                               np.ones(count))
        self._parts: list[_Part] = []
        self._solved = np.zeros(len(hosts.cores), dtype=bool)
        self._solve(self._spare(_EXPECTED, _EXPECTED_REQUESTS) < 0.0)

    def with_newcomer(self, newcomer: Newcomer, residents: BoolArray | bool = True
                      ) -> tuple[FloatArray, FloatArray]:
        """Return the slowdowns if a newcomer came, by :data:`ROUNDS`.

        :param residents: (hosts,) or one for all: where those of the VMs that are there are worked
            out; elsewhere they are returned as they are without a newcomer
        :returns: as :func:`with_newcomer`, which works them out as if nothing were known
        """
        resource = (np.zeros((len(self._hosts.cores), 0), dtype=np.intp)
                    if newcomer.resource is None else newcomer.resource)
        waiting = np.zeros(1) if newcomer.resource_used is None else newcomer.resource_used
        requests = float((newcomer.vcpus * waiting + _SURE * np.sqrt(
            newcomer.vcpus * waiting * (1.0 - waiting))).max(initial=0.0))
        needed = self._spare(newcomer.vcpus, min(requests, newcomer.vcpus)) < 0.0
        self._solve(needed & ~self._solved)
        wanted = np.broadcast_to(residents, len(needed)) & needed
        own, others = np.ones(len(needed)), self.effects.slowdown.copy()
        used = np.broadcast_to(newcomer.used, needed.shape)
        for part in self._parts:
            here = part.newcomer(newcomer, used, resource)
            concerned = needed[part.hosts] & (part.hosts >= 0)
            # A part is solved as a whole, but what is said of a host depends on it alone.
            if (wanted[part.hosts] & concerned).any():
                alone, beside = part.network.with_newcomer(here)
                rows = (part.rows >= 0) & wanted[self._vms.host[part.rows]]
                others[part.rows[rows]] = beside[rows]
            elif concerned.any():
                alone = part.network.newcomer(here)[1]
            else:
                continue
            own[part.hosts[concerned]] = alone[concerned]
        return own, others

    def without(self, host: int) -> FloatArray:
        """Return the slowdowns of the m VMs of a host without each one of them, (m, m).

        From what was solved, as if who stays did as much as the linearizer says. Who leaves has
        the first index, and a slowdown of 1.
        """
        first, last = np.searchsorted(self._vms.host, (host, host + 1))
        found = np.ones((last - first, last - first))
        for part in self._parts:
            if len(found) > 1 and host in part.hosts:
                own = np.flatnonzero((part.rows >= first) & (part.rows < last))
                step = max(_PAIRS // len(own), 1)
                for begin in range(0, len(own), step):
                    found[begin:begin + step] = part.network.without(
                        own, own[begin:begin + step])
        return found

    def _spare(self, more: int = 0, requests: float = 0.0) -> FloatArray:
        """Return how many cores there are beyond those that may be wanted, (hosts,).

        Where it is not negative, no loop waits.

        :param more: vCPUs of a newcomer
        :param requests: of it that are under way at once
        """
        hosts, vms = self._hosts, self._vms
        count = len(hosts.cores)
        there, mean, variance = (np.bincount(vms.host, vms.vcpus * each, count) for each in (
            np.ones(len(vms.host)), vms.used, vms.used * (1.0 - vms.used)))
        # Threads of a core do not slow each other down before each core has a busy one.
        alone = hosts.cores if hosts.physical is None else hosts.physical
        spare: FloatArray = alone - more - np.minimum(
            there, mean + _SURE * np.sqrt(variance) + 1.0)
        np.minimum.at(spare, *self._spare_of_resources(requests))
        spare[there == 0] = 0.0
        return spare

    def _spare_of_resources(self, more: float) -> tuple[IntArray, FloatArray]:
        """Return the host of each resource, and the depth it has beyond what may be wanted."""
        uses, vms = self._uses, self._vms
        named, place = np.unique(uses.resource, return_inverse=True)
        host = np.zeros(len(named), dtype=np.intp)
        host[place] = vms.host[uses.vm]
        loops = vms.vcpus[uses.vm]
        there, mean, variance = (np.bincount(place, loops * each, len(named)) for each in (
            np.ones(len(place)), uses.used, uses.used * (1.0 - uses.used)))
        if uses.outside is not None:
            there, mean, variance = (one + uses.outside[named, column] for one, column in (
                (there, 0), (mean, 0), (variance, 1)))
        # As long as it does one more for each that comes, no request waits.
        depths = np.arange(1.0, uses.capacities.shape[1] + 1.0)
        whole = np.cumprod(uses.capacities[named] >= depths - _TINY, axis=1).sum(axis=1)
        return host, whole - more - np.minimum(there, mean + _SURE * np.sqrt(variance) + 1.0)

    def _solve(self, wanted: BoolArray) -> None:
        """Solve some hosts, (hosts,), and keep what is needed for a newcomer."""
        # Those with the least to spare first: a newcomer concerns the first parts alone.
        hosts = np.flatnonzero(wanted & (np.bincount(self._vms.host, minlength=len(wanted)) > 0))
        hosts = hosts[np.argsort(self._spare()[hosts], kind='stable')]
        self._solved |= wanted
        keys: dict[int, bytes] = {}
        if self._known is not None:
            keys = {host: self._key(host) for host in hosts.tolist()}
            hosts = self._recall(hosts, keys, self._known)
        rows, begin = self._vms_of(hosts)
        place = np.repeat(np.arange(len(hosts)), np.diff(begin))
        new = []
        for first, last in itertools.pairwise(_cuts(place)):
            there = hosts[place[first]:place[last - 1] + 1]
            own = rows[first:last]
            uses, begin_uses = self._uses_of(own)
            part = _Network(self._hosts.some(there), dataclasses.replace(
                self._vms.some(own), host=place[first:last] - place[first]), dataclasses.replace(
                self._uses, vm=np.repeat(np.arange(len(own)), np.diff(begin_uses)),
                resource=self._uses.resource[uses], used=self._uses.used[uses]))
            found = part.solve()
            self._take(own, slice(None), uses, slice(None), found)
            new.append(_Part(there, own, part))
            if self._known is not None:
                ends = self._vms_of(there)[1]
                self._known.keep([keys[host] for host in there.tolist()], _Solved(
                    part, found, ends, begin_uses[ends],
                    [self._resources_of(host) for host in there.tolist()]))
        self._parts = self._parts + new

    def _recall(self, hosts: IntArray, keys: dict[int, bytes], known: SolvedHosts) -> IntArray:
        """Take over hosts that were solved before; return the others.

        Those that were solved in small groups are among the others where there are many groups,
        each of which costs about as much as a large one.
        """
        groups: dict[int, tuple[_Solved, dict[int, int]]] = {}
        for host in hosts.tolist():
            found = known.get(keys[host])
            if found is not None:
                # Of hosts that are alike, one is there.
                groups.setdefault(id(found[0]), (found[0], {}))[1].setdefault(found[1], host)
        largest = sorted(groups.values(), key=lambda group: -len(group[1]))
        if len(largest) > _GROUPS:
            # So that they are not as many again with the next host.
            largest = largest[:_GROUPS // 2]
        for solved, places in largest:
            there = np.full(len(solved.begin) - 1, -1)
            rows = np.full(solved.begin[-1], -1)
            resources = np.full(max(len(self._uses.capacities), 1), -1)
            for place, host in places.items():
                there[place] = host
                own, _begin = self._vms_of(np.array([host]))
                uses, _begin = self._uses_of(own)
                before = slice(*solved.begin[place:place + 2])
                rows[before] = own
                self._take(own, before, uses, slice(*solved.uses[place:place + 2]),
                           solved.effects)
                resources[self._resources_of(host)] = solved.resources[place]
            self._parts = [*self._parts, _Part(there, rows, solved.network, resources)]
        taken = [host for _solved, places in largest for host in places.values()]
        return hosts[~np.isin(hosts, taken)]

    def _take(self, rows: IntArray, there: slice, uses: IntArray, uses_there: slice,
              found: Effects) -> None:
        """Take over what was found of some VMs, and of their uses of resources."""
        for name in ('slowdown', 'stretch', 'by_itself'):
            getattr(self.effects, name)[rows] = getattr(found, name)[there]
        self.effects.resource_stretch[uses] = found.resource_stretch[uses_there]

    def _vms_of(self, hosts: IntArray) -> tuple[IntArray, IntArray]:
        """Return the VMs of hosts, in their order, and where each host's begin, (hosts + 1,)."""
        first, last = (np.searchsorted(self._vms.host, hosts, side=side)
                       for side in ('left', 'right'))
        return _ranges(first, last - first), np.append(0, np.cumsum(last - first))

    def _uses_of(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return the uses of VMs, in their order, and where each VM's begin, (VMs + 1,)."""
        first, last = (np.searchsorted(self._used_by, rows, side=side)
                       for side in ('left', 'right'))
        return (self._order[_ranges(first, last - first)],
                np.append(0, np.cumsum(last - first)))

    def _resources_of(self, host: int) -> IntArray:
        """Return the resources that the VMs of a host use, in order."""
        return np.unique(self._uses.resource[self._uses_of(self._vms_of(np.array([host]))[0])[0]])

    def _key(self, host: int) -> bytes:
        """Return all that the solution of a host depends on."""
        rows, _begin = self._vms_of(np.array([host]))
        uses, begin = self._uses_of(rows)
        named, resource = np.unique(self._uses.resource[uses], return_inverse=True)
        values = [*vars(self._hosts.some(np.array([host]))).values(),
                  *list(vars(self._vms.some(rows)).values())[1:], begin, resource,
                  self._uses.used[uses], self._uses.capacities[named],
                  _taken(self._uses.gain, named), _taken(self._uses.outside, named)]
        return b'|'.join([b'%d,%d' % (len(rows), len(uses)), *(
            b'' if one is None else np.asarray(one, dtype=float).tobytes() for one in values)])


def effects(hosts: Hosts, vms: VMs, uses: Usage | None = None) -> Effects:
    """Return how much the VMs of hosts slow each other down.

    :raises ValueError: on a number that is none, or out of its range
    """
    return SolvedNetwork(hosts, vms, uses).effects


def with_newcomer(hosts: Hosts, vms: VMs, newcomer: Newcomer,
                  uses: Usage | None = None) -> tuple[FloatArray, FloatArray]:
    """Return the slowdowns if a newcomer were placed, on each host for itself.

    :returns: those of the newcomer (hosts,), and those of the VMs (VMs,), each of them beside the
        newcomer on its own host
    """
    uses = nothing() if uses is None else uses
    count, residents = len(hosts.cores), len(vms.host)
    host = np.concatenate([vms.host, np.arange(count)])
    order = np.argsort(host, kind='stable')
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))

    def joined(values: FloatArray | None, missing: float,
               value: FloatArray | float) -> FloatArray:
        whole = np.full(residents, missing) if values is None else values
        return np.concatenate([whole, np.full(count, value)])[order]

    vcpus = np.concatenate([vms.vcpus, np.full(count, newcomer.vcpus)])[order]
    both = VMs(host[order], vcpus, joined(vms.used, 0.0, newcomer.used),
               joined(vms.weight, 1.0, newcomer.weight),
               joined(vms.wake_ups, 0.0, newcomer.wake_ups))
    vm, resource, used = place[uses.vm], uses.resource, uses.used
    if newcomer.resource is not None and newcomer.resource_used is not None:
        kinds = len(newcomer.resource_used)
        vm = np.concatenate([vm, np.repeat(place[residents:], kinds)])
        resource = np.concatenate([resource, newcomer.resource.ravel()])
        used = np.concatenate([used, np.tile(newcomer.resource_used, count)])
    found = effects(hosts, both, dataclasses.replace(uses, vm=vm, resource=resource, used=used))
    return found.slowdown[place[residents:]], found.slowdown[place[:residents]]


def nothing() -> Usage:
    """Return that VMs use nothing but cores."""
    none = np.zeros(0, dtype=np.intp)
    return Usage(none, none, np.zeros(0), capacity.table([]))


class _Network:
    """Some hosts' VMs, and the resources they use."""

    def __init__(self, hosts: Hosts, vms: VMs, uses: Usage) -> None:
        self._vms, self._uses = vms, uses
        self._vcpus = vms.vcpus.astype(np.intp)
        self._used = np.clip(vms.used, _TINY, _MOST_USED)
        self._cores = hosts.cores[vms.host]
        ones = np.ones(len(hosts.cores))
        self._sharing = cores.ProcessorSharing(
            hosts.cores, hosts.cores if hosts.physical is None else hosts.physical, vms.host,
            self._vcpus, np.ones(len(vms.host)) if vms.weight is None else vms.weight,
            self._used, ones if hosts.gain is None else hosts.gain)
        self._wake_ups = (np.zeros(len(vms.host)) if vms.wake_ups is None
                          else vms.wake_ups * WAKE_UP)
        count = len(uses.capacities)
        self._named, self._resource = np.unique(uses.resource, return_inverse=True)
        named = self._named
        self._capacities = uses.capacities[named]
        self._gain = np.ones(count)[named] if uses.gain is None else uses.gain[named]
        self._outside = (np.zeros((len(named), 2)) if uses.outside is None
                         else uses.outside[named])
        self._loops = self._vcpus[uses.vm].astype(float)
        busy = self._on_vm(uses.used)
        self._think = np.maximum(1.0 - self._used - busy, 0.0)

    def solve(self) -> Effects:
        """Find the fixed point, and say what it means for each VM."""
        size = self._vcpus * self._used
        others = self._sharing.total(size) - size
        squares = self._sharing.total(size * size) - size * size
        part = np.clip(squares / np.maximum(others * others, _TINY), 1e-3, 1.0)[:, np.newaxis]
        less = 1.0 - part
        loops = self._on_resource(self._loops)
        loops_less = np.where(loops > 1.0, (loops - 2.0) / np.maximum(loops - 1.0, 1.0), 0.0)

        quiet, quiet_stretch = self._alone()
        self._most = self._sharing.total(self._sharing.most) - self._sharing.most
        every, stretch = quiet, quiet_stretch
        lost = np.zeros((2, *quiet.mean.shape))
        for _time in range(_TIMES):
            every, _found = self._rounds(1.0, 1.0, lost, every, stretch)
            fewer, stretch = self._rounds(less, loops_less, lost, every, stretch)
            seen = np.maximum(self._sharing.total(every.mean) - every.mean, _TINY)
            # What each takes less, by what is left out of its others.
            lost = np.stack([every.mean - fewer.mean,
                             every.variance - fewer.variance]) / (part * seen)
        stretch = self._waits(fewer, stretch, 1.0)
        self._solved = every, lost, stretch, quiet
        background = self._others(every, lost)
        found = self._sharing.beside(*background, self._other(stretch, background[0]))
        each = self._vcpus * self._used
        on_cpu = found.mean[:, -1] / found.served / (quiet.mean[:, -1] / quiet.served)
        return Effects(np.maximum(quiet.served / found.served, 1.0), np.maximum(on_cpu, 1.0),
                       np.maximum(stretch / quiet_stretch, 1.0),
                       np.maximum(each / quiet.served, 1.0))

    def without(self, rows: IntArray, leavers: IntArray) -> FloatArray:
        """Return the slowdowns of VMs of one host, (k, m), without each of some of them.

        :param rows: (m,) all VMs of the host
        :param leavers: (k,) of these
        """
        every, lost, stretch, quiet = self._solved
        who, stay = np.repeat(leavers, len(rows)), np.tile(rows, len(leavers))
        pair = np.flatnonzero(who != stay)
        who, stay = who[pair], stay[pair]
        both = every.mean[who] + every.mean[stay]
        mean, variance = (
            one[rows].sum(axis=0) - one[who] - one[stay]
            - both * (less[rows].sum(axis=0) - less[who] - less[stay])
            for one, less in zip((every.mean, every.variance), lost))
        mean = np.clip(mean, 0.0, self._most[who] - self._sharing.most[stay])
        # What is ready at each resource, without who leaves.
        uses = np.flatnonzero(np.isin(self._uses.vm, rows))
        ready = self._ready(every, stretch)
        named, resource = np.unique(self._resource[uses], return_inverse=True)
        at = np.zeros((2, len(self._vcpus), len(named)))
        for place, one in enumerate((ready, ready * (1.0 - ready))):
            np.add.at(at[place], (self._uses.vm[uses], resource), self._loops[uses] * one[uses])
        owner, use = np.nonzero(self._uses.vm[uses] == stay[:, np.newaxis])
        own = ready[uses[use]]
        waits = [at[place][rows][:, resource[use]].sum(axis=0) - one
                 - at[place][who[owner], resource[use]]
                 + self._outside[self._resource[uses[use]], place]
                 for place, one in enumerate((own, own * (1.0 - own)))]
        longer = self.wait_at(self._resource[uses[use]], *waits)
        other = self._think[stay] + np.bincount(
            owner, self._uses.used[uses[use]] * longer, len(stay))
        other += self._wake_ups[stay] * np.minimum(mean[:, -1] / self._cores[stay], 1.0)
        state = self._sharing.some(stay).beside(mean, np.maximum(variance, 0.0),
                                                np.maximum(other, _LEAST_OTHER))
        found = np.ones(len(leavers) * len(rows))
        found[pair] = np.maximum(quiet.served[stay] / state.served, 1.0)
        return found.reshape(len(leavers), len(rows))

    def with_newcomer(self, newcomer: Newcomer) -> tuple[FloatArray, FloatArray]:
        """Return the slowdowns of a newcomer on each host that has VMs, and of these VMs.

        By a few rounds from what was solved.

        :param newcomer: with what it uses on these hosts
        """
        every, lost, stretch, quiet = self._solved
        new, own, came = self.newcomer(newcomer)
        state = every
        for number in range(ROUNDS):
            if number:
                came = new.beside(self._sharing.of_hosts(state.mean),
                                  self._sharing.of_hosts(state.variance),
                                  *self._at_resources(state, stretch), self)
            mean, variance = (
                one + self._sharing.on_hosts(more[:, 1:-1]) for one, more in zip(
                    self._others(state, lost), (came.mean, came.variance)))
            stretch = self._waits(state, stretch, 1.0, new.at_resources(came, len(self._gain)))
            state = self._sharing.beside(mean, variance, self._other(stretch, mean))
        return own, np.maximum(quiet.served / state.served, 1.0)

    def newcomer(self, newcomer: Newcomer) -> tuple[_Newcomers, FloatArray, cores.State]:
        """Return a newcomer on each host, its slowdowns and its states beside the VMs there.

        It meets them as they are without it.
        """
        every, _lost, stretch, _quiet = self._solved
        assert newcomer.resource is not None
        new = _Newcomers(self._sharing, newcomer, self._local(newcomer.resource))
        state = new.beside(self._sharing.of_hosts(every.mean),
                           self._sharing.of_hosts(every.variance),
                           *self._at_resources(every, stretch), self)
        return new, np.maximum(new.alone / state.served, 1.0), state

    def _local(self, resource: IntArray) -> IntArray:
        """Return which of the resources that VMs use here these are; −1 for those that none does.
        """
        if not len(self._named):
            return np.full(resource.shape, -1)
        found = np.minimum(np.searchsorted(self._named, resource), len(self._named) - 1)
        return np.where(self._named[found] == resource, found, -1)

    def _at_resources(self, state: cores.State,
                      stretch: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the loops that are ready at each resource."""
        ready = self._ready(state, stretch)
        mean, variance = (np.bincount(self._resource, self._loops * one, len(self._gain))
                          + self._outside[:, place]
                          for place, one in enumerate((ready, ready * (1.0 - ready))))
        return mean, variance

    def wait_at(self, resource: IntArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the stretch of a loop at resources, beside what is ready there.

        :param resource: of any shape, −1 for one of its own; so are the others
        """
        if not len(self._gain):
            return np.ones(resource.shape)
        flat, deviation = resource.ravel(), np.sqrt(np.maximum(variance.ravel(), _TINY))
        found = 1.0 + self._gain[flat] * (capacity.stretch(
            self._capacities[flat], np.maximum(mean.ravel(), 0.0), deviation) - 1.0)
        return np.where(flat >= 0, found, 1.0).reshape(resource.shape)

    def _alone(self) -> tuple[cores.State, FloatArray]:
        """Return the state of each VM alone, and the stretches by its own other vCPUs."""
        stretch = np.ones(len(self._uses.vm))
        no_others = np.zeros((len(self._vcpus), 1))
        state = self._sharing.alone(self._other(stretch, no_others))
        more = self._loops > 1
        if not more.any():
            return state, stretch
        less = np.where(more, (self._loops - 2.0) / np.maximum(self._loops - 1.0, 1.0), 0.0)
        for _round in range(_ROUNDS):
            ready = self._ready(state, stretch)
            found = self._stretch((self._loops - 1.0) * ready * less,
                                  (self._loops - 1.0) * ready * (1.0 - ready) * less)
            change = np.abs(found - stretch).max()
            stretch = found
            state = self._sharing.alone(self._other(stretch, no_others))
            if change < _TOLERANCE:
                break
        ready = self._ready(state, stretch)
        stretch = self._stretch((self._loops - 1.0) * ready,
                                (self._loops - 1.0) * ready * (1.0 - ready))
        return self._sharing.alone(self._other(stretch, no_others)), stretch

    def _others(self, state: cores.State, lost: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of what the others of each VM take, as they are without it."""
        total = self._sharing.total
        mean, variance = (total(all_of) - all_of - state.mean * (total(less) - less)
                          for all_of, less in zip((state.mean, state.variance), lost))
        return np.clip(mean, 0.0, self._most), np.maximum(variance, 0.0)

    def _rounds(self, less: FloatArray | float, loops_less: FloatArray | float,
                lost: FloatArray, state: cores.State,
                stretch: FloatArray) -> tuple[cores.State, FloatArray]:
        """Return the fixed point beside a part of the others, and the stretches."""
        for number in range(_ROUNDS):
            mean, variance = self._others(state, lost)
            new = self._sharing.beside(mean * less, variance * less, self._other(stretch, mean))
            change = np.abs(new.mean - state.mean).max(initial=0.0)
            state = new
            if len(stretch):
                found = self._waits(state, stretch, loops_less)
                change = max(change, np.abs(found - stretch).max())
                # Who waits at one resource is less at another: rounds could swing.
                stretch = found if number < 4 else (found + stretch) / 2.0
            if change < _TOLERANCE:
                break
        return state, stretch

    def _other(self, stretch: FloatArray, mean: FloatArray) -> FloatArray:
        """Return what each vCPU does besides its work on the CPU, in a unit of work."""
        found = self._think + self._on_vm(self._uses.used * stretch)
        found += self._wake_ups * np.minimum(mean[:, -1] / self._cores, 1.0)
        return np.maximum(found, _LEAST_OTHER)

    def _ready(self, state: cores.State, stretch: FloatArray) -> FloatArray:
        """Return the part of its time that each loop is ready for the resource of a use."""
        rate = state.served / (self._vcpus * self._used)
        found: FloatArray = np.minimum(self._uses.used * stretch * rate[self._uses.vm], 1.0)
        return found

    def _waits(self, state: cores.State, stretch: FloatArray, less: FloatArray | float,
               more: FloatArray | None = None) -> FloatArray:
        """Return the stretch of each use beside a part of the other loops at its resource.

        :param more: (2, resources), mean and variance of what a newcomer adds
        """
        ready = self._ready(state, stretch)
        spread = ready * (1.0 - ready)
        beyond = self._outside if more is None else self._outside + more.T
        mean, variance = ((self._on_resource(self._loops * one) - one) * less
                          + beyond[self._resource, place]
                          for place, one in enumerate((ready, spread)))
        return self._stretch(mean, variance)

    def _stretch(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        deviation = np.sqrt(np.maximum(variance, _TINY))
        found = capacity.stretch(self._capacities[self._resource], np.maximum(mean, 0.0),
                                 deviation)
        return 1.0 + self._gain[self._resource] * (found - 1.0)

    def _on_vm(self, values: FloatArray) -> FloatArray:
        found: FloatArray = np.bincount(
            self._uses.vm, values, len(self._vcpus)).astype(float)
        return found

    def _on_resource(self, values: FloatArray) -> FloatArray:
        found: FloatArray = np.bincount(
            self._resource, values, len(self._capacities)).astype(float)
        return found[self._resource]


class _Newcomers:
    """A newcomer on each of some hosts."""

    def __init__(self, residents: cores.ProcessorSharing, newcomer: Newcomer,
                 resource: IntArray) -> None:
        self._newcomer, self._resource = newcomer, resource
        self._used = np.clip(newcomer.used, _TINY, _MOST_USED)
        self._parts = (np.zeros(0) if newcomer.resource_used is None
                       else newcomer.resource_used)
        self._think = np.maximum(1.0 - self._used - self._parts.sum(), 0.0)
        self._sharing = residents.newcomers(newcomer.vcpus, newcomer.weight, self._used)
        self._stretch = np.ones(resource.shape)
        #: (hosts,) cores that it is served alone.
        self.alone = self._sharing.alone(self._other()).served

    def beside(self, mean: FloatArray, variance: FloatArray, ready: FloatArray,
               spread: FloatArray, network: _Network) -> cores.State:
        """Return its state beside the VMs of each host.

        :param mean: (hosts, levels) of what they take, and ``variance``
        :param ready: (resources,) mean of their loops that are ready, and ``spread``
        """
        if len(ready):
            at = self._resource
            self._stretch = network.wait_at(at, ready[at], spread[at])
        return self._sharing.beside(*self._sharing.on_levels(mean, variance), self._other())

    def at_resources(self, state: cores.State, count: int) -> FloatArray:
        """Return mean and variance of its loops that are ready at each resource, (2, count)."""
        rate = state.served / (self._newcomer.vcpus * self._used)
        ready = np.minimum(self._parts * self._stretch * rate[:, np.newaxis], 1.0)
        shared = self._resource >= 0
        return np.stack([np.bincount(
            self._resource[shared], self._newcomer.vcpus * one[shared], count)
            for one in (ready, ready * (1.0 - ready))])

    def _other(self) -> FloatArray:
        found: FloatArray = np.maximum(
            self._think + self._stretch @ self._parts, _LEAST_OTHER)
        return found


def _ranges(begin: IntArray, size: IntArray) -> IntArray:
    """Return begin, begin + 1, … of each, size numbers, one after another."""
    ends = np.cumsum(size)
    found: IntArray = np.arange(ends[-1] if len(ends) else 0) \
        + np.repeat(begin - ends + size, size)
    return found


def _taken(values: FloatArray | None, rows: IntArray) -> FloatArray | None:
    return None if values is None else values[rows]


def _cuts(host: IntArray) -> IntArray:
    """Return where VMs are divided, between hosts."""
    begin = np.append(np.flatnonzero(np.diff(host, prepend=-1)), len(host))
    wanted = np.searchsorted(begin, np.arange(0, len(host) + _AT_ONCE, _AT_ONCE))
    cuts: IntArray = begin[np.unique(wanted.clip(0, len(begin) - 1))]
    return cuts


def _check(hosts: Hosts, vms: VMs, uses: Usage) -> None:
    for what, values, least, most in (
            ('cores', hosts.cores, 1.0, np.inf), ('physical', hosts.physical, 1.0, np.inf),
            ('gain', hosts.gain, 0.0, np.inf), ('vcpus', vms.vcpus, 1, np.inf),
            ('used', vms.used, 0.0, 1.0), ('weight', vms.weight, _TINY, np.inf),
            ('wake_ups', vms.wake_ups, 0.0, np.inf), ('used of a resource', uses.used, 0.0, 1.0),
            ('capacities', uses.capacities, _TINY, np.inf),
            ('gain of a resource', uses.gain, 0.0, np.inf),
            ('outside', uses.outside, 0.0, np.inf)):
        if values is None:
            continue
        wrong = ~((values >= least) & (values <= most) & np.isfinite(values))
        if wrong.any():
            raise ValueError(f'{what}: {values[wrong][0]} is not a number from {least} to {most}')
    if (np.diff(vms.host) < 0).any():
        raise ValueError('host: VMs are not in the order of their hosts')
