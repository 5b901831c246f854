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
others'. Everything here runs in the background.
"""

from __future__ import annotations

import json
import os
import pathlib
import socket
import time
from typing import Any
import uuid

from nova_filters import faults as faults_module
from nova_filters import pending

_SUFFIX = '.placements'
_LARGEST = 1 << 20
_KIND = 'exchange'


class Exchange:
    """One worker's part in it.

    :param directory: created when missing
    :param expiry: seconds after which a placement, and thus an idle file, is of no interest
    """

    def __init__(self, directory: str, expiry: float, faults: faults_module.FaultLog) -> None:
        self._directory = pathlib.Path(directory)
        self._expiry = expiry
        self._faults = faults
        self._own = self._new_name()
        self._offsets: dict[str, int] = {}

    def publish(self, placements: list[pending.Placement], cancelled: list[str]) -> None:
        """Append placements, and the uuids of those that came to nothing."""
        records: list[dict[str, Any]] = [one.to_record() for one in placements]
        records += [{'cancelled': one} for one in cancelled]
        if not records:
            return
        text = ''.join(json.dumps(record) + '\n' for record in records).encode()
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            target = self._directory / self._own
            # One write of whole lines to a file opened for appending: readers stop at the last
            # line feed, so they never see half of one.
            handle = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, text)
                size = os.fstat(handle).st_size
                if size > _LARGEST:
                    self._offsets[self._own] = size
                    self._own = self._new_name()
            finally:
                os.close(handle)
        except OSError as error:
            self._report(error)

    def collect(self) -> tuple[list[pending.Placement], list[str]]:
        """Return what the siblings have appended since the last call."""
        placements: list[pending.Placement] = []
        cancelled: list[str] = []
        try:
            with os.scandir(self._directory) as entries:
                files = [(entry.name, entry.stat()) for entry in entries
                         if entry.name.endswith(_SUFFIX)]
            for name, found in files:
                if time.time() - found.st_mtime > 2 * self._expiry:
                    self._offsets.pop(name, None)
                    (self._directory / name).unlink(missing_ok=True)
                elif name != self._own and found.st_size > self._offsets.get(name, 0):
                    self._read(name, placements, cancelled)
            self._faults.mended(_KIND)
        except FileNotFoundError:
            pass
        except OSError as error:
            self._report(error)
        return placements, cancelled

    def _read(self, name: str, placements: list[pending.Placement],
              cancelled: list[str]) -> None:
        with open(self._directory / name, 'rb') as stream:
            stream.seek(self._offsets.get(name, 0))
            data = stream.read()
        whole = data[:data.rfind(b'\n') + 1]
        self._offsets[name] = self._offsets.get(name, 0) + len(whole)
        now = time.time()
        for line in whole.splitlines():
            try:
                record = json.loads(line)
                if 'cancelled' in record:
                    cancelled.append(str(record['cancelled']))
                    continue
                one = pending.Placement.from_record(record)
            except (ValueError, KeyError, TypeError) as error:
                self._faults.report('exchange line', (
                    f'{self._directory / name}: a line is {line[:60]!r}: not a placement '
                    f'({error}); it is passed over'))
                continue
            if now - one.at <= self._expiry:
                placements.append(one)

    def _report(self, error: OSError) -> None:
        self._faults.report(_KIND, (
            f'[tracon] pending_directory={str(self._directory)!r}: {error.strerror}; the workers '
            f'of nova-scheduler cannot tell each other of placements: make it writable'))

    @staticmethod
    def _new_name() -> str:
        return f'{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:12]}{_SUFFIX}'
