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

import math

from tests.unit.engine.storage import base
from tracon_watcher.engine import sequential_test
from tracon_watcher.engine.storage import errors as storage_errors
from tracon_watcher.engine.storage import moves

DAY = 86400.0
KIND = 'live_migration for CPU'


class OutcomesCase(base.StorageCase):

    def setUp(self):
        super().setUp()
        self.outcomes = self.storage.outcomes
        self.term = self.lead()
        self.count = 0

    def made(self, at=base.NOW, **options):
        """Return a move that succeeded."""
        self.count += 1
        options = {'vm': f'vm-of-{self.count}', **options}
        move = base.move(f'move-{self.count}', decided_at=at - 60, **options)
        self.storage.moves.add([move])
        self.storage.moves.ended(move.id, at, True)
        return self.storage.moves.get(move.id)

    def measure(self, move, now, slowdown, which=0):
        """Record that all VMs concerned have a slowdown now."""
        return self.outcomes.record(
            self.term, self.outcomes.of_move(move.id)[which], move,
            {one.vm: slowdown for one in move.effects}, now)


class TestOutcomes(OutcomesCase):

    def test_due(self):
        first, second = self.made(), self.made(base.NOW + 100)
        for now, expected in ((299, []), (300, [(first.id, 300)]),
                              (400, [(first.id, 300), (second.id, 300)]),
                              (DAY + 100, [(first.id, 300), (second.id, 300), (first.id, 86400),
                                           (second.id, 86400)])):
            with self.subTest(now):
                self.assertEqual(expected, [(one.move, one.delay)
                                            for one in self.outcomes.due(base.NOW + now)])
        self.assertEqual(1, len(self.outcomes.due(base.NOW + 400, limit=1)))
        self.measure(first, base.NOW + 300, 1.0)
        self.assertEqual([second.id], [one.move for one in self.outcomes.due(base.NOW + 400)])

    def test_measured_beside_predicted(self):
        move = self.made()
        self.outcomes.record(self.term, self.outcomes.of_move(move.id)[0], move, {
            move.own.vm: 1.25, 'vm-2': 1.9, 'vm-3': 1.0}, base.NOW + 305)
        found = self.outcomes.of_move(move.id)[0]
        # vm-3 was not observed before, so that nothing is known of what it gained.
        self.assertAlmostEqual(math.log(2.0 / 1.25), found.measured)
        self.assertAlmostEqual(math.log(2.0 / 1.1 * 1.8 / 1.2), found.predicted)
        self.assertAlmostEqual(found.measured - found.predicted, found.error)
        self.assertEqual((sequential_test.HELPED, base.NOW + 305),
                         (found.verdict, found.measured_at))
        self.assertEqual({move.own.vm: 1.25, 'vm-2': 1.9, 'vm-3': 1.0}, found.slowdowns)
        self.assertIsNone(self.outcomes.of_move(move.id)[1].verdict)

    def test_counted(self):
        self.assertEqual({'helped': 0, 'did_not_help': 0, 'unknown': 0},
                         self.outcomes.verdicts(0.0))
        for slowdown, at in ((1.0, 0), (1.0, 10), (2.5, 20), (1.0, -DAY)):
            move = self.made(base.NOW + at)
            for which, delay in enumerate(moves.DELAYS):
                self.measure(move, base.NOW + at + delay, slowdown, which)
        self.made()
        # The second measurement of a move is not another move.
        self.assertEqual({'helped': 2, 'did_not_help': 1, 'unknown': 0},
                         self.outcomes.verdicts(base.NOW))
        self.assertEqual({'recommended': 0, 'started': 0, 'succeeded': 4, 'failed': 0},
                         self.storage.moves.states(base.NOW - 60))

    def test_did_not_help(self):
        move = self.made()
        self.measure(move, base.NOW + 300, 1.9)
        self.assertEqual(sequential_test.DID_NOT_HELP, self.outcomes.of_move(move.id)[0].verdict)

    def test_unknown_is_null_and_counts_for_nothing(self):
        for move, now, slowdowns in (
                (self.made(), base.NOW + 300, {}),
                (self.made(), base.NOW + 300, {'vm-2': math.nan, 'vm-3': 1.0}),
                (self.made(observed=math.nan), base.NOW + 300, {'vm-of-3': 1.0}),
                # The engine was away for ten minutes: this is not what was five minutes after.
                (self.made(), base.NOW + 601, {'vm-of-4': 1.0})):
            with self.subTest(move.id):
                self.outcomes.record(self.term, self.outcomes.of_move(move.id)[0], move,
                                     slowdowns, now)
                found = self.outcomes.of_move(move.id)[0]
                self.assertEqual(sequential_test.UNKNOWN, found.verdict)
                self.assertTrue(math.isnan(found.measured) and math.isnan(found.error))
                self.assertEqual(now, found.measured_at)
        nulls = self.database.read(lambda connection: connection.exec_driver_sql(
            'SELECT COUNT(*) FROM outcomes WHERE measured IS NULL AND verdict IS NOT NULL'
        ).scalar())
        self.assertEqual(4, nulls)
        self.assertEqual({}, self.storage.kinds.standings())

    def test_a_vm_that_moved_on(self):
        """What it is like now is not what this move brought it; the others still count."""
        move = self.made(vm='vm-1')
        self.made(base.NOW + 7200, vm='vm-1')
        self.outcomes.record(self.term, self.outcomes.of_move(move.id)[1], move,
                             {'vm-1': 1.0, 'vm-2': 1.9}, base.NOW + DAY)
        found = self.outcomes.of_move(move.id)[1]
        self.assertEqual((0.0, sequential_test.DID_NOT_HELP), (found.measured, found.verdict))
        self.assertTrue(math.isnan(found.slowdowns['vm-1']))

    def test_recorded_once(self):
        move = self.made()
        outcome = self.outcomes.of_move(move.id)[0]
        self.measure(move, base.NOW + 300, 1.0)
        self.outcomes.record(self.term, outcome, move, {}, base.NOW + 310)
        self.assertEqual((sequential_test.HELPED, base.NOW + 300), (
            self.outcomes.of_move(move.id)[0].verdict,
            self.outcomes.of_move(move.id)[0].measured_at))
        self.assertEqual(1, self.storage.kinds.standings()[KIND].measured)

    def test_only_the_leader_records(self):
        move = self.made()
        self.lead('another')
        with self.assertRaises(storage_errors.NoLongerLeader):
            self.measure(move, base.NOW + 300, 1.9)
        self.assertIsNone(self.outcomes.of_move(move.id)[0].verdict)
        self.assertEqual({}, self.storage.kinds.standings())


