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

"""The latest valid snapshot, from a file or the engine, replaced in the background."""

from __future__ import annotations

import dataclasses
import logging
import os
import threading
import time
from typing import Callable

from nova_filters import log_once
from nova_filters import periodic_worker
from tracon_watcher import errors
from tracon_watcher.messaging import protocol
from tracon_watcher.messaging import subscriber
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import snapshot

_KIND = 'snapshot'


@dataclasses.dataclass(frozen=True)
class AssessmentOptions:
    """What an operator has said of how to judge by snapshots.

    :param maximum_age: None for what the snapshot states
    """

    confidence: float = 0.8
    margin: float = 0.05
    maximum_age: float | None = None


@dataclasses.dataclass(frozen=True)
class PreparedSnapshot:
    """A snapshot, ready for requests."""

    content: snapshot.Snapshot
    assessor: assessment.Assessor

    @property
    def cluster(self) -> cluster_module.ClusterState:
        """The state of the cluster."""
        return self.assessor.cluster


def prepare(content: snapshot.Snapshot, wishes: AssessmentOptions) -> PreparedSnapshot:
    """Prepare all that does not depend on a request."""
    age = content.maximum_age_seconds if wishes.maximum_age is None else wishes.maximum_age
    cluster = content.cluster
    assessor = assessment.Assessor(cluster, content.settings(
        confidence=wishes.confidence, margin=wishes.margin, maximum_age=age))
    # Lazily made indices are made here, not on the first request.
    _ = (cluster.host_index, cluster.resident_index, cluster.request_rate)
    return PreparedSnapshot(content, assessor)


class SnapshotClient:
    """Keeps :attr:`current`; None until a first snapshot was taken.

    :param wishes: how snapshots are to be judged by
    :param ready: called with each prepared snapshot before requests are
    """

    def __init__(self, wishes: AssessmentOptions, faults: log_once.FaultLog, log,
                 ready: Callable[[PreparedSnapshot], None] = lambda prepared: None) -> None:
        self.current: PreparedSnapshot | None = None
        self._wishes = wishes
        self._prepared_for = wishes
        self._faults = faults
        self._log = log
        self._ready = ready
        self._tried = threading.Event()
        self._wait_until: float | None = None
        self._waiting = threading.Lock()
        self._lock = threading.Lock()

    def wait(self, seconds: float) -> None:
        """Wait until there is a first snapshot, or it is known that there is none.

        The first caller waits so many seconds, those that come meanwhile for the rest of these,
        and later ones not at all: while an engine is away, requests are not held up again and
        again.
        """
        if seconds <= 0 or self._tried.is_set():
            return
        now = time.monotonic()
        with self._waiting:
            if self._wait_until is None:
                self._wait_until = now + seconds
        if now < self._wait_until:
            self._tried.wait(self._wait_until - now)

    def tried(self) -> None:
        """End all waiting."""
        self._tried.set()

    def take(self, content: snapshot.Snapshot, source: str, often: bool = False) -> None:
        """Put a snapshot in the place of the current one; called in the background.

        :param source: where it comes from, for the log
        :param often: whether one comes so often that each is no news
        """
        try:
            with self._lock:
                self._prepare(content)
        finally:
            self._tried.set()
        self._log.log(
            logging.DEBUG if often else logging.INFO,
            'Snapshot %s read from %s: %d hosts, %d VMs', named(content), source,
            len(content.cluster.hosts), len(content.cluster.uuids))

    def wish(self, wishes: AssessmentOptions) -> None:
        """Judge differently from now on, as soon as :meth:`renew` was called."""
        self._wishes = wishes

    def renew(self) -> None:
        """Prepare the snapshot again if it shall be judged by differently; in the background."""
        if self._wishes != self._prepared_for:
            with self._lock:
                self._prepared_for = self._wishes
                if self.current is not None:
                    self._prepare(self.current.content)

    def fault(self, text: str) -> None:
        """Say what is wrong with the next snapshot, and what is done until it is mended."""
        kept = ('hosts are chosen without it' if self.current is None else
                f'snapshot {named(self.current.content)} stays in use until its data is stale')
        self._faults.report(_KIND, f'{text}; {kept}')

    def mended(self) -> None:
        """Report it again should it come back."""
        self._faults.mended(_KIND)

    def _prepare(self, content: snapshot.Snapshot) -> None:
        prepared = periodic_worker.natively(self._finished, content)
        self.current = prepared

    def _finished(self, content: snapshot.Snapshot) -> PreparedSnapshot:
        prepared = prepare(content, self._wishes)
        self._ready(prepared)
        return prepared


def named(content: snapshot.Snapshot) -> str:
    """Return what a snapshot is called by."""
    return f'{content.epoch}.{content.version}' if content.epoch else str(content.version)


class FileSource:
    """Reads the file whenever it has changed.

    :param path: the snapshot file
    :param client: takes what is read
    """

    def __init__(self, path: str, client: SnapshotClient) -> None:
        self.name = path
        self._client = client
        self._seen: tuple[int, ...] | None = None

    def refresh(self) -> None:
        """Look at the file; called in the background."""
        try:
            self._refresh()
        finally:
            self._client.tried()

    def post(self, method: str, document: dict) -> None:
        """Do nothing: there is no engine to tell."""

    def close(self) -> None:
        """Do nothing: there is nothing to end."""

    def _refresh(self) -> None:
        try:
            found = periodic_worker.natively(os.stat, self.name)
        except OSError as error:
            self._seen = None
            self._client.fault(f'{self.name}: the file is {error.strerror!r}: cannot be read; '
                               f'write it or set [tracon] snapshot_file')
            return
        # The last for who may read it.
        seen = (found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns)
        if seen == self._seen:
            return
        self._seen = seen       # whatever is wrong, it will be no better until it changes
        try:
            content = periodic_worker.natively(snapshot.read, self.name)
        except errors.TraconError as error:
            self._client.fault(str(error))
            return
        self._client.take(content, self.name)
        self._client.mended()


class EngineSource:
    """Listens to the engine, in a thread of its own that starts with the first :meth:`refresh`.

    :param connect: see :func:`tracon_watcher.messaging.protocol.connector`
    :param listener: the same for all workers on this host, and no other
    :param period: seconds without news after which the engine is asked
    :param client: takes what comes
    :param faults: told of what does not keep snapshots from coming
    """

    name = 'tracon-engine'

    def __init__(self, connect: protocol.Connect, listener: str, period: float,
                 client: SnapshotClient, faults: log_once.FaultLog) -> None:
        self._client = client
        self._epoch: int | None = None
        self._subscriber = subscriber.Subscriber(
            connect, listener, self._take, self._report, client.mended, periodic_worker.natively,
            period, lambda text: faults.report('engine', text))

    def refresh(self) -> None:
        """Begin to listen; called in the background, and more than once."""
        self._subscriber.start()

    def post(self, method: str, document: dict) -> None:
        """Have a document told to the engine; never blocks."""
        self._subscriber.post(method, document)

    def close(self) -> None:
        """End the thread."""
        self._subscriber.stop()

    def _take(self, content: snapshot.Snapshot) -> None:
        self._client.take(content, self.name, content.epoch == self._epoch)
        self._epoch = content.epoch

    def _report(self, text: str) -> None:
        self._client.tried()
        self._client.fault(text)
