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

from tracon_lab.simulated_cloud import proxlb_rule


class AuditTest(unittest.TestCase):

    def audit(self, host, vcpus, used, capacity=64.0):
        return proxlb_rule.audit('abc', 4, capacity, np.array(host), 10 + np.arange(len(host)),
                                 np.array(vcpus), np.array(used), 1)

    def test_the_smallest_vms_of_the_most_used_host_go_to_the_least_used_one(self):
        # CPU use is 100, 50 and 12.5 %; without the VM of one vCPU 75, 50 and 37.5 %. The rule
        # does not look ahead: the VM of three makes it 0, 50 and 112.5 %.
        moves = self.audit([0, 0, 1, 2], [3, 1, 2, 1], [1.0, 1.0, 1.0, 0.5])
        self.assertEqual([(11, 2), (10, 2)], moves)

    def test_it_ends_when_hosts_are_within_the_limit(self):
        self.assertEqual([(10, 2)], self.audit(
            [0, 0, 1, 2], [1, 1, 1, 1], [0.4, 0.9, 0.9, 0.6]))
        self.assertEqual([], self.audit([0, 1, 2], [1, 1, 1], [0.4, 0.5, 0.6]))

    def test_a_host_without_room_takes_none(self):
        self.assertEqual([], self.audit([0, 0, 1, 2], [2, 2, 4, 4], [1.0, 1.0, 0.5, 0.1], 5.0))
