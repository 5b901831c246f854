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

"""The pairwise model: what each neighbour does, and several together (synthetic points)."""

import json
import unittest

import hypothesis
from hypothesis import strategies
import numpy as np

from tests.unit.models import synthetic
from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher.models import pairwise as fitting
from tracon_watcher.models import points as measured
from tracon_watcher.prediction import interval
from tracon_watcher.prediction import pairwise

EXPONENTS = strategies.lists(strategies.floats(0, 3), min_size=1, max_size=8)


class TestTogether(unittest.TestCase):

    def test_whole_cores_add_up(self):
        # each of three neighbours alone would double the time: four on one core
        self.assertAlmostEqual(4.0, np.exp(pairwise.together(np.log([2.0, 2.0, 2.0]))))

    def test_one_neighbour_is_itself(self):
        self.assertAlmostEqual(0.7, pairwise.together(np.array([0.7])))

    def test_nobody_is_nothing(self):
        self.assertEqual(0.0, pairwise.together(np.zeros(5)))

    def test_each_two_of_them_get_in_each_others_way(self):
        alone = np.log([4.0, 9.0])      # excess 3 and 8, g 3/2 and 8/3
        self.assertAlmostEqual(1 + 11 + 0.25 * 2 * 4, np.exp(pairwise.together(alone, 0.25)))

    def test_a_hundred_small_ones_are_little_more_than_their_sum(self):
        alone = np.log1p(np.full(100, 0.004))
        self.assertAlmostEqual(1.4, np.exp(pairwise.together(alone, 0.0)))
        self.assertLess(np.exp(pairwise.together(alone, 0.5)), 1.5)

    @hypothesis.given(EXPONENTS, strategies.floats(0, 3), strategies.floats(0, 1))
    def test_one_more_never_helps(self, exponents, more, crowding):
        before = pairwise.together(np.array(exponents), crowding)
        after = pairwise.together(np.array([*exponents, more]), crowding)
        self.assertGreaterEqual(after, before - 1e-9)
        self.assertGreaterEqual(after, max(more, *exponents) - 1e-9)

    @hypothesis.given(EXPONENTS)
    def test_the_order_does_not_matter(self, exponents):
        np.testing.assert_allclose(pairwise.together(np.array(exponents)),
                                   pairwise.together(np.array(exponents[::-1])), atol=1e-12)


class TestChoice(unittest.TestCase):

    def test_the_ridge_is_chosen_by_the_points_that_are_tested(self):
        # Half of the points are noise alone, for which the strongest ridge is best.
        points = synthetic.build(generator=0, names=('cpu', 'randread', 'mixed'), noise=0.0
                                 ).defined('slowdown', ('background',))
        columns, exponents = measured.design(points), points.exponent('slowdown')
        loud = np.arange(len(points)) % 2 == 0
        noisy = np.where(loud, exponents + np.random.default_rng(1).normal(0, 2.0, len(points)),
                         exponents)
        chosen = []
        for helping in (~loud, loud):
            model = fitting.PairwiseRegressor(measured.capacity(points), alphas=(1e-4, 1e2))
            model.fit(columns, noisy, np.arange(len(points)) % 5, helping)
            chosen.append(model)
        self.assertEqual([1e2, 1e-4], [model.alpha_ for model in chosen])
        # What only adds noise weighs next to nothing.
        self.assertEqual(min(fitting.WEIGHTS), chosen[1].weight_)

    def test_points_that_weigh_next_to_nothing_change_next_to_nothing(self):
        points = synthetic.build(generator=0, names=('cpu', 'randread', 'mixed'), noise=0.0
                                 ).defined('slowdown', ('background',))
        columns, exponents = measured.design(points), points.exponent('slowdown')
        odd = np.arange(len(points)) % 3 == 0
        wrong = np.where(odd, 2.0, exponents)
        found = {}
        for weight in (1.0, 1e-6):
            model = fitting.PairwiseRegressor(measured.capacity(points), (1e-3,), (1.0,),
                                              fitting.COMPRESSIONS[:1], weights=(weight,))
            model.fit(columns, wrong, helping=odd)
            found[weight] = np.abs(model.predict(columns) - exponents)[~odd].mean()
        self.assertLess(found[1e-6], 0.2 * found[1.0])


