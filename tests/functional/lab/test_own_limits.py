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

"""Limits of real guests, as Nova sets them, and what the product makes of their counters."""

import time
import unittest
from xml.etree import ElementTree

from tests.functional.telemetry import guests
from tracon_lab.cmd import lab_own_limits
from tracon_lab.testbed import causes
from tracon_lab.testbed import own_limits
from tracon_watcher.telemetry import libvirt
from tracon_watcher.telemetry import meters

SECONDS = 4.0
QUOTA = {'quota:cpu_quota': '30000', 'quota:cpu_period': '100000'}
LOOP = {'cpu_seconds': 0.004}


class OwnLimitsTestCase(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        reason = guests.reason_to_skip()
        if reason:
            raise unittest.SkipTest(reason)
        cls.running = guests.Guests().__enter__()
        cls.addClassCleanup(cls.running.__exit__)
        cls.guest, cls.neighbour = (cls.running.boot(disks=1) for _number in range(2))
        cls.product = lab_own_limits.Product(SECONDS, cls.guest.name)

    def setUp(self):
        super().setUp()
        for guest in (self.guest, self.neighbour):
            guest.channel.ask('stop')

    def judge(self, specs, **work):
        """Let the guest work under the limits of a flavor; returns what the product says."""
        own_limits.apply(self.guest.domain, specs)
        self.guest.run(**work)
        time.sleep(1.0)
        # Each test has a VM of its own.
        self.product.begin(self.id(), specs)
        time.sleep(SECONDS)
        return self.product.end()

    def test_a_quota_alone_is_subtracted(self):
        found = self.judge(QUOTA, **LOOP)
        self.assertTrue(found.reached)
        self.assertLess(found.slowdown, causes.VISIBLE)

    def test_a_neighbour_alone_is_not(self):
        self.neighbour.run(**LOOP)
        found = self.judge({}, **LOOP)
        self.assertFalse(found.reached)
        self.assertGreater(found.slowdown, 1.5)

    def test_a_neighbour_that_leaves_more_than_the_quota_takes_nothing(self):
        self.neighbour.run(**LOOP)
        found = self.judge(QUOTA, **LOOP)
        self.assertTrue(found.reached)
        self.assertLess(found.slowdown, causes.VISIBLE)

    def test_a_disk_at_its_limit_is_no_neighbours_doing(self):
        # So few that a guest is at it on a busy machine as well.
        found = self.judge({'quota:disk_read_iops_sec': '20'}, reads=1)
        self.assertTrue(found.reached)
        self.assertIn(found.judged, (causes.OWN, causes.OWN_AND_UNKNOWN))

    def test_each_virtual_cpu_has_the_quota_and_waits_for_it(self):
        guest = self.running.boot(vcpus='<vcpu>2</vcpu>', disks=1)
        own_limits.apply(guest.domain, QUOTA)
        guest.run(**LOOP)
        source = libvirt.Source(lambda: self.running.connection)
        before = source.poll()[guest.uuid]
        time.sleep(SECONDS)
        after = source.poll()[guest.uuid]
        guest.domain.destroy()
        delay, throttled = (after[one.name] - before[one.name]
                            for one in (meters.CPU_DELAY, meters.CPU_THROTTLED))
        # What else runs on this core makes it wait longer, and the quota less.
        self.assertGreater(throttled, 0.5 * delay)
        self.assertLess(throttled, 1.05 * delay)

    def test_what_the_flavor_says_is_what_the_host_does(self):
        own_limits.apply(self.guest.domain, {
            **QUOTA, 'quota:disk_read_iops_sec': '50', 'quota:disk_total_bytes_sec': '5000000'})
        tree = ElementTree.fromstring(self.guest.domain.XMLDesc())
        self.assertEqual({'total_bytes_sec': '5000000', 'read_iops_sec': '50'}, {
            one.tag: one.text for one in tree.find('devices/disk/iotune')})
        self.assertEqual(('30000', '100000'), tuple(
            tree.findtext(f'cputune/{name}') for name in ('quota', 'period')))
        tune = self.guest.domain.blockIoTune('vda')
        self.assertEqual((50, 5000000, 0), tuple(tune[name] for name in (
            'read_iops_sec', 'total_bytes_sec', 'write_iops_sec')))
