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

import logging
import unittest

import numpy as np

from tests.unit.engine import counting
from tracon_watcher.contention import calibration
from tracon_watcher.contention import profile_tracker
from tracon_watcher.engine import collector
from tracon_watcher.engine import periodic_task
from tracon_watcher.inventory import cloud

POLLING = 60.0
WINDOW = 1800.0


class Source(counting.Source):
    """Hosts whose clocks are off: VM a is on host h-a, and so on."""

    def __init__(self, polling):
        super().__init__(polling)
        self.skews = {}
        self.late_seconds = 0.0
        self.spans = []

    def run(self, polls):
        for _poll in range(polls):
            count = len(self._samples)
            super().run(1)
            self._samples[count:] = [(uuid, at + self.skews.get(uuid, 0.0), counters)
                                     for uuid, at, counters in self._samples[count:]]

    def read(self, since, until, names):
        self.spans.append(self.now - since)
        everything = self._samples
        self._samples = [one for one in everything
                         if one[1] - self.skews.get(one[0], 0.0) <= self.now - self.late_seconds]
        try:
            return super().read(since, until, names)
        finally:
            self._samples = everything


class ClocksTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.source = Source(POLLING)
        self.collector = collector.Collector(
            self.source, profile_tracker.ProfileTracker(calibration.packaged(), WINDOW), POLLING,
            WINDOW)
        self.hosts = {}
        self.said = []
        self.reports = periodic_task.Reports(collector.LOG)
        handler = logging.Handler()
        handler.emit = lambda record: self.said.append(record.getMessage())
        handler.setLevel(logging.WARNING)
        collector.LOG.addHandler(handler)
        self.addCleanup(collector.LOG.removeHandler, handler)

    def vms(self, reads=100.0, **skews):
        """Have VMs that do this on hosts whose clocks are so much ahead."""
        for uuid, skew in skews.items():
            self.source.vm(uuid, reads=reads, guest=0.2)
            self.source.skews[uuid] = skew
            self.hosts.setdefault(uuid, f'h-{uuid}')

    def cycles(self, count):
        """Let polls pass, and collect after each; return the last."""
        for _cycle in range(count):
            self.source.run(1)
            found = self.collector.collect(cloud.Inventory({
                uuid: cloud.Server(uuid, uuid, 'p', host, 'm1', {}, 'image', 'active')
                for uuid, host in self.hosts.items()}, {
                    host: cloud.Hypervisor(host, True, True, cores=8)
                    for host in self.hosts.values()}, (), {}, 0.0), self.source.now)
            for text in found.clocks:
                self.reports('clocks', text)
            self.reports.end()
        return found

    def known(self, found):
        """Return by VM what it reads, and how old that is; None where it is unknown."""
        rows = {uuid: row for uuid, row in found.demand.rows.items()
                if np.isfinite(found.demand.profiles[row]).all()}
        return {uuid: (round(found.demand.profiles[rows[uuid], 0]),
                       self.source.now - found.demand.updated_at[rows[uuid]])
                if uuid in rows else None for uuid in self.hosts}

    def check(self, found, reads, **expected):
        """Check what is known: nothing (None), or as of the last poll or the one before."""
        for uuid, one in self.known(found).items():
            if uuid in expected:
                self.assertIs(expected[uuid], one)
            else:
                self.assertEqual(reads, one[0], uuid)
                self.assertLessEqual(abs(one[1]), POLLING, uuid)

    def test_hosts_whose_clocks_are_off_are_known_as_soon_as_others(self):
        self.vms(right=0.0, behind=-600.0, ahead=2400.0, drifting=-30.0)
        self.check(self.cycles(12), 100)
        self.vms(300.0, right=0.0, behind=-600.0, ahead=2400.0, drifting=-30.0)
        found = self.cycles(4)
        self.check(found, 300)
        self.assertEqual({'h-behind': -600.0, 'h-ahead': 2400.0}, found.skews)
        self.cycles(30)
        for host, what in (('h-behind', '600 s behind'), ('h-ahead', '2400 s ahead')):
            said, = (one for one in self.said if f'host {host}: its clock is' in one)
            self.assertIn(what, said)
        self.assertEqual(2, len(self.said))

    def test_a_clock_that_is_too_far_off_makes_its_host_unknown(self):
        self.vms(right=0.0, behind=-7200.0, ahead=7200.0)
        found = self.cycles(40)
        self.check(found, 100, behind=None, ahead=None)
        self.assertEqual({}, found.skews)

    def test_all_clocks_are_put_back(self):
        self.vms(right=0.0)
        self.cycles(12)
        self.source.now -= 2400.0
        self.vms(300.0, right=0.0)
        self.check(self.cycles(1), 100)
        self.cycles(3)
        self.check(self.cycles(1), 300)
        # Times come again of which there are samples already.
        for _minute in range(60):
            found = self.cycles(1)
            self.check(found, 300)
            self.assertEqual((1, {}), (found.learnt, found.skews))
        self.assertEqual(1, sum('was put back by' in one for one in self.said))

    def test_the_clock_of_a_host_is_put_right(self):
        for before in (2400.0, -900.0):
            with self.subTest(before):
                self.setUp()
                self.vms(right=0.0, wrong=before)
                self.cycles(30)
                self.vms(300.0, right=0.0, wrong=0.0)
                self.cycles(6)
                for _minute in range(60):
                    found = self.cycles(1)
                    self.check(found, 300)
                    self.assertEqual({}, found.skews)

    def test_the_clock_of_a_host_is_put_wrong(self):
        for after in (2400.0, -900.0):
            with self.subTest(after):
                self.setUp()
                self.vms(right=0.0, wrong=0.0)
                self.cycles(40)
                self.vms(300.0, right=0.0, wrong=after)
                self.check(self.cycles(30), 300)

    def test_telemetry_that_is_late_for_all_is_no_clock(self):
        self.source.late_seconds = 400.0
        self.vms(right=0.0, also=0.0, behind=-600.0)
        found = self.cycles(60)
        self.assertEqual({'h-behind': -600.0}, found.skews)
        for _reads, age in self.known(found).values():
            # As old as it is, and not as if it were of now.
            self.assertLessEqual(400.0, age)
            self.assertLess(age, 600.0)
        self.assertEqual(1, sum('are late' in one for one in self.said))

    def test_the_clock_of_the_engine_alone_is_put_back(self):
        for skew in (0.0, 2400.0):
            self.vms(**{f'vm{number}': skew for number in range(6)})
            self.source.now -= skew
            found = self.cycles(12)
            self.check(found, 100)
        self.assertEqual({f'h-vm{number}': 2400.0 for number in range(6)}, found.skews)
        # One line that it was put back, and one that its clock differs.
        self.assertEqual(2, len(self.said))
        self.assertIn('of most hosts differ', self.said[1])

    def test_samples_of_the_future_that_nothing_follows_are_left_out_and_said(self):
        self.vms(right=0.0, dead=3000.0)
        self.source.run(1)
        self.source.remove('dead')
        self.check(self.cycles(12), 100, dead=None)
        said, = self.said
        self.assertIn('such as those of host h-dead, are left out', said)

    def test_a_vm_that_comes_from_a_host_whose_clock_is_off_tells_nothing_of_its_new_one(self):
        self.vms(right=0.0, moving=2400.0, other=2400.0)
        self.hosts['other'] = 'h-moving'
        self.cycles(10)
        self.hosts['moving'], self.source.skews['moving'] = 'h-new', 0.0
        for _minute in range(20):
            self.assertEqual({'h-moving': 2400.0}, self.cycles(1).skews)
        self.assertFalse([one for one in self.said if 'h-new: ' in one])

    def test_of_a_host_that_is_silent_is_looked_for_once(self):
        self.vms(right=0.0, dead=0.0)
        self.cycles(5)
        self.source.remove('dead')
        self.cycles(120)
        deep = [span for span in self.source.spans if span > 6 * POLLING]
        # At the start, and when it fell silent.
        self.assertEqual(5, len(deep))
        self.assertLessEqual(max(deep), WINDOW)
