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

"""Sums over co-residents."""

import unittest

import numpy as np

from tracon_watcher import characteristics


class CoResidents(unittest.TestCase):

    PROFILES = np.array([[1.0, 2.0, 0.1, 0.01], [10.0, 20.0, 0.2, 0.02],
                         [100.0, 200.0, 0.3, 0.03]])

    def test_cpu_by_host_io_by_storage(self):
        found = characteristics.co_residents(
            self.PROFILES, np.array([0, 0, 1]), np.array([0, 1, 0]))
        np.testing.assert_allclose(
            [[100, 200, 0.2, 0.02], [0, 0, 0.1, 0.01], [1, 2, 0, 0]], found)

    def test_alone_is_exactly_nothing(self):
        values = np.full((1, 4), 0.1) * 3
        found = characteristics.co_residents(values, np.array([5]), np.array([2]))
        self.assertEqual([[0.0] * 4], found.tolist())

    def test_unknown_storage_is_unknown_io(self):
        found = characteristics.co_residents(self.PROFILES, np.zeros(3, dtype=int),
                                             np.array([0, -1, 0]))
        self.assertTrue(np.isnan(found[1, :2]).all())
        np.testing.assert_allclose([100, 200], found[0, :2])
        self.assertFalse(np.isnan(found[:, 2:]).any())

    def test_unknown_profile_makes_its_domain_unknown_only(self):
        profiles = self.PROFILES.copy()
        profiles[0] = np.nan
        found = characteristics.co_residents(profiles, np.array([0, 0, 1]), np.array([0, 0, 1]))
        self.assertTrue(np.isnan(found[1]).all())
        self.assertEqual([0.0] * 4, found[2].tolist())

    def test_no_vm_at_all(self):
        empty = np.empty(0, dtype=np.intp)
        self.assertEqual((0, 4), characteristics.co_residents(
            np.empty((0, 4)), empty, empty).shape)


class AsCharacteristics(unittest.TestCase):

    def test_one_vm_is_one_row(self):
        self.assertEqual((1, 4), characteristics.as_characteristics([1, 2, 0.5, 0]).shape)

    def test_unknown_stays_unknown(self):
        self.assertTrue(np.isnan(characteristics.as_characteristics([np.nan, 0, 0, 0])[0, 0]))

    def test_faults_name_the_characteristic(self):
        with self.assertRaisesRegex(ValueError, r'guest_cpu of row 0 is -1.0'):
            characteristics.as_characteristics([1, 2, -1, 0])
        with self.assertRaisesRegex(ValueError, 'host_cpu of row 1 is inf'):
            characteristics.as_characteristics([[0, 0, 0, 0], [1, 2, 1, np.inf]])
        with self.assertRaisesRegex(ValueError, '4 columns'):
            characteristics.as_characteristics([1, 2, 3])

    def test_request_rate_and_known(self):
        profiles = np.array([[3.0, 4.0, 1, 1], [np.nan, 1, 1, 1]])
        self.assertEqual(7.0, characteristics.request_rate(profiles)[0])
        self.assertEqual([True, False], characteristics.is_known(profiles).tolist())
