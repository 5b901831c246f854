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

"""Lines of snapshots and deltas: written as JSON, read into the arrays of a cluster."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
from typing import Any, Iterable, Iterator, Mapping, NoReturn

import numpy as np

from tracon_watcher.characteristics import BoolArray, COUNT, FloatArray, IntArray, LARGEST, NAMES
from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import queues

#: Beyond this a float does not tell one whole number from the next.
LARGEST_WHOLE = 2 ** 53


def sealed(contents: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of these objects, each with its line feed, and the one that seals them."""
    digest = hashlib.sha256()
    count = 0
    for content in contents:
        text = json.dumps(content, separators=(',', ':'), allow_nan=False) + '\n'
        digest.update(text.encode())
        count += 1
        yield text
    yield json.dumps({'end': count, 'sha256': digest.hexdigest()}) + '\n'


def unsealed(lines: Iterable[str], source: str, remedy: str) -> Iterator[document.Fields]:
    """Yield the objects of lines that end with their seal.

    The seal is looked at last: what was yielded is right once this has come to its end.

    :param source: name of the file or whatever else, for the errors
    :param remedy: what to do about what is truncated or edited, for the errors
    :raises tracon_watcher.errors.InvalidDocument: naming the line, the field and the value
    """
    digest = hashlib.sha256()
    count = 0
    ended = False
    for text in lines:
        where = f'{source}: line {count + 1}'
        fields = document.parse(text, where)
        if ended:
            raise errors.InvalidDocument(where, 'the line', text[:40], 'nothing follows the end')
        if fields.has('end'):
            _check_end(fields, count, digest.hexdigest(), remedy)
            ended = True
            continue
        count += 1
        try:
            digest.update(text.encode())
        except UnicodeEncodeError as error:
            raise errors.InvalidDocument(where, 'the line', text[:40], str(error)) from None
        yield fields
    if not ended:
        raise errors.InvalidDocument(source, 'the last line', f'line {count}',
                                     f'the file is truncated: its end is missing; {remedy}')


@contextlib.contextmanager
def bounded(source: str) -> Iterator[None]:
    """Refuse what is nested too deep to be looked at, wherever that shows.

    :raises tracon_watcher.errors.InvalidDocument: naming the document
    """
    try:
        yield
    except RecursionError:
        raise errors.InvalidDocument(source, 'the text', 'nested too deep',
                                     'expected less; a snapshot of this size is refused') from None


def _check_end(fields: document.Fields, count: int, digest: str, remedy: str) -> None:
    fields.only(('end', 'sha256'))
    if fields.number('end', 0) != count:
        fields.refuse('end', fields.raw('end'),
                      f'{count} lines stand before it; lines were lost; {remedy}')
    if fields.string('sha256') != digest:
        fields.refuse('sha256', fields.raw('sha256'),
                      f'the lines were changed after they were written; {remedy}')


def of_host(cluster: cluster_module.ClusterState, index: int) -> dict[str, Any]:
    """Return the content of a host's line, with its residents."""
    name, own = cluster.hosts[index], int(cluster.host_io_domain[index])
    rows = slice(int(cluster.first[index]), int(cluster.first[index + 1]))
    profiles = cluster.profiles[rows]
    unknown: BoolArray = np.asarray(np.isnan(profiles).any(axis=1))
    vms = []
    for (uuid, profile, missing, slowdown, ratio, own_wait, vcpus, storage_wait, weight,
         background, domain) in zip(
            cluster.uuids[rows], profiles.tolist(), unknown.tolist(),
            cluster.max_slowdown[rows].tolist(), cluster.min_iops_ratio[rows].tolist(),
            cluster.own_wait[rows].tolist(), cluster.vcpus[rows].tolist(),
            cluster.storage_wait[rows].tolist(), cluster.cpu_weight[rows].tolist(),
            cluster.background[rows].tolist(),
            cluster.io_domain[rows].tolist()):
        vm: dict[str, Any] = {'uuid': uuid, 'profile': None if missing else profile}
        if math.isfinite(slowdown):
            vm['max_slowdown'] = slowdown
        if ratio > 0:
            vm['min_iops_ratio'] = ratio
        if own_wait > 0:
            vm['own_wait'] = own_wait
        if vcpus > 1:
            vm['vcpus'] = vcpus
        if not math.isnan(storage_wait):
            vm['storage_wait'] = storage_wait
        if weight != 1.0:
            vm['cpu_weight'] = weight
        if background:
            vm['class'] = limits_module.BACKGROUND_CLASS
        if domain != own:
            # What is not said is the host's own, so what is not known must be.
            vm['storage'] = _storage(cluster, domain, name) or cluster_module.UNKNOWN
        vms.append(vm)
    cores = ({} if math.isnan(cluster.cores[index]) else {'cores': int(cluster.cores[index])})
    if cluster.threads[index] > 1:
        cores['threads'] = int(cluster.threads[index])
    return {'host': name, 'type': cluster.host_type[index],
            'storage': _storage(cluster, own, name),
            'updated_at': float(cluster.updated_at[index]), **cores,
            **({'contention': cluster.felt[index].tolist()} if cluster.felt[index].any() else {}),
            'vms': vms}


