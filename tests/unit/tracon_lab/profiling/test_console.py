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

import unittest

import hypothesis
from hypothesis import strategies

from tracon_lab.profiling import console
from tracon_lab.profiling import plan

LINES = ('[    1.2] random: crng init done', 'tracon ready 1000.500 1073741824 ok',
         'tracon calibrated 250000000 3000.5 2000.0 ok',
         'tracon window 0 1020.000 58000000000 290 29000000000 580 0 ok',
         'tracon window 3 1200.000 58000000000 0 0 0 0 ok', 'tracon end ok')


class TestConsole(unittest.TestCase):

    def test_what_is_said_is_understood(self):
        told = console.Told()
        told.add('\r\n'.join(LINES))
        self.assertEqual(1000.5, told.ready)
        self.assertEqual(plan.Speed(2.5e8, 3000.5, 2000.0), told.speed)
        self.assertEqual({0, 3}, set(told.windows))
        found = told.windows[0]
        self.assertEqual((1020.0, 290, 580, 0), (found.begin, found.units, found.reads,
                                                 found.writes))
        self.assertAlmostEqual(58.0, found.seconds)
        self.assertAlmostEqual(29.0, found.service)

    def test_failures(self):
        told = console.Told()
        told.add('tracon failed 0 /dev/vda cannot be written ok\n')
        self.assertEqual({0: '/dev/vda cannot be written'}, told.failed)

    @hypothesis.given(strategies.integers(0, 400), strategies.integers(0, 400))
    def test_a_console_that_is_cut_tells_nothing_wrong(self, first, last):
        text = '\n'.join(LINES)
        whole, told = console.Told(), console.Told()
        whole.add(text)
        told.add(text[first:max(first, len(text) - last)])
        for number, report in told.windows.items():
            self.assertEqual(whole.windows[number], report)
        self.assertIn(told.speed, (None, whole.speed))
        self.assertIn(told.ready, (None, whole.ready))

    @hypothesis.given(strategies.text())
    def test_anything_may_be_on_it(self, text):
        told = console.Told()
        told.add(text + '\ntracon window x 1 ok\ntracon window 1 ok\ntracon failed x ok\n')
        self.assertEqual({}, told.windows)

    def test_what_has_left_the_console_is_remembered(self):
        told = console.Told()
        for line in LINES:
            told.add(line)
        self.assertEqual(2, len(told.windows))
