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

"""Reads the head of each request before a thread is given to it.

A client may send its request byte by byte, or not at all. One thread waits for all of these, so
that they keep none of those busy that answer.
"""

from __future__ import annotations

import logging
import queue
import selectors
import socket
import ssl
import threading
import time
from typing import Any, Callable

from cheroot import makefile

LOG = logging.getLogger(__name__)
_END = b'\r\n\r\n'
_CHUNK = 16384
_TOO_LATE = (b'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')


class Gathering:
    """Connections whose request has not arrived yet.

    :param hand_on: called with a connection of cheroot's whose request's head has arrived, or is
        too long
    :param seconds: that a client has to send it, a TLS handshake included
    :param largest: bytes of a head; one that has more is handed on, to be refused
    :param most: connections that are waited for; with one more, the one that has waited longest
        is closed
    :param timeout: seconds, of the sockets that are handed on
    :param environ: returns what a request is told of its TLS connection; None: plain connections
    """

    def __init__(self, hand_on: Callable[[Any], None], seconds: float, largest: int, most: int,
                 timeout: float, environ: Callable[[Any], dict[str, Any]] | None = None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._hand_on = hand_on
        self._seconds = seconds
        self._largest = largest
        self._most = most
        self._timeout = timeout
        self._environ = environ
        self._clock = clock
        self._new: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # In the order of their deadlines.
        self._waiting: dict[Any, tuple[float, bytearray]] = {}
        self._selector = selectors.DefaultSelector()
        self._waking, self._woken = socket.socketpair()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name='http-heads', daemon=True)

    def start(self) -> None:
        """Begin."""
        self._woken.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread.start()

    def take(self, connection: Any) -> None:
        """Wait for the request of a new connection."""
        self._new.put(connection)
        self._wake()

    def stop(self) -> None:
        """End, and close what is waited for."""
        self._stopped = True
        self._wake()
        self._thread.join(10)

    def _wake(self) -> None:
        try:
            self._waking.send(b'.')
        except OSError:
            # It is about to wake anyway, or has ended.
            return

    def _run(self) -> None:
        while not self._stopped:
            for key, _events in self._selector.select(self._pause()):
                if key.fileobj is self._woken:
                    self._woken.recv(_CHUNK)
                elif key.data in self._waiting:
                    self._advance(key.data, self._read)
            self._begin()
            self._end_late()
        for connection in list(self._waiting):
            self._drop(connection)
        self._begin()
        for connection in list(self._waiting):
            self._drop(connection)
        self._selector.close()
        self._waking.close()
        self._woken.close()

    def _pause(self) -> float | None:
        for deadline, _head in self._waiting.values():
            return max(deadline - self._clock(), 0.0)
        return None

    def _begin(self) -> None:
        while not self._new.empty():
            connection = self._new.get()
            if len(self._waiting) >= self._most:
                self._drop(next(iter(self._waiting)))
            self._advance(connection, self._take)

    def _end_late(self) -> None:
        now = self._clock()
        for connection, (deadline, _head) in list(self._waiting.items()):
            if deadline > now:
                return
            if self._environ is None:
                try:
                    connection.socket.send(_TOO_LATE)
                except OSError:
                    pass
            self._drop(connection)

    def _take(self, connection: Any) -> None:
        connection.socket.setblocking(False)
        self._selector.register(connection.socket, selectors.EVENT_READ, connection)
        self._waiting[connection] = (self._clock() + self._seconds, bytearray())
        self._read(connection)

    def _advance(self, connection: Any, work: Callable[[Any], None]) -> None:
        try:
            work(connection)
        except Exception:
            # Without this thread nobody would be answered any more.
            LOG.exception('A request could not be read; its connection is closed')
            self._give_up(connection)

    def _read(self, connection: Any) -> None:
        """Read what has come; hand the connection on when that is a head."""
        _deadline, head = self._waiting[connection]
        events = selectors.EVENT_READ
        try:
            if self._environ is not None and not connection.ssl_env:
                connection.socket.do_handshake()
                connection.ssl_env = self._environ(connection.socket)
            while len(head) <= self._largest and _END not in head:
                more = connection.socket.recv(_CHUNK)
                if not more:
                    self._drop(connection)
                    return
                head += more
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except ssl.SSLWantWriteError:
            events = selectors.EVENT_WRITE
        except OSError:
            self._drop(connection)
            return
        else:
            self._forget(connection)
            connection.socket.settimeout(self._timeout)
            connection.rfile = makefile.MakeFile(_Begun(connection.socket, bytes(head)), 'rb')
            self._hand_on(connection)
            return
        self._selector.modify(connection.socket, events, connection)

    def _give_up(self, connection: Any) -> None:
        """Close a connection, however far it has come."""
        try:
            if connection in self._waiting:
                self._forget(connection)
        except (KeyError, ValueError):
            # Its socket is closed, which the selector has noticed.
            LOG.debug('A connection was not waited for any more', exc_info=True)
        try:
            connection.close()
        except OSError:
            LOG.debug('A connection was closed already', exc_info=True)

    def _forget(self, connection: Any) -> None:
        del self._waiting[connection]
        self._selector.unregister(connection.socket)

    def _drop(self, connection: Any) -> None:
        self._forget(connection)
        connection.close()


class _Begun:
    """A socket of which some bytes have been read, for a file made of it."""

    def __init__(self, connected: socket.socket, begun: bytes) -> None:
        self._connected = connected
        self._begun = begun

    def recv_into(self, buffer: Any) -> int:
        """Fill a buffer as a socket does."""
        if not self._begun:
            return self._connected.recv_into(buffer)
        count = min(len(buffer), len(self._begun))
        buffer[:count] = self._begun[:count]
        self._begun = self._begun[count:]
        return count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connected, name)
