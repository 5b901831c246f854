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

"""The database server is killed under a leader, and started again."""

import time
import unittest

from tests.functional import databases
from tests.unit.engine.storage import base
from tracon_watcher.engine import leadership
from tracon_watcher.engine.storage import database
from tracon_watcher.engine.storage import decisions
from tracon_watcher.engine.storage import errors
from tracon_watcher.engine.storage import repository
from tracon_watcher.engine.storage import schema

LEASE = 2.0


class ServerCase:
    """Has a server of its own, since it is going to be killed."""

    kind = None

    def setUp(self):
        super().setUp()
        # It says what is missing, if anything is.
        databases.shared(self.kind)
        self.server = self.kind()
        self.addCleanup(self.server.stop)
        self.server.start()
        made = database.Database(self.server.create(), max_retries=1, retry_interval=0)
        self.addCleanup(made.close)
        schema.upgrade(made)
        self.storage = repository.Storage(made)

    def test_killed_and_started_again(self):
        leader = leadership.Leadership(self.storage.lease, 'engine-1', LEASE)
        self.assertTrue(leader.poll())
        self.assertEqual((1, 1), self.storage.lease.next_version(leader.term()))
        decision = decisions.Decision.of(base.decision())
        self.storage.decisions.add([decision])
        self.server.kill()
        with self.assertRaises(errors.StorageUnavailable) as caught:
            self.storage.decisions.find()
        self.assertNotIn(databases.PASSWORD, str(caught.exception))
        with self.assertLogs('tracon_watcher.engine.leadership', 'WARNING'):
            until = time.monotonic() + LEASE
            while leader.poll():
                self.assertLess(time.monotonic(), until + 1)
                time.sleep(0.1)
        with self.assertRaises(errors.NoLongerLeader):
            leader.term()
        self.server.restart()
        self.assertTrue(leader.poll(), 'no other engine led meanwhile')
        self.assertEqual((2, 2), self.storage.lease.next_version(leader.term()))
        self.assertEqual([decision.id], [one.id for one in self.storage.decisions.find()])


class TestMariaDB(ServerCase, unittest.TestCase):

    kind = databases.MariaDB


class TestPostgreSQL(ServerCase, unittest.TestCase):

    kind = databases.PostgreSQL
