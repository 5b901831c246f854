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

"""Deployment of sensors in a cloud in memory, which has the SDK's own resources."""

import base64
import json
import pathlib
import types
import unittest
from unittest import mock

from openstack.compute.v2 import _proxy as nova_proxy
from openstack.compute.v2 import aggregate
from openstack.compute.v2 import flavor
from openstack.compute.v2 import hypervisor
from openstack.compute.v2 import server
from openstack.compute.v2 import service
from openstack import exceptions
from openstack.image.v2 import _proxy as glance_proxy
from openstack.image.v2 import image
from openstack.network.v2 import _proxy as neutron_proxy
from openstack.network.v2 import network
from openstack.network.v2 import port
from openstack.network.v2 import security_group
from openstack.network.v2 import subnet
from openstack.placement.v1 import _proxy as placement_proxy
from openstack.placement.v1 import resource_provider
from openstack.placement.v1 import resource_provider_inventory as inventory
import requests

from tests.unit import folder
from tracon_watcher.cmd import probe
from tracon_watcher.decision_engine import constraints_builder
from tracon_watcher.engine import state
from tracon_watcher import errors
from tracon_watcher.probe import answers
from tracon_watcher.probe import controller
from tracon_watcher.probe import deployment
from tracon_watcher.probe import images

OURS = 'service-project'


def forbidden(text):
    response = requests.Response()
    response.status_code = 403
    return exceptions.ForbiddenException(text, response=response)


class Nova:
    """Hosts a to d, each with 4096 MiB, of which Placement has the rest."""

    default_microversion = None

    def __init__(self, cloud):
        self._cloud = cloud
        self.maximum = (2, 96)

    def get_endpoint_data(self):
        return types.SimpleNamespace(min_microversion=(2, 1), max_microversion=self.maximum)

    def services(self, binary):
        assert binary == 'nova-compute'
        self._cloud.asked('services')
        return iter(self._cloud.services.values())

    def aggregates(self):
        return iter(self._cloud.aggregates)

    def hypervisors(self, details, microversion):
        assert details and microversion == '2.87'
        return iter([hypervisor.Hypervisor(
            id=f'node-{name}', name=f'{name}.example', service_details={'host': name},
            hypervisor_type='ironic' if name in self._cloud.metal else 'QEMU',
            memory_free=2000) for name in self._cloud.services])

    def servers(self):
        return iter(list(self._cloud.servers.values()))

    def get_server(self, uuid):
        return self._cloud.servers[uuid]

    def create_server(self, **wanted):
        self._cloud.asked('create_server', wanted['name'])
        self._cloud.requests.append(wanted)
        zone, _colon, forced = wanted.get('availability_zone', '').partition(':')
        host = wanted.get('host') or forced
        found = self._cloud.ports[wanted['networks'][0]['port']]
        made = server.Server(
            id=self._cloud.id(), name=wanted['name'], metadata=wanted['metadata'],
            status='BUILD', compute_host=host)
        found.device_id = made.id
        self._cloud.servers[made.id] = made
        return made

    def wait_for_server(self, one, interval, wait):
        name = one.metadata[deployment.MARK]
        if name in self._cloud.faults:
            one.status, one.fault = 'ERROR', {'message': self._cloud.faults[name]}
            raise exceptions.ResourceFailure('transitioned to failure state ERROR')
        if one.status == 'BUILD':
            one.status = 'ACTIVE'
        return one

    def delete_server(self, one):
        self._cloud.asked('delete_server', one.name)
        del self._cloud.servers[one.id]

    def wait_for_delete(self, one, interval, wait):
        assert one.id not in self._cloud.servers

    def flavors(self, is_public):
        assert is_public is None
        return iter(list(self._cloud.flavors))

    def create_flavor(self, **wanted):
        self._cloud.flavors.append(flavor.Flavor(id=self._cloud.id(), **wanted))
        return self._cloud.flavors[-1]

    def delete_flavor(self, one):
        self._cloud.flavors.remove(one)

    def flavor_add_tenant_access(self, one, project):
        self._cloud.access.append((one.name, project))


