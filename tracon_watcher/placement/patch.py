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

"""A cluster's state with some hosts exchanged, made of its arrays rather than rebuilt."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Iterable, Sequence

import numpy as np

from tracon_watcher.characteristics import IntArray
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import columns


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
    host_io_domain, io_domain, io_domains = columns.renumbered(
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
        cpu_weight=both.joined('cpu_weight')[rows],
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
