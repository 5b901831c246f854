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

"""What is said of faults, and how often."""

import fixtures
import testtools

from nova_filters import log_once
from tests.unit.nova_filters import base


class FaultLogTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.log = self.useFixture(fixtures.FakeLogger('nova_filters'))
        self.faults = log_once.FaultLog(base.LOG, lambda: self.now)

    def said(self):
        return len(self.log.output.splitlines())

    def test_one_that_lasts_is_said_every_hour(self):
        for minute in range(150):
            self.now = minute * 60.0
            self.faults.report('disk', 'the disk is full')
        self.assertEqual(3, self.said())

    def test_one_that_comes_and_goes_is_said_five_times_an_hour(self):
        for second in range(7200):
            self.now = float(second)
            self.faults.report('disk', 'the disk is full')
            self.faults.mended('disk')
        self.assertEqual(10, self.said())

    def test_one_that_comes_back_is_said_at_once(self):
        for _again in range(3):
            self.faults.report('disk', 'the disk is full')
        self.faults.mended('other')
        self.assertFalse(self.faults.report('disk', 'the disk is full'))
        self.faults.mended('disk')
        self.assertTrue(self.faults.report('disk', 'the disk is full'))
        self.assertEqual(2, self.said())

    def test_many_different_ones_do_not_make_each_other_be_said_again(self):
        for _request in range(20):
            for number in range(300):
                self.faults.report('metadata', f'aggregate {number}: expected a number')
        self.assertEqual(32, self.said())
        # Other kinds have their own.
        self.assertTrue(self.faults.report('disk', 'the disk is full'))
        self.now = 3600.0
        self.assertTrue(self.faults.report('metadata', 'aggregate 299: expected a number'))

    def test_memory_is_bounded(self):
        for number in range(10000):
            self.now = number * 100.0
            self.faults.report('metadata', f'aggregate {number}')
            self.faults.mended('metadata')
        self.assertLessEqual(len(self.faults._said['metadata']), 32)

    def test_an_error_is_said_with_its_traceback_and_gives_the_neutral(self):
        for _again in range(3):
            self.assertEqual('neutral', self.faults.guarded(
                lambda: {}['x'], 'neutral', 'It failed'))
        self.assertEqual(1, self.log.output.count('It failed: KeyError'))
        self.assertIn('Traceback', self.log.output)
