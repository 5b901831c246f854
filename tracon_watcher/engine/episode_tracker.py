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

"""Tracker of episodes in which tracon-background throttled, with the slowdowns around them."""

from __future__ import annotations

import collections
import json
import logging
import math
import threading
import time
from typing import Any, Callable, Iterable, Mapping
import uuid

from tracon_watcher import document
from tracon_watcher.engine.storage import records
from tracon_watcher.engine.storage import tables
from tracon_watcher.engine import view as views
from tracon_watcher import errors
from tracon_watcher.placement import assessment

LOG = logging.getLogger(__name__)
SCHEMA = 'tracon-episode/1'
#: What is throttled, and the units of its limits; without one, groups are paused.
UNITS = {'processor': 'cores', 'memory': 'bytes', 'network': 'bytes/s', 'disk bytes': 'bytes/s',
         'disk requests': 'requests/s', 'pause': None, 'cores': None}
#: Seconds after an episode in which counters of its host are waited for, and episodes that wait.
_PATIENCE, _MOST = 3600.0, 10000
_SPACE = uuid.UUID('5d0c1f2e-7a4b-4c39-9e86-b1f3d27a6c58')


class NoView(errors.TraconError):
    """The engine knows no hosts yet; it may a minute later."""


class EpisodeTracker:
    """Takes down episodes that daemons tell of; what is not plausible is dropped and counted.

    :param view_of: returns what the engine knows now
    :param clock: seconds since the epoch
    """

    def __init__(self, storage: records.Episodes, view_of: Callable[[], views.View | None],
                 clock: Callable[[], float] = time.time) -> None:
        self._storage, self._view_of, self._clock = storage, view_of, clock
        #: Documents since the start, by whether they were recorded.
        self.counts = collections.Counter({'recorded': 0, 'dropped': 0})
        self._lock = threading.Lock()
        #: Episodes that ended, by id, whose slowdowns after them are not known yet.
        self._ended: dict[str, dict[str, Any]] = {}

    def take(self, documents: Iterable[dict[str, Any]]) -> None:
        """Take down what a daemon tells, the slowdowns before it from the present view.

        :raises NoView: before the first
        :raises tracon_watcher.engine.storage.errors.StorageFailed: one of its kinds
        """
        view = self._view_of()
        if view is None:
            raise NoView('the engine has not collected anything yet')
        for content in documents:
            result = 'recorded'
            try:
                self._record(document.Fields('an episode', content), view)
            except errors.InvalidDocument as error:
                result = 'dropped'
                LOG.log(logging.DEBUG if self.counts[result] else logging.WARNING,
                        'tracon-background told of an episode, which is dropped (metrics count '
                        'further ones): %s', error)
            with self._lock:
                self.counts[result] += 1

    def _record(self, fields: document.Fields, view: views.View) -> None:
        one = _read(fields, self._clock())
        number = str(uuid.uuid5(_SPACE, json.dumps(
            [one['host'], one['resource'], one['vm'], one['began_at']])))
        known = self._storage.get(number)
        if known is None:
            one['slowdowns_before'] = _before(fields, one, view)
        elif one['ended_at'] is None:
            # A beginning that is told again, maybe after the end.
            return
        else:
            one['slowdowns_before'] = known['slowdowns_before']
        self._storage.put(number, one)
        if one['ended_at'] is not None and len(self._ended) < _MOST:
            self._ended[number] = one

    def measure(self, view: views.View) -> None:
        """Take down slowdowns after episodes, of which counters have been read since."""
        for number, one in list(self._ended.items()):
            measured = _seen_at(view, one['host']) >= one['ended_at']
            if measured:
                one['slowdowns_after'] = _observed(view, one['host'], one['vm'])
                self._storage.put(number, one)
            if measured or self._clock() - one['ended_at'] > _PATIENCE:
                del self._ended[number]


def _read(fields: document.Fields, now: float) -> dict[str, Any]:
    """Return an episode of a document.

    :raises tracon_watcher.errors.InvalidDocument: naming the field
    """
    one: dict[str, Any] = {
        'host': tables.word(fields, 'host', tables.NAME),
        'resource': fields.string('resource', tuple(UNITS)),
        'vm': tables.word(fields, 'vm', tables.ID) if fields.has('vm') else None,
        'began_at': fields.number('began_at', 0, now + assessment.AHEAD)}
    one |= {name: fields.number(name, *bounds) if fields.has(name) else None for name, bounds in (
        ('ended_at', (one['began_at'], now + assessment.AHEAD)), ('before', (0,)),
        ('least', (0,)))}
    return one


def _before(fields: document.Fields, one: Mapping[str, Any],
            view: views.View) -> dict[str, float]:
    """Return the slowdown before an episode by VM, NaN where unknown.

    :raises tracon_watcher.errors.InvalidDocument: when the host or the VM is not there
    """
    if one['host'] not in view.assessor.cluster.host_index:
        fields.refuse('host', one['host'], 'no compute service of Nova has this name: set '
                                           '[background] host')
    found = _observed(view, one['host'], one['vm'])
    if one['vm'] is not None and not found:
        fields.refuse('vm', one['vm'], f'it is not on host {one["host"]}')
    # Counters from after its beginning say nothing of before.
    late = _seen_at(view, one['host']) > one['began_at']
    return {vm: math.nan if late else slowdown for vm, slowdown in found.items()}


def _seen_at(view: views.View, host: str) -> float:
    """Return when the counters of a host were read last; NaN of one that is gone."""
    cluster = view.assessor.cluster
    row = cluster.host_index.get(host)
    return math.nan if row is None else float(cluster.updated_at[row])


def _observed(view: views.View, host: str, vm: str | None) -> Mapping[str, float]:
    """Return the slowdown by VM of one VM, or of all, that are on a host; NaN where unknown."""
    cluster = view.assessor.cluster
    row = cluster.host_index.get(host)
    there = range(0) if row is None else range(cluster.first[row], cluster.first[row + 1])
    return {cluster.uuids[each]: float(view.observed[each]) for each in there
            if vm in (None, cluster.uuids[each])}
