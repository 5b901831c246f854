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

"""A process is known again, and no other is taken for it."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from tracon_lab.testcloud import pidfile

FAMILY = ('import subprocess, sys, time\n'
          'child = subprocess.Popen(["sleep", "600"])\n'
          'print(child.pid, flush=True)\n'
          'time.sleep(600)\n')


class TestPidfile(unittest.TestCase):

    def start(self, *command, **more):
        child = subprocess.Popen(command or ('sleep', '600'), start_new_session=True, **more)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def test_it_comes_back_from_the_file(self):
        child = self.start()
        found = pidfile.Recorded.of(child.pid, 'abc')
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'x.pid'
            found.write(path)
            self.assertEqual(found, pidfile.Recorded.read(path))
            self.assertEqual('abc', pidfile.Recorded.read(path).mark)
            for text in ('', '{"pid": 1}', '[]', '12'):
                path.write_text(text)
                self.assertIsNone(pidfile.Recorded.read(path))
            self.assertIsNone(pidfile.Recorded.read(path.with_name('y')))

    def test_another_process_with_its_number_is_not_it(self):
        child = self.start()
        found = pidfile.Recorded.of(child.pid)
        self.assertTrue(found.alive)
        for other in (dataclasses.replace(found, started=found.started + 1),
                      dataclasses.replace(found, started=found.started - 1),
                      dataclasses.replace(found, boot='another boot')):
            self.assertFalse(other.alive)
            self.assertFalse(other.send(signal.SIGKILL))
            self.assertEqual({}, other.session())
            other.end(0.0, 0.0)
        self.assertIsNone(child.poll())
        self.assertTrue(found.alive)

    def test_one_that_ended_but_was_not_waited_for_is_not_alive(self):
        child = self.start('true')
        found = None
        while found is None or pidfile.stat(child.pid).state != 'Z':
            found = found or pidfile.Recorded.of(child.pid)
            time.sleep(0.01)
        self.assertFalse(found.alive)
        self.assertEqual({}, found.session())

    def test_a_name_with_parentheses_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            proc = pathlib.Path(folder)
            (proc / '7').mkdir()
            fields = ['S', '1', '7', '5'] + ['0'] * 15 + ['4711', '0', '3']
            (proc / '7/stat').write_text(f'7 (a) b (c)) {" ".join(fields)}')
            found = pidfile.stat(7, proc)
            self.assertEqual(pidfile.Stat('S', 5, 4711, 3 * os.sysconf('SC_PAGE_SIZE')), found)
            self.assertIsNone(pidfile.stat(8, proc))

    def test_the_end_takes_children_along(self):
        child = self.start(sys.executable, '-c', FAMILY, stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        grandchild = int(child.stdout.readline())
        found = pidfile.Recorded.of(child.pid)
        self.assertEqual({child.pid, grandchild}, set(found.session()))
        found.end(120.0, 120.0)
        self.assertEqual(-signal.SIGTERM, child.wait())
        self.assertEqual({}, found.session())

    def test_children_are_found_when_their_parent_has_ended(self):
        child = self.start(sys.executable, '-c', FAMILY, stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        grandchild = int(child.stdout.readline())
        found = pidfile.Recorded.of(child.pid)
        child.kill()
        child.wait()
        self.assertFalse(found.alive)
        self.assertEqual({grandchild}, set(found.session()))
        found.end(0.0, 120.0)
        self.assertEqual({}, found.session())

    def test_one_that_will_not_end_is_killed(self):
        child = self.start(sys.executable, '-c', 'import signal, time\n'
                           'signal.signal(signal.SIGTERM, signal.SIG_IGN)\n'
                           'print("x", flush=True)\ntime.sleep(600)\n',
                           stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        child.stdout.readline()
        pidfile.Recorded.of(child.pid).end(0.0, 0.0)
        self.assertEqual(-signal.SIGKILL, child.wait())
