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

"""A transaction of ours that a server ends to end a deadlock is done again, and once."""

import threading
import time
import unittest

import sqlalchemy as sa

from tests.functional import databases
from tracon_watcher.engine.storage import database

_PATIENCE = 30


class Deadlocked:
    """Two transactions that wait for each other, of which the server ends ours."""

    server = None

    def setUp(self):
        super().setUp()
        server = databases.shared(self.server)
        address = server.create()
        self.addCleanup(server.drop, address)
        self.database = database.Database(address)
        self.addCleanup(self.database._manager.writer.get_engine().dispose)
        with self.database.connection() as connection:
            connection.execute(sa.text('CREATE TABLE counters (id INT PRIMARY KEY, n INT)'))
            connection.execute(sa.text('INSERT INTO counters VALUES (:id, 0)'),
                               [{'id': number} for number in range(100)])
        self.other = sa.create_engine(address, poolclass=sa.NullPool)
        self.theirs_holds, self.ours_holds = threading.Event(), threading.Event()

    @staticmethod
    def raise_one(connection, number):
        connection.execute(sa.text('UPDATE counters SET n = n + 1 WHERE id = :id'),
                           {'id': number})

    def theirs(self):
        """Hold many rows, so that it costs less to end ours; want the row that ours holds."""
        with self.other.begin() as connection:
            connection.execute(sa.text('UPDATE counters SET n = n + 1 WHERE id >= 2'))
            self.theirs_holds.set()
            self.ours_holds.wait(_PATIENCE)
            time.sleep(0.3)
            self.raise_one(connection, 1)

    def test_it_is_done_again_and_once(self):
        calls = []

        def ours(connection):
            calls.append(None)
            self.raise_one(connection, 1)
            self.ours_holds.set()
            self.raise_one(connection, 2)
            return 'done'

        thread = threading.Thread(target=self.theirs)
        thread.start()
        self.assertTrue(self.theirs_holds.wait(_PATIENCE))
        self.assertEqual('done', self.database.write(ours))
        thread.join(_PATIENCE)
        self.assertEqual(2, len(calls))
        found = self.database.read(lambda connection: connection.execute(sa.text(
            'SELECT id, n FROM counters WHERE id <= 3 ORDER BY id')).all())
        self.assertEqual([(0, 0), (1, 2), (2, 2), (3, 1)], [tuple(row) for row in found])


class MariaDBTest(Deadlocked, unittest.TestCase):
    server = databases.MariaDB


class PostgreSQLTest(Deadlocked, unittest.TestCase):
    server = databases.PostgreSQL
