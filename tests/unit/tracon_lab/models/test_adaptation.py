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

"""Drift is noticed, and models follow their host to other storage (synthetic points)."""

import dataclasses
import unittest

import numpy as np

from tests.unit.tracon_lab.models import synthetic
from tracon_lab.models import adaptation
from tracon_watcher import errors

NORMAL = np.array([-1.0, 1.0])


def alarms(detector, values):
    return [place for place, value in enumerate(values) if detector.update(float(value))]


class TestDrift(unittest.TestCase):

    def test_a_shifted_mean(self):
        errors_ = np.random.default_rng(1).normal(size=200)
        errors_[100:] += 3.0
        self.assertTrue(100 <= alarms(adaptation.Drift(NORMAL), errors_)[0] <= 110)

    def test_a_surge_of_variance(self):
        errors_ = np.random.default_rng(1).normal(size=200)
        errors_[100:] *= 6.0
        self.assertTrue(100 <= alarms(adaptation.Drift(NORMAL), errors_)[0] <= 115)

    def test_after_an_alarm_a_new_window_starts(self):
        self.assertEqual([19, 39], alarms(adaptation.Drift(NORMAL), [5.0] * 45))

    def test_what_residuals_had_already_is_no_drift(self):
        residuals = np.random.default_rng(3).normal(5.0, 0.1, 400)
        self.assertEqual([], alarms(adaptation.Drift(residuals), residuals))
        self.assertTrue(alarms(adaptation.Drift(residuals), residuals[:60] + 0.2))

    def test_bad_window(self):
        with self.assertRaisesRegex(errors.InvalidOption, 'window=1'):
            adaptation.Drift(NORMAL, window=1)


class TestReplay(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        old, new = (synthetic.build(seed=seed, backgrounds=120,
                                    names=('cpu', 'randread', 'mixed')) for seed in (0, 1))
        # On the other disk each program that does I/O is slowed down twice as much.
        slower = np.where(np.isfinite(new.iops_ratio), new.slowdown ** 2, new.slowdown)
        cls.old, cls.new = old, dataclasses.replace(new, slowdown=slower)
        cls.found = adaptation.replay(old, cls.new, 'slowdown', 1)

    def test_it_is_noticed_after_the_move_and_refitted_every_160_points_from_there(self):
        self.assertGreaterEqual(self.found.alarm, self.found.before)
        self.assertLess(self.found.alarm, self.found.before + 40)
        self.assertEqual([self.found.alarm + 159, self.found.alarm + 319], self.found.refits)

    def test_before_a_refit_both_policies_are_one(self):
        first = self.found.refits[0]
        stays, adapts = (self.found.errors[name]
                         for name in (adaptation.NOTHING, adaptation.PAPER))
        np.testing.assert_array_equal(stays[:first + 1], adapts[:first + 1])
        last = self.found.refits[-1] + 1
        self.assertLess(adapts[last:].mean(), 0.8 * stays[last:].mean())
        self.assertLess(self.found.settled, stays[self.found.before:].mean())

    def test_a_false_alarm_costs_little(self):
        again = synthetic.build(seed=1, backgrounds=120, names=('cpu', 'randread', 'mixed'))
        found = adaptation.replay(self.old, again, 'slowdown', 1)
        stays, adapts = found.errors.values()
        self.assertAlmostEqual(stays.mean(), adapts.mean(), delta=0.1 * stays.mean())

    def test_too_few_new_points(self):
        few = self.new.take(np.flatnonzero(self.new.kind == 'background')[::3])
        with self.assertRaisesRegex(errors.NotEnoughData, 'at least 161 points.* 120'):
            adaptation.replay(self.old, few, 'slowdown', 1)
