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

import io
import unittest

from tracon_watcher import progress


class TestProgress(unittest.TestCase):

    def test_time_left_is_told_from_what_is_done(self):
        shown = progress.Progress(4, io.StringIO())
        shown.report('a', 1.0)
        shown.report('b', 0.5)
        line = shown.line(shown._started + 60)
        self.assertEqual(' 38% after 1 min 00 s, about 1 min 40 s left', line)

    def test_lines_of_a_file_come_now_and_then(self):
        stream = io.StringIO()
        shown = progress.Progress(2, stream)
        for step in range(100):
            shown.report('a', step / 100)
        self.assertEqual(1, len(stream.getvalue().splitlines()))
        shown.report('a', 1.0)
        self.assertEqual(2, len(stream.getvalue().splitlines()))

    def test_of_many_small_tasks_only_the_last_end_is_told(self):
        stream = io.StringIO()
        shown = progress.Progress(100.0, stream)
        for task in range(100):
            shown.report(task, 1.0)
        lines = stream.getvalue().splitlines()
        self.assertEqual(2, len(lines))
        self.assertTrue(lines[-1].startswith('100%'), lines)
