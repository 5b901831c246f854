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

"""When the policies take another model (made-up streams)."""

import unittest
from unittest import mock

import numpy as np
from sklearn import base

from tracon_watcher.models import adaptation
from tracon_watcher.models import points as measured
from tracon_watcher.models import replay


class Constant(base.BaseEstimator):
    """Predicts the mean of what it was fitted to; remembers how much that was."""

    fits = []

    def __init__(self, level=0.5):
        self.level = level

    def fit(self, X, y):
        type(self).fits.append((X.copy(), y.copy()))
        self.found_ = float(np.mean(y))
        return self

    def predict(self, X):
        return np.full(len(X), getattr(self, 'found_', self.level))


COLUMN = np.zeros(8)
RESIDUALS = np.tile([0.1, -0.1], 50)


def drive(policy, exponents):
    for place, exponent in enumerate(exponents):
        policy.take(place, np.full(8, float(place)), exponent)


class TestPaper(unittest.TestCase):

    def setUp(self):
        super().setUp()
        Constant.fits = []
        self.policy = replay.Paper(Constant(), np.full((300, 8), -1.0), np.arange(300.0),
                                   RESIDUALS)

    def test_it_refits_when_160_have_come_since_the_alarm_and_again_every_160(self):
        drive(self.policy, [1.5] * 400)
        # The window of the rule is full at the twentieth.
        self.assertEqual([19], self.policy.alarms)
        self.assertEqual([19 + 159, 19 + 319], self.policy.changes)

    def test_the_newest_of_the_old_points_stay(self):
        drive(self.policy, [1.5] * 400)
        (X, y), (again, _last) = Constant.fits
        self.assertEqual(300, len(y))
        np.testing.assert_array_equal(np.arange(160.0, 300.0), y[:140])
        np.testing.assert_array_equal(np.arange(19.0, 179.0), X[140:, 0])
        # Then 320 are new, more than there were: none of the old is left, all of the new are.
        np.testing.assert_array_equal(np.arange(19.0, 339.0), again[:, 0])

    def test_without_an_alarm_nothing_changes(self):
        drive(self.policy, [0.5] * 400)
        self.assertEqual(([], [], []), (self.policy.alarms, self.policy.changes, Constant.fits))


class TestOurs(unittest.TestCase):

    def drive(self, exponents, ratio):
        """Drive it through a stream in which another model errs by a ratio of the present one."""
        self.asked = []

        def adapt(first, X, y):
            self.asked.append([int(place) for place in X[:, 0]])
            return adaptation.Adapted(Constant(9.0), adaptation.RESCALED, {
                adaptation.KEPT: 1.0, adaptation.RESCALED: ratio})
        policy = replay.Ours(Constant(), RESIDUALS)
        with mock.patch.object(adaptation, 'adapt', adapt):  # noqa: H210
            drive(policy, exponents)
        return policy

    def test_it_asks_every_five_points_of_the_last_forty(self):
        policy = self.drive([0.5] * 61, 0.9)
        self.assertEqual([], policy.changes)
        self.assertEqual([39, 44, 49, 54, 59], [rows[-1] for rows in self.asked])
        self.assertEqual({40}, {len(rows) for rows in self.asked})

    def test_another_model_must_be_far_better(self):
        self.assertEqual([], self.drive([0.5] * 60, replay.CONVINCING).changes)
        policy = self.drive([0.5] * 60, replay.CONVINCING - 0.01)
        self.assertEqual(39, policy.changes[0])
        self.assertEqual(9.0, policy.model.level)

    def test_after_the_first_change_it_looks_ever_more_seldom_at_all_points_since(self):
        policy = self.drive([0.5] * 300, 0.1)
        steps = (np.array(policy.changes) - policy.changes[0]) // replay.STEP + 1
        self.assertEqual([1, *(one for one in replay._OCCASIONS if one <= steps[-1])],
                         steps.tolist())
        self.assertEqual(list(range(0, 45)), self.asked[1])

    def test_after_an_alarm_fewer_points_are_asked(self):
        policy = self.drive([3.0] * 39, 0.9)
        self.assertTrue(policy.alarms)
        self.assertLess(policy.alarms[0], 25)
        self.assertEqual(max(replay.ALARMED, policy.alarms[0] + 1 + (-policy.alarms[0] - 1) % 5),
                         len(self.asked[0]))


class TestWindows(unittest.TestCase):

    def test_both_directions_of_a_window_share_a_number(self):
        names = np.array(['web', 'gen-c050-r0-w0', 'web', 'email'])
        beside = np.array(['gen-c050-r0-w0', 'web', 'email', 'gen-c050-r0-w0'])
        four, one = np.ones((4, 4)), np.ones(4)
        points = measured.Points('made-up', np.array(['background'] * 4), names, beside, four,
                                 four, one, one, four)
        numbers = replay._windows(points)
        self.assertEqual(numbers[0], numbers[1])
        self.assertEqual(3, len(set(numbers)))
