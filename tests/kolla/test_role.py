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

"""What the role does, run by the real kolla-ansible: configuration is real, containers are not.

Kolla-Ansible's modules that talk to Docker, and to Keystone and MariaDB by way of a container, are
replaced by one that takes down what it is asked for.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import Any
import unittest

from oslo_config import cfg
from oslo_config import generator
from oslo_config import iniparser
import yaml

from tracon_watcher.cmd import engine
from tracon_watcher.conf import nova_filters

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OURS = ROOT / 'contrib' / 'kolla'
BIN = pathlib.Path(sys.executable).parent
THEIRS = BIN.parent / 'share' / 'kolla-ansible'
VIP = '192.0.2.10'
#: Options in which nova.conf, watcher.conf and tracon.conf must be alike.
BROKER = ('rabbit_quorum_queue', 'rabbit_transient_quorum_queue', 'amqp_durable_queues',
          'amqp_auto_delete', 'rabbit_stream_fanout', 'rabbit_qos_prefetch_count', 'ssl',
          'ssl_ca_file')
RECORDER = '''#!/usr/bin/python
# WANT_JSON
import json
import os
import sys

with open(sys.argv[1]) as file:
    asked = json.load(file)
with open(os.environ['RECORD'], 'a') as record:
    record.write(json.dumps({'module': MODULE, **asked}) + chr(10))
print(json.dumps({
    'changed': asked.get('action') == 'compare_container' and asked['name'] == 'tracon_engine',
    'containers': {'tracon_engine': {'Status': 'Up 2 days (healthy)'}}}))
'''
#: Renders the configuration of other services, with what is to be added to it.
OTHERS = '''
- hosts: localhost
  gather_facts: true
  tasks:
    - include_vars: "{{ playbook_dir }}/roles/{{ item }}/defaults/main.yml"
      loop: [nova, watcher]
    - merge_configs:
        sources:
          - "{{ playbook_dir }}/roles/{{ item.role }}/templates/{{ item.role }}.conf.j2"
          - "SAMPLES/{{ item.sample }}"
        dest: "{{ node_config_directory }}/{{ item.service }}.conf"
      vars:
        service_name: "{{ item.service }}"
      loop:
        - {role: nova, service: nova-scheduler, sample: nova-scheduler.conf}
        - {role: watcher, service: watcher-engine, sample: watcher.conf}
'''


class Site:
    """A folder with Kolla-Ansible as it is when our files have been copied into it."""

    def __init__(self, folder: pathlib.Path, **settings: Any) -> None:
        self.node = folder / 'node'
        self.custom = folder / 'custom'
        self._folder = folder
        self._ansible = folder / 'ansible'
        for path in ('etc', 'custom/tracon', 'node/haproxy/services.d', 'node/proxysql/users',
                     'node/proxysql/rules', 'ansible/roles', 'ansible/library', 'certificates/ca'):
            (folder / path).mkdir(parents=True)
        for path in (THEIRS / 'ansible').iterdir():
            if path.name not in ('roles', 'library'):
                (self._ansible / path.name).symlink_to(path)
        for path in [*(THEIRS / 'ansible' / 'roles').iterdir(),
                     *(OURS / 'ansible' / 'roles').iterdir()]:
            (self._ansible / 'roles' / path.name).symlink_to(path)
        (self._ansible / 'tracon.yml').symlink_to(OURS / 'ansible' / 'tracon.yml')
        for path in (THEIRS / 'ansible' / 'library').glob('*.py'):
            (self._ansible / 'library' / path.name).write_text(
                RECORDER.replace('MODULE', repr(path.stem)))
        # A collection that is not needed but named.
        firewall = folder / 'collections/ansible_collections/ansible/posix/plugins/modules'
        firewall.mkdir(parents=True)
        (firewall / 'firewalld.py').write_text('raise SystemExit("not to be run")\n')
        (folder / 'etc' / 'globals.yml').write_text(yaml.safe_dump({
            'node_config_directory': str(self.node), 'node_custom_config': str(self.custom),
            'kolla_certificates_dir': str(folder / 'certificates'),
            'kolla_internal_vip_address': VIP, 'kolla_same_external_internal_vip': True,
            'network_interface': 'lo', 'config_owner_user': os.getuid(),
            'config_owner_group': os.getgid(), 'ansible_become': False,
            'ansible_python_interpreter': sys.executable,
            'enable_ceilometer': True, 'enable_gnocchi': True, 'enable_watcher': True, **settings},
        ))
        shutil.copy(passwords(), folder / 'etc' / 'passwords.yml')

    def run(self, action: str, *more: str, playbook: str = 'tracon.yml') -> list[dict[str, Any]]:
        """Run an action of kolla-ansible's, and return what containers were asked for."""
        record = self._folder / 'record'
        record.write_text('')
        done = subprocess.run(
            [BIN / 'kolla-ansible', action, *more, '--configdir', self._folder / 'etc',
             '-i', THEIRS / 'ansible/inventory/all-in-one', '-i', OURS / 'inventory',
             '--playbook', self._ansible / playbook],
            capture_output=True, text=True, timeout=280, cwd=self._folder, env={
                **os.environ, 'PATH': f'{BIN}:{os.environ["PATH"]}', 'RECORD': str(record),
                'HOME': str(self._folder), 'ANSIBLE_LOCALHOST_WARNING': 'false',
                'ANSIBLE_COLLECTIONS_PATH': str(self._folder / 'collections')})
        if done.returncode:
            raise AssertionError(done.stdout[-8000:] + done.stderr[-2000:])
        return [json.loads(line) for line in record.read_text().splitlines()]

    def others(self) -> None:
        """Render nova.conf of the scheduler and watcher.conf of the decision engine."""
        (self._ansible / 'others.yml').write_text(
            OTHERS.replace('SAMPLES', str(ROOT / 'etc' / 'samples')))
        self.run('genconfig', playbook='others.yml')


