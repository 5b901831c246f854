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

"""MariaDB and PostgreSQL servers of the tests' own, each in a temporary folder.

A process starts one of each when the first test asks for it, and stops it at its end; should the
process be killed, the kernel ends the server. Nothing of a server that runs otherwise is touched.
"""

import atexit
import functools
import getpass
import glob
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import sqlalchemy as sa

from tests.functional import ports

PASSWORD = 'a5ecret'
USER = 'tracon'
_PATIENCE = 120
_NAMES = itertools.count(1)


class Server:
    """A database server.

    :ivar port: on 127.0.0.1
    :ivar folder: of its data and its log
    """

    name = drop_options = ''
    #: The harshest signal after which it can be started again at once.
    harshest = signal.SIGKILL

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f'tracon-{self.name}-'))
        self.folder.chmod(0o755)
        self.port = ports.free()
        self._process = None

    @property
    def running(self):
        """Whether its process has been started, and not been ended by the tests."""
        return self._process is not None

    def start(self):
        """Make its data, start it, and wait until it answers."""
        self.prepare()
        with open(self.folder / 'log', 'wb') as log:
            self._process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.folder)
        self._wait()
        self.create_user()

    def stop(self, number=signal.SIGKILL):
        """End it at once; what it has in memory is lost, and so is the folder after it."""
        self.kill(number)
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self, number=signal.SIGKILL):
        """End its process, and keep its data."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None

    def restart(self):
        """Start it again with the data that it has."""
        with open(self.folder / 'log', 'ab') as log:
            self._process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.folder)
        self._wait()

    def create(self):
        """Make an empty database, and return its address."""
        name = f'test_{os.getpid()}_{next(_NAMES)}'
        self.execute(f'CREATE DATABASE {name}')
        self.grant(name)
        return f'{self.driver}://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{name}'

    def drop(self, address):
        """Delete a database."""
        self.execute(f'DROP DATABASE {sa.make_url(address).database}{self.drop_options}')

    def execute(self, statement):
        """Run a statement as the administrator."""
        engine = sa.create_engine(self.admin(), poolclass=sa.NullPool,
                                  isolation_level='AUTOCOMMIT')
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)

    def _wait(self):
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return self.execute('SELECT 1')
            except sa.exc.DBAPIError as error:
                ended = self._process.poll()
                if ended is not None or time.monotonic() > until:
                    log = (self.folder / 'log').read_text(errors='replace')[-2000:]
                    raise AssertionError(f'{self.name} does not start ({ended}): {error}\n{log}')
                time.sleep(0.1)


class MariaDB(Server):
    """MariaDB; its databases have the character set that no client asked for: latin1.

    :param authority: :class:`tests.functional.authority.Authority`, whose certificate it has, so
        that it takes nothing but TLS over the network; None: no TLS
    """

    name, driver = 'mariadb', 'mysql+pymysql'
    programs = ('mariadbd', 'mariadb-install-db')

    def __init__(self, authority=None):
        super().__init__()
        #: Whom its processes run as.
        self.user = getpass.getuser()
        self._tls = [] if authority is None else [
            f'--ssl-ca={authority.ca}', f'--ssl-cert={authority.certificate}',
            f'--ssl-key={authority.key}', '--require-secure-transport=ON']

    def prepare(self):
        _run(['mariadb-install-db', '--no-defaults', f'--datadir={self.folder}/data',
              f'--user={self.user}', '--auth-root-authentication-method=normal',
              '--skip-test-db'], self.folder)

    def command(self):
        return _deadly(more=_as_user(self.user)[1:]) + [
            shutil.which('mariadbd'), '--no-defaults', f'--datadir={self.folder}/data',
            f'--user={self.user}', f'--socket={self.folder}/socket',
            f'--pid-file={self.folder}/pid', f'--port={self.port}', '--bind-address=127.0.0.1',
            '--skip-name-resolve', '--skip-log-bin', '--innodb-buffer-pool-size=64M',
            '--innodb-flush-log-at-trx-commit=2', '--character-set-server=latin1', *self._tls]

    def admin(self):
        return f'mysql+pymysql://root@localhost/?unix_socket={self.folder}/socket'

    def create_user(self):
        self.execute(f"CREATE USER {USER}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'")

    def grant(self, database):
        self.execute(f"GRANT ALL ON {database}.* TO {USER}@'127.0.0.1'")


class PostgreSQL(Server):
    """PostgreSQL, which does not run as root: as its own user then."""

    name, driver = 'postgresql', 'postgresql+psycopg2'
    programs = ('postgres', 'initdb')
    # A client that was killed is in there until the server notices.
    drop_options = ' WITH (FORCE)'
    # Its children would outlive SIGKILL for a moment.
    harshest = signal.SIGQUIT

    def prepare(self):
        if os.getuid() == 0:
            shutil.chown(self.folder, 'postgres', 'postgres')
        (self.folder / 'password').write_text(PASSWORD)
        _run(_as_user('postgres') + [
            _postgres('initdb'), '-D', f'{self.folder}/data', '-U', 'postgres', '-E', 'UTF8',
            '--locale=C.UTF-8', '--auth=scram-sha-256', f'--pwfile={self.folder}/password',
            '--no-sync'], self.folder)

    def command(self):
        return _deadly('INT', _as_user('postgres')[1:]) + [
            _postgres('postgres'), '-D', f'{self.folder}/data', '-p', str(self.port),
            '-c', 'listen_addresses=127.0.0.1', '-c', f'unix_socket_directories={self.folder}',
            '-c', 'fsync=off']

    def admin(self):
        return f'postgresql+psycopg2://postgres:{PASSWORD}@127.0.0.1:{self.port}/postgres'

    def create_user(self):
        self.execute(f"CREATE USER {USER} PASSWORD '{PASSWORD}'")

    def grant(self, database):
        self.execute(f'ALTER DATABASE {database} OWNER TO {USER}')

    def stop(self, number=signal.SIGQUIT):
        super().stop(number)


def missing(kind):
    """Return why there can be no server of a kind here; '' when there can."""
    names = [name for name in kind.programs if not (shutil.which(name) or _postgres(name))]
    return f'{kind.name} is not installed: no {", ".join(names)}' if names else ''


@functools.cache
def shared(kind):
    """Return the server of a kind that the tests of this process share.

    :param kind: :class:`MariaDB` or :class:`PostgreSQL`
    :raises unittest.SkipTest: where it is not installed
    """
    if missing(kind):
        raise unittest.SkipTest(missing(kind))
    server = kind()
    atexit.register(_stop, server, os.getpid())
    server.start()
    return server


def _stop(server, process):
    # A fork of the tests' process must not end what its parent uses.
    if os.getpid() == process:
        server.stop()


def _postgres(program):
    """Return Debian's path, which is not among those that programs are looked for in."""
    found = sorted(glob.glob(f'/usr/lib/postgresql/*/bin/{program}'))
    return found[-1] if found else shutil.which(program)


def _as_user(name):
    if os.getuid():
        return ['setpriv']
    return ['setpriv', f'--reuid={name}', f'--regid={name}', '--clear-groups']


def _deadly(name='KILL', more=()):
    """Return what begins a command that ends with the process that began it."""
    return ['setpriv', '--pdeathsig', name, *more]


def _run(command, folder):
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise AssertionError(f'{command[:3]} ended with {done.returncode}: {done.stdout[-2000:]}')
