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

"""Placements worked by hand, and Druid's cost against scipy's quadrature."""

import unittest

import numpy as np
from scipy import integrate

from tracon_watcher import errors
from tracon_watcher.tenant import segment_placement


def held(*workers, segments):
    """Return who holds what, from the indices of each worker's segments."""
    found = np.zeros((len(workers), segments), dtype=bool)
    for worker, own in enumerate(workers):
        found[worker, list(own)] = True
    return found


class TestEasy(unittest.TestCase):

    LOADS = np.array([5.0, 3.0, 1.0, 4.0, 2.0, 9.0])
    TABLES = np.zeros(6, dtype=int)

    def test_by_hand(self):
        """The costs are 5, 4 and 0; after 4 is placed 5, 4 and 4; after 2 is placed 5, 6 and 4."""
        state = held([0], [1, 2], [], segments=6)
        found = segment_placement.place([3, 4, 5], state,
                                        segment_placement.easy(self.LOADS, self.TABLES))
        self.assertEqual([[2], [1], [2]], found.tolist())
        self.assertEqual([[0], [1, 2, 4], [3, 5]], [np.flatnonzero(row).tolist() for row in state])

    def test_replicas_are_on_different_workers(self):
        rng = np.random.default_rng(65)
        loads = rng.uniform(0.0, 1.0, 40)
        for replicas in (1, 2, 5):
            state = np.zeros((5, 40), dtype=bool)
            found = segment_placement.place(
                range(40), state, segment_placement.easy(loads, np.zeros(40, int)), replicas)
            self.assertTrue((state.sum(axis=0) == replicas).all())
            self.assertTrue(all(len(set(row)) == replicas for row in found.tolist()))

    def test_small_costs_are_told_apart(self):
        state = held([0], [1], [2], segments=6)
        cost = segment_placement.easy(1e-15 * self.LOADS, self.TABLES)
        self.assertEqual([[2], [1]], segment_placement.place([4, 3], state, cost).tolist())

    def test_a_table_weight_spreads_a_table(self):
        """Worker 0 has the other table's 5, worker 1 has 3 of the newcomer's table."""
        tables = np.array([1, 0, 0, 0, 0, 0])
        for weight, chosen in ((0.0, 1), (1.0, 0)):
            cost = segment_placement.easy(self.LOADS, tables, weight)
            with self.subTest(weight=weight):
                self.assertEqual([[chosen]], segment_placement.place(
                    [3], held([0], [1], segments=6), cost).tolist())

    def test_too_few_workers(self):
        cost = segment_placement.easy(self.LOADS, self.TABLES)
        for replicas in (0, 3):
            with self.assertRaisesRegex(errors.InvalidOption, 'expected 1 to 2 workers'):
                segment_placement.place([0], held([], [], segments=6), cost, replicas)


class TestBaselines(unittest.TestCase):

    def test_count_is_of_the_table(self):
        """Worker 0 has three segments of table 0, worker 1 has one of table 1."""
        tables = np.array([0, 0, 0, 1, 0, 1])
        found = segment_placement.place([4, 5], held([0, 1, 2], [3], segments=6),
                                        segment_placement.count(tables))
        self.assertEqual([[1], [0]], found.tolist())

    def test_a_new_worker_gets_what_is_new(self):
        state = held(range(5), range(5, 10), [], segments=15)
        found = segment_placement.place(range(10, 15), state,
                                        segment_placement.count(np.zeros(15, int)))
        self.assertEqual([[2]] * 5, found.tolist())

    def test_spread_is_the_double_integral(self):
        rng = np.random.default_rng(66)
        starts = rng.integers(0, 6, 8).astype(float)
        ends = starts + rng.uniform(0.3, 2.0, 8)
        tables = np.array([0, 1] * 4)
        cost = segment_placement.spread(starts, ends, tables, 0.7)
        for other in range(1, 8):
            found = cost(0, held([other], segments=8))[0]

            # The integrand has a kink where y = x: there the inner integral is cut in two.
            def inner(x, low=starts[other], high=ends[other]):
                middle = min(max(x, low), high)
                return sum(integrate.quad(lambda y: np.exp(-0.7 * abs(x - y)), *part)[0]
                           for part in ((low, middle), (middle, high)))
            points = [one for one in (starts[other], ends[other]) if starts[0] < one < ends[0]]
            expected = integrate.quad(inner, starts[0], ends[0], points=points or None)[0]
            self.assertAlmostEqual(expected * (2 if tables[other] == 0 else 1), found, 9)

    def test_spread_keeps_neighbours_apart(self):
        starts = np.array([0.0, 10.0, 11.0])
        found = segment_placement.place([2], held([0], [1], segments=3), segment_placement.spread(
            starts, starts + 1.0, np.zeros(3, int)))
        self.assertEqual([[0]], found.tolist())