class Neutron:

    def __init__(self, cloud):
        self._cloud = cloud

    def find_network(self, name):
        return network.Network(id='net', name=name, mtu=1450) if name == 'probes' else None

    def get_subnet(self, uuid):
        return subnet.Subnet(id=uuid, cidr='192.0.2.0/25', gateway_ip='192.0.2.1')

    def ports(self, **query):
        return iter([one for one in self._cloud.ports.values()
                     if all(one[name] == value for name, value in query.items())])

    def create_port(self, **wanted):
        four = f'192.0.2.{len(self._cloud.requests) + 10}'
        made = port.Port(id=self._cloud.id(), project_id=OURS, fixed_ips=[
            {'subnet_id': 'six', 'ip_address': '2001:db8::7'},
            *[{'subnet_id': 'four', 'ip_address': four}] * self._cloud.four], **wanted)
        self._cloud.ports[made.id] = made
        return made

    def delete_port(self, one):
        self._cloud.asked('delete_port', one.name)
        del self._cloud.ports[one.id]

    def security_groups(self, name, project_id):
        return iter([one for one in self._cloud.groups
                     if (one.name, one.project_id) == (name, project_id)])

    def create_security_group(self, **wanted):
        self._cloud.groups.append(security_group.SecurityGroup(
            id=self._cloud.id(), project_id=OURS, security_group_rules=[
                {'id': 'out', 'direction': 'egress'}], **wanted))
        return self._cloud.groups[-1]

    def delete_security_group(self, one):
        self._cloud.groups.remove(one)

    def create_security_group_rule(self, **wanted):
        group, = (one for one in self._cloud.groups if one.id == wanted['security_group_id'])
        group.security_group_rules = [
            *group.security_group_rules, {'id': self._cloud.id(), **wanted}]

    def delete_security_group_rule(self, uuid):
        for group in self._cloud.groups:
            group.security_group_rules = [
                one for one in group.security_group_rules if one['id'] != uuid]


class Glance:

    def __init__(self, cloud):
        self._cloud = cloud

    def images(self, **query):
        return iter([one for one in self._cloud.images.values()
                     if all(one[name] == value for name, value in query.items())])

    def create_image(self, name, *, filename, allow_duplicates, validate_checksum, wait,
                     **properties):
        self._cloud.asked('create_image', name)
        made = image.Image(id=self._cloud.id(), name=name, owner=OURS, status='active',
                           **properties)
        self._cloud.images[made.id] = made
        made.data = pathlib.Path(filename).read_bytes()
        return made

    def delete_image(self, one):
        del self._cloud.images[one.id]


class Placement:

    def __init__(self, cloud):
        self._cloud = cloud

    def fetch_resource_provider_usages(self, uuid):
        if self._cloud.placement_is_down:
            raise exceptions.SDKException('no endpoint')
        return resource_provider.ResourceProvider(
            id=uuid, usages={'MEMORY_MB': self._cloud.used.get(uuid[5:], 0), 'VCPU': 2})

    def resource_provider_inventories(self, uuid):
        return iter([
            inventory.ResourceProviderInventory(
                resource_class=name, total=total, reserved=reserved, allocation_ratio=ratio)
            for name, total, reserved, ratio in (
                ('MEMORY_MB', 4608, 512, 1.0), ('VCPU', self._cloud.cores, 0, 4.0))])


