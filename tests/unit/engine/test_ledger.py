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

"""The ledger of moves, by hand; all numbers are invented."""

import math
import unittest

from tracon_watcher.engine import ledger

#: 2026-11-25, a Wednesday.
NOW = 1795600000.0
DAY = 86400.0
FREE = (1.0, 1.0, 1.0)


def change(vm, limit, before, after, **more):
    """Return a change; predictions are lower bound, expected, upper bound."""
    return {'vm': vm, 'limit': limit, 'relieved': True, **{
        name: dict(zip(('lower', 'predicted', 'upper'), bounds), in_breach=False)
        for name, bounds in (('before', before), ('after', after))}, **more}


def move(changes, measured=(None, None), end=NOW - 3 * DAY, verdicts=('helped', 'helped'),
         gains=(0.5, 0.4)):
    """Return a move of VM ``a``; ``measured`` are slowdowns of ``a`` after minutes and a day."""
    return {
        'id': f'm{end}', 'vm': 'a', 'audit': None, 'source': 'h1', 'destination': 'h2',
        'ended_at': end, 'changes': changes,
        'outcomes': [{'delay': delay, 'verdict': verdict, 'predicted': gains[0],
                      'measured': gains[1], 'slowdowns': {} if slow is None else {'a': slow}}
                     for delay, verdict, slow in zip((300, 86400), verdicts, measured)]}


def avoided(*moves, error=0.05, now=NOW):
    return [tuple(one['avoided'][name] for name in ('lower', 'hours', 'upper'))
            for one in ledger.entries(moves, error, now)]


class Avoided(unittest.TestCase):

    def test_a_breach_that_ends_for_sure_is_a_day(self):
        sure = change('a', 1.5, (1.8, 2.0, 2.2), FREE)
        self.assertEqual([(24.0, 24.0, 24.0)], avoided(move([sure], (1.1, 1.1))))
        # What was not measured is as predicted.
        self.assertEqual([(24.0, 24.0, 24.0)], avoided(move([sure])))

    def test_one_that_does_not_end_avoids_nothing(self):
        sure = change('a', 1.5, (1.8, 2.0, 2.2), FREE)
        self.assertEqual([(0.0, 0.0, 0.0)], avoided(move([sure], (1.9, 1.9))))
        # It ended at first and came back.
        self.assertEqual([(12.0, 12.0, 12.0)], avoided(move([sure], (1.1, 1.9))))

    def test_one_that_begins_is_negative(self):
        caused = change('a', 1.5, FREE, (1.2, 1.4, 1.6))
        self.assertEqual([(-24.0, -24.0, -24.0)], avoided(move([caused], (1.9, 1.9))))
        # Only the upper bound of the prediction crosses the limit.
        self.assertEqual([(-24.0, 0.0, 0.0)], avoided(move([caused])))

    def test_bounds_hold_what_is_not_sure(self):
        unsure = change('a', 1.5, (1.4, 1.6, 1.8), (1.3, 1.4, 1.6))
        self.assertEqual([(-24.0, 24.0, 24.0)], avoided(move([unsure])))
        # A measurement just below the limit, with its error.
        self.assertEqual([(-24.0, 24.0, 24.0)], avoided(move([unsure], (1.45, 1.45))))
        self.assertEqual([(0.0, 24.0, 24.0)], avoided(move([unsure], (1.45, 1.45)), error=0.0))
        # Of an unknown error, anything may be.
        sure = change('a', 1.5, (1.8, 2.0, 2.2), FREE)
        self.assertEqual([(0.0, 24.0, 24.0)], avoided(move([sure], (1.1, 1.1)), error=math.nan))
        without = change('a', 1.5, (None, 2.0, None), FREE)
        self.assertEqual([(0.0, 24.0, 24.0)], avoided(move([without])))

    def test_the_time_ends_with_the_next_move_and_now(self):
        sure = change('a', 1.5, (1.8, 2.0, 2.2), FREE)
        first, second = move([sure]), move([sure], end=NOW - 3 * DAY + 3600)
        self.assertEqual([(24.0,) * 3, (1.0,) * 3], avoided(second, first))
        self.assertEqual([(2.0,) * 3], avoided(move([sure], end=NOW - 7200)))
        # The measurement of the day after is not of this time.
        self.assertEqual([(0.0,) * 3], avoided(move([sure], (1.9, 1.1), end=NOW - 7200)))
        # A move that does not concern it ends nothing.
        other = move([change('b', None, FREE, FREE)], end=NOW - 3 * DAY + 3600)
        self.assertEqual((24.0,) * 3, avoided(other, first)[1])

    def test_what_is_not_known_is_not_zero(self):
        unrecorded = change('a', 1.5, (1.8, 2.0, 2.2), FREE)
        del unrecorded['limit']
        for changes in ([], [unrecorded]):
            self.assertTrue(math.isnan(avoided(move(changes))[0][1]))
        # A VM without a limit cannot be in breach.
        self.assertEqual([(0.0,) * 3], avoided(move([change('a', None, (8.0,) * 3, FREE)])))

    def test_all_vms_count(self):
        self.assertEqual([(0.0, 0.0, 0.0)], avoided(move([
            change('a', 1.5, (1.8, 2.0, 2.2), FREE), change('b', 1.2, FREE, (1.8, 2.0, 2.2))])))


class Weeks(unittest.TestCase):

    def sums(self, *moves):
        return ledger.weeks(ledger.entries(moves, 0.05, NOW))

    def test_by_week_of_the_end(self):
        sure = change('a', 1.5, (1.8, 2.0, 2.2), FREE)
        found = self.sums(
            move([sure], end=NOW - DAY), move([], end=NOW - 2 * DAY),
            move([sure], verdicts=('did_not_help', 'helped'), gains=(0.5, -0.1),
                 end=NOW - 8 * DAY),
            move([], verdicts=(None, None), gains=(math.nan,) * 2, end=NOW - 9 * DAY))
        self.assertEqual(['2026-W48', '2026-W47'], [one['week'] for one in found])
        last, first = found
        self.assertEqual((2, 2, 0, 0, 1), tuple(last[name] for name in (
            'moves', 'helped', 'did_not_help', 'unknown', 'without_limits')))
        self.assertEqual({'lower': 24.0, 'hours': 24.0, 'upper': 24.0}, last['avoided'])
        self.assertEqual({'predicted': 1.0, 'measured': 0.8}, last['gain'])
        # The first measurement that is known counts, as in the sequential test.
        self.assertEqual((2, 0, 1, 1), tuple(first[name] for name in (
            'moves', 'helped', 'did_not_help', 'unknown')))
        self.assertEqual({'predicted': 0.5, 'measured': -0.1}, first['gain'])

    def test_of_nothing_known_the_sum_is_unknown(self):
        (found,) = self.sums(move([], verdicts=('unknown', None)))
        self.assertTrue(math.isnan(found['avoided']['hours']))
        self.assertTrue(math.isnan(found['gain']['measured']))
        self.assertEqual([], self.sums())
