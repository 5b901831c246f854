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

import math
import multiprocessing
import os
import threading

from oslo_db import exception as db_errors
import sqlalchemy as sa

from tests.unit.engine.storage import base
from tracon_watcher.engine.storage import database
from tracon_watcher.engine.storage import errors
from tracon_watcher.engine.storage import schema
from tracon_watcher.engine.storage import tables
from tracon_watcher import errors as shared


class TestTransactions(base.StorageCase):

    def note(self, vm, moves=1):
        return sa.insert(tables.COOLDOWNS).values(vm=vm, moves=moves, moved_at=1.0, until=2.0)

    def count(self):
        return self.database.read(lambda connection: connection.scalar(
            sa.select(sa.func.count()).select_from(tables.COOLDOWNS)))

    def test_all_or_nothing(self):
        def work(connection):
            connection.execute(self.note('vm-1'))
            raise KeyError('of the caller')

        with self.assertRaises(KeyError):
            self.database.write(work)
        self.assertEqual(0, self.count())

    def test_repeated_when_another_came_first(self):
        turns = []

        def work(connection):
            turns.append(1)
            found = connection.scalar(sa.select(tables.COOLDOWNS.c.moves).where(
                tables.COOLDOWNS.c.vm == 'vm-1'))
            if found is None:
                if len(turns) == 1:
                    # What another process would have committed by now, and this cannot see.
                    connection.execute(self.note('vm-1'))
                    connection.execute(self.note('vm-1'))
                connection.execute(self.note('vm-1', 7))
            return len(turns)

        self.assertEqual(2, self.database.write(work))
        self.assertEqual(1, self.count())

    def test_repeated_when_a_commit_fails_as_a_deadlock(self):
        # As in a Galera cluster, where another node has committed first.
        left, calls = [1, 2], []

        def refused(_connection):
            if left:
                left.pop()
                raise db_errors.DBDeadlock()

        def work(connection):
            calls.append(None)
            connection.execute(self.note('vm-1'))

        sa.event.listen(self.database._manager.writer.get_engine(), 'commit', refused)
        self.database.write(work)
        self.assertEqual((3, 1), (len(calls), self.count()))

    def test_a_row_that_is_always_there_ends_in_an_error(self):
        def work(connection):
            connection.execute(self.note('vm-1'))
            connection.execute(self.note('vm-1'))

        with self.assertLogs('oslo_db.api', 'ERROR'):
            with self.assertRaises(errors.StorageFailed):
                self.database.write(work)

    def test_foreign_keys_hold(self):
        with self.assertRaisesRegex(errors.StorageFailed, '(?i)foreign key'):
            self.database.write(lambda connection: connection.execute(
                sa.insert(tables.OUTCOMES).values(move='none', delay=1, due_at=1.0,
                                                  slowdowns='{}')))

    def test_unknown_numbers_are_null(self):
        """NaN and infinity alike, which MariaDB has no way to hold."""
        for place, value in enumerate((math.nan, math.inf, -math.inf, None)):
            row = {'kind': f'kind-{place}', 'evidence': 1.0, 'measured': 0, 'helped': 0,
                   'level': 0, 'suspended_at': value, 'suspended_until': 2.5}
            self.database.write(lambda connection, row=row: connection.execute(
                sa.insert(tables.KINDS).values(row)))
        found = self.database.read(lambda connection: connection.exec_driver_sql(
            'SELECT suspended_at, suspended_until FROM action_kinds').all())
        self.assertEqual([(None, 2.5)] * 4, [tuple(row) for row in found])
        typed = self.database.read(lambda connection: connection.scalars(
            sa.select(tables.KINDS.c.suspended_at)).all())
        self.assertTrue(all(math.isnan(value) for value in typed))

    def test_numbers_come_back_as_they_were(self):
        value = 1.7e9 + 1 / 3
        self.database.write(lambda connection: connection.execute(sa.insert(
            tables.COOLDOWNS).values(vm='vm', moves=1, moved_at=value, until=5e-324 + 0.1)))
        self.assertEqual((value, 0.1), self.database.read(lambda connection: tuple(
            connection.execute(sa.select(tables.COOLDOWNS.c.moved_at,
                                         tables.COOLDOWNS.c.until)).one())))

    def test_threads_share_it(self):
        """Each of them reads before it writes, and none fails for the others."""
        failed = []

        def add(number):
            try:
                for turn in range(10):
                    def work(connection, turn=turn):
                        connection.scalar(sa.select(sa.func.count()).select_from(tables.COOLDOWNS))
                        connection.execute(self.note(f'vm-{number}-{turn}'))

                    self.database.write(work)
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], failed)
        self.assertEqual(40, self.count())

    def test_a_child_makes_its_own_connections(self):
        self.count()
        context = multiprocessing.get_context('fork')

        def child():
            for turn in range(20):
                self.database.write(
                    lambda connection, turn=turn: connection.execute(self.note(f'child-{turn}')))
            self.database.close()
            os._exit(0)

        process = context.Process(target=child)
        process.start()
        for turn in range(20):
            self.database.write(
                lambda connection, turn=turn: connection.execute(self.note(f'parent-{turn}')))
        process.join()
        self.assertEqual(0, process.exitcode)
        self.assertEqual(40, self.count())


