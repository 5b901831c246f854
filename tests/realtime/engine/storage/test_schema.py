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

"""Upgrades that are killed at any moment."""

import multiprocessing
import random
import time

from tests.unit.engine.storage import base
from tracon_watcher.engine.storage import repository
from tracon_watcher.engine.storage import schema


class TestUpgrades(base.DatabaseCase):

    def test_killed_in_the_middle(self):
        rng = random.Random(2)
        for _turn in range(6):
            process = multiprocessing.get_context('fork').Process(
                target=lambda: schema.upgrade(self.connect()))
            process.start()
            time.sleep(rng.uniform(0.005, 0.15))
            process.kill()
            process.join()
        database = self.connect()
        schema.upgrade(database)
        self.assertEqual([], schema.faults(database))
        self.assertEqual(0, repository.Storage(database).lease.look().epoch)
