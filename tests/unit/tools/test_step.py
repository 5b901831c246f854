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

"""A step keeps its command's output in a log, and says what is wrong where it fails."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

STEP = pathlib.Path(__file__).parents[3] / 'tools' / 'step.py'


class TestStep(unittest.TestCase):

    def setUp(self):
        self.log = pathlib.Path(
            self.enterContext(tempfile.TemporaryDirectory()), 'log', 'work.log')

    def run_step(self, *arguments):
        return subprocess.run(
            [sys.executable, str(STEP), '--log', str(self.log), *arguments],
            capture_output=True, text=True, timeout=120, check=False)

    def test_output_goes_to_the_log_and_the_time_left_to_the_screen(self):
        done = self.run_step('--place', '2/3', '--seconds', '30', '--after', '65', 'Installing',
                             '--', 'echo', 'many lines')
        self.assertEqual((0, ''), (done.returncode, done.stdout))
        self.assertEqual('[2/3] Installing (about 1 min 35 s left in all)\n', done.stderr)
        self.assertIn('many lines', self.log.read_text(encoding='utf-8'))

    def test_where_it_fails_the_last_lines_and_the_log_are_named(self):
        script = 'import sys; print("\\n".join(map(str, range(100)))); sys.exit(7)'
        done = self.run_step('Installing', '--', sys.executable, '-c', script)
        self.assertEqual(7, done.returncode)
        self.assertIn('Installing: failed with code 7', done.stderr)
        self.assertIn('\n    80\n', done.stderr)
        self.assertNotIn('\n    79\n', done.stderr)
        self.assertIn(f'The whole output is in {self.log}', done.stderr)
        self.assertIn('\n42\n', self.log.read_text(encoding='utf-8'))

    def test_only_its_own_lines_are_shown(self):
        self.run_step('First', '--', 'echo', 'of the first')
        done = self.run_step('Second', '--', 'false')
        self.assertNotIn('of the first', done.stderr)
        self.assertIn('of the first', self.log.read_text(encoding='utf-8'))

    def test_a_command_that_a_signal_ends(self):
        done = self.run_step('Installing', '--', 'sh', '-c', 'kill -9 $$')
        self.assertEqual(137, done.returncode)

    def test_without_a_command_nothing_is_done(self):
        done = self.run_step('Installing')
        self.assertEqual(2, done.returncode)
        self.assertIn('there is no command behind --', done.stderr)
