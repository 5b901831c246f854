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

"""The storage on MariaDB."""

import sqlalchemy as sa

from tests.functional import databases
from tests.functional.storage import suite
from tests.unit.engine.storage import base
from tracon_watcher.engine.storage import schema
from tracon_watcher.engine.storage import tables

globals().update(suite.cases(__name__, databases.MariaDB))


class TestMariaDB(suite.OnServer, base.StorageCase):
    """What only MariaDB has."""

    server = databases.MariaDB

    def ask(self, statement):
        return self.database.read(lambda connection: connection.execute(sa.text(statement)).all())

    def test_all_of_unicode_whatever_the_server_s_default(self):
        found = self.ask('SELECT table_name, table_collation, engine FROM '
                         'information_schema.tables WHERE table_schema = DATABASE() '
                         "AND table_name <> 'alembic_version'")
        self.assertEqual(len(tables.METADATA.tables), len(found))
        self.assertEqual({('utf8mb4_bin', 'InnoDB')}, {tuple(row[1:]) for row in found})

    def test_a_stopped_engine_is_not_waited_for_for_long(self):
        found = self.ask("SHOW VARIABLES WHERE variable_name IN ('wait_timeout', "
                         "'innodb_lock_wait_timeout', 'idle_write_transaction_timeout')")
        self.assertEqual({'wait_timeout': '600', 'innodb_lock_wait_timeout': '20',
                          'idle_write_transaction_timeout': '15'}, dict(map(tuple, found)))

    def test_an_upgrade_keeps_others_out_until_it_is_committed(self):
        free = []

        def look(_connection):
            free.append(self.ask("SELECT IS_FREE_LOCK('tracon db upgrade')")[0][0])

        other = self.connect()
        engine = other._manager.writer.get_engine()
        sa.event.listen(engine, 'commit', look)
        self.addCleanup(sa.event.remove, engine, 'commit', look)
        schema.upgrade(other)
        # The upgrade is committed first, then the connection that has held the lock.
        self.assertEqual([0, 1], free)
