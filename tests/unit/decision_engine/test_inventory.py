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

"""What is asked of Nova and Neutron, on answers as they give them."""

import collections
import dataclasses
import json
import math
import unittest

from keystoneauth1 import exceptions as keystone_errors
import requests

from tracon_watcher.decision_engine import constraints_builder
from tracon_watcher.decision_engine import inventory
from tracon_watcher.inventory import listing

SERVER = {
    'id': '5f0c', 'name': 'db', 'tenant_id': 'p1', 'OS-EXT-SRV-ATTR:host': 'host1',
    'OS-EXT-STS:vm_state': 'active', 'OS-EXT-STS:task_state': None, 'locked': False,
    'metadata': {'tier': 'gold'}, 'pinned_availability_zone': 'north',
    'flavor': {'vcpus': 1, 'extra_specs': {'hw:cpu_policy': 'shared'}},
    'image': {'id': 'i1', 'properties': {'hw_cpu_policy': 'dedicated'}}}


class Api:
    """Answers in pages, as the two services' APIs do."""

    def __init__(self, answers, status=200):
        self.answers = answers
        self.status = status
        self.asked = collections.Counter()

    def get(self, path, params, microversion):
        self.asked[path] += 1
        response = requests.Response()
        response.status_code = self.status
        response.headers['Content-Type'] = 'application/json'
        response.url = f'http://nova{path}'
        key, entries, page = self.answers[path]
        body = {key: entries}
        if 'offset' in params:
            body = {key: entries[params['offset']:params['offset'] + page]}
        elif page:
            start = int(params.get('marker', ['0'])[0])
            body = {key: entries[start:start + page]}
            if start + page < len(entries):
                body[f'{key}_links'] = [{
                    'rel': 'next', 'href': f'http://public/{path}?marker={start + page}'}]
        response._content = json.dumps(body).encode()
        return response


class Connection:
    """A cloud of ``vms`` VMs."""

    def __init__(self, vms=1, status=200, ports_key='ports'):
        self.compute = Api({
            '/servers/detail': ('servers', [dict(SERVER, id=f'vm{number}')
                                            for number in range(vms)], 1000),
            '/os-server-groups': ('server_groups', [
                {'name': f'g{number}', 'policy': 'anti-affinity', 'members': ['vm0', 'vm1'],
                 'rules': {'max_server_per_host': 2} if number else {}}
                for number in range(3)], 2),
            '/os-migrations': ('migrations', [
                {'instance_uuid': 'vm0', 'updated_at': stamp, 'status': 'completed',
                 'source_compute': 'host2', 'dest_compute': 'host1',
                 'created_at': '2026-01-01T00:00:00.000000'}
                for stamp in ('1970-01-01T00:10:00.000000', '1970-01-01T00:20:00.000000', None)
            ][:2] + [
                {'instance_uuid': uuid, 'updated_at': '1970-01-01T00:30:00.000000',
                 'created_at': '1970-01-01T00:30:00.000000', 'status': status,
                 'source_compute': 'host1', 'dest_compute': end}
                for uuid, status, end in (('vm1', 'running', 'host2'), ('vm2', 'reverting', 'x'),
                                          ('vm3', 'accepted', None), ('vm4', 'error', 'host4'))],
                1000),
            '/os-services': ('services', [
                {'host': 'host1', 'status': 'disabled', 'state': 'up', 'zone': 'north',
                 'disabled_reason': 'new disks'}], 0),
            '/os-hypervisors/detail': ('hypervisors', [
                {'service': {'host': 'host1'}, 'hypervisor_type': 'QEMU'},
                {'service': {'host': 'metal'}, 'hypervisor_type': 'ironic'}], 0)}, status)
        self.placement = Api({'/allocation_candidates': ('provider_summaries', {'node-1': {
            'resources': {'VCPU': {'capacity': 16, 'used': 6},
                          'MEMORY_MB': {'capacity': 2048, 'used': 1024}}}}, 0)})
        self.network = Api({'/ports': (ports_key, [
            {'device_id': 'vm0', 'binding:vnic_type': 'direct'},
            {'device_id': 'vm1', 'binding:vnic_type': 'normal'},
            {'device_id': '', 'binding:vnic_type': 'direct'}], 0)})


