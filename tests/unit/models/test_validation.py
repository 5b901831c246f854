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
