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

"""The thread that works beside requests outlives its own mistakes."""

import logging
import threading
import unittest
from unittest import mock

import testtools

from nova_filters import log_once
from nova_filters import periodic_worker


class BackgroundTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.calls = 0
        self.called = threading.Semaphore(0)
        self.background = periodic_worker.PeriodicWorker(
            self.work, log_once.FaultLog(logging.getLogger('nova_filters')))
        self.addCleanup(self.background.stop)

    def work(self):
        self.calls += 1
        self.called.release()
        if self.calls in (1, 2):
            raise LookupError('no such thing')
        return 60.0

    def wake_and_wait(self):
        self.background.wake()
        self.assertTrue(self.called.acquire(timeout=120))

    def test_it_goes_on_after_an_error_that_is_said_once(self):
        with unittest.TestCase.assertLogs(self, 'nova_filters', logging.WARNING) as said:
            for _ in range(4):
                self.wake_and_wait()
            self.background.stop()
        self.assertEqual(1, len(said.records))
        self.assertIn('LookupError: no such thing', said.records[0].getMessage())
        self.assertIs(LookupError, said.records[0].exc_info[0])

    def test_nothing_runs_before_it_is_woken(self):
        self.assertIsNone(self.background._thread)
        self.wake_and_wait()

    def test_where_no_thread_can_be_started_one_is_later(self):
        with mock.patch.object(threading.Thread, 'start', autospec=True,
                               side_effect=RuntimeError('no thread')):
            self.assertRaises(RuntimeError, self.background.wake)
        self.wake_and_wait()

    def test_it_can_be_stopped_before_it_was_woken(self):
        self.background.stop()
        self.background.wake()
        self.assertIsNone(self.background._thread)
