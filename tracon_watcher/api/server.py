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

from cheroot import errors as cheroot_errors
from cheroot.ssl import builtin
from cheroot import wsgi

from tracon_watcher import errors

LOG = logging.getLogger(__name__)

#: A token of Keystone's is a few hundred bytes; what is asked fits into a kilobyte.
_LARGEST_HEADER = 64 * 1024
_LARGEST_BODY = 64 * 1024


class CannotServe(errors.TraconError):
    """The address is taken, is not this machine's, or the certificate cannot be used."""

    def __init__(self, host: str, port: int, why: object) -> None:
        super().__init__(f'cannot serve on {host}:{port}: {why}; name another address or port')


class Server:
    """One application on one address.

    :param port: 0 for any that is free
    :param threads: requests that are answered at the same time
    :param timeout: seconds that a client may be silent
    :param certificate: and ``key``, files, for TLS; None for none
    """

    def __init__(self, application: Callable[..., Iterable[bytes]], host: str, port: int,
                 threads: int = 10, timeout: float = 30.0, certificate: str | None = None,
                 key: str | None = None) -> None:
        self._host, self._port = host, port
        self._server = wsgi.Server(
            (host, port), application, numthreads=threads, server_name='tracon',
            request_queue_size=128, timeout=timeout, shutdown_timeout=5)
        self._server.max_request_header_size = _LARGEST_HEADER
        self._server.max_request_body_size = _LARGEST_BODY
        self._server.version = self._server.software = 'tracon'
        self._server.error_log = _log
        if certificate:
            try:
                self._server.ssl_adapter = builtin.BuiltinSSLAdapter(certificate, key)
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
        self._thread = threading.Thread(target=self._serve, name=f'http-{self.port}', daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that was taken."""
        return int(self._server.bind_addr[1])

    def stop(self) -> None:
        """Answer what has begun, at most for some seconds, and no more."""
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


def _log(message: str = '', level: int = logging.INFO, traceback: bool = False) -> None:
    """Log what cheroot has to say."""
    LOG.log(level, '%s', message.strip(), exc_info=traceback)
