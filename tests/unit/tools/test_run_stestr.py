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

"""run_stestr.py counts tests, shows the failed ones, and tells by its exit code."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

TOOLS = pathlib.Path(__file__).parents[3] / 'tools'
TESTS = '''
    import unittest

    class Test(unittest.TestCase):

        def test_good(self):
            self.assertTrue(True)

        def test_bad(self):
            self.assertEqual('one', 'another')

        @unittest.skip('needs the moon')
        def test_far(self):
            self.fail()
'''


class TestRunStestr(unittest.TestCase):

    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        # The program looks for tests beside the folder that it lies in.
        shutil.copytree(TOOLS, self.root / 'tools')
        tests = self.root / 'tests' / 'unit'
        tests.mkdir(parents=True)
        for place in (tests, tests.parent):
            (place / '__init__.py').touch()
        (tests / 'test_three.py').write_text(textwrap.dedent(TESTS), encoding='utf-8')

    def run_tests(self, *arguments):
        return subprocess.run(
            [sys.executable, 'tools/run_stestr.py', '--name', 'three', '--top-dir', '.',
             *arguments], cwd=self.root, capture_output=True, text=True, timeout=120, check=False,
            env={**os.environ, 'TRACON_COUNTS': str(self.root)})

    def test_a_failure_is_shown_and_counted(self):
        done = self.run_tests()
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertIn('FAILED tests.unit.test_three.Test.test_bad', done.stdout)
        self.assertIn("AssertionError: 'one' != 'another'", done.stdout)
        self.assertIn('three: skipped 1: needs the moon', done.stdout)
        self.assertEqual('1 passed, 1 failed, 1 skipped', done.stdout.splitlines()[-1])
        kept = json.loads((self.root / 'three.json').read_text(encoding='utf-8'))
        self.assertEqual({'passed': 1, 'failed': 1, 'skipped': 1}, kept['counts'])
        self.assertIn("'one' != 'another'",
                      kept['failures']['tests.unit.test_three.Test.test_bad'])

    def test_a_part_of_them(self):
        done = self.run_tests('test_good')
        self.assertEqual((0, '1 passed, 0 failed, 0 skipped'),
                         (done.returncode, done.stdout.splitlines()[-1]))

    def test_none_is_a_failure(self):
        done = self.run_tests('test_nothing_of_the_kind')
        self.assertEqual((1, '0 passed, 0 failed, 0 skipped'),
                         (done.returncode, done.stdout.splitlines()[-1]))
        self.assertIn('three: no test ran', done.stdout)

    def test_one_that_cannot_be_imported_is_a_failure(self):
        broken = self.root / 'tests' / 'unit' / 'test_broken.py'
        broken.write_text('import nothing_of_the_kind\n', encoding='utf-8')
        done = self.run_tests()
        self.assertNotEqual(0, done.returncode)
        self.assertIn('nothing_of_the_kind', done.stdout + done.stderr)
