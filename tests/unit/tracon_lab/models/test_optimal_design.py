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

"""Which backgrounds to measure."""

import itertools
import unittest

import numpy as np

from tracon_lab.models import optimal_design

LEVELS = np.array(list(itertools.product(np.arange(5) / 4, repeat=3)))[1:]


class TestDesign(unittest.TestCase):

    def test_distinct_and_as_many_as_asked(self):
        chosen = optimal_design.choose(LEVELS, 25)
        self.assertEqual(25, len(set(chosen.tolist())))
        self.assertEqual(sorted(chosen.tolist()), chosen.tolist())

    def test_it_is_better_than_chance(self):
        best = optimal_design.uncertainty(LEVELS, optimal_design.choose(LEVELS, 25))
        rng = np.random.default_rng(1)
        drawn = [optimal_design.uncertainty(LEVELS, rng.choice(124, 25, replace=False))
                 for _ in range(200)]
        self.assertLess(best, 0.9 * min(drawn))

    def test_no_swap_makes_it_better(self):
        chosen = optimal_design.choose(LEVELS, 12)
        least = optimal_design.uncertainty(LEVELS, chosen)
        for place in range(12):
            for other in set(range(124)) - set(chosen.tolist()):
                swapped = chosen.copy()
                swapped[place] = other
                self.assertGreaterEqual(optimal_design.uncertainty(LEVELS, swapped),
                                        least - 1e-9)

    def test_of_equal_settings_the_one_with_less_cpu_then_with_fewer_writes(self):
        alike = optimal_design.choose(LEVELS, 5, lambda settings: np.ones((len(settings), 1)))
        self.assertEqual([[0, 0.25, 0], [0, 0.5, 0], [0, 0.75, 0], [0, 1, 0], [0, 0, 0.25]],
                         sorted(LEVELS[alike].tolist(), key=lambda one: one[::-1]))
        # To the terms of models, reads and writes are the same.
        for count, terms in ((12, optimal_design.compressed), (30, optimal_design.with_kinks)):
            chosen = LEVELS[optimal_design.choose(LEVELS, count, terms)]
            mirrored = np.array([LEVELS.tolist().index([cpu, writes, reads])
                                 for cpu, reads, writes in chosen])
            self.assertNotEqual(chosen.tolist(), LEVELS[np.sort(mirrored)].tolist())
            self.assertAlmostEqual(
                optimal_design.uncertainty(LEVELS, mirrored, terms),
                optimal_design.uncertainty(LEVELS, optimal_design.choose(LEVELS, count, terms),
                                           terms), places=12)

    def test_the_order_of_settings_does_not_decide(self):
        expected = set(map(tuple, LEVELS[optimal_design.choose(LEVELS, 15)].tolist()))
        order = np.random.default_rng(1).permutation(len(LEVELS))
        found = LEVELS[order][optimal_design.choose(LEVELS[order], 15)]
        self.assertEqual(expected, set(map(tuple, found.tolist())))

    def test_all_when_there_are_no_more(self):
        self.assertEqual(list(range(10)), optimal_design.choose(LEVELS[:10], 25).tolist())

    def test_a_single_one(self):
        self.assertEqual(1, len(optimal_design.choose(LEVELS, 1)))

    def test_twice_the_same(self):
        np.testing.assert_array_equal(optimal_design.choose(LEVELS, 20),
                                      optimal_design.choose(LEVELS, 20))
