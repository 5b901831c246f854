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

from tracon_lab.simulator import loops


class SharesTest(unittest.TestCase):

    def test_all_are_served_whole_where_there_are_cores(self):
        self.assertEqual([[2, 1, 0]], loops.shares(
            np.array([4.0]), np.array([[2, 1, 0]]), np.ones((1, 3))).tolist())

    def test_vms_not_vcpus_share_evenly(self):
        self.assertEqual([[1, 0, 1]], loops.shares(
            np.array([2.0]), np.array([[8, 0, 1]]), np.ones((1, 3))).tolist())

    def test_by_weight_and_what_one_does_not_take_goes_to_the_others(self):
        found = loops.shares(np.array([4.0, 4.0]), np.array([[4, 4], [1, 4]]),
                             np.array([[3.0, 1.0], [16.0, 1.0]]))
        self.assertEqual([[3, 1], [1, 3]], found.tolist())


class SlowdownsTest(unittest.TestCase):

    def test_two_loops_on_a_core_and_on_two(self):
        found = loops.slowdowns(np.array([1.0, 2.0]), np.ones((2, 2), dtype=int),
                                np.array([[0.9, 0.5]] * 2), np.ones((2, 2)), 20000, 1)
        # The other is found ready for as much of the time as alone: the arrival theorem.
        np.testing.assert_allclose(found, [[1 + 0.9 * 0.5, 1 + 0.5 * 0.9], [1.0, 1.0]],
                                   rtol=0.03)

    def test_no_vm(self):
        found = loops.slowdowns(np.array([1.0]), np.array([[1, 0]]), np.array([[0.5, 0.5]]),
                                np.ones((1, 2)), 3000, 1)
        self.assertAlmostEqual(1.0, found[0, 0], delta=0.1)
        self.assertTrue(np.isnan(found[0, 1]))
