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

import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tracon_lab.models import wmm


class TestWeightedMean(unittest.TestCase):

    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(3)
        self.features, self.response = rng.random((50, 8)), rng.random(50)
        self.elsewhere = rng.random((20, 8))

    def test_equals_scikit_learns_own_pieces(self):
        pieces = make_pipeline(StandardScaler(), PCA(4),
                               KNeighborsRegressor(3, weights='distance'))
        model = wmm.WeightedMeanRegressor().fit(self.features, self.response)
        np.testing.assert_allclose(
            model.predict(self.elsewhere),
            pieces.fit(self.features, self.response).predict(self.elsewhere), rtol=1e-9)

    def test_a_training_point_gives_its_own_response(self):
        model = wmm.WeightedMeanRegressor(components=8).fit(self.features, self.response)
        np.testing.assert_allclose(model.predict(self.features), self.response)

    def test_coinciding_points_give_their_mean(self):
        doubled = np.vstack([self.features[:5], self.features[:1]])
        model = wmm.WeightedMeanRegressor(components=8).fit(doubled, [1.0, 5, 5, 5, 5, 2.0])
        self.assertAlmostEqual(1.5, model.predict(self.features[:1])[0])

    def test_axes_along_which_points_differ_by_rounding_count_nothing(self):
        features = np.column_stack([self.features[:, :2], self.features[:, :2].sum(axis=1)])
        model = wmm.WeightedMeanRegressor().fit(features, self.response)
        np.testing.assert_array_equal(0.0, model.components_[2])
        off = features + [0.0, 0.0, 0.3]
        both = wmm.WeightedMeanRegressor(components=2).fit(features, self.response)
        np.testing.assert_allclose(model.predict(off), both.predict(off), rtol=1e-9)

    def test_of_points_that_are_equally_near_the_first_count(self):
        grid = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        model = wmm.WeightedMeanRegressor(neighbours=2).fit(grid, [1.0, 2.0, 6.0, 9.0])
        for nudge in (0.0, 1e-13, -1e-13):
            self.assertAlmostEqual(1.5, model.predict([[0.5 + nudge, 0.5 - nudge]])[0])

    def test_constant_features_count_nothing(self):
        features = self.features.copy()
        features[:, :4] = [2500.0, 0.0, 0.3, 0.1]
        model = wmm.WeightedMeanRegressor().fit(features, self.response)
        moved = features[:3] + np.array([100.0, 5, 1, 1, 0, 0, 0, 0])
        np.testing.assert_allclose(model.predict(moved), model.predict(features[:3]))
