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

"""Limits as operators write them."""

import math
import unittest

from tracon_watcher import errors
from tracon_watcher.placement import limits


class Parse(unittest.TestCase):

    def test_within_range(self):
        self.assertEqual(1.5, limits.parse(limits.MAX_SLOWDOWN, '1.5'))
        self.assertEqual(0.25, limits.parse(limits.MIN_IOPS_RATIO, 0.25))

    def test_ends_of_the_ranges(self):
        for key, bounds in limits.RANGES.items():
            for bound in bounds:
                self.assertEqual(bound, limits.parse(key, str(bound)))

    def test_names_key_value_and_range(self):
        for key, text in ((limits.MAX_SLOWDOWN, 'banana'), (limits.MAX_SLOWDOWN, '0.99'),
                          (limits.MAX_SLOWDOWN, 'nan'), (limits.MAX_SLOWDOWN, 'inf'),
                          (limits.MIN_IOPS_RATIO, '1.01'), (limits.MIN_IOPS_RATIO, '0'),
                          # What Nova's API refuses in a flavor, an aggregate may not state.
                          (limits.MAX_SLOWDOWN, '1e1'), (limits.MAX_SLOWDOWN, '1_5'),
                          (limits.MAX_SLOWDOWN, '１.５'), (limits.MAX_SLOWDOWN, ' 1.5 '),
                          (limits.MAX_SLOWDOWN, '01.5'), (limits.MIN_IOPS_RATIO, '.5'),
                          (limits.MIN_IOPS_RATIO, '1.')):
            with self.assertRaisesRegex(errors.InvalidOption, f"{key}='{text}'.*from"):
                limits.parse(key, text)

    def test_invalid_stored_value_counts_as_unset(self):
        faults = []
        found = limits.from_metadata({'tracon:max_slowdown': 'banana',
                                      'tracon:min_iops_ratio': '0.5', 'other': 'x'}, faults)
        self.assertEqual(limits.Limits(math.inf, 0.5), found)
        self.assertEqual(1, len(faults))
        self.assertIn('banana', faults[0])


class OfFlavor(unittest.TestCase):

    def test_background_work_has_no_limits(self):
        found = limits.of_flavor({'tracon:class': 'background', 'tracon:max_slowdown': '1.5'})
        self.assertEqual(limits.BACKGROUND, found)
        self.assertEqual(limits.BACKGROUND, found.or_else(limits.Limits(2.0, 0.5)))

    def test_without_a_class_it_is_in_the_foreground(self):
        found = limits.of_flavor({'tracon:max_slowdown': '1.5'})
        self.assertEqual(limits.Limits(1.5), found)
        self.assertFalse(found.background)

    def test_another_class_counts_as_unset_and_is_told(self):
        faults = []
        found = limits.of_flavor({'tracon:class': 'batch', 'tracon:max_slowdown': '1.5'}, faults)
        self.assertEqual(limits.Limits(1.5), found)
        self.assertEqual(1, len(faults))
        self.assertIn("tracon:class='batch'", faults[0])
        self.assertIn('expected background, or no such key', faults[0])

    def test_an_aggregate_states_no_class(self):
        self.assertEqual(limits.NONE, limits.from_metadata({'tracon:class': 'background'}))


class Combine(unittest.TestCase):

    def test_strictest_aggregate_wins(self):
        self.assertEqual(limits.Limits(1.5, 0.8), limits.strictest(
            [limits.Limits(2.0, 0.8), limits.Limits(1.5, 0.2), limits.NONE]))
        self.assertEqual(limits.NONE, limits.strictest([]))

    def test_each_limit_falls_back_on_its_own(self):
        flavor, aggregate = limits.Limits(2.0), limits.Limits(1.5, 0.5)
        self.assertEqual(limits.Limits(2.0, 0.5), flavor.or_else(aggregate))
        self.assertEqual(aggregate, limits.NONE.or_else(aggregate))
