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

"""What is not in the table of doc/source/admin/opacity.rst is not read from any cloud.

The laboratory is none of it: it boots guests of its own and plays the tenant in them.
"""

import ast
import importlib.util
import json
import pathlib
import re
import types
import unittest
from unittest import mock

from tests import opacity

#: What speaks to a cloud, a host or its guests, and which rooms may. ``osc`` and ``api`` are the
#: two ends of this program's own API, ``messaging`` of its own messages; ``cmd`` makes connections
#: and hands them on.
SPEAKING = frozenset((
    'ceilometer', 'cinderclient', 'fabric', 'glance', 'glanceclient', 'gnocchiclient', 'http',
    'keystoneauth1', 'keystonemiddleware', 'libvirt', 'neutronclient', 'nova', 'novaclient',
    'openstack', 'osc_lib', 'oslo_messaging', 'paramiko', 'requests', 'subprocess', 'urllib3',
    'watcher'))
SPEAKERS = {
    'api': {'keystonemiddleware'},
    # tc
    'background': {'subprocess'},
    'cmd': {'keystoneauth1', 'openstack', 'oslo_messaging'},
    'decision_engine': {'keystoneauth1', 'openstack', 'watcher'},
    'doctor': {'keystoneauth1'},
    'engine': {'oslo_messaging'},
    'inventory': {'keystoneauth1', 'openstack'},
    'messaging': {'oslo_messaging'},
    'nova_filters': {'nova'},
    'osc': {'keystoneauth1', 'osc_lib'},
    # gcc, for the image of the sensors, which are this program's own VMs
    'probe': {'keystoneauth1', 'openstack', 'subprocess'},
    'telemetry': {'ceilometer', 'keystoneauth1', 'libvirt', 'requests', 'urllib3'},
    # the commands that a tenant names, to make contention on its own workers
    'tenant': {'subprocess'},
}
#: Calls that reach into a guest, its memory, its disks, or what its tenant keeps in it; libvirt's,
#: Nova's and Glance's, and openstacksdk's names for them.
REACHING_IN = frozenset((
    'qemuAgentCommand', 'agentSetResponseTimeout', 'guestInfo', 'guestVcpus', 'fsInfo', 'fsFreeze',
    'fsThaw', 'fsTrim', 'getTime', 'setTime', 'interfaceAddresses', 'authorizedSSHKeysGet',
    'authorizedSSHKeysSet', 'setUserPassword', 'sendKey', 'injectNMI', 'sendProcessSignal',
    'openConsole', 'openChannel', 'openGraphics', 'openGraphicsFD', 'screenshot', 'memoryPeek',
    'blockPeek', 'memoryStats', 'coreDump', 'coreDumpWithFormat', 'XMLDesc', 'attachDevice',
    'storageVolLookupByPath', 'lxcOpenNamespace', 'get_console_output',
    'get_server_console_output', 'get_console_url', 'create_server_remote_console',
    'get_server_password', 'get_password', 'download_image', 'get_image', 'stage_image',
    'virDomainQemuAgentCommand'))
REACHING_IN_TEXTS = re.compile(
    r'qemu-agent|guest-(exec|get|file|info|ping|sync)|user_data|os-getConsoleOutput|remote-console'
    r'|os-server-password|os-getVNCConsole|os-getSerialConsole|INTERFACE_ADDRESSES_SRC_AGENT'
    r'|/v2/images|admin_?[pP]ass$|personality')
#: Functions whose first two arguments may name a path of a service.
_ASKING = frozenset(('_get', '_pages', 'ask', 'delete', 'get', 'head', 'pages', 'post', 'put',
                     'request', '_answer', '_query'))
_PATH = re.compile(r'^/?(api/)?(v\d+(\.\d+)?/)?[a-z][a-z_-]*(/[a-z{][a-z_{}-]*)*/?$')
_KERNEL = re.compile(r'^/?(proc|sys|dev|run)/')
_KEY = re.compile(r'^tracon:[a-z_]+$')


