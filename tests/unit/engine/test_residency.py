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

from tracon_watcher.engine import inventory_cache
from tracon_watcher.inventory import cloud


def server(uuid='a', host='h1', state='active', image='image', **more):
    return cloud.Server(uuid, uuid, 'p', host, 'm1.small', {}, image, state, **more)


def inventory(*servers, began_at=100.0):
    return cloud.Inventory({one.uuid: one for one in servers}, {}, (), {}, began_at)


def payload(uuid='a', host='h1', state='active', flavor='m1.small'):
    return {'uuid': uuid, 'display_name': uuid, 'tenant_id': 'p', 'host': host, 'state': state,
            'image_uuid': 'image', 'flavor': {'nova_object.data': {
                'name': flavor, 'extra_specs': {}}}}


class ResidencyTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.moved = []
        self.residency = inventory_cache.InventoryCache(lambda vm,
                                                        host: self.moved.append((vm, host)))

    def host(self, uuid='a'):
        found = self.residency.current().servers.get(uuid)
        return None if found is None else found.host

    def test_nothing_is_known_before_the_first_listing(self):
        self.assertIsNone(self.residency.current())
        self.assertEqual(0, self.residency.replace(inventory(server())))
        self.assertEqual('h1', self.host())

    def test_what_is_forgotten_is_neither_kept_nor_compared(self):
        self.residency.replace(inventory(server('a', image=''), server('b')))
        self.residency.tell('instance.volume_attach.end', payload('a'), 101)
        self.residency.tell('instance.delete.end', payload('b'), 101)
        self.residency.forget()
        self.assertIsNone(self.residency.current())
        self.assertEqual({}, self.residency.questions(20))
        self.assertEqual(0, self.residency.replace(inventory(server('a', 'h2'), server('b'))))
        self.assertEqual(['a', 'b'], list(self.residency.current().servers))
        self.assertEqual([], self.moved)

    def test_a_migration_is_known_when_the_destination_has_it(self):
        self.residency.replace(inventory(server()))
        # Sent by the source while the VM is on its way, with whatever host the record has.
        self.assertFalse(self.residency.tell(
            'instance.live_migration_post.end', payload(host='h9'), 101))
        self.assertEqual('h1', self.host())
        self.assertTrue(self.residency.tell(
            'instance.live_migration_post_dest.end', payload(host='h2'), 102))
        self.assertEqual('h2', self.host())
        self.assertEqual([('a', 'h2')], self.moved)

    def test_the_clock_is_put_back_and_the_second_listing_counts(self):
        self.residency.replace(inventory(server(), server('b'), began_at=9000.0))
        self.residency.tell('instance.live_migration_post_dest.end', payload(host='h2'), 9001)
        self.residency.tell('instance.delete.end', payload('b'), 9001)
        for began_at, host in ((100.0, 'h2'), (200.0, 'h3')):
            self.residency.replace(inventory(server('a', 'h3'), server('b'), began_at=began_at))
            self.assertEqual(host, self.host())
        self.assertEqual('h1', self.host('b'))

    def test_states_are_taken_from_every_notification(self):
        self.residency.replace(inventory(server()))
        self.residency.tell('instance.power_off.end', payload(host='h7', state='stopped'), 101)
        self.assertEqual(('h1', 'stopped'), (
            self.host(), self.residency.current().servers['a'].vm_state))

    def resumed(self, *names):
        servers = self.residency.current().servers
        return [servers[name].resumed_at for name in names]

    def test_when_a_vm_runs_again_that_stood_still_is_known(self):
        still = [server('a', state='stopped'), server('b', state='paused'),
                 server('c', state='stopped'), server('d')]
        self.residency.replace(inventory(*still))
        self.residency.tell('instance.power_on.end', payload('a'), 101)
        self.residency.tell('instance.unpause.end', payload('b'), 102)
        self.residency.tell('instance.live_migration_post_dest.end', payload('b', 'h2'), 103)
        self.residency.tell('instance.power_on.error', payload('c', state='error'), 104)
        self.residency.tell('instance.reboot.end', payload('d'), 105)
        self.assertEqual([101, 102, 0, 0], self.resumed(*'abcd'))
        # A listing shows it where no notification told, and keeps what was told.
        for began in (200.0, 300.0):
            self.residency.replace(inventory(server('a'), server('b', 'h2'), server('c'),
                                             server('d'), began_at=began))
            self.assertEqual([101, 102, 0, 0], self.resumed(*'abcd'))
        self.residency.replace(inventory(*still, began_at=400.0))
        self.residency.replace(inventory(*map(server, 'abcd'), began_at=500.0))
        self.assertEqual([500.0, 500.0, 500.0, 0], self.resumed(*'abcd'))

    def test_a_created_vm_appears_when_it_has_spawned(self):
        self.residency.replace(inventory())
        self.residency.tell('instance.create.start', payload(), 101)
        self.assertIsNone(self.host())
        self.residency.tell('instance.create.end', payload(), 102)
        self.assertEqual('h1', self.host())

    def test_a_deleted_vm_does_not_come_back(self):
        self.residency.replace(inventory(server()))
        self.assertTrue(self.residency.tell('instance.delete.end', payload(), 101))
        # Late: it was sent before.
        self.assertFalse(self.residency.tell('instance.create.end', payload(), 102))
        self.assertIsNone(self.host())

    def test_what_was_told_during_a_listing_outlives_it(self):
        self.residency.replace(inventory(server('a'), server('b')))
        self.residency.tell('instance.live_migration_post_dest.end', payload('a', 'h2'), 205)
        self.residency.tell('instance.delete.end', payload('b'), 206)
        # It began at 200, and still shows both as they were.
        self.residency.replace(inventory(server('a'), server('b'), began_at=200.0))
        self.assertEqual('h2', self.host('a'))
        self.assertIsNone(self.host('b'))

    def test_a_listing_repairs_what_was_not_told_and_says_how_much(self):
        self.residency.replace(inventory(server('a'), server('b'), server('c')))
        self.residency.tell('instance.live_migration_post_dest.end', payload('a', 'h2'), 105)
        repaired = self.residency.replace(inventory(
            server('a', 'h3'), server('b', state='stopped'), began_at=200.0))
        self.assertEqual(3, repaired)
        self.assertEqual('h3', self.host('a'))
        self.assertEqual([('a', 'h2'), ('a', 'h3')], self.moved)
        self.assertIsNone(self.host('c'))

    def test_nova_may_go_on_telling_while_moves_are_told_of(self):
        def moved(vm, _host):
            told.append(vm)
            found.tell('instance.create.end', payload(f'new-{vm}'), 205)
        told, found = [], inventory_cache.InventoryCache(moved)
        found.replace(inventory(server('a'), server('b')))
        found.replace(inventory(server('a', 'h2'), server('b', 'h3'), began_at=200.0))
        self.assertEqual(['a', 'b'], told)
        self.assertEqual({'a', 'b', 'new-a', 'new-b'}, set(found.current().servers))

    def test_volumes_survive_a_resize(self):
        self.residency.replace(inventory(server(volumes=('v',))))
        self.residency.tell('instance.resize_finish.end', payload(flavor='m1.large'), 101)
        found = self.residency.current().servers['a']
        self.assertEqual(('m1.large', ('v',)), (found.flavor, found.volumes))

    def test_what_concerns_more_than_a_vm_asks_for_a_listing(self):
        self.residency.replace(inventory(server()))
        self.assertFalse(self.residency.repair_wanted.is_set())
        self.residency.tell('aggregate.update_metadata.end', {'name': 'x'}, 101)
        self.assertTrue(self.residency.repair_wanted.is_set())

    def test_other_volumes_ask_for_that_vm_alone(self):
        self.residency.replace(inventory(server('a', image=''), server('b', image='')))
        for again in range(30):
            self.residency.tell('instance.volume_attach.end', payload('a'), 101 + again)
            self.residency.tell('instance.volume_detach.end', payload('b'), 101 + again)
        self.assertFalse(self.residency.repair_wanted.is_set())
        self.assertTrue(self.residency.lookup_wanted.is_set())
        self.assertEqual({'a': 130, 'b': 130}, self.residency.questions(20))
        self.assertEqual(['a'], list(self.residency.questions(1)))
        self.residency.answer('a', 130, cloud.Volumes(('v',), {'v': 'ceph'}))
        self.residency.answer('b', 130, None)
        self.assertEqual({}, self.residency.questions(20))
        found = self.residency.current()
        self.assertEqual((('v',), 'ceph'), (found.servers['a'].volumes, found.backends['v']))

    def test_an_answer_outlives_the_listing_that_began_before_it_was_told(self):
        old, new = server('a', image='', volumes=('root',)), payload('n')
        self.residency.replace(inventory(old))
        self.residency.tell('instance.volume_attach.end', payload('a'), 205)
        self.residency.tell('instance.create.end', {**new, 'image_uuid': ''}, 206)
        for uuid, at in self.residency.questions(20).items():
            self.residency.answer(uuid, at, cloud.Volumes((f'v{uuid}',), {f'v{uuid}': 'ceph'}))
        for began, volumes, backends in ((200.0, {'a': ('va',), 'n': ('vn',)},
                                          {'va': 'ceph', 'vn': 'ceph'}),
                                         (300.0, {'a': ('root',)}, {})):
            self.residency.replace(inventory(old, began_at=began))
            found = self.residency.current()
            self.assertEqual(volumes, {one.uuid: one.volumes for one in found.servers.values()})
            self.assertEqual(backends, found.backends)

    def test_what_is_told_while_it_is_asked_for_is_asked_again(self):
        self.residency.replace(inventory(server('a', image='')))
        self.residency.tell('instance.volume_attach.end', payload('a'), 101)
        self.residency.questions(20)
        self.residency.tell('instance.volume_attach.end', payload('a'), 102)
        self.residency.answer('a', 101, cloud.Volumes(('v',), {}))
        self.assertEqual({'a': 102}, self.residency.questions(20))

    def test_a_new_vm_that_boots_from_a_volume_is_asked_for(self):
        self.residency.replace(inventory())
        self.residency.tell('instance.create.end', {**payload('a'), 'image_uuid': ''}, 101)
        self.residency.tell('instance.create.end', payload('b'), 101)
        self.assertEqual(['a'], list(self.residency.questions(20)))

    def test_a_listing_or_a_deletion_ends_a_question(self):
        self.residency.replace(inventory(*(server(name, image='') for name in 'abc')))
        for name, at in zip('abc', (101, 250, 251)):
            self.residency.tell('instance.volume_attach.end', payload(name), at)
        self.residency.tell('instance.delete.end', payload('c'), 252)
        self.residency.replace(inventory(server('a', image=''), server('b', image=''),
                                         began_at=200.0))
        self.assertEqual({'b': 250}, self.residency.questions(20))

    def test_vms_of_a_cell_that_does_not_answer_stay(self):
        self.residency.replace(inventory(server('a', 'h1'), server('b', 'h2'), server('c', 'h2')))
        self.residency.tell('instance.delete.end', payload('c', 'h2'), 101)
        lost = dataclasses.replace(
            inventory(began_at=200.0),
            hypervisors={'h1': cloud.Hypervisor('h1', True, True),
                         'h2': cloud.Hypervisor('h2', False, False, reachable=False)})
        self.assertEqual(1, self.residency.replace(lost))
        self.assertEqual(['b'], list(self.residency.current().servers))

    def test_types_and_cores_stay_known_that_a_listing_lacks(self):
        for began_at, told, known in (
                (100.0, (48, 2, 'QEMU'), (48, 2, 'QEMU')),
                (200.0, (None, 1, None), (48, 2, 'QEMU')),
                (300.0, (24, 1, 'ironic'), (24, 1, 'ironic')),
                (400.0, (None, 1, None), (24, 1, 'ironic'))):
            self.residency.replace(dataclasses.replace(
                inventory(began_at=began_at),
                hypervisors={'h1': cloud.Hypervisor('h1', True, True, True, *told)}))
            found = self.residency.current().hypervisors['h1']
            self.assertEqual(known, (found.cores, found.threads, found.type))

    def test_hosts_are_remembered_that_were_seen_before_their_cell_fell_silent(self):
        def listed(began_at, *silent):
            return dataclasses.replace(inventory(began_at=began_at), hypervisors={
                name: cloud.Hypervisor(name, True, True, reachable=name not in silent)
                for name in ('h1', 'h2', 'h3')})
        for silent, unseen in ((('h2', 'h3'), {'h2', 'h3'}), (('h3',), {'h3'}),
                               (('h2', 'h3'), {'h3'}), ((), set()), (('h1', 'h3'), set())):
            self.residency.replace(listed(200.0, *silent))
            self.assertEqual(unseen, self.residency.current().unseen)
        self.residency.forget()
        self.residency.replace(listed(200.0, 'h2'))
        self.assertEqual({'h2'}, self.residency.current().unseen)

    def test_what_is_given_out_does_not_change_any_more(self):
        self.residency.replace(inventory(server()))
        before = self.residency.current()
        self.residency.tell('instance.delete.end', payload(), 101)
        self.assertIn('a', before.servers)
