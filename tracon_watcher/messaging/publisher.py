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

"""The engine's side: announces snapshots, hands them out in pieces, takes decisions."""

from __future__ import annotations

import collections
import logging
import threading
import time
from typing import Any, Callable

import oslo_messaging

from tracon_watcher import errors
from tracon_watcher.messaging import engine_client
from tracon_watcher.messaging import protocol
from tracon_watcher.messaging import snapshot_history
from tracon_watcher.placement import snapshot

_RETRIES = 1
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
#: Seconds after which a listener that was not heard of any more is gone.
_LISTENER_GONE = 3600.0
_MOST_LISTENERS = 10000

Take = Callable[[list[dict[str, Any]]], None]
Give = Callable[[], dict[str, Any]]


def _unheard(_documents: list[dict[str, Any]]) -> None:
    """Drop what is not wanted."""


def _nothing_learnt() -> dict[str, Any]:
    return {'suspended': {}, 'cooldowns': {}}


class Publisher:
    """Serves one snapshot after the other to all who listen.

    Only the engine that leads may have one started.

    :param connect: see :func:`tracon_watcher.messaging.protocol.connector`
    :param server: this engine's name; no two engines may have the same
    :param on_decisions: given documents of decisions, in a thread of their own
    :param on_settled: given documents that say which host was chosen
    :param log: logger
    :param threads: requests that are served at a time
    :param on_moves: given documents of live migrations that Watcher's strategy recommends
    :param standing: returns what was learnt of moves, see
        :meth:`.engine_client.EngineClient.standing`
    """

    def __init__(self, connect: protocol.Connect, server: str, on_decisions: Take,
                 on_settled: Take, log: Any, threads: int = 8, on_moves: Take = _unheard,
                 standing: Give = _nothing_learnt) -> None:
        self._connect = connect
        self._server_name = server
        self._log = log
        self._threads = threads
        self._shelf = snapshot_history.SnapshotHistory()
        self._endpoint = _Endpoint(self._shelf, server, on_decisions, on_settled, on_moves,
                                   standing)
        self._publishing = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._transport: Any = None
        self._unannounced = 0
        self._reachable = True

    def start(self) -> None:
        """Begin to answer, as soon as the broker can be reached; returns at once.

        :raises tracon_watcher.errors.InvalidOption: when the transport's URL is none
        """
        self._thread = threading.Thread(target=self._serve, args=(self._connect(),),
                                        name='tracon-publisher', daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Answer no longer."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(10)

    def adopt(self, content: snapshot.Snapshot) -> None:
        """Begin from a snapshot that another engine has published.

        Who has it too then needs a delta only, though another engine leads.
        """
        self._shelf.put(content)

    def publish(self, content: snapshot.Snapshot) -> None:
        """Make a snapshot the present one, and announce it.

        While the broker cannot be reached it is not announced; those who listen ask by themselves
        after a time.

        :raises tracon_watcher.errors.InvalidOption: unless it is newer than the one before
        """
        with self._publishing:
            current = self._shelf.current
            if current is not None and content.identity <= current.identity:
                raise errors.InvalidOption(
                    'snapshot', '{}.{}'.format(*content.identity),
                    'expected one newer than {}.{}'.format(*current.identity))
            made = self._shelf.put(content)
            self._announce(_announcement(
                self._server_name, content.identity,
                None if made is None or current is None else [(current.identity, made)]))

    def statistics(self) -> dict[str, int]:
        """Return numbers for those who watch the engine."""
        return {**self._endpoint.counts, 'unannounced': self._unannounced,
                'listeners': len(self._endpoint.listeners())}

    def _announce(self, content: dict[str, Any]) -> None:
        transport = self._transport
        if transport is None:
            self._unannounced += 1
            return
        client = oslo_messaging.get_rpc_client(transport, protocol.snapshots())
        try:
            client.prepare(retry=_RETRIES).cast({}, 'published', announcement=content)
            self._reachable = True
        except Exception as error:
            # Each driver lets errors of its own library through.
            self._unannounced += 1
            said, self._reachable = not self._reachable, False
            self._log.log(logging.DEBUG if said else logging.WARNING,
                          'Snapshot %d.%d could not be announced (%s: %s); it is found by '
                          'those who ask', content['epoch'], content['version'],
                          type(error).__name__, error)

    def _serve(self, transport: Any) -> None:
        if not self._reached(transport):
            return
        server = oslo_messaging.get_rpc_server(
            transport, protocol.engine(self._server_name), [self._endpoint],
            access_policy=oslo_messaging.ExplicitRPCAccessPolicy)
        server.start(override_pool_size=self._threads)
        self._transport = transport
        content = self._shelf.current
        if content is not None:
            self._announce(_announcement(self._server_name, content.identity, None))
        self._stopped.wait()
        self._transport = None
        server.stop()
        server.wait()
        transport.cleanup()

    def _reached(self, transport: Any) -> bool:
        """Wait for the broker; whatever listens would wait for it for good, and say so often."""
        pause = _FIRST_PAUSE
        while not self._stopped.is_set():
            try:
                engine_client.EngineClient(transport).hello('')
                # What is declared after that would be tried for good, with an error each time.
                protocol.compare(self._connect, protocol.ENGINE, self._server_name)
                return True
            except errors.TraconError as error:
                if pause == _FIRST_PAUSE:
                    self._log.warning('%s; it is tried again and again', error)
                self._stopped.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        return False


def _announcement(server: str, identity: engine_client.Identity,
                  steps: snapshot_history.Steps | None) -> dict[str, Any]:
    """Return what is said of a snapshot, with the deltas that lead there.

    A delta comes along where there is one only, and it fits into the message.
    """
    content: dict[str, Any] = {'epoch': identity[0], 'version': identity[1], 'server': server,
                               'deltas': None, 'body': None}
    if steps is None:
        return content
    content['deltas'] = [{'base': {'epoch': base[0], 'version': base[1]},
                          'label': made.label.to_document()} for base, made in steps]
    if len(steps) == 1 and steps[0][1].label.chunks == 1:
        content['deltas'][0]['data'] = steps[0][1].chunk(0)
    return content


class _Endpoint:
    """What can be called from elsewhere; its public methods are the interface."""

    target = protocol.endpoint_target()

    def __init__(self, content: snapshot_history.SnapshotHistory, server: str, on_decisions: Take,
                 on_settled: Take,
                 on_moves: Take, standing: Give) -> None:
        self._shelf = content
        self._server = server
        self._on_decisions = on_decisions
        self._on_settled = on_settled
        self._on_moves = on_moves
        self._standing = standing
        self._heard: dict[str, float] = {}
        self._lock = threading.Lock()
        self._counts: collections.Counter[str] = collections.Counter()

    @property
    def counts(self) -> dict[str, int]:
        """How often each thing was asked."""
        with self._lock:
            return {name: self._counts[name]
                    for name in ('head', 'chunk', 'delta', 'decisions', 'settled', 'moves')}

    def listeners(self) -> list[str]:
        """Return the names of those who were heard of in the last hour."""
        oldest = time.monotonic() - _LISTENER_GONE
        with self._lock:
            self._heard = {name: at for name, at in self._heard.items() if at > oldest}
            return sorted(self._heard)

    @oslo_messaging.expose
    def hello(self, _context: Any, name: Any) -> None:
        """Take note of a listener."""
        with self._lock:
            if name and len(self._heard) < _MOST_LISTENERS:
                self._heard[str(name)[:255]] = time.monotonic()

    @oslo_messaging.expose
    def head(self, _context: Any, epoch: Any = None, version: Any = None,
             name: Any = None) -> Any:
        """Say what there is, and how to get there from the snapshot that is known."""
        self._count('head')
        self.hello(None, name)
        if self._shelf.current is None:
            return None
        if epoch is not None and version is not None:
            here, steps = self._shelf.way((epoch, version))
            if steps is not None:
                return _announcement(self._server, here, steps)
        here, body = self._shelf.body()
        return {**_announcement(self._server, here, None), 'body': body.label.to_document()}

    @oslo_messaging.expose
    def chunk(self, _context: Any, epoch: Any, version: Any, index: Any) -> str | None:
        """Return a piece of a whole snapshot; None when it is not here any more."""
        self._count('chunk')
        found = self._shelf.kept((epoch, version))
        return None if found is None else found.chunk(index)

    @oslo_messaging.expose
    def delta(self, _context: Any, epoch: Any, version: Any, index: Any) -> str | None:
        """Return a piece of the delta from a snapshot to the next; None when it is not here."""
        self._count('delta')
        found = self._shelf.delta((epoch, version))
        return None if found is None else found.chunk(index)

    @oslo_messaging.expose
    @oslo_messaging.expected_exceptions(errors.TraconError)
    def record_decisions(self, _context: Any, documents: Any) -> None:
        """Take documents of decisions."""
        self._on_decisions(_documents(documents))
        self._count('decisions', len(documents))

    @oslo_messaging.expose
    @oslo_messaging.expected_exceptions(errors.TraconError)
    def settled(self, _context: Any, documents: Any) -> None:
        """Take documents that say which host was chosen."""
        self._on_settled(_documents(documents))
        self._count('settled', len(documents))

    @oslo_messaging.expose
    @oslo_messaging.expected_exceptions(errors.TraconError)
    def record_moves(self, _context: Any, documents: Any) -> None:
        """Take documents of what an audit recommends and leaves, and of episodes."""
        self._on_moves(_documents(documents))
        self._count('moves', len(documents))

    @oslo_messaging.expose
    @oslo_messaging.expected_exceptions(errors.TraconError)
    def standing(self, _context: Any) -> dict[str, Any]:
        """Say which kinds of moves are suspended, and which VMs stay for a while."""
        return self._standing()

    def _count(self, name: str, number: int = 1) -> None:
        with self._lock:
            self._counts[name] += number


def _documents(given: Any) -> list[dict[str, Any]]:
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise errors.InvalidOption('documents', str(given)[:80], 'expected a list of objects')
    return given
