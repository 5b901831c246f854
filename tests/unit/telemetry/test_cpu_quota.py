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

"""Throttled time from trees of control groups as systemd and libvirt make them."""

import pathlib
import tempfile
import unittest

from tracon_watcher.telemetry import host_counters

UUID, OTHER = 'e5a3c1d2-0000-4000-8000-000000000001', 'e5a3c1d2-0000-4000-8000-000000000002'
DOMAIN = (UUID, 7, 'instance-00000001')
V1 = 'sys/fs/cgroup/cpu/machine/qemu-7-instance-00000001.libvirt-qemu'
V2 = 'sys/fs/cgroup/machine.slice/machine-qemu\\x2d7\\x2dinstance\\x2d00000001.scope'
V1_STAT = 'nr_periods 50\nnr_throttled 48\nthrottled_time {}\n'
V2_STAT = ('usage_usec 1\nnr_periods 50\nnr_throttled 48\nthrottled_usec {}\nnr_bursts 0\n')


class ThrottledTimesTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.times = host_counters.ThrottledTimes(self.root)

    def write(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def groups(self, top, stat, own=0, emulator=0, **vcpus):
        for name, value in {'': own, 'emulator': emulator, **vcpus}.items():
            self.write(pathlib.Path(top) / name / 'cpu.stat', stat.format(value))

    def process(self, cgroup, uuid=UUID, pid=42):
        self.write('run/libvirt/qemu/instance-00000001.pid', f'{pid}\n')
        self.write(f'proc/{pid}/cmdline', f'qemu-system-x86_64\0-uuid\0{uuid}\0')
        self.write(f'proc/{pid}/cgroup', cgroup)

    def read(self, *domains):
        return dict(self.times.read(domains or [DOMAIN]))

    def test_version_1_by_the_process(self):
        self.groups(V1, V1_STAT, vcpu0=3_499_000_000, vcpu1=1_000)
        self.process('9:cpuset:/x\n1:cpu:'
                     '/machine/qemu-7-instance-00000001.libvirt-qemu/emulator\n')
        self.assertEqual({UUID: 3_499_001_000}, self.read())

    def test_version_2_by_the_process(self):
        self.groups(f'{V2}/libvirt', V2_STAT, vcpu0=3_499_000)
        path = '/' + V2.partition('cgroup/')[2] + '/libvirt/emulator'
        self.process(f'0::{path}\n')
        self.assertEqual({UUID: 3_499_000_000}, self.read())

    def test_by_the_number_of_the_domain(self):
        for top, stat, factor in ((V1, V1_STAT, 1), (V2, V2_STAT, 1000),
                                  (f'{V2}/libvirt', V2_STAT, 1000)):
            with self.subTest(top=top):
                self.setUp()
                self.groups(top, stat, vcpu0=5)
                self.assertEqual({UUID: 5 * factor}, self.read())

    def test_a_quota_of_the_whole_domain_counts(self):
        self.groups(V1, V1_STAT, own=7, vcpu0=0)
        self.assertEqual({UUID: 7}, self.read())

    def test_that_of_other_threads_does_not(self):
        self.groups(V1, V1_STAT, emulator=9, iothread1=9, vcpu0=1)
        self.assertEqual({UUID: 1}, self.read())

    def test_a_process_number_of_another_container_is_not_believed(self):
        self.groups('sys/fs/cgroup/cpu/other', V1_STAT, own=99)
        self.process('1:cpu:/other\n', uuid=OTHER)
        self.assertEqual({}, self.read())

    def test_a_group_above_what_is_mounted_is_not_followed(self):
        self.groups('sys/fs/cgroup/cpu/x', V1_STAT, own=99)
        self.process('1:cpu:/../../cpu/x\n')
        self.assertEqual({}, self.read())

    def test_what_is_not_there_is_unknown(self):
        self.assertEqual({}, self.read())
        self.write(f'{V1}/cpu.stat', 'nr_periods 0\n')
        self.assertEqual({}, self.read())

    def test_without_the_controller_only_what_counts_is_added(self):
        self.groups(f'{V2}/libvirt', V2_STAT, vcpu0=4)
        self.write(f'{V2}/libvirt/cpu.stat', 'usage_usec 1\n')
        self.assertEqual({UUID: 4000}, self.read())

    def test_two_groups_of_one_number_are_none(self):
        self.groups(V1, V1_STAT, vcpu0=1)
        self.groups('sys/fs/cgroup/cpu/machine/qemu-7-instance-00000002.libvirt-qemu', V1_STAT,
                    vcpu0=2)
        self.assertEqual({}, self.read())

    def test_a_domain_that_is_restarted_is_sought_again(self):
        self.groups(V1, V1_STAT, vcpu0=1)
        self.read()
        again = V1.replace('qemu-7', 'qemu-8')
        self.groups(again, V1_STAT, vcpu0=2)
        self.assertEqual({UUID: 2}, self.read((UUID, 8, DOMAIN[2])))

    def test_a_group_that_has_gone_is_unknown(self):
        self.groups(V1, V1_STAT, vcpu0=1)
        self.read()
        (self.root / V1).rename(self.root / 'gone')
        self.assertEqual({}, self.read())

    def test_what_is_not_there_is_sought_again_after_some_polls(self):
        self.assertEqual({}, self.read())
        self.groups(V1, V1_STAT, vcpu0=1)
        seen = [bool(self.read()) for _poll in range(12)]
        self.assertEqual(1, len([one for one in zip(seen, seen[1:]) if one == (False, True)]))
        self.assertEqual([False, True], [seen[0], seen[-1]])

    def test_domains_do_not_mix(self):
        self.groups(V1, V1_STAT, vcpu0=1)
        self.groups(V1.replace('qemu-7', 'qemu-71'), V1_STAT, vcpu0=2)
        self.assertEqual({UUID: 1, OTHER: 2}, self.read(DOMAIN, (OTHER, 71, DOMAIN[2])))
