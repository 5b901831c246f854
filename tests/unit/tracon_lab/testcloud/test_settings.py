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

"""One source of ports, names and paths, kept where the other commands find it."""

import dataclasses
import os
import pathlib
import tempfile
import unittest
from unittest import mock

from tracon_lab.testcloud import errors as cloud_errors
from tracon_lab.testcloud import settings
from tracon_watcher import errors


class TestSettings(unittest.TestCase):

    def test_every_listener_has_a_port_of_its_own(self):
        made = settings.Settings(port_base=20000)
        ports = [made.port(name) for name in settings.LISTENERS]
        self.assertEqual(len(ports), len(set(ports)))
        self.assertEqual(20000, min(ports))
        self.assertLess(max(ports), 32768)
        for listener, _path in settings.CATALOGUE.values():
            self.assertIn(listener, settings.LISTENERS)

    def test_hosts_of_two_clouds_have_different_addresses(self):
        clouds = [settings.Settings(port_base=base, hosts=('cmp1', 'cmp2', 'cmp3'))
                  for base in (27000, 27013, 28000)]
        addresses = [made.host_address(host) for made in clouds for host in made.hosts]
        self.assertEqual(9, len(set(addresses)))
        for address in addresses:
            first, *rest = map(int, address.split('.'))
            self.assertEqual(127, first)
            self.assertTrue(all(0 <= part <= 255 for part in rest), address)

    def test_a_host_has_a_core_where_there_are_enough(self):
        cores = [1, 2, 5]
        self.enterContext(mock.patch.object(os, 'sched_getaffinity', lambda _pid: set(cores)))
        alone = settings.Settings(hosts=('cmp1',))
        self.assertEqual(str(cores[0]), alone.host_cores('cmp1'))
        many = settings.Settings(hosts=tuple(f'h{n}' for n in range(len(cores) + 1)))
        self.assertEqual(','.join(map(str, cores)), many.host_cores('h0'))
        given = settings.Settings(cores=('2,3', '4'))
        self.assertEqual(['2,3', '4'], [given.host_cores(host) for host in given.hosts])

    def test_what_cannot_be_is_refused_by_name(self):
        for wrong in (dict(hosts=()), dict(hosts=('cmp1', 'cmp1')), dict(hosts=('Cmp_1',)),
                      dict(cores=('0',)), dict(port_base=80), dict(port_base=32760),
                      dict(password='a@b'), dict(polling_seconds=0), dict(disk_mib=1500)):
            with self.subTest(**wrong), self.assertRaises(errors.InvalidOption) as caught:
                settings.Settings(**wrong)
            self.assertEqual(next(iter(wrong)), caught.exception.name)

    def test_they_come_back_from_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            made = settings.Settings(
                directory=pathlib.Path(folder), hosts=('a', 'b', 'c'), cores=('0', '1', '0-1'),
                telemetry=pathlib.Path('/etc/x'), nova_extra='[DEFAULT]\nx = 1\n',
                environment={'PYTHONPATH': '/x'})
            made.save()
            self.assertEqual(made, settings.Settings.load(pathlib.Path(folder)))
            self.assertEqual(0o600, (made.directory / 'settings.json').stat().st_mode & 0o777)

    def test_a_folder_without_a_cloud_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            with self.assertRaisesRegex(cloud_errors.NoCloud, 'tracon cloud start'):
                settings.Settings.load(path)
            for text in ('{', '[]', '{"hosts": ["a"]}'):
                (path / 'settings.json').write_text(text)
                with self.subTest(text), self.assertRaises(errors.InvalidDocument):
                    settings.Settings.load(path)

    def test_every_field_is_described(self):
        described = settings.Settings.__doc__
        for field in dataclasses.fields(settings.Settings):
            if not field.name.endswith('_extra') and field.name not in ('debug',
                                                                        'scheduler_workers'):
                self.assertIn(f':param {field.name}:', described)
