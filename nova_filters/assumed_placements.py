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

"""Assumed placements: chosen, and not yet shown by Nova or the snapshot."""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import pathlib
import socket
import threading
import time
from typing import Any, Callable, Iterable, NoReturn
import uuid as uuid_module

import numpy as np

from nova_filters import log_once
from nova_filters import periodic_worker
from tracon_watcher.characteristics import COUNT
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer_profiles

_SUFFIX = '.placements'
_LARGEST = 1 << 20
#: Bytes of a file that are read in one go.
_AT_ONCE = 4 << 20
#: Bytes by which a file is known to be still the one that was read before: more than a line has.
_TAIL = 512
_KIND, _LINE = 'exchange', 'exchange line'


@dataclasses.dataclass
class _Reading:
    """How far a sibling's file was read.

    :param inode: of the file
    :param offset: where the next line begins
    :param tail: the last bytes before that
    :param stamp: size and time of the file when it had been read to its end; None: it was not
    """

    inode: int
    offset: int = 0
    tail: bytes = b''
    stamp: tuple[int, int] | None = None


class PlacementExchange:
    """One worker's part in it.

    :param directory: created when missing
    :param expiry: seconds after which a placement, and thus an idle file, is of no interest
    """

    def __init__(self, directory: str, expiry: float, faults: log_once.FaultLog) -> None:
        self._directory = pathlib.Path(directory)
        self._expiry = expiry
        self._faults = log_once.PostponedFaults(faults)
        self._own = self._new_name()
        self._begun = False
        self._heard = True
        self._former: set[str] = set()
        self._readings: dict[str, _Reading] = {}

    def publish(self, placements: list[Placement], cancelled: list[str]) -> None:
        """Append placements, and the uuids of those that came to nothing."""
        records: list[dict[str, Any]] = [one.to_record() for one in placements]
        records += [{'cancelled': one} for one in cancelled]
        if records:
            self._natively(self._publish, records)

    def collect(self) -> tuple[list[Placement], list[str]]:
        """Return what the siblings have appended since the last call."""
        found: tuple[list[Placement], list[str]] = self._natively(self._collect)
        return found

    def _natively(self, function: Callable[..., Any], *arguments: Any) -> Any:
        # Machines may share the directory, and its server may not answer.
        try:
            return periodic_worker.natively(function, *arguments)
        finally:
            self._faults.pass_on()

    def _publish(self, records: list[dict[str, Any]]) -> None:
        text = ''.join(json.dumps(record) + '\n' for record in records).encode()
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # The own file may have been removed, or be about to be: then another takes its place.
            self._heard = self._append(text) or self._append(text)
        except OSError as error:
            self._heard = False
            self._report(error)

    def _collect(self) -> tuple[list[Placement], list[str]]:
        placements: list[Placement] = []
        cancelled: list[str] = []
        try:
            with os.scandir(self._directory) as entries:
                # Of what is no plain file, such as a pipe, opening might not end.
                files = {entry.name: entry.stat(follow_symlinks=False) for entry in entries
                         if entry.name.endswith(_SUFFIX) and entry.is_file(follow_symlinks=False)}
        except FileNotFoundError:
            files = {}
        except OSError as error:
            self._report(error)
            return placements, cancelled
        self._former &= files.keys()
        self._readings = {name: one for name, one in self._readings.items() if name in files}
        failed = False
        for name, found in files.items():
            try:
                if time.time() - found.st_mtime > 2 * self._expiry:
                    (self._directory / name).unlink()
                elif name != self._own and name not in self._former:
                    self._read(name, found, placements, cancelled)
            except FileNotFoundError:
                pass    # a sibling was faster
            except OSError as error:
                failed = True
                self._report(error)
        # It is mended when others are heard and the own placements were written, not before.
        if self._heard and not failed:
            self._faults.mended(_KIND)
        return placements, cancelled

    def _append(self, text: bytes) -> bool:
        """Append whole lines; return whether to a file that the siblings will read.

        :raises OSError: when they cannot be written
        """
        how = os.O_WRONLY | os.O_APPEND | (0 if self._begun else os.O_CREAT | os.O_EXCL)
        try:
            handle = os.open(self._directory / self._own, how, 0o600)
        except FileNotFoundError:
            if not self._begun:
                raise
            self._leave()
            return False
        try:
            if self._begun and time.time() - os.fstat(handle).st_mtime > self._expiry:
                self._leave()
                return False
            self._begun = True
            # Whole lines in one write, as a rule: readers stop at the last line feed, so they
            # never see half of one.
            while text:
                text = text[os.write(handle, text):]
            found = os.fstat(handle)
        except OSError:
            # What was written of a line is not gone on with.
            self._leave()
            raise
        finally:
            os.close(handle)
        if not found.st_nlink or found.st_size > _LARGEST:
            self._leave()
        return found.st_nlink > 0

    def _leave(self) -> None:
        """Begin another file with the next placement."""
        self._former.add(self._own)
        self._own = self._new_name()
        self._begun = False

    def _read(self, name: str, found: os.stat_result, placements: list[Placement],
              cancelled: list[str]) -> None:
        seen = self._readings.get(name)
        if seen is None or seen.inode != found.st_ino:
            seen = _Reading(found.st_ino)
        stamp = found.st_size, found.st_mtime_ns
        if seen.stamp == stamp:
            return
        with open(self._directory / name, 'rb') as stream:
            stream.seek(seen.offset - len(seen.tail))
            before, data = stream.read(len(seen.tail)), stream.read(_AT_ONCE)
            if before != seen.tail:
                # It was cut, and maybe written again: nothing of it is known.
                stream.seek(0)
                seen, data = _Reading(found.st_ino), stream.read(_AT_ONCE)
        whole = data[:data.rfind(b'\n') + 1]
        all_read = len(data) < _AT_ONCE
        if not whole and not all_read:
            whole = data        # no line of ours is as long
        seen.offset += len(whole)
        seen.tail = (seen.tail + whole)[-_TAIL:]
        seen.stamp = stamp if all_read else None
        self._readings[name] = seen
        self._take(name, whole, placements, cancelled)

    def _take(self, name: str, whole: bytes, placements: list[Placement],
              cancelled: list[str]) -> None:
        now = time.time()
        for line in whole.splitlines():
            try:
                record = json.loads(line, parse_constant=_refuse)
                if 'cancelled' in record:
                    cancelled.append(str(record['cancelled']))
                    continue
                one = Placement.from_record(record)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                self._faults.report(_LINE, (
                    f'{self._directory / name}: a line is {line[:60]!r}: not a placement '
                    f'({error}); such lines are passed over'), key=name)
                continue
            if abs(now - one.at) <= self._expiry:
                placements.append(one)

    def _report(self, error: OSError) -> None:
        self._faults.report(_KIND, (
            f'[tracon] pending_directory={str(self._directory)!r}: {error.strerror}; the workers '
            f'of nova-scheduler cannot tell each other of placements: make it readable and '
            f'writable'))

    @staticmethod
    def _new_name() -> str:
        return f'{socket.gethostname()}-{os.getpid()}-{uuid_module.uuid4().hex[:12]}{_SUFFIX}'


