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

"""HTTP server with a fixed number of threads; heads of requests are read beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
import logging
import queue
import selectors
import socket
import ssl
import threading
import time
from typing import Any

from cheroot import errors as cheroot_errors
from cheroot import makefile
from cheroot.ssl import builtin
from cheroot import wsgi

from tracon_watcher import errors

LOG = logging.getLogger(__name__)
_END = b'\r\n\r\n'
_CHUNK = 16384
_TOO_LATE, _TOO_LARGE = (
    b'HTTP/1.1 ' + status + b'\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'
    for status in (b'408 Request Timeout', b'413 Request Entity Too Large'))


class PendingConnections:
    """Connections whose request has not arrived yet.

    :param hand_on: called with a connection of cheroot's whose request's head has arrived
    :param seconds: that a client has to send it, a TLS handshake included
    :param largest: bytes of a head; one that has more, and no end yet, is refused
    :param most: connections that are waited for; with one more, the one that has waited longest
        is closed
    :param timeout: seconds, of the sockets that are handed on, and of a whole answer
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
        # In the order of their deadlines; without a head those that were refused.
        self._waiting: dict[Any, tuple[float, bytearray | None]] = {}
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
        for connection, (deadline, head) in list(self._waiting.items()):
            if deadline > now:
                return
            if self._environ is None and head is not None:
                self._say(connection, _TOO_LATE)
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
            # Without this thread no request would be answered any more.
            LOG.exception('A request could not be read; its connection is closed')
            self._give_up(connection)

    def _read(self, connection: Any) -> None:
        """Read what has come; hand the connection on when that is a head."""
        _deadline, head = self._waiting[connection]
        events = selectors.EVENT_READ
        if head is None:
            self._pass_over(connection)
            return
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
            if _END in head:
                self._complete(connection, bytes(head))
            else:
                self._refuse(connection)
            return
        self._selector.modify(connection.socket, events, connection)

    def _complete(self, connection: Any, head: bytes) -> None:
        self._forget(connection)
        connection.socket.settimeout(self._timeout)
        connection.rfile = makefile.MakeFile(_Begun(connection.socket, head), 'rb')
        connection.wfile = makefile.MakeFile(
            _Answering(connection.socket, self._timeout, self._clock), 'wb')
        self._hand_on(connection)

    def _refuse(self, connection: Any) -> None:
        """Refuse a head that is too large; who answers would wait for the rest of it."""
        self._waiting[connection] = (self._waiting[connection][0], None)
        self._selector.modify(connection.socket, selectors.EVENT_READ, connection)
        self._say(connection, _TOO_LARGE)
        try:
            connection.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(connection)

    def _pass_over(self, connection: Any) -> None:
        """Read some of what a client sends that was refused: closed at once, it would not read the
        answer. It is closed when it ends, or is late.
        """
        try:
            if not connection.socket.recv(_CHUNK):
                self._drop(connection)
        except BlockingIOError:
            pass
        except OSError:
            self._drop(connection)

    @staticmethod
    def _say(connection: Any, answer: bytes) -> None:
        try:
            connection.socket.send(answer)
        except OSError:
            LOG.debug('A client cannot be told why it is refused', exc_info=True)

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


class _Answering:
    """A socket that a whole answer has to be sent through in time, for a file made of it.

    A client that reads slowly would otherwise have that time for each part.
    """

    def __init__(self, connected: socket.socket, seconds: float,
                 clock: Callable[[], float]) -> None:
        self._connected = connected
        self._seconds = seconds
        self._clock = clock
        self._deadline: float | None = None

    def send(self, data: Any) -> int:
        """Send as a socket does.

        :raises TimeoutError: when it takes too long since the first time
        """
        if self._deadline is None:
            self._deadline = self._clock() + self._seconds
        left = self._deadline - self._clock()
        try:
            if left > 0:
                self._connected.settimeout(left)
                return self._connected.send(data)
        except TimeoutError:
            pass
        # As cheroot expects it; that of TLS it would log as a mistake.
        raise TimeoutError('timed out')

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connected, name)


