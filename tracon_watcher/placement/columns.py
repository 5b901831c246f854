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

"""Hosts' lines become a cluster's arrays, without an object for each VM in between.

There may be hundreds of thousands of VMs: making an object of each takes time and memory, and sets
off garbage collections that hold up every thread of the process.
"""

from __future__ import annotations

import math
from typing import Any, Mapping, NoReturn

import numpy as np

from tracon_watcher.characteristics import COUNT, FloatArray, IntArray, LARGEST, NAMES
from tracon_watcher import document
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer

_NUMBERS = frozenset((float, int))
#: Virtual CPUs of a VM, or cores of a host.
MOST = 65536
_UNKNOWN = [math.nan] * COUNT
_NO_CONTENTION = np.array(cluster_module.NO_CONTENTION)


class Columns:
    """Takes one host's line after the other."""

    def __init__(self) -> None:
        self._hosts: list[str] = []
        self._types: list[str | None] = []
        self._host_domains: list[int] = []
        self._updated_at: list[float] = []
        self._cores: list[float] = []
        self._threads: list[int] = []
        self._contention: list[FloatArray] = []
        self._uuids: list[str] = []
        self._counts: list[int] = []
        self._vm_domains: list[int] = []
        self._profiles: list[FloatArray] = []
        self._slowdowns: list[float] = []
        self._ratios: list[float] = []
        self._own_waits: list[float] = []
        self._vcpus: list[int] = []
        self._storage_waits: list[float] = []
        self._weights: list[float] = []
        self._domains: dict[str, int] = {}

    @property
    def hosts(self) -> list[str]:
        """The names of the hosts so far."""
        return self._hosts

    def add(self, fields: document.Fields) -> None:
        """Take a host's line.

        :raises tracon_watcher.errors.InvalidDocument: naming the VM, the field and the value
        """
        name = fields.name('host')
        own = self._domain(fields.string('storage') if fields.has('storage') else None, name)
        vms = fields.raw('vms')
        if not isinstance(vms, list):
            fields.refuse('vms', vms, 'expected a list of VMs')
        values: list[Any] = []
        for index, vm in enumerate(vms):
            self._vm(fields, index, vm, name, own, values)
        self._profiles.append(_profiles(fields, vms, values))
        self._hosts.append(name)
        self._types.append(fields.string('type') if fields.has('type') else None)
        self._host_domains.append(own)
        self._updated_at.append(fields.number('updated_at', 0))
        self._cores.append(_whole(fields, 'cores') if fields.has('cores') else math.nan)
        self._threads.append(_whole(fields, 'threads') if fields.has('threads') else 1)
        self._contention.append(fields.array('contention', (4,), 0.0, 100.0)
                                if fields.has('contention') else _NO_CONTENTION)
        self._counts.append(len(vms))

    def state(self, history: Mapping[str, newcomer.Profile] | None = None, version: int = 0,
              generated_at: float = 0.0) -> cluster_module.ClusterState:
        """Return the cluster; that no VM occurs twice is left to ``check_names``."""
        host_domain, domain, names = renumbered(
            np.array(self._host_domains, dtype=np.intp),
            np.array(self._vm_domains, dtype=np.intp), list(self._domains))
        profiles = np.concatenate(self._profiles) if self._profiles else np.empty((0, COUNT))
        return cluster_module.ClusterState(
            tuple(self._hosts), tuple(self._types), host_domain,
            np.array(self._updated_at, dtype=np.float64),
            np.array(self._cores, dtype=np.float64),
            np.array(self._threads, dtype=np.intp), tuple(self._uuids),
            np.repeat(np.arange(len(self._hosts)), np.array(self._counts, dtype=np.intp)),
            domain, profiles, np.array(self._slowdowns, dtype=np.float64),
            np.array(self._ratios, dtype=np.float64),
            np.array(self._own_waits, dtype=np.float64),
            np.array(self._vcpus, dtype=np.intp),
            np.array(self._storage_waits, dtype=np.float64),
            np.array(self._weights, dtype=np.float64), names, dict(history or {}), version,
            generated_at, contention=cluster_module.told_contention(
                np.array(self._contention).reshape(-1, 4)))

    def _domain(self, name: str | None, host: str) -> int:
        if name is None or name == cluster_module.UNKNOWN:
            return -1
        full = f'{cluster_module.LOCAL}:{host}' if name == cluster_module.LOCAL else name
        return self._domains.setdefault(full, len(self._domains))

    def _vm(self, fields: document.Fields, index: int, vm: Any, host: str, own: int,
            values: list[Any]) -> None:
        # What is right passes quickly; what is not is looked into.
        if not isinstance(vm, dict) or type(vm.get('uuid')) is not str:
            document.Fields(fields.source, vm, f'vms[{index}]').string('uuid')
        self._uuids.append(vm['uuid'])
        profile = vm.get('profile')
        if profile is None:
            profile = _UNKNOWN
        elif type(profile) is not list or len(profile) != COUNT:
            _refuse_profile(fields, index, vm)
        values += profile
        slowdown, ratio = math.inf, 0.0
        if 'max_slowdown' in vm or 'min_iops_ratio' in vm:
            one = document.Fields(fields.source, vm, f'vms[{index}]')
            slowdown = _limit(one, 'max_slowdown', limits_module.MAX_SLOWDOWN, slowdown)
            ratio = _limit(one, 'min_iops_ratio', limits_module.MIN_IOPS_RATIO, ratio)
        self._slowdowns.append(slowdown)
        self._ratios.append(ratio)
        self._own_waits.append(0.0 if 'own_wait' not in vm else document.Fields(
            fields.source, vm, f'vms[{index}]').number('own_wait', 0.0, 1.0))
        self._vcpus.append(1 if 'vcpus' not in vm else _whole(document.Fields(
            fields.source, vm, f'vms[{index}]'), 'vcpus'))
        self._storage_waits.append(math.nan if 'storage_wait' not in vm else document.Fields(
            fields.source, vm, f'vms[{index}]').number('storage_wait', 0.0, 1.0))
        self._weights.append(1.0 if 'cpu_weight' not in vm else document.Fields(
            fields.source, vm, f'vms[{index}]').number('cpu_weight', 0.0, MOST))
        backend = vm.get('storage')
        if backend is not None and (type(backend) is not str or not backend):
            fields.refuse(f'vms[{index}].storage', backend,
                          'expected the name of a storage backend')
        self._vm_domains.append(own if backend is None else self._domain(backend, host))


