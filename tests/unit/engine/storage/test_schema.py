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

import multiprocessing
import os

from alembic.runtime import migration
import sqlalchemy as sa

from tests.unit.engine.storage import base
from tracon_watcher.engine.storage import errors
from tracon_watcher.engine.storage import repository
from tracon_watcher.engine.storage import schema
from tracon_watcher.engine.storage import tables


def upgrade(case, address, results):
    database = case.connect(address)
    try:
        results.put(schema.upgrade(database))
    except errors.StorageFailed as error:
        results.put(str(error))


class TestSchema(base.DatabaseCase):

    def test_from_nothing(self):
        database = self.connect()
        self.assertIsNone(schema.current(database))
        if self.backend == 'sqlite':
            self.assertFalse(os.path.exists(database.url.database), 'asking made a file')
        with self.assertRaisesRegex(errors.SchemaOutOfDate, 'missing.*tracon db upgrade'):
            schema.check(database)
        self.assertEqual((None, schema.expected()), schema.upgrade(database))
        schema.check(database)
        self.assertEqual((schema.expected(), schema.expected()), schema.upgrade(database))
        self.assertEqual(0, repository.Storage(database).lease.look().epoch)

    def test_models_and_migrations_agree(self):
        database = self.connect()
        schema.upgrade(database)
        self.assertEqual([], schema.faults(database))
        with database.connection() as connection:
            found = set(sa.inspect(connection).get_table_names())
        self.assertEqual(set(tables.METADATA.tables) | {'alembic_version'}, found)

    def test_what_differs_is_found(self):
        database = self.connect()
        schema.upgrade(database)
        with database.connection() as connection:
            connection.exec_driver_sql('DROP TABLE cooldowns')
            connection.exec_driver_sql('ALTER TABLE leases ADD COLUMN colour VARCHAR(7)')
            drop = 'DROP INDEX ix_moves_action'
            connection.exec_driver_sql(
                drop + ' ON moves' if connection.dialect.name == 'mysql' else drop)
        found = '\n'.join(schema.faults(database))
        for name in ('cooldowns', 'colour', 'ix_moves_action'):
            self.assertIn(name, found)

    def test_of_a_later_release(self):
        database = self.connect()
        schema.upgrade(database)
        database.write(lambda connection: connection.exec_driver_sql(
            "UPDATE alembic_version SET version_num = '9999'"))
        for call in (schema.check, schema.upgrade):
            with self.assertRaisesRegex(errors.SchemaOutOfDate, '9999.*a later release'):
                call(database)

    def test_storage_opens_what_is_up_to_date_only(self):
        with self.assertRaises(errors.SchemaOutOfDate):
            repository.Storage.open(self.address, max_retries=1)
        schema.upgrade(self.connect())
        opened = repository.Storage.open(self.address, max_retries=1)
        self.addCleanup(opened.close)
        self.assertEqual([], opened.decisions.find())

    def test_an_upgrade_that_was_interrupted(self):
        """What MariaDB keeps of it does not stand in the way of the next."""
        database = self.connect()
        with database.connection() as connection:
            tables.METADATA.tables['moves'].create(connection)
            tables.LEASES.create(connection)
            migration.MigrationContext.configure(connection)._ensure_version_table()
        schema.upgrade(database)
        self.assertEqual([], schema.faults(database))
        self.assertEqual(0, repository.Storage(database).lease.look().epoch)

    def test_two_upgrades_at_once(self):
        context = multiprocessing.get_context('fork')
        results = context.Queue()
        processes = [context.Process(target=upgrade, args=(self, self.address, results))
                     for _turn in range(2)]
        for process in processes:
            process.start()
        found = [results.get(timeout=120) for _process in processes]
        for process in processes:
            process.join()
        self.assertCountEqual([(None, schema.expected()), (schema.expected(),) * 2], found)
        database = self.connect()
        self.assertEqual([], schema.faults(database))
        self.assertEqual(0, repository.Storage(database).lease.look().epoch)

    def test_every_revision_only_goes_up(self):
        for file in (base.alembic_folder() / 'versions').glob('*.py'):
            self.assertNotIn('def downgrade', file.read_text(encoding='utf-8'))
