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

"""Curves against those that made their data, and the closed form against scipy's quadrature."""

import unittest

import numpy as np
from scipy import integrate

from tracon_watcher import errors
from tracon_watcher.tenant import segment_load


def quadrature(model, rows, age):
    """Return eq. 6.4 by scipy; both curves are constant below the least age."""
    def product(x):
        x = max(x, model.youngest)
        return float(model.cpu_per_row(x) * model.scans(x))
    if age >= model.expiry:
        return 0.0
    return rows * integrate.quad(product, age, model.expiry, points=[max(age, model.youngest)],
                                 epsabs=0, epsrel=1e-11, limit=200)[0]


class TestRemainingLoad(unittest.TestCase):

    def test_equals_the_integral(self):
        rng = np.random.default_rng(61)
        for number in range(120):
            alpha, beta = rng.uniform(-3.0, 0.5, 2)
            if number % 3 == 0:
                # Where a term of eq. 6.5 as printed divides by zero.
                alpha = -1.0 - beta if number % 2 else -1.0
            elif number % 3 == 1:
                alpha = -1.0 - beta + rng.uniform(-1e-9, 1e-9)
            youngest = rng.uniform(0.05, 2.0)
            model = segment_load.Model(
                segment_load.Curve(*rng.uniform(0.0, 1e-6, 2), alpha),
                segment_load.Curve(*rng.uniform(0.0, 100.0, 2), beta), youngest,
                youngest + rng.uniform(1.0, 100.0))
            for age in (0.0, youngest / 2, youngest, rng.uniform(youngest, model.expiry)):
                found = float(segment_load.remaining_load(model, 3e4, age))
                self.assertAlmostEqual(1.0, found / quadrature(model, 3e4, age), 9)

    def test_the_terms_of_the_equation(self):
        """Eq. 6.5 as it is printed, by hand: a=1, b=2, alpha=-2, c=3, d=4, beta=-0.5, 1 to 4."""
        found = segment_load.integral(segment_load.Curve(1.0, 2.0, -2.0),
                                      segment_load.Curve(3.0, 4.0, -0.5), 1.0, 4.0)
        # 3 * 3 + 4 * (2 - 1) / 0.5 + 6 * (1 - 1/4) + 8 * (1 - 1/8) / 1.5
        self.assertAlmostEqual(9.0 + 8.0 + 4.5 + 14.0 / 3.0, float(found), 12)

    def test_the_expired_cause_nothing_more(self):
        model = segment_load.Model(segment_load.Curve(1.0, 1.0, -1.0),
                                   segment_load.Curve(1.0, 1.0, -1.0), 1.0, 90.0)
        found = segment_load.remaining_load(model, np.array([10.0, 10.0, 20.0, 10.0]),
                                            np.array([90.0, 120.0, 5.0, 5.0]))
        self.assertEqual([0.0, 0.0], found[:2].tolist())
        self.assertAlmostEqual(2.0, found[2] / found[3])


class TestAttribute(unittest.TestCase):

    def test_by_hand(self):
        """Query 0 used 6 s on 100 and 200 rows, query 1 used 5 s on 50 rows of the second."""
        query, segment = np.array([0, 0, 1]), np.array([0, 1, 1])
        found = segment_load.attribute(np.array([6.0, 5.0]), query, segment,
                                       np.array([100.0, 200.0, 50.0]), 3)
        np.testing.assert_allclose([2.0, 9.0, 0.0], found)

    def test_nothing_is_lost(self):
        rng = np.random.default_rng(62)
        totals, query = rng.uniform(0.0, 9.0, 20), np.repeat(np.arange(20), 3)
        found = segment_load.attribute(totals, query, rng.integers(0, 7, 60),
                                       rng.uniform(1.0, 9.0, 60), 7)
        self.assertAlmostEqual(totals.sum(), found.sum())


class TestFit(unittest.TestCase):

    AGES = np.arange(1.0, 91.0)

    def test_recovers_the_parameters(self):
        rng = np.random.default_rng(63)
        for _ in range(20):
            true = segment_load.Curve(*rng.uniform(0.1, 2.0, 2), rng.uniform(-2.5, -0.1))
            found = segment_load.fit(self.AGES, true(self.AGES), 90.0)
            for name in ('constant', 'factor', 'exponent'):
                self.assertAlmostEqual(1.0, getattr(found, name) / getattr(true, name), 4)

    def test_noise(self):
        rng = np.random.default_rng(64)
        true = segment_load.Curve(0.5, 2.0, -0.7)
        found = segment_load.fit(self.AGES, true(self.AGES) * rng.normal(1.0, 0.03, 90), 90.0)
        self.assertLess(np.abs(found(self.AGES) / true(self.AGES) - 1.0).mean(), 0.02)

    def test_is_never_negative_where_segments_live(self):
        """A popularity that ends at 60 days: a free fit would fall below 0 before 90."""
        values = np.maximum(1.0 - self.AGES / 60.0, 0.0)
        found = segment_load.fit(self.AGES, values, 90.0)(self.AGES)
        self.assertGreater(found.min(), -1e-12)
        self.assertTrue((np.diff(found) <= 0).all())

    def test_constant_and_rising_values(self):
        self.assertAlmostEqual(3.0, float(segment_load.fit(self.AGES, np.full(90, 3.0), 90.0)(50)))
        rising = segment_load.Curve(3.0, -2.0, -0.5)
        np.testing.assert_allclose(segment_load.fit(self.AGES, rising(self.AGES), 90.0)(self.AGES),
                                   rising(self.AGES), rtol=1e-5)

    def test_what_has_no_weight_does_not_count(self):
        true = segment_load.Curve(1.0, 2.0, -0.5)
        values, weights = true(self.AGES), np.ones(90)
        values[50], weights[50], values[60] = 1e3, 0.0, np.nan
        self.assertAlmostEqual(-0.5, segment_load.fit(self.AGES, values, 90.0, weights).exponent,
                               5)

    def test_bad_input(self):
        with self.assertRaisesRegex(errors.NotEnoughData, 'at least 3 points, and there are 2'):
            segment_load.fit(np.array([1.0, 1.0, 2.0]), np.ones(3), 90.0)
        with self.assertRaisesRegex(errors.InvalidOption, 'expiry_days=1.0: expected more than 1'):
            segment_load.fit(self.AGES, self.AGES, 1.0)
