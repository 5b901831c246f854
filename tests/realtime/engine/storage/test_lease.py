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

"""A fenced write holds up engines that want the lead."""

import threading
import time

from tests.unit.engine.storage import base
from tracon_watcher.engine.storage import lease


class TestFence(base.StorageCase):

    def setUp(self):
        super().setUp()
        self.lease = self.storage.lease

    def test_no_term_begins_while_a_fenced_write_is_under_way(self):
        term = self.lead('a')
        sight = self.lease.look()
        fenced, order = threading.Event(), []

        def write(connection):
            lease.fence(connection, term)
            fenced.set()
            # Enough for the other to arrive at the row, and wait.
            time.sleep(0.5)
            order.append('written')

        def take():
            fenced.wait()
            self.lease.take(sight, 'b')
            order.append('asked')

        thread = threading.Thread(target=take)
        thread.start()
        self.database.write(write)
        thread.join()
        self.assertEqual(['written', 'asked'], order)
        # What it waited for was a sign of life.
        self.assertEqual('a', self.lease.look().holder)
