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

"""What production uses, fitted to synthetic points."""

import dataclasses
import json
import unittest

import numpy as np

from tests.unit.models import synthetic
from tracon_watcher import errors
from tracon_watcher.models import fit
from tracon_watcher.models import points as measured
from tracon_watcher.models import validation
from tracon_watcher.prediction import store

FEW = ('cpu', 'randread', 'seqwrite')


def models(points):
    return {response: fit.pairwise_model(points, response, {'files': []})
            for response in ('slowdown', 'iops_ratio')}


class TestFit(unittest.TestCase):

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

    def test_regressor_and_stored_form_agree(self):
        for response, model in self.models.items():
            with self.subTest(response=response):
                fitted = self.points.defined(response, measured.FITTED)
                regressor = fit.regressor(fitted, response, measured.capacity(self.points))
                columns = measured.design(fitted)
                beyond = np.vstack([columns, columns * 1.7])
                np.testing.assert_allclose(
                    model.exponents(beyond[:, :4], beyond[:, 4:]), regressor.predict(beyond),
                    atol=1e-12)

    def test_json_round_trip(self):
        for response, model in self.models.items():
            with self.subTest(response=response):
                again = store.from_content(json.loads(json.dumps(model.to_document())), 'x')
                columns = measured.design(self.points)
                np.testing.assert_array_equal(again.exponents(columns[:, :4], columns[:, 4:]),
                                              model.exponents(columns[:, :4], columns[:, 4:]))

    def test_pairs_and_repeats_are_never_fitted(self):
        points = synthetic.build(generator=8, backgrounds=24, names=FEW)
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

    def test_few_residuals_make_no_interval_that_seems_certain(self):
        with self.assertRaisesRegex(errors.NotEnoughData, 'at least 20 points.* 19'):
            validation.interval(np.append(np.ones(19), np.nan), np.ones(20))
        self.assertGreater(validation.interval(np.ones(20), np.linspace(0.5, 1.5, 20)
                                               ).quantile(0.9), 0.5)

    def test_capacity_is_the_most_that_was_seen(self):
        np.testing.assert_allclose(self.models['slowdown'].capacity,
                                   [3300.0, 1800.0, 1.0, 0.65])

    def test_constant_response(self):
        points = synthetic.build(generator=8, backgrounds=10, names=FEW)
        level = dataclasses.replace(points, slowdown=np.full(len(points), 1.25))
        with self.assertRaisesRegex(
                errors.InvalidDocument, r'synthetic: slowdown is 1\.25: .* in all \d+ points'):
            fit.pairwise_model(level, 'slowdown', {'files': []})

    def test_all_terms_identified(self):
        for model in self.models.values():
            self.assertEqual(110, model.training['terms'])
            self.assertGreaterEqual(model.training['rank'], 100)

    def test_follows_the_synthetic_truth(self):
        held_out = self.models['slowdown'].errors['by_background']
        self.assertLess(held_out['mean'], 0.06)     # of which 0.032 is the noise put in

    def test_too_few_points(self):
        few = self.points.take(np.flatnonzero(self.points.kind == 'generator')[:20])
        with self.assertRaisesRegex(errors.NotEnoughData,
                                    'a model of synthetic, slowdown.*at least 30 points.*20'):
            fit.pairwise_model(few, 'slowdown', {'files': []})
