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

"""Looks whether a database is as it should be."""

from __future__ import annotations

from alembic import autogenerate
from alembic.runtime import migration
import sqlalchemy as sa

from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import tables


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
