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

"""The state of a cluster as arrays: hosts, their residents, limits and contention domains."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Iterable, Mapping, Sequence

import numpy as np

from tracon_watcher import characteristics
from tracon_watcher.characteristics import COUNT, FloatArray, IO, IntArray
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer

LOCAL = 'local'
#: A storage backend that nobody could tell; whoever is on it is unknown, and so is its host.
UNKNOWN = 'unknown'
#: Of the VMs on a storage backend, the share of which the I/O may be unknown: each of these counts
#: as the mean of the others. With more the I/O on that backend is unknown.
MOST_UNKNOWN = 0.1


@dataclasses.dataclass(frozen=True)
class Resident:
    """A VM on a host.

    :param profile: (4,) its uncontended demand, or None where unknown
    :param io_domain: storage backend, None for the host's own default
    :param own_wait: see :mod:`.own_wait`
    :param vcpus: how many virtual CPUs it has
    :param storage_wait: part of its time alone that each of them waits for storage, NaN where
        unknown
    """

    uuid: str
    profile: FloatArray | None = None
    limits: limits_module.Limits = limits_module.NONE
    io_domain: str | None = None
    own_wait: float = 0.0
    vcpus: int = 1
    storage_wait: float = math.nan


@dataclasses.dataclass(frozen=True)
class Host:
    """A compute host.

    :param host_type: names the models that apply, None where unknown
    :param io_domain: the storage backend of its VMs: ``local`` for a disk of its own, another
        name for a pool that hosts share, None where unknown
    :param updated_at: when its data was taken, seconds since the epoch
    :param cores: threads of its CPU that VMs share, None where unknown
    """

    name: str
    residents: tuple[Resident, ...] = ()
    host_type: str | None = None
    io_domain: str | None = LOCAL
    updated_at: float = 0.0
    cores: int | None = None


@dataclasses.dataclass(frozen=True)
class ClusterState:
    """Hosts and residents as arrays; residents stand in the order of their hosts.

    :param hosts: h names, all different
    :param host_type: h names of host types, None where unknown
    :param host_io_domain: (h,) index of each host's storage backend, -1 where unknown
    :param updated_at: (h,) seconds since the epoch
    :param cores: (h,) threads of each host's CPU that VMs share, NaN where unknown
    :param uuids: n residents, all different
    :param host: (n,) index of each resident's host, not falling
    :param io_domain: (n,) index of each resident's storage backend, -1 where unknown
    :param profiles: (n, 4), NaN where unknown
    :param max_slowdown: (n,), infinity for none
    :param min_iops_ratio: (n,), 0 for none
    :param own_wait: (n,) share of time that each VM waits for its own limits, see
        :mod:`.own_wait`; 0 for a VM that is at none
    :param vcpus: (n,) virtual CPUs of each
    :param storage_wait: (n,) part of its time alone that each of them waits for storage, NaN where
        unknown
    :param io_domains: names of the storage backends
    :param history: profiles of newcomers, see :mod:`tracon_watcher.placement.newcomer`
    :param version: rises with every snapshot
    :param generated_at: seconds since the epoch
    :param io_elsewhere: (d, 2) reads and writes per second on each storage backend by VMs that
        are not in this state; None for none
    :param io_stand_in: (d, 2) reads and writes per second on each storage backend that a VM counts
        with of which they are unknown, NaN for unknown; None: see :attr:`stand_in`
    :param io_doubt: (d, 2) standard deviations of what all such VMs together do on each storage
        backend; None: see :attr:`doubt`
    """

    hosts: tuple[str, ...]
    host_type: tuple[str | None, ...]
    host_io_domain: IntArray
    updated_at: FloatArray
    cores: FloatArray
    uuids: tuple[str, ...]
    host: IntArray
    io_domain: IntArray
    profiles: FloatArray
    max_slowdown: FloatArray
    min_iops_ratio: FloatArray
    own_wait: FloatArray
    vcpus: IntArray
    storage_wait: FloatArray
    io_domains: tuple[str, ...]
    history: Mapping[str, newcomer.Profile]
    version: int = 0
    generated_at: float = 0.0
    io_elsewhere: FloatArray | None = None
    io_stand_in: FloatArray | None = None
    io_doubt: FloatArray | None = None

    @functools.cached_property
    def host_index(self) -> Mapping[str, int]:
        """Index of each host by name."""
        return {name: index for index, name in enumerate(self.hosts)}

    @functools.cached_property
    def resident_index(self) -> Mapping[str, int]:
        """Index of each resident by uuid."""
        return {uuid: index for index, uuid in enumerate(self.uuids)}

    @functools.cached_property
    def first(self) -> IntArray:
        """(h + 1,): residents of host i are first[i] to first[i + 1] − 1."""
        return np.searchsorted(self.host, np.arange(len(self.hosts) + 1)).astype(np.intp)

    @functools.cached_property
    def io_beyond(self) -> FloatArray:
        """(n, 2): reads and writes per second of VMs on other hosts on each resident's storage.

        0 on a host's own disk; NaN where unknown.
        """
        return self._io_beyond(self.host, self.io_domain)

    @functools.cached_property
    def host_io_beyond(self) -> FloatArray:
        """(h, 2): the same for one more VM on each host's storage."""
        return self._io_beyond(np.arange(len(self.hosts)), self.host_io_domain)

    def io_beyond_on(self, domain: int) -> tuple[FloatArray, FloatArray]:
        """Return :attr:`host_io_beyond` and :attr:`host_io_beyond_doubt`, (h, 2) each, of one more
        VM on this storage backend, whatever each host's own is.
        """
        found = self._beyond_on.get(domain)
        if found is None:
            everywhere = np.full(len(self.hosts), domain)
            io = self._io_beyond(np.arange(len(self.hosts)), everywhere)
            found = self._beyond_on[domain] = io, self._doubt_of(everywhere, io)
        return found

    @functools.cached_property
    def _beyond_on(self) -> dict[int, tuple[FloatArray, FloatArray]]:
        return {}

    @functools.cached_property
    def io_beyond_doubt(self) -> FloatArray:
        """(n, 2): standard deviations of :attr:`io_beyond`, from VMs whose I/O is unknown."""
        return self._doubt_of(self.io_domain, self.io_beyond)

    @functools.cached_property
    def host_io_beyond_doubt(self) -> FloatArray:
        """(h, 2): the same for one more VM on each host's storage."""
        return self._doubt_of(self.host_io_domain, self.host_io_beyond)

    def _doubt_of(self, domain: IntArray, beyond: FloatArray) -> FloatArray:
        found = np.zeros((len(domain), 2))
        felt = (domain >= 0) & (beyond > 0).any(axis=1)
        if felt.any():
            found[felt] = np.nan_to_num(self.doubt[domain[felt]])
        return found

    @functools.cached_property
    def stand_in(self) -> FloatArray:
        """(d, 2): what a VM counts with on its storage backend while its own I/O is unknown.

        It is the mean of the others there that run. NaN where more than :data:`MOST_UNKNOWN` of
        them are unknown: one dead agent must not make all hosts of a pool unknown, nor many go
        unnoticed.
        """
        return self._silent[0] if self.io_stand_in is None else self.io_stand_in

    @functools.cached_property
    def doubt(self) -> FloatArray:
        """(d, 2): standard deviation of the I/O of all VMs that count with :attr:`stand_in`.

        Each may do what any of the others does, independently.
        """
        return self._silent[1] if self.io_doubt is None else self.io_doubt

    @functools.cached_property
    def _silent(self) -> tuple[FloatArray, FloatArray]:
        count = len(self.io_domains)
        inside = self.io_domain >= 0
        # What stands still says nothing of what one does that runs.
        inside &= (self.profiles != 0).any(axis=1)
        known = inside & ~np.isnan(self.profiles[:, IO]).any(axis=1)
        numbers, everybody = (np.bincount(self.io_domain[rows], minlength=count)[:count]
                              for rows in (known, inside))
        own = self.io_domain[known]
        mean = characteristics.domain_totals(
            self.profiles[known, IO], own, count) / np.maximum(numbers, 1)[:, None]
        mean[numbers < (1 - MOST_UNKNOWN) * everybody] = np.nan
        square = characteristics.domain_totals(
            (self.profiles[known, IO] - mean[own]) ** 2, own, count)
        silent = (everybody - numbers) / np.maximum(numbers - 1, 1)
        return mean, np.sqrt(square * silent[:, None])

    @functools.cached_property
    def io(self) -> FloatArray:
        """(n, 2): reads and writes per second of each resident as its storage backend feels them.
        """
        found = self.profiles[:, IO]
        lost = np.flatnonzero(np.isnan(found).any(axis=1) & (self.io_domain >= 0))
        if len(lost):
            found = found.copy()
            found[lost] = self.stand_in[self.io_domain[lost]]
        return found

    def _io_beyond(self, host: IntArray, domain: IntArray) -> FloatArray:
        beyond = np.full((len(host), 2), np.nan)
        known = domain >= 0
        count = len(self.io_domains)
        totals, numbers = self.io_residents
        inside = self.io_domain >= 0
        # Of each host on each storage backend that its residents use.
        keys, place = np.unique(self.host[inside] * count + self.io_domain[inside],
                                return_inverse=True)
        here = characteristics.domain_totals(self.io[inside], place, len(keys))
        residents = np.bincount(place, minlength=len(keys))
        wanted = host[known] * count + domain[known]
        own = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        found = (keys[own] == wanted) if len(keys) else np.zeros(len(wanted), dtype=bool)
        rest = totals[domain[known]]
        rest[found] -= here[own[found]]
        # Where nobody else is, a difference would leave rounding, and unknown I/O unknown.
        alone = np.where(found, residents[own] if len(keys) else 0, 0) == numbers[domain[known]]
        rest[alone] = 0.0
        if self.io_elsewhere is not None:
            rest += self.io_elsewhere[domain[known]]
        beyond[known] = np.maximum(rest, 0.0)
        return beyond

    def resident_profile(self, index: int) -> newcomer.Profile:
        """Return what resident ``index`` demands wherever it comes to."""
        return newcomer.own(self.profiles[index], float(self.own_wait[index]),
                            int(self.vcpus[index]), float(self.storage_wait[index]))

    def resident_limits(self, index: int) -> limits_module.Limits:
        """Return the limits of resident ``index``."""
        return limits_module.Limits(float(self.max_slowdown[index]),
                                    float(self.min_iops_ratio[index]))

    def moved(self, moves: Mapping[str, str | None]) -> ClusterState:
        """Return the state in which the named residents are on other hosts (None: gone).

        A VM on its host's own disk takes the disk along to the new host's; one on a pool keeps the
        pool.

        :raises KeyError: for a VM or a host that is not in the cluster
        """
        host = self.host.copy()
        io_domain = self.io_domain.copy()
        keep = np.ones(len(host), dtype=bool)
        names = list(self.io_domains)
        for uuid, destination in moves.items():
            row = self.resident_index[uuid]
            if destination is None:
                keep[row] = False
                continue
            index = self.host_index[destination]
            if io_domain[row] >= 0 and names[io_domain[row]].startswith(f'{LOCAL}:'):
                local = f'{LOCAL}:{destination}'
                if local not in names:
                    names.append(local)
                io_domain[row] = names.index(local)
            host[row] = index
        rows = np.flatnonzero(keep)
        return self._with_residents(
            rows[np.argsort(host[rows], kind='stable')], host, io_domain)._with_domains(names)

    def _with_domains(self, names: Sequence[str]) -> ClusterState:
        """Return the state with these storage backends; those it has are the first of them."""
        if len(names) == len(self.io_domains):
            return self
        io, stand_in, doubt = (
            None if one is None else np.vstack([one, np.full((len(names) - len(one), 2), fill)])
            for one, fill in ((self.io_elsewhere, 0.0), (self.io_stand_in, np.nan),
                              (self.io_doubt, 0.0)))
        return dataclasses.replace(self, io_domains=tuple(names), io_elsewhere=io,
                                   io_stand_in=stand_in, io_doubt=doubt)

    def restricted(self, host_indices: Iterable[int], kept: Iterable[int] = ()) -> ClusterState:
        """Return the state of these hosts alone, in the order given.

        Of the storage backends those are left that these hosts and their residents use.

        :param kept: indices of others that are left as well
        """
        chosen = list(host_indices)
        position = {index: place for place, index in enumerate(chosen)}
        rows = np.array([row for index in chosen
                         for row in range(self.first[index], self.first[index + 1])],
                        dtype=np.intp)
        renamed = np.array([position[int(index)] for index in self.host[rows]], dtype=np.intp)
        domains = self.host_io_domain[chosen], self.io_domain[rows]
        used = np.unique(np.concatenate([*domains, np.array([*kept], dtype=np.intp)]))
        used = used[used >= 0]
        host_domain, domain = (np.where(one >= 0, np.searchsorted(used, one), -1)
                               for one in domains)
        part = self._with_residents(rows, self.host, self.io_domain)
        return dataclasses.replace(
            part, host=renamed, io_domain=domain, host_io_domain=host_domain,
            io_elsewhere=self._io_of_others(rows, used), io_stand_in=self.stand_in[used],
            io_doubt=self.doubt[used],
            io_domains=tuple(self.io_domains[index] for index in used),
            hosts=tuple(self.hosts[index] for index in chosen),
            host_type=tuple(self.host_type[index] for index in chosen),
            updated_at=self.updated_at[chosen], cores=self.cores[chosen])

    @functools.cached_property
    def io_residents(self) -> tuple[FloatArray, IntArray]:
        """I/O (d, 2) and number (d,) of the residents on each storage backend."""
        count = len(self.io_domains)
        return (characteristics.domain_totals(self.io, self.io_domain, count),
                np.bincount(self.io_domain[self.io_domain >= 0], minlength=count)[:count])

    def _io_of_others(self, rows: IntArray, used: IntArray) -> FloatArray:
        """Return the I/O (u, 2) on some storage backends of all residents but these.

        :param used: (u,) indices of these backends, rising, with all that the residents use
        """
        totals, numbers = self.io_residents
        io = totals[used]
        own = self.io_domain[rows]
        inside = np.bincount(np.searchsorted(used, own[own >= 0]), minlength=len(used))
        io[inside > 0] = 0.0
        # Summed anew, not subtracted: that would leave rounding, and unknown I/O unknown.
        shared = used[(inside > 0) & (inside < numbers[used])]
        if len(shared):
            among = np.isin(self.io_domain, shared)
            among[rows] = False
            io += characteristics.domain_totals(
                self.io[among], np.searchsorted(used, self.io_domain[among]), len(used))
        if self.io_elsewhere is not None:
            io += self.io_elsewhere[used]
        return io

    def with_resident(self, host_index: int, uuid: str, profile: FloatArray,
                      limits: limits_module.Limits = limits_module.NONE) -> ClusterState:
        """Return the state with one more resident, on its host's default storage backend."""
        return self.with_residents([(host_index, uuid, profile, limits)])

    def with_residents(self, arrived: Sequence[tuple[int, str, FloatArray, limits_module.Limits]],
                       storage: Mapping[str, str] | None = None,
                       own_wait: Mapping[str, float] | None = None,
                       vcpus: Mapping[str, int] | None = None,
                       storage_wait: Mapping[str, float] | None = None) -> ClusterState:
        """Return the state with more residents: host index, uuid, profile and limits of each.

        :param storage: names of storage backends by uuid, of those that are not on their host's
            default one
        :param own_wait: by uuid, of those that wait for their own limits
        :param vcpus: by uuid, of those that have more than one
        :param storage_wait: by uuid, where it is known
        """
        if not arrived:
            return self
        listed = sorted(arrived, key=lambda one: one[0])
        hosts = np.array([one[0] for one in listed], dtype=np.intp)
        at = self.first[hosts + 1]
        uuids = list(self.uuids)
        for place, (position, one) in enumerate(zip(at, listed)):
            uuids.insert(int(position) + place, one[1])
        domains = self.host_io_domain[hosts]
        names = {name: index for index, name in enumerate(self.io_domains)} if storage else {}
        for place, one in enumerate(listed):
            name = storage.get(one[1]) if storage else None
            if name is not None:
                domains[place] = -1 if name == UNKNOWN else names.setdefault(name, len(names))
        return dataclasses.replace(
            self if not storage else self._with_domains(tuple(names)),
            uuids=tuple(uuids), host=np.insert(self.host, at, hosts),
            io_domain=np.insert(self.io_domain, at, domains),
            profiles=np.insert(self.profiles, at, np.array([one[2] for one in listed]), axis=0),
            max_slowdown=np.insert(self.max_slowdown, at,
                                   [one[3].max_slowdown for one in listed]),
            min_iops_ratio=np.insert(self.min_iops_ratio, at,
                                     [one[3].min_iops_ratio for one in listed]),
            own_wait=np.insert(self.own_wait, at,
                               [(own_wait or {}).get(one[1], 0.0) for one in listed]),
            vcpus=np.insert(self.vcpus, at, [(vcpus or {}).get(one[1], 1) for one in listed]),
            storage_wait=np.insert(self.storage_wait, at, [
                (storage_wait or {}).get(one[1], np.nan) for one in listed]))

    def _with_residents(self, rows: IntArray, host: IntArray, io_domain: IntArray) -> ClusterState:
        return dataclasses.replace(
            self, uuids=tuple(self.uuids[row] for row in rows), host=host[rows],
            io_domain=io_domain[rows], profiles=self.profiles[rows],
            max_slowdown=self.max_slowdown[rows], min_iops_ratio=self.min_iops_ratio[rows],
            own_wait=self.own_wait[rows], vcpus=self.vcpus[rows],
            storage_wait=self.storage_wait[rows])


