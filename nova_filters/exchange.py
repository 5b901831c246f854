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

"""Placements told between the workers of nova-scheduler, through small files in a directory.

Each worker appends to a file of its own, one JSON object a line, and reads what is new in the
others'. A file that was not written to for long is removed by the first worker that sees it;
so a worker leaves a file that it has not written to for half of that time, and begins another,
whose name is new. Everything here runs in the background.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import socket
import time
from typing import Any, Callable, NoReturn
import uuid

from nova_filters import background
from nova_filters import faults as faults_module
from nova_filters import pending

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


class Exchange:
    """One worker's part in it.

    :param directory: created when missing
    :param expiry: seconds after which a placement, and thus an idle file, is of no interest
    """

    def __init__(self, directory: str, expiry: float, faults: faults_module.FaultLog) -> None:
        self._directory = pathlib.Path(directory)
        self._expiry = expiry
        self._faults = faults_module.HeldFaults(faults)
        self._own = self._new_name()
        self._begun = False
        self._heard = True
        self._former: set[str] = set()
        self._readings: dict[str, _Reading] = {}

    def publish(self, placements: list[pending.Placement], cancelled: list[str]) -> None:
        """Append placements, and the uuids of those that came to nothing."""
        records: list[dict[str, Any]] = [one.to_record() for one in placements]
        records += [{'cancelled': one} for one in cancelled]
        if records:
            self._natively(self._publish, records)

    def collect(self) -> tuple[list[pending.Placement], list[str]]:
        """Return what the siblings have appended since the last call."""
        found: tuple[list[pending.Placement], list[str]] = self._natively(self._collect)
        return found

    def _natively(self, function: Callable[..., Any], *arguments: Any) -> Any:
        # Machines may share the directory, and its server may not answer.
        try:
            return background.natively(function, *arguments)
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

    def _collect(self) -> tuple[list[pending.Placement], list[str]]:
        placements: list[pending.Placement] = []
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

    def _read(self, name: str, found: os.stat_result, placements: list[pending.Placement],
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

    def _take(self, name: str, whole: bytes, placements: list[pending.Placement],
              cancelled: list[str]) -> None:
        now = time.time()
        for line in whole.splitlines():
            try:
                record = json.loads(line, parse_constant=_refuse)
                if 'cancelled' in record:
                    cancelled.append(str(record['cancelled']))
                    continue
                one = pending.Placement.from_record(record)
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
        return f'{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:12]}{_SUFFIX}'


def _refuse(name: str) -> NoReturn:
    raise ValueError(f'{name} is no number')
