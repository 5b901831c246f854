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

"""History of newcomers from profiles that are more or less known."""

import unittest

import numpy as np

from tracon_watcher.placement import newcomer_profiles


def kinds(rng, count):
    return [tuple(f'{name}{rng.integers(0, 3)}' for name in ('p', 'f', 'i'))
            for _ in range(count)]


class TestHistory(unittest.TestCase):

    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(7)
        self.mean = rng.exponential(10.0, (60, 4))
        self.mean[rng.integers(0, 60, 5), 2] = np.nan
        self.kinds = kinds(rng, 60)

    def test_of_exact_profiles_it_is_what_newcomers_learn(self):
        found = newcomer_profiles.learn_profiles(self.mean, np.zeros((60, 4)), self.kinds)
        expected = newcomer_profiles.learn(self.mean, self.kinds)
        self.assertEqual(set(expected), set(found))
        for key, profile in expected.items():
            np.testing.assert_allclose(profile.mean, found[key].mean)
            np.testing.assert_allclose(profile.deviation, found[key].deviation)
            self.assertEqual((profile.count, profile.source),
                             (found[key].count, found[key].source))

    def test_what_varies_within_vms_varies_in_newcomers(self):
        exact = newcomer_profiles.learn_profiles(self.mean, np.zeros((60, 4)), self.kinds)
        vague = newcomer_profiles.learn_profiles(self.mean, np.full((60, 4), 3.0), self.kinds)
        for key, profile in exact.items():
            np.testing.assert_allclose(profile.mean, vague[key].mean)
            np.testing.assert_allclose(np.hypot(profile.deviation, 3.0), vague[key].deviation)

    def test_rare_kinds_can_be_left_to_their_flavor(self):
        found = newcomer_profiles.learn_profiles(self.mean, np.zeros((60, 4)), self.kinds, least=5)
        self.assertTrue(all(profile.count >= 5 for key, profile in found.items() if '|' in key))
        self.assertLessEqual({'f0', 'f1', 'f2', newcomer_profiles.ALL}, set(found))
        self.assertEqual(1, len(newcomer_profiles.learn_profiles(self.mean[:1], self.mean[:1] * 0,
                                                                 [('p', 'f', 'i')],
                                                                 least=9).keys() - {'f'}))

    def test_of_nothing_known_there_is_none(self):
        self.assertEqual({}, newcomer_profiles.learn_profiles(np.full((2, 4), np.nan),
                                                              np.zeros((2, 4)),
                                                              [('p', 'f', 'i')] * 2))
        self.assertEqual({},
                         newcomer_profiles.learn_profiles(np.zeros((0, 4)), np.zeros((0, 4)), []))
