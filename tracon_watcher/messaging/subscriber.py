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

"""Subscriber to the engine's snapshots, in every process that judges by them."""

from __future__ import annotations

import collections
import logging
import os
import random
import threading
import time
import traceback
from typing import Any, Callable
import weakref

import oslo_messaging

from tracon_watcher import errors
from tracon_watcher.messaging import chunked_payload
from tracon_watcher.messaging import engine_client
from tracon_watcher.messaging import outbox
from tracon_watcher.messaging import protocol
from tracon_watcher.placement import delta
from tracon_watcher.placement import snapshot

_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
#: Seconds, at first and at most, in which announcements are passed over after a snapshot that
#: cannot be read: the next one is hardly any better, and fetched whole again.
_FIRST_DEAF, _LONGEST_DEAF = 30.0, 600.0
#: Seconds in which a thread ends, unless it waits for an answer.
_LONGEST_END = 10.0
_SAID_AGAIN, _COUNTED_AGAIN = 3600.0, 300.0
#: Announcements that wait while another is worked on; one that is lost is made up for.
_ANNOUNCED = 8

LOG = logging.getLogger(__name__)
#: The kind of what keeps snapshots from coming.
_ENGINE = 'engine'

_all: weakref.WeakSet[Subscriber] = weakref.WeakSet()
_inherited: list[Any] = []


class Subscriber:
    """Fetches snapshots in a thread of its own, which starts with :meth:`start`.

    It may be made before a process forks: nothing is shared with the parent but what it is given,
    and in the child it starts again when it is first used there. Under eventlet's monkey patching
    the thread is a green one.

    :param connect: see :func:`tracon_watcher.messaging.protocol.connector`
    :param name: of the listener: the same for all processes of a service on a host, and no other,
        so that the queues on the broker are as many as those
    :param take: called in the thread with each new snapshot
    :param report: called with a text when something keeps snapshots from coming, once and after
        an hour again
    :param mended: called when all is well again
    :param run: calls a function with arguments where computing holds up no other work
    :param period: seconds without news after which the engine is asked
    :param note: called with a text when anything else is wrong, in the same way; None: ``report``
    """

    def __init__(self, connect: protocol.Connect, name: str,
                 take: Callable[[snapshot.Snapshot], None], report: Callable[[str], None],
                 mended: Callable[[], None] = lambda: None,
                 run: Callable[..., Any] = lambda function, *given: function(*given),
                 period: float = 30.0, note: Callable[[str], None] | None = None) -> None:
        self.connect = connect
        self.name = name
        self.take = take
        self.report = report
        self.note = report if note is None else note
        self.mended = mended
        self.run = run
        self.period = period
        self.outbox = outbox.Outbox()
        #: The latest snapshot; None until there is a first.
        self.current: snapshot.Snapshot | None = None
        self._session: _Session | None = None
        self._stopped = False
        self._lock = threading.Lock()
        _all.add(self)

    def start(self) -> None:
        """Have it work in this process. Never blocks, and may be called again and again."""
        if self._session is None:
            with self._lock:
                if self._session is None and not self._stopped:
                    self._session = _Session(self)
                    self._session.start()

    def stop(self) -> None:
        """End the thread, for good."""
        with self._lock:
            self._stopped = True
            session, self._session = self._session, None
        if session is not None:
            session.stop()

    def post(self, method: str, document: Any) -> None:
        """Have a document told to the engine; never blocks."""
        self.outbox.put(method, document)
        self.start()
        session = self._session
        if session is not None:
            session.wanted.set()

    def forked(self) -> None:
        """Start again in a child process."""
        # What the parent's connections are is kept: closing them would end the parent's.
        _inherited.append(self._session)
        self._session = None
        self._lock = threading.Lock()
        self.outbox = outbox.Outbox()


def _after_fork() -> None:
    for one in list(_all):
        one.forked()


os.register_at_fork(after_in_child=_after_fork)