class Module:
    """A module of the product.

    :param name: path below the root of the repository
    """

    def __init__(self, name, text):
        self.name = name
        parts = pathlib.PurePath(name).parts
        self.room = parts[1] if parts[0] == 'tracon_watcher' and len(parts) > 2 else (
            parts[0] if parts[0] == 'nova_filters' else parts[1].removesuffix('.py'))
        self.tree = ast.parse(text)
        spoken = [node.body[0].value for node in ast.walk(self.tree)
                  if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
                  and node.body and isinstance(node.body[0], ast.Expr)]
        self._docstrings = {id(node) for node in spoken}

    def imports(self):
        """Yield the packages it imports."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (name.name.split('.')[0] for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module.split('.')[0]

    def speaks_too_much(self):
        """Return the packages that speak to a cloud, or to guests, and that its room may not."""
        return set(self.imports()) & SPEAKING - SPEAKERS.get(self.room, set())

    def reaches_in(self):
        """Return what in it reaches into guests."""
        return ({name for _of, name in self.attributes()} & REACHING_IN) | {
            text for text in self.texts() if REACHING_IN_TEXTS.search(text)}

    def texts(self):
        """Yield its strings, but for those that are documentation."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and (
                    id(node) not in self._docstrings):
                yield node.value

    def attributes(self):
        """Yield the names of attributes it asks for, each with the name of what it is asked of."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute):
                yield node.value.id if isinstance(node.value, ast.Name) else None, node.attr
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (
                    node.func.id == 'getattr') and len(node.args) > 1 and isinstance(
                        node.args[1], ast.Constant):
                yield None, node.args[1].value

    def paths(self):
        """Yield what may be the path of a service that it asks."""
        named = {target.id: node.value.value for node in ast.walk(self.tree)
                 if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
                 for target in node.targets if isinstance(target, ast.Name)}
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Call):
                continue
            function = getattr(node.func, 'attr', getattr(node.func, 'id', None))
            if function in _ASKING:
                for argument in node.args[:2]:
                    text = _text(argument, named)
                    if isinstance(text, str) and '/' in text and _PATH.match(text):
                        yield text.strip('/')
        # Some are put together elsewhere.
        for node in ast.walk(self.tree):
            if isinstance(node, ast.JoinedStr):
                text = _text(node, named)
                if text and re.match(r'^/?(v\d+(\.\d+)?|api)/', text):
                    yield text.strip('/')


def _text(node, named):
    """Return the text of a constant, of a name that stands for one, or up to what is filled in."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return named.get(node.id)
    if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
        return node.values[0].value.rstrip('/')
    return None


def product():
    """Return the modules of the product."""
    root = opacity.ROOT
    found = [Module(str(path.relative_to(root)), path.read_text(encoding='utf-8'))
             for top in ('tracon_watcher', 'nova_filters')
             for path in sorted((root / top).rglob('*.py'))]
    return found


def _installed(*names):
    return all(importlib.util.find_spec(name) is not None for name in names)


def needs(*names):
    """Skip a test where what it needs is not installed."""
    return unittest.skipUnless(_installed(*names), f'{", ".join(names)} is not installed')


