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

"""Confidence bounds, and how an uncertain newcomer widens them."""

import dataclasses
import math
import unittest

import numpy as np

from tests import synthetic
from tracon_watcher.placement import bounds
from tracon_watcher.placement import encounter
from tracon_watcher.placement import newcomer
from tracon_watcher.prediction import interval

EXPONENT = np.array([0.0, 0.3, 1.0])


def model(quantiles):
    return dataclasses.replace(synthetic.model(), interval=interval.Interval(
        0.1, 0.5, np.array([0.1, 0.5, 0.9]), np.array(quantiles)))


class TestBounds(unittest.TestCase):

    def test_by_hand(self):
        one = model([-2.0, 0.0, 1.0])
        width = 0.1 + 0.5 * EXPONENT
        np.testing.assert_allclose(bounds.lower(one, EXPONENT, 0.0, 0.9),
                                   np.maximum(EXPONENT - 2 * width, 0))
        np.testing.assert_allclose(bounds.upper(one, EXPONENT, 0.0, 0.9), EXPONENT + width)

    def test_a_lower_bound_is_never_above_the_prediction(self):
        one = model([0.2, 0.5, 1.0])
        for confidence in (0.5, 0.7, 0.9):
            np.testing.assert_allclose(bounds.lower(one, EXPONENT, 0.0, confidence), EXPONENT)
            np.testing.assert_allclose(
                bounds.exponent_at(one, EXPONENT, confidence), EXPONENT)

    def test_at_a_confidence_of_half_the_interval_still_counts(self):
        one = model([-2.0, -1.0, 1.0])
        lower = np.maximum(EXPONENT - (0.1 + 0.5 * EXPONENT), 0)
        np.testing.assert_allclose(bounds.lower(one, EXPONENT, 0.0, 0.5), lower)
        np.testing.assert_allclose(bounds.lower(one, EXPONENT, 0.7, 0.5), lower)

    def test_uncertainties_add_up_as_squares(self):
        one = model([-2.0, 0.0, 1.0])
        wide = bounds.upper(one, EXPONENT, 0.2, 0.9)
        np.testing.assert_allclose(
            wide - EXPONENT, np.hypot(0.1 + 0.5 * EXPONENT, 1.2815515655 * 0.2))

    def test_what_has_just_this_lower_bound(self):
        one = model([-0.8, 0.0, 1.0])
        limit = np.array([0.2, 0.7])
        found = bounds.exponent_at(one, limit, 0.9)
        np.testing.assert_allclose(bounds.lower(one, found, 0.0, 0.9), limit)
        self.assertTrue(np.isinf(bounds.exponent_at(model([-2.0, 0, 1]), limit, 0.9)).all())


class TestSpread(unittest.TestCase):

    MEAN = np.array([4.0, 3.0, 0.5, 0.1])

    def spread(self, exponents, deviation):
        profile = newcomer.Profile(self.MEAN, np.array(deviation), 5, 'kind')
        return encounter.spread(exponents, profile, exponents(self.MEAN))

    def test_characteristics_add_up_as_squares(self):
        found = self.spread(lambda vm: np.array([2.0, 0.0]) * vm[0] + vm[1], [0.3, 0.8, 0, 0])
        np.testing.assert_allclose(found, [math.hypot(0.6, 0.8), 0.8])

    def test_the_steeper_side_counts(self):
        # Nothing rises beyond the hull's edge, on which the mean lies.
        found = self.spread(lambda vm: np.minimum(vm[:1], 4.0), [0.5, 0, 0, 0])
        np.testing.assert_allclose(found, [0.5])

    def test_less_than_nothing_is_nothing(self):
        self.assertEqual([3.0], self.spread(lambda vm: np.minimum(vm[1:2], 3.0),
                                            [0, 9.0, 0, 0]).tolist())

    def test_a_certain_newcomer_has_none(self):
        self.assertEqual(0.0, self.spread(lambda vm: vm, [0, 0, 0, 0]))
