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

"""The guest's program follows its schedule by the clock."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from tracon_lab.profiling import console
from tracon_lab.profiling import schedule
from tracon_lab.testbed import image
from tracon_lab.testbed import programs
from tracon_watcher.probe import images


class TestSchedule(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    @unittest.skipUnless(shutil.which('gcc'), 'gcc is not installed')
    def test_the_guest_says_what_it_does(self):
        """The guest's program itself, on a file in the place of its disk."""
        guest, disk, lines = (self.folder / name for name in ('guest', 'disk', 'schedule'))
        images.compile_c(image.HERE / 'guest/workload.c', guest,
                         str(image.HERE / 'guest/schedule.c'), '-pthread')
        disk.write_bytes(bytes(16 << 20))
        start = time.time() + 1.5
        timing = schedule.Timing(1.0, 3)
        lines.write_text(schedule.text(start, timing, [
            programs.Unit(cpu_seconds=0.001).command(1e8, 1), None,
            programs.Unit(reads=2, writes=1).command(1e8, 1)]))
        process = subprocess.Popen([str(guest), 'schedule', str(lines), str(disk)],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        told = console.Told()
        for line in process.stdout:
            told.add(line)
            if re.match('tracon end', line):
                break
        self.assertLess(abs(told.ready - start + 1.5), 2.0)
        self.assertEqual({0, 2}, set(told.windows))
        first, last = told.windows[0], told.windows[2]
        self.assertAlmostEqual(start + 2 * timing.length, last.begin, places=2)
        self.assertAlmostEqual(timing.length - timing.settle, first.seconds, delta=0.5)
        self.assertGreater(first.units, 10)
        self.assertEqual((0, 0), (first.reads, first.writes))
        self.assertAlmostEqual(2 * last.units, last.reads, delta=4)
        self.assertAlmostEqual(last.units, last.writes, delta=2)
        self.assertLessEqual(last.service, last.seconds + 0.5)
        # What was never written is written by now.
        self.assertNotEqual(bytes(4096), disk.read_bytes()[-4096:])
