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

"""Schema: its revision, its upgrade and its inspection."""

from __future__ import annotations

import contextlib
import pathlib
from typing import Iterator

from alembic import autogenerate
from alembic import command
from alembic import config
from alembic.runtime import migration
from alembic import script
import sqlalchemy as sa

from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import errors
from tracon_watcher.engine.storage import tables

_MIGRATIONS = pathlib.Path(__file__).parent / 'migrations'
# "tracon db", as a number, for PostgreSQL's locks.
_LOCK_NAME, _LOCK_NUMBER, _LOCK_SECONDS = 'tracon db upgrade', 0x747261636F6E6462, 600
_UPGRADE = 'stop the engine and run "tracon db upgrade"'


def expected() -> str:
    """Return the revision that this release reads and writes."""
    head = script.ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def current(database: databases.Database) -> str | None:
    """Return the revision of a database, None for one without tables of ours.

    :raises errors.StorageFailed: one of its kinds
    """
    # Asking SQLite would make the file, in the name of the user who asks.
    return None if database.missing else database.read(_revision)


def check(database: databases.Database) -> None:
    """See that a database is as this release needs it.

    :raises errors.SchemaOutOfDate: when it is not
    """
    found = current(database)
    if found != expected():
        raise errors.SchemaOutOfDate(database.where, found, expected(), _remedy(found))


def upgrade(database: databases.Database) -> tuple[str | None, str]:
    """Bring a database to the revision of this release, and return both revisions.

    Where the database can take back changes to tables (SQLite, PostgreSQL), all is done or
    nothing. On MariaDB an upgrade that was interrupted is completed by running it again.

    :raises errors.SchemaOutOfDate: when the database is of a later release
    """
    with _alone(database), database.connection() as connection:
        if connection.dialect.name == 'postgresql':
            connection.execute(sa.text('SET LOCAL statement_timeout = 0'))
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK_NUMBER)))
        before = _revision(connection)
        if before is not None and before not in _known():
            raise errors.SchemaOutOfDate(database.where, before, expected(), _remedy(before))
        # Where DDL is transactional, this is inside of the transaction that was begun.
        settings = _config()
        settings.attributes['connection'] = connection
        command.upgrade(settings, 'head')
    return before, expected()


def _config() -> config.Config:
    settings = config.Config()
    settings.set_main_option('script_location', str(_MIGRATIONS).replace('%', '%%'))
    return settings


def _known() -> set[str]:
    walked = script.ScriptDirectory.from_config(_config()).walk_revisions()
    return {one.revision for one in walked}


def _revision(connection: sa.Connection) -> str | None:
    return migration.MigrationContext.configure(connection).get_current_revision()


def _remedy(found: str | None) -> str:
    if found is None or found in _known():
        return _UPGRADE
    return 'a later release made it; run that one, or restore a backup of before'


@contextlib.contextmanager
def _alone(database: databases.Database) -> Iterator[None]:
    """Keep other upgrades out on MariaDB; elsewhere the upgrade's own transaction does so.

    The lock has a connection of its own, so that it is held until the upgrade is committed. That
    connection is idle meanwhile, for longer than the others may be.
    """
    if database.url.get_backend_name() != 'mysql':
        yield
        return
    with database.connection() as connection:
        connection.execute(sa.text('SET SESSION wait_timeout = 28800'))
        if not connection.scalar(sa.select(sa.func.get_lock(_LOCK_NAME, _LOCK_SECONDS))):
            raise errors.StorageUnavailable(database.where, 'another upgrade is under way',
                                            'wait for its end, then run "tracon db version"')
        try:
            yield
        finally:
            connection.execute(sa.select(sa.func.release_lock(_LOCK_NAME)))


def faults(database: databases.Database) -> list[str]:
    """Return what is wrong, a line each; empty when nothing is.

    Tables are compared with what this release expects; SQLite's file is checked as well.

    :raises errors.StorageFailed: one of its kinds
    """
    return database.read(lambda connection: _differences(connection) + _damage(connection))


def _differences(connection: sa.Connection) -> list[str]:
    context = migration.MigrationContext.configure(connection, opts={
        'compare_type': True, 'compare_server_default': True})
    return [' '.join(str(one).split())
            for one in autogenerate.compare_metadata(context, tables.METADATA)]


def _damage(connection: sa.Connection) -> list[str]:
    if connection.dialect.name != 'sqlite':
        return []
    found = [row[0] for row in connection.execute(sa.text('PRAGMA quick_check')) if row[0] != 'ok']
    return found + [f'table {row[0]}, row {row[1]}: refers to a row of table {row[2]} that is '
                    'not there' for row in connection.execute(sa.text('PRAGMA foreign_key_check'))]
