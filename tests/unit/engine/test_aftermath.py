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

import dataclasses
import math

import numpy as np

from tests.unit.api import base as api
from tests.unit.engine.storage import base
from tracon_watcher.engine import migration_tracker
from tracon_watcher.engine.storage import moves
from tracon_watcher.engine import view as views
from tracon_watcher import errors
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import cooldown

DOCUMENT = {'schema': 'tracon-move/1', 'id': 'm1', 'kind': 'live migration off fast',
            'own': {'vm': 'a', 'before': 2.0, 'after': 1.1},
            'relieved': [{'vm': 'b', 'before': 1.5, 'after': 1.0}],
            'source': 'h1', 'destination': 'h2', 'reason': 'ends 1 breaches',
            'decided_at': base.NOW}


class AftermathTest(base.StorageCase):

    def setUp(self):
        super().setUp()
        self.now = base.NOW
        self.view = None
        self.term = self.lead()
        self.aftermath = migration_tracker.MigrationTracker(
            self.storage, lambda: self.view, lambda: self.term, lambda: self.now)

    def observe(self, **slowdowns):
        state = cluster.build([cluster.Host('h1', tuple(
            cluster.Resident(name, np.ones(4)) for name in slowdowns), cores=1)])
        judged = assessment.Assessor(state)
        self.view = views.View(1, judged, judged, {}, np.array(list(slowdowns.values())), 0.1,
                               self.now)

    def test_a_move_is_measured_after_minutes_and_after_a_day(self):
        self.observe(a=2.1, b=1.4)
        self.aftermath.recommended([DOCUMENT])
        move = self.storage.moves.get('m1')
        self.assertEqual((2.1, 1.4), (move.own.observed, move.relieved[0].observed))
        self.now += 60
        self.aftermath.moved('a', 'h2')
        self.assertEqual(moves.SUCCEEDED, self.storage.moves.get('m1').state)
        self.observe(a=1.2, b=1.1)
        self.assertEqual(0, self.aftermath.measure())
        for delay in moves.DELAYS:
            self.now = base.NOW + 61 + delay
            self.assertEqual(1, self.aftermath.measure())
        first, second = self.storage.outcomes.of_move('m1')
        self.assertEqual(('helped', 'helped'), (first.verdict, second.verdict))
        self.assertAlmostEqual(math.log(2.1 / 1.2) + math.log(1.4 / 1.1), first.measured)
        self.assertAlmostEqual(math.log(2.0 / 1.1) + math.log(1.5), first.predicted)

    def test_what_a_move_does_to_everybody_is_kept(self):
        prediction = {'predicted': 1.2, 'in_breach': False}
        change = {'vm': 'c', 'before': {**prediction, 'lower': 1.1, 'upper': 1.3, 'later': 1},
                  'after': prediction}
        self.aftermath.recommended([{**DOCUMENT, 'changes': [change]}, {**DOCUMENT, 'id': 'm2'}])
        (kept,) = self.storage.moves.get('m1').changes
        self.assertEqual({'vm': 'c', 'before': {**prediction, 'lower': 1.1, 'upper': 1.3},
                          'after': {**prediction, 'lower': None, 'upper': None}}, kept)
        self.assertEqual((), self.storage.moves.get('m2').changes)
        change['after'] = {**prediction, 'predicted': 'much'}
        self.assertRaisesRegex(errors.InvalidDocument, r'changes\[0\].after.predicted',
                               self.aftermath.recommended, [{**DOCUMENT, 'changes': [change]}])

    def test_limits_are_kept_and_all_are_measured(self):
        self.observe(a=2.1, b=1.4, c=1.3)
        state = self.view.assessor.cluster
        judged = assessment.Assessor(dataclasses.replace(
            state, max_slowdown=np.array([1.5, np.inf, 1.2])))
        self.view = dataclasses.replace(self.view, assessor=judged)
        prediction = {'predicted': 1.2, 'in_breach': False}
        self.aftermath.recommended([{**DOCUMENT, 'changes': [
            {'vm': vm, 'before': prediction, 'after': prediction}
            for vm in ('a', 'b', 'c', 'x')]}])
        self.assertEqual([1.5, None, 1.2, 'unknown'], [
            one.get('limit', 'unknown') for one in self.storage.moves.get('m1').changes])
        self.aftermath.moved('a', 'h2')
        self.now += 301
        self.observe(a=1.2, b=1.1, c=1.25)
        self.aftermath.measure()
        (first, _second) = self.storage.outcomes.of_move('m1')
        self.assertEqual({'a': 1.2, 'b': 1.1, 'c': 1.25}, {
            vm: value for vm, value in first.slowdowns.items() if not math.isnan(value)})
        # The verdict is on the VM and those for whose sake it left.
        self.assertAlmostEqual(math.log(2.1 / 1.2) + math.log(1.4 / 1.1), first.measured)

    def test_what_an_audit_left_is_kept_beside_its_moves(self):
        told = api.audit(self.now)
        self.aftermath.recommended([told, DOCUMENT])
        self.assertEqual(told, self.storage.audits.get(api.AUDIT))
        self.assertIsNotNone(self.storage.moves.get('m1'))
        broken = {**told, 'hosts': 'none'}
        self.assertRaisesRegex(errors.InvalidDocument, 'hosts', self.aftermath.recommended,
                               [broken, {**DOCUMENT, 'id': 'm2'}])
        self.assertIsNone(self.storage.moves.get('m2'))

    def test_removals_of_earlier_runs_of_an_audit_are_kept(self):
        for number in range(102):
            self.now = base.NOW + number
            self.aftermath.recommended([{**api.audit(self.now), 'removals': [
                {**api.removal(), 'host': f'h{number}'}]}])
        kept = self.storage.audits.get(api.AUDIT)
        self.assertEqual(['h101'], [one['host'] for one in kept['removals']])
        self.assertEqual([(f'h{number}', base.NOW + number) for number in range(1, 101)],
                         [(one['host'], one['at']) for one in kept['past']])
        self.assertEqual([api.removal()['effects'][0]], kept['past'][0]['effects'])
        self.assertEqual([kept], self.storage.audits.all())

    def test_a_removal_that_is_recommended_again_is_no_earlier_one(self):
        for seconds, removals in ((0, [api.removal()]), (1, [api.removal()]), (2, [])):
            self.aftermath.recommended([{**api.audit(base.NOW + seconds), 'removals': removals}])
        kept = self.storage.audits.get(api.AUDIT)
        self.assertEqual([base.NOW + 1], [one['at'] for one in kept['past']])

    def test_a_migration_to_another_host_is_not_the_one_that_was_recommended(self):
        self.aftermath.recommended([DOCUMENT])
        self.aftermath.moved('a', 'h9')
        self.assertEqual(moves.RECOMMENDED, self.storage.moves.get('m1').state)

    def test_after_any_migration_the_vm_stays_for_a_while(self):
        self.aftermath.moved('x', 'h9')
        until = self.aftermath.standing()['cooldowns']['x']
        self.assertEqual(cooldown.FIRST, until - self.now)
        self.now += cooldown.FIRST + 1
        self.assertEqual({}, self.aftermath.standing()['cooldowns'])

    def test_what_does_not_help_is_suspended(self):
        for number in range(8):
            self.now = base.NOW + 3600 * number
            self.observe(a=2.0, b=1.5)
            self.aftermath.recommended([{**DOCUMENT, 'id': f'm{number}'}])
            self.aftermath.moved('a', 'h2')
            self.now += 301
            self.observe(a=2.0, b=1.6)
            self.aftermath.measure()
        self.assertEqual({'live migration off fast'}, set(self.aftermath.standing()['suspended']))

    def test_without_a_view_nothing_is_measured_and_nothing_lost(self):
        self.aftermath.recommended([DOCUMENT])
        self.aftermath.moved('a', 'h2')
        self.now += 301
        self.view = None
        self.assertEqual(0, self.aftermath.measure())
        self.assertIsNone(self.storage.outcomes.of_move('m1')[0].verdict)

    def test_a_document_that_is_none_is_refused_with_its_field(self):
        for change, field in (({'schema': 'x'}, 'schema'), ({'schema': ['x']}, 'schema'),
                              ({'own': 7}, 'own'),
                              ({'relieved': [{'vm': 'b', 'before': math.nan, 'after': 1.0}]},
                               'before')):
            with self.assertRaisesRegex(errors.InvalidDocument, field):
                self.aftermath.recommended([{**DOCUMENT, **change}])
        self.assertEqual([], self.storage.moves.find())

    def test_a_database_that_is_gone_does_not_stop_notifications(self):
        self.execute('DROP TABLE moves')
        with self.assertLogs('tracon_watcher.engine.migration_tracker', 'WARNING') as logs:
            self.aftermath.moved('a', 'h2')
        self.assertIn('move of VM a to h2', logs.output[0])
