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

"""Services are started once, known again, and their errors quote their logs."""

import signal
import sys
import time

from tests.unit import folder
from tracon_lab.testcloud import errors
from tracon_lab.testcloud import service
from tracon_lab.testcloud import supervisor


class TestSupervisor(folder.OwnFolderCase):

    def setUp(self):
        super().setUp()
        self.supervisor = self.another()
        self.addCleanup(self.stop_all)

    def another(self):
        return supervisor.Supervisor(self.folder / 'run', self.folder / 'log',
                                     {'PATH': '/usr/bin:/bin', 'WHO': 'all'})

    def stop_all(self):
        for name in self.supervisor.names():
            self.supervisor.stop(name, 120.0)

    def python(self, text, **more):
        return service.Service('it', (sys.executable, '-u', '-c', text), **more)

    def test_it_is_started_once_by_all_supervisors(self):
        sleeper = service.Service('it', ('sleep', '600'))
        self.assertTrue(self.supervisor.start(sleeper))
        pid = self.supervisor.recorded('it').pid
        self.assertFalse(self.supervisor.start(sleeper))
        other = self.another()
        self.assertFalse(other.start(sleeper))
        self.assertEqual(pid, other.recorded('it').pid)
        found, = other.status(['it'])
        self.assertEqual(('running', pid, 1), (found.state, found.pid, found.processes))
        # The kernel counts a new process's pages with a delay.
        deadline = time.monotonic() + 120
        while not other.status(['it'])[0].resident_bytes:
            self.assertLess(time.monotonic(), deadline)
        other.stop('it', 120.0)
        self.assertFalse(self.supervisor.running('it'))
        self.assertEqual('stopped', self.supervisor.status(['it'])[0].state)

    def test_with_other_files_it_is_restarted(self):
        path = self.folder / 'it.conf'
        path.write_text('a')
        made = service.Service('it', ('sleep', '600'), reads=(path,))
        self.supervisor.start(made)
        pid = self.supervisor.recorded('it').pid
        path.write_text('b')
        self.assertTrue(self.supervisor.start(made))
        self.assertNotEqual(pid, self.supervisor.recorded('it').pid)
        lasting = service.Service('it', ('sleep', '601'), lasting=True)
        self.supervisor.start(lasting)
        self.assertFalse(self.supervisor.start(
            service.Service('it', ('sleep', '602'), lasting=True)))

    def test_one_that_died_is_told_from_one_that_was_stopped(self):
        self.supervisor.start(service.Service('it', ('sleep', '600')))
        self.supervisor.kill('it')
        deadline = time.monotonic() + 120
        while self.supervisor.running('it') and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual('died', self.supervisor.status(['it'])[0].state)
        with self.assertRaisesRegex(errors.CloudError, 'it does not run'):
            self.supervisor.kill('it', signal.SIGTERM)

    def test_one_that_ends_at_its_start_is_an_error_with_its_last_words(self):
        made = self.python('print("no such table: x"); raise SystemExit(3)',
                           ready=lambda: False)
        self.supervisor.start(made)
        with self.assertRaises(errors.ServiceFailed) as caught:
            self.supervisor.wait(made)
        text = str(caught.exception)
        self.assertIn('it has ended with code 3', text)
        self.assertIn('no such table: x', text)
        self.assertIn(str(self.supervisor.log('it')), text)

    def test_one_that_takes_too_long_is_an_error(self):
        made = service.Service('it', ('sleep', '600'), ready=lambda: False, patience=0.0)
        self.supervisor.start(made)
        with self.assertRaisesRegex(errors.ServiceFailed, 'was not up within 0 s'):
            self.supervisor.wait(made)

    def test_it_has_the_variables_of_all_and_its_own(self):
        made = self.python('import os; print(os.environ["WHO"], os.environ["MINE"])',
                           environment={'MINE': 'it'}, ready=lambda: False)
        self.supervisor.start(made)
        with self.assertRaisesRegex(errors.ServiceFailed, 'all it'):
            self.supervisor.wait(made)

    def test_a_log_is_quoted_from_its_end(self):
        path = self.folder / 'log'
        self.assertIn('no log', errors.tail(path))
        path.write_text('')
        self.assertIn('empty', errors.tail(path))
        path.write_text('\n'.join(f'line {n}' for n in range(1000)))
        self.assertEqual([f'    line {n}' for n in (997, 998, 999)],
                         errors.tail(path, 3).splitlines())
