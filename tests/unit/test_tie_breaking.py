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

"""Choices that rounding does not change."""

import unittest

import hypothesis
from hypothesis.extra import numpy as arrays
from hypothesis import strategies
import numpy as np

from tracon_watcher import tie_breaking

NAN, INF = float('nan'), float('inf')
#: Numbers of which some are equal and the others far apart.
DISTINCT = strategies.sampled_from([-INF, -1e300, -7.0, -1.0, -1e-3, 0.0, 1e-3, 1.0, 7.0, 1e300,
                                    INF])
ROUNDING = strategies.floats(-1e-13, 1e-13)
ANY = arrays.arrays(np.float64, strategies.integers(0, 30), elements=strategies.floats(width=64))


@strategies.composite
def nearly(draw):
    """Values, and the same after other roundings."""
    values = np.array(draw(strategies.lists(DISTINCT, min_size=1, max_size=30)))
    changes = np.array(draw(strategies.lists(ROUNDING, min_size=len(values),
                                             max_size=len(values))))
    with np.errstate(invalid='ignore'):
        return values, np.where(values == 0, changes, values * (1 + changes))


class TestChoices(unittest.TestCase):

    def test_of_equals_the_first(self):
        self.assertEqual(1, tie_breaking.argmin([2.0, 1.0 + 1e-13, 1.0]))
        self.assertEqual(1, tie_breaking.argmax([1.0, 2.0 - 1e-13, 2.0]))
        self.assertEqual(0, tie_breaking.argmin([1e6 + 1e-5, 1e6]))
        self.assertEqual([1, 2, 0], tie_breaking.argsort([2.0, 1.0 + 1e-13, 1.0]).tolist())
        self.assertEqual([1, 0, 0], tie_breaking.ranks([2.0, 1.0 + 1e-13, 1.0]).tolist())

    def test_what_differs_is_told_apart(self):
        self.assertEqual(2, tie_breaking.argmin([2.0, 1.0 + 1e-8, 1.0]))
        self.assertEqual(2, tie_breaking.argmax([1.0, 2.0 - 1e-8, 2.0]))
        self.assertEqual([2, 1, 0], tie_breaking.argsort([2.0, 1.0 + 1e-8, 1.0]).tolist())
        self.assertEqual(1, tie_breaking.argmin([1.2, 1.0], tolerance=0.1))
        self.assertEqual(0, tie_breaking.argmin([1.2, 1.0], tolerance=0.3))

    def test_nan_is_chosen_where_there_is_nothing_else(self):
        for values, least, greatest in (([NAN, 1.0, 0.0], 2, 1), ([NAN, INF], 1, 1),
                                        ([NAN, -INF], 1, 1), ([NAN, NAN], 0, 0)):
            self.assertEqual((least, greatest), (tie_breaking.argmin(values),
                                                 tie_breaking.argmax(values)), values)
        self.assertEqual([1, 2, 0], tie_breaking.argsort([NAN, -INF, INF]).tolist())
        self.assertEqual([2, 0, 1, 2], tie_breaking.ranks([NAN, -INF, INF, NAN]).tolist())

    def test_infinities_equal_themselves_alone(self):
        self.assertEqual(2, tie_breaking.argmin([INF, 1e308, -INF, -INF]))
        self.assertEqual(1, tie_breaking.argmax([1e308, INF, INF]))
        self.assertEqual([0, 1, 2, 2], tie_breaking.ranks([-INF, 1e308, INF, INF]).tolist())

    def test_a_chain_of_equals_is_equal(self):
        chain = [3e-10 * number for number in (4, 2, 0, 3, 1)]
        self.assertEqual([0] * 5, tie_breaking.ranks(chain).tolist())
        self.assertEqual(list(range(5)), tie_breaking.argsort(chain).tolist())
        # The least is compared with each value, not with its neighbour.
        self.assertEqual(1, tie_breaking.argmin(chain))

    def test_nothing_to_choose_from(self):
        self.assertEqual([], tie_breaking.argsort([]).tolist())
        self.assertEqual([], tie_breaking.ranks([]).tolist())
        for choose in (tie_breaking.argmin, tie_breaking.argmax):
            with self.assertRaisesRegex(ValueError, 'not none'):
                choose([])
            with self.assertRaisesRegex(ValueError, r'not shape \(1, 2\)'):
                choose([[1.0, 2.0]])

    def test_less_by_more_than_rounding(self):
        self.assertTrue(tie_breaking.less(1.0, 2.0))
        self.assertFalse(tie_breaking.less(1.0, 1.0 + 1e-13))
        self.assertFalse(tie_breaking.less(1.0 + 1e-13, 1.0))
        self.assertEqual([True, False, False, False, True, False], tie_breaking.less(
            [-INF, INF, NAN, 1.0, 1.0, 2.0], [0.0, INF, 1.0, NAN, INF, 1.0]).tolist())

    @hypothesis.given(nearly())
    def test_other_roundings_make_no_other_choice(self, both):
        values, rounded = both
        for choose in (tie_breaking.argmin, tie_breaking.argmax, tie_breaking.argsort,
                       tie_breaking.ranks):
            np.testing.assert_array_equal(choose(values), choose(rounded))
        self.assertFalse(tie_breaking.less(values, rounded).any())
        np.testing.assert_array_equal(tie_breaking.argsort(values),
                                      np.argsort(values, kind='stable'))
        self.assertEqual(np.argmin(values), tie_breaking.argmin(rounded))
        self.assertEqual(np.argmax(values), tie_breaking.argmax(rounded))

    @hypothesis.given(ANY, strategies.randoms(use_true_random=False))
    def test_the_order_of_candidates_decides_among_equals_alone(self, values, random):
        order = np.array(random.sample(range(len(values)), len(values)), dtype=np.intp)
        ranks = tie_breaking.ranks(values)
        np.testing.assert_array_equal(ranks[order], tie_breaking.ranks(values[order]))
        found = tie_breaking.argsort(values)
        self.assertEqual(list(range(len(values))), sorted(found.tolist()))
        self.assertTrue((np.diff(ranks[found]) >= 0).all())
        self.assertTrue((np.diff(found)[np.diff(ranks[found]) == 0] > 0).all())
        if not np.isnan(values).all():
            chosen = tie_breaking.argmin(values)
            self.assertFalse(tie_breaking.less(np.nanmin(values), values[chosen]))
            self.assertTrue(tie_breaking.less(np.nanmin(values), values[:chosen])[
                ~np.isnan(values[:chosen])].all())


