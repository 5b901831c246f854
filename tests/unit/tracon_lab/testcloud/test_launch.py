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

"""Every service comes up after what it needs, and goes down before that."""

import dataclasses
import pathlib
import tempfile
import unittest

from tracon_lab.testcloud import errors
from tracon_lab.testcloud import launch
from tracon_lab.testcloud import schemas
from tracon_lab.testcloud import services
from tracon_lab.testcloud import settings
from tracon_lab.testcloud import steps


class TestLaunch(unittest.TestCase):

    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.settings = settings.Settings(
            directory=folder, cache=folder / 'cache', hosts=('a', 'b', 'c'))
        self.services = services.Services(self.settings)
        self.launch = launch.Launch(self.services)

    def order(self, listed):
        found = []
        steps.perform([dataclasses.replace(step, action=lambda: None) for step in listed], 3,
                      lambda step, seconds: found.append(step.name))
        return found

    def test_everything_comes_up_after_what_it_needs(self):
        order = self.order(self.launch.up())
        self.assertEqual(len(order), len(set(order)))
        self.assertLessEqual(set(self.services.names()), set(order))
        for earlier, later in (
                ('mariadb', 'schemas'), ('nova tables', 'schemas'), ('schemas', 'keystone'),
                ('accounts', 'nova-conductor'), ('nova-conductor', 'nova-compute-b'),
                ('b', 'libvirtd-b'), ('libvirtd-b', 'nova-compute-b'),
                ('resource types', 'ceilometer-notification'), ('neutron-api', 'network'),
                ('computes', 'watcher-decision-engine')):
            self.assertLess(order.index(earlier), order.index(later), (earlier, later))
        self.assertEqual('all services', order[-1])

    def test_kept_databases_are_loaded_and_present_ones_left_alone(self):
        whole = {step.name for step in self.launch.up()}
        dump = next(iter(self.services.settings.cache.glob('*')), None)
        self.assertIsNone(dump)
        made = schemas.Schemas(self.settings, self.services)
        self.settings.cache.mkdir()
        made.kept().touch()
        loaded = {step.name for step in self.launch.up()}
        self.assertEqual({'nova tables', 'keystone admin', 'gnocchi tables'},
                         {'nova tables', 'keystone admin', 'gnocchi tables'} & (whole - loaded))
        (self.settings.data / 'schemas').write_text(made.key())
        self.assertEqual({'databases'}, loaded - {step.name for step in self.launch.up()})
        # A dump put over them would be the end of what is stored.
        (self.settings.data / 'schemas').write_text('another')
        with self.assertRaisesRegex(errors.CloudError, '--delete'):
            self.launch.up()

    def test_other_passwords_or_ports_are_other_databases(self):
        keys = {schemas.Schemas(dataclasses.replace(self.settings, **change),
                                self.services).key()
                for change in ({}, {'password': 'x'}, {'port_base': 20000})}
        self.assertEqual(3, len(keys))

    def test_guests_and_services_go_down_before_the_database(self):
        self.settings.run.mkdir(parents=True)
        for name in ('nova-api', 'mariadb', 'more', 'a'):
            (self.settings.run / f'{name}.pid').touch()
        order = self.order(self.launch.down())
        for earlier, later in (('nova-api', 'a'), ('more', 'a'), ('a', 'mariadb'),
                               ('c', 'rabbitmq'), ('rabbitmq', 'epmd'),
                               ('nova-api', 'network')):
            self.assertLess(order.index(earlier), order.index(later), (earlier, later))

    def test_a_service_that_has_ended_is_an_error(self):
        with self.assertRaisesRegex(errors.ServiceFailed, 'nova-api has ended'):
            self.services.check('nova-api')
        with self.assertRaisesRegex(errors.CloudError, 'host a does not run'):
            self.services.find('nova-compute-a')