def of_history(key: str, profile: newcomer_profiles.Profile) -> dict[str, Any]:
    """Return the content of the line of one kind of newcomer."""
    return {'history': key, 'mean': profile.mean.tolist(),
            'deviation': profile.deviation.tolist(), 'count': profile.count,
            **({'own_wait': profile.own_wait} if profile.own_wait else {}),
            **({} if math.isnan(profile.storage_wait)
               else {'storage_wait': profile.storage_wait})}


def whole(fields: document.Fields, name: str) -> int:
    """Read a whole number, not negative.

    :raises tracon_watcher.errors.InvalidDocument: when it is none
    """
    value = fields.number(name, 0, LARGEST_WHOLE)
    if value != int(value):
        fields.refuse(name, fields.raw(name), 'expected a whole number')
    return int(value)


#: What may be learnt of a host type, from … to.
_LEARNT = {'gain': (0.1, 10.0), 'disk': (0.1, 1024.0), 'spread': (0.0, 10.0),
           'vm_hours': (0.0, math.inf), 'error': (0.0, math.inf),
           'constant_error': (0.0, math.inf), 'coverage': (0.0, 1.0)}


_POOL = {'request': (0.0, 3600.0), 'at_once': (1.0, 65536.0)}


def of_learnt(learnt: Mapping[str, queues.LearnedParameters] | Mapping[str, queues.Pool]
              ) -> dict[str, dict[str, float]]:
    """Return what was learnt of host types or of pools; what is unknown is left out."""
    return {name: {field: value for field, value in dataclasses.asdict(one).items()
                   if not math.isnan(value)} for name, one in learnt.items()}


def learnt(fields: document.Fields) -> dict[str, queues.LearnedParameters]:
    """Read what was learnt of host types; nothing where nothing is said.

    :raises tracon_watcher.errors.InvalidDocument: naming the host type, the field and the value
    """
    found = _numbers(fields, 'learnt', _LEARNT)
    return {name: queues.LearnedParameters(**one) for name, one in found.items()}


def pools(fields: document.Fields) -> dict[str, queues.Pool]:
    """Read what is known of pools; nothing where nothing is said.

    :raises tracon_watcher.errors.InvalidDocument: naming the pool, the field and the value
    """
    found = _numbers(fields, 'pools', _POOL)
    return {name: queues.Pool(**one) for name, one in found.items() if 'request' in one}


def _numbers(fields: document.Fields, name: str,
             ranges: Mapping[str, tuple[float, float]]) -> dict[str, dict[str, float]]:
    """Read numbers by name, of those fields that there are."""
    if not fields.has(name):
        return {}
    stated = fields.section(name)
    return {key: {field: one.number(field, *bounds) for field, bounds in ranges.items()
                  if one.has(field)}
            for key in fields.raw(name) for one in (stated.section(key),)}


def history(fields: document.Fields) -> tuple[str, newcomer_profiles.Profile]:
    """Read the line of one kind of newcomer.

    :raises tracon_watcher.errors.InvalidDocument: naming the field and the value
    """
    key = fields.string('history')
    return key, newcomer_profiles.Profile(
        fields.array('mean', (COUNT,), 0.0), fields.array('deviation', (COUNT,), 0.0),
        whole(fields, 'count'), key or 'all VMs',
        own_wait=fields.number('own_wait', 0.0, 1.0) if fields.has('own_wait') else 0.0,
        storage_wait=(fields.number('storage_wait', 0.0, 1.0) if fields.has('storage_wait')
                      else math.nan))


def _storage(cluster: cluster_module.ClusterState, domain: int, host: str) -> str | None:
    if domain < 0:
        return None
    name = cluster.io_domains[domain]
    return cluster_module.LOCAL if name == f'{cluster_module.LOCAL}:{host}' else name


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
        self._background: list[bool] = []
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

    def state(self, history: Mapping[str, newcomer_profiles.Profile] | None = None,
              version: int = 0,
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
            np.array(self._weights, dtype=np.float64),
            np.array(self._background, dtype=np.bool_), names, dict(history or {}), version,
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
        background = 'class' in vm
        if background:
            document.Fields(fields.source, vm, f'vms[{index}]').string(
                'class', (limits_module.BACKGROUND_CLASS,))
            # A background VM has no limits, whatever the snapshot states.
            slowdown, ratio = math.inf, 0.0
        self._background.append(background)
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