#: A token of Keystone's is a few hundred bytes; what is asked fits into a kilobyte.
_LARGEST_HEADER = 64 * 1024
_LARGEST_BODY = 64 * 1024
#: Connections that may be sending their request at the same time.
_MOST_WAITING = 500


class CannotServe(errors.TraconError):
    """The address is taken, is not this machine's, or the certificate cannot be used."""

    def __init__(self, host: str, port: int, why: object) -> None:
        super().__init__(f'cannot serve on {host}:{port}: {why}; name another address or port')


class HTTPServer:
    """One application on one address.

    :param port: 0 for any that is free
    :param threads: requests that are answered at the same time
    :param timeout: seconds that a client has to send its request, and to take the answer
    :param certificate: and ``key``, files, for TLS; None for none
    """

    def __init__(self, application: Callable[..., Iterable[bytes]], host: str, port: int,
                 threads: int = 10, timeout: float = 10.0, certificate: str | None = None,
                 key: str | None = None) -> None:
        self._host, self._port = host, port
        self._server = _Server(
            (host, port), application, numthreads=threads, server_name='tracon',
            request_queue_size=128, timeout=timeout, shutdown_timeout=5)
        # Each connection is for one request: the next would not be waited for by the same means.
        self._server.keep_alive_conn_limit = 0
        self._server.max_request_header_size = _LARGEST_HEADER
        self._server.max_request_body_size = _LARGEST_BODY
        self._server.version = self._server.software = 'tracon'
        self._server.error_log = _log
        if certificate:
            try:
                self._server.ssl_adapter = _Adapter(certificate, key)
            except OSError as error:
                raise CannotServe(host, port, f'{certificate}: {error}') from None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Take the address and begin to answer, in the background.

        :raises CannotServe: when the address cannot be taken
        """
        try:
            self._server.prepare()
        except OSError as error:
            raise CannotServe(self._host, self._port, error) from None
        self._server.begin()
        self._thread = threading.Thread(target=self._serve, name=f'http-{self.port}', daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that was taken."""
        return int(self._server.bind_addr[1])

    def stop(self) -> None:
        """Answer what has begun, at most for some seconds, and no more."""
        self._server.end()
        self._server.stop()
        if self._thread is not None:
            self._thread.join(10)

    def _serve(self) -> None:
        try:
            self._server.serve()
        except (KeyboardInterrupt, SystemExit):
            raise
        except (OSError, cheroot_errors.FatalSSLAlert):
            LOG.exception('The HTTP server on port %s ended', self._port)


class _Server(wsgi.Server):
    """Gives a connection to a thread when its request is there."""

    _gathering: PendingConnections | None = None

    def begin(self) -> None:
        """Begin to wait for requests."""
        tls = self.ssl_adapter
        self._gathering = PendingConnections(
            super().process_conn, self.timeout, _LARGEST_HEADER, _MOST_WAITING, self.timeout,
            None if tls is None else tls.get_environ)
        self._gathering.start()

    def end(self) -> None:
        """Wait for no more."""
        if self._gathering is not None:
            self._gathering.stop()

    def process_conn(self, conn: Any) -> None:
        """Take a new connection."""
        assert self._gathering is not None
        self._gathering.take(conn)


class _Adapter(builtin.BuiltinSSLAdapter):
    """Leaves the handshake to those who wait for the request: here it would hold up all others."""

    def wrap(self, sock: Any) -> tuple[Any, dict[str, Any]]:
        """Return the socket, and nothing about its connection yet."""
        return self.context.wrap_socket(
            sock, server_side=True, do_handshake_on_connect=False), {}


def _log(message: str = '', level: int = logging.INFO, traceback: bool = False) -> None:
    """Log what cheroot has to say."""
    LOG.log(level, '%s', message.strip(), exc_info=traceback)
