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

"""Listeners whose broker never answers, or answers late."""

import threading
import time
import unittest
from unittest import mock

from tracon_watcher.engine import listener
from tracon_watcher import errors


class Listener:
    """Waits, as oslo.messaging does, until its broker answers, and cannot be told to stop."""

    def __init__(self):
        self.answers = threading.Event()
        self.fault = None
        self.started = threading.Event()
        self.stopped = threading.Event()

    def start(self):
        self.answers.wait()
        self.started.set()

    def stop(self):
        self.stopped.set()

    def check(self):
        if self.fault is not None:
            raise self.fault


class TestListening(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.listener = Listener()
        # No thread outlives its test.
        self.addCleanup(self.listener.answers.set)

    def make(self, make=None):
        made = listener.Listening(make or (lambda: self.listener), clock=lambda: self.now)
        self.addCleanup(made.stop)
        return made

    def test_a_start_that_hangs_does_not_work(self):
        made = self.make()
        made.start()
        made.check()
        self.now = listener.PATIENCE
        with self.assertRaisesRegex(listener.NotListening, 'broker has not answered for 10 sec'):
            made.check()
        self.listener.answers.set()
        self.assertTrue(self.listener.started.wait(120))
        deadline = time.monotonic() + 120
        while made._listener is None and time.monotonic() < deadline:
            time.sleep(0.01)
        made.check()

    def test_one_that_has_begun_and_hears_nothing_does_not_work(self):
        self.listener.answers.set()
        self.listener.fault = errors.TraconError('there is no exchange')
        made = self.make()
        made.start()
        self.assertTrue(self.listener.started.wait(120))
        deadline = time.monotonic() + 120
        while made._listener is None and time.monotonic() < deadline:
            time.sleep(0.01)
        with self.assertRaisesRegex(listener.NotListening, 'there is no exchange. Until then'):
            made.check()
        self.listener.fault = None
        made.check()

    def test_one_that_answers_after_the_end_is_stopped(self):
        made = self.make()
        made.start()
        with mock.patch.object(made._thread, 'join', autospec=True) as join:
            made.stop()
        join.assert_called_once_with(listener._END)
        self.assertFalse(self.listener.stopped.is_set())
        self.listener.answers.set()
        self.assertTrue(self.listener.stopped.wait(120))

    def test_one_that_listens_is_stopped(self):
        self.listener.answers.set()
        made = self.make()
        made.start()
        self.assertTrue(self.listener.started.wait(120))
        made.stop()
        self.assertTrue(self.listener.stopped.is_set())

    def test_one_that_cannot_be_made_is_made_again(self):
        self.listener.answers.set()
        failed, told = threading.Event(), threading.Event()
        self.addCleanup(told.set)
        self.enterContext(mock.patch.object(listener, '_FIRST_PAUSE', 0.001))

        def make():
            if failed.is_set():
                told.wait()
                return self.listener
            failed.set()
            raise ConnectionRefusedError('not there')

        made = self.make(make)
        made.start()
        self.assertTrue(failed.wait(120))
        deadline = time.monotonic() + 120
        reason = None
        while reason is None and time.monotonic() < deadline:
            try:
                made.check()
            except listener.NotListening as error:
                reason = error.reason
        told.set()
        self.assertTrue(reason.startswith('ConnectionRefusedError: not there; see'), reason)
        self.assertTrue(self.listener.started.wait(120))