def build(hosts: Iterable[Host], history: Mapping[str, newcomer.Profile] | None = None,
          version: int = 0, generated_at: float = 0.0) -> ClusterState:
    """Build a cluster's arrays.

    :raises ValueError: when a host's name or a VM's uuid occurs twice, or a profile has not four
        entries, none negative or infinite
    """
    listed = list(hosts)
    domains: dict[str, int] = {}

    def domain(name: str | None, host: str) -> int:
        if name is None or name == UNKNOWN:
            return -1
        full = f'{LOCAL}:{host}' if name == LOCAL else name
        return domains.setdefault(full, len(domains))

    host_io = np.array([domain(host.io_domain, host.name) for host in listed], dtype=np.intp)
    everyone = [(place, host, vm) for place, host in enumerate(listed) for vm in host.residents]
    unknown = np.full(COUNT, np.nan)
    profiles = characteristics.as_characteristics(
        [unknown if vm.profile is None else vm.profile for _place, _host, vm in everyone]
        or np.empty((0, COUNT)))
    state = ClusterState(
        tuple(host.name for host in listed), tuple(host.host_type for host in listed), host_io,
        np.array([host.updated_at for host in listed], dtype=np.float64),
        np.array([np.nan if host.cores is None else host.cores for host in listed], dtype=float),
        tuple(vm.uuid for _place, _host, vm in everyone),
        np.array([place for place, _host, _vm in everyone], dtype=np.intp),
        np.array([host_io[place] if vm.io_domain is None else domain(vm.io_domain, host.name)
                  for place, host, vm in everyone], dtype=np.intp),
        profiles,
        np.array([vm.limits.max_slowdown for _place, _host, vm in everyone], dtype=np.float64),
        np.array([vm.limits.min_iops_ratio for _place, _host, vm in everyone], dtype=np.float64),
        np.array([vm.own_wait for _place, _host, vm in everyone], dtype=np.float64),
        np.array([vm.vcpus for _place, _host, vm in everyone], dtype=np.intp),
        np.array([vm.storage_wait for _place, _host, vm in everyone], dtype=np.float64),
        tuple(domains), dict(history or {}), version, generated_at)
    check_names(state)
    return state


def check_names(state: ClusterState) -> None:
    """See that no name occurs twice.

    :raises ValueError: naming the host or the VM that does
    """
    for kind, names, index in (('host', state.hosts, state.host_index),
                               ('VM', state.uuids, state.resident_index)):
        if len(index) != len(names):
            double = next(name for place, name in enumerate(names) if index[name] != place)
            raise ValueError(f'{kind} {double} occurs twice in the cluster')
