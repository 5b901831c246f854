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

"""Background work behind real guests, under real limits: one short run of all arms."""

import json
import os
import shutil
import subprocess
import unittest

from tests.functional.lab import test_measure
from tests.unit import command_line
from tracon_lab.background import comparison
from tracon_lab.background import measurement
from tracon_lab.background import second_vm
from tracon_watcher.background import cgroups


@unittest.skipUnless(shutil.which('genisoimage'), 'needs genisoimage')
class BackgroundTestCase(test_measure.GuestsCase):

    def setUp(self):
        super().setUp()
        links = self.links()
        self.addCleanup(lambda: self.assertEqual(
            (self.before, links), (test_measure.left_behind(), self.links())))

    def links(self):
        return subprocess.run(['ip', '-o', 'link'], capture_output=True, text=True,
                              check=True).stdout.count('\n')

    def test_a_second_vm_on_shared_and_on_separate_cores(self):
        code, out, err = command_line.run(
            'lab', 'second', 'vm', '--quick', '--accelerator', 'qemu', '--output',
            str(self.output), '-f', 'json')
        self.assertEqual(0, code, err)
        rows = json.loads(out)
        self.assertEqual({**second_vm.SETTINGS}, {
            setting: (row['second_vm'], row['cores'])
            for setting, row in zip(second_vm.SETTINGS, rows, strict=True)})
        for row in rows:
            self.assertTrue(0 < row['P50, ms'] <= row['P75, ms'] <= row['P95, ms'], row)

    def test_all_arms_and_nothing_is_left(self):
        code, out, err = command_line.run(
            'lab', 'background', '--quick', '--accelerator', 'qemu', '--output',
            str(self.output), '-f', 'json')
        self.assertEqual(0, code, err)
        windows = comparison.read(self.output)
        self.assertIn('disk_MB_per_second', self.output.read_text())
        self.assertEqual({(1, arm) for arm in comparison.ARMS}, set(windows))
        rows = json.loads(out)
        self.assertEqual(list(comparison.TABLE), list(rows[0]))
        self.assertTrue(all(row['runs'] == 1 for row in rows))
        for values in windows.values():
            for measure in comparison.FOREGROUND:
                self.assertGreater(values[measure], 0.0)
        for program in ('cpu', 'disk', 'network'):
            # Paused, it does nothing; under no quota, it does something.
            self.assertEqual(0.0, windows[1, comparison.NOTHING][program])
            self.assertGreater(windows[1, comparison.CPUSET][program], 0.0)
        # Half of the link is all that static quotas leave.
        self.assertLess(windows[1, comparison.STATIC]['network'] * 2**20, 7e6)
        tree = cgroups.ControlGroups(list(measurement.GROUPS))
        self.assertFalse([one for one in measurement.GROUPS if tree.there(one)])
        self.assertEqual(os.SCHED_OTHER, os.sched_getscheduler(0))
