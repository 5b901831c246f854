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

"""The lines of a snapshot and of a delta: a JSON object each, and a last one that seals them.

JSON lines can be read by eye, written as a stream and sent in pieces, and reading many of them
gives way to other threads in between. The last line states how many there are before it and their
SHA-256, so that what is truncated or edited is never taken for whole.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
from typing import Any, Iterable, Iterator, Mapping

import numpy as np

from tracon_watcher.characteristics import BoolArray, COUNT
from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import newcomer
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
                                     'no snapshot needs that') from None


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
         domain) in zip(
            cluster.uuids[rows], profiles.tolist(), unknown.tolist(),
            cluster.max_slowdown[rows].tolist(), cluster.min_iops_ratio[rows].tolist(),
            cluster.own_wait[rows].tolist(), cluster.vcpus[rows].tolist(),
            cluster.storage_wait[rows].tolist(), cluster.cpu_weight[rows].tolist(),
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


def of_history(key: str, profile: newcomer.Profile) -> dict[str, Any]:
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


def of_learnt(learnt: Mapping[str, queues.Learnt] | Mapping[str, queues.Pool]
              ) -> dict[str, dict[str, float]]:
    """Return what was learnt of host types or of pools; what is unknown is left out."""
    return {name: {field: value for field, value in dataclasses.asdict(one).items()
                   if not math.isnan(value)} for name, one in learnt.items()}


def learnt(fields: document.Fields) -> dict[str, queues.Learnt]:
    """Read what was learnt of host types; nothing where nothing is said.

    :raises tracon_watcher.errors.InvalidDocument: naming the host type, the field and the value
    """
    found = _numbers(fields, 'learnt', _LEARNT)
    return {name: queues.Learnt(**one) for name, one in found.items()}


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


def history(fields: document.Fields) -> tuple[str, newcomer.Profile]:
    """Read the line of one kind of newcomer.

    :raises tracon_watcher.errors.InvalidDocument: naming the field and the value
    """
    key = fields.string('history')
    return key, newcomer.Profile(
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