@functools.cache
def passwords() -> pathlib.Path:
    """Return Kolla-Ansible's passwords with ours, filled by its kolla-genpwd."""
    path = pathlib.Path(tempfile.mkdtemp(prefix='tracon-kolla-')) / 'passwords.yml'
    ours = (OURS / 'passwords.yml').read_text().removeprefix('---\n')
    path.write_text((THEIRS / 'etc_examples/kolla/passwords.yml').read_text() + ours)
    path.chmod(0o600)
    subprocess.run([BIN / 'kolla-genpwd', '-p', path], check=True, timeout=280)
    unittest.addModuleCleanup(shutil.rmtree, path.parent)
    return path


class Parser(iniparser.BaseParser):
    """Collects the values of each option, by group and name."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        self.values: dict[tuple[str, str], list[str]] = {}
        self._group = 'DEFAULT'
        self.parse(path.read_text().splitlines(keepends=True))

    def new_section(self, section: str) -> None:
        self._group = section

    def assignment(self, key: str, value: list[str]) -> None:
        self.values.setdefault((self._group, key), []).append('\n'.join(value))


def known() -> set[tuple[str, str]]:
    """Return (group, name) of all options that tracon-engine and its libraries read."""
    config = Parser(ROOT / 'etc/oslo-config-generator/tracon-engine.conf')
    found = {('keystone_authtoken', one.dest) for one in cfg_password()}
    for _namespace, listed in generator._list_opts(config.values['DEFAULT', 'namespace']):
        for group, options in listed:
            name = getattr(group, 'name', group) or 'DEFAULT'
            found.update((name, one.dest) for one in options)
    return found


def cfg_password() -> list[cfg.Opt]:
    """Return options that Keystone's libraries read only when they are loaded."""
    from keystoneauth1 import loading
    return [*loading.get_auth_common_conf_options(),
            *loading.get_auth_plugin_conf_options('password')]


