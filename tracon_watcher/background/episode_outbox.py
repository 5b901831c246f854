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

"""Outbox of episodes: tells the engine when the background was throttled, and for which VM."""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from typing import Any, Callable, Mapping

from tracon_watcher.background import regulator
from tracon_watcher import errors
from tracon_watcher.messaging import engine_client
from tracon_watcher.messaging import outbox
from tracon_watcher.messaging import protocol

LOG = logging.getLogger(__name__)
SCHEMA = 'tracon-episode/1'
#: Seconds after its end in which an episode goes on if the resource becomes tight for the same VM
#: again: the engine sees VMs once a minute, and could not tell the two apart.
_JOINED = 60.0
#: Seconds between two calls of the engine at least, and after one that failed.
_INTERVAL, _PAUSE = 10.0, 30.0


class EpisodeOutbox:
    """Tells the engine of episodes, in a thread of its own; what cannot be told waits, or is lost.

    :param transport: of oslo.messaging
    :param host: by which Nova knows this host
    :param clock: seconds since the epoch
    """

    def __init__(self, transport: Any, host: str,
                 clock: Callable[[], float] = time.time) -> None:
        self._client = engine_client.EngineClient(transport)
        self._host, self._clock = host, clock
        self._waiting = outbox.Outbox()
        self._wanted = threading.Event()
        #: By resource, what is told of its episode at the end, and when it was tight last.
        self._open: dict[str, tuple[dict[str, Any], float]] = {}
        self._failed = False

    def start(self) -> None:
        """Begin to tell; returns at once."""
        threading.Thread(target=self._run, name='tracon-episodes', daemon=True).start()

    def take(self, episodes: Mapping[str, regulator.Episode]) -> None:
        """Take what is tight now, by resource, once a second; never blocks."""
        now = self._clock()
        for resource, (document, last) in list(self._open.items()):
            one = episodes.get(resource)
            # A clock that was put back ends episodes, too.
            if not 0 <= now - last <= _JOINED or one is not None and one.vm != document['vm']:
                del self._open[resource]
                self._post({**document, 'ended_at': last})
        for resource, one in episodes.items():
            if resource not in self._open:
                document = {
                    'schema': SCHEMA, 'host': self._host, 'resource': resource, 'vm': one.vm,
                    'began_at': now, 'ended_at': None, 'before': _number(one.before),
                    'least': _number(one.least)}
                self._open[resource] = document, now
                self._post(document)
            document = self._open[resource][0]
            if document['least'] is not None and one.least < document['least']:
                document = {**document, 'least': one.least}
            self._open[resource] = document, now

    def _post(self, document: dict[str, Any]) -> None:
        self._waiting.put(protocol.RECORD_MOVES, document)
        self._wanted.set()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if not self.tell():
                self._wanted.set()
            # Not all hosts come back to an engine at the same time.
            time.sleep((_PAUSE if self._failed else _INTERVAL) * random.uniform(0.8, 1.2))

    def tell(self) -> bool:
        """Tell the engine what waits; return whether nothing waits any more."""
        error: errors.TraconError | None = None
        try:
            # What waits for answers would wait for a broker that is away, for good.
            self._client.hello('')
            for batch in self._waiting.batches():
                try:
                    self._client.tell(batch.method, batch.documents)
                except engine_client.EngineRefused as refusal:
                    # Such as an engine of an earlier release: it would refuse it again.
                    error = refusal
                self._waiting.discard(batch)
        except engine_client.EngineUnavailable as trouble:
            error = trouble
        if error is not None and not self._failed:
            LOG.warning('tracon-engine is not told of throttling, which goes on: %s', error)
        elif error is None and self._failed:
            LOG.info('tracon-engine is told of throttling again; %d messages were dropped',
                     self._waiting.dropped())
        self._failed = error is not None
        return not self._waiting


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
