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

"""A real Gnocchi for benchmarks and tests: MariaDB, its API under uWSGI, everything in one folder.

It listens on the loopback device alone, without Keystone, and what it stored goes with the folder.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Iterator, Mapping
import urllib.request

from tracon_watcher import errors

#: In the environment, then on the host; servers are often outside of the PATH of users.
_PATH = os.pathsep.join([str(pathlib.Path(sys.prefix) / 'bin'), os.environ.get('PATH', ''),
                         '/usr/sbin', '/sbin'])
_PROGRAMS = {'mariadbd': 'the package mariadb-server', 'mariadb-install-db': 'mariadb-server',
             'mariadb': 'the package mariadb-client', 'uwsgi': 'the extra "cloud"',
             'gnocchi-upgrade': 'the extra "cloud"'}
_PATIENCE = 120.0
_CONFIGURATION = '''[DEFAULT]
coordination_url = file://{folder}/coordination
parallel_operations = {parallel_operations}
[api]
auth_mode = basic
[indexer]
url = mysql+pymysql://root@localhost/gnocchi?unix_socket={folder}/socket&charset=utf8
[storage]
driver = file
file_basepath = {folder}/data
[incoming]
driver = file
file_basepath = {folder}/data
'''


class ServerFailed(errors.TraconError):
    """The Gnocchi of a benchmark cannot be started."""


def missing() -> str:
    """Say what is not installed here, or nothing."""
    lacking = [f'{name} ({source})' for name, source in _PROGRAMS.items() if not _find(name)]
    return ', '.join(lacking)


class Server:
    """Gnocchi's API and its database, of one folder.

    :param folder: empty, with a path short enough for a socket's
    :param processes: of the API, with two threads each
    """

    def __init__(self, folder: pathlib.Path, processes: int = 2) -> None:
        self.folder = folder
        self.processes = processes
        self.endpoint = ''
        self._database: subprocess.Popen[bytes] | None = None
        self._api: subprocess.Popen[bytes] | None = None

    @property
    def configuration(self) -> pathlib.Path:
        return self.folder / 'gnocchi.conf'

    def start(self) -> None:
        """Start the database, fill it with Gnocchi's tables, start the API.

        :raises ServerFailed: naming the log
        """
        lacking = missing()
        if lacking:
            raise ServerFailed(f'a real Gnocchi needs {lacking}: install it')
        self._configure(1)
        user = ['--user=root'] if os.geteuid() == 0 else []
        files = f'--datadir={self.folder / "database"}'
        self._run('mariadb-install-db', '--no-defaults', files, '--skip-test-db',
                  '--auth-root-authentication-method=normal', *user)
        self._database = self._spawn(
            'mariadbd', '--no-defaults', files, f'--socket={self.folder / "socket"}',
            '--skip-networking', f'--pid-file={self.folder / "database.pid"}', '--skip-log-bin',
            '--innodb-flush-log-at-trx-commit=0', '--innodb-doublewrite=OFF', *user)
        self._wait(self._database, lambda: (self.folder / 'socket').exists())
        self._run('mariadb', '--no-defaults', '-S', str(self.folder / 'socket'), '-u', 'root',
                  '-e', 'CREATE DATABASE gnocchi CHARACTER SET utf8')
        self._run('gnocchi-upgrade', '--config-file', str(self.configuration))
        self.serve()

    def serve(self, parallel_operations: int = 1) -> None:
        """Start the API, again when it runs.

        :param parallel_operations: Gnocchi's option: threads that read in one request
        """
        self._end(self._api)
        self._configure(parallel_operations)
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            port = probe.getsockname()[1]
        self.endpoint = f'http://127.0.0.1:{port}'
        self._api = self._spawn(
            'uwsgi', '--http-socket', f'127.0.0.1:{port}', '--module',
            'gnocchi.rest.wsgi:application', '--virtualenv', sys.prefix, '--master',
            '--processes', str(self.processes), '--threads', '2', '--enable-threads',
            '--lazy-apps', '--need-app', '--die-on-term', '--buffer-size', '65535',
            '--disable-logging', '--socket-timeout', '120',
            # Without this a client that keeps its connection is told that it was reset.
            '--add-header', 'Connection: close',
            '--pyargv', f'--config-file {self.configuration}')
        self._wait(self._api, self._answers)

    def stop(self) -> None:
        """End all processes."""
        self._end(self._api)
        self._end(self._database)

    def fill(self, *arguments: str) -> None:
        """Run :mod:`tracon_lab.cmd.bench_gnocchi_fill` in a process of its own.

        Gnocchi as a library takes over the logging of its process.
        """
        self._run(sys.executable, '-W', 'ignore', '-m', 'tracon_lab.cmd.bench_gnocchi_fill',
                  str(self.configuration), *arguments)

    def processor_seconds(self) -> Mapping[str, float]:
        """Return what the API and its database have used so far."""
        ticks = os.sysconf('SC_CLK_TCK')
        used = {}
        for name, process in (('api', self._api), ('database', self._database)):
            total = 0
            for pid in _with_children(process.pid if process else 0):
                fields = _stat(pid)
                total += int(fields[11]) + int(fields[12]) if fields else 0
            used[name] = total / ticks
        return used

    def _configure(self, parallel_operations: int) -> None:
        self.configuration.write_text(_CONFIGURATION.format(
            folder=self.folder, parallel_operations=parallel_operations), encoding='utf-8')

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(self.endpoint, timeout=10) as answer:
                return bool(answer.status == 200)
        return False

    def _wait(self, process: subprocess.Popen[bytes], ready: Any) -> None:
        end = time.monotonic() + _PATIENCE
        while not ready():
            if process.poll() is not None or time.monotonic() > end:
                raise ServerFailed(f'a server did not start: see *.log in {self.folder}')
            time.sleep(0.1)

    def _spawn(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with open(self.folder / f'{name}.log', 'ab') as log:
            # A group of its own: Ctrl-C is for the command, which ends its servers in order.
            return subprocess.Popen([_find(name) or name, *arguments], stdout=log, stderr=log,
                                    stdin=subprocess.DEVNULL, start_new_session=True)

    def _run(self, name: str, *arguments: str) -> None:
        log = self.folder / f'{pathlib.Path(name).name}.log'
        with open(log, 'ab') as output:
            code = subprocess.run([_find(name) or name, *arguments], stdout=output, stderr=output,
                                  stdin=subprocess.DEVNULL).returncode
        if code:
            last = log.read_text(errors='replace').strip().splitlines()[-1:]
            raise ServerFailed(f'{name} ended with {code}, see {log}: {" ".join(last)}')

    @staticmethod
    def _end(process: subprocess.Popen[bytes] | None) -> None:
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def running(folder: pathlib.Path, processes: int = 2) -> Iterator[Server]:
    """Have a Gnocchi for a while, which ends when this process is told to."""
    def end(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    server = Server(folder, processes)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        signal.signal(signal.SIGTERM, before)


def _find(name: str) -> str | None:
    return shutil.which(name, path=_PATH)


def _stat(pid: int) -> list[str]:
    """Return the fields of a process after its name; none when it has ended."""
    try:
        return pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    except OSError:
        return []


def _with_children(pid: int) -> Iterator[int]:
    if not pid:
        return
    yield pid
    for task in pathlib.Path(f'/proc/{pid}/task').glob('*/children'):
        with contextlib.suppress(OSError):
            for child in task.read_text().split():
                yield from _with_children(int(child))