class InventoryTestCase(unittest.TestCase):

    def test_everything_is_read(self):
        found = inventory.collect(Connection(2), 0.0)
        self.assertEqual({'vm0', 'vm1'}, set(found.servers))
        server = found.servers['vm0']
        self.assertEqual(('p1', 'host1', 'active', None, False, 'north'), (
            server.project, server.host, server.vm_state, server.task_state, server.locked,
            server.pinned_zone))
        self.assertEqual({'vm0': 'direct'}, found.direct_ports)
        self.assertEqual((1200.0, 1800.0), (found.moved_at['vm0'], found.moved_at['vm1']))
        self.assertEqual((2, 1), (found.moves['vm0'], found.moves['vm1']))
        # Of a reverted one it is the source that gets the VM back.
        self.assertEqual({'host2': 'vm1', 'host1': 'vm2'}, found.arriving)
        self.assertEqual({'vm1': 'host2', 'vm2': 'host1', 'vm3': None}, found.leaving)
        self.assertEqual({'node-1': (10.0, 1024.0, math.inf)}, found.room)
        self.assertEqual({'metal'}, found.several)
        self.assertEqual([1, 2, 2], [group.maximum_per_host for group in found.groups])
        self.assertEqual((False, True, 'new disks'), (
            found.services['host1'].enabled, found.services['host1'].up,
            found.services['host1'].disabled_reason))

    def test_the_latest_migration_of_a_vm_says_where_it_goes(self):
        for statuses, leaving in ((('running', 'completed'), {}),
                                  (('error', 'running'), {'a': 'x1'}),
                                  (('accepted', 'accepted'), {'a': 'x1'})):
            found = Connection(2)
            entries = [{'instance_uuid': 'a', 'status': status, 'source_compute': 's',
                        'dest_compute': f'x{number}', 'updated_at': None,
                        'created_at': f'2026-01-0{1 + number}T00:00:00.000000'}
                       for number, status in enumerate(statuses)]
            # Nova lists the latest first.
            found.compute.answers['/os-migrations'] = 'migrations', entries[::-1], 1000
            self.assertEqual(leaving, inventory.collect(found, 0.0).leaving)

    def test_the_number_of_requests_depends_on_the_number_of_pages_only(self):
        few, many = Connection(1), Connection(900)
        inventory.collect(few, 0.0)
        inventory.collect(many, 0.0)
        self.assertEqual(few.compute.asked, many.compute.asked)
        self.assertEqual(few.network.asked, many.network.asked)
        more = Connection(2500)
        self.assertEqual(2500, len(inventory.collect(more, 0.0).servers))
        self.assertEqual(3, more.compute.asked['/servers/detail'])

    def test_a_service_that_does_not_answer_is_named(self):
        with self.assertRaisesRegex(listing.CloudUnavailable, 'Nova: GET /servers/detail.*user'):
            inventory.collect(Connection(status=403), 0.0)
        with self.assertRaisesRegex(listing.CloudUnavailable, 'lacks microversion 2.98'):
            inventory.collect(Connection(status=406), 0.0)
        with self.assertRaisesRegex(listing.CloudUnavailable, 'Neutron: GET /ports.*no ports'):
            inventory.collect(Connection(ports_key='something'), 0.0)

    def test_what_watchers_user_may_not_see_of_servers_ends_the_audit(self):
        made = Connection()
        del made.compute.answers['/servers/detail'][1][0]['OS-EXT-SRV-ATTR:host']
        with self.assertRaisesRegex(listing.Forbidden, "Watcher's user the hosts of VMs.*admin"):
            inventory.collect(made, 0.0)

    def test_ports_that_neutron_does_not_tell_may_be_of_any_type(self):
        made = Connection(3)
        made.network.answers['/ports'] = ('ports', [
            {'device_id': 'vm0'}, {'device_id': 'vm1', 'binding:vnic_type': 'normal'},
            {'device_id': 'vm2', 'binding:vnic_type': 'normal'}], 0)
        found = inventory.collect(made, 0.0)
        self.assertEqual({'vm0'}, set(found.direct_ports))
        wishes = constraints_builder.ConstraintParameters(frozenset(), 'tracon:exclude', 60.0)
        self.assertIn('type unknown, since Neutron does not tell', constraints_builder.obstacle(
            found, 'vm0', 'host1', wishes))

    def test_hosts_are_known_by_the_names_of_their_hypervisors(self):
        made = Connection()
        made.compute.answers['/os-hypervisors/detail'] = ('hypervisors', [
            {'hypervisor_hostname': 'host1.example.org', 'service': {'host': 'host1'}}], 0)
        self.assertEqual({'host1.example.org': 'host1'}, inventory.hosts_by_hypervisor(made))
        made.compute.status = 403
        self.assertEqual({}, inventory.hosts_by_hypervisor(made))

    def test_a_service_that_is_not_there_is_named(self):
        class Nowhere:
            def get(self, *_path, **_query):
                raise keystone_errors.EndpointNotFound('network')

        connection = Connection()
        connection.network = Nowhere()
        with self.assertRaisesRegex(listing.CloudUnavailable, 'catalogue has no endpoint'):
            inventory.collect(connection, 0.0)


