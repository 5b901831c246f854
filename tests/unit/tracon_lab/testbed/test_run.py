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
import json
import pathlib
import tempfile
import unittest
from unittest import mock

from tests.unit.tracon_lab.testbed import test_rows
from tracon_lab.testbed import errors
from tracon_lab.testbed import plan
from tracon_lab.testbed import rows
from tracon_lab.testbed import run
from tracon_lab.testbed import window

PLAN = plan.Plan('small', 1, (
    plan.Window('background', 'calc', 'gen-c030-r0-w0', back='reverse'),
    plan.Window('pair', 'calc', 'seqread', back='pair'),
    plan.Window('pair', 'calc', 'calc', back='pair'),
    plan.Window('repeat', 'seqread', 'gen-c030-r0-w0'),
))


class Replay:
    """Windows from a list of outcomes instead of a testbed; good ones when it is empty."""

    def __init__(self, *outcomes, seconds=2.5):
        self.outcomes = list(outcomes)
        self.now = 1000.0
        self.seen = []
        self.seconds = seconds

    def watch(self, target, backgrounds, attempt, seed):
        self.now += self.seconds
        self.seen.append((target, *backgrounds))
        outcome = self.outcomes.pop(0) if self.outcomes else []
        if isinstance(outcome, Exception):
            raise outcome
        sides = [test_rows.side(target), *(test_rows.side(name, 0.02) for name in backgrounds)]
        return window.Watched(sides, rows.Taken(self.now, 2.0, 0.01, 0.1, 0.0, 3e-4, 3e-4,
                                                3e-4, attempt), outcome)


