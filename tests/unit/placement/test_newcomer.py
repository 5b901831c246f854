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

"""What is expected of a VM that has not run yet."""

import unittest

import numpy as np

from tracon_watcher.placement import newcomer_profiles

LIGHT, HEAVY = np.array([1.0, 2.0, 0.1, 0.0]), np.array([100.0, 2.0, 0.9, 0.3])


class Expected(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.history = newcomer_profiles.learn(
            np.stack([LIGHT, HEAVY, HEAVY, np.full(4, np.nan)]),
            [('p', 'f', 'i'), ('p', 'f', 'j'), ('q', 'g', 'i'), ('p', 'f', 'k')])

    def test_most_specific_history_first(self):
        for kind, mean, count in (
                (('p', 'f', 'i'), LIGHT, 1), (('r', 'f', 'j'), HEAVY, 1),
                (('r', 'f', 'x'), (LIGHT + HEAVY) / 2, 2),
                (('r', 'x', 'x'), (LIGHT + 2 * HEAVY) / 3, 3)):
            found = newcomer_profiles.expected(self.history, *kind)
            np.testing.assert_allclose(mean, found.mean)
            self.assertEqual(count, found.count)

    def test_unknown_profiles_teach_nothing(self):
        self.assertNotIn('p|f|k', self.history)

    def test_without_history_nothing_is_known(self):
        self.assertFalse(newcomer_profiles.expected({}, 'p', 'f', 'i').known)

    def test_width_is_the_spread_of_the_kind_and_of_its_mean(self):
        found = newcomer_profiles.expected(self.history, 'r', 'f', 'x')
        np.testing.assert_allclose(
            np.std([LIGHT, HEAVY], axis=0, ddof=1) * np.sqrt(1.5), found.deviation)

    def test_a_single_vm_is_as_uncertain_as_its_demand(self):
        np.testing.assert_allclose(LIGHT, newcomer_profiles.expected(
            self.history, 'p', 'f', 'i').deviation)

    def test_own_profile_is_certain(self):
        self.assertFalse(newcomer_profiles.own(LIGHT).deviation.any())
        with self.assertRaisesRegex(ValueError, 'not negative'):
            newcomer_profiles.own(-LIGHT)
