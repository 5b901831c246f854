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

"""Blackout windows: their grammar, and when each is open."""

import datetime
import unittest

from tracon_watcher.decision_engine import parameters
from tracon_watcher import errors

BERLIN = 'Mon-Fri 08:00-18:00 Europe/Berlin'


def told(text, *windows):
    """Return what is said at a time, which is ISO 8601 with its offset."""
    return parameters.standstill([parameters.BlackoutWindow.parse(one) for one in windows],
                                 datetime.datetime.fromisoformat(text).timestamp())


class WindowTestCase(unittest.TestCase):

    def assert_open(self, window, *times):
        for text in times:
            self.assertIn(f'blackout window "{window}" until ', told(text, window), text)

    def assert_closed(self, window, *times):
        for text in times:
            self.assertEqual('', told(text, window), text)

    def test_begins_and_ends_by_the_clocks_of_its_zone(self):
        # A Friday in summer, and one in winter.
        self.assert_open(BERLIN, '2026-07-03T06:00:00+00:00', '2026-07-03T15:59:59+00:00',
                         '2026-12-04T07:00:00+00:00', '2026-12-04T16:59:59+00:00')
        self.assert_closed(BERLIN, '2026-07-03T05:59:59+00:00', '2026-07-03T16:00:00+00:00',
                           '2026-12-04T06:59:59+00:00', '2026-12-04T17:00:00+00:00',
                           '2026-07-04T10:00:00+00:00', '2026-07-05T10:00:00+00:00')
        self.assertEqual(f'blackout window "{BERLIN}" until Fri 2026-07-03 18:00 CEST',
                         told('2026-07-03T10:00:00+00:00', BERLIN))

    def test_is_utc_and_daily_unless_it_says_otherwise(self):
        self.assert_open('08:00-18:00', '2026-07-05T08:00:00+00:00', '2026-07-04T17:59:00+00:00')
        self.assert_closed('08:00-18:00', '2026-07-05T18:00:00+00:00')
        self.assertIn('until Sun 2026-07-05 18:00 UTC',
                      told('2026-07-05T12:00:00+02:00', '08:00-18:00 UTC'))

    def test_past_midnight_belongs_to_the_day_on_which_it_begins(self):
        window = 'Fri 22:00-02:00'
        self.assert_open(window, '2026-07-03T22:00:00+00:00', '2026-07-04T01:59:00+00:00')
        self.assert_closed(window, '2026-07-03T01:00:00+00:00', '2026-07-04T02:00:00+00:00',
                           '2026-07-04T22:30:00+00:00')
        self.assertIn('until Sat 2026-07-04 02:00 UTC', told('2026-07-03T23:00:00+00:00', window))

    def test_days_in_a_list_and_around_the_weeks_end(self):
        for window, days in (('Mon,Wed-Fri 00:00-24:00', {0, 2, 3, 4}),
                             ('Sat-Mon 00:00-24:00', {5, 6, 0}), ('Sun 00:00-24:00', {6}),
                             ('Mon-Mon 00:00-24:00', {0}), ('Mon-Sun 00:00-24:00', set(range(7)))):
            with self.subTest(window):
                self.assertEqual(days, parameters.BlackoutWindow.parse(window).days)

    def test_windows_that_follow_each_other_end_with_the_last(self):
        said = told('2026-07-03T19:00:00+00:00', 'Fri 18:00-24:00', 'Sat,Sun 00:00-24:00',
                    'Mon 00:00-06:00', 'Mon 07:00-08:00')
        self.assertEqual('blackout window "Fri 18:00-24:00" until Mon 2026-07-06 06:00 UTC', said)
        self.assertIn('leave no hour for moves', told('2026-07-03T19:00:00+00:00', '00:00-24:00'))

    def test_where_clocks_are_set_it_is_never_shorter(self):
        # In Berlin 02:00 to 03:00 is skipped on 29 March 2026, and comes twice on 25 October.
        spring, autumn = '02:15-02:45 Europe/Berlin', '01:00-02:30 Europe/Berlin'
        self.assert_open(spring, '2026-03-29T00:30:00+00:00', '2026-03-29T01:30:00+00:00')
        self.assert_closed(spring, '2026-03-29T02:00:00+00:00')
        self.assert_open(autumn, '2026-10-25T00:15:00+00:00', '2026-10-25T00:45:00+00:00',
                         '2026-10-25T01:15:00+00:00')
        self.assert_closed(autumn, '2026-10-25T01:30:00+00:00', '2026-10-24T22:59:00+00:00')

    def test_what_is_no_window_is_named_with_the_remedy(self):
        for text, words in (
                ('', 'expected'), ('nights', 'expected'), ('8:00-18:00', 'expected'),
                ('08:00-24:01', 'expected'), ('08:00-29:00', 'expected'),
                ('Mon- 08:00-18:00', 'expected'), (',Mon 08:00-18:00', 'expected'),
                ('MonTue 08:00-18:00', 'expected'), ('24:00-08:00', 'expected'),
                ('08:60-09:00', 'expected'), ('mon 08:00-18:00', 'expected'),
                ('Mon, Tue 08:00-18:00', 'expected'), (' 08:00-18:00', 'expected'),
                ('08:00-18:00 ', 'expected'), ('08:00-18:00\n', 'expected'),
                ('08:00-18:00 +02:00', 'expected'), ('08:00-18:00 ../UTC', 'expected'),
                ('08:00-08:00', 'state 00:00-24:00'),
                ('08:00-18:00 Europe', 'no time zone Europe: '),
                ('08:00-18:00 /etc', 'no time zone /etc: '),
                ('08:00-18:00 Europe/Bonn', 'no time zone Europe/Bonn: ')):
            with self.subTest(text), self.assertRaises(errors.InvalidOption) as caught:
                parameters.BlackoutWindow.parse(text)
            self.assertIn(f'blackout_windows={text!r}: ', str(caught.exception))
            self.assertIn(words, str(caught.exception))