def _refuse(name: str) -> NoReturn:
    raise ValueError(f'{name} is no number')


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
    profile: newcomer_profiles.Profile
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
                'min_iops_ratio': self.limits.min_iops_ratio,
                'background': self.limits.background, 'at': self.at}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Placement:
        """Read what :meth:`to_record` gave.

        :raises KeyError: ``ValueError`` or ``TypeError``, when it is not that
        """
        slowdown = record['max_slowdown']
        profile = newcomer_profiles.Profile(_array(record['mean']), _array(record['deviation']),
                                            int(record['count']), str(record['source']),
                                            bool(record.get('apart', False)),
                                            float(record.get('own_wait', 0.0)),
                                            int(record.get('vcpus', 1)),
                                            np.nan if record.get('storage_wait') is None
                                            else float(record['storage_wait']),
                                            float(record.get('cpu_weight', 1.0)))
        return cls(str(record['uuid']), str(record['host']), str(record['node']), profile,
                   limits_module.Limits(np.inf if slowdown is None else float(slowdown),
                                        float(record['min_iops_ratio']),
                                        bool(record.get('background', False))),
                   float(record['at']))


class AssumedPlacements:
    """All such placements of this worker and, as they are heard of, of its siblings.

    :param expiry: seconds for which a placement is remembered
    """

    def __init__(self, expiry: float) -> None:
        self._expiry = expiry
        self._placements: dict[str, Placement] = {}
        self._expected: dict[str, Placement] = {}
        self._known: collections.OrderedDict[
            str,
            tuple[newcomer_profiles.Profile, limits_module.Limits]] = collections.OrderedDict()
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

    def known(self, uuid: str) -> tuple[newcomer_profiles.Profile, limits_module.Limits] | None:
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
