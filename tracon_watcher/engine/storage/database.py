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

"""Database: its address, and transactions that are retried where that helps."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Callable, Iterator, TypeVar
import weakref

from oslo_db import api
from oslo_db import exception as db_errors
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy import exc

from tracon_watcher.engine.storage import errors as storage_errors
from tracon_watcher import errors
from tracon_watcher import errors as shared

#: Seconds in which a database must answer at all, and must have answered a statement. Without
#: them an engine would wait for a database that is gone for as long as TCP does.
_CONNECT, _STATEMENT = 10, 60
#: Seconds after which the database takes back a transaction whose engine was stopped in the middle
#: of it. Until then the lease stays locked, and no engine can take over.
_IDLE = 15
_EXPECTED = ('expected sqlite:////PATH, mysql+pymysql://USER:PASSWORD@HOST/NAME or '
             'postgresql+psycopg2://USER:PASSWORD@HOST/NAME')
_DRIVERS = {
    'mysql+pymysql': {
        'charset': 'utf8mb4', 'connect_timeout': _CONNECT, 'read_timeout': _STATEMENT,
        'write_timeout': _STATEMENT,
        # What stands in the comment MariaDB reads, and MySQL, which has nothing of the kind, not.
        'init_command': 'SET SESSION wait_timeout = 600, innodb_lock_wait_timeout = 20 '
                        f'/*M! , idle_write_transaction_timeout = {_IDLE} */'},
    'postgresql+psycopg2': {
        'connect_timeout': _CONNECT, 'tcp_user_timeout': _STATEMENT * 1000,
        'options': f'-c statement_timeout={_STATEMENT}s '
                   f'-c idle_in_transaction_session_timeout={_IDLE}s'}}


def complete(connection: str) -> sa.URL:
    """Return an address with time limits and character set, where it does not state them.

    :param connection: as SQLAlchemy writes it
    :raises tracon_watcher.errors.InvalidOption: when it is none, or of another database
    """
    try:
        url = sa.make_url(connection)
    except exc.ArgumentError:
        # The text may contain a password.
        raise errors.InvalidOption('[database] connection', '…', _EXPECTED) from None
    name = url.drivername.replace('mariadb', 'mysql')
    name = {'mysql': 'mysql+pymysql', 'postgresql': 'postgresql+psycopg2'}.get(name, name)
    if name not in _DRIVERS and url.get_backend_name() != 'sqlite':
        raise errors.InvalidOption('[database] connection', shown(url), _EXPECTED)
    return url.set(drivername=name, query={
        **{key: str(value) for key, value in _DRIVERS.get(name, {}).items()}, **url.query})


def shown(url: sa.URL) -> str:
    """Return the address as it may be logged: without the password and the parameters."""
    return url.set(query={}).render_as_string(hide_password=True)


T = TypeVar('T')
Work = Callable[[sa.Connection], T]
_BUSY_MILLISECONDS = 30000
_WRITES = 'tracon_writes'
_BUSY = ('locked', 'busy', 'Lock wait timeout', 'too many clients', 'Too many connections')


class _Context:
    """What oslo.db attaches a transaction to."""


class Database:
    """One database.

    Connections are made when they are needed; after a fork the child makes its own. Threads may
    share an object.

    :param connection: address, as SQLAlchemy writes it
    :param options: of oslo.db's enginefacade, by name; what its options of group ``[database]``
        say otherwise
    :raises tracon_watcher.errors.InvalidOption: when the address is not one
    """

    def __init__(self, connection: str, **options: Any) -> None:
        self.url = complete(connection)
        self.where = shown(self.url)
        self._manager = enginefacade.transaction_context()
        self._manager.configure(**{
            **options, 'sqlite_fk': True,
            'connection': self.url.render_as_string(hide_password=False)})
        self._manager.append_on_engine_create(_prepare)
        _LIVING.add(self)

    @property
    def missing(self) -> bool:
        """Whether it is a file of SQLite's that is not there."""
        name = self.url.database
        return (self.url.get_backend_name() == 'sqlite' and name not in (None, '', ':memory:')
                and not os.path.exists(str(name)))

    def read(self, work: Work[T]) -> T:
        """Return what ``work`` finds.

        :raises storage_errors.StorageFailed: one of its kinds
        """
        with self._translated(), self._manager.reader.using(_Context()) as session:
            return work(session.connection())

    def write(self, work: Work[T]) -> T:
        """Return what ``work`` returns after it was committed, all of it or nothing.

        It is called again when another transaction came in between (a deadlock; a row that was
        not there a moment ago), so that it must do nothing but speak to the database.

        :raises storage_errors.StorageFailed: one of its kinds
        """
        def attempt() -> T:
            with self._manager.writer.using(_Context()) as session:
                return work(session.connection(execution_options={_WRITES: True}))

        again: Callable[[], T] = api.wrap_db_retry(
            max_retries=8, retry_interval=0.02, max_retry_interval=1, jitter=True,
            retry_on_deadlock=True, exception_checker=_collided)(attempt)
        with self._translated():
            return again()

    @contextlib.contextmanager
    def connection(self) -> Iterator[sa.Connection]:
        """Lend a connection in a transaction that may change the schema.

        A file of SQLite's that is not there is made, for its owner to write and its group to read.
        """
        if self.missing:
            # Where that is not allowed SQLite is going to say so.
            with contextlib.suppress(OSError):
                os.close(os.open(str(self.url.database), os.O_CREAT | os.O_RDWR, 0o640))
        with self._translated():
            engine = self._manager.writer.get_engine()
            with engine.connect().execution_options(**{_WRITES: True}) as lent:
                with lent.begin():
                    yield lent

    def close(self) -> None:
        """Close the connections that are kept for the next transaction."""
        self._manager.dispose_pool()

    def forget(self) -> None:
        """Let go, in a child, of the connections of its parent, without a word to the server.

        oslo.db would close them, and the server would end them for the parent as well.
        """
        if self._manager.is_started:
            self._manager.writer.get_engine().dispose(close=False)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (db_errors.DBConnectionError, db_errors.DBNonExistentDatabase,
                db_errors.DBDeadlock) as error:
            raise self._unavailable(error) from error
        except (db_errors.DBError, exc.DBAPIError) as error:
            inner = getattr(error, 'inner_exception', error)
            # Without a statement it is the connection that failed.
            if isinstance(inner, exc.OperationalError) and (
                    inner.statement is None or any(word in str(inner.orig) for word in _BUSY)):
                raise self._unavailable(error) from error
            raise storage_errors.StorageFailed(
                self.where, _why(error), 'see whether "tracon db check" finds the schema as it '
                'should be, the disk has room and the user may write; then what the '
                'database\'s own log says') from error
        except exc.TimeoutError as error:
            raise self._unavailable(error) from error
        except OSError as error:
            # Faults of the server or the network come as errors of the driver. This one is of its
            # client, which does not say which file it could not read.
            stated = ', '.join(f'{name}={value}' for name, value in sorted(self.url.query.items())
                               if name.startswith('ssl'))
            if not stated:
                raise
            raise shared.InvalidOption(
                '[database] connection', self.where,
                f'{error}; {stated} must name files of PEM that this user may read') from error
        except (ModuleNotFoundError, exc.NoSuchModuleError) as error:
            raise shared.InvalidOption('[database] connection', self.where,
                                       f'{error}; install the database\'s driver') from error

    def _unavailable(self, error: BaseException) -> storage_errors.StorageUnavailable:
        folder = os.path.dirname(os.path.abspath(str(self.url.database)))
        if self.missing and not os.path.isdir(folder):
            return storage_errors.StorageUnavailable(
                self.where, f'the folder {folder} is not there', 'make it, for the user whom the '
                'engine runs as, or name another one in [database] connection of tracon.conf')
        if self.url.get_backend_name() == 'sqlite':
            return storage_errors.StorageUnavailable(
                self.where, _why(error), 'see whether this user may read and write the file and '
                f'its folder {folder}, and the disk has room; [database] connection of '
                'tracon.conf names it')
        return storage_errors.StorageUnavailable(
            self.where, _why(error), 'see whether it runs, has room for one more connection, and '
            'lets this user in; [database] connection of tracon.conf names it')