class VolumesTestCase(unittest.TestCase):
    """Properties of the images of VMs that boot from volumes."""

    def connection(self, **volumes):
        made = Connection(2)
        for entry, image in zip(made.compute.answers['/servers/detail'][1], (
                '', {'id': 'i', 'properties': {'hw_cpu_policy': 'shared'}})):
            entry.update({'image': image, 'OS-EXT-SRV-ATTR:root_device_name': '/dev/vda'})
        made.block_storage = Api({'/volumes/detail': ('volumes', [
            {'id': 'root', 'attachments': [{'server_id': 'vm0', 'device': '/dev/vda'}],
             'volume_image_metadata': {'hw_tpm_version': '2.0', 'os_distro': 'debian'}},
            {'id': 'data', 'attachments': [{'server_id': 'vm0', 'device': '/dev/vdb'}],
             'volume_image_metadata': {'hw_cpu_policy': 'dedicated'}},
            {'id': 'blank', 'attachments': []}], 0)}, **volumes)
        return made

    def test_they_are_those_of_the_boot_volume(self):
        found = inventory.collect(self.connection(), 0.0).servers
        self.assertEqual(({'hw_tpm_version': '2.0'}, {'hw_cpu_policy': 'shared'}), (
            found['vm0'].image_properties, found['vm1'].image_properties))

    def test_where_cinder_does_not_tell_such_vms_stay(self):
        with self.assertLogs('tracon_watcher.decision_engine.inventory', 'WARNING'):
            found = inventory.collect(self.connection(status=403), 0.0)
        self.assertIsNone(found.servers['vm0'].image_properties)
        wishes = constraints_builder.ConstraintParameters(frozenset(), 'tracon:exclude', 60.0)
        found = dataclasses.replace(found, direct_ports={})
        self.assertIn('volume that it boots from, are not', constraints_builder.obstacle(
            found, 'vm0', 'host1', wishes))

    def test_a_boot_volume_that_cinder_does_not_list_may_have_any(self):
        # As it does to a user who is no administrator: it answers with another project's, or
        # with nothing.
        made = self.connection()
        made.block_storage.answers['/volumes/detail'] = ('volumes', [], 0)
        self.assertIsNone(inventory.collect(made, 0.0).servers['vm0'].image_properties)

    def test_where_cinder_hides_the_properties_of_all_images_such_vms_stay(self):
        made = self.connection()
        for one in made.block_storage.answers['/volumes/detail'][1]:
            one.pop('volume_image_metadata', None)
        with self.assertLogs('tracon_watcher.decision_engine.inventory', 'WARNING') as logs:
            found = inventory.collect(made, 0.0).servers
        self.assertIn('volume_extension:volume_image_metadata', logs.output[0])
        self.assertIsNone(found['vm0'].image_properties)

    def test_an_image_whose_properties_nova_does_not_tell_may_have_any(self):
        made = self.connection()
        made.compute.answers['/servers/detail'][1][1]['image'] = {'id': 'i'}
        self.assertIsNone(inventory.collect(made, 0.0).servers['vm1'].image_properties)

    def test_one_without_an_image_has_none(self):
        made = self.connection()
        del made.block_storage.answers['/volumes/detail'][1][0]['volume_image_metadata']
        self.assertEqual({}, inventory.collect(made, 0.0).servers['vm0'].image_properties)

    def test_without_such_vms_cinder_is_not_asked(self):
        inventory.collect(Connection(2), 0.0)


