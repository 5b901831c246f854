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

import itertools
import json
import math
import pathlib
import unittest

import numpy as np

from tracon_lab.models import linear
from tracon_lab.models import nonlinear
from tracon_lab.models import stepwise

RESULTS = pathlib.Path(__file__).parent / 'results' / 'stepwise.json'


def least_squares_aic(columns, response, active):
    """Plain AIC, with nothing shared with the code under test."""
    design = np.column_stack([np.ones(len(response)), columns[:, active]])
    rest = response - design @ np.linalg.lstsq(design, response, rcond=None)[0]
    return len(response) * math.log(rest @ rest / len(response)) + 2 * (len(active) + 2)


class TestAgainstStatsmodels(unittest.TestCase):
    """The frozen results are those of make_stepwise.py beside them."""

    def test_terms_criterion_and_coefficients(self):
        cases = json.loads(RESULTS.read_text())['cases']
        self.assertEqual(4, len(cases))
        for case in cases:
            with self.subTest(case=case['name'], start=case['start']):
                features, response = np.array(case['features']), np.array(case['response'])
                model = nonlinear.StepwiseQuadratic(start=case['start']).fit(features, response)
                self.assertEqual(case['chosen'], np.flatnonzero(model.chosen_).tolist())
                points = len(response)
                # Their criterion has the constants of the likelihood, and no variance in k.
                constants = points * (math.log(2 * math.pi) + 1) - 2
                self.assertAlmostEqual(case['aic'], model.aic_ + constants, places=6)
                scale = np.prod(model.scale_ ** model.powers_[model.chosen_], axis=1)
                np.testing.assert_allclose(
                    np.append(model.intercept_, model.coef_[model.chosen_] / scale),
                    case['parameters'], rtol=1e-7)


class TestSearch(unittest.TestCase):

    def test_no_neighbour_is_better(self):
        rng = np.random.default_rng(5)
        for points, count in itertools.product((8, 15, 40), (1, 3, 6)):
            for start in ('empty', 'full'):
                with self.subTest(points=points, count=count, start=start):
                    columns = rng.normal(size=(points, count))
                    response = columns[:, 0] + rng.normal(size=points)
                    found = stepwise.search(columns, response, start)
                    active = np.flatnonzero(found.chosen).tolist()
                    own = least_squares_aic(columns, response, active)
                    self.assertAlmostEqual(own, found.aic, places=8)
                    near = [[i for i in active if i != j] for j in active]
                    if len(active) < points - 2:
                        near += [[*active, j] for j in range(count) if j not in active]
                    for other in near:
                        self.assertGreaterEqual(
                            least_squares_aic(columns, response, other), own - 1e-8)

    def test_orthogonal_terms_give_the_best_of_all_subsets(self):
        rng = np.random.default_rng(6)
        columns = np.linalg.qr(np.column_stack([np.ones(30), rng.normal(size=(30, 5))]))[0][:, 1:]
        response = columns @ [3.0, 0.4, 0.0, -1.0, 0.2] + 0.2 * rng.normal(size=30)
        subsets = [list(chosen) for size in range(6)
                   for chosen in itertools.combinations(range(5), size)]
        best = min(subsets, key=lambda chosen: least_squares_aic(columns, response, chosen))
        for start in ('empty', 'full'):
            found = stepwise.search(columns, response, start)
            self.assertEqual(best, np.flatnonzero(found.chosen).tolist())

    def test_collinear_terms_are_never_candidates(self):
        rng = np.random.default_rng(7)
        first, second = rng.random(25), rng.random(25)
        columns = np.column_stack([first, np.full(25, 3.0), second, 2 * first - second, first])
        found = stepwise.search(columns, 5 * first - second + 0.01 * rng.normal(size=25))
        self.assertEqual([True, False, True, False, False], found.identifiable.tolist())
        self.assertEqual([True, False, True, False, False], found.chosen.tolist())
        self.assertEqual(3, found.rank)

    def test_constant_target_leaves_the_terms_of_the_background(self):
        rng = np.random.default_rng(8)
        features = np.hstack([np.tile([800.0, 3.0, 0.4, 0.2], (60, 1)), rng.random((60, 4))])
        model = nonlinear.StepwiseQuadratic().fit(features, 1 + features[:, 4] * features[:, 5])
        self.assertEqual(44, len(model.powers_))
        with_background = model.powers_[:, 4:].sum(axis=1)
        without_target = model.powers_[:, :4].sum(axis=1) == 0
        self.assertEqual((without_target & (with_background > 0)).tolist(),
                         model.identifiable_.tolist())
        self.assertEqual(15, model.rank_)
        self.assertEqual(5, linear.StepwiseLinear().fit(features, features[:, 4]).rank_)

    def test_zero_residual_takes_the_fewest_terms(self):
        rng = np.random.default_rng(9)
        features = rng.random((40, 4))
        for start in ('empty', 'full'):
            model = nonlinear.StepwiseQuadratic(start).fit(
                features, 1 + 2 * features[:, 0] - features[:, 1] * features[:, 2])
            self.assertEqual(2, model.chosen_.sum())
            self.assertTrue(math.isfinite(model.aic_))
        constant = stepwise.search(features, np.full(40, 2.0))
        self.assertFalse(constant.chosen.any())
        self.assertEqual(-math.inf, stepwise.search(features, np.zeros(40)).aic)

    def test_fewer_points_than_terms(self):
        rng = np.random.default_rng(10)
        found = stepwise.search(rng.random((6, 20)), rng.random(6), 'full')
        self.assertLessEqual(found.chosen.sum(), 4)
        self.assertEqual(6, found.rank)

    def test_badly_scaled_terms_do_not_cost_precision(self):
        rng = np.random.default_rng(11)
        first = 1e6 + rng.random(200)
        found = stepwise.search(np.column_stack([first, rng.random(200)]), 3 * (first - 1e6))
        np.testing.assert_allclose(found.coefficients, [3.0, 0.0], rtol=1e-8)

    def test_unknown_start(self):
        with self.assertRaisesRegex(ValueError, "start='middle'"):
            nonlinear.StepwiseQuadratic('middle').fit(np.ones((5, 2)), np.ones(5))