class TestTerms(unittest.TestCase):

    def test_counts(self):
        self.assertEqual((15, 14), pairwise.SHAPE)
        self.assertEqual(4 + 10 + 16, pairwise.terms(2).sum())
        self.assertEqual(4 + 10 + 16 + 40 + 40, pairwise.terms(3).sum())

    def test_every_term_has_a_neighbour_in_it(self):
        self.assertFalse(pairwise.neighbour_features(np.zeros((1, 4))).any())


class TestRegressor(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        points = synthetic.build(noise=0.0)
        cls.fitted = points.defined('slowdown', measured.FITTED)
        cls.columns, cls.exponents = measured.design(cls.fitted), cls.fitted.exponent('slowdown')
        cls.model = fitting.PairwiseRegressor(synthetic.CAPACITY).fit(cls.columns, cls.exponents)

    def test_a_cubic_is_found_again(self):
        rng = np.random.default_rng(1)
        true = rng.normal(0, 0.02, pairwise.SHAPE) * pairwise.terms(3)
        scaled = self.columns / np.tile(synthetic.CAPACITY, 2)
        exponents = 1 + ((pairwise.target_features(scaled[:, :4]) @ true)
                         * pairwise.neighbour_features(scaled[:, 4:])).sum(axis=1)
        exponents -= 1
        model = fitting.PairwiseRegressor(synthetic.CAPACITY, (1e-12,)).fit(
            self.columns, exponents)
        model.ceiling_ = np.inf
        positive = exponents > 0
        np.testing.assert_allclose(model.predict(self.columns)[positive], exponents[positive],
                                   atol=1e-5)

    def test_nobody_beside_is_exactly_zero(self):
        alone = np.hstack([self.columns[:, :4], np.zeros((len(self.columns), 4))])
        self.assertEqual({0.0}, set(self.model.predict(alone)))

    def test_never_negative_never_above_what_was_measured(self):
        wild = np.random.default_rng(2).uniform(-1e3, 1e6, (500, 8))
        predicted = self.model.predict(np.abs(wild))
        self.assertTrue((predicted >= 0).all())
        self.assertLessEqual(predicted.max(), self.exponents.max())

    def test_it_predicts(self):
        wrong = np.abs(np.expm1(self.model.predict(self.columns) - self.exponents))
        self.assertLess(wrong.mean(), 0.12)

    def test_too_few(self):
        with self.assertRaisesRegex(errors.NotEnoughData, '30 points.*29'):
            fitting.PairwiseRegressor(synthetic.CAPACITY).fit(
                self.columns[:29], self.exponents[:29])

    def stored(self):
        width = interval.Interval(0.1, 0.1, np.array([0.1, 0.9]), np.array([-1.0, 1.0]))
        return self.model.to_model('slowdown', 'synthetic', width, {'files': []}, {})

    def test_regressor_and_stored_form_agree(self):
        beyond = np.vstack([self.columns, self.columns * 1.7])
        np.testing.assert_allclose(self.stored().exponents(beyond[:, :4], beyond[:, 4:]),
                                   self.model.predict(beyond), atol=1e-12)

    def test_one_vm_beside_many(self):
        model = self.stored()
        alone = model.pressure(self.columns[:, 4:]) @ model.sensitivity(self.columns[:1, :4])[0]
        paired = model.exponents(np.tile(self.columns[:1, :4], (len(self.columns), 1)),
                                 self.columns[:, 4:])
        alone = np.log1p(model.excess(alone))
        np.testing.assert_allclose(alone, paired, atol=1e-12)

    def test_it_survives_its_own_document(self):
        content = json.loads(json.dumps(self.stored().to_document()))
        again = pairwise.PairwiseModel.from_fields(document.Fields('m.json', content), content)
        np.testing.assert_array_equal(again.coefficients, self.stored().coefficients)
        content['coefficients'][0][0] += 1.0
        with self.assertRaisesRegex(errors.InvalidDocument, 'checksum'):
            pairwise.PairwiseModel.from_fields(document.Fields('m.json', content), content)

    def test_flags(self):
        model = self.stored()
        top = model.hull.target_maximum
        flags = model.outside(np.vstack([top * 0.5, top * 1.01, top * 9]))
        self.assertEqual([False, True, True], flags.tolist())
        self.assertEqual([False, True], model.far(np.vstack([top * 1.5, top * 9])).tolist())