class SourceTestCase(unittest.TestCase):
    """What the source names."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.modules = product()
        cls.table = opacity.table()

    def test_each_room_of_the_table_is_looked_at(self):
        rooms = {module.room for module in self.modules}
        self.assertTrue({'telemetry', 'engine', 'decision_engine', 'inventory', 'nova_filters',
                         'placement'} <= rooms, rooms)
        for row in self.table:
            self.assertTrue(row.rooms <= rooms, row)

    def test_only_the_rooms_of_the_table_speak_to_a_cloud(self):
        for module in self.modules:
            self.assertEqual(set(), module.speaks_too_much(), module.name)

    def test_nothing_reaches_into_a_guest(self):
        for module in self.modules:
            self.assertEqual(set(), module.reaches_in(), module.name)

    def test_what_must_not_be_would_be_found(self):
        for text in ('libvirt_qemu.qemuAgentCommand(domain, "{}", 1, 0)',
                     'domain.interfaceAddresses(libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT)',
                     'connection.image.download_image(one)', 'getattr(domain, "getTime")()',
                     'nova.get("/servers/1/action", {"os-getConsoleOutput": {}})',
                     'server["OS-EXT-SRV-ATTR:user_data"]'):
            self.assertTrue(Module('tracon_watcher/telemetry/x.py', text).reaches_in(), text)
        self.assertFalse(Module('tracon_watcher/x/y.py', '"""It asks no qemu-agent."""'
                                ).reaches_in())
        for name in ('tracon_watcher/placement/x.py', 'tracon_watcher/engine/x.py'):
            self.assertEqual({'paramiko'}, Module(name, 'import paramiko').speaks_too_much())
        asking = Module('tracon_watcher/inventory/x.py',
                        '_PATH = "v2/images"\nnova.pages("/os-keypairs", "keypairs", {})\n'
                        'glance.get(_PATH)\nservice.ask("GET", f"v1/metric/{one}/measures")')
        self.assertEqual({'os-keypairs', 'v2/images', 'v1/metric'}, set(asking.paths()))

    @needs('libvirt')
    def test_every_call_to_libvirt_is_listed(self):
        import libvirt
        api = {name for kind in (libvirt.virConnect, libvirt.virDomain, libvirt.virStream,
                                 libvirt.virStoragePool, libvirt.virStorageVol,
                                 libvirt.virNetwork, libvirt.virNodeDevice)
               for name in dir(kind) if not name.startswith('_')}
        listed = {row.what for row in self.table if row.source == 'libvirt'}
        groups = {f'VIR_DOMAIN_STATS_{name}' for name in
                  ('STATE', 'CPU_TOTAL', 'VCPU', 'BLOCK', 'PERF', 'INTERFACE')}
        flags = {'VIR_CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE',
                 'VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT'}
        found = 0
        for module in self.modules:
            if 'libvirt' not in module.imports():
                continue
            for of, name in module.attributes():
                if of == 'libvirt':
                    self.assertIn(name, listed | groups | flags | {'libvirtError'}, module.name)
                    found += 1
                elif name in api:
                    self.assertIn(name, listed, module.name)
                    found += 1
        self.assertGreater(found, 5, 'nothing was looked at')

    def test_every_path_of_a_service_is_listed(self):
        listed = {}
        for row in self.table:
            method, _space, path = row.what.partition(' ')
            if method.isupper() and path:
                # Of a path with a parameter the source has the part before it.
                listed.setdefault(path.strip('/').partition('/{')[0], set()).update(row.rooms)
        speaking = {room for rooms in listed.values() for room in rooms}
        seen = set()
        for module in self.modules:
            if module.room in speaking:
                for path in module.paths():
                    self.assertIn(path, listed, module.name)
                    self.assertIn(module.room, listed[path], path)
                    seen.add(path)
        self.assertEqual(set(listed), seen, 'the table has what is not read any more')

    def test_every_file_of_a_host_is_listed(self):
        listed = tuple(row.what.strip('/') for row in self.table if row.source == 'kernel')
        found = 0
        for module in self.modules:
            for text in module.texts():
                if _KERNEL.match(text):
                    self.assertTrue(text.strip('/').startswith(listed), f'{module.name}: {text}')
                    found += 1
        self.assertGreaterEqual(found, len(listed))

    def test_every_key_of_ours_is_listed(self):
        listed = {field.rpartition('.')[2] for row in self.table for field in row.fields
                  if '.tracon:' in field}
        used = {text for module in self.modules if module.room not in ('api', 'osc')
                for text in module.texts() if _KEY.match(text)}
        self.assertEqual(listed, used)

    def test_metadata_is_looked_up_by_key(self):
        # All keys of a server's, an image's or an aggregate's at once would be more than listed.
        for row in self.table:
            self.assertFalse({field for field in row.fields if field.endswith(
                ('metadata', 'metadata.*', 'properties', 'properties.*'))}, row)


class AnswersTestCase(unittest.TestCase):
    """What is read of complete answers."""

    def assert_listed(self, log, row):
        self.assertTrue(log.read, 'nothing was read')
        self.assertEqual(set(), log.beyond(row.fields))

    def connection(self, answers, logs):
        """Return a connection whose services answer with everything there is."""
        import requests

        class Service:
            def get(self, path, params=None, microversion=None):
                key, entries = answers[path]
                response = requests.Response()
                response.status_code = 200
                response.headers['Content-Type'] = 'application/json'
                body = {key: entries}
                if (params or {}).get('offset'):
                    body = {key: []}
                log = logs.setdefault(path, opacity.Log())
                inside = opacity.recorded(body[key], log)
                response.json = lambda **_how: {key: inside}
                response._content = json.dumps(body).encode()
                return response

        service = Service()
        return types.SimpleNamespace(compute=service, network=service, placement=service,
                                     block_storage=service, volume=service)

    @needs('openstack', 'oslo_utils')
    def test_the_strategy(self):
        from tracon_watcher.decision_engine import constraints_builder
        from tracon_watcher.decision_engine import inventory
        logs = {}
        connection = self.connection(answers(), logs)
        found = inventory.collect(connection, 0.0)
        self.assertEqual(1, len(found.failed_builds))
        wishes = constraints_builder.ConstraintParameters(frozenset(), 'tracon:exclude', 60.0)
        for server in found.servers.values():
            constraints_builder.obstacle(found, server.uuid, 'host1', wishes)
        for path, log in logs.items():
            with self.subTest(path=path):
                self.assert_listed(log, next(
                    row for row in opacity.table() if row.what == f'GET {path}'))
        self.assertIn('metadata.tracon:exclude', logs['/servers/detail'].read)
        self.assertGreaterEqual(len(logs), 6)

    @needs('openstack')
    def test_the_inventory_of_the_engine(self):
        from tracon_watcher.engine import state
        from tracon_watcher.inventory import cloud
        from tracon_watcher.inventory import volume_limits
        logs = {}
        found = cloud.collect(self.connection(answers(), logs),
                              volume_limits=volume_limits.VolumeLimits())
        self.assertTrue(found.servers and found.hypervisors and found.aggregates)
        for aggregate in found.aggregates:
            for key in (state.HOST_TYPE, state.STORAGE):
                aggregate.metadata.get(key)
        for path, log in logs.items():
            with self.subTest(path=path):
                self.assert_listed(log, next(
                    row for row in opacity.table() if row.what == f'GET {path}'))

    @needs('oslo_messaging')
    def test_notifications(self):
        from tracon_watcher.engine import inventory_cache
        from tracon_watcher.engine import listener
        seen = inventory_cache.InventoryCache()
        log = opacity.Log()
        endpoint = listener.Endpoint(seen, lambda event, error: self.fail(str(error)))
        for event in ('instance.create.end', 'instance.update', 'instance.delete.end',
                      'instance.live_migration_post_dest.end', 'instance.volume_attach.end'):
            endpoint.info({}, 'nova', event, {'nova_object.data': opacity.recorded(
                notification(), log)}, {})
        read = opacity.Log()
        # The wrapping of Nova's versioned objects is no field.
        read.read = {one.replace('.nova_object.data', '') for one in log.read}
        self.assert_listed(read, opacity.row('Nova notifications', 'instance.*'))

    @needs('oslo_messaging')
    def test_a_notification_of_a_build_that_failed(self):
        from tests.unit.engine import test_notifications
        from tracon_watcher.engine import listener
        log = opacity.Log()
        trigger = listener.AuditTrigger(lambda: None)
        trigger.tell(opacity.recorded({
            **test_notifications.build(), 'reason': {'nova_object.data': {
                'exception': 'NoValidHost', 'traceback': 'File'}}}, log))
        self.assertTrue(trigger.wanted.is_set())
        log.read = {one.replace('.nova_object.data', '') for one in log.read}
        self.assert_listed(log, opacity.row('Nova notifications',
                                            'compute_task.build_instances.error'))


class HypervisorTestCase(unittest.TestCase):
    """What is read of a host."""

    @needs('libvirt')
    def test_libvirt(self):
        from tests.unit.telemetry import replay
        from tracon_watcher.telemetry import libvirt
        calls, fields = opacity.Log(), opacity.Log()

        class Connection(replay.Connection):
            def getAllDomainStats(self, *arguments):
                return [(opacity.Attributes(domain, calls), opacity.recorded(stats, fields))
                        for domain, stats in super().getAllDomainStats(*arguments)]

        source = libvirt.Source(lambda: opacity.Attributes(Connection(*replay.polls()), calls))
        for _poll in range(2):
            self.assertTrue(source.poll())
        self.assertLessEqual(calls.read, {row.what for row in opacity.table()
                                          if row.source == 'libvirt'})
        self.assertEqual(set(), fields.beyond(
            opacity.row('libvirt', 'getAllDomainStats').fields))
        self.assertIn('vcpu.N.delay', fields.read)

    def test_the_statistics_that_are_documented_are_those_that_are_read(self):
        from tracon_watcher.telemetry import domain_stats
        self.assertEqual(opacity.row('libvirt', 'getAllDomainStats').fields,
                         set(domain_stats.FIELDS))

    def test_the_kernel(self):
        from tests.unit.telemetry import replay
        from tests.unit.telemetry import test_host_totals
        from tracon_watcher.telemetry import host_counters
        tree = test_host_totals.Tree('setUp')
        tree.setUp()
        self.addCleanup(tree.doCleanups)
        moment = replay.read('host.json')['moments'][0]
        tree.write(moment['stat'], moment['diskstats'], moment['block'])
        seen = set()

        def spy(name):
            function = getattr(pathlib.Path, name)

            def call(path, *arguments, **named):
                seen.add(str(path.relative_to(tree.root)))
                return function(path, *arguments, **named)
            return mock.patch.object(pathlib.Path, name, call)

        with spy('read_text'), spy('is_dir'), spy('iterdir'), spy('read_bytes'), spy('open'):
            self.assertTrue(host_counters.read(tree.root, 100, lambda: 42))
        listed = tuple(row.what.strip('/') for row in opacity.table() if row.source == 'kernel')
        blocks = opacity.row('kernel', '/sys/block').fields
        for path in seen:
            self.assertTrue(path.startswith(listed), path)
            if path.startswith('sys/block'):
                self.assertTrue(set(path.split('/')[3:]) <= blocks, path)

    def test_gnocchi_gives_no_attribute_that_is_not_listed(self):
        if not _installed('keystoneauth1'):
            self.skipTest('keystoneauth1 is not installed')
        from tracon_watcher.telemetry import gnocchi
        self.assertEqual(opacity.row('Gnocchi', 'POST v1/search/resource').fields,
                         set(gnocchi._ATTRIBUTES))


class SchedulerTestCase(unittest.TestCase):
    """What is read of Nova's own objects."""

    @needs('nova', 'oslo_messaging', 'fixtures')
    def test_the_filter_and_the_weigher(self):
        from nova import objects

        from tests.unit.nova_filters import base
        case = base.JudgeCase('setUp')
        case.setUp()
        self.addCleanup(case.doCleanups)
        case.write({'a': {'vm-1': None}, 'b': {}, 'c': {}})
        logs = {name: opacity.Log() for name in
                ('HostState', 'RequestSpec', 'Flavor', 'Aggregate', 'Instance')}
        judge = case.judge()
        for number in range(3):
            metadata = opacity.recorded({'tracon:mode': 'enforce', 'tracon:max_slowdown': '3',
                                         'secret': 'x'}, logs['Aggregate'], 'metadata')
            aggregate = opacity.Attributes(objects.Aggregate(name='rack', metadata={}),
                                           logs['Aggregate'], metadata=metadata)
            states = []
            for name in 'abc':
                state = base.host_state(name, ['vm-1'] if name == 'a' else [], [aggregate])
                if number and name == 'b':
                    state.instances['newer'] = opacity.Attributes(
                        objects.Instance(uuid='newer'), logs['Instance'])
                    state.num_instances += 1
                states.append(opacity.Attributes(state, logs['HostState']))
            spec = base.request_spec({'tracon:max_slowdown': '4', 'hw:cpu_policy': 'shared'})
            flavor = opacity.Attributes(
                objects.Flavor(name='synthetic', extra_specs={}), logs['Flavor'],
                extra_specs=opacity.recorded(spec.flavor.extra_specs, logs['Flavor'],
                                             'extra_specs'))
            proxy = opacity.Attributes(spec, logs['RequestSpec'], flavor=flavor)
            passed = judge.passing(states, proxy)
            self.assertTrue(passed)
            judge.weights(passed, proxy, [0.0])
        for name, log in logs.items():
            with self.subTest(object=name):
                allowed = opacity.row('Nova scheduler', name).fields
                # What Attributes itself is asked for is none of Nova's.
                log.read = {one for one in log.read if not one.startswith('__')}
                self.assertTrue(log.read)
                self.assertEqual(set(), log.beyond(allowed))


