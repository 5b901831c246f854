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

from tracon_watcher.engine import fading

USUAL, UNUSUAL, TOLERANCE = 0.0, 2.0, 0.5


class TestTrust(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.trust = fading.Trust()

    def hear(self, count, unusual=USUAL, vms=1):
        """Hear so many errors, and return after how many trust became full; None: it did not."""
        for number in range(1, count + 1):
            if self.trust.hear(unusual, vms, TOLERANCE):
                return number
        return None

    def test_it_falls_and_no_further_than_it_can_rise(self):
        self.assertTrue(self.trust.fade())
        self.assertAlmostEqual(0.4, self.trust.value)
        self.assertEqual([False] * 4, [self.trust.fade() for _again in range(4)])
        self.assertAlmostEqual(fading.LEAST, self.trust.value)
        self.assertEqual(3 * fading.RECOVERY, self.hear(1000))
        self.assertEqual(1.0, self.trust.value)

    def test_a_round_of_all_vms_must_be_usual(self):
        self.trust.fade()
        self.assertIsNone(self.hear(199, vms=200))
        self.assertEqual(1, self.hear(1, vms=200))

    def test_what_is_unusual_in_the_mean_raises_nothing(self):
        self.trust.fade()
        for _round in range(20):
            self.assertIsNone(self.hear(fading.RECOVERY // 2))
            self.assertIsNone(self.hear(fading.RECOVERY // 2, UNUSUAL))
        self.assertAlmostEqual(0.4, self.trust.value)

    def test_it_takes_longer_each_time_until_it_has_stayed(self):
        rounds = []
        for _again in range(4):
            self.trust.fade()
            rounds.append(self.hear(100 * fading.RECOVERY) / fading.RECOVERY)
        self.assertEqual([1, 2, 4, 8], rounds)
        self.hear(16 * fading.CALM * fading.RECOVERY)
        self.trust.fade()
        self.assertEqual(fading.RECOVERY, self.hear(1000))

    def test_an_alarm_in_between_begins_the_round_anew(self):
        self.trust.fade()
        self.hear(fading.RECOVERY - 1)
        self.trust.fade()
        self.assertIsNone(self.hear(fading.RECOVERY - 1))
        self.assertAlmostEqual(0.16, self.trust.value)

    def test_other_models_are_trusted(self):
        self.trust.fade()
        self.trust.restore()
        self.assertEqual(1.0, self.trust.value)
        self.assertIsNone(self.hear(10))
