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

"""Deltas between snapshots, and clusters with some hosts replaced."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Iterable, Iterator, Sequence

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import snapshot
from tracon_watcher.placement import snapshot_lines


def patched(state: cluster_module.ClusterState, fresh: cluster_module.ClusterState,
            removed: Iterable[str] = (),
            order: Sequence[str] | None = None) -> cluster_module.ClusterState:
    """Return the state with other hosts in place of those of the same name, or added.

    It is what :func:`tracon_watcher.placement.cluster.build` gives for all its hosts; but what
    has not changed is copied in a few passes over arrays, and that no VM occurs twice is left to
    :func:`tracon_watcher.placement.cluster.check_names`.

    :param fresh: the other hosts, each with all its residents
    :param removed: names of hosts that are no more
    :param order: names of all hosts that there are then; None for the order of before, with those
        that are new at the end
    :raises ValueError: when a name occurs twice among the other hosts, or the order does not name
        each host once
    """
    cluster_module.check_names(fresh)
    both = _Both(state, fresh)
    names = _names(state, fresh, frozenset(removed), order)
    # Where each host is taken from: the new ones stand behind the old ones.
    old, new = state.host_index.get, fresh.host_index.get
    source: IntArray = np.fromiter(
        (place + len(state.hosts) if place is not None else old(name, -1)
         for place, name in zip(map(new, names), names)), np.intp, len(names))
    if (source < 0).any():
        raise ValueError(f'host {names[int(np.argmin(source))]} is not in the cluster')
    counts = both.counts()[source]
    rows = ranges(both.starts()[source], counts)
    host_io_domain, io_domain, io_domains = snapshot_lines.renumbered(
        both.joined('host_io_domain')[source], both.joined('io_domain')[rows], both.domains)
    return dataclasses.replace(
        state, hosts=tuple(names), host_type=_taken(both.listed('host_type'), source),
        host_io_domain=host_io_domain, updated_at=both.joined('updated_at')[source],
        cores=both.joined('cores')[source], threads=both.joined('threads')[source],
        uuids=_taken(both.listed('uuids'), rows),
        host=np.repeat(np.arange(len(names)), counts), io_domain=io_domain,
        profiles=both.joined('profiles')[rows], max_slowdown=both.joined('max_slowdown')[rows],
        min_iops_ratio=both.joined('min_iops_ratio')[rows],
        own_wait=both.joined('own_wait')[rows],
        vcpus=both.joined('vcpus')[rows], storage_wait=both.joined('storage_wait')[rows],
        cpu_weight=both.joined('cpu_weight')[rows], background=both.joined('background')[rows],
        io_domains=io_domains,
        rate_elsewhere=None, request_seconds=None,
        contention=cluster_module.told_contention(both.joined('felt')[source]))


def ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """Return the rows from each start on, as many as its count, one behind the other."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.arange(total) + np.repeat(starts - (ends - counts), counts),
                      dtype=np.intp)


def _names(state: cluster_module.ClusterState, fresh: cluster_module.ClusterState,
           removed: frozenset[str], order: Sequence[str] | None) -> list[str]:
    names = [name for name in state.hosts if name not in removed]
    names += [name for name in fresh.hosts if name not in state.host_index or name in removed]
    if order is None:
        return names
    if len(order) != len(names) or set(order) != set(names):
        raise ValueError(f'the order names {len(order)} hosts, and there are {len(names)} others')
    return list(order)


def _taken(values: tuple[Any, ...], rows: IntArray) -> tuple[Any, ...]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return tuple(array[rows].tolist())


class _Both:
    """Two states, their arrays one behind the other."""

    def __init__(self, old: cluster_module.ClusterState,
                 new: cluster_module.ClusterState) -> None:
        self._old = old
        self._new = new
        numbers = {name: place for place, name in enumerate(old.io_domains)}
        renamed = [numbers.setdefault(name, len(numbers)) for name in new.io_domains]
        #: Names of the storage backends of both.
        self.domains = list(numbers)
        self._renamed = np.array([*renamed, -1], dtype=np.intp)

    def joined(self, name: str) -> Any:
        """Return an array of both."""
        new = getattr(self._new, name)
        if name.endswith('io_domain'):
            new = self._renamed[new]
        return np.concatenate([getattr(self._old, name), new])

    def listed(self, name: str) -> tuple[Any, ...]:
        """Return a tuple of both."""
        return tuple(itertools.chain(getattr(self._old, name), getattr(self._new, name)))

    def counts(self) -> IntArray:
        """Return how many residents each host has."""
        return np.concatenate([np.diff(self._old.first), np.diff(self._new.first)])

    def starts(self) -> IntArray:
        """Return at which row each host's residents begin."""
        return np.concatenate([self._old.first[:-1], self._new.first[:-1] + len(self._old.uuids)])


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
    return snapshot_lines.sealed(_contents(old, new))


def apply(base: snapshot.Snapshot, lines: Iterable[str], source: str) -> snapshot.Snapshot:
    """Return the snapshot that a delta leads to.

    :param source: what the delta is called, for the errors
    :raises WrongBase: when it starts from another snapshot
    :raises tracon_watcher.errors.InvalidDocument: naming line, field and value
    """
    with snapshot_lines.bounded(source):
        reader = _Reader(base, source)
        for fields in snapshot_lines.unsealed(lines, source, _REMEDY):
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
    rows, old_rows = ranges(new.first[kept], counts), ranges(old.first[was], counts)
    different = ((_objects(old.uuids)[old_rows] != _objects(new.uuids)[rows])
                 | (old_domains[old.io_domain[old_rows]] != new_domains[new.io_domain[rows]])
                 | (old.max_slowdown[old_rows] != new.max_slowdown[rows])
                 | (old.min_iops_ratio[old_rows] != new.min_iops_ratio[rows])
                 | (old.own_wait[old_rows] != new.own_wait[rows])
                 | (old.vcpus[old_rows] != new.vcpus[rows])
                 | _differ(old.storage_wait[old_rows], new.storage_wait[rows])
                 | (old.cpu_weight[old_rows] != new.cpu_weight[rows])
                 | (old.background[old_rows] != new.background[rows])
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
        header['learnt'] = snapshot_lines.of_learnt(new.learnt)
    if new.pools:
        header['pools'] = snapshot_lines.of_learnt(new.pools)
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
        yield snapshot_lines.of_host(cluster, index)
    if removed:
        yield {'removed': removed}
    if times is not None:
        yield {'times': times}
    for key, profile in cluster.history.items():
        if not _same(old.cluster.history.get(key), profile):
            yield snapshot_lines.of_history(key, profile)
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


def _same(one: newcomer_profiles.Profile | None, other: newcomer_profiles.Profile) -> bool:
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
        self._columns = snapshot_lines.Columns()
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
            key, profile = snapshot_lines.history(fields)
            self._history[key] = profile

    def finish(self) -> snapshot.Snapshot:
        header = self._header
        if header is None:
            raise errors.InvalidDocument(self._source, 'the first line', None,
                                         f'the header is missing; {_REMEDY}')
        try:
            cluster = patched(
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
                                 self._identity[0], snapshot_lines.learnt(header),
                                 snapshot_lines.pools(header))

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
        base = fields.array('base', (2,), 0, snapshot_lines.LARGEST_WHOLE)
        start = int(base[0]), int(base[1])
        if start != self._base.identity:
            raise WrongBase(fields.source, start, self._base.identity)
        self._identity = snapshot_lines.whole(fields,
                                              'epoch'), snapshot_lines.whole(fields, 'version')
        self._header = fields
