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

"""The snapshot: one file with all that a scheduler or a strategy must know to judge.

The format is JSON lines, so that it can be read by eye, written as a stream and sent in pieces,
and so that reading a large one gives way to other threads between lines:

* the first line is the header: schema, version, time, the models;
* then a line for each host with its residents, and one for each kind of newcomer;
* the last line states how many lines there are before it and their SHA-256, so that a truncated
  or edited file is never taken for a whole one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import pathlib
import sys
from typing import Any, Iterable, Iterator, Mapping

import numpy as np

from tracon_watcher import errors
from tracon_watcher.characteristics import COUNT, NAMES
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer
from tracon_watcher.prediction import document
from tracon_watcher.prediction import store

SCHEMA = 'tracon-snapshot/1'
_HEADER = ('schema', 'version', 'generated_at', 'maximum_age_seconds', 'models')
_HOST = ('host', 'type', 'storage', 'updated_at', 'vms')
_VM = frozenset(('uuid', 'profile', 'max_slowdown', 'min_iops_ratio', 'storage'))
_REWRITE = 'write the snapshot anew'
_LARGEST = sys.float_info.max


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A cluster with the models to judge it by.

    :param models: by host type
    :param maximum_age_seconds: after which a host's data is stale, thus unknown
    """

    cluster: cluster_module.ClusterState
    models: Mapping[str, assessment.Models]
    maximum_age_seconds: float

    @property
    def version(self) -> int:
        """Rises with every snapshot."""
        return self.cluster.version


def encode(cluster: cluster_module.ClusterState, models: Mapping[str, assessment.Models],
           maximum_age_seconds: float) -> Iterator[str]:
    """Yield the lines of a snapshot, each with its line feed."""
    digest = hashlib.sha256()
    count = 0
    for line in _lines(cluster, models, maximum_age_seconds):
        text = json.dumps(line, separators=(',', ':'), allow_nan=False) + '\n'
        digest.update(text.encode())
        count += 1
        yield text
    yield json.dumps({'end': count, 'sha256': digest.hexdigest()}) + '\n'


def decode(lines: Iterable[str], source: str) -> Snapshot:
    """Build a snapshot from its lines.

    :param source: the file's name, for the errors
    :raises tracon_watcher.errors.InvalidDocument: naming file, line, field and value
    """
    reader = _Reader(source)
    for line in lines:
        reader.line(line)
    return reader.finish()


def write(path: str | os.PathLike[str], cluster: cluster_module.ClusterState,
          models: Mapping[str, assessment.Models], maximum_age_seconds: float = 900.0) -> None:
    """Write a snapshot file atomically: a reader sees the old one or the new one, whole."""
    target = pathlib.Path(path)
    scratch = target.with_name(f'.{target.name}.{os.getpid()}')
    with scratch.open('w', encoding='utf-8') as stream:
        stream.writelines(encode(cluster, models, maximum_age_seconds))
        stream.flush()
        os.fsync(stream.fileno())
    scratch.replace(target)


def read(path: str | os.PathLike[str]) -> Snapshot:
    """Read a snapshot file.

    :raises tracon_watcher.errors.InvalidDocument: naming file, line, field and value
    """
    source = os.fspath(path)
    try:
        with open(source, encoding='utf-8') as stream:
            return decode(stream, source)
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InvalidDocument(source, 'the file', str(error),
                                     f'cannot be read; {_REWRITE}') from None


def _lines(cluster: cluster_module.ClusterState, models: Mapping[str, assessment.Models],
           maximum_age_seconds: float) -> Iterator[dict[str, Any]]:
    yield {'schema': SCHEMA, 'version': cluster.version, 'generated_at': cluster.generated_at,
           'maximum_age_seconds': maximum_age_seconds,
           'models': [model.to_document() for name in sorted(models) for model in models[name]]}
    for index, name in enumerate(cluster.hosts):
        own = int(cluster.host_io_domain[index])
        vms = []
        for row in range(cluster.first[index], cluster.first[index + 1]):
            profile = cluster.profiles[row]
            vm: dict[str, Any] = {
                'uuid': cluster.uuids[row],
                'profile': None if np.isnan(profile).any() else profile.tolist()}
            limits = cluster.resident_limits(row)
            if math.isfinite(limits.max_slowdown):
                vm['max_slowdown'] = limits.max_slowdown
            if limits.min_iops_ratio > 0:
                vm['min_iops_ratio'] = limits.min_iops_ratio
            if cluster.io_domain[row] != own:
                vm['storage'] = _storage(cluster, int(cluster.io_domain[row]), name)
            vms.append(vm)
        yield {'host': name, 'type': cluster.host_type[index],
               'storage': _storage(cluster, own, name),
               'updated_at': float(cluster.updated_at[index]), 'vms': vms}
    for key, profile in cluster.history.items():
        yield {'history': key, 'mean': profile.mean.tolist(),
               'deviation': profile.deviation.tolist(), 'count': profile.count}


def _storage(cluster: cluster_module.ClusterState, domain: int, host: str) -> str | None:
    if domain < 0:
        return None
    name = cluster.io_domains[domain]
    return cluster_module.LOCAL if name == f'{cluster_module.LOCAL}:{host}' else name


