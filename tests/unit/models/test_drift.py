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

"""Drift is noticed soon, and what is none is not taken for it (synthetic errors)."""

import unittest

import numpy as np

from tracon_watcher import errors
from tracon_watcher.models import drift

WEEK = 7 * 24 * 60


def alarms(detector, values):
    return [place for place, value in enumerate(values) if detector.update(float(value))]


class TestPageHinkley(unittest.TestCase):

    def test_by_hand(self):
        detector = drift.PageHinkley(tolerance=0.5, threshold=2.0)
        # sums of what exceeds the tolerance: 0.5, 1.0, 1.5, 2.0, 2.5
        self.assertEqual([4], alarms(detector, [1.0] * 5))

    def test_both_sides(self):
        self.assertEqual([4], alarms(drift.PageHinkley(0.5, threshold=2.0), [-1.0] * 5))

    def test_a_fall_may_be_no_drift(self):
        detector = drift.PageHinkley(0.5, threshold=2.0, both=False)
        self.assertEqual([], alarms(detector, [-1.0] * 50))
        self.assertEqual([4], alarms(detector, [1.0] * 5))

    def test_a_week_of_chance_is_no_alarm(self):
        for seed in range(10):
            errors_ = np.random.default_rng(seed).normal(size=WEEK)
            self.assertEqual([], alarms(drift.PageHinkley(), errors_))

    def test_a_shift_is_noticed_within_its_delay(self):
        errors_ = np.random.default_rng(1).normal(size=400)
        errors_[200:] += 3.0
        first = alarms(drift.PageHinkley(), errors_)[0]
        self.assertTrue(200 <= first <= 225, first)

    def test_one_outlier_is_none(self):
        self.assertEqual([], alarms(drift.PageHinkley(), [1e6, *[0.0] * 50, -1e6]))

    def test_after_an_alarm_it_starts_afresh(self):
        detector = drift.PageHinkley(0.5, threshold=2.0)
        self.assertEqual([4, 9], alarms(detector, [1.0] * 10))

    def test_it_tells_how_long_ago_the_rise_began(self):
        detector = drift.PageHinkley(0.5, threshold=2.0, both=False)
        lasted = []
        for value in [0.0, 1.0, 0.0, -1.0] + [1.0] * 5 + [1.0, 0.0, -9.0]:
            detector.update(value)
            lasted.append(detector.lasted)
        # The rise of the second is over with the third, that of the fifth ends in an alarm.
        self.assertEqual([0, 1, 0, 0, 1, 2, 3, 4, 5, 1, 0, 0], lasted)
        both = drift.PageHinkley(0.5, threshold=2.0)
        for value in (1.0, -1.0, -1.0):
            both.update(value)
        self.assertEqual(3, both.lasted)

    def test_what_is_not_known_says_nothing(self):
        detector = drift.PageHinkley(tolerance=0.5, threshold=2.0)
        self.assertEqual([6], alarms(detector, [1.0, 1.0, np.nan, 1.0, np.inf, 1.0, 1.0]))
        self.assertTrue(drift.ours(np.full(9, 0.1)).update(0.1) is False)

    def test_bad_parameters(self):
        with self.assertRaisesRegex(errors.InvalidOption, 'threshold=0'):
            drift.PageHinkley(threshold=0)


class TestMeanAndVariance(unittest.TestCase):

    def test_a_shifted_mean(self):
        errors_ = np.random.default_rng(1).normal(size=200)
        errors_[100:] += 3.0
        self.assertTrue(100 <= alarms(drift.MeanAndVariance(), errors_)[0] <= 110)

    def test_a_surge_of_variance(self):
        errors_ = np.random.default_rng(1).normal(size=200)
        errors_[100:] *= 6.0
        self.assertTrue(100 <= alarms(drift.MeanAndVariance(), errors_)[0] <= 115)

    def test_silent_until_its_window_is_full(self):
        self.assertEqual([19], alarms(drift.MeanAndVariance(), [5.0] * 20))

    def test_after_an_alarm_its_window_fills_anew(self):
        self.assertEqual([19, 39], alarms(drift.MeanAndVariance(), [5.0] * 45))

    def test_bad_window(self):
        with self.assertRaisesRegex(errors.InvalidOption, 'window=1'):
            drift.MeanAndVariance(window=1)


class TestWatches(unittest.TestCase):
    """What is watched: the size of errors by ours, their sign as well by the paper's."""

    RESIDUALS = np.random.default_rng(3).normal(0, 0.1, 400)

    def test_errors_that_grow_on_both_sides_are_noticed_by_ours(self):
        wrong = np.tile([0.5, -0.5], 60)
        self.assertTrue(alarms(drift.ours(self.RESIDUALS), wrong))
        self.assertEqual([], alarms(drift.ours(self.RESIDUALS), self.RESIDUALS))

    def test_a_better_model_is_no_alarm(self):
        self.assertEqual([], alarms(drift.ours(self.RESIDUALS), np.zeros(WEEK)))

    def test_the_papers_rule_sees_a_bias(self):
        self.assertTrue(alarms(drift.paper(self.RESIDUALS), self.RESIDUALS[:60] + 0.2))
        # one that the residuals had already is none
        self.assertEqual([], alarms(drift.paper(self.RESIDUALS + 5.0), self.RESIDUALS + 5.0))
