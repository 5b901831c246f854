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
import unittest

import numpy as np
from oslo_config import cfg

from tests import synthetic
from tracon_watcher.decision_engine import engine_feedback
from tracon_watcher import errors
from tracon_watcher.messaging import protocol
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement import plan
from tracon_watcher.placement import planner

NOW = 1000.0
KIND = f'live migration off {synthetic.HOST_TYPE}'


def state():
    """Return a host with a VM that suffers beside a heavy one, and an idle host."""
    heavy = np.array([400.0, 100.0, 0.9, 0.3])
    return cluster.build([
        cluster.Host('h1', (cluster.Resident('heavy', heavy), cluster.Resident(
            'hurt', heavy, limits.Limits(1.05))), synthetic.HOST_TYPE, cores=1),
        cluster.Host('h2', (), synthetic.HOST_TYPE, cores=1), cluster.Host('h3')])


class LearntTest(unittest.TestCase):

    def test_vms_on_hosts_of_a_suspended_kind_stay(self):
        found = engine_feedback.heeded(
            placement_constraints.Constraints({'heavy': 'is locked'}),
            engine_feedback.Feedback({KIND: NOW + 1, 'another': NOW + 1}), state(), NOW)
        self.assertEqual('is locked', found.immovable['heavy'])
        self.assertIn(f'moves of the kind "{KIND}" are suspended', found.immovable['hurt'])

    def test_a_suspension_that_is_over_holds_no_vm(self):
        found = engine_feedback.heeded(placement_constraints.Constraints(),
                                       engine_feedback.Feedback({KIND: NOW}), state(),
                                       NOW)
        self.assertEqual({}, dict(found.immovable))

    def test_of_two_cooldowns_the_longer_counts(self):
        found = engine_feedback.heeded(
            placement_constraints.Constraints(cooldown_until={'a': 5.0, 'b': 5.0}),
            engine_feedback.Feedback(cooldowns={'a': 7.0, 'b': 3.0, 'c': 9.0}), state(), NOW)
        self.assertEqual({'a': 7.0, 'b': 5.0, 'c': 9.0}, dict(found.cooldown_until))

    def test_each_move_is_told_with_those_whom_it_relieves(self):
        known = state()
        made = planner.plan_moves(assessment.Assessor(known),
                                  placement_constraints.Constraints(), plan.Parameters(), NOW)
        left, *told = engine_feedback.documents(made, known, 'audit-1', NOW)
        self.assertEqual([(move.uuid, 'h1', 'h2') for move in made.moves],
                         [(one['own']['vm'], one['source'], one['destination']) for one in told])
        one, = told
        self.assertEqual((KIND, 'audit-1', NOW), (one['kind'], one['audit'], one['decided_at']))
        self.assertGreater(one['own']['before'], one['own']['after'])
        others = {effect['vm'] for effect in one['relieved']}
        self.assertEqual(set(made.moves[0].relieves) - {made.moves[0].uuid}, others)
        concerned = {change['vm']: change for change in one['changes']}
        self.assertLessEqual({one['own']['vm'], *others}, concerned.keys())
        for change in concerned.values():
            for side in (change['before'], change['after']):
                self.assertLessEqual(side['lower'], side['predicted'])
                self.assertLessEqual(side['predicted'], side['upper'])
        self.assertEqual(one['own']['after'],
                         concerned[one['own']['vm']]['after']['predicted'])

        self.assertEqual(plan.SCHEMA, left['schema'])
        # Without an audit there is no name to ask for it by, so only the moves are told.
        self.assertEqual(told[0]['own'],
                         next(engine_feedback.documents(made, known, None, NOW))['own'])

    def test_what_is_left_is_told_whole(self):
        rules = placement_constraints.Constraints(immovable={'heavy': 'is locked'},
                                                  closed={'h2': 'it is disabled'})
        made = planner.plan_moves(assessment.Assessor(state()), rules,
                                  plan.Parameters(explained=9), NOW)
        document = json.loads(json.dumps(plan.audit_document(made, 'audit-1', NOW)))
        self.assertEqual(document, plan.read_audit({**document, 'later': 'release'}))
        (host,) = document['hosts']
        self.assertEqual(('h1', 'hurt', 1.05), (
            host['host'], host['breaches'][0]['vm'], host['breaches'][0]['limit']))
        self.assertEqual(
            {('heavy', None, 'stays', 'is locked'),
             ('hurt', 'h2', 'closed', 'takes no VM: it is disabled'),
             ('hurt', 'h3', 'unknown', 'is unknown: unknown_cores')},
            {(one['vm'], one['destination'], one['against'], one['why'])
             for one in host['options']})
        document['hosts'][0]['options'][0]['against'] = 'luck'
        with self.assertRaisesRegex(errors.InvalidDocument, r'options\[0\].against'):
            plan.read_audit(document)

    def test_a_host_that_is_not_known_is_of_an_unknown_type(self):
        self.assertEqual('live migration off an unknown type of host',
                         engine_feedback.kind(state(), 'x'))
        self.assertEqual('live migration off an unknown type of host',
                         engine_feedback.kind(state(), 'h3'))

    def test_an_engine_that_does_not_answer_has_learnt_nothing(self):
        conf = cfg.ConfigOpts()
        conf([])
        with self.assertLogs('tracon_watcher.decision_engine.engine_feedback', 'WARNING'):
            found = engine_feedback.feedback(protocol.connector(conf, 'fake://'))
        self.assertEqual(engine_feedback.Feedback(), found)
