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

"""What has changed from one snapshot to the next, and how the next is made of the one and that.

JSON lines, as a snapshot's (:mod:`tracon_watcher.placement.lines`):

* the header: the epoch and version that the delta starts from and those that it leads to, what a
  snapshot's header says otherwise, ``updated_at`` of all hosts that no line is about, their order
  if it is not that of before with new hosts at the end, and how many hosts and VMs there are then;
* a line for each host whose content has changed, and for each kind of newcomer;
* ``removed`` hosts, ``forgotten`` kinds of newcomers, and ``times``, one for each host, where not
  all that are merely refreshed share one;
* the line that seals them.

It is applied to arrays in a few passes, however many VMs there are. What comes out is exactly what
the text of the whole snapshot would give.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Iterable, Iterator

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import columns
from tracon_watcher.placement import lines as lines_module
from tracon_watcher.placement import newcomer
from tracon_watcher.placement import patch
from tracon_watcher.placement import snapshot

SCHEMA = 'tracon-delta/2'
_REMEDY = 'fetch the whole snapshot'


class WrongBase(errors.TraconError):
    """A delta starts from another snapshot than the one that it shall be applied to.

    :param base: epoch and version that it starts from
    :param found: those of the snapshot
    """

    def __init__(self, source: str, base: tuple[int, int], found: tuple[int, int]) -> None:
        super().__init__(f'{source}: it starts from snapshot {base[0]}.{base[1]}, and there is '
                         f'{found[0]}.{found[1]}: {_REMEDY}')
        self.base = base
        self.found = found


def encode(old: snapshot.Snapshot, new: snapshot.Snapshot) -> Iterator[str]:
    """Yield the lines of the delta from one snapshot to another, each with its line feed."""
    return lines_module.sealed(_contents(old, new))


def apply(base: snapshot.Snapshot, lines: Iterable[str], source: str) -> snapshot.Snapshot:
    """Return the snapshot that a delta leads to.

    :param source: what the delta is called, for the errors
    :raises WrongBase: when it starts from another snapshot
    :raises tracon_watcher.errors.InvalidDocument: naming line, field and value
    """
    with lines_module.bounded(source):
        reader = _Reader(base, source)
        for fields in lines_module.unsealed(lines, source, _REMEDY):
            reader.take(fields)
        return reader.finish()


def changed_hosts(old: cluster_module.ClusterState,
                  new: cluster_module.ClusterState) -> tuple[IntArray, BoolArray]:
    """Compare the hosts of two states: their type, cores, storage and residents, not their times.

    :returns: (h,) the index in the old state of each host of the new one, -1 where it had none,
        and (h,) whether it is new or its content has changed
    """
    get = old.host_index.get
    before: IntArray = np.fromiter(map(get, new.hosts, itertools.repeat(-1)), np.intp,
                                   len(new.hosts))
    changed = before < 0
    kept = np.flatnonzero(~changed)
    was = before[kept]
    domains: dict[str, int] = {}
    old_domains, new_domains = (
        np.array([*(domains.setdefault(name, len(domains)) for name in state.io_domains), -1],
                 dtype=np.intp) for state in (old, new))
    differs = (_objects(old.host_type)[was] != _objects(new.host_type)[kept]) | (
        old_domains[old.host_io_domain[was]] != new_domains[new.host_io_domain[kept]]) | (
        _differ(old.cores[was], new.cores[kept])) | (
        old.threads[was] != new.threads[kept]) | (
        old.felt[was] != new.felt[kept]).any(axis=1)
    counts = np.diff(new.first)[kept]
    differs |= np.diff(old.first)[was] != counts
    changed[kept] = differs
    kept, was, counts = kept[~differs], was[~differs], counts[~differs]
    rows, old_rows = patch.ranges(new.first[kept], counts), patch.ranges(old.first[was], counts)
    different = ((_objects(old.uuids)[old_rows] != _objects(new.uuids)[rows])
                 | (old_domains[old.io_domain[old_rows]] != new_domains[new.io_domain[rows]])
                 | (old.max_slowdown[old_rows] != new.max_slowdown[rows])
                 | (old.min_iops_ratio[old_rows] != new.min_iops_ratio[rows])
                 | (old.own_wait[old_rows] != new.own_wait[rows])
                 | (old.vcpus[old_rows] != new.vcpus[rows])
                 | _differ(old.storage_wait[old_rows], new.storage_wait[rows])
                 | (old.cpu_weight[old_rows] != new.cpu_weight[rows])
                 | _profiles_differ(old.profiles[old_rows], new.profiles[rows]))
    changed[new.host[rows[different]]] = True
    return before, changed


def _objects(values: tuple[Any, ...]) -> Any:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _differ(old: FloatArray, new: FloatArray) -> BoolArray:
    """Compare numbers that may be unknown."""
    return np.asarray((old != new) & ~(np.isnan(old) & np.isnan(new)))


def _profiles_differ(old: FloatArray, new: FloatArray) -> BoolArray:
    """Compare (n, 4) profiles, of which one that is unknown in part counts as unknown."""
    unknown = np.isnan(old).any(axis=1), np.isnan(new).any(axis=1)
    return np.asarray((unknown[0] != unknown[1])
                      | (~unknown[0] & (old != new).any(axis=1)))


def _contents(old: snapshot.Snapshot, new: snapshot.Snapshot) -> Iterator[dict[str, Any]]:
    cluster = new.cluster
    before, changed = changed_hosts(old.cluster, cluster)
    header = {'schema': SCHEMA, 'base': list(old.identity), 'epoch': new.epoch,
              'version': new.version, 'generated_at': cluster.generated_at,
              'maximum_age_seconds': new.maximum_age_seconds,
              'hosts': len(cluster.hosts), 'vms': len(cluster.uuids)}
    if new.learnt:
        header['learnt'] = lines_module.of_learnt(new.learnt)
    if new.pools:
        header['pools'] = lines_module.of_learnt(new.pools)
    present = frozenset(cluster.hosts)
    removed = [name for name in old.cluster.hosts if name not in present]
    order = [name for name in old.cluster.hosts if name in present]
    order += [cluster.hosts[index] for index in np.flatnonzero(before < 0)]
    if order != list(cluster.hosts):
        header['order'] = list(cluster.hosts)
    common, times = _times(old.cluster.updated_at, cluster.updated_at, before, changed)
    if common is not None:
        header['updated_at'] = common
    yield header
    for index in np.flatnonzero(changed).tolist():
        yield lines_module.of_host(cluster, index)
    if removed:
        yield {'removed': removed}
    if times is not None:
        yield {'times': times}
    for key, profile in cluster.history.items():
        if not _same(old.cluster.history.get(key), profile):
            yield lines_module.of_history(key, profile)
    forgotten = [key for key in old.cluster.history if key not in cluster.history]
    if forgotten:
        yield {'forgotten': forgotten}


def _times(old: FloatArray, new: FloatArray, before: IntArray,
           changed: BoolArray) -> tuple[float | None, list[float | None] | None]:
    """Return how the times of hosts whose content has not changed are told.

    :returns: the one that most of those that were refreshed share, None when most were not; and
        one for each host, None where that says it, if there are any others
    """
    quiet = np.flatnonzero(~changed)
    then, now = old[before[quiet]], new[quiet]
    common: float | None = None
    other = now != then
    if other.any():
        values, counts = np.unique(now, return_counts=True)
        most = float(values[np.argmax(counts)])
        if (now != most).sum() <= other.sum():
            common, other = most, now != most
    if not other.any():
        return common, None
    times: list[float | None] = [None] * len(new)
    for place in quiet[other].tolist():
        times[place] = float(new[place])
    return common, times


def _same(one: newcomer.Profile | None, other: newcomer.Profile) -> bool:
    return one is not None and (one is other or (
        one.count == other.count and one.own_wait == other.own_wait
        and not _differ(np.array([one.storage_wait]), np.array([other.storage_wait]))[0]
        and bool((one.mean == other.mean).all())
        and bool((one.deviation == other.deviation).all())))


class _Reader:
    """Takes the objects of the lines one by one."""

    def __init__(self, base: snapshot.Snapshot, source: str) -> None:
        self._base = base
        self._source = source
        self._header: document.Fields | None = None
        self._identity = (0, 0)
        self._columns = columns.Columns()
        self._history = dict(base.cluster.history)
        self._removed: frozenset[str] = frozenset()
        self._times: document.Fields | None = None

    def take(self, fields: document.Fields) -> None:
        if self._header is None:
            self._start(fields)
        elif fields.has('host'):
            self._columns.add(fields)
        elif fields.has('removed'):
            self._removed = frozenset(fields.strings('removed'))
        elif fields.has('times'):
            self._times = fields
        elif fields.has('forgotten'):
            for key in fields.strings('forgotten'):
                self._history.pop(key, None)
        elif fields.has('history'):
            key, profile = lines_module.history(fields)
            self._history[key] = profile

    def finish(self) -> snapshot.Snapshot:
        header = self._header
        if header is None:
            raise errors.InvalidDocument(self._source, 'the first line', None,
                                         f'the header is missing; {_REMEDY}')
        try:
            cluster = patch.patched(
                self._base.cluster, self._columns.state(), self._removed,
                header.strings('order') if header.has('order') else None)
            cluster = dataclasses.replace(
                cluster, updated_at=self._updated_at(header, cluster), history=self._history,
                version=self._identity[1], generated_at=header.number('generated_at', 0))
            cluster_module.check_names(cluster)
        except ValueError as error:
            raise errors.InvalidDocument(self._source, 'hosts', str(error), _REMEDY) from None
        for name, count in (('hosts', len(cluster.hosts)), ('vms', len(cluster.uuids))):
            if header.number(name) != count:
                header.refuse(name, count, f'{header.raw(name)} are stated; {_REMEDY}')
        return snapshot.Snapshot(cluster, header.number('maximum_age_seconds', 1),
                                 self._identity[0], lines_module.learnt(header),
                                 lines_module.pools(header))

    def _updated_at(self, header: document.Fields,
                    cluster: cluster_module.ClusterState) -> FloatArray:
        updated_at = cluster.updated_at.copy()
        told = np.fromiter(map(frozenset(self._columns.hosts).__contains__, cluster.hosts),
                           bool, len(cluster.hosts))
        if header.has('updated_at'):
            updated_at[~told] = header.number('updated_at', 0)
        if self._times is None:
            return updated_at
        times = self._times.raw('times')
        if not isinstance(times, list) or len(times) != len(updated_at):
            self._times.refuse('times', times, f'expected {len(updated_at)} entries; {_REMEDY}')
        for place, value in enumerate(times):
            if value is not None:
                updated_at[place] = document.Fields(
                    self._times.source, {'times': value}).number('times', 0)
        return updated_at

    def _start(self, fields: document.Fields) -> None:
        fields.string('schema', (SCHEMA,))
        base = fields.array('base', (2,), 0, lines_module.LARGEST_WHOLE)
        start = int(base[0]), int(base[1])
        if start != self._base.identity:
            raise WrongBase(fields.source, start, self._base.identity)
        self._identity = lines_module.whole(fields, 'epoch'), lines_module.whole(fields, 'version')
        self._header = fields
