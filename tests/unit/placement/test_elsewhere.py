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

"""I/O of other hosts on a pool never helps, whatever the model (synthetic)."""

import unittest

import hypothesis
from hypothesis import strategies
import numpy as np

from tests import synthetic
from tracon_watcher.placement import elsewhere

SHARES = strategies.lists(strategies.floats(0, 1.5), min_size=2, max_size=2).map(np.array)
ROW = np.zeros(1, dtype=int)


class TestElsewhere(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.wild = synthetic.model(wild=True)
        self.tame = synthetic.model()
        self.top = self.wild.hull.background_maximum[:2]

    def excess(self, model, target, io):
        table = elsewhere.tabulate(model, model.sensitivity(target[None]))
        return elsewhere.excess(model, table, ROW, io[None])[0]

    @hypothesis.given(synthetic.profiles(1.0), SHARES, SHARES)
    @hypothesis.settings(deadline=None)
    def test_more_never_helps(self, target, io, more):
        less = self.excess(self.wild, target, io * self.top)
        self.assertGreaterEqual(self.excess(self.wild, target, (io + more) * self.top),
                                less - 1e-6 * (1 + less))
        self.assertGreaterEqual(less, 0)

    def test_nothing_is_nothing(self):
        self.assertEqual(0.0, self.excess(self.wild, synthetic.CAPACITY, np.zeros(2)))

    def test_at_a_level_it_is_what_the_model_says(self):
        target = synthetic.CAPACITY * 0.3
        for i in elsewhere.LEVELS:
            for j in elsewhere.LEVELS:
                io = np.array([i, j]) * self.top
                neighbour = np.array([*io, 0, 0])
                said = np.expm1(self.tame.exponents(target[None], neighbour[None])[0])
                self.assertAlmostEqual(said, self.excess(self.tame, target, io),
                                       delta=1e-5 * (1 + said))

    def test_between_levels_it_is_their_mean(self):
        target = synthetic.CAPACITY * 0.3
        levels = elsewhere.LEVELS
        for i, j in ((0, 3), (2, 2), (5, 4)):
            corners = [self.excess(self.tame, target, np.array([a, b]) * self.top)
                       for a in levels[i:i + 2] for b in levels[j:j + 2]]
            middle = np.array([levels[i:i + 2].mean(), levels[j:j + 2].mean()]) * self.top
            found = self.excess(self.tame, target, middle)
            self.assertAlmostEqual(np.mean(corners), found, places=6)
            self.assertTrue(min(corners) < found < max(corners))

    def test_beyond_what_was_measured_it_stays(self):
        target = synthetic.CAPACITY * 0.3
        self.assertEqual(self.excess(self.tame, target, self.top),
                         self.excess(self.tame, target, self.top * 50))

    def test_unknown_stays_unknown(self):
        self.assertTrue(np.isnan(self.excess(self.tame, synthetic.CAPACITY,
                                             np.array([np.nan, 3.0]))))