class TestRounded(unittest.TestCase):

    def test_significant_digits(self):
        for value, digits, expected in (
                (1 / 3, 10, 0.3333333333), (-2 / 3, 3, -0.667), (123456.0, 2, 120000.0),
                (99.96, 3, 100.0), (1000.0, 10, 1000.0), (0.1, 10, 0.1), (0.0, 10, 0.0),
                (1.5e300, 1, 2e300), (1.25e-200, 10, 1.25e-200)):
            self.assertEqual(expected, tie_breaking.rounded(value, digits), value)

    def test_other_roundings_give_the_same(self):
        for value in (1.0, 0.1, 1000.0, 2.5e-7, 3e200, 4e-200):
            self.assertEqual(tie_breaking.rounded(value),
                             tie_breaking.rounded(value * (1 + 1e-13)), value)
            self.assertEqual(tie_breaking.rounded(value),
                             tie_breaking.rounded(value * (1 - 1e-13)), value)

    def test_what_is_no_number_and_what_has_no_such_digits(self):
        found = tie_breaking.rounded([[NAN, INF], [-INF, -0.0]])
        np.testing.assert_array_equal([[NAN, INF], [-INF, 0.0]], found)
        most = np.finfo(np.float64).max
        self.assertEqual([-most, most], tie_breaking.rounded([-most, most]).tolist())
        self.assertEqual([0.0, 0.0], tie_breaking.rounded([5e-324, -1e-310]).tolist())
        self.assertEqual([1e-184, -4e250],
                         tie_breaking.rounded([1.086e-184, -4.1e250], 1).tolist())
        self.assertEqual((0,), tie_breaking.rounded([]).shape)
        for digits in (0, 16):
            with self.assertRaisesRegex(ValueError, f'1 to 15 digits, not {digits}'):
                tie_breaking.rounded(1.0, digits)

    @hypothesis.given(strategies.floats(allow_nan=False, allow_infinity=False),
                      strategies.integers(1, 15))
    def test_what_text_says(self, value, digits):
        found = float(tie_breaking.rounded(value, digits))
        hypothesis.assume(abs(value) > 1e-285)
        self.assertLessEqual(abs(found - value), abs(value) * 0.5001 * 10.0 ** (1 - digits))
        self.assertEqual(found, float(tie_breaking.rounded(found, digits)))
