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

import os
import pathlib
import tempfile
import unittest

from tests.unit.telemetry import replay
from tracon_lab.testbed import observation
from tracon_watcher.telemetry import host_counters
from tracon_watcher.telemetry import meters

DISKS = (meters.HOST_READ_REQUESTS, meters.HOST_READ_TIME, meters.HOST_WRITE_REQUESTS,
         meters.HOST_WRITE_TIME, meters.HOST_DISK_BUSY, meters.HOST_DISKS)
MEMORY = (meters.HOST_MEMORY, meters.HOST_MEMORY_AVAILABLE)


class Tree(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.root / 'proc').mkdir()

    def write(self, stat, diskstats, block):
        """Lay out the files as the kernel does.

        :param block: for each entry of /sys/block the names of its slaves
        """
        (self.root / 'proc/stat').write_text('\n'.join(stat) + '\n')
        (self.root / 'proc/diskstats').write_text('\n'.join(diskstats) + '\n')
        for name, slaves in block.items():
            (self.root / 'sys/block' / name / 'slaves').mkdir(parents=True, exist_ok=True)
            for slave in slaves:
                (self.root / 'sys/block' / name / 'slaves' / slave).mkdir()

    def read(self):
        return host_counters.read(self.root, 100, lambda: 42)


class TestRecorded(Tree):

    def moments(self):
        for moment in replay.read('host.json')['moments']:
            self.write(moment['stat'], moment['diskstats'], moment['block'])
            yield moment, host_counters.read(self.root, 100, lambda: moment['clock'])

    def test_all_meters_and_none_falls(self):
        (_first, before), (_second, after) = self.moments()
        # What it recorded has no file of memory.
        self.assertEqual({meter.name for meter in meters.HOST_METERS if meter not in MEMORY},
                         set(before))
        for name in before:
            self.assertGreaterEqual(after[name], before[name], name)

    def test_cores_are_busy_or_idle_all_the_time(self):
        (first, before), (_second, after) = self.moments()
        cores = len(first['stat']) - 1
        elapsed = after[meters.HOST_CLOCK.name] - before[meters.HOST_CLOCK.name]
        passed = sum(after[name.name] - before[name.name] for name in (
            meters.HOST_BUSY, meters.HOST_IDLE, meters.HOST_IOWAIT, meters.HOST_STEAL))
        self.assertAlmostEqual(cores, passed / elapsed, delta=0.1)

    def test_as_the_lab_counts(self):
        for _moment, found in self.moments():
            theirs = observation.host_sample(100, self.root / 'proc')
            # The lab adds up cores, each in whole ticks.
            self.assertAlmostEqual(sum(theirs.busy.values()),
                                   found[meters.HOST_BUSY.name] * 1e-9, delta=0.1)
            self.assertAlmostEqual(sum(theirs.steal.values()),
                                   found[meters.HOST_STEAL.name] * 1e-9, delta=0.1)

    def test_the_disk_and_neither_loops_nor_compressed_memory(self):
        for moment, found in self.moments():
            rows = {line.split()[2]: line.split() for line in moment['diskstats']}
            self.assertLess({'vda', 'loop0', 'zram0'}, set(rows))
            self.assertEqual(int(rows['vda'][3]), found[meters.HOST_READ_REQUESTS.name])
            self.assertEqual(int(rows['vda'][10]) * 10**6, found[meters.HOST_WRITE_TIME.name])
            self.assertEqual((int(rows['vda'][12]) * 10**6, 1), (
                found[meters.HOST_DISK_BUSY.name], found[meters.HOST_DISKS.name]))


class TestSynthetic(Tree):
    """Devices that the recorded host has not; the numbers are invented."""

    STAT = ['cpu  10 20 30 400 50 6 7 8 900 1000', 'cpu0 10 20 30 400 50 6 7 8 900 1000']

    def line(self, name, reads, writes=0):
        return f'   8  0 {name} {reads} 0 0 {reads * 2} {writes} 0 0 {writes * 3} 0 {reads} 0'

    def test_each_request_is_counted_once(self):
        self.write(self.STAT, [
            self.line('sda', 1), self.line('sda1', 1), self.line('sdb', 20, 7),
            self.line('md0', 21), self.line('dm-0', 21), self.line('dm-1', 21),
            self.line('nvme0n1', 300), self.line('nvme0n1p1', 300), self.line('nvme0c0n1', 300),
            self.line('cciss/c0d0', 4000), self.line('loop0', 9), self.line('sr0', 9),
            self.line('zram0', 9), self.line('drbd0', 20)],
            {'sda': [], 'sdb': [], 'md0': ['sda', 'sdb'], 'dm-0': ['md0'], 'dm-1': ['dm-0'],
             'nvme0n1': [], 'nvme0c0n1': [], 'cciss!c0d0': [], 'loop0': [], 'sr0': [],
             'zram0': [], 'drbd0': []})
        (self.root / 'sys/block/nvme0n1/hidden').write_text('0\n')
        (self.root / 'sys/block/nvme0c0n1/hidden').write_text('1\n')
        found = self.read()
        self.assertEqual([4321, 8642 * 10**6, 7, 21 * 10**6, 4321 * 10**6, 4],
                         [found[meter.name] for meter in DISKS])

    def test_cpu_in_ns(self):
        self.write(self.STAT, [], {})
        self.assertEqual({meters.HOST_CLOCK.name: 42, meters.HOST_BUSY.name: 73 * 10**7,
                          meters.HOST_IDLE.name: 400 * 10**7,
                          meters.HOST_IOWAIT.name: 50 * 10**7,
                          meters.HOST_STEAL.name: 8 * 10**7}, self.read())

    def test_without_sys_disks_are_unknown(self):
        self.write(self.STAT, [self.line('sda', 1)], {})
        self.assertFalse({meter.name for meter in DISKS} & set(self.read()))

    def test_a_kernel_without_steal_is_unknown(self):
        self.write(['cpu  10 20 30 400 50 6 7'], [self.line('sda', 1)], {'sda': []})
        found = self.read()
        self.assertNotIn(meters.HOST_BUSY.name, found)
        self.assertEqual(1, found[meters.HOST_READ_REQUESTS.name])

    def test_memory_in_bytes(self):
        (self.root / 'proc/meminfo').write_text(
            'MemTotal:       2000 kB\nMemFree:  100 kB\nMemAvailable:   500 kB\n'
            'HugePages_Total: 0\n')
        found = self.read()
        self.assertEqual([2000 * 1024, 500 * 1024], [found[meter.name] for meter in MEMORY])

    def test_nothing_at_all(self):
        self.assertEqual({meters.HOST_CLOCK.name: 42}, self.read())

    def test_this_host(self):
        if not os.path.exists('/proc/stat'):
            self.skipTest('needs Linux')
        first, second = host_counters.read(), host_counters.read()
        self.assertGreater(first[meters.HOST_BUSY.name], 0)
        self.assertGreater(second[meters.HOST_CLOCK.name], first[meters.HOST_CLOCK.name])
