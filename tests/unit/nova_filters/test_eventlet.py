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

"""Locks between green threads and native ones, in processes that eventlet has patched."""

import importlib.util
import subprocess
import sys
import unittest


def run(*arguments):
    """Return what a process of its own prints."""
    return subprocess.run([sys.executable, '-W', 'ignore', *arguments], capture_output=True,
                          text=True, timeout=120, check=True).stdout.split()


HAS_EVENTLET = importlib.util.find_spec('eventlet') is not None


class EventletTest(unittest.TestCase):

    @unittest.skipUnless(HAS_EVENTLET, 'eventlet is not installed')
    def test_a_snapshot_is_prepared_though_a_request_holds_the_lock(self):
        self.assertEqual(['prepared', 'green'], run(
            '-m', 'tests.unit.nova_filters.eventlet_process', 'eventlet'))

    def test_without_eventlet_too(self):
        self.assertEqual(['prepared', 'native'], run(
            '-m', 'tests.unit.nova_filters.eventlet_process', 'threads'))

    @unittest.skipUnless(HAS_EVENTLET, 'eventlet is not installed')
    def test_nothing_that_runs_natively_takes_a_patched_lock(self):
        times, *taken = run('-m', 'tests.unit.nova_filters.eventlet_process', 'locks')
        self.assertGreaterEqual(int(times), 4)
        self.assertEqual([], taken)

    @unittest.skipUnless(HAS_EVENTLET, 'eventlet is not installed')
    def test_the_lock_lets_one_thread_in_at_a_time(self):
        for start in ('import eventlet; eventlet.monkey_patch()', 'import eventlet', ''):
            with self.subTest(start=start):
                self.assertEqual(['True', 'False', 'True'], run('-c', (
                    f'{start}\nfrom nova_filters import periodic_worker\n'
                    'lock = periodic_worker.native_lock()\n'
                    'print(lock.acquire(False), lock.acquire(False))\n'
                    'lock.release()\nprint(lock.acquire(False))')))