class Cloud:
    """The cloud, which is also the connection."""

    current_project_id = OURS

    def __init__(self):
        self.services = {name: service.Service(
            host=name, binary='nova-compute', status='enabled', state='up',
            availability_zone='zone') for name in 'abcd'}
        self.metal = ()
        self.aggregates = [
            aggregate.Aggregate(name='small', hosts=['a', 'b'],
                                metadata={deployment.HOST_TYPE: 'small'}),
            aggregate.Aggregate(name='large', hosts=['c', 'd'],
                                metadata={deployment.HOST_TYPE: 'large'})]
        self.servers, self.ports, self.images = {}, {}, {}
        self.flavors, self.groups, self.access, self.requests = [], [], [], []
        self.calls = []
        self.used, self.faults, self.refused = {}, {}, {}
        self.placement_is_down, self.four, self.cores = False, True, 1
        self._last = 0
        self.compute, self.network, self.image, self.placement = (
            Nova(self), Neutron(self), Glance(self), Placement(self))

    def id(self):
        self._last += 1
        return f'id-{self._last}'

    def asked(self, *call):
        self.calls.append(call)
        if call in self.refused:
            raise self.refused[call]

    def on(self, host):
        found, = (one for one in self.servers.values()
                  if one.metadata[deployment.MARK] == host)
        return found


class DeploymentTestCase(folder.OwnFolderCase):

    def setUp(self):
        super().setUp()
        self.cloud = Cloud()
        self.built = 0
        for name in ('kernel', 'initramfs', 'disk'):
            (self.folder / name).write_text(name)

    def build(self):
        self.built += 1
        return deployment.Image(*(self.folder / name for name in (
            'kernel', 'initramfs', 'disk')), 'quiet', 80)

    def deploy(self, **wishes):
        """Deploy, and return state and reason by host."""
        wishes = {'network': 'probes', 'generators': ('198.51.100.7/32',), 'secret': b'\7' * 32,
                  **wishes}
        made = deployment.Deployment(self.cloud, deployment.DeploymentOptions(**wishes),
                                     self.build)
        reported = {}
        self.rows = made.deploy(reported.__setitem__)
        self.assertEqual({host: 1.0 for host in made.hosts}, reported)
        self.sensors = {one.host: one for one in made.sensors(wishes.get('host_type'))}
        return {one.host: (one.state, one.why) for one in self.rows}

    def states(self, **wishes):
        return {host: state for host, (state, _why) in self.deploy(**wishes).items()}

    def missing(self):
        return {one.host for one in self.rows if one.missing}


