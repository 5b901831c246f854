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
import unittest

import numpy as np

from tests.unit.models import synthetic
from tracon_watcher.models import points as measured
from tracon_watcher.models import validation

KINDS = ('background', 'generator', 'reverse')


class Recorder:
    """Remembers which rows it was fitted to and asked for; a row is known by its columns."""

    def __init__(self, splits):
        self.splits = splits

    def fit(self, columns, exponent):
        self.kept = {tuple(row) for row in columns}
        return self

    def predict(self, columns):
        self.splits.append((self.kept, {tuple(row) for row in columns}))
        return np.zeros(len(columns))


class TestHeldOut(unittest.TestCase):

    def setUp(self):
        super().setUp()
        points = synthetic.build(generator=20, backgrounds=15, reverse=True)
        self.points = points.defined('slowdown', KINDS)
        self.names = {}
        for index, row in enumerate(measured.design(self.points)):
            self.names[tuple(row)] = (self.points.target[index], self.points.background[index],
                                      self.points.kind[index])

    def splits(self, how):
        splits = []
        predicted = how(self.points, 'slowdown', lambda: Recorder(splits))
        np.testing.assert_array_equal(np.isnan(predicted), self.points.kind == 'reverse')
        return [([self.names[row] for row in kept], [self.names[row] for row in tested])
                for kept, tested in splits]

    def test_a_background_held_out_is_on_neither_side(self):
        splits = self.splits(validation.by_background)
        self.assertEqual(5, len(splits))
        for kept, tested in splits:
            out = {background for _, background, _ in tested}
            self.assertFalse(out & {name for row in kept for name in row[:2]})
            self.assertNotIn('reverse', {kind for _, _, kind in tested})
            self.assertIn('reverse', {kind for _, _, kind in kept})

    def test_a_new_program_is_on_neither_side(self):
        splits = self.splits(validation.by_target)
        self.assertGreater(len(splits), 5 * len(synthetic.PROGRAMS))
        for kept, tested in splits:
            out = {name for row in tested for name in row[:2]}
            self.assertFalse(out & {name for row in kept for name in row[:2]})

    def test_too_few_to_fit_are_left_unknown(self):
        few = self.points.take(np.arange(35))
        self.assertTrue(np.isnan(validation.by_target(few, 'slowdown', Recorder)).all())


class TestNoise(unittest.TestCase):

    def test_two_repetitions(self):
        points = synthetic.build(generator=4, backgrounds=4)
        again = points.take(np.flatnonzero(points.kind == 'repeat')[:2])
        again.slowdown[:] = [1.0, 1.2]
        np.testing.assert_allclose(validation.noise(again, 'slowdown'),
                                   np.array([0.1 / 1.0, 0.1 / 1.2]) * np.sqrt(2))


class TestNoiseFloor(unittest.TestCase):

    def test_each_program_counts_once(self):
        points = synthetic.build(names=('cpu', 'mixed'), backgrounds=4)
        points = points.take(points.kind != 'background')
        repeated = np.flatnonzero(points.kind == 'repeat')
        values = np.array(points.slowdown)
        values[repeated] = 1.0
        quiet, loud = (repeated[points.target[repeated] == name] for name in ('cpu', 'mixed'))
        values[loud] = np.where(np.arange(len(loud)) % 2, 0.9, 1.1)
        noisy = dataclasses.replace(points, slowdown=values)
        floor = validation.noise_floor(noisy, 'slowdown')
        self.assertEqual(0.0, validation.noise_floor(noisy, 'slowdown', ['cpu']))
        self.assertAlmostEqual(2 * floor, validation.noise_floor(noisy, 'slowdown', ['mixed']))
        # Repeating the quiet one more often changes nothing.
        again = measured.join([noisy, noisy.take(quiet), noisy.take(quiet)])
        self.assertAlmostEqual(floor, validation.noise_floor(again, 'slowdown'))
        # One that was not repeated has the floor of all.
        self.assertAlmostEqual(floor, validation.noise_floor(noisy, 'slowdown', ['stranger']))
        self.assertTrue(np.isnan(validation.noise_floor(
            noisy.take(noisy.kind != 'repeat'), 'slowdown')))


class TestIntervals(unittest.TestCase):

    def test_a_group_is_not_covered_by_its_own_residuals(self):
        rng = np.random.default_rng(1)
        predicted = rng.uniform(0.5, 1.0, 200)
        actual = predicted + rng.normal(0, 0.02, 200)
        groups = np.repeat(np.arange(4), 50)
        actual[groups == 3] += 1.0
        found = validation.inside_held_out(predicted, actual, groups)
        self.assertEqual(0.0, found[groups == 3].mean())
        self.assertGreater(found[groups == 0].mean(), 0.8)

    def test_what_was_not_predicted_is_neither_in_nor_out(self):
        predicted = np.append(np.linspace(0, 1, 60), np.nan)
        found = validation.inside_held_out(predicted, np.append(np.linspace(0, 1, 60), 0.5),
                                           np.arange(61) % 3)
        self.assertTrue(np.isnan(found[60]))
        self.assertEqual(1.0, found[:60].mean())

    def test_too_few_others_make_no_interval(self):
        values = np.linspace(0, 1, 30)
        groups = np.repeat([0, 1], [25, 5])
        found = validation.inside_held_out(values, values, groups)
        self.assertTrue(np.isnan(found[groups == 0]).all())
        self.assertTrue(np.isfinite(found[groups == 1]).all())

    def test_next_to_no_interference_is_uncertain_as_well(self):
        # The model sees none, and there is some.
        rng = np.random.default_rng(2)
        actual = np.abs(rng.normal(0, 0.1, 400))
        width = validation.interval(np.zeros(400), actual)
        self.assertAlmostEqual(0.9, validation.inside(width, np.zeros(400), actual).mean(),
                               delta=0.06)
