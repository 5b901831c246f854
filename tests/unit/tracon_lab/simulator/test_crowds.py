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
import unittest

import numpy as np

from tracon_lab.simulator import crowds


class DrawTest(unittest.TestCase):

    def test_hosts_have_the_vms_and_the_load_asked_for(self):
        found = crowds.draw(40, 16, 10, 30, seed=1)
        count = found.there.sum(axis=1)
        self.assertEqual((10, 30), (count.min(), count.max()))
        load = (found.vcpus * found.used).sum(axis=1) / 16
        self.assertLess(load.min(), 0.6)
        self.assertGreater(load.max(), 1.3)
        self.assertLessEqual(found.used.max(), 0.98)
        self.assertLessEqual(found.vcpus.max(), 16)
        again = crowds.draw(40, 16, 10, 30, seed=1)
        np.testing.assert_array_equal(found.used, again.used)


class ScoreTest(unittest.TestCase):

    def test_alarms(self):
        found = crowds.score(np.array([1.0, 1.5, 1.3, 1.1, math.nan]),
                             np.array([1.0, 1.25, 1.0, 1.3, 1.5]), 1.2)
        self.assertEqual((5, 0.2, 3), (found.vms, found.unknown, found.above))
        # One of three; one of two.
        self.assertAlmostEqual(1 / 3, found.found)
        self.assertAlmostEqual(1 / 2, found.false)
        self.assertAlmostEqual((0.0 + 0.2 + 0.3 + 0.2 / 1.3) / 4, found.error)
        self.assertAlmostEqual((0.0 + 0.2 + 0.3 - 0.2 / 1.3) / 4, found.bias)

    def test_no_vm_above_the_limit_and_no_alarm(self):
        found = crowds.score(np.ones(2), np.ones(2), 1.2)
        self.assertTrue(math.isnan(found.found))
        self.assertTrue(math.isnan(found.false))
