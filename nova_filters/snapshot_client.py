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

"""The last good snapshot, prepared for requests; read and replaced in the background."""

from __future__ import annotations

import os
import threading
from typing import Callable

from nova_filters import background
from nova_filters import faults as faults_module
from tracon_watcher import errors
from tracon_watcher.placement import assessment
from tracon_watcher.placement import snapshot

_KIND = 'snapshot'


def prepare(path: str, confidence: float, margin: float,
            maximum_age: float | None) -> assessment.Assessor:
    """Read a snapshot file and prepare all that does not depend on a request.

    :raises tracon_watcher.errors.InvalidDocument: naming file, line, field and value
    """
    content = snapshot.read(path)
    settings = assessment.Settings(
        confidence, margin,
        content.maximum_age_seconds if maximum_age is None else maximum_age)
    cluster = content.cluster
    assessor = assessment.Assessor(cluster, content.models, settings)
    # Lazily made indices are made here, not on the first request.
    _ = (cluster.host_index, cluster.resident_index, cluster.io_residents)
    return assessor


class SnapshotClient:
    """Keeps :attr:`current`; None until a first snapshot was read.

    :param path: the snapshot file
    :param load: of a path, gives the prepared snapshot
    """

    def __init__(self, path: str, load: Callable[[str], assessment.Assessor],
                 faults: faults_module.FaultLog, log) -> None:
        self.current: assessment.Assessor | None = None
        self._path = path
        self._load = load
        self._faults = faults
        self._log = log
        self._seen: tuple[int, int, int] | None = None
        self._tried = threading.Event()

    def wait(self, seconds: float) -> None:
        """Wait until the file was looked at once."""
        if seconds > 0 and not self._tried.is_set():
            self._tried.wait(seconds)

    def refresh(self) -> None:
        """Read the file if it has changed; keep the last good one if it cannot be used."""
        try:
            self._refresh()
        finally:
            self._tried.set()

    def _refresh(self) -> None:
        try:
            found = os.stat(self._path)
        except OSError as error:
            self._seen = None
            self._report(f'{self._path}: the file is {error.strerror!r}: '
                         f'cannot be read; write it or set [tracon] snapshot_file')
            return
        seen = (found.st_mtime_ns, found.st_size, found.st_ino)
        if seen == self._seen:
            return
        try:
            loaded = background.natively(self._load, self._path)
        except errors.TraconError as error:
            self._seen = seen           # it will be no better until it changes
            self._report(str(error))
            return
        self._seen = seen
        self.current = loaded
        self._faults.mended(_KIND)
        cluster = loaded.cluster
        self._log.info('Snapshot %d read from %s: %d hosts, %d VMs', cluster.version, self._path,
                       len(cluster.hosts), len(cluster.uuids))

    def _report(self, text: str) -> None:
        kept = ('hosts are chosen without it' if self.current is None else
                f'snapshot {self.current.cluster.version} stays in use until its data is stale')
        self._faults.report(_KIND, f'{text}; {kept}')
