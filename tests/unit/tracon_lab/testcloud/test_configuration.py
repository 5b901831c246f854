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

"""The files say what the services have to know, and no more."""

import configparser
import os
import pathlib
import tempfile
import unittest

from tracon_lab.testcloud.configuration import companions
from tracon_lab.testcloud.configuration import ini
from tracon_lab.testcloud.configuration import libvirt
from tracon_lab.testcloud.configuration import nova
from tracon_lab.testcloud.configuration import watcher
from tracon_lab.testcloud import settings as settings_module


def parsed(sections):
    found = configparser.RawConfigParser(strict=False, default_section='')
    found.read_string(ini.render(sections))
    return found


class TestIni(unittest.TestCase):

    def test_values_are_written_as_oslo_config_reads_them(self):
        text = ini.render({'DEFAULT': {'debug': True, 'port': 5, 'path': pathlib.Path('/x')},
                           'a.b': {'many': ['x', 'y']}})
        self.assertEqual('[DEFAULT]\ndebug = true\nport = 5\npath = /x\n\n'
                         '[a.b]\nmany = x\nmany = y\n', text)

    def test_what_is_appended_comes_last_and_wins(self):
        text = ini.render({'scheduler': {'workers': 1}}, '\n[scheduler]\nworkers = 3')
        found = configparser.RawConfigParser(strict=False, default_section='')
        found.read_string(text)
        self.assertEqual('3', found['scheduler']['workers'])
        self.assertTrue(text.endswith('workers = 3\n'))

    def test_a_file_is_private_and_left_alone_when_it_says_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'a/b.conf'
            ini.write(path, 'x')
            self.assertEqual(0o600, path.stat().st_mode & 0o777)
            os.utime(path, (1, 1))
            ini.write(path, 'x')
            self.assertEqual(1, path.stat().st_mtime)
            ini.write(path, 'y')
            self.assertEqual('y', path.read_text())
            self.assertEqual(['b.conf'], [one.name for one in path.parent.iterdir()])


class TestNova(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.settings = settings_module.Settings(cores=('0', '1'))

    def test_computes_know_no_database(self):
        for sections in (nova.common(self.settings), nova.compute(self.settings, 'cmp1')):
            self.assertNotIn('database', sections)
            self.assertNotIn('api_database', sections)
        self.assertEqual({'database', 'api_database'}, set(nova.control(self.settings)))

    def test_hosts_differ_in_what_has_to_differ_and_in_nothing_else(self):
        one, other = (parsed(nova.compute(self.settings, host)) for host in ('cmp1', 'cmp2'))
        different = {
            (section, option) for section in one.sections() for option in one.options(section)
            if one.get(section, option) != other.get(section, option)}
        helpers = {(name, 'helper_command') for name in one.sections()
                   if one.has_option(name, 'helper_command')}
        self.assertEqual(4, len(helpers))
        self.assertEqual({
            ('DEFAULT', 'host'), ('DEFAULT', 'my_ip'), ('compute', 'cpu_shared_set'),
            ('serial_console', 'proxyclient_address'),
            ('libvirt', 'live_migration_inbound_addr')} | helpers, different)

    def test_guests_are_emulated_and_their_disks_real(self):
        found = parsed(nova.compute(self.settings, 'cmp2'))
        self.assertEqual('qemu', found['libvirt']['virt_type'])
        self.assertEqual('raw', found['libvirt']['images_type'])
        self.assertEqual('file=none', found['libvirt']['disk_cachemodes'])
        self.assertEqual('1', found['compute']['cpu_shared_set'])

    def test_hosts_together_give_no_more_memory_than_there_is(self):
        for hosts in (('a',), ('a', 'b'), ('a', 'b', 'c')):
            made = settings_module.Settings(hosts=hosts)
            ratios = [float(parsed(nova.compute(made, host))['DEFAULT']['ram_allocation_ratio'])
                      for host in hosts]
            self.assertLessEqual(sum(ratios), 1.0)

    def test_the_migration_address_names_the_socket_of_the_other_host(self):
        found = nova.compute(self.settings, 'cmp1')['libvirt']['live_migration_uri']
        self.assertEqual(
            f'qemu+unix:///system?socket={self.settings.directory}/hosts/cmp2/run/libvirt-sock',
            found % 'cmp2')


class TestOthers(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.settings = settings_module.Settings(port_base=21000, password='abc')

    def test_all_ask_the_same_keystone(self):
        files = (companions.placement, companions.glance, companions.neutron, watcher.watcher,
                 nova.common)
        types = set()
        for make in files:
            section = make(self.settings)['keystone_authtoken']
            self.assertEqual('http://127.0.0.1:21005/v3', section['auth_url'])
            self.assertEqual('abc', section['password'])
            types.add(section['service_type'])
        self.assertEqual(5, len(types))
        self.assertLessEqual(types, set(settings_module.CATALOGUE))

    def test_each_has_a_database_that_is_made(self):
        urls = [make(self.settings)[section]['connection'] for make, section in (
            (companions.keystone, 'database'), (companions.placement, 'placement_database'),
            (companions.glance, 'database'), (companions.neutron, 'database'),
            (nova.control, 'database'), (nova.control, 'api_database'),
            (watcher.watcher, 'database'))]
        names = [url.rsplit('/', 1)[1].split('?')[0] for url in urls]
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual(set(names), set(settings_module.DATABASES))
        for url in urls:
            self.assertIn('stack:abc@127.0.0.1:21000/', url)


class TestLibvirt(unittest.TestCase):

    def test_hosts_are_told_apart_and_receive_guests_on_ports_of_their_own(self):
        with tempfile.TemporaryDirectory() as folder:
            made = settings_module.Settings(directory=pathlib.Path(folder))
            libvirt.write(made)
            texts = {}
            for host in made.hosts:
                for name in ('libvirtd.conf', 'qemu.conf'):
                    path = made.host_directory(host) / 'etc' / name
                    texts[host, name] = dict(
                        line.split(' = ') for line in path.read_text().splitlines())
            one, other = (texts[host, 'libvirtd.conf']['host_uuid'] for host in made.hosts)
            self.assertNotEqual(one, other)
            ranges = [(int(texts[host, 'qemu.conf']['migration_port_min']),
                       int(texts[host, 'qemu.conf']['migration_port_max']))
                      for host in made.hosts]
            self.assertLess(ranges[0][1], ranges[1][0])
            self.assertEqual('[]', texts['cmp1', 'qemu.conf']['namespaces'])

    def test_every_host_finds_every_other(self):
        made = settings_module.Settings(hosts=('a', 'b'))
        lines = [line.split() for line in libvirt.hosts_file(made).splitlines()]
        self.assertEqual({'localhost', 'a', 'b'}, {name for _address, name in lines})
        self.assertEqual(3, len({address for address, _name in lines}))
