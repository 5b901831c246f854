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

"""A stopped measurement forgets nothing that it started."""

import os
import signal
import unittest

from tracon_lab.testbed import interruption


class TestInterruption(unittest.TestCase):

    def setUp(self):
        super().setUp()
        for number in (signal.SIGINT, signal.SIGTERM):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        self.signals = interruption.Interruption()
        self.signals.install()

    def interrupt(self, number=signal.SIGTERM):
        os.kill(os.getpid(), number)

    def test_both_signals_raise_at_once(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.assertRaises(KeyboardInterrupt):
                self.interrupt(number)

    def test_what_is_held_is_finished_first(self):
        done = []
        with self.assertRaises(KeyboardInterrupt):
            with self.signals.held():
                with self.signals.held():
                    self.interrupt()
                    done.append('inner')
                done.append('outer')
            done.append('after')
        self.assertEqual(['inner', 'outer'], done)

    def test_a_signal_whose_exception_was_lost_is_found_again(self):
        try:
            self.interrupt()
        except KeyboardInterrupt:
            pass            # as in a callback from C
        with self.assertRaises(KeyboardInterrupt):
            self.signals.check()

    def test_an_error_is_not_hidden_by_the_signal(self):
        with self.assertRaises(ValueError):
            with self.signals.held():
                self.interrupt()
                raise ValueError

    def test_without_a_signal_nothing_is_raised(self):
        with self.signals.held():
            pass
        self.signals.check()
        self.assertFalse(self.signals.requested)
