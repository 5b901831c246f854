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

"""Serves an application by a fixed number of threads: cheroot, as Ironic does.

uWSGI or Apache cannot serve it, since what is shown lives in the engine's own memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
import logging
import threading
from typing import Any

from cheroot import errors as cheroot_errors
from cheroot.ssl import builtin
from cheroot import wsgi

from tracon_watcher.api import gathering
from tracon_watcher import errors

LOG = logging.getLogger(__name__)

#: A token of Keystone's is a few hundred bytes; what is asked fits into a kilobyte.
_LARGEST_HEADER = 64 * 1024
_LARGEST_BODY = 64 * 1024
#: Connections that may be sending their request at the same time.
_MOST_WAITING = 500


class CannotServe(errors.TraconError):
    """The address is taken, is not this machine's, or the certificate cannot be used."""

    def __init__(self, host: str, port: int, why: object) -> None:
        super().__init__(f'cannot serve on {host}:{port}: {why}; name another address or port')


class Server:
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

    _gathering: gathering.Gathering | None = None

    def begin(self) -> None:
        """Begin to wait for requests."""
        tls = self.ssl_adapter
        self._gathering = gathering.Gathering(
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
