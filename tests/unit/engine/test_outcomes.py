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

from hypothesis import given
from hypothesis import strategies
import numpy as np

from tracon_watcher.engine import sequential_test

BACKOFF = sequential_test.SuspensionRule()
NAN = math.nan


def follow(verdicts, standing=sequential_test.Standing(), now=0.0):
    """Return the standings after each of some verdicts."""
    found = []
    for verdict in verdicts:
        standing = sequential_test.follow(standing, verdict, now, BACKOFF)
        found.append(standing)
    return found


class TestGain(unittest.TestCase):

    def test_by_hand(self):
        self.assertAlmostEqual(math.log(2) - math.log(1.5), sequential_test.gain(
            np.array([2.0, 1.0, NAN, 3.0]), np.array([1.0, 1.5, 1.0, NAN])))

    def test_unknown(self):
        for before, after in (([], []), ([NAN], [1.0]), ([1.0], [NAN]), ([math.inf], [1.0]),
                              ([0.0], [1.0])):
            self.assertTrue(math.isnan(sequential_test.gain(np.array(before), np.array(after))))

    def test_verdict(self):
        self.assertEqual([sequential_test.HELPED, sequential_test.HELPED,
                          sequential_test.DID_NOT_HELP,
                          sequential_test.DID_NOT_HELP, sequential_test.UNKNOWN],
                         [sequential_test.verdict(value,
                                                  0.07) for value in (1.0, 0.07, 0.0, -1.0, NAN)])


class TestFollow(unittest.TestCase):

    def test_seven_that_do_not_help(self):
        found = follow([sequential_test.DID_NOT_HELP] * 7)
        self.assertEqual([0, 0, 0, 0, 0, 0, 1], [one.level for one in found])
        self.assertEqual(86400.0, found[-1].suspended_until)
        self.assertEqual([1, 2, 3, 4, 5, 6, 0], [one.measured for one in found])

    def test_a_good_past_excuses_nothing(self):
        past = follow([sequential_test.HELPED] * 1000)[-1]
        self.assertEqual((1000, 1000), (past.measured, past.helped))
        self.assertEqual(1, follow([sequential_test.DID_NOT_HELP] * 8, past)[-1].level)

    def test_unknown_is_no_evidence(self):
        before = follow([sequential_test.DID_NOT_HELP] * 6)[-1]
        self.assertEqual(before, follow([sequential_test.UNKNOWN] * 100, before)[-1])

    def test_one_that_helps_makes_up_for_two(self):
        self.assertEqual(
            0, follow(([sequential_test.DID_NOT_HELP] * 2
                       + [sequential_test.HELPED]) * 50)[-1].level)

    def test_suspensions_double(self):
        now, lengths, standing = 0.0, [], sequential_test.Standing()
        for _turn in range(8):
            while not standing.suspended(now):
                standing = sequential_test.follow(standing, sequential_test.DID_NOT_HELP, now,
                                                  BACKOFF)
            lengths.append((standing.suspended_until - now) / 86400)
            now = standing.suspended_until
        self.assertEqual([1, 2, 4, 8, 16, 30, 30, 30], lengths)
        self.assertEqual(30 * 86400, BACKOFF.duration(10**6))

    def test_on_trial_four_are_enough(self):
        standing = follow([sequential_test.DID_NOT_HELP] * 7)[-1]
        now = standing.suspended_until
        found = follow([sequential_test.DID_NOT_HELP] * 4, standing, now)
        self.assertEqual([1, 1, 1, 2], [one.level for one in found])

    def test_what_was_under_way_when_it_was_suspended(self):
        standing = follow([sequential_test.DID_NOT_HELP] * 7)[-1]
        self.assertEqual(standing,
                         follow([sequential_test.DID_NOT_HELP] * 9, standing, 3600.0)[-1])

    def test_forgiven(self):
        standing = follow([sequential_test.DID_NOT_HELP] * 7)[-1]
        now = standing.suspended_until
        found = follow([sequential_test.HELPED] * 30, standing, now)
        self.assertEqual((1, 0), (found[28].level, found[29].level))

    def test_a_clock_that_was_put_back(self):
        standing = follow([sequential_test.DID_NOT_HELP] * 7, now=1e9)[-1]
        self.assertTrue(standing.suspended(1e9 - 3600))
        self.assertFalse(standing.suspended(1e9 - 365 * 86400))
        self.assertFalse(sequential_test.Standing().suspended(1e9))

    def test_false_alarms_are_as_rare_as_stated(self):
        """On average no sooner than after 20 measurements, also where only half of them help."""
        rng = np.random.default_rng(5)
        lengths = {}
        for probability in (0.0, 0.2, 0.5, 0.7):
            counts = []
            for _turn in range(200):
                standing = sequential_test.Standing()
                for count in range(1, 1500):
                    helped = rng.random() < probability
                    standing = sequential_test.follow(
                        standing,
                        sequential_test.HELPED if helped else sequential_test.DID_NOT_HELP, 0.0)
                    if standing.level:
                        break
                counts.append(count)
            lengths[probability] = np.mean(counts)
        self.assertEqual(7, lengths[0.0])
        self.assertTrue(11 < lengths[0.2] < 17, lengths)
        self.assertTrue(100 < lengths[0.5] < 250, lengths)
        self.assertGreater(lengths[0.7], 1000)

    @given(strategies.lists(strategies.sampled_from(sequential_test.VERDICTS), max_size=200))
    def test_always_finite(self, verdicts):
        for place, standing in enumerate(follow(verdicts)):
            self.assertTrue(0 < standing.evidence < 20)
            self.assertTrue(0 <= standing.helped <= standing.measured <= place + 1)
