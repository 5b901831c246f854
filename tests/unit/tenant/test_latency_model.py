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

"""Eq. 4.1: fitted, it is the curve that measurements lie on; inverted, it tells hidden load."""

import unittest

import numpy as np

from tracon_watcher import errors
from tracon_watcher.tenant import latency_model


class TestFit(unittest.TestCase):

    def setUp(self):
        self.rng = np.random.default_rng(4)

    def test_plain_regression_where_it_rises(self):
        loads = np.linspace(0.1, 0.9, 40)
        for coefficients in ((2.0, 3.0, 0.5), (9.0, -0.4, 0.6), (-1.0, 4.0, 0.0)):
            with self.subTest(coefficients):
                exact = latency_model.latency(loads, coefficients)
                np.testing.assert_allclose(latency_model.fit(loads, exact), coefficients,
                                           atol=1e-9)
                noisy = exact + self.rng.normal(0, 0.05, 40)
                terms = np.column_stack([(1 - loads) ** -k for k in range(3)])
                plain = np.linalg.lstsq(terms, noisy, rcond=None)[0]
                if plain[2] >= 0:
                    np.testing.assert_allclose(latency_model.fit(loads, noisy), plain, atol=1e-9)

    def test_never_falls(self):
        rose = 0
        for _ in range(300):
            loads = self.rng.uniform(0, 0.95, 5)
            noisy = 5 + 2 / (1 - loads) + self.rng.normal(0, 8, 5)
            try:
                found = latency_model.fit(loads, noisy)
            except errors.InvalidOption:
                continue
            rose += 1
            curve = latency_model.latency(np.linspace(0, 0.99, 200), found)
            self.assertTrue((np.diff(curve) >= -1e-9).all(), found)
        self.assertGreater(rose, 200)

    def test_unknown_is_left_out(self):
        loads = np.array([0.1, 0.4, np.nan, 0.6, 0.8])
        latencies = latency_model.latency(loads, (1.0, 2.0, 3.0))
        latencies[1] = np.nan
        np.testing.assert_allclose(latency_model.fit(loads, latencies), (1.0, 2.0, 3.0))

    def test_what_cannot_be_fitted(self):
        for loads, latencies, words in (
                ([0.1, 0.2, 0.2], [1, 2, 3], 'at least 3 points, and there are 2'),
                ([0.1, 0.2, 1.0], [1, 2, 3], 'load=1.0: expected at least 0 and less than 1'),
                ([0.1, 0.5, 0.9], [3, 2, 1], 'measure at higher loads')):
            with self.subTest(words), self.assertRaisesRegex(errors.TraconError, words):
                latency_model.fit(np.array(loads), np.array(latencies, dtype=float))


class TestBackgroundLoad(unittest.TestCase):

    def test_inverts_the_curve(self):
        rng = np.random.default_rng(5)
        own, hidden = rng.uniform(0, 0.5, (2, 1000))
        for coefficients in (latency_model.MM1, (2.0, 3.0, 0.5), (9.0, -0.4, 0.6), (0.0, 0.0, 2.0),
                             (1.0, 1.0, 1e-13)):
            with self.subTest(coefficients):
                tail = latency_model.latency(own + hidden, coefficients)
                np.testing.assert_allclose(
                    latency_model.background_load(tail, own, coefficients), hidden, atol=1e-9)

    def test_no_load_explains_a_latency_below_the_curve(self):
        for coefficients in (latency_model.MM1, (9.0, -0.4, 0.6), (0.0, 0.0, 2.0)):
            np.testing.assert_array_equal([0.0, 0.0], latency_model.background_load(
                np.array([-5.0, 0.0]), 0.1, coefficients))

    def test_unknown_stays_unknown(self):
        self.assertTrue(np.isnan(latency_model.background_load(np.nan, 0.1, (1.0, 2.0, 3.0))))
        self.assertTrue(np.isnan(latency_model.latency(np.nan, (1.0, 2.0, 3.0))))

    def test_a_saturated_worker_has_no_finite_latency(self):
        np.testing.assert_array_equal(
            [np.inf, np.inf], latency_model.latency(np.array([1.0, 1.5]), (9.0, -0.4, 0.6)))
