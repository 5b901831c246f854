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
from tracon_watcher.characteristics import BoolArray, COUNT, FloatArray, IntArray
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer_profiles

LOCAL = 'local'
#: A storage backend that could not be found out; its VMs and their hosts are unknown.
UNKNOWN = 'unknown'
#: Of the VMs on a storage backend, the share of which the requests may be unknown.
MOST_UNKNOWN = 0.1


@dataclasses.dataclass(frozen=True)
class Resident:
    """A VM on a host.

    :param profile: (4,) its uncontended demand, or None where unknown
    :param io_domain: storage backend, None for the host's own default
    :param own_wait: see :mod:`.current_interference`
    :param vcpus: how many virtual CPUs it has
    :param storage_wait: part of its time alone that each of them waits for storage, NaN where
        unknown
    :param cpu_weight: of its share of the cores beside others; 0 for a VM with cores of its own
    """

    uuid: str
    profile: FloatArray | None = None
    limits: limits_module.Limits = limits_module.NONE
    io_domain: str | None = None
    own_wait: float = 0.0
    vcpus: int = 1
    storage_wait: float = math.nan
    cpu_weight: float = 1.0


#: Of a host on which nothing is felt, as in :attr:`ClusterState.contention`.
NO_CONTENTION = (0.0,) * 4


@dataclasses.dataclass(frozen=True)
class Host:
    """A compute host.

    :param host_type: hosts of the same type are alike, None where unknown
    :param io_domain: the storage backend of its VMs: ``local`` for a disk of its own, another
        name for a pool that hosts share, None where unknown
    :param updated_at: when its data was taken, seconds since the epoch
    :param cores: threads of its CPU that VMs share, None where unknown
    :param threads: of each core of its CPU
    :param contention: that its probe VM feels, as in :class:`ClusterState`; None for none known
    """

    name: str
    residents: tuple[Resident, ...] = ()
    host_type: str | None = None
    io_domain: str | None = LOCAL
    updated_at: float = 0.0
    cores: int | None = None
    threads: int = 1
    contention: tuple[float, ...] | None = None