class SharesTestCase(unittest.TestCase):

    def test_nova_is_asked_for_one_vm(self):
        made = Connection()
        made.compute.answers.update({
            '/servers/a/shares': ('shares', [{'share_id': 's'}], 0),
            '/servers/b/shares': ('shares', [], 0)})
        self.assertEqual([True, False], [inventory.has_shares(made, uuid) for uuid in 'ab'])


class TiedTestCase(unittest.TestCase):

    def test_what_ties_a_vm_to_its_host(self):
        for specs, properties, word in (
                ({'hw:cpu_policy': 'dedicated'}, {}, 'pinned'),
                ({'hw:cpu_policy': 'mixed'}, {}, 'pinned'),
                ({}, {'hw_cpu_policy': 'dedicated'}, 'image property'),
                ({'resources:PCPU': '1'}, {}, 'pinned'),
                ({'resources1:VGPU': '1'}, {}, 'device'),
                ({'resources:CUSTOM_PCI_10DE_1EB8': '1'}, {}, 'device'),
                ({'resources:CUSTOM_NVIDIA_11': '1'}, {}, 'device'),
                ({'hw:pmem': '6GB'}, {}, 'device'),
                ({'hw:tpm_version': '2.0'}, {}, 'TPM'),
                ({}, {'hw_tpm_version': '1.2'}, 'TPM'),
                ({'hw:tpm_version': '2.0', 'hw:tpm_secret_security': 'deployment'}, {}, 'TPM'),
                ({'pci_passthrough:alias': 'a:1'}, {}, 'device'),
                ({'accel:device_profile': 'fpga'}, {}, 'device'),
                ({'hw:mem_encryption': 'true'}, {}, 'encrypted')):
            self.assertIn(word, constraints_builder.tied(specs, properties) or '')
        for specs in ({}, {'hw:cpu_policy': 'shared'}, {'resources:VCPU': '2'},
                      {'hw:mem_encryption': 'false'}, {'tracon:max_slowdown': '1.5'},
                      {'hw:tpm_version': '2.0', 'hw:tpm_secret_security': 'host'}):
            self.assertIsNone(constraints_builder.tied(specs, {}))

    def test_a_sensor_stays_on_its_host(self):
        made = Connection()
        server, = made.compute.answers['/servers/detail'][1]
        server['image'] = {'id': 'i1', 'properties': {}}
        wishes = constraints_builder.ConstraintParameters(frozenset(), 'tracon:exclude', 60.0)

        def obstacle():
            found = dataclasses.replace(inventory.collect(made, 0.0), direct_ports={})
            return constraints_builder.obstacle(found, server['id'], 'host1', wishes)
        self.assertIsNone(obstacle())
        server['metadata'] = {constraints_builder.PROBE: 'host1'}
        self.assertIn('is a sensor', obstacle())

    def test_every_value_opts_out_but_a_plain_no(self):
        self.assertEqual([True, True, True, False, False], [
            constraints_builder.opted_out(value) for value in ('true', '', 'please', 'False',
                                                               '0')])
