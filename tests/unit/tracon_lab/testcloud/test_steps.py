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

"""Steps wait for what they need, and a failure ends it all in order."""

import concurrent.futures
import threading
import unittest
from unittest import mock

from tracon_lab.testcloud import steps


class TestSteps(unittest.TestCase):

    def test_each_comes_after_what_it_needs(self):
        order = []
        listed = [steps.Step('c', lambda: order.append('c'), ('a', 'b')),
                  steps.Step('b', lambda: order.append('b'), ('a',)),
                  steps.Step('a', lambda: order.append('a')),
                  steps.Step('d', lambda: order.append('d'), ('c',))]
        told = []
        steps.perform(listed, 3, lambda step, seconds: told.append(step.name))
        self.assertEqual(['a', 'b', 'c', 'd'], order)
        self.assertEqual(order, told)

    def test_several_run_at_a_time_and_no_more(self):
        together = threading.Barrier(2, timeout=120)
        running, most = [], []
        lock = threading.Lock()

        def action():
            with lock:
                running.append(1)
                most.append(len(running))
            together.wait()
            with lock:
                running.pop()
        steps.perform([steps.Step(name, action) for name in 'abcdef'], 2)
        self.assertEqual(2, max(most))

    def test_after_a_failure_nothing_is_begun_and_what_runs_is_waited_for(self):
        begun, noticed, ended = [], threading.Event(), []
        real, waits = concurrent.futures.wait, []

        def slow():
            self.assertTrue(noticed.wait(120))
            ended.append('slow')

        def fail():
            raise LookupError('x')

        def wait(*arguments, **more):
            # The first time it is the failure that is waited for, since nothing else can end.
            if waits:
                noticed.set()
            waits.append(1)
            return real(*arguments, **more)
        with mock.patch.object(concurrent.futures, 'wait', wait), self.assertRaises(LookupError):
            steps.perform([steps.Step('slow', slow), steps.Step('fail', fail),
                           steps.Step('next', lambda: begun.append(1)),
                           steps.Step('last', lambda: begun.append(1), ('slow',))], 2)
        self.assertEqual(['slow'], ended)
        self.assertEqual([], begun)

    def test_steps_that_can_never_run_are_a_fault(self):
        with self.assertRaisesRegex(ValueError, 'no step'):
            steps.perform([steps.Step('a', print, ('b',))], 1)
        with self.assertRaisesRegex(ValueError, 'need each other'):
            steps.perform([steps.Step('a', print, ('b',)), steps.Step('b', print, ('a',))], 1)