class _Reader:
    """Takes lines one by one."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._digest = hashlib.sha256()
        self._count = 0
        self._header: document.Fields | None = None
        self._models: dict[str, dict[str, Any]] = {}
        self._hosts: list[cluster_module.Host] = []
        self._history: dict[str, newcomer.Profile] = {}
        self._ended = False

    def line(self, text: str) -> None:
        where = f'{self._source}: line {self._count + 1}'
        fields = document.parse(text, where)
        if self._ended:
            raise errors.InvalidDocument(where, 'the line', text[:40], 'nothing follows the end')
        if self._header is None:
            self._start(fields)
        elif fields.has('end'):
            self._end(fields)
            return
        elif fields.has('host'):
            self._hosts.append(_host(fields))
        else:
            fields.only(('history', 'mean', 'deviation', 'count'))
            key = fields.string('history')
            self._history[key] = newcomer.Profile(
                fields.array('mean', (COUNT,), 0.0), fields.array('deviation', (COUNT,), 0.0),
                int(fields.number('count', 1)), key or 'all VMs')
        self._count += 1
        self._digest.update(text.encode())

    def finish(self) -> Snapshot:
        if not self._ended or self._header is None:
            raise errors.InvalidDocument(self._source, 'the last line', f'line {self._count}',
                                         f'the file is truncated: its end is missing; {_REWRITE}')
        header = self._header
        try:
            cluster = cluster_module.build(
                self._hosts, self._history, int(header.number('version', 0)),
                header.number('generated_at', 0))
        except ValueError as error:
            raise errors.InvalidDocument(self._source, 'hosts', str(error), _REWRITE) from None
        models = {}
        for host_type, pair in self._models.items():
            for response in ('slowdown', 'iops_ratio'):
                if response not in pair:
                    header.refuse('models', host_type,
                                  f'the {response} model of this host type is missing')
            models[host_type] = assessment.Models(pair['slowdown'], pair['iops_ratio'])
        return Snapshot(cluster, models, header.number('maximum_age_seconds', 1))

    def _start(self, fields: document.Fields) -> None:
        fields.string('schema', (SCHEMA,))
        fields.only(_HEADER)
        for name in ('version', 'generated_at'):
            fields.number(name, 0)
        fields.number('maximum_age_seconds', 1)
        for index, one in enumerate(fields.sections('models')):
            model = store.from_content(fields.raw('models')[index], f'{one.source}: {one.path}')
            self._models.setdefault(model.host_type, {})[model.response] = model
        self._header = fields

    def _end(self, fields: document.Fields) -> None:
        fields.only(('end', 'sha256'))
        if fields.number('end', 0) != self._count:
            fields.refuse('end', fields.raw('end'),
                          f'{self._count} lines stand before it; lines were lost; {_REWRITE}')
        if fields.string('sha256') != self._digest.hexdigest():
            fields.refuse('sha256', fields.raw('sha256'),
                          f'the lines were changed after they were written; {_REWRITE}')
        self._ended = True


def _host(fields: document.Fields) -> cluster_module.Host:
    fields.only(_HOST)
    vms = fields.raw('vms')
    if not isinstance(vms, list):
        fields.refuse('vms', vms, 'expected a list of VMs')
    return cluster_module.Host(
        fields.string('host'), tuple(_vm(fields, index, vm) for index, vm in enumerate(vms)),
        fields.string('type') if fields.has('type') else None,
        fields.string('storage') if fields.has('storage') else None,
        fields.number('updated_at', 0))


def _vm(fields: document.Fields, index: int, vm: Any) -> cluster_module.Resident:
    # There may be hundreds of thousands: what is right passes quickly, what is not is looked into.
    if not isinstance(vm, dict) or not vm.keys() <= _VM or type(vm.get('uuid')) is not str:
        one = document.Fields(fields.source, vm, f'vms[{index}]')
        one.only(sorted(_VM))
        one.string('uuid')
    profile = vm.get('profile')
    if profile is not None:
        if type(profile) is not list or len(profile) != COUNT or not all(
                (type(value) is float or type(value) is int) and 0 <= value <= _LARGEST
                for value in profile):
            document.Fields(fields.source, vm, f'vms[{index}]').array('profile', (COUNT,), 0.0)
            fields.refuse(f'vms[{index}].profile', profile, f'expected {", ".join(NAMES)}')
        profile = np.array(profile, dtype=np.float64)
    limits = limits_module.NONE
    if 'max_slowdown' in vm or 'min_iops_ratio' in vm:
        one = document.Fields(fields.source, vm, f'vms[{index}]')
        limits = limits_module.Limits(
            _limit(one, 'max_slowdown', limits_module.MAX_SLOWDOWN, math.inf),
            _limit(one, 'min_iops_ratio', limits_module.MIN_IOPS_RATIO, 0.0))
    backend = vm.get('storage')
    if backend is not None and (type(backend) is not str or not backend):
        fields.refuse(f'vms[{index}].storage', backend, 'expected the name of a storage backend')
    return cluster_module.Resident(vm['uuid'], profile, limits, backend)


def _limit(fields: document.Fields, name: str, key: str, default: float) -> float:
    if not fields.has(name):
        return default
    return fields.number(name, *limits_module.RANGES[key])
