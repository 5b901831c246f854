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
import unittest

from tracon_watcher.lab import acceptance


class TestCanaries(unittest.TestCase):

    def test_the_first_ones_decide_nothing(self):
        canaries = acceptance.Canaries()
        canaries.add(1.0)
        self.assertEqual(0.0, canaries.deviation(2.0))

    def test_deviation_from_the_median(self):
        canaries = acceptance.Canaries()
        for seconds in (1.0, 1.0, 1.0, 1.0, 9.0):
            canaries.add(seconds)
        self.assertAlmostEqual(0.05, canaries.deviation(1.05))

    def test_a_machine_that_changed_for_good_becomes_the_new_normal(self):
        canaries = acceptance.Canaries(memory=11)
        for _ in range(11):
            canaries.add(1.0)
        for _ in range(6):
            canaries.add(1.2)
        self.assertAlmostEqual(0.0, canaries.deviation(1.2))


class TestObjections(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.limits = acceptance.Limits(foreign=0.03, foreign_other=0.5, steal=0.01, canary=0.03)

    def objections(self, foreign=0.01, other=0.1, steal=0.0, canaries=(0.01, -0.02)):
        return acceptance.objections(self.limits, foreign, other, steal, canaries)

    def test_quiet(self):
        self.assertEqual([], self.objections())

    def test_foreign_load_on_the_measured_core(self):
        self.assertEqual(['foreign CPU 4.0 % on the measured core'], self.objections(foreign=0.04))

    def test_foreign_load_elsewhere(self):
        self.assertEqual(['foreign CPU 60.0 % on other cores'], self.objections(other=0.6))

    def test_steal(self):
        self.assertEqual(['steal 2.0 %'], self.objections(steal=0.02))

    def test_either_canary(self):
        self.assertEqual(['canary off by +5.0 %'], self.objections(canaries=(0.0, 0.05)))
        self.assertEqual(['canary off by -4.0 %'], self.objections(canaries=(-0.04, 0.03)))

    def test_all_are_named(self):
        self.assertEqual(3, len(self.objections(foreign=0.5, steal=0.5, canaries=(0.5,))))