_LIVING: weakref.WeakSet[Database] = weakref.WeakSet()


def _forked() -> None:
    for database in list(_LIVING):
        database.forget()


os.register_at_fork(after_in_child=_forked)


def _collided(error: BaseException) -> bool:
    return isinstance(error, db_errors.DBDuplicateEntry)


def _why(error: BaseException) -> str:
    """Return what the driver says, without statement and values, on one line."""
    inner: Any = getattr(error, 'inner_exception', None) or error
    return ' '.join(str(getattr(inner, 'orig', None) or inner).split())


def _prepare(engine: sa.Engine) -> None:
    if engine.dialect.name != 'sqlite':
        return

    @event.listens_for(engine, 'connect')
    def on_connect(connection: Any, _record: Any) -> None:
        connection.execute(f'PRAGMA busy_timeout = {_BUSY_MILLISECONDS}')
        connection.execute('PRAGMA journal_mode = WAL')

    # oslo.db's own handler says BEGIN, and comes first: it is told that this was done.
    @event.listens_for(engine, 'set_connection_execution_options')
    def on_options(connection: sa.Connection, options: Any) -> None:
        if options.get(_WRITES):
            connection.info.update({'in_transaction': True, _WRITES: True})

    @event.listens_for(engine, 'begin')
    def on_begin(connection: sa.Connection) -> None:
        if connection.info.pop(_WRITES, False):
            try:
                connection.execute(sa.text('BEGIN IMMEDIATE'))
            except BaseException:
                connection.info.pop('in_transaction', None)
                raise
