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

"""Rings of slots, and statistics with weights beside plain ones (synthetic)."""

import unittest

import numpy as np

from tracon_watcher.contention import ring_buffer


class TestSlots(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.ring = ring_buffer.RingBuffer(4, 10.0, 2)
        self.ring.resize(3)

    def add(self, row, at, *values):
        self.ring.add(np.array([row]), np.array([float(at)]), np.array([values]))

    def sums(self, row, at):
        return self.ring.sums(np.array([row]), np.array([float(at)]))[0]

    def test_the_same_slot_adds_up_and_others_do_not(self):
        self.add(0, 101, 1, 2)
        self.add(0, 109, 1, 3)
        self.add(0, 110, 1, 5)
        self.add(1, 101, 7, 7)
        np.testing.assert_array_equal(sorted(self.sums(0, 110)[:, 1]), [0, 0, 5, 5])
        np.testing.assert_array_equal(self.sums(1, 110).sum(axis=0), [7, 7])
        self.assertEqual(0, self.sums(2, 110).sum())

    def test_a_window_ends(self):
        for at in (100, 110, 120, 130, 140):
            self.add(0, at, 1, at)
        # 100 to 109 lies four slots back.
        self.assertEqual([110, 120, 130, 140], sorted(self.sums(0, 149)[:, 1]))
        self.assertEqual([0, 120, 130, 140], sorted(self.sums(0, 150)[:, 1]))
        self.assertEqual(0, self.sums(0, 1e6).sum())

    def test_all_are_put_back_as_a_clock_is(self):
        for at in (100, 110, 120, 135):
            self.add(0, at, 1, at)
            self.add(1, at, 1, at)
        self.ring.put_back(np.array([0]), 52.0)
        # 135 is 83 now, in the slot before that: a part of one is taken for a whole one.
        self.assertEqual([0, 110, 120, 135], sorted(self.sums(0, 83)[:, 1]))
        self.add(0, 90, 1, 7)
        self.assertEqual([0, 7, 120, 135], sorted(self.sums(0, 90)[:, 1]))
        self.assertEqual([100, 110, 120, 135], sorted(self.sums(1, 139)[:, 1]))

    def test_rings_grow_and_are_cleared(self):
        self.add(1, 100, 1, 1)
        before = self.ring.nbytes
        self.ring.resize(6)
        self.assertEqual(2 * before, self.ring.nbytes)
        self.assertEqual(2, self.sums(1, 100).sum())
        self.assertEqual(0, self.sums(5, 100).sum())
        self.ring.clear(np.array([1]))
        self.assertEqual(0, self.sums(1, 100).sum())


class TestWeighted(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(3)

    def test_quantiles_of_equal_weights_are_those_of_hazen(self):
        values = self.rng.normal(size=(50, 9))
        found = ring_buffer.Weighted(values, np.full((50, 9), 0.3))
        for level in (0.0, 0.1, 0.37, 0.5, 0.9, 1.0):
            np.testing.assert_allclose(found.quantile(level), np.quantile(
                values, level, axis=1, method='hazen'), rtol=1e-12)

    def test_a_weight_is_that_many_values(self):
        values = self.rng.normal(size=6)
        counts = np.array([1, 4, 2, 0, 3, 1])
        repeated = np.repeat(values, counts)[None]
        first = ring_buffer.Weighted(values[None], counts[None].astype(float))
        second = ring_buffer.Weighted(repeated, np.ones_like(repeated))
        np.testing.assert_allclose(first.trimmed_mean(), second.trimmed_mean())

    def test_the_trimmed_mean_is_that_of_the_middle(self):
        values = np.array([[5.0, -100, 1, 2, 3, 4, 6, 7, 8, 1e9]])
        found = ring_buffer.Weighted(values, np.ones_like(values))
        np.testing.assert_allclose(found.trimmed_mean(), [np.mean([2, 3, 4, 5, 6, 7])])

    def test_what_weighs_nothing_does_not_count(self):
        values = np.array([[1.0, np.inf, 3.0], [2.0, 7.0, 7.0], [1.0, 1.0, 1.0]])
        weights = np.array([[1.0, 0, 1], [1, 0, 0], [0, 0, 0]])
        found = ring_buffer.Weighted(values, weights)
        np.testing.assert_allclose(found.trimmed_mean(), [2.0, 2.0, np.nan])
        np.testing.assert_allclose(found.quantile(0.1), [1.0, 2.0, np.nan])
        np.testing.assert_allclose(found.deviation()[1:], [0.0, np.nan])

    def test_the_deviation_is_that_of_a_normal_distribution_and_robust(self):
        values = self.rng.normal(0, 2.0, size=(1, 4001))
        values[:, :400] = 1e6
        # A tenth of outliers moves the quantiles a little, not by orders of magnitude.
        found = ring_buffer.Weighted(values, np.ones_like(values)).deviation()
        np.testing.assert_allclose(found, [2.0], rtol=0.25)