class TestRun(unittest.TestCase):

    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = folder / 'synthetic.csv'
        self.journal = folder / 'synthetic.journal'
        self.lines = []
        self.recovered = 0

    def recover(self):
        self.recovered += 1

    def run_of(self, replay, plan_=PLAN, attempts=3):
        file = rows.File(self.path)
        file.begin(test_rows.header())
        return run.Run(plan_, file, self.journal, replay, attempts, self.recover,
                       self.lines.append, clock=lambda: replay.now)

    def written(self):
        return [(row['kind'], row['target'], row['background'])
                for row in rows.File(self.path).rows]

    def reasons(self):
        return [json.loads(line)['reasons'] for line in self.journal.read_text().splitlines()]

    def test_all_windows_both_directions_and_solos(self):
        self.assertTrue(self.run_of(Replay()).work())
        self.assertEqual([
            ('solo', 'gen-c030-r0-w0', ''), ('solo', 'calc', ''),
            ('background', 'calc', 'gen-c030-r0-w0'), ('reverse', 'gen-c030-r0-w0', 'calc'),
            ('solo', 'seqread', ''), ('pair', 'calc', 'seqread'), ('pair', 'seqread', 'calc'),
            ('pair', 'calc', 'calc'), ('pair', 'calc', 'calc'),
            ('repeat', 'seqread', 'gen-c030-r0-w0')], self.written())
        points = [row['point'] for row in rows.File(self.path).rows]
        self.assertEqual(len(set(points)), len(points))

    def test_several_beside_the_target_are_one_background(self):
        crowd = plan.Plan('crowd', 1, (
            plan.Window('co-residents', 'calc', 'seqread+calc', back='co-residents'),))
        self.assertEqual(3, crowd.guests)
        self.assertTrue(self.run_of(Replay(), crowd).work())
        self.assertEqual([
            ('co-residents', 'calc', 'seqread+calc'), ('co-residents', 'seqread', 'calc+calc'),
            ('co-residents', 'calc', 'calc+seqread')], self.written()[2:])
        found = rows.File(self.path).rows[3]
        self.assertEqual('0.5', found['target_alone_guest_cpu'])
        self.assertEqual('1', found['background_alone_guest_cpu'])
        self.assertEqual('1', found['background_observed_guest_cpu'])
        points = [row['point'] for row in rows.File(self.path).rows]
        self.assertEqual(len(set(points)), len(points))

    def test_progress_and_time_left(self):
        self.run_of(Replay()).work()
        self.assertEqual('1/4 points, 3 windows, 0 rejected, 0 given up, 0 min left',
                         self.lines[0])

    def test_a_rejected_window_is_repeated(self):
        replay = Replay([], [], ['steal 2.0 %'])
        self.assertTrue(self.run_of(replay).work())
        self.assertEqual([['steal 2.0 %']], self.reasons())
        row = next(r for r in rows.File(self.path).rows if r['kind'] == 'background')
        self.assertEqual('2', row['attempts'])

    def test_given_up_points_come_again_at_the_end(self):
        bad = ['canary off by +5.0 %']
        replay = Replay([], [], bad, bad, bad)
        self.assertTrue(self.run_of(replay).work())
        self.assertEqual(('calc', 'gen-c030-r0-w0'), replay.seen[-1])
        self.assertIn(['given up'], self.reasons())
        self.assertEqual(10, len(self.written()))

    def test_what_never_succeeds_stays_out_and_is_journalled(self):
        replay = Replay(*[['canary off by +5.0 %']] * 1000)
        self.assertFalse(self.run_of(replay).work())
        self.assertEqual([], self.written())
        self.assertIn(['given up'], self.reasons())
        marked = rows.File(self.path).header['given_up']
        self.assertTrue(marked.startswith('4: '), marked)
        self.assertIn('pair/calc/seqread', marked)
        # a later run measures them, and the mark goes
        self.assertTrue(self.run_of(Replay()).work())
        self.assertNotIn('given_up', rows.File(self.path).header)

    def test_a_guest_that_hangs_is_restarted_and_the_point_repeated(self):
        replay = Replay([], [], errors.GuestError('guest target did not answer'))
        self.assertTrue(self.run_of(replay).work())
        self.assertEqual(1, self.recovered)
        self.assertEqual([['guest target did not answer']], self.reasons())

    def test_a_guest_that_does_not_come_up_again_is_one_more_attempt(self):
        self.recover = mock.Mock(side_effect=[errors.GuestError('no answer'), None])
        replay = Replay([], errors.GuestError('hung'), errors.GuestError('hung'))
        self.assertTrue(self.run_of(replay).work())
        self.assertEqual(2, self.recover.call_count)
        self.assertIn(['not restarted: no answer'], self.reasons())

    def test_what_was_not_tried_again_in_time_is_given_up_too(self):
        # Three attempts of ten seconds for each of four points, and time for one more point.
        replay = Replay(*[['steal 9 %']] * 1000, seconds=10.0)
        self.assertFalse(self.run_of(replay).work(limit_seconds=130.0))
        self.assertIn('out of time with 3 points left', self.lines)
        self.assertTrue(rows.File(self.path).header['given_up'].startswith('4: '))

    def test_resumed_run_skips_what_is_done(self):
        self.assertFalse(self.run_of(Replay()).work(limit_seconds=8))
        done = len(self.written())
        self.assertTrue(0 < done < 10)
        replay = Replay()
        self.assertTrue(self.run_of(replay).work())
        self.assertNotIn(('calc', 'gen-c030-r0-w0'), replay.seen)
        file = rows.File(self.path)
        keys = [(row['point'], int(row['repetition'])) for row in file.rows]
        self.assertEqual(len(set(keys)), len(keys))
        self.assertEqual(set(), {window.key for window in PLAN.windows} - set(keys))

    def test_solo_windows_are_never_old(self):
        windows = tuple(plan.Window('repeat', 'calc', 'seqread', repetition=n, back='repeat')
                        for n in range(400))
        replay = Replay()
        self.run_of(replay, plan.Plan('many', 1, windows)).work()
        found = rows.File(self.path).rows
        solos = [float(r['started_at']) for r in found
                 if r['kind'] == 'solo' and r['target'] == 'calc']
        self.assertGreater(len(solos), 3)
        for row in found:
            distance = min(abs(float(row['started_at']) - at) for at in solos)
            self.assertLessEqual(distance, 45)
