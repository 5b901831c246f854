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

from tracon_lab.testbed import acceptance
from tracon_lab.testbed import canary


class TestCanaries(unittest.TestCase):

    def test_the_first_ones_decide_nothing(self):
        canaries = acceptance.Canaries()
        canaries.add(1.0)
        self.assertEqual(0.0, canaries.deviation(2.0))

    def test_usual_is_the_undisturbed_core_not_the_mean(self):
        canaries = acceptance.Canaries()
        for seconds in (1.0, 1.0, 1.0, 1.4, 1.5, 1.6, 1.7, 1.8):
            canaries.add(seconds)
        self.assertAlmostEqual(0.05, canaries.deviation(1.05))

    def test_a_disturbance_of_many_windows_does_not_become_usual(self):
        canaries = acceptance.Canaries(memory=60)
        for _ in range(60):
            canaries.add(1.0)
        for _ in range(40):
            canaries.add(1.3)
        self.assertAlmostEqual(0.3, canaries.deviation(1.3))

    def test_a_machine_that_changed_for_good_becomes_the_new_usual(self):
        canaries = acceptance.Canaries(memory=60)
        for _ in range(60):
            canaries.add(1.0)
        for _ in range(60):
            canaries.add(1.2)
        self.assertAlmostEqual(0.0, canaries.deviation(1.2))

    def test_silence_says_nothing(self):
        canaries = acceptance.Canaries()
        for _ in range(9):
            canaries.add(1.0)
        canaries.add(0.0)
        self.assertEqual(0.0, canaries.deviation(0.0))


class TestObjections(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.limits = acceptance.Limits(foreign=0.03, foreign_other=0.5, steal=0.01,
                                        canary=0.03, bracket=0.1)

    def objections(self, foreign=0.01, other=0.1, steal=0.0, during=0.01, brackets=(0.01, -0.02)):
        return acceptance.objections(self.limits, foreign, other, steal, during, brackets)

    def test_quiet(self):
        self.assertEqual([], self.objections())

    def test_foreign_load_on_the_measured_core(self):
        self.assertEqual(['foreign CPU 4.0 % on the measured core'], self.objections(foreign=0.04))

    def test_foreign_load_elsewhere(self):
        self.assertEqual(['foreign CPU 60.0 % on other cores'], self.objections(other=0.6))

    def test_steal(self):
        self.assertEqual(['steal 2.0 %'], self.objections(steal=0.02))

    def test_canary_during_the_window(self):
        self.assertEqual(['canary off by +5.0 % during the window'], self.objections(during=0.05))
        self.assertEqual(['canary off by -4.0 % during the window'],
                         self.objections(during=-0.04))

    def test_either_bracketing_canary(self):
        self.assertEqual(['bracketing canary off by +20.0 %'],
                         self.objections(brackets=(0.0, 0.2)))
        self.assertEqual(['bracketing canary off by -15.0 %'],
                         self.objections(brackets=(-0.15, 0.1)))

    def test_all_are_named(self):
        self.assertEqual(4, len(self.objections(foreign=0.5, steal=0.5, during=0.5,
                                                brackets=(0.5,))))


class TestSpeed(unittest.TestCase):

    def test_mean_of_the_pulses(self):
        self.assertAlmostEqual(1.1, canary.speed([1.0, 1.1, 1.2]))

    def test_a_pulse_hit_by_an_interrupt_counts_little(self):
        self.assertAlmostEqual(1.25, canary.speed([1.0, 1.0, 1.0, 50.0]))

    def test_no_pulse(self):
        self.assertEqual(0.0, canary.speed([]))