class TestDeploy(DeploymentTestCase):

    def test_the_fake_has_methods_of_the_sdk(self):
        for fake, real in ((Nova, nova_proxy), (Neutron, neutron_proxy), (Glance, glance_proxy),
                           (Placement, placement_proxy)):
            self.assertEqual(set(), {name for name in vars(fake) if not name.startswith('_')
                                     and name != 'default_microversion'} - set(dir(real.Proxy)))

    def test_each_host_gets_one(self):
        self.assertEqual(dict.fromkeys('abcd', (
            'created', '4016 MiB stay free, 1024 of them as headroom')), self.deploy())
        one = self.cloud.requests[0]
        self.assertEqual(('tracon-probe-a', 'a', {'tracon:probe': 'a'}, True),
                         (one['name'], one['host'], one['metadata'], one['config_drive']))
        self.assertNotIn('availability_zone', one)
        self.assertEqual(
            'secret=' + '07' * 32 + '\naddress=192.0.2.10/25\ngateway=192.0.2.1\nport=8640\n'
            'mtu=1450\n', base64.b64decode(one['user_data']).decode())
        found = self.cloud.ports[one['networks'][0]['port']]
        self.assertEqual(('net', [self.cloud.groups[0].id], 'tracon-probe-a'),
                         (found.network_id, found.security_group_ids, found.name))
        self.assertEqual('192.0.2.10:8640', self.rows[0].address)
        self.assertEqual({'a': 'small', 'b': 'small', 'c': 'large', 'd': 'large'},
                         {host: one.host_type for host, one in self.sensors.items()})
        self.assertEqual('192.0.2.13:8640', self.sensors['d'].address)

    def test_what_they_share_is_made_once(self):
        self.deploy()
        found, = self.cloud.flavors
        self.assertEqual(('tracon-probe', 1, 80, 0, False, {}), (
            found.name, found.vcpus, found.ram, found.disk, found.is_public, found.extra_specs))
        self.assertEqual([('tracon-probe', OURS)], self.cloud.access)
        disk = self.cloud.images[self.cloud.requests[0]['image_id']]
        self.assertEqual((b'disk', 'raw', 'bare', 'private', 'quiet', 80), (
            disk.data, disk.disk_format, disk.container_format, disk.visibility,
            disk.os_command_line, disk.min_ram))
        for uuid, content, kind in ((disk.kernel_id, b'kernel', 'aki'),
                                    (disk.ramdisk_id, b'initramfs', 'ari')):
            part = self.cloud.images[uuid]
            self.assertEqual((content, kind, kind, 'private'), (
                part.data, part.disk_format, part.container_format, part.visibility))
        self.assertEqual(1, self.built)
        # Images of the same content are taken again; those whose upload was cut short are not.
        disk.status = 'queued'
        self.cloud.servers.clear()
        self.deploy()
        self.assertEqual(4, sum(call[0] == 'create_image' for call in self.cloud.calls))
        self.assertEqual(3, len(self.cloud.images))
        (self.folder / 'kernel').write_text('another')
        self.cloud.servers.clear()
        self.deploy()
        self.assertEqual(5, len(self.cloud.images))

    def test_a_second_run_changes_nothing(self):
        self.deploy()
        before, sensors = len(self.cloud.calls), self.sensors
        self.assertEqual(dict.fromkeys('abcd', ('kept', '')), self.deploy())
        self.assertEqual([('services',)], self.cloud.calls[before:])
        self.assertEqual((1, sensors), (self.built, self.sensors))

    def test_generators_alone_may_connect(self):
        self.deploy()
        group, = self.cloud.groups
        self.cloud.network.create_security_group_rule(
            security_group_id=group.id, direction='ingress', protocol='tcp', port_range_min=22,
            port_range_max=22, remote_ip_prefix='0.0.0.0/0')
        self.deploy(generators=('198.51.100.7/32', '203.0.113.0/24'))
        self.deploy(generators=('203.0.113.0/24',))
        rule, = (one for one in group.security_group_rules if one['direction'] == 'ingress')
        self.assertEqual(('203.0.113.0/24', 'tcp', 8640, 8640), (
            rule['remote_ip_prefix'], rule['protocol'], rule['port_range_min'],
            rule['port_range_max']))
        self.assertEqual('out', group.security_group_rules[0]['id'])

    def test_before_2_74_the_zone_names_the_host(self):
        self.cloud.compute.maximum = (2, 73)
        with mock.patch.object(self.cloud.compute, 'hypervisors', autospec=True, return_value=[
                hypervisor.Hypervisor(id='node-a', service_details={'host': 'a'})]) as listed:
            self.assertEqual({'a': 'created'}, self.states(hosts=('a',)))
        self.assertEqual('2.73', listed.call_args.kwargs['microversion'])
        self.assertEqual('zone:a', self.cloud.requests[0]['availability_zone'])
        self.assertNotIn('host', self.cloud.requests[0])

    def test_hosts_may_be_named(self):
        self.assertEqual({'b': 'created'}, self.states(hosts=('b',)))
        self.assertEqual({'a': 'created', 'b': 'kept'}, self.states(aggregate='small'))
        self.assertEqual({'c': 'created'}, self.states(aggregate='large', hosts=('a', 'c')))
        # The others stay, and stay in the list.
        self.assertEqual({'a', 'b', 'c'}, set(self.sensors))
        for wishes in ({'hosts': ('x',)}, {'aggregate': 'x'}, {'network': 'x'}):
            with self.assertRaisesRegex(errors.InvalidOption, '--.*there is no such'):
                self.deploy(**wishes)

    def test_machines_that_share_a_compute_service_get_none(self):
        self.cloud.metal = ('b', 'd')
        self.assertEqual({'a': 'created', 'b': 'left out'}, self.states(aggregate='small'))
        self.assertEqual({'d': 'left out'}, self.states(hosts=('d',)))

    def test_headroom(self):
        self.cloud.used = {'a': 4096 - 80 - 1024, 'b': 4096 - 80 - 1023}
        found = self.deploy(hosts=('a', 'b'))
        self.assertEqual(('created', '1024 MiB stay free, 1024 of them as headroom'), found['a'])
        self.assertEqual(('left out', '1103 MiB and 2 vCPUs are free: the sensor needs 80 and 1, '
                                      'and --headroom-mb is 1024'), found['b'])
        self.assertEqual({'b'}, self.missing())
        self.assertEqual({'b': 'created'}, self.states(hosts=('b',), headroom_mb=1023))
        self.cloud.cores = 0.5
        self.assertEqual({'c': 'left out'}, self.states(hosts=('c',)))

    def test_without_placement_hypervisors_tell_what_is_free(self):
        self.cloud.placement_is_down = True
        self.assertEqual({'a': ('created', '1920 MiB stay free, 100 of them as headroom')},
                         self.deploy(hosts=('a',), headroom_mb=100))
        self.assertEqual({'b': 'left out'}, self.states(hosts=('b',), headroom_mb=1921))

    def test_maintenance(self):
        self.deploy(hosts=('a', 'b'))
        for name in 'ac':
            self.cloud.services[name].status = 'disabled'
        self.cloud.services['a'].disabled_reason = 'new fans'
        self.cloud.services['b'].state = self.cloud.services['d'].state = 'down'
        down = 'its compute service does not answer'
        self.assertEqual({
            'a': ('removed', 'in maintenance: new fans'), 'b': ('kept', down),
            'c': ('left out', 'in maintenance: no reason given'), 'd': ('left out', down)},
            self.deploy())
        self.assertEqual((set(), {'b'}), (self.missing(), set(self.sensors)))
        self.assertEqual(['tracon-probe-b'], [one.name for one in self.cloud.ports.values()])
        # And of a host that is no longer there.
        del self.cloud.services['b']
        self.assertEqual('removed', self.states()['b'])
        self.assertEqual(({}, {}), (self.cloud.servers, self.cloud.ports))

    def test_repair(self):
        self.deploy()
        self.cloud.on('a').status = 'ERROR'
        self.cloud.on('b').compute_host = 'c'
        self.cloud.on('c').status = 'BUILD'
        before = {host: self.cloud.on(host).id for host in 'abcd'}
        for uuid in [one.id for one in self.cloud.ports.values() if one.device_id == before['d']]:
            del self.cloud.ports[uuid]
        self.assertEqual({
            'a': ('repaired', 'was ERROR; 4016 MiB stay free, 1024 of them as headroom'),
            'b': ('repaired', 'was on c; 4016 MiB stay free, 1024 of them as headroom'),
            # It had only to be waited for.
            'c': ('kept', ''),
            'd': ('repaired', 'had no address; 4016 MiB stay free, 1024 of them as headroom')},
            self.deploy())
        self.assertEqual(['c'], [host for host in 'abcd' if before[host] in self.cloud.servers])
        self.assertEqual((4, 4), (len(self.cloud.ports), len(self.sensors)))

    def test_two_on_a_host_and_what_a_stopped_run_left(self):
        self.deploy(hosts=('a',))
        one = self.cloud.on('a')
        self.cloud.servers['twin'] = server.Server(
            id='twin', name=one.name, metadata=dict(one.metadata), status='ACTIVE',
            compute_host='a')
        self.cloud.network.create_port(name=one.name, device_id='twin',
                                       description=deployment.MARK)
        self.assertEqual({'a': ('kept', 'was there twice')}, self.deploy(hosts=('a',)))
        self.assertEqual(([one.id], [one.id]), (
            list(self.cloud.servers), [found.device_id for found in self.cloud.ports.values()]))
        self.cloud.servers.clear()
        self.deploy(hosts=('a',))
        self.assertEqual(1, len(self.cloud.ports))

    def test_one_that_fails_does_not_stop_the_others(self):
        self.cloud.faults['a'] = 'No valid host was found.'
        self.cloud.refused['create_server', 'tracon-probe-b'] = forbidden(
            'Quota exceeded for instances')
        found = self.deploy()
        self.assertEqual(('left out', 'No valid host was found.'), found['a'])
        self.assertEqual('left out', found['b'][0])
        self.assertIn('Quota exceeded for instances', found['b'][1])
        self.assertIn('to be an administrator', found['b'][1])
        self.assertEqual(({'a', 'b'}, {'c', 'd'}), (self.missing(), set(self.sensors)))
        self.cloud.faults.clear()
        self.cloud.refused.clear()
        self.assertEqual({'a': 'repaired', 'b': 'created', 'c': 'kept', 'd': 'kept'},
                         self.states())
        self.assertEqual(4, len(self.cloud.ports))

    def test_a_network_without_ipv4(self):
        self.cloud.four = False
        self.assertIn('no IPv4 address', self.deploy(hosts=('a',))['a'][1])

    def test_types(self):
        self.cloud.aggregates = [
            aggregate.Aggregate(name='1', hosts=['a'], metadata={deployment.HOST_TYPE: 'z'}),
            aggregate.Aggregate(name='2', hosts=['a'], metadata={deployment.HOST_TYPE: 'y'}),
            aggregate.Aggregate(name='3', hosts=['b'], metadata={'ssd': 'true'})]
        state, why = self.deploy(hosts=('a', 'b'))['b']
        self.assertEqual('left out', state)
        self.assertIn('state tracon:host_type in the metadata', why)
        self.assertEqual(({'b'}, {'a'}), (self.missing(), set(self.sensors)))
        self.deploy(hosts=('a', 'b'), host_type='x')
        # The first by name, as the engine takes it.
        self.assertEqual({'a': 'y', 'b': 'x'},
                         {host: one.host_type for host, one in self.sensors.items()})

    def test_servers_of_others_are_not_touched(self):
        self.cloud.servers['x'] = server.Server(id='x', name='tracon-probe-a', metadata={},
                                                status='ERROR')
        self.cloud.images['y'] = image.Image(id='y', name='debian', owner=OURS, status='active')
        self.deploy()
        project = deployment.Project(self.cloud)
        rows = project.remove(project.servers(), True, lambda name, share: None)
        self.assertEqual({'removed'}, {one.state for one in rows})
        self.assertEqual((['x'], ['y'], {}, [], []), (
            list(self.cloud.servers), list(self.cloud.images), self.cloud.ports,
            self.cloud.flavors, self.cloud.groups))

    def test_a_cloud_that_does_not_answer(self):
        self.cloud.refused['services',] = forbidden('no')
        with self.assertRaisesRegex(deployment.DeploymentError,
                                    'compute services: .*to be an administrator'):
            self.deploy()


