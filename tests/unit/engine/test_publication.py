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

from hypothesis.extra import numpy as arrays
from hypothesis import given
from hypothesis import strategies as st
import numpy as np

from tracon_watcher.engine import view
from tracon_watcher.placement import cluster
from tracon_watcher.placement import newcomer_profiles

profiles = arrays.arrays(np.float64, (3, 4), elements=st.floats(0, 1e4))


def state(values, uuids=('a', 'b', 'c'), history=None):
    return cluster.build([cluster.Host('h', tuple(
        cluster.Resident(uuid, value) for uuid, value in zip(uuids, values)), 'type')], history)


class SettledTest(unittest.TestCase):

    def test_the_first_is_told_as_it_is(self):
        first = state(np.ones((3, 4)))
        self.assertIs(first, view.deadband(None, first))

    @given(profiles, st.floats(-0.9, 0.9))
    def test_small_changes_are_not_told(self, told, share):
        step = share * np.maximum(view.SHARE * told, view.FLOOR)
        found = view.deadband(state(told), state(np.maximum(told + step, 0)))
        np.testing.assert_array_equal(told, found.profiles)

    @given(profiles, st.integers(0, 3))
    def test_a_change_of_any_characteristic_is_told_with_all_others(self, told, column):
        after = told + 0.5 * view.FLOOR
        after[:, column] = told[:, column] * 1.1 + 2 * view.FLOOR[column]
        found = view.deadband(state(told), state(after))
        np.testing.assert_array_equal(after, found.profiles)

    def test_a_slow_drift_is_told_in_time(self):
        told = state(np.full((3, 4), 100.0))
        values = 100.0
        for _step in range(10):
            values *= 1.01
            told = view.deadband(told, state(np.full((3, 4), values)))
        self.assertLess(abs(told.profiles[0, 0] / values - 1), view.SHARE)
        self.assertGreater(told.profiles[0, 0], 100.0)

    def test_unknown_becomes_known_and_known_unknown(self):
        lost = np.full((3, 4), np.nan)
        known = np.ones((3, 4))
        np.testing.assert_array_equal(
            known, view.deadband(state(lost), state(known)).profiles)
        self.assertTrue(np.isnan(
            view.deadband(state(known), state(lost)).profiles).all())

    def test_vms_are_told_apart_by_uuid(self):
        told = state(np.array([[100.0] * 4, [200.0] * 4, [300.0] * 4]))
        moved = state(np.array([[301.0] * 4, [500.0] * 4, [101.0] * 4]), ('c', 'new', 'a'))
        found = view.deadband(told, moved)
        self.assertEqual([300.0, 500.0, 100.0], found.profiles[:, 0].tolist())

    def test_so_is_what_vms_wait_for_their_own_limits(self):
        def waiting(share, kind=0.5):
            made = state(np.ones((3, 4)), history={'': newcomer_profiles.Profile(
                np.ones(4), np.ones(4), 3, own_wait=kind)})
            return dataclasses.replace(made, own_wait=np.array([share, 0.5, 0.0]))
        for before, after, told in ((0.5, 0.51, 0.5), (0.5, 0.6, 0.6), (0.01, 0.0, 0.0),
                                    (0.0, 0.01, 0.01)):
            found = view.deadband(waiting(before), waiting(after))
            self.assertEqual([told, 0.5, 0.0], found.own_wait.tolist())
        found = view.deadband(waiting(0.5), waiting(0.5, 0.6))
        self.assertEqual(0.6, found.history[''].own_wait)

    def test_so_is_what_they_wait_for_storage(self):
        def waiting(share, kind=0.5):
            made = state(np.ones((3, 4)), history={'': newcomer_profiles.Profile(
                np.ones(4), np.ones(4), 3, storage_wait=kind)})
            return dataclasses.replace(made, storage_wait=np.array([share, 0.5, np.nan]))
        for before, after, told in ((0.5, 0.51, 0.5), (0.5, 0.6, 0.6), (np.nan, 0.1, 0.1),
                                    (0.1, np.nan, np.nan)):
            found = view.deadband(waiting(before), waiting(after))
            np.testing.assert_array_equal([told, 0.5, np.nan], found.storage_wait)
        for before, after in ((0.5, 0.6), (np.nan, 0.6), (0.6, np.nan)):
            found = view.deadband(waiting(0.5, before), waiting(0.5, after))
            np.testing.assert_array_equal(after, found.history[''].storage_wait)
        found = view.deadband(waiting(0.5, 0.5), waiting(0.5, 0.51))
        self.assertEqual(0.5, found.history[''].storage_wait)

    def test_history_too_is_told_when_it_changes(self):
        def history(mean):
            return {'': newcomer_profiles.Profile(np.full(4, mean), np.full(4, 5.0), 3)}
        told = state(np.ones((3, 4)), history=history(100.0))
        same = view.deadband(told, state(np.ones((3, 4)), history=history(101.0)))
        self.assertEqual(100.0, same.history[''].mean[0])
        other = view.deadband(told, state(np.ones((3, 4)), history=history(120.0)))
        self.assertEqual(120.0, other.history[''].mean[0])
