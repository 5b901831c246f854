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

"""The storage on three nodes of Galera: who leads, what is lost, what goes on without a node."""

import threading
import time
import unittest

import sqlalchemy as sa

from tests.functional import galera
from tests.unit.engine.storage import base
from tracon_watcher.engine import leadership
from tracon_watcher.engine.storage import database
from tracon_watcher.engine.storage import decisions
from tracon_watcher.engine.storage import errors
from tracon_watcher.engine.storage import repository
from tracon_watcher.engine.storage import schema

LEASE = 2.0
_PATIENCE = 60
#: Rows that take another node far longer to write than a leader takes to renew its lease.
_MANY = 30000
#: Terms that a leader begins while another node is behind.
_TIMES = 5


class GaleraCase(unittest.TestCase):
    """A cluster for all tests of the class, and in it a database for each."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if galera.missing():
            raise unittest.SkipTest(galera.missing())
        cls.cluster = galera.Cluster()
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()

    def setUp(self):
        super().setUp()
        self.addresses = self.cluster.create()
        schema.upgrade(self.database(0))
        self.storages = [self.storage(number) for number in range(3)]
        self.eventually(lambda: all(one.lease.look() for one in self.storages))

    def database(self, number, **options):
        made = database.Database(self.addresses[number], max_retries=1, retry_interval=0,
                                 **options)
        self.addCleanup(made.close)
        return made

    def storage(self, number, **options):
        return repository.Storage(self.database(number, **options))

    def eventually(self, holds, seconds=_PATIENCE):
        until = time.monotonic() + seconds
        while True:
            try:
                if holds():
                    return
            except errors.StorageFailed:
                pass
            self.assertLess(time.monotonic(), until, 'it never holds')
            time.sleep(0.05)

    @staticmethod
    def at_once(calls):
        threads = [threading.Thread(target=call) for call in calls]
        for one in threads:
            one.start()
        for one in threads:
            one.join(_PATIENCE)


class TestSeveralNodes(GaleraCase):
    """Nodes that all run."""

    def test_of_engines_at_several_nodes_one_gets_each_epoch(self):
        terms, start = [], threading.Barrier(3)

        def stand(number):
            lease = self.storages[number].lease
            for _try in range(30):
                start.wait(_PATIENCE)
                term = lease.take(lease.look(), f'engine-{number}')
                if term is not None:
                    terms.append(term)

        self.at_once([lambda number=number: stand(number) for number in range(3)])
        self.assertGreaterEqual(len(terms), 30)
        self.assertEqual(len(terms), len({term.epoch for term in terms}), terms)
        last = max(terms, key=lambda term: term.epoch)
        self.eventually(lambda: all(
            (one.lease.look().epoch, one.lease.look().holder) == (last.epoch, last.holder)
            for one in self.storages))

    def test_what_two_nodes_change_at_once_is_changed_twice(self):
        with self.database(0).connection() as connection:
            connection.execute(sa.text('CREATE TABLE counters (id INT PRIMARY KEY, n INT)'))
            connection.execute(sa.text('INSERT INTO counters VALUES (1, 0)'))
        calls, both_changed = [], threading.Barrier(2)

        def work(number):
            own = self.database(number)
            for _time in range(20):
                tries = []

                def raise_one(connection, tries=tries):
                    tries.append(None)
                    connection.execute(sa.text('UPDATE counters SET n = n + 1 WHERE id = 1'))
                    if len(tries) == 1:     # neither is committed before the other has changed it
                        both_changed.wait(_PATIENCE)

                own.write(raise_one)
                calls.extend(tries)

        self.at_once([lambda number=number: work(number) for number in range(2)])
        self.assertGreaterEqual(len(calls), 60, 'one of two was not done again')
        for number in range(3):
            self.eventually(lambda number=number: 40 == self.database(number).read(
                lambda connection: connection.scalar(sa.text('SELECT n FROM counters'))))

    def test_a_leader_whose_connections_go_to_several_nodes(self):
        with self.database(0).connection() as connection:
            connection.execute(sa.text('CREATE TABLE many (id INT PRIMARY KEY, n INT)'))
            connection.execute(sa.text('INSERT INTO many SELECT seq, 0 FROM seq_1_to_'
                                       f'{_MANY}'))
        self.cluster.wait()
        leads = {}
        for wait in (None, 1, 3):
            # Over a connection that is open already, as a leader's is.
            other = self.storage(1, mysql_wsrep_sync_wait=wait)
            other.lease.look()
            leads[wait] = [self._leads_behind(other) for _ in range(_TIMES)]
        # How far node 2 has come differs from time to time. With 1, only what reads waits, and
        # not the UPDATE by which a leader goes on.
        self.assertIn(False, leads[None])
        self.assertIn(False, leads[1])
        self.assertEqual([True] * _TIMES, leads[3])

    def _leads_behind(self, other):
        """Whether a leader, by another node that still writes what came before, leads."""
        self.database(0).write(lambda connection: connection.execute(
            sa.text('UPDATE many SET n = n + 1')))
        term = self.storages[0].lease.take(self.storages[0].lease.look(), 'engine')
        try:
            other.lease.renew(term)
            leads = True
        except errors.NoLongerLeader:
            leads = False
        self.eventually(lambda: other.lease.look().epoch == term.epoch)
        return leads


class TestNodesThatEnd(GaleraCase):
    """Nodes that are killed, and come back."""

    def test_the_leader_s_node_is_killed(self):
        first, second = (
            leadership.Leadership(self.storages[number].lease, f'engine-{number}', LEASE)
            for number in range(2))
        self.assertTrue(first.poll())
        self.assertFalse(second.poll())
        term = first.term()
        decision = decisions.Decision.of(base.decision())
        self.storages[0].decisions.add([decision])
        self.cluster.nodes[0].kill()
        led = []

        def leads():
            led.append((first.poll(), second.poll()))
            return led[-1][1]

        with self.assertLogs('tracon_watcher.engine.leadership', 'WARNING'):
            self.eventually(leads)
        self.assertNotIn((True, True), led)
        self.assertEqual(term.epoch + 1, second.term().epoch)
        self.assertEqual([decision.id], [one.id for one in self.storages[1].decisions.find()])
        self.cluster.nodes[0].recover()
        self.cluster.wait()
        with self.assertRaises(errors.NoLongerLeader):
            self.storages[0].lease.renew(term)
        self.assertFalse(first.poll())

    def test_a_node_that_is_left_alone_says_so(self):
        engine = leadership.Leadership(self.storages[0].lease, 'engine-0', LEASE)
        self.assertTrue(engine.poll())
        self.cluster.nodes[2].kill()
        self.eventually(lambda: self.cluster.nodes[0].status('wsrep_cluster_size') == '2')
        self.cluster.nodes[1].kill()
        self.eventually(
            lambda: self.cluster.nodes[0].status('wsrep_cluster_status') == 'non-Primary')
        for ask in (self.storages[0].lease.look, self.storages[0].decisions.find,
                    lambda: self.storages[0].lease.next_version(engine._term)):
            with self.assertRaisesRegex(errors.StorageUnavailable, 'WSREP'):
                ask()
        with self.assertLogs('tracon_watcher.engine.leadership', 'WARNING'):
            self.eventually(lambda: not engine.poll(), 2 * LEASE)
        for number in (1, 2):
            self.cluster.nodes[number].recover()
        self.cluster.wait()
        self.assertTrue(engine.poll(), 'no other engine led meanwhile')