class TestRemove(DeploymentTestCase):

    def remove(self, everything=False):
        project = deployment.Project(self.cloud)
        self.rows = project.remove(project.servers(), everything, lambda name, share: None)
        return [(one.host, one.server, one.state) for one in self.rows]

    def test_sensors_and_ports_go_and_the_rest_stays(self):
        self.deploy(hosts=('a', 'b'))
        self.assertEqual([('a', 'tracon-probe-a', 'removed'), ('b', 'tracon-probe-b', 'removed')],
                         self.remove())
        self.assertEqual(({}, {}), (self.cloud.servers, self.cloud.ports))
        self.assertEqual((3, 1, 1), (len(self.cloud.images), len(self.cloud.flavors),
                                     len(self.cloud.groups)))
        self.assertEqual(['flavor tracon-probe', 'security group tracon-probe'], [
            what for _host, what, _state in self.remove(True) if 'image' not in what])
        self.assertEqual([], self.remove(True))

    def test_what_cannot_be_removed(self):
        self.deploy(hosts=('a', 'b'))
        self.cloud.refused['delete_server', 'tracon-probe-a'] = exceptions.ConflictException('no')
        self.cloud.refused['delete_port', 'tracon-probe-b'] = exceptions.ConflictException('no')
        self.assertEqual([('a', 'tracon-probe-a', 'kept'), ('b', 'tracon-probe-b', 'removed'),
                          ('', 'port tracon-probe-b', 'kept')], self.remove())
        self.assertEqual({'a', ''}, self.missing())