def answers():
    """Return what services list, with all that they list: by path, the key and its entries."""
    server = {
        'id': 'vm-1', 'name': 'db', 'tenant_id': 'p1', 'user_id': 'u1', 'key_name': 'key',
        'status': 'ACTIVE', 'hostId': 'x', 'accessIPv4': '', 'accessIPv6': '', 'progress': 0,
        'created': '2026-01-01T00:00:00Z', 'updated': '2026-01-01T00:00:00Z', 'tags': ['t'],
        'description': 'd', 'config_drive': '', 'locked': False, 'locked_reason': None,
        'metadata': {'tier': 'gold', 'password': 'x'}, 'addresses': {'net': [{'addr': '::1'}]},
        'security_groups': [{'name': 'default'}], 'links': [{'rel': 'self', 'href': 'http://x'}],
        'image': {'id': 'i1', 'properties': {'hw_cpu_policy': 'shared', 'os_distro': 'debian'}},
        'flavor': {'id': 'f1', 'original_name': 'f1', 'vcpus': 2, 'ram': 512, 'disk': 1,
                   'ephemeral': 0, 'swap': 0, 'extra_specs': {'hw:cpu_policy': 'shared'}},
        'OS-EXT-SRV-ATTR:host': 'host1', 'OS-EXT-SRV-ATTR:hypervisor_hostname': 'host1',
        'OS-EXT-SRV-ATTR:instance_name': 'i', 'OS-EXT-SRV-ATTR:user_data': 'c2VjcmV0',
        'OS-EXT-SRV-ATTR:hostname': 'db', 'OS-EXT-SRV-ATTR:root_device_name': '/dev/vda',
        'OS-EXT-STS:vm_state': 'active', 'OS-EXT-STS:task_state': None,
        'OS-EXT-STS:power_state': 1, 'OS-DCF:diskConfig': 'MANUAL', 'host_status': 'UP',
        'OS-EXT-AZ:availability_zone': 'north', 'pinned_availability_zone': 'north',
        'OS-SRV-USG:launched_at': None, 'OS-SRV-USG:terminated_at': None, 'server_groups': [],
        'trusted_image_certificates': None,
        'os-extended-volumes:volumes_attached': [{'id': 'v1', 'delete_on_termination': True}]}
    return {
        '/servers/detail': ('servers', [
            server, dict(server, id='vm-2', image=''), dict(server, id='vm-3', fault={
                'code': 500, 'created': '2026-01-01T00:00:00Z', 'details': 'Traceback',
                'message': 'No valid host was found. There are not enough hosts available.'}, **{
                    'OS-EXT-SRV-ATTR:host': None, 'OS-EXT-STS:vm_state': 'error'})]),
        '/os-server-groups': ('server_groups', [
            {'id': 'g', 'name': 'g', 'policy': 'affinity', 'rules': {'max_server_per_host': 2},
             'members': ['vm-1'], 'project_id': 'p1', 'user_id': 'u1'}]),
        '/os-migrations': ('migrations', [
            {'id': 1, 'uuid': 'm', 'instance_uuid': 'vm-1', 'status': status, 'user_id': 'u1',
             'source_compute': 'host1', 'dest_compute': 'host2', 'source_node': 'host1',
             'dest_node': 'host2', 'dest_host': '::1', 'migration_type': 'live-migration',
             'old_instance_type_id': 1, 'new_instance_type_id': 1, 'project_id': 'p1',
             'created_at': '2026-01-01T00:00:00.000000', 'updated_at': None}
            for status in ('running', 'completed', 'reverting')]),
        '/os-services': ('services', [
            {'id': 's', 'host': 'host1', 'binary': 'nova-compute', 'status': 'enabled',
             'state': 'up', 'zone': 'north', 'disabled_reason': None, 'forced_down': False,
             'updated_at': None}]),
        '/os-hypervisors/detail': ('hypervisors', [
            {'id': 'h', 'hypervisor_hostname': 'host1', 'state': 'up', 'status': 'enabled',
             'service': {'id': 's', 'host': 'host1', 'disabled_reason': None}, 'vcpus': 48,
             'hypervisor_type': 'QEMU',
             'vcpus_used': 1, 'memory_mb': 1, 'host_ip': '192.0.2.1',
             'cpu_info': {'topology': {'threads': 2}},
             'running_vms': 1}]),
        '/os-aggregates': ('aggregates', [
            {'id': 1, 'uuid': 'a', 'name': 'rack', 'hosts': ['host1'], 'deleted': False,
             'availability_zone': 'north', 'metadata': {'secret': 'x', 'tracon:storage': 'pool'},
             'created_at': None, 'updated_at': None, 'deleted_at': None}]),
        '/ports': ('ports', [
            {'id': 'p', 'device_id': 'vm-1', 'binding:vnic_type': 'normal', 'fixed_ips': [],
             'mac_address': '52:54:00:00:00:01', 'dns_name': 'db'}]),
        '/types': ('volume_types', [
            {'id': 't', 'name': 'fast', 'qos_specs_id': 'q', 'description': 'x',
             'is_public': True, 'extra_specs': {'secret': 'x'}}]),
        '/qos-specs': ('qos_specs', [{'id': 'q', 'name': 'x', 'consumer': 'front-end',
                                      'specs': {'read_iops_sec': '100'}}]),
        '/volumes/detail': ('volumes', [
            {'id': 'v1', 'volume_type': 'fast', 'name': 'data', 'size': 1,
             'metadata': {'secret': 'x'}, 'attachments': [],
             'os-vol-host-attr:host': 'cinder@lvm#pool',
             'volume_image_metadata': {'os_distro': 'debian'}}]),
        '/allocation_candidates': ('provider_summaries', {'node-1': {
            'resources': {kind: {'capacity': 8, 'used': 1} for kind in
                          ('VCPU', 'MEMORY_MB', 'DISK_GB', 'PCPU')},
            'traits': ['COMPUTE_NODE'], 'parent_provider_uuid': None,
            'root_provider_uuid': 'node-1'}}),
    }


def notification():
    """Return the payload of one of Nova's versioned notifications of an instance."""
    return {
        'uuid': 'vm-1', 'display_name': 'db', 'display_description': 'd', 'tenant_id': 'p1',
        'user_id': 'u1', 'host': 'host1', 'node': 'host1', 'host_name': 'db', 'state': 'active',
        'task_state': None, 'power_state': 'running', 'image_uuid': 'i1', 'kernel_id': '',
        'ramdisk_id': '', 'metadata': {'secret': 'x'}, 'key_name': 'key', 'keypairs': [],
        'ip_addresses': [{'nova_object.data': {'address': '::1'}}], 'locked': False,
        'os_type': None, 'availability_zone': 'north', 'reservation_id': 'r', 'tags': [],
        'block_devices': [], 'fault': None, 'audit_period': None, 'architecture': None,
        'flavor': {'nova_object.name': 'FlavorPayload', 'nova_object.data': {
            'name': 'f1', 'flavorid': 'f1', 'vcpus': 2, 'memory_mb': 512, 'root_gb': 1,
            'extra_specs': {'hw:cpu_policy': 'shared'}, 'projects': None}}}
