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
from unittest import mock

import hypothesis
from hypothesis import strategies
import numpy as np

from tests.unit.models import synthetic
from tracon_watcher import characteristics
from tracon_watcher import errors
from tracon_watcher.models import basis
from tracon_watcher.models import points as measured
from tracon_watcher.models import pooled
from tracon_watcher.models import validation

SHARES = strategies.lists(strategies.floats(0, 1), min_size=4, max_size=4).map(np.array)


class TestPooled(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        points = synthetic.build(names=('cpu', 'randread', 'seqwrite'))
        cls.fitted = points.defined('slowdown', measured.FITTED)
        cls.columns, cls.exponents = measured.design(cls.fitted), cls.fitted.exponent('slowdown')
        cls.capacity = measured.capacity(points)
        cls.model = pooled.PooledRegressor(cls.capacity).fit(
            cls.columns, cls.exponents, validation.program_folds(cls.fitted))

    def test_nobody_beside_is_exactly_one(self):
        targets = np.vstack([self.fitted.target_alone, [[9e9, 0, 50, 50], [0, 0, 0, 0]]])
        self.assertEqual({0.0}, set(self.model.predict(
            np.hstack([targets, np.zeros_like(targets)]))))

    @hypothesis.settings(max_examples=200, deadline=None)
    @hypothesis.given(target=SHARES, background=SHARES, more=SHARES)
    def test_never_falls_inside_the_hull(self, target, background, more):
        box = self.model.box_
        t = box.low + target * (box.high - box.low)
        b = background * box.top
        larger = b + more * (box.top - b)
        low, high = self.model.predict(np.hstack([np.tile(t, (2, 1)), np.vstack([b, larger])])
                                       * np.tile(self.capacity, 2))
        self.assertGreaterEqual(high, low - 1e-9)
        self.assertGreaterEqual(low, 0.0)

    def test_few_kinks(self):
        self.assertLessEqual(len(self.model.kinks_), pooled.MOST_KINKS)

    def test_follows_the_synthetic_truth(self):
        def held_out():
            predicted = validation.by_background(
                self.fitted, 'slowdown',
                lambda: pooled.PooledRegressor(self.capacity, (self.model.alpha_,)))
            known = np.isfinite(predicted)
            return validation.Errors.of(np.exp(predicted[known]),
                                        self.fitted.slowdown[known]).mean
        nobody = np.zeros((1, characteristics.COUNT))   # which cannot pass any ceiling
        with mock.patch.object(pooled, 'crossed', autospec=True, return_value=(nobody, nobody)):
            free = held_out()
        self.assertLess(free, 0.06)     # of which 0.032 is the noise put in
        # The ceiling costs something where the truth goes beyond what was measured.
        self.assertLess(held_out(), 1.03 * free)

    def test_too_few_points(self):
        with self.assertRaisesRegex(errors.NotEnoughData, 'at least 30 points.*there are 20'):
            pooled.PooledRegressor(self.capacity).fit(self.columns[:20], self.exponents[:20])


class TestAtoms(unittest.TestCase):

    @hypothesis.settings(max_examples=100, deadline=None)
    @hypothesis.given(target=SHARES, background=SHARES, more=SHARES)
    def test_none_falls(self, target, background, more):
        box = basis.Box(np.array([0.0, 0.1, 0, 0.5]), np.array([1.0, 0.1, 0.7, 0.9]),
                        np.array([1.0, 0.8, 0.0, 0.3]))
        kinks = pooled.candidates(np.array([3000.0, 1800, 1.0, 0.7]))
        expand = basis.atoms(box, kinks)
        t = box.low + target * (box.high - box.low)
        b = background * box.top
        larger = b + more * (box.top - b)
        low, high = basis.raw_columns(np.tile(t, (2, 1)), np.vstack([b, larger]), kinks) @ expand
        self.assertTrue((high >= low - 1e-12).all())
        self.assertTrue((low >= -1e-12).all())