class TestCommands(DeploymentTestCase):

    def setUp(self):
        super().setUp()
        self.app = mock.Mock()
        self.output, self.secret = self.folder / 'sensors.json', self.folder / 'secret'
        self.enterContext(mock.patch.object(probe, 'connect', autospec=True,
                                            return_value=self.cloud))
        self.image = self.enterContext(mock.patch.object(
            images, 'build', autospec=True, return_value=images.SensorImage(
                *(self.folder / name for name in ('kernel', 'initramfs', 'disk')))))

    def run_it(self, command, *arguments):
        """Run a command, and return its exit status and rows."""
        made = command(self.app, None)
        parsed = made.get_parser('tracon').parse_args(['--output', str(self.output), *arguments])
        rows = []
        with mock.patch.object(made, 'produce_output', autospec=True,
                               side_effect=lambda _args, _names, found: rows.extend(found)):
            status = made.run(parsed)
        return status, rows

    def deploy_it(self, *arguments):
        return self.run_it(probe.Deploy, '--network', 'probes', '--generator',
                           '198.51.100.7', '--secret-file', str(self.secret), *arguments)

    def test_deploy_and_remove(self):
        status, rows = self.deploy_it()
        self.assertEqual((0, 4), (status, len(rows)))
        self.assertEqual(set('abcd'), set(controller.load(self.output)))
        self.assertEqual(0o600, self.secret.stat().st_mode & 0o777)
        secret = answers.read_secret(self.secret)
        self.assertIn(f'secret={secret.hex()}',
                      base64.b64decode(self.cloud.requests[0]['user_data']).decode())
        disk = self.cloud.images[self.cloud.requests[0]['image_id']]
        self.assertEqual(f'{images.COMMAND_LINE} {images.OPTIONS}',
                         disk.os_command_line)
        self.assertEqual(images.MEMORY_MIB, self.cloud.flavors[0].ram)
        self.assertEqual(0, self.deploy_it()[0])
        self.assertEqual(secret, answers.read_secret(self.secret))
        status, rows = self.run_it(probe.Remove, '--all')
        self.assertEqual((0, ('a', 'tracon-probe-a', '192.0.2.10:8640', 'removed', '')),
                         (status, rows[0]))
        self.assertEqual({}, controller.load(self.output))
        self.assertEqual({}, self.cloud.images)

    def test_a_host_without_a_sensor_is_an_error(self):
        self.cloud.faults['b'] = 'out of luck'
        self.assertEqual(1, self.deploy_it()[0])
        self.app.LOG.error.assert_called_once_with('%s: %s: %s', 'b', 'left out', 'out of luck')
        self.assertEqual(set('acd'), set(controller.load(self.output)))

    def test_an_image_that_cannot_be_built_is_told_of_each_host(self):
        self.image.side_effect = errors.TraconError('gcc is not installed')
        status, rows = self.deploy_it()
        self.assertEqual((1, {'gcc is not installed'}), (status, {row[-1] for row in rows}))
        self.assertEqual([], json.loads(self.output.read_text())['sensors'])

    def test_options(self):
        nowhere = str(self.folder / 'nowhere' / 'file')
        for arguments, text in ((('--generator', '10.0.0.1/8'), "--generator='10.0.0.1/8'"),
                                (('--secret-file', nowhere), '--secret-file'),
                                (('--output', nowhere), 'the file is .*: cannot be written')):
            with self.subTest(arguments), self.assertRaisesRegex(errors.TraconError, text):
                self.deploy_it(*arguments)


class TestNames(unittest.TestCase):

    def test_others_know_sensors_by_the_same_names(self):
        self.assertEqual(constraints_builder.PROBE, deployment.MARK)
        self.assertEqual((state.PROBE_FLAVOR, state.HOST_TYPE),
                         (deployment.NAME, deployment.HOST_TYPE))