class TestSuspension(OutcomesCase):

    def fail(self, count, at=base.NOW, **options):
        """Let moves be made that do not help; return the last one's suspension."""
        found = None
        for _turn in range(count):
            found = self.measure(self.made(at, **options), at + 300, 2.5)
        return found

    def test_suspended_and_tried_again(self):
        self.assertIsNone(self.fail(6))
        self.assertEqual([], self.storage.kinds.suspended(base.NOW))
        with self.assertLogs('tracon_watcher.engine.storage.outcomes', 'WARNING') as logged:
            suspension = self.fail(1)
        self.assertIn(f'Moves of kind "{KIND}" are suspended until 2027-', logged.output[0])
        until = base.NOW + 300 + DAY
        self.assertEqual((KIND, until, 1), (suspension.kind, suspension.until, suspension.level))
        self.assertEqual([suspension], self.storage.kinds.suspended(until - 1))
        self.assertEqual([], self.storage.kinds.suspended(until))
        with self.assertLogs('tracon_watcher.engine.storage.outcomes', 'WARNING'):
            again = self.fail(4, until)
        self.assertEqual((2, until + 300 + 2 * DAY), (again.level, again.until))

    def test_survives_a_restart(self):
        self.fail(5)
        self.storage.close()
        with self.assertLogs('tracon_watcher.engine.storage.outcomes', 'WARNING'):
            self.assertIsNotNone(self.fail(2))

    def test_kinds_are_independent(self):
        self.fail(6)
        self.fail(6, kind='live_migration for disk')
        self.assertEqual({KIND: 6, 'live_migration for disk': 6}, {
            kind: one.measured for kind, one in self.storage.kinds.standings().items()})
        self.assertEqual([], self.storage.kinds.suspended(base.NOW))

    def test_each_move_counts_once(self):
        """By what is known first: after a day when after five minutes it was not."""
        for _turn in range(6):
            move = self.made()
            self.measure(move, base.NOW + 300, 2.5)
            self.measure(move, base.NOW + DAY, 2.5, which=1)
        self.assertEqual(6, self.storage.kinds.standings()[KIND].measured)
        move = self.made()
        self.measure(move, base.NOW + 300, math.nan)
        with self.assertLogs('tracon_watcher.engine.storage.outcomes', 'WARNING'):
            self.assertIsNotNone(self.measure(move, base.NOW + DAY, 2.5, which=1))

    def test_not_by_who_lost_the_lead(self):
        self.fail(6)
        move = self.made()
        self.lead('another')
        with self.assertRaises(storage_errors.NoLongerLeader):
            self.measure(move, base.NOW + 300, 2.5)
        self.assertEqual([], self.storage.kinds.suspended(base.NOW + 300))

    def test_an_operator_resumes_it(self):
        with self.assertLogs('tracon_watcher.engine.storage', 'WARNING'):
            self.fail(7)
            self.assertTrue(self.storage.kinds.resume(self.term, KIND))
        self.assertEqual([], self.storage.kinds.suspended(base.NOW + 300))
        self.assertFalse(self.storage.kinds.resume(self.term, KIND))
        self.lead('another')
        with self.assertRaises(storage_errors.NoLongerLeader):
            self.storage.kinds.resume(self.term, KIND)
