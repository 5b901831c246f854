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

"""Placements that neither Nova's view of a host nor the snapshot shows yet."""

from __future__ import annotations

import collections
import dataclasses
import threading
from typing import Any, Iterable

import numpy as np

from tracon_watcher.characteristics import COUNT
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer

_MOST_PROFILES = 20000
#: Placements that are kept at most. Each may cost a request the assessment of one more host.
MOST = 1024
# Nova claims a host in less, or has failed.
_LONGEST_CLAIM = 10.0


@dataclasses.dataclass(frozen=True)
class Placement:
    """A VM that was given to a host.

    :param at: seconds since the epoch
    """

    uuid: str
    host: str
    node: str
    profile: newcomer.Profile
    limits: limits_module.Limits
    at: float

    def to_record(self) -> dict[str, Any]:
        """Return a form that JSON can hold, for the sibling workers."""
        return {'uuid': self.uuid, 'host': self.host, 'node': self.node,
                'mean': _numbers(self.profile.mean), 'deviation': _numbers(self.profile.deviation),
                'count': self.profile.count, 'source': self.profile.source,
                'apart': self.profile.apart, 'own_wait': self.profile.own_wait,
                'vcpus': self.profile.vcpus,
                'storage_wait': _numbers([self.profile.storage_wait])[0],
                'cpu_weight': self.profile.cpu_weight,
                'max_slowdown': (None if np.isinf(self.limits.max_slowdown)
                                 else self.limits.max_slowdown),
                'min_iops_ratio': self.limits.min_iops_ratio, 'at': self.at}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Placement:
        """Read what :meth:`to_record` gave.

        :raises KeyError: ``ValueError`` or ``TypeError``, when it is not that
        """
        slowdown = record['max_slowdown']
        profile = newcomer.Profile(_array(record['mean']), _array(record['deviation']),
                                   int(record['count']), str(record['source']),
                                   bool(record.get('apart', False)),
                                   float(record.get('own_wait', 0.0)),
                                   int(record.get('vcpus', 1)),
                                   np.nan if record.get('storage_wait') is None
                                   else float(record['storage_wait']),
                                   float(record.get('cpu_weight', 1.0)))
        return cls(str(record['uuid']), str(record['host']), str(record['node']), profile,
                   limits_module.Limits(np.inf if slowdown is None else float(slowdown),
                                        float(record['min_iops_ratio'])), float(record['at']))


class Pending:
    """All such placements of this worker and, as they are heard of, of its siblings.

    :param expiry: seconds for which a placement is remembered
    """

    def __init__(self, expiry: float) -> None:
        self._expiry = expiry
        self._placements: dict[str, Placement] = {}
        self._expected: dict[str, Placement] = {}
        self._known: collections.OrderedDict[
            str, tuple[newcomer.Profile, limits_module.Limits]] = collections.OrderedDict()
        self._lock = threading.Lock()

    def add(self, placements: Iterable[Placement]) -> None:
        """Remember placements; a later one of the same VM replaces an earlier one."""
        with self._lock:
            for one in placements:
                old = self._placements.get(one.uuid)
                if old is None or old.at <= one.at:
                    self._placements.pop(one.uuid, None)
                    self._placements[one.uuid] = one
                self._expected.pop(one.uuid, None)
                self._known[one.uuid] = (one.profile, one.limits)
            while len(self._placements) > MOST:
                del self._placements[next(iter(self._placements))]
            while len(self._known) > _MOST_PROFILES:
                self._known.popitem(last=False)

    def expect(self, one: Placement) -> None:
        """Count a VM on the host that its request will most likely take, until it is known."""
        with self._lock:
            self._expected[one.uuid] = one

    def unexpected(self, uuid: str) -> None:
        """Count a VM nowhere whose request ended without a host."""
        with self._lock:
            self._expected.pop(uuid, None)

    def discard(self, uuids: Iterable[str]) -> None:
        """Forget placements that did not come about."""
        with self._lock:
            for uuid in uuids:
                self._placements.pop(uuid, None)

    def left(self, departed: Iterable[tuple[str, str, str]]) -> None:
        """Forget placements on a host and node that the VM has left since."""
        with self._lock:
            for uuid, host, node in departed:
                one = self._placements.get(uuid)
                if one is not None and (one.host, one.node) == (host, node):
                    del self._placements[uuid]

    def came(self, listed: Iterable[tuple[str, str]], now: float) -> list[str]:
        """Forget placements on other hosts than those to which VMs have come since.

        A build that failed on one host is done on another without the scheduler being asked.

        :param listed: uuid and host of VMs that Nova did not list there before
        :returns: uuids of the placements that were forgotten
        """
        forgotten = []
        with self._lock:
            for uuid, host in listed:
                one = self._placements.get(uuid)
                if one is not None and one.host != host and one.at <= now:
                    del self._placements[uuid]
                    forgotten.append(uuid)
        return forgotten

    def expire(self, now: float) -> None:
        """Forget placements that are older than the expiry, and what is expected no more."""
        with self._lock:
            self._expire_placements(now)
            self._expire_expected(now)

    def all(self, now: float | None = None) -> list[Placement]:
        """Return the placements, at a time without those that are older than the expiry."""
        if not self._placements:
            return []
        with self._lock:
            if now is not None:
                self._expire_placements(now)
            return list(self._placements.values())

    def expected(self, now: float) -> list[Placement]:
        """Return where VMs are expected whose host is not known yet."""
        if not self._expected:
            return []
        with self._lock:
            self._expire_expected(now)
            return list(self._expected.values())

    def known(self, uuid: str) -> tuple[newcomer.Profile, limits_module.Limits] | None:
        """Return what a VM was expected to do when it was placed, also after the expiry."""
        return self._known.get(uuid)

    def _expire_placements(self, now: float) -> None:
        # The clock may be set back; what is in the future would be kept until then.
        for uuid in [uuid for uuid, one in self._placements.items()
                     if not abs(now - one.at) <= self._expiry]:
            del self._placements[uuid]

    def _expire_expected(self, now: float) -> None:
        for uuid in [uuid for uuid, one in self._expected.items()
                     if not abs(now - one.at) <= _LONGEST_CLAIM]:
            del self._expected[uuid]


def _numbers(values) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def _array(values: list[float | None]):
    array = np.array([np.nan if value is None else float(value) for value in values])
    if array.shape != (COUNT,) or (array < 0).any() or np.isinf(array).any():
        raise ValueError(f'{values!r} are not {COUNT} characteristics')
    return array
