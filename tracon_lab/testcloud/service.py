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

"""What a service is: a command, and a way to see that it is up."""

from __future__ import annotations

import dataclasses
import hashlib
import http.client
import pathlib
import shutil
import socket
import sys
from typing import Callable, Mapping

from tracon_lab.testcloud import errors
from tracon_lab.testcloud import settings as settings_module


@dataclasses.dataclass(frozen=True)
class Service:
    """One process, which may have children.

    :param name: of the service, of its log and of its pid file
    :param command: program and arguments
    :param environment: variables beside those of all services
    :param ready: tells whether it is up; one that lives for a moment is, when this is missing
    :param reads: files that it reads at its start; with others it is another service
    :param lasting: whether it stays as it is even if its command would be another one by now
    :param host: the compute host it runs on
    :param patience: seconds it may take to be up
    :param stop_patience: seconds it may take to end
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    ready: Callable[[], bool] | None = None
    reads: tuple[pathlib.Path, ...] = ()
    lasting: bool = False
    host: str | None = None
    patience: float = 90.0
    stop_patience: float = 15.0

    @property
    def mark(self) -> str:
        """What tells this command, with what its files say now, from others."""
        if self.lasting:
            return 'lasting'
        digest = hashlib.sha256(repr((self.command, sorted(self.environment.items()))).encode())
        for path in self.reads:
            digest.update(b'\0' + (path.read_bytes() if path.exists() else b''))
        return digest.hexdigest()[:16]


def program(name: str) -> str:
    """Return the path of a program that comes with the running interpreter's environment.

    :raises CloudError: when it is not installed
    """
    path = pathlib.Path(sys.prefix) / 'bin' / name
    if not path.exists():
        raise errors.CloudError(f'{path} is not installed: pip install "tracon-watcher[cloud]"')
    return str(path)


def system_program(name: str, package: str) -> str:
    """Return the path of a program that comes with a system package.

    :raises CloudError: when it is not installed
    """
    path = shutil.which(name, path='/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin')
    if path is None:
        raise errors.CloudError(f'{name} is not installed: apt install {package}')
    return path


def listens(port: int, address: str = settings_module.ADDRESS) -> Callable[[], bool]:
    """Return what tells whether something accepts connections on a port."""
    def ready() -> bool:
        try:
            with socket.create_connection((address, port), 1.0):
                return True
        except OSError:
            return False
    return ready


def answers(port: int, path: str = '/') -> Callable[[], bool]:
    """Return what tells whether an HTTP service gives an answer that is not a failure."""
    def ready() -> bool:
        connection = http.client.HTTPConnection(settings_module.ADDRESS, port, timeout=30)
        try:
            connection.request('GET', path)
            return connection.getresponse().status < 500
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
    return ready


def accepts(path: pathlib.Path) -> Callable[[], bool]:
    """Return what tells whether something accepts connections on a UNIX socket."""
    def ready() -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(path))
                return True
        except OSError:
            return False
    return ready
