#  Licensed under the Apache License, Version 2.0 (the "License"); you may
#  not use this file except in compliance with the License. You may obtain
#  a copy of the License at
#
#       http://www.apache.org/licenses/LICENSE-2.0
#
#  Unless required by applicable law or agreed to in writing, software
#  distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#  WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#  License for the specific language governing permissions and limitations
#  under the License.

"""parts.py runs each part, whatever became of those before, and ends with a table."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PARTS = pathlib.Path(__file__).parents[3] / 'tools' / 'parts.py'
#: Stands for tox: fails for one environment, leaves counts for another, says nothing for the rest.
TOX = '''
import json, os, pathlib, sys
environment = sys.argv[sys.argv.index('-e') + 1]
if environment == 'pep8':
    sys.exit(3)
if environment == 'py3':
    pathlib.Path(os.environ['TRACON_COUNTS'], 'py3.json').write_text(json.dumps(
        {'counts': {'passed': 7, 'failed': 1, 'skipped': 2}, 'failures': {'tests.one': 'why'}}))
    sys.exit(1)
'''


class TestParts(unittest.TestCase):

    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.tox = os.path.join(folder, 'tox.py')
        pathlib.Path(self.tox).write_text(TOX, encoding='utf-8')

    def run_parts(self, *arguments):
        return subprocess.run(
            [sys.executable, str(PARTS), '--tox', f'{sys.executable} {self.tox}', *arguments],
            capture_output=True, text=True, timeout=120, check=False)

    def test_failed_parts_do_not_keep_later_ones_from_running(self):
        done = self.run_parts('style', 'unit', 'docs')
        self.assertEqual(1, done.returncode, done.stderr)
        *_rest, head, style, unit, docs, total, closing = done.stdout.splitlines()
        self.assertEqual(['part', 'passed', 'failed', 'skipped', 'time'], head.split())
        self.assertEqual(['style', '0', '1', '0'], style.split()[:4])
        self.assertEqual(['unit', '7', '1', '2'], unit.split()[:4])
        self.assertEqual(['docs', '1', '0', '0'], docs.split()[:4])
        self.assertEqual(['all', '8', '2', '2'], total.split()[:4])
        self.assertEqual('8 passed, 2 failed, 2 skipped', closing)
        self.assertIn('FAILED style: exit code 3', done.stdout)
        self.assertIn('FAILED tests.one\n    why', done.stdout)

    def test_success(self):
        done = self.run_parts('docs')
        self.assertEqual((0, '1 passed, 0 failed, 0 skipped'),
                         (done.returncode, done.stdout.splitlines()[-1]))

    def test_an_unknown_part_is_named_with_those_there_are(self):
        done = self.run_parts('unit', 'moon')
        self.assertEqual(2, done.returncode)
        self.assertIn('no part moon; there are style, docs, unit', done.stderr)

    def test_what_parts_need(self):
        self.assertEqual('unit py3\n', self.run_parts('--needs', 'unit', 'watcher').stdout)
        self.assertEqual('test functional\n', self.run_parts('--needs', 'storage').stdout)
        self.assertEqual('unit\n', self.run_parts('--needs', 'style', 'docs').stdout)
