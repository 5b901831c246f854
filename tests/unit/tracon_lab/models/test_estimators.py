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

"""One conformance suite over all estimators."""

import unittest

import numpy as np
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

from tracon_lab.models import linear
from tracon_lab.models import nonlinear
from tracon_lab.models import wmm

ESTIMATORS = (wmm.WeightedMeanRegressor(), linear.StepwiseLinear(),
              linear.StepwiseLinear(start='full'), nonlinear.StepwiseQuadratic(),
              nonlinear.StepwiseQuadratic(start='full'))


class TestConformance(unittest.TestCase):

    def test_scikit_learn_checks(self):
        for estimator in ESTIMATORS:
            count = 0
            for checked, check in estimator_checks_generator(estimator):
                with self.subTest(estimator=repr(estimator), check=str(check)):
                    try:
                        check(checked)
                    except unittest.SkipTest:
                        continue
                    count += 1
            self.assertGreater(count, 40)

    def test_units_do_not_matter(self):
        rng = np.random.default_rng(1)
        features = rng.random((60, 4))
        response = 1 + features[:, 0] + features[:, 1] * features[:, 2]
        units = np.array([1e3, 1.0, 1e-4, 7.0])
        for estimator in ESTIMATORS:
            with self.subTest(estimator=repr(estimator)):
                plain = clone(estimator).fit(features, response).predict(features)
                scaled = clone(estimator).fit(features * units, response).predict(
                    features * units)
                np.testing.assert_allclose(scaled, plain, rtol=1e-7)

    def test_constant_response(self):
        features = np.random.default_rng(2).random((40, 8))
        for estimator in ESTIMATORS:
            with self.subTest(estimator=repr(estimator)):
                predicted = clone(estimator).fit(features, np.full(40, 1.7)).predict(features)
                np.testing.assert_allclose(predicted, 1.7, rtol=1e-12)

    def test_order_of_points_does_not_matter_to_the_stepwise_models(self):
        rng = np.random.default_rng(3)
        features, shuffled = rng.random((50, 3)), rng.permutation(50)
        response = features[:, 0] ** 2 + 0.1 * rng.normal(size=50)
        for estimator in ESTIMATORS:
            with self.subTest(estimator=repr(estimator)):
                one = clone(estimator).fit(features, response).predict(features)
                other = clone(estimator).fit(features[shuffled], response[shuffled])
                np.testing.assert_allclose(other.predict(features), one, rtol=1e-8)
