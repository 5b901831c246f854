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

"""What a server has and is limited to, as its flavor says."""

import unittest

from tracon_watcher.inventory import cloud


class ServerTestCase(unittest.TestCase):

    def test_disks_that_are_no_volumes(self):
        for image, ephemeral, swap, count in (
                (True, 0, 0, 1), (True, 20, 512, 3), (False, 0, 0, 0), (False, None, '', 0),
                (False, 0, 512, 1)):
            self.assertEqual(count, cloud.local_disks(image, ephemeral, swap))

    def test_they_are_known_from_a_listing(self):
        found = cloud.server({
            'id': 'a', 'name': 'a', 'tenant_id': 'p', 'OS-EXT-STS:vm_state': 'active',
            'image': {'id': 'i'}, 'flavor': {'original_name': 'm1', 'vcpus': 2, 'ephemeral': 10,
                                             'swap': 0, 'extra_specs': {
                                                 'quota:cpu_quota': '5', 'hw:x': 'y'}}})
        self.assertEqual((2, {'quota:cpu_quota': '5'}), (found.local_disks, found.quotas))

    def test_servers_with_the_same_flavor_are_equal_whatever_was_asked_of_them(self):
        first, second = (cloud.Server('a', 'a', 'p', 'h', 'm1', {'quota:cpu_quota': '5'}, 'i',
                                      'active') for _number in range(2))
        self.assertTrue(first.quotas)
        self.assertEqual(first, second)