class TestFaults(base.DatabaseCase):

    def test_tables_are_missing(self):
        with self.assertRaises(errors.StorageFailed) as caught:
            self.connect().read(lambda connection: connection.execute(
                sa.select(tables.LEASES)).all())
        self.assertIn('tracon db check', str(caught.exception))
        self.assertNotIn('SELECT', str(caught.exception))

    def test_it_is_not_there(self):
        url = sa.make_url(self.address)
        url = url.set(database='/nowhere/at/all.db') if self.backend == 'sqlite' else \
            url.set(port=1)
        database = self.connect(url.render_as_string(hide_password=False))
        with self.assertRaises(errors.StorageUnavailable) as caught:
            database.read(lambda connection: None if connection.scalar(sa.select(1)) else 0)
        text = str(caught.exception)
        self.assertIn('[database] connection', text)
        if url.password:
            self.assertNotIn(url.password, text)

    def test_no_such_database_and_no_such_user(self):
        url = sa.make_url(self.address)
        if not url.password:
            self.skipTest('SQLite has neither')
        for changed in (url.set(database='no_such_database'), url.set(username='no_such_user'),
                        url.set(password='wr0ng')):
            database = self.connect(changed.render_as_string(hide_password=False))
            with self.subTest(address=str(changed)), self.assertRaises(
                    errors.StorageFailed) as caught:
                schema.check(database)
            self.assertNotIn(changed.password, str(caught.exception))


class TestAddress(base.DatabaseCase):

    def test_other_databases_and_nonsense(self):
        for text in ('oracle://scott:t1ger@host/x', 'my secret', '',
                     'mysql+nodriver://a:t1ger@b/c'):
            with self.subTest(text), self.assertRaises(shared.InvalidOption) as caught:
                database.complete(text)
            self.assertNotIn('t1ger', str(caught.exception))
            self.assertNotIn('secret', str(caught.exception).replace('USER', ''))

    def test_what_is_stated_stays(self):
        url = database.complete('mariadb://u:p@h/d?charset=utf8mb3&ssl_ca=/ca.pem')
        self.assertEqual('mysql+pymysql', url.drivername)
        self.assertEqual(('utf8mb3', '/ca.pem', '10'),
                         tuple(url.query[name] for name in ('charset', 'ssl_ca',
                                                            'connect_timeout')))
        self.assertEqual('mysql+pymysql://u:***@h/d', database.shown(url))
        self.assertIn('statement_timeout', database.complete('postgresql://h/d').query['options'])