@dataclasses.dataclass(frozen=True)
class ClusterState:
    """Hosts and residents as arrays; residents stand in the order of their hosts.

    :param hosts: h names, all different
    :param host_type: h names of host types, None where unknown
    :param host_io_domain: (h,) index of each host's storage backend, -1 where unknown
    :param updated_at: (h,) seconds since the epoch
    :param cores: (h,) threads of each host's CPU that VMs share, NaN where unknown
    :param threads: (h,) of each core of its CPU
    :param uuids: n residents, all different
    :param host: (n,) index of each resident's host, not falling
    :param io_domain: (n,) index of each resident's storage backend, -1 where unknown
    :param profiles: (n, 4), NaN where unknown
    :param max_slowdown: (n,), infinity for none
    :param min_iops_ratio: (n,), 0 for none
    :param own_wait: (n,) share of time that each VM waits for its own limits, see
        :mod:`.current_interference`; 0 for a VM that is at none
    :param vcpus: (n,) virtual CPUs of each
    :param storage_wait: (n,) part of its time alone that each of them waits for storage, NaN where
        unknown
    :param cpu_weight: (n,) of each one's share of the cores beside others; 0 for a VM with cores
        of its own
    :param background: (n,) whether each is background work: what it suffers counts nothing
    :param io_domains: names of the storage backends
    :param history: profiles of newcomers, see :mod:`tracon_watcher.placement.newcomer_profiles`
    :param version: rises with every snapshot
    :param generated_at: seconds since the epoch
    :param rate_elsewhere: (d,) requests per second on each storage backend by VMs that are not in
        this state, NaN where unknown; None where all are
    :param request_seconds: that a request takes in the mean; None: see :attr:`mean_request`
    :param contention: (h, 4) of what probe VMs feel beyond what the VMs of each host explain: mean
        and standard deviation of a log slowdown that all its VMs have as well, then of a −log IOPS
        ratio; 0 where nothing is felt, or nothing known; None where that is so everywhere
    """

    hosts: tuple[str, ...]
    host_type: tuple[str | None, ...]
    host_io_domain: IntArray
    updated_at: FloatArray
    cores: FloatArray
    threads: IntArray
    uuids: tuple[str, ...]
    host: IntArray
    io_domain: IntArray
    profiles: FloatArray
    max_slowdown: FloatArray
    min_iops_ratio: FloatArray
    own_wait: FloatArray
    vcpus: IntArray
    storage_wait: FloatArray
    cpu_weight: FloatArray
    background: BoolArray
    io_domains: tuple[str, ...]
    history: Mapping[str, newcomer_profiles.Profile]
    version: int = 0
    generated_at: float = 0.0
    rate_elsewhere: FloatArray | None = None
    request_seconds: float | None = None
    contention: FloatArray | None = None

    @property
    def felt(self) -> FloatArray:
        """Return :attr:`contention`, (h, 4), zeros where there is none."""
        return (np.zeros((len(self.hosts), 4)) if self.contention is None else self.contention)

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
    def request_rate(self) -> FloatArray:
        """(d,): requests per second on each storage backend, also by VMs not in this state.

        VMs of which they are unknown count as the mean of the others there that run. NaN where
        more than :data:`MOST_UNKNOWN` of them are: one dead agent must not make a pool unknown,
        nor many go unnoticed.
        """
        known, here = self._requests_here
        if self.rate_elsewhere is not None:
            return np.asarray(here + self.rate_elsewhere)
        count = len(self.io_domains)
        # What stands still says nothing of what one does that runs.
        running = (self.io_domain >= 0) & (self.profiles != 0).any(axis=1)
        told, all_running = (np.bincount(self.io_domain[rows], minlength=count)
                             for rows in (known & running, running))
        found = here * all_running / np.maximum(told, 1)
        found[told < (1 - MOST_UNKNOWN) * all_running] = np.nan
        return np.asarray(found)

    @functools.cached_property
    def _requests_here(self) -> tuple[BoolArray, FloatArray]:
        """(n,) residents whose requests are known, and (d,) what they are per second."""
        rate = characteristics.request_rate(self.profiles)
        known = (self.io_domain >= 0) & ~np.isnan(rate)
        return known, np.bincount(self.io_domain[known], rate[known],
                                  len(self.io_domains)).astype(float)

    @functools.cached_property
    def storage_waits(self) -> FloatArray:
        """(n,): part of its time alone that each vCPU waits for storage.

        Where it is not told, requests take as long as those of others on the same pool, or on
        disks of hosts' own; 0 where nothing is known of these either, and where a VM sends none.
        """
        rate = characteristics.request_rate(self.profiles)
        filled = np.nan_to_num(rate * self._request_seconds[self._pool] / self.vcpus)
        told = np.where(rate > 0.0, self.storage_wait, 0.0)
        return np.asarray(np.minimum(
            np.where(np.isnan(told), filled, told),
            1.0 - characteristics.cpu_share(self.profiles, self.vcpus)))

    @functools.cached_property
    def _pool(self) -> IntArray:
        """(n,): index of the pool that each is on; -1 for none."""
        pools = np.array([*(not name.startswith(f'{LOCAL}:') for name in self.io_domains), False])
        return np.where(pools[self.io_domain], self.io_domain, -1).astype(np.intp)

    @functools.cached_property
    def _request_seconds(self) -> FloatArray:
        """(d + 1,): that a request takes on each pool, and on disks of hosts' own; NaN unknown."""
        rate = characteristics.request_rate(self.profiles)
        known = np.flatnonzero(~np.isnan(self.storage_wait) & (rate > 0.0))
        waited = (self.storage_wait * self.vcpus)[known]
        with np.errstate(invalid='ignore'):
            found: FloatArray = (
                np.bincount(self._pool[known] + 1, waited, len(self.io_domains) + 1)
                / np.bincount(self._pool[known] + 1, rate[known], len(self.io_domains) + 1))
        found = np.roll(found, -1)
        if self.request_seconds is not None:
            found[-1] = self.request_seconds
        return found

    @functools.cached_property
    def mean_request(self) -> float:
        """Seconds that a request takes on disks of hosts' own, 0 where that is not known."""
        return float(np.nan_to_num(self._request_seconds[-1]))

    def resident_profile(self, index: int) -> newcomer_profiles.Profile:
        """Return what resident ``index`` demands wherever it comes to."""
        return newcomer_profiles.own(self.profiles[index], float(self.own_wait[index]),
                                     int(self.vcpus[index]), float(self.storage_wait[index]),
                                     float(self.cpu_weight[index]))

    def resident_limits(self, index: int) -> limits_module.Limits:
        """Return the limits of resident ``index``."""
        return limits_module.Limits(float(self.max_slowdown[index]),
                                    float(self.min_iops_ratio[index]),
                                    bool(self.background[index]))

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
        rate = self.rate_elsewhere
        if rate is not None:
            rate = np.append(rate, np.zeros(len(names) - len(rate)))
        return dataclasses.replace(self, io_domains=tuple(names), rate_elsewhere=rate)

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
        known, _rate = self._requests_here
        own = rows[known[rows]]
        # What rounding leaves where there is no other VM, is nothing.
        others = self.request_rate - np.bincount(
            self.io_domain[own], characteristics.request_rate(self.profiles[own]),
            len(self.io_domains))
        return dataclasses.replace(
            part, host=renamed, io_domain=domain, host_io_domain=host_domain,
            rate_elsewhere=np.where(others < 1e-6, 0.0, others)[used],
            storage_wait=np.where(self.storage_waits > 0.0, self.storage_waits,
                                  self.storage_wait)[rows], request_seconds=self.mean_request,
            io_domains=tuple(self.io_domains[index] for index in used),
            hosts=tuple(self.hosts[index] for index in chosen),
            host_type=tuple(self.host_type[index] for index in chosen),
            updated_at=self.updated_at[chosen], cores=self.cores[chosen],
            threads=self.threads[chosen],
            contention=None if self.contention is None else self.contention[chosen])

    def with_resident(self, host_index: int, uuid: str, profile: FloatArray,
                      limits: limits_module.Limits = limits_module.NONE) -> ClusterState:
        """Return the state with one more resident, on its host's default storage backend."""
        return self.with_residents([(host_index, uuid, newcomer_profiles.own(profile), limits)])

    def with_residents(
            self,
            arrived: Sequence[tuple[int, str, newcomer_profiles.Profile, limits_module.Limits]],
            storage: Mapping[str, str] | None = None) -> ClusterState:
        """Return the state with more residents: host index, uuid, profile and limits of each.

        :param storage: names of storage backends by uuid, of those that are not on their host's
            default one
        """
        if not arrived:
            return self
        listed = sorted(arrived, key=lambda one: one[0])
        hosts = np.array([one[0] for one in listed], dtype=np.intp)
        at = self.first[hosts + 1]
        came = [one[2] for one in listed]
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
            profiles=np.insert(self.profiles, at,
                               np.array([one.mean for one in came]), axis=0),
            max_slowdown=np.insert(self.max_slowdown, at,
                                   [one[3].max_slowdown for one in listed]),
            min_iops_ratio=np.insert(self.min_iops_ratio, at,
                                     [one[3].min_iops_ratio for one in listed]),
            own_wait=np.insert(self.own_wait, at, [one.own_wait for one in came]),
            vcpus=np.insert(self.vcpus, at, [one.vcpus for one in came]),
            storage_wait=np.insert(self.storage_wait, at, [one.storage_wait for one in came]),
            cpu_weight=np.insert(self.cpu_weight, at, [one.cpu_weight for one in came]),
            background=np.insert(self.background, at, [one[3].background for one in listed]))

    def _with_residents(self, rows: IntArray, host: IntArray, io_domain: IntArray) -> ClusterState:
        return dataclasses.replace(
            self, uuids=tuple(self.uuids[row] for row in rows), host=host[rows],
            io_domain=io_domain[rows], profiles=self.profiles[rows],
            max_slowdown=self.max_slowdown[rows], min_iops_ratio=self.min_iops_ratio[rows],
            own_wait=self.own_wait[rows], vcpus=self.vcpus[rows],
            storage_wait=self.storage_wait[rows], cpu_weight=self.cpu_weight[rows],
            background=self.background[rows])