class _Session:
    """The thread of one process, with its connections.

    :param owner: whose it is
    """

    def __init__(self, owner: Subscriber) -> None:
        self.wanted = threading.Event()
        self._owner = owner
        self._announced: collections.deque[
            engine_client.SnapshotHead] = collections.deque(maxlen=_ANNOUNCED)
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name='tracon-subscriber', daemon=True)
        self._transport: Any = None
        self._server: Any = None
        self._link: engine_client.EngineClient | None = None
        self._look_at = 0.0
        self._heard_at = time.monotonic()
        self._failures = 0
        self._refusals = 0
        self._deaf_until = 0.0
        self._said: dict[str, float] = {}
        #: When the engine is told next, and how often it could not take it in succession.
        self._tell_at = 0.0
        self._busy = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self.wanted.set()
        self._end_server()
        self._thread.join(_LONGEST_END)

    def _end_server(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server.wait()

    def announced(self, content: Any) -> None:
        """Take what an engine announces; called in the listener's thread."""
        try:
            self._announced.append(engine_client.announcement(content,
                                                              'an announcement of the engine'))
        except errors.TraconError as error:
            self._say('announcement', str(error))
            self._look_at = 0.0
        self.wanted.set()

    def _work(self) -> None:
        while not self._stopped:
            self.wanted.clear()
            try:
                pause = self._round()
            except errors.InvalidDocument as error:
                pause = self._refused(str(error))
            except errors.TraconError as error:
                pause = self._failed(str(error))
            except Exception as error:
                # A mistake of ours must not end what keeps a scheduler informed.
                place = traceback.extract_tb(error.__traceback__)[-1]
                pause = self._failed(f'unexpected {type(error).__name__}: {error} '
                                     f'({place.filename}:{place.lineno})')
            self._count_dropped()
            self.wanted.wait(pause)
        self._end_server()
        if self._transport is not None:
            self._transport.cleanup()

    def _round(self) -> float:
        now = time.monotonic()
        if now < self._deaf_until:
            self._announced.clear()
            return self._deaf_until - now
        if self._link is None:
            if now < self._look_at:
                return self._look_at - now
            self._connect()
        while self._announced:
            self._catch_up(self._announced.popleft())
        now = time.monotonic()
        if now >= self._look_at:
            self._look()
        self._tell()
        now, due = time.monotonic(), self._look_at
        if self._tell_at > now and self._owner.outbox:
            due = min(due, self._tell_at)
        return max(due - now, 0.0)

    def _connect(self) -> None:
        if self._transport is None:
            self._transport = self._owner.connect()
        found = engine_client.EngineClient(self._transport)
        found.hello(self._owner.name)
        # What is declared next would be tried for good, with an error in the log each time.
        protocol.compare(self._owner.connect, protocol.SNAPSHOTS, self._owner.name)
        self._server = oslo_messaging.get_rpc_server(
            self._transport, protocol.snapshots(self._owner.name), [_Endpoint(self)],
            access_policy=oslo_messaging.ExplicitRPCAccessPolicy)
        self._server.start(override_pool_size=1)
        self._link = found

    def _look(self) -> None:
        """Ask the engine what it has."""
        assert self._link is not None
        head = self._link.head(self._owner.name, self._known())
        if head is None:
            raise engine_client.EngineUnavailable('tracon-engine has no snapshot yet')
        if not self._catch_up(head):
            # Another engine leads, which did not get the question; but is it still there?
            if time.monotonic() - self._heard_at > 3 * self._owner.period:
                raise engine_client.EngineUnavailable(
                    'only an engine of epoch {}, which has lost the lead, answers'.format(
                        head.identity[0]))
            self._look_later()

    def _catch_up(self, head: engine_client.SnapshotHead) -> bool:
        """Get to the snapshot that an engine tells of; return False when that one is outdated."""
        assert self._link is not None
        known = self._known()
        if head.body is None and (known is None or head.identity > known) and (
                not head.deltas or head.deltas[0].base != known):
            # An announcement was lost, or there was none that leads there.
            found = self._link.head(self._owner.name, known, head.server)
            if found is None:
                raise engine_client.EngineUnavailable('tracon-engine has no snapshot')
            head = found
        if known is not None and head.identity < known:
            return False
        if head.identity != known and not (head.deltas and self._by_deltas(head)):
            self._whole(head)
        self._alive()
        return True

    def _by_deltas(self, head: engine_client.SnapshotHead) -> bool:
        """Apply deltas; return whether they have led to what was told."""
        content = self._owner.current
        assert self._link is not None
        for one in head.deltas or ():
            if content is None or one.base != content.identity:
                return False
            data = self._link.delta(head.server, one)
            if data is None:
                return False
            try:
                content = self._owner.run(_applied, content, one.label, data)
            except errors.TraconError as error:
                self._say('delta', f'{error}; the whole snapshot is fetched')
                return False
        if content is None or content.identity != head.identity:
            return False
        self._take(content)
        return True

    def _whole(self, head: engine_client.SnapshotHead) -> None:
        """Fetch the whole snapshot."""
        assert self._link is not None
        for _again in range(3):
            if head.body is None:
                found = self._link.head(self._owner.name, None, head.server)
                if found is None or found.body is None:
                    raise engine_client.EngineUnavailable('tracon-engine has no snapshot')
                head = found
            data = self._link.body(head)
            if data is not None:
                break
            head = engine_client.SnapshotHead(head.identity, head.server, None)
        else:
            raise engine_client.EngineUnavailable(
                'tracon-engine has newer snapshots before one was fetched')
        content = self._owner.run(_whole, head.body, data)
        if content.identity != head.identity:
            raise engine_client.EngineRefused(
                'tracon-engine has sent snapshot {}.{} for {}.{}'.format(
                    *content.identity, *head.identity))
        known = self._known()
        if known is None or content.identity > known:
            self._take(content)

    def _take(self, content: snapshot.Snapshot) -> None:
        self._owner.current = content
        self._owner.take(content)

    def _known(self) -> engine_client.Identity | None:
        content = self._owner.current
        return None if content is None else content.identity

    def _tell(self) -> None:
        """Tell the engine what waits for it, as long as it answers and there are no news."""
        if self._failures or self._link is None or time.monotonic() < self._tell_at:
            return
        box = self._owner.outbox
        for batch in box.batches():
            try:
                self._link.tell(batch.method, batch.documents)
            except engine_client.EngineRefused as error:
                self._say('refused', f'{error}; such records of decisions are dropped')
            except engine_client.EngineBusy as error:
                self._say('busy', f'{error}; records of decisions wait for it')
                self._busy += 1
                self._tell_at = time.monotonic() + _pause(self._busy)
                return
            self._busy = 0
            box.discard(batch)
            if self._announced or time.monotonic() >= self._look_at:
                # Where decisions are made faster than they are told, there would be no end.
                self.wanted.set()
                return

    def _count_dropped(self) -> None:
        now = time.monotonic()
        if now - self._said.get('dropped', -_COUNTED_AGAIN) >= _COUNTED_AGAIN:
            dropped = self._owner.outbox.dropped()
            if dropped:
                self._said['dropped'] = now
                self._tell_owner(self._owner.note, (
                    f'{dropped} records of decisions were dropped, since tracon-engine did not '
                    f'take them in time'))

    def _look_later(self) -> None:
        self._look_at = time.monotonic() + self._owner.period * random.uniform(0.8, 1.2)

    def _alive(self) -> None:
        self._heard_at = time.monotonic()
        self._look_later()
        self._failures = self._refusals = 0
        if self._said.pop(_ENGINE, None) is not None:
            self._owner.mended()

    def _failed(self, text: str) -> float:
        """Take note of a failure; return after how many seconds it is tried again."""
        self._failures += 1
        pause = _pause(self._failures, max(self._owner.period, _SHORTEST_PAUSE))
        self._look_at = time.monotonic() + pause
        self._say(_ENGINE, text)
        return pause

    def _refused(self, text: str) -> float:
        """Take note of a snapshot that cannot be read; return when the next is looked at."""
        pause = self._failed(text)
        if self._refusals:
            # The first may have been damaged on its way.
            pause = min(_FIRST_DEAF * 2.0 ** min(self._refusals - 1, 16), _LONGEST_DEAF)
            self._deaf_until = self._look_at = time.monotonic() + pause
        self._refusals += 1
        return pause

    def _say(self, kind: str, text: str) -> None:
        """Report the first of its kind, and after an hour another one."""
        now = time.monotonic()
        if not self._stopped and now - self._said.get(kind, -_SAID_AGAIN) >= _SAID_AGAIN:
            self._said[kind] = now
            self._tell_owner(self._owner.report if kind == _ENGINE else self._owner.note, text)

    @staticmethod
    def _tell_owner(tell: Callable[[str], None], text: str) -> None:
        try:
            tell(text)
        except Exception:
            # An error in the receiver must not end this thread.
            LOG.exception('This could not be reported: %s', text)


def _pause(failures: int, longest: float = _LONGEST_PAUSE) -> float:
    """Return after how many seconds it is tried again after so many failures in succession."""
    # Of many listeners that have lost the same engine, not all ask at the same time.
    return (min(_SHORTEST_PAUSE * 2.0 ** min(failures - 1, 16), _LONGEST_PAUSE, longest)
            * random.uniform(0.8, 1.2))


def _applied(content: snapshot.Snapshot, label: chunked_payload.PayloadLabel,
             data: bytes) -> snapshot.Snapshot:
    return delta.apply(content, chunked_payload.lines(label, data, 'a delta'), 'a delta')


def _whole(label: chunked_payload.PayloadLabel, data: bytes) -> snapshot.Snapshot:
    return snapshot.decode(chunked_payload.lines(label, data, 'the snapshot'), 'the snapshot')


class _Endpoint:
    """What can be called from elsewhere."""

    target = protocol.endpoint_target()

    def __init__(self, session: _Session) -> None:
        self._session = session

    @oslo_messaging.expose
    def published(self, _context: Any, announcement: Any) -> None:
        """Hear of a snapshot."""
        self._session.announced(announcement)


class Standby:
    """Keeps the latest snapshot of another engine.

    :param connect: see :func:`tracon_watcher.messaging.protocol.connector`
    :param host: of this engine; each engine listens for itself
    """

    def __init__(self, connect: protocol.Connect, host: str) -> None:
        # Without a leader there is nothing to hear, which is for the lease to tell.
        self._subscriber = Subscriber(
            connect, f'tracon-engine-{host}', lambda _content: None,
            lambda text: LOG.debug('While waiting to lead: %s', text))

    def start(self) -> None:
        """Begin to listen; never blocks."""
        self._subscriber.start()

    def stop(self) -> snapshot.Snapshot | None:
        """End, and return what was heard last; None when there was nothing."""
        # It may wait for the answer of an engine that is no more; who leads now does not.
        threading.Thread(target=self._subscriber.stop, name='tracon-standby-end',
                         daemon=True).start()
        return self._subscriber.current
