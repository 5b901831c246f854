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

from tracon_watcher.engine import inventory_cache
from tracon_watcher.engine import listener
from tracon_watcher.inventory import cloud


class EndpointTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.reported = []
        self.residency = inventory_cache.InventoryCache()
        self.residency.replace(cloud.Inventory({}, {}, (), {}, 0.0))
        self.endpoint = listener.Endpoint(
            self.residency, lambda event, error: self.reported.append((event, str(error))))

    def tell(self, event, payload):
        self.endpoint.info({}, 'nova', event, {'nova_object.data': payload}, {})

    def test_one_that_cannot_be_read_brings_a_listing_and_is_told_once(self):
        for _again in range(100):
            self.tell('instance.create.end', {'uuid': 'a', 'flavor': 5})
        self.assertEqual(['instance.create.end'], [event for event, _error in self.reported])
        self.assertTrue(self.residency.repair_wanted.is_set())
        self.tell('instance.rebuild.end', {'uuid': 'a', 'flavor': 5})
        self.assertEqual(2, len(self.reported))

    def test_one_without_a_host_is_not_taken_for_a_vm_on_none(self):
        self.tell('instance.create.end', {'uuid': 'a', 'state': 'active', 'image_uuid': 'i'})
        self.assertEqual({}, self.residency.current().servers)
        self.assertTrue(self.residency.repair_wanted.is_set())

    def test_what_is_told_is_bounded(self):
        for number in range(1000):
            self.tell('instance.resize_finish.end', {'uuid': 'a', 'flavor': 5})
            self.endpoint._reported.add((str(number), 'KeyError'))
        self.assertEqual(1, len(self.reported))
        self.tell('instance.rebuild.end', {'uuid': 'a', 'flavor': 5})
        self.assertEqual(1, len(self.reported))

    def test_one_that_can_be_read_arrives(self):
        self.tell('instance.create.end', {'uuid': 'a', 'host': 'h1', 'image_uuid': 'i'})
        self.assertEqual('h1', self.residency.current().servers['a'].host)
        self.assertEqual([], self.reported)
