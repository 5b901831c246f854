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

"""Source of the strategy's snapshot: a file or the engine."""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import Any, Callable, Iterable

from oslo_log import log

from tracon_watcher import errors
from tracon_watcher.messaging import protocol
from tracon_watcher.messaging import subscriber
from tracon_watcher.placement import snapshot

LOG = log.getLogger(__name__)
#: Seconds that the first audit after a start waits for a snapshot at most.
PATIENCE = 60.0
_lock = threading.Lock()
_subscriber: subscriber.Subscriber | None = None


class NoSnapshot(errors.TraconError):
    """The engine has told of no snapshot yet."""


def listening(connect: protocol.Connect) -> subscriber.Subscriber:
    """Return this process's subscriber, which goes on from one audit to the next.

    :param connect: what makes a transport, when there is no subscriber yet
    """
    global _subscriber
    with _lock:
        if _subscriber is None:
            # Watcher's decision engine may run once on a host.
            _subscriber = subscriber.Subscriber(
                connect, f'watcher-{socket.gethostname()}', lambda _content: None,
                lambda text: LOG.warning('Snapshots of tracon-engine: %s', text),
                lambda: LOG.info('tracon-engine answers again'))
        _subscriber.start()
        return _subscriber


def latest(source: subscriber.Subscriber, patience: float = PATIENCE,
           sleep: Callable[[float], None] = time.sleep) -> snapshot.Snapshot:
    """Return the latest snapshot, waiting for a first one.

    :raises NoSnapshot: when there is none in time
    """
    waited = 0.0
    while source.current is None and waited < patience:
        sleep(0.2)
        waited += 0.2
    if source.current is None:
        raise NoSnapshot(
            f'tracon-engine has told of no snapshot within {patience:g} s: see that it runs, '
            'leads and uses the same message broker, or set [tracon] snapshot_source = file')
    return source.current


def tell(connect: protocol.Connect, documents: Iterable[dict[str, Any]]) -> None:
    """Have the engine told of moves, and of what is left; returns at once."""
    told = listening(connect)
    for one in documents:
        told.post(protocol.RECORD_MOVES, one)


def read(given: str, configured: Any, connect: protocol.Connect) -> snapshot.Snapshot:
    """Return the snapshot to judge by.

    :param given: a file that the audit names, which comes before all else
    :param configured: the options of group [tracon]
    :raises tracon_watcher.errors.TraconError: when there is none that can be used
    """
    if given or configured.snapshot_source == 'file':
        return snapshot.read(os.fspath(given or configured.snapshot_file))
    return latest(listening(connect))