def _whole(fields: document.Fields, name: str) -> int:
    """Return a number of virtual CPUs or cores."""
    found = fields.number(name, 1, MOST)
    if found != int(found):
        fields.refuse(name, found, 'expected a whole number')
    return int(found)


def renumbered(host_domain: IntArray, domain: IntArray,
               names: list[str]) -> tuple[IntArray, IntArray, tuple[str, ...]]:
    """Return storage backends numbered as they occur, first of hosts and then of residents."""
    used, first = np.unique(np.concatenate([host_domain, domain]), return_index=True)
    used, first = used[used >= 0], first[used >= 0]
    used = used[np.argsort(first)]
    number = np.full(len(names) + 1, -1, dtype=np.intp)     # -1 is the last, and stays -1
    number[used] = np.arange(len(used))
    return number[host_domain], number[domain], tuple(names[place] for place in used)


def _profiles(fields: document.Fields, vms: list[Any], values: list[Any]) -> FloatArray:
    """Return the (n, 4) profiles of a host's VMs, of their numbers one after the other."""
    if set(map(type, values)) <= _NUMBERS:
        try:
            found = np.array(values, dtype=np.float64).reshape(-1, COUNT)
        except OverflowError:       # a whole number beyond all floats
            found = np.full((1, COUNT), -1.0)
        if not ((found < 0) | (found > LARGEST)).any():
            return found
    for index, vm in enumerate(vms):
        profile = vm.get('profile')
        if profile is not None and not all(
                type(value) in _NUMBERS and 0 <= value <= LARGEST for value in profile):
            _refuse_profile(fields, index, vm)
    raise AssertionError('a profile is wrong, and none was found')


def _refuse_profile(fields: document.Fields, index: int, vm: Any) -> NoReturn:
    """Name what is wrong with a profile."""
    document.Fields(fields.source, vm, f'vms[{index}]').array(
        'profile', (COUNT,), 0.0, LARGEST)
    fields.refuse(f'vms[{index}].profile', vm['profile'], f'expected {", ".join(NAMES)}')


def _limit(fields: document.Fields, name: str, key: str, default: float) -> float:
    if not fields.has(name):
        return default
    return fields.number(name, *limits_module.RANGES[key])
