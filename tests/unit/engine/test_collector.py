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

import unittest

import numpy as np

from tests.unit.engine import counting
from tracon_watcher.contention import calibration
from tracon_watcher.contention import profile_tracker
from tracon_watcher.engine import collector
from tracon_watcher.inventory import cloud
from tracon_watcher.telemetry import samples

POLLING = 60.0


class CollectorTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.source = counting.Source(POLLING)
        self.demands = profile_tracker.ProfileTracker(calibration.packaged(), 1800.0)
        self.collector = collector.Collector(self.source, self.demands, POLLING, 1800.0)

    def inventory(self, **hosts):
        return cloud.Inventory({
            uuid: cloud.Server(uuid, uuid, 'p', host, 'm1', {}, 'image', 'active')
            for uuid, host in hosts.items()}, {}, (), {}, 0.0)

    def collect(self, now, **hosts):
        return self.collector.collect(self.inventory(**hosts), now)

    def test_rates_become_a_profile(self):
        self.source.vm('a', reads=100.0, guest=0.2, host=0.05)
        self.source.run(10)
        found = self.collect(self.source.now, a='h1')
        profile = found.demand.profiles[found.demand.rows['a']]
        np.testing.assert_allclose(profile, [100.0, 0.0, 0.2, 0.05], rtol=0.02, atol=1e-6)
        self.assertEqual((9, 10), (found.learnt, found.samples))

    def test_what_was_read_before_is_not_learnt_twice(self):
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.run(10)
        self.collect(self.source.now, a='h1')
        self.source.run(1)
        found = self.collect(self.source.now, a='h1')
        self.assertEqual(1, found.learnt)
        # Not all is read again either.
        self.assertLess(found.samples, 8)
        self.assertEqual(0, self.collect(self.source.now, a='h1').learnt)

    def test_nothing_is_lost_while_telemetry_does_not_answer(self):
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.run(3)
        self.collect(self.source.now, a='h1')
        self.source.broken = True
        self.source.run(10)
        with self.assertRaises(samples.TelemetryUnavailable):
            self.collect(self.source.now, a='h1')
        self.source.broken = False
        self.assertEqual(10, self.collect(self.source.now, a='h1').learnt)

    def failures(self, polls):
        """Collect after each poll; return how often that failed."""
        count = 0
        for _poll in range(polls):
            self.source.run(1)
            try:
                self.collect(self.source.now, a='h1')
            except samples.TelemetryUnavailable:
                count += 1
        return count

    def test_of_a_source_that_is_slow_less_is_asked(self):
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.run(200)
        # Fast enough for what is read each time, not for all that is read in the beginning.
        self.source.longest = 7 * POLLING
        self.assertLessEqual(self.failures(20), 6)
        self.source.broken = True
        self.failures(10)
        self.source.broken = False
        self.assertEqual(0, self.failures(20))
        found = self.collect(self.source.now, a='h1')
        self.assertEqual([self.source.now], found.profiles.at.tolist())
        np.testing.assert_allclose(found.demand.profiles[found.demand.rows['a']],
                                   [100.0, 0.0, 0.2, 0.0], rtol=0.02, atol=1e-6)

    def test_a_sample_of_which_a_part_is_stored_waits_for_the_rest(self):
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.run(5)
        self.source.late = ('tracon.disk.read.time',)
        found = self.collect(self.source.now, a='h1')
        self.assertEqual(3, found.learnt)
        self.assertFalse(np.isnan(found.profiles.slowdown).any())
        self.source.late = ()
        self.assertEqual(1, self.collect(self.source.now + 5, a='h1').learnt)

    def test_of_vms_that_are_gone_nothing_is_kept(self):
        for generation in range(20):
            alive = {f'{generation}-{number}': 'h1' for number in range(10)}
            for uuid in alive:
                self.source.vm(uuid, reads=100.0, guest=0.2)
            self.source.run(2)
            # The last four polls are read again each time.
            found = self.collect(self.source.now, **alive)
            self.assertEqual(set(alive), set(found.profiles.vms))
            self.assertEqual(10, len(self.demands))
            for uuid in alive:
                self.source.remove(uuid)
        self.collect(self.source.now)
        self.assertEqual(0, len(self.demands))

    def test_a_vm_that_never_had_a_host_is_forgotten_too(self):
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.run(5)
        self.assertEqual(1, len(self.collect(self.source.now, a=None).profiles.vms))
        self.assertEqual(0, len(self.collect(self.source.now).profiles.vms))

    def test_a_meter_that_is_never_stored_does_not_keep_the_others_back(self):
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.missing = 'tracon.disk.read.time'
        self.source.run(8)
        found = self.collect(self.source.now, a='h1')
        self.assertEqual(5, found.learnt)
        self.assertTrue(np.isnan(found.profiles.slowdown).all())
        self.assertFalse(np.isnan(found.demand.profiles).any())

    def test_the_engines_clock_is_put_forward_and_back_again(self):
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.run(10)
        before = self.collect(self.source.now, a='h1')
        self.source.run(1)
        # All is stale by this clock, which is unknown, and not 0.
        found = self.collect(self.source.now + 7200, a='h1')
        self.assertTrue(np.isnan(found.demand.profiles[found.demand.rows['a']]).all())
        self.source.run(3)
        found = self.collect(self.source.now, a='h1')
        self.assertGreaterEqual(found.learnt, 3)
        np.testing.assert_allclose(found.demand.profiles[found.demand.rows['a']],
                                   before.demand.profiles[before.demand.rows['a']], rtol=0.02)
        self.source.run(1)
        self.assertEqual(1, self.collect(self.source.now, a='h1').learnt)

    def test_a_vm_that_is_gone_is_forgotten(self):
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.run(3)
        self.collect(self.source.now, a='h1')
        self.assertIn('a', self.collect(self.source.now, a='h1').demand.rows)
        self.source.remove('a')
        self.source.run(30)
        self.assertNotIn('a', self.collect(self.source.now).demand.rows)

    def test_a_restart_is_no_demand_and_is_counted(self):
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.run(5)
        self.source.restart('a')
        self.source.run(1)
        found = self.collect(self.source.now, a='h1')
        self.assertEqual({'reset': 1}, dict(found.lost))
        profile = found.demand.profiles[found.demand.rows['a']]
        np.testing.assert_allclose(profile[0], 100.0, rtol=0.02)

    def test_a_vm_that_begins_to_hammer_is_seen_within_two_polls(self):
        self.source.vm('a', reads=10.0, guest=0.05)
        self.source.run(20)
        self.collect(self.source.now, a='h1')
        self.source.vm('a', reads=2000.0, guest=0.5)
        self.source.run(2)
        found = self.collect(self.source.now, a='h1')
        self.assertGreater(found.demand.profiles[found.demand.rows['a'], 0], 1500.0)

    def test_storage_of_hosts_in_different_aggregates_is_not_compared(self):
        servers = {uuid: cloud.Server(uuid, uuid, 'p', host, 'm1', {}, image, 'active', vcpus=2)
                   for uuid, host, image in (('a', 'h1', 'i'), ('b', 'h2', 'i'), ('c', 'h1', ''),
                                             ('d', 'h3', 'i'))}
        inventory = cloud.Inventory(servers, {}, (
            cloud.Aggregate('fast', frozenset(['h1', 'h3']), {'tracon:host_type': 'fast'}),), {},
            0.0)
        vcpus, pools = collector._kinds(('a', 'b', 'c', 'd', 'unheard of'), inventory)
        self.assertEqual([2.0, 2.0, 2.0, 2.0, 1.0], vcpus.tolist())
        self.assertEqual(pools[0], pools[3])
        self.assertEqual(3, len({pools[0], pools[1], pools[2]}))
        self.assertEqual(-1, pools[4])
