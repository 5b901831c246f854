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

"""Runs the tests that import Watcher in a process of their own."""

import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[3]


class WatcherTestCase(unittest.TestCase):

    def test_all_that_imports_watcher(self):
        # Nova's and Watcher's options differ under the same names: never both in one process.
        done = subprocess.run(
            [sys.executable, '-m', 'unittest', 'discover', '-s', 'tests/watcher', '-t', '.'],
            cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertRegex(done.stderr, r'Ran [1-9]\d* tests')
