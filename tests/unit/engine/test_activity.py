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

import threading
import unittest

from tracon_watcher.engine import periodic_task
from tracon_watcher import errors


class ActivityTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.outcomes = []

    def work(self):
        self.now += 2.0
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome is not None:
            raise outcome

    def activity(self, interval=60.0):
        return periodic_task.PeriodicTask('Collecting', self.work, interval,
                                          clock=lambda: self.now)

    def test_the_interval_is_from_beginning_to_beginning(self):
        one = self.activity()
        self.assertEqual(58.0, one.once())
        self.assertEqual((2.0, 2.0, None), (one.seconds, one.succeeded_at, one.failure))

    def test_work_that_lasts_longer_than_the_interval_begins_again_at_once(self):
        self.assertEqual(0.0, self.activity(1.0).once())

    def test_work_that_lasts_long_is_done_less_often(self):
        pauses = [periodic_task.PeriodicTask('Collecting', self.work, interval,
                                             clock=lambda: self.now,
                                             longest=longest).once()
                  for interval, longest in ((30.0, 60.0), (3.0, 6.0), (2.5, 3.5), (1.0, 2.0),
                                            (1.0, 1.5))]
        # It takes two seconds.
        self.assertEqual([28.0, 2.0, 1.5, 0.0, 0.0], pauses)

    def test_failures_are_tried_again_after_a_pause_that_doubles(self):
        self.outcomes = [errors.TraconError('gone')] * 8
        one = self.activity()
        with self.assertLogs('tracon_watcher.engine.periodic_task'):
            waits = [one.once() for _again in range(8)]
        self.assertEqual([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0], waits)
        self.assertEqual(('gone', None), (one.failure, one.succeeded_at))

    def test_a_failure_is_told_when_it_begins_and_when_it_ends(self):
        self.outcomes = [errors.TraconError('gone')] * 5 + [ValueError('other'), None, None]
        one = self.activity()
        with self.assertLogs('tracon_watcher.engine.periodic_task') as logs:
            for _again in range(8):
                one.once()
        self.assertEqual(
            ['Collecting failed: gone', 'Collecting failed: other',
             'Collecting works again, after 6 failures'],
            [record.getMessage() for record in logs.records])
        # The traceback is logged of unexpected errors only.
        self.assertEqual([False, True, False],
                         [bool(record.exc_info) for record in logs.records])

    def test_a_failure_that_was_reported_is_not_logged_again(self):
        def work():
            raise periodic_task.Reported('nothing came')
        one = periodic_task.PeriodicTask('Work', work, 30.0)
        with self.assertNoLogs(periodic_task.LOG):
            one.once()
        self.assertEqual((False, 'nothing came'), (one.works(), one.failure))

    def test_what_never_comes_back_does_not_work_whatever_came_before(self):
        one = periodic_task.PeriodicTask('Listing', self.work, 60.0, clock=lambda: self.now,
                                         overdue=300.0)
        self.assertTrue(one.works())
        self.now = 301.0
        self.assertFalse(one.works())
        one.once()
        self.assertTrue(one.works())
        self.now += 301.0
        self.assertEqual((None, False), (one.failure, one.works()))
        self.outcomes = [errors.TraconError('gone')]
        with self.assertLogs('tracon_watcher.engine.periodic_task'):
            one.once()
        self.assertFalse(one.works())

    def test_however_often_it_is_woken_there_is_a_pause(self):
        class Waited:
            def __init__(self):
                self.seconds = []

            def wait(self, seconds):
                self.seconds.append(seconds)
                return False

        one = periodic_task.PeriodicTask('Listing', self.work, 300.0, clock=lambda: self.now,
                                         shortest=30.0)
        one._at_once, one._woken = Waited(), Waited()
        one.wait(one.once())
        self.assertEqual(([30.0], [268.0]), (one._at_once.seconds, one._woken.seconds))
        # While it fails, nothing but the pause that doubles counts.
        self.outcomes = [errors.TraconError('gone')] * 2
        with self.assertLogs('tracon_watcher.engine.periodic_task'):
            for _again in range(2):
                one.wait(one.once())
        self.assertEqual(([30.0, 1.0, 2.0], [268.0, 0.0, 0.0]),
                         (one._at_once.seconds, one._woken.seconds))

    def test_the_thread_works_when_woken_and_ends(self):
        done = threading.Semaphore(0)
        one = periodic_task.PeriodicTask('Collecting', done.release, 3600.0)
        one.start()
        self.addCleanup(one.stop)
        self.assertTrue(done.acquire(timeout=120))
        one.wake()
        self.assertTrue(done.acquire(timeout=120))
        one.stop()
        self.assertFalse(one._thread.is_alive())
