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

"""Where control groups are, on machines of either version and of both."""

import pathlib
import tempfile
import unittest
from unittest import mock

from tracon_lab.testcloud import enclosure

BOTH = '''\
tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0
cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
proc /proc proc rw 0 0
cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0
'''


class TestEnclosure(unittest.TestCase):

    def test_each_place_is_found_once(self):
        self.assertEqual([pathlib.Path('/sys/fs/cgroup') / name
                          for name in ('cpu', 'cpuset', 'unified')],
                         enclosure.control_groups(BOTH))
        self.assertEqual([pathlib.Path('/sys/fs/cgroup')], enclosure.control_groups(
            'cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n'))
        self.assertEqual([], enclosure.control_groups('proc /proc proc rw 0 0\n'))

    def test_the_command_runs_this_module(self):
        found = enclosure.command(pathlib.Path('/x'), 'cmp1', 'tracon-cmp1', 8192)
        self.assertEqual(('-m', 'tracon_lab.testcloud.enclosure', 'join', '/x', 'cmp1',
                          'tracon-cmp1', '8192'), found[1:])


class TestGroups(unittest.TestCase):
    """In a folder that stands for a place of control groups; a file in it stands for a process."""

    def setUp(self):
        place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        mounts = place / 'mounts'
        mounts.write_text(f'cgroup {place} cgroup rw 0 0\n')
        self.enterContext(mock.patch.object(enclosure, 'MOUNTS', mounts))
        self.group = place / 'tracon-1-cmp1'
        (self.group / 'machine/qemu').mkdir(parents=True)
        self.process = self.group / 'machine/qemu/process'

    def test_they_go_with_all_below_them(self):
        enclosure.remove_groups(self.group.name)
        self.assertFalse(self.group.exists())

    def test_one_with_a_process_stays(self):
        self.process.touch()
        enclosure.remove_groups(self.group.name)
        self.assertTrue(self.process.exists())

    def test_a_process_that_is_about_to_end_is_waited_for(self):
        self.process.touch()
        clock = mock.Mock(monotonic=lambda: 0.0, sleep=lambda _seconds: self.process.unlink())
        with mock.patch.object(enclosure, 'time', clock):
            enclosure.remove_groups(self.group.name, 60.0)
        self.assertFalse(self.group.exists())