class RoleTestCase(unittest.TestCase):

    def site(self, **settings: Any) -> Site:
        return Site(pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix='tracon-kolla-'))), **settings)

    def assert_read_by_the_engine(self, path: pathlib.Path) -> cfg.ConfigOpts:
        """See that the engine knows each option, and takes each value."""
        self.assertEqual(set(), Parser(path).values.keys() - known())
        conf = cfg.ConfigOpts()
        engine.register_opts(conf)
        conf(['--config-file', str(path)], project='tracon')
        for group in ('database', 'api', 'engine', engine.AUTH):
            for name in conf[group]:
                self.assertIsNotNone([conf[group][name]])
        return conf

    def assert_shares_the_broker(self, site: Site) -> None:
        site.others()
        ours = Parser(site.node / 'tracon-engine/tracon.conf').values
        for name in ('nova-scheduler', 'watcher-engine'):
            theirs = Parser(site.node / f'{name}.conf').values
            for option in (('DEFAULT', 'transport_url'),
                           *(('oslo_messaging_rabbit', one) for one in BROKER)):
                self.assertEqual(theirs.get(option), ours.get(option), (name, option))

    def test_configuration(self) -> None:
        site = self.site()
        self.assertEqual([], site.run('genconfig'))
        conf = self.assert_read_by_the_engine(site.node / 'tracon-engine/tracon.conf')
        self.assertEqual(('127.0.0.1', 9790, 9791),
                         (conf.api.host, conf.api.port, conf.api.metrics_port))
        self.assertEqual(f'http://{VIP}:5000', Parser(
            site.node / 'tracon-engine/tracon.conf').values['service_auth', 'auth_url'][0])
        secrets = yaml.safe_load((passwords()).read_text())
        self.assertEqual(
            f'mysql+pymysql://tracon:{secrets["tracon_database_password"]}@{VIP}:3306/tracon',
            conf.database.connection)
        container = json.loads((site.node / 'tracon-engine/config.json').read_text())
        self.assertEqual(['/etc/tracon/tracon.conf'],
                         [one['dest'] for one in container['config_files']])
        self.assertEqual('tracon-engine --config-file /etc/tracon/tracon.conf',
                         container['command'])
        balancer = (site.node / 'haproxy/services.d/tracon-engine.cfg').read_text()
        self.assertIn(f'bind {VIP}:9790', balancer)
        self.assertIn('option httpchk GET /healthz/ready', balancer)
        user, = yaml.safe_load((site.node / 'proxysql/users/tracon.yaml').read_text())[
            'mysql_users']
        self.assertEqual(secrets['tracon_database_password'], user['password'])
        self.assert_shares_the_broker(site)

    def test_configuration_with_tls_policy_and_what_the_operator_adds(self) -> None:
        site = self.site(
            om_enable_rabbitmq_tls=True, om_enable_rabbitmq_stream_fanout=False,
            database_enable_tls_internal=True, kolla_copy_ca_into_containers=True,
            openstack_cacert='/etc/ssl/certs/ca-certificates.crt', enable_proxysql=False)
        (site.custom / 'tracon' / 'policy.yaml').write_text('{}\n')
        (site.custom / 'tracon.conf').write_text('[engine]\ntelemetry = prometheus\n'
                                                 '[prometheus]\nurl = http://192.0.2.11:9091\n')
        site.run('genconfig')
        conf = self.assert_read_by_the_engine(site.node / 'tracon-engine/tracon.conf')
        self.assertEqual(('prometheus', 'http://192.0.2.11:9091', 60.0),
                         (conf.engine.telemetry, conf.prometheus.url,
                          conf.engine.polling_interval_seconds))
        self.assertIn('?ssl_ca=/etc/ssl/certs', conf.database.connection)
        container = json.loads((site.node / 'tracon-engine/config.json').read_text())
        self.assertEqual(['/etc/tracon/tracon.conf', '/etc/tracon/policy.yaml',
                          '/var/lib/kolla/share/ca-certificates'],
                         [one['dest'] for one in container['config_files']])
        self.assertTrue((site.node / 'tracon-engine' / 'policy.yaml').exists())
        self.assertFalse((site.node / 'proxysql/users/tracon.yaml').exists())
        self.assert_shares_the_broker(site)

    def test_samples_are_what_nova_and_watcher_need(self) -> None:
        site = self.site()
        site.others()
        nova = Parser(site.node / 'nova-scheduler.conf').values
        self.assertEqual(
            ['nova.scheduler.filters.all_filters',
             'nova_filters.interference_filter.InterferenceFilter'],
            nova['filter_scheduler', 'available_filters'])
        self.assertTrue(nova['filter_scheduler', 'enabled_filters'][0].endswith(
            ',InterferenceFilter'))
        ours = {one.dest for _group, options in nova_filters.list_opts() for one in options}
        for values in (nova, Parser(site.node / 'watcher-engine.conf').values):
            self.assertEqual(['engine'], values['tracon', 'snapshot_source'])
            self.assertLessEqual({name for group, name in values if group == 'tracon'}, ours)

    def test_deploy(self) -> None:
        asked = self.site().run('deploy')
        in_keystone = [one['module_args'] for one in asked if one['module'] == 'kolla_toolbox'
                       and one['module_name'].startswith('openstack.')]
        self.assertIn({'tracon': 'interference'},
                      [{one['name']: one.get('service_type')} for one in in_keystone
                       if 'name' in one])
        self.assertEqual({'internal': f'http://{VIP}:9790', 'public': f'http://{VIP}:9790'}, {
            one['endpoint_interface']: one['url'] for one in in_keystone if 'url' in one})
        self.assertEqual({'admin', 'service'}, {
            one['role'] for one in in_keystone if one.get('user') == 'tracon'})
        self.assertEqual(['mysql_db', 'mysql_user'], [
            one['module_name'] for one in asked if one.get('module_name', '').startswith('mysql')])
        # The tables are made before the engine is started.
        containers = [(one['action'], one['name']) for one in asked
                      if one['module'] == 'kolla_container' and 'tracon' in one['name']]
        self.assertEqual([('compare_container', 'tracon_engine'),
                          ('start_container', 'bootstrap_tracon'),
                          ('recreate_or_restart_container', 'tracon_engine')], containers)
        engine_container = [one for one in asked if one.get('name') == 'tracon_engine'][-1]
        self.assertRegex(engine_container['image'], '/tracon-engine:')
        self.assertIn('tracon:/var/lib/tracon/', engine_container['volumes'])

    def test_other_actions(self) -> None:
        site = self.site()
        started = ['compare_container', 'start_container', 'recreate_or_restart_container']
        for expected, *action in (
                (['pull_image'], 'pull'), (['get_containers'], 'prechecks'),
                (['get_containers'], 'check'),
                (['stop_container'], 'stop', '--yes-i-really-really-mean-it'),
                (started, 'reconfigure'), (started, 'upgrade'),
                (['compare_container', 'recreate_or_restart_container'], 'deploy-containers')):
            with self.subTest(action[0]):
                asked = site.run(*action)
                self.assertEqual(expected, [
                    one['action'] for one in asked if 'action' in one
                    and 'tracon' in f'{one.get("name")} {one.get("image")}'])
