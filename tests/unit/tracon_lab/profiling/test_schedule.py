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

import gzip
import unittest

import hypothesis
from hypothesis import strategies

from tests.unit import folder
from tracon_lab.profiling import schedule
from tracon_lab.testbed import programs


class TestTiming(unittest.TestCase):

    @hypothesis.given(strategies.floats(1, 600), strategies.integers(3, 20),
                      strategies.floats(1e9, 2e9))
    def test_windows_begin_with_a_poll(self, polling, polls, earliest):
        timing = schedule.Timing(polling, polls)
        start = timing.start(earliest)
        self.assertGreaterEqual(start, earliest - 1e-3)
        self.assertLess(start - earliest, polling + 1e-3)
        self.assertAlmostEqual(0.0, start / polling - round(start / polling), places=3)
        # What is left holds the polls that are to be in it.
        self.assertGreater(timing.length - timing.settle, (polls - 1) * polling)


class TestSchedule(folder.OwnFolderCase):

    def test_text(self):
        command = programs.Unit(reads=4).command(1e8, 3)
        text = schedule.text(1e9, schedule.Timing(60.0), [None, command, ''])
        self.assertEqual(f'schedule 1000000000.000 240.000 10.000\n-\n{command}\n-\n', text)
        # The guest reads lines into 512 bytes.
        self.assertLess(max(map(len, text.splitlines())), 500)

    def test_the_archive_follows_the_one_that_guests_have(self):
        initramfs = self.folder / 'initramfs'
        initramfs.write_bytes(gzip.compress(b'first'))
        found = schedule.ramdisk(initramfs, 'calibrate\n')
        self.assertTrue(found.startswith(initramfs.read_bytes()))
        self.assertIn(b'calibrate\n', gzip.decompress(found))