def build(hosts: Iterable[Host], history: Mapping[str, newcomer_profiles.Profile] | None = None,
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
        np.array([host.threads for host in listed], dtype=np.intp),
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
        np.array([vm.cpu_weight for _place, _host, vm in everyone], dtype=np.float64),
        np.array([vm.limits.background for _place, _host, vm in everyone], dtype=np.bool_),
        tuple(domains), dict(history or {}), version, generated_at, contention=told_contention(
            np.array([host.contention or NO_CONTENTION for host in listed], dtype=np.float64)))
    check_names(state)
    return state


def told_contention(values: FloatArray) -> FloatArray | None:
    """Return :attr:`ClusterState.contention` of (h, 4) values; None where all are 0."""
    return values if values.any() else None


def check_names(state: ClusterState) -> None:
    """See that no name occurs twice.

    :raises ValueError: naming the host or the VM that does
    """
    for kind, names, index in (('host', state.hosts, state.host_index),
                               ('VM', state.uuids, state.resident_index)):
        if len(index) != len(names):
            double = next(name for place, name in enumerate(names) if index[name] != place)
            raise ValueError(f'{kind} {double} occurs twice in the cluster')


def check_case(hosts: Iterable[str]) -> None:
    """See that no two names of hosts differ in case only.

    :raises ValueError: naming both
    """
    spelt: dict[str, str] = {}
    for name in hosts:
        other = spelt.setdefault(name.casefold(), name)
        if other != name:
            raise ValueError(f'hosts {other} and {name} differ in case only')
