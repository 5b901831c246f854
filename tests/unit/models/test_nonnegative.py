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

"""The ceiling: rows that were never measured, and that a fit must not carry off."""

import unittest

import numpy as np
import scipy.optimize

from tests.unit.models import synthetic
from tracon_watcher.models import nonnegative
from tracon_watcher.models import pooled

ALPHA = 0.01


class CeilingTestCase(unittest.TestCase):

    def setUp(self):
        rng = np.random.default_rng(5)
        self.features = rng.uniform(0, 1, (60, 6))
        self.response = self.features @ [0.5, 0, 1.0, 2.0, 0, 0.3] + rng.normal(0, 0.05, 60)
        self.capped = rng.uniform(1, 3, (40, 6))
        self.ceiling = float(self.response.max())

    def fit(self, **cap):
        return nonnegative.NonNegativeRidge((ALPHA,)).fit(self.features, self.response, **cap)

    def test_rows_are_kept_from_passing_it(self):
        free, kept = self.fit(), self.fit(capped=self.capped, ceiling=self.ceiling)
        self.assertGreater((self.capped @ free.coef_).max(), 2 * self.ceiling)
        over = np.maximum(self.capped @ kept.coef_ - self.ceiling, 0)
        self.assertLess((over ** 2).sum(), 0.3 * (np.maximum(
            self.capped @ free.coef_ - self.ceiling, 0) ** 2).sum())

    def test_it_finds_the_least_sum_of_squares(self):
        kept = self.fit(capped=self.capped, ceiling=self.ceiling).coef_
        scale = np.sqrt((self.features ** 2).mean(axis=0))

        def loss(values):
            over = np.maximum(self.capped @ values - self.ceiling, 0)
            return (((self.features @ values - self.response) ** 2).sum()
                    + 60 * ALPHA * ((scale * values) ** 2).sum() + (over ** 2).sum())

        # The reference is another method on the same sum: quasi-Newton within bounds.
        best = scipy.optimize.minimize(loss, np.ones(6), bounds=[(0, None)] * 6).fun
        self.assertLess(loss(kept), best * 1.001)
        self.assertGreaterEqual(kept.min(), 0)

    def test_a_ceiling_that_nothing_reaches_changes_nothing(self):
        np.testing.assert_allclose(self.fit().coef_,
                                   self.fit(capped=self.capped, ceiling=1e6).coef_, atol=1e-12)


class CornerTestCase(unittest.TestCase):

    def test_two_heavy_programs_are_predicted_no_worse_than_what_was_seen(self):
        # The generator is light, and one program is ten times as heavy: it is measured beside the
        # generator on either side, never beside itself.
        rng = np.random.default_rng(2)
        light = rng.uniform(0, 1, (120, 8)) * np.tile(synthetic.CAPACITY, 2) * 0.1
        heavy = light[:60].copy()
        heavy[:30, :4] *= 10
        heavy[30:, 4:] *= 10
        columns = np.vstack([light, heavy])
        exponent = 3 * np.tanh((columns / np.tile(synthetic.CAPACITY, 2)).sum(axis=1)) * (
            columns[:, 4:].sum(axis=1) > 0)
        model = pooled.PooledRegressor(synthetic.CAPACITY, (0.003,)).fit(columns, exponent)
        corner = np.concatenate([columns[:30, :4].max(axis=0) * 10,
                                 columns[:30, :4].max(axis=0) * 10])[None, :]
        self.assertLess(float(model.predict(corner)[0]), 1.6 * exponent.max())
