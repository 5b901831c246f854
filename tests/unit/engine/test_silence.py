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

"""Telemetry that answers, and lacks what must be there."""

import dataclasses
import unittest

import numpy as np

from tests.unit.engine import counting
from tracon_watcher.contention import calibration
from tracon_watcher.contention import profile_tracker
from tracon_watcher.engine import collector
from tracon_watcher.engine import telemetry_health
from tracon_watcher.inventory import cloud
from tracon_watcher.telemetry import meters
from tracon_watcher.telemetry import samples

POLLING, PATIENCE = 60.0, 900.0


class SilenceTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.source = counting.Source(POLLING)
        self.resolution, self.ahead = self.source.resolution, self.source.ahead
        self.collector = collector.Collector(
            self, profile_tracker.ProfileTracker(calibration.packaged()), POLLING, 1800.0,
            PATIENCE)
        self.states = {}
        self.asked = 'Gnocchi was asked for tracon.clock'
        self.hypervisors = {name: cloud.Hypervisor(name, True, True, cores=8)
                            for name in ('h1', 'h2', 'h3')}
        self.hosts = {'a': 'h1', 'b': 'h1', 'c': 'h2'}

    def read(self, since, until, names):
        """Stand for a reader that tells what it asked."""
        return dataclasses.replace(self.source.read(since, until, names), asked=self.asked)

    def take(self):
        servers = {uuid: cloud.Server(uuid, uuid, 'p', host, 'm1', {}, 'i',
                                      self.states.get(uuid, 'active'))
                   for uuid, host in self.hosts.items()}
        inventory = cloud.Inventory(servers, self.hypervisors, (), {}, 0.0)
        return self.collector.collect(inventory, self.source.now).silence

    def after(self, polls):
        """Return what is said in each of so many polls."""
        said = []
        for _poll in range(polls):
            self.source.run(1)
            said.append(self.take())
        return said

    def test_nothing_of_any_vm_is_said_after_a_while_with_what_was_asked(self):
        said = self.after(60)
        self.assertEqual({None}, {one.everywhere for one in said[:15]})
        # In the same words each time: what is said is told once.
        (text,) = {one.everywhere for one in said[16:]}
        self.assertIn(': Gnocchi was asked for tracon.clock: nothing came: all hosts', text)
        self.assertEqual({(('telemetry', text),)}, {one.reports for one in said[16:]})

    def test_resources_that_are_no_vms_are_named_beside_one_that_is(self):
        self.source.vm('instance-00000001', guest=0.5)
        text = self.after(20)[-1].everywhere
        self.assertIn("came of instance-00000001, which is no VM of Nova's; those have ids such "
                      'as a:', text)

    def test_a_store_that_stands_still_shows_by_the_last_sample(self):
        self.source.vm('a', guest=0.5)
        self.after(3)
        self.source.remove('a')
        read = self.source.read
        self.source.read = lambda since, until, names: read(0.0, np.inf, names)
        text = self.after(20)[-1].everywhere
        self.assertIn('no sample is later than 1970-01-12T13:49:40+00:00', text)

    def test_a_meter_that_everything_follows_from_is_missed(self):
        self.source.missing = meters.CPU_GUEST.name
        for uuid in 'abc':
            self.source.vm(uuid, guest=0.5)
        said = self.after(20)[-1]
        self.assertIn('no sample came with all of tracon.cpu.guest', said.everywhere)
        self.assertIn('VM a has samples, and none of tracon.cpu.guest', said.reports[1][1])

    def test_samples_that_are_too_rare_for_rates_say_nothing(self):
        self.source = counting.Source(1200.0)
        for uuid in 'abc':
            self.source.vm(uuid, guest=0.5)
        text = self.after(5)[-1].everywhere
        self.assertIn('samples came, and no two that give a rate: gap:', text)

    def test_one_that_only_one_vm_lacks_is_reported(self):
        for uuid in 'abc':
            self.source.vm(uuid, guest=0.5)
        del self.source._vms['c'].rates[meters.READ_TIME.name]
        del self.source._vms['c'].counters[meters.READ_TIME.name]
        said = self.after(20)
        self.assertEqual({None}, {one.everywhere for one in said})
        ((kind, text),) = said[-1].reports
        self.assertEqual('meters', kind)
        self.assertIn('VM c has samples, and none of tracon.disk.read.time', text)

    def test_a_host_that_is_silent_beside_others_is_reported(self):
        self.source.vm('a', guest=0.5)
        self.source.vm('b', guest=0.5)
        said = self.after(20)
        self.assertEqual((), said[14].reports)
        ((_kind, text),) = said[-1].reports
        self.assertRegex(text, '^host h2: nothing new of its VMs for more than 900 s')
        self.source.vm('c', guest=0.5)
        self.assertEqual(telemetry_health.TelemetryGaps(), self.after(2)[-1])

    def test_a_vm_that_is_silent_beside_others_of_its_host_is_reported(self):
        self.source.vm('a', guest=0.5)
        self.source.vm('c', guest=0.5)
        said = self.after(20)
        self.assertEqual((), said[14].reports)
        ((_kind, text),) = said[-1].reports
        self.assertIn('VM b runs on h1, and nothing of it has come for more than 900 s', text)

    def test_late_samples_are_no_silence_however_short_the_patience(self):
        self.collector = collector.Collector(
            self, profile_tracker.ProfileTracker(calibration.packaged()), POLLING, 1800.0, 30.0)
        self.assertEqual({telemetry_health.TelemetryGaps()}, set(self.after(8)))
        self.assertIn('for more than 420 s', self.after(1)[-1].everywhere)

    def test_where_nothing_has_to_come_nothing_is_missed(self):
        self.states = {'a': 'stopped', 'b': 'building', 'c': 'active'}
        # A host that does not run, or is not judged, is not waited for.
        self.hypervisors['h2'] = cloud.Hypervisor('h2', True, False, cores=8)
        self.assertEqual({telemetry_health.TelemetryGaps()}, set(self.after(30)))
        self.hosts['d'], self.hosts['e'] = 'h1', 'h3'
        self.hypervisors['h3'] = cloud.Hypervisor('h3', True, True)
        self.source.vm('d', guest=0.5)
        self.assertEqual({telemetry_health.TelemetryGaps()}, set(self.after(30)))

    def test_a_vm_that_is_new_is_waited_for(self):
        self.states = dict.fromkeys('abc', 'stopped')
        self.after(30)
        self.states = {}
        self.assertIsNone(self.after(15)[-1].everywhere)
        self.assertIsNotNone(self.after(2)[-1].everywhere)

    def test_clocks_that_are_put_back_are_no_silence(self):
        for uuid in 'abc':
            self.source.vm(uuid, guest=0.5)
        self.after(5)
        read = self.source.read

        def back(since, until, names):
            found = read(since, until, names)
            return samples.Readings(found.resources, found.meters, found.row, found.at - 7200.0,
                                    found.values)
        self.source.read = back
        self.assertEqual({None}, {one.everywhere for one in self.after(30)})
