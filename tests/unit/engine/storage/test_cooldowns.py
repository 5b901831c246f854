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

from tests.unit.engine.storage import base
from tracon_watcher.engine.storage import repository


class TestCooldowns(base.StorageCase):

    def test_survives_a_restart(self):
        self.storage.cooldowns.moved('vm-1', base.NOW)
        self.storage.close()
        again = repository.Storage(self.connect())
        self.assertEqual(3600, again.cooldowns.get('vm-1').remaining(base.NOW))
        self.assertEqual({'vm-1'}, set(again.cooldowns.running(base.NOW + 3599)))
        self.assertEqual({}, again.cooldowns.running(base.NOW + 3600))
        self.assertIsNone(again.cooldowns.get('vm-2'))

    def test_grows(self):
        at, lengths = base.NOW, []
        for _turn in range(7):
            found = self.storage.cooldowns.moved('vm-1', at)
            lengths.append(found.until - at)
            at = found.until + 1
        self.assertEqual([3600, 7200, 14400, 21600, 21600, 21600, 21600], lengths)
        self.assertEqual(7, self.storage.cooldowns.get('vm-1').moves)

    def test_two_engines_are_told_of_the_same_move(self):
        context = multiprocessing.get_context('fork')

        def tell():
            for turn in range(10):
                self.storage.cooldowns.moved('vm-1', base.NOW + 1000 * turn)
            self.storage.close()

        processes = [context.Process(target=tell) for _turn in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        self.assertEqual([0, 0], [process.exitcode for process in processes])
        self.assertEqual(10, self.storage.cooldowns.get('vm-1').moves)
