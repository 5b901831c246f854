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

"""Each operation that asks the scheduler: boots may be refused, moves never are.

Every host holds a VM that suffers no neighbour, so that a boot finds none.
"""

from tests.functional.nova import base


class OperationsTest(base.InterferenceTestCase):
    options = {'on_all_refused': 'refuse'}
    hosts = ('host1', 'host2')

    def setUp(self):
        super().setUp()
        self.write_snapshot(*(base.host(name) for name in self.hosts))
        self.server = self.boot(host='host1')
        self.fill(base.resident(self.server['id']))

    def fill(self, *on_host1):
        """Put the VMs that suffer no neighbour, and the server, into the snapshot."""
        self.write_snapshot(
            base.host('host1', base.resident('vm-1', max_slowdown=1.5), *on_host1),
            base.host('host2', base.resident('vm-2', max_slowdown=1.5)))

    def assert_weighed_only(self, *hosts):
        record = self.records()[-1]
        self.assertEqual('weighed only, since it is moved or its host is named',
                         record['outcome'])
        self.assertEqual(self.server['id'], record['instance'])
        self.assertEqual(set(hosts), {one['host'] for one in record['worst']})

    def test_boot_is_refused(self):
        self.boot('ERROR')
        self.assertEqual('refused', self.records()[-1]['outcome'])

    def test_boot_on_a_requested_host_is_not_refused(self):
        self.server = self.boot(host='host2')
        self.assertEqual('host2', self.host_of(self.server))
        self.assert_weighed_only('host2')

    def test_boot_on_a_forced_host_is_not_refused(self):
        self.server = self.boot(availability_zone='nova:host2')
        self.assertEqual('host2', self.host_of(self.server))
        # Nova asks no filter at all then, so nothing is said of it.
        self.assertEqual([], self.records())

    def test_resize(self):
        server = self._resize_server(self.server, self._create_flavor(
            vcpu=2, memory_mb=512, disk=1))
        self.assertEqual('host2', self.host_of(server))
        self.assert_weighed_only('host2')

    def test_resize_to_the_same_host_does_not_count_the_vm_against_itself(self):
        self.flags(allow_resize_to_same_host=True)
        self.write_snapshot(
            base.host('host1', base.resident(self.server['id'], max_slowdown=1.5)),
            base.host('host2', base.resident('vm-2', max_slowdown=1.5)))
        server = self._resize_server(self.server, self.limited_flavor(max_slowdown='1.5'))
        self.assertEqual('host1', self.host_of(server))
        self.assert_weighed_only('host2')

    def test_cold_migration(self):
        server = self._migrate_server(self.server)
        self.assertEqual('host2', self.host_of(server))
        self.assert_weighed_only('host2')

    def test_live_migration(self):
        server = self._live_migrate(self.server)
        self.assertEqual('host2', self.host_of(server))
        self.assert_weighed_only('host2')

    def test_live_migration_to_a_requested_host(self):
        server = self._live_migrate(self.server, host='host2')
        self.assertEqual('host2', self.host_of(server))
        self.assert_weighed_only('host2')

    def test_live_migration_of_a_vm_that_the_snapshot_does_not_show(self):
        self.fill()
        server = self._live_migrate(self.server)
        self.assertEqual('host2', self.host_of(server))
        self.assert_weighed_only('host2')

    def test_evacuation(self):
        self.computes['host1'].stop()
        self.admin_api.put_service_force_down(
            self.admin_api.get_services(binary='nova-compute', host='host1')[0]['id'], True)
        server = self._evacuate_server(self.server)
        self.assertEqual('host2', self.host_of(server))
        self.assert_weighed_only('host2')

    def test_rebuild_with_another_image(self):
        image = 'a2459075-d96c-40d5-893e-577ff92e721c'
        self.assertNotEqual(image, self.server['image']['id'])
        server = self._rebuild_server(self.server, image)
        self.assertEqual('host1', self.host_of(server))
        # The host is not in question, so nothing is judged.
        self.assertEqual([], self.records())

    def test_unshelve(self):
        self.flags(shelved_offload_time=0)
        self._shelve_server(self.server)
        self.fill()
        server = self._unshelve_server(self.server)
        self.assertIn(self.host_of(server), self.hosts)
        self.assert_weighed_only('host1', 'host2')


class MultiCreateTest(base.InterferenceTestCase):
    options = {'on_all_refused': 'refuse'}

    def setUp(self):
        super().setUp()
        self.write_snapshot(*(base.host(name) for name in self.hosts))
        self.flavor = self.limited_flavor(max_slowdown='1.5')

    def create(self, count, state):
        server = self._build_server(networks='none', flavor_id=self.flavor)
        server.update(min_count=count, max_count=count, return_reservation_id=True)
        reservation = self.api.post_server({'server': server})['reservation_id']
        found = self.api.get_servers(search_opts={'reservation_id': reservation})
        self.assertEqual(count, len(found))
        return [self._wait_for_state_change(one, state) for one in found]

    def test_each_instance_knows_of_the_ones_before(self):
        servers = self.create(3, 'ACTIVE')
        self.assertEqual(sorted(self.hosts), sorted(self.host_of(one) for one in servers))

    def test_one_more_than_the_hosts_take_is_refused_and_leaves_nothing_behind(self):
        self.create(4, 'ERROR')
        record = self.records()[-1]
        self.assertEqual('refused', record['outcome'])
        judge, = self.judges()
        self.wait_for(lambda: not judge.pending.all())
        self.create(3, 'ACTIVE')

    def test_a_later_request_knows_of_them_too(self):
        self.create(2, 'ACTIVE')
        self.create(1, 'ACTIVE')
        hosts = [self.host_of(one) for one in self.api.get_servers()]
        self.assertEqual(sorted(self.hosts), sorted(hosts))
        self.create(1, 'ERROR')
