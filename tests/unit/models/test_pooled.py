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

import dataclasses
import json
import unittest
from unittest import mock

import hypothesis
from hypothesis import strategies
import numpy as np

from tests.unit.models import synthetic
from tracon_watcher import characteristics
from tracon_watcher import errors
from tracon_watcher.models import basis
from tracon_watcher.models import fit
from tracon_watcher.models import points as measured
from tracon_watcher.models import pooled
from tracon_watcher.models import validation
from tracon_watcher.prediction import store

FEW = ('cpu', 'randread', 'seqwrite')
SHARES = strategies.lists(strategies.floats(0, 1), min_size=4, max_size=4).map(np.array)


def models(points):
    return {response: fit.pooled_model(points, response, {'files': []})
            for response in ('slowdown', 'iops_ratio')}


class TestPooled(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.points = synthetic.build(names=FEW)
        cls.models = models(cls.points)

    def test_nobody_beside_is_exactly_one(self):
        targets = np.vstack([self.points.target_alone, [[9e9, 0, 50, 50], [0, 0, 0, 0]]])
        for response, model in self.models.items():
            with self.subTest(response=response):
                self.assertEqual({1.0}, set(model.predict(targets, np.zeros_like(targets))))

    @hypothesis.settings(max_examples=200, deadline=None)
    @hypothesis.given(target=SHARES, background=SHARES, more=SHARES)
    def test_never_falls_inside_the_hull(self, target, background, more):
        for model in self.models.values():
            hull = model.hull
            t = hull.target_minimum + target * (hull.target_maximum - hull.target_minimum)
            b = background * hull.background_maximum
            larger = b + more * (hull.background_maximum - b)
            low, high = model.exponents(np.tile(t, (2, 1)), np.vstack([b, larger]))
            self.assertGreaterEqual(high, low - 1e-9)
            self.assertGreaterEqual(low, 0.0)

    def test_gradient_is_not_negative_wherever_it_is_bounded(self):
        for model in self.models.values():
            self.assertTrue((model.lowest_gradient() >= -1e-9).all())

    def test_regressor_and_stored_form_agree(self):
        for response, model in self.models.items():
            with self.subTest(response=response):
                fitted = self.points.defined(response, measured.FITTED)
                regressor = fit.regressor(fitted, response, measured.capacity(self.points))
                columns = pooled.design(fitted)
                beyond = np.vstack([columns, columns * 1.7])
                np.testing.assert_allclose(
                    model.exponents(beyond[:, :4], beyond[:, 4:]), regressor.predict(beyond),
                    atol=1e-12)

    def test_json_round_trip(self):
        for response, model in self.models.items():
            with self.subTest(response=response):
                again = store.from_content(json.loads(json.dumps(model.to_document())), 'x')
                columns = pooled.design(self.points)
                np.testing.assert_array_equal(again.exponents(columns[:, :4], columns[:, 4:]),
                                              model.exponents(columns[:, :4], columns[:, 4:]))

    def test_pairs_and_repeats_are_never_fitted(self):
        points = synthetic.build(generator=8, backgrounds=10, names=FEW)
        never = np.isin(points.kind, ('pair', 'repeat'))
        self.assertGreater(never.sum(), 40)
        corrupted = dataclasses.replace(
            points,
            slowdown=np.where(never, 1e3, points.slowdown),
            iops_ratio=np.where(never, 1e-3, points.iops_ratio),
            target_alone=np.where(never[:, None], 1e6, points.target_alone),
            background_alone=np.where(never[:, None], 1e6, points.background_alone),
            observed=np.where(never[:, None], 1e6, points.observed))
        found = models(corrupted)
        for response, model in models(points).items():
            with self.subTest(response=response):
                self.assertEqual(model.to_document(), found[response].to_document())

    def test_few_kinks_and_all_terms_identified(self):
        for model in self.models.values():
            self.assertLessEqual(len(model.hinges.weight), pooled.MOST_KINKS)
            self.assertEqual(30, model.training['terms'])
            self.assertEqual(30, model.training['rank'])

    def test_follows_the_synthetic_truth(self):
        nobody = np.zeros((1, characteristics.COUNT))   # which cannot pass any ceiling
        with mock.patch.object(pooled, 'crossed', autospec=True, return_value=(nobody, nobody)):
            free = fit.pooled_model(self.points, 'slowdown', {}).errors['by_background']
        self.assertLess(free['mean'], 0.06)     # of which 0.032 is the noise put in
        # The ceiling costs something where the truth goes beyond what was measured.
        held_out = self.models['slowdown'].errors['by_background']
        self.assertLess(held_out['mean'], 1.03 * free['mean'])

    def test_interval_is_made_for_programs_never_seen(self):
        model = self.models['slowdown']
        other = synthetic.build(seed=7, names=FEW).defined('slowdown', ('background',))
        exponent = model.exponents(other.target_alone, other.background_alone)
        below = other.exponent('slowdown') <= model.interval.bound(exponent, 0.8)
        self.assertGreater(below.mean(), 0.8)  # these programs were seen

    def test_interval_holds_what_it_says(self):
        rng = np.random.default_rng(4)
        predicted = rng.uniform(0.1, 2.0, 4000)
        actual = predicted + (0.02 + 0.2 * predicted) * rng.normal(size=4000)
        width = validation.interval(np.append(predicted, np.nan), np.append(actual, 1.0))
        for level in (0.1, 0.2, 0.8, 0.95):
            held = (actual <= predicted + width.quantile(level)
                    * (width.offset + width.slope * predicted)).mean()
            self.assertAlmostEqual(level, held, delta=0.005)
        nothing = validation.interval(np.empty(0), np.empty(0))
        self.assertEqual(0.0, nothing.quantile(0.8))

    def test_capacity_is_the_most_that_was_seen(self):
        np.testing.assert_allclose(self.models['slowdown'].capacity,
                                   [3300.0, 1800.0, 1.0, 0.65])

    def test_constant_response(self):
        points = synthetic.build(generator=8, backgrounds=10, names=FEW)
        level = dataclasses.replace(points, slowdown=np.ones(len(points)))
        model = fit.pooled_model(level, 'slowdown', {'files': []})
        columns = pooled.design(points)
        np.testing.assert_allclose(model.predict(columns[:, :4], columns[:, 4:]), 1.0)

    def test_too_few_points(self):
        few = self.points.take(np.flatnonzero(self.points.kind == 'generator')[:20])
        with self.assertRaisesRegex(errors.NotEnoughData, 'at least 30 points.*there are 20'):
            fit.pooled_model(few, 'slowdown', {'files': []})


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
