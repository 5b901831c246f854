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

"""The last good snapshot, prepared for requests; replaced in the background.

Where it comes from is another matter: :mod:`nova_filters.file_source` and
:mod:`nova_filters.engine_source`.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from typing import Callable

from nova_filters import background
from nova_filters import faults as faults_module
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import snapshot

_KIND = 'snapshot'


@dataclasses.dataclass(frozen=True)
class Wishes:
    """What an operator has said of how to judge by snapshots.

    :param maximum_age: None for what the snapshot states
    """

    confidence: float = 0.8
    margin: float = 0.05
    maximum_age: float | None = None


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A snapshot, ready for requests."""

    content: snapshot.Snapshot
    assessor: assessment.Assessor

    @property
    def cluster(self) -> cluster_module.ClusterState:
        """The state of the cluster."""
        return self.assessor.cluster


def prepare(content: snapshot.Snapshot, wishes: Wishes) -> Prepared:
    """Prepare all that does not depend on a request."""
    age = content.maximum_age_seconds if wishes.maximum_age is None else wishes.maximum_age
    cluster = content.cluster
    assessor = assessment.Assessor(cluster, content.settings(
        confidence=wishes.confidence, margin=wishes.margin, maximum_age=age))
    # Lazily made indices are made here, not on the first request.
    _ = (cluster.host_index, cluster.resident_index, cluster.request_rate)
    return Prepared(content, assessor)


class SnapshotClient:
    """Keeps :attr:`current`; None until a first snapshot was taken.

    :param wishes: how snapshots are to be judged by
    :param ready: called with each prepared snapshot before requests are
    """

    def __init__(self, wishes: Wishes, faults: faults_module.FaultLog, log,
                 ready: Callable[[Prepared], None] = lambda prepared: None) -> None:
        self.current: Prepared | None = None
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

    def wish(self, wishes: Wishes) -> None:
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
        prepared = background.natively(self._finished, content)
        self.current = prepared

    def _finished(self, content: snapshot.Snapshot) -> Prepared:
        prepared = prepare(content, self._wishes)
        self._ready(prepared)
        return prepared


def named(content: snapshot.Snapshot) -> str:
    """Return what a snapshot is called by."""
    return f'{content.epoch}.{content.version}' if content.epoch else str(content.version)
