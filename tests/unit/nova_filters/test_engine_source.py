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

"""With the engine in place of a file all is as before, and the engine hears of it."""

import dataclasses
import time
from unittest import mock

import numpy as np

from nova_filters import options
from tests import synthetic
from tests.unit.nova_filters import base
from tests.unit.nova_filters import test_judge
from tracon_watcher.messaging import protocol
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer
from tracon_watcher.placement import snapshot


class InFlightByEngineTest(test_judge.InFlightTest):
    source = 'engine'


class ExpectedByEngineTest(test_judge.ExpectedTest):
    source = 'engine'


class ResidencyByEngineTest(test_judge.ResidencyTest):
    source = 'engine'


class LossTest(base.JudgeCase):
    source = 'engine'

    def states(self):
        return [base.host_state(name) for name in 'ab']

    def passing(self, judge):
        return [state.host for state in judge.passing(self.states(), base.request_spec())]

    def test_the_last_snapshot_is_used_until_it_is_stale(self):
        self.write({'a': {'vm-a': 2.0}, 'b': {}})
        # Asked again only when it is gone, so that no question is lost on its way.
        judge = self.judge(engine_check_seconds=3600.0)
        self.assertEqual(['b'], self.passing(judge))
        self.wait_for(lambda: self.told[protocol.RECORD_DECISIONS])
        self.publisher.stop()
        session = judge.source._subscriber._session
        session._link._timeout = 0.05
        session._look_at = 0.0
        session.wanted.set()
        self.wait_for(lambda: 'stays in use until its data is stale' in self.log.output)
        self.assertEqual(['b'], self.passing(judge))
        judge.reconfigure(options.Options(
            self.snapshot_file, 'engine', mode='enforce', maximum_age_seconds=0.001))
        self.wait_for(lambda: self.passing(judge) == ['a', 'b'])
        self.assertIn('tracon-engine: snapshot 1 is stale', self.log.output)

    def test_without_an_engine_nobody_waits_for_long_and_it_is_said(self):
        self.patience(0.05)
        judge = self.judge(initial_wait_seconds=0.3)
        with mock.patch.object(judge.snapshots._tried, 'wait', autospec=True) as wait:
            self.assertEqual(['a', 'b'], self.passing(judge))
        # Unless it was known already that there is none.
        for call in wait.call_args_list:
            self.assertLessEqual(call.args[0], 0.3 + 1e-6)
        self.wait_for(lambda: 'hosts are chosen without it' in self.log.output)
        self.patience(120.0)
        judge.source._subscriber._session._link._timeout = 120.0
        self.engine()
        self.write({'a': {'vm-a': 2.0}, 'b': {}})
        self.wait_for(lambda: self.passing(judge) == ['b'])
        # As long as there is somebody who answers.
        judge.close()


class TrustTest(base.JudgeCase):
    """Measured and predicted part ways."""

    source = 'engine'
    HOSTS = {'a': {}, 'b': {'vm-b': None}, 'c': {'vm-c': 2.0, 'vm-d': None}}

    def weights(self, trust, mode='enforce'):
        self.write(self.HOSTS, trust={'synthetic': trust})
        judge = self.judge(mode=mode)
        states = [base.host_state(name) for name in 'abc']
        spec = base.request_spec()
        passing = judge.passing(states, spec)
        self.judged = judge.judge(base.request_spec(), states)
        return [state.host for state in passing], self.judged.weights().tolist()

    def test_weights_fade(self):
        _passing, full = self.weights(1.0)
        passing, faded = self.weights(0.6)
        self.assertEqual(['a', 'b'], passing)
        self.assertAlmostEqual(full[1], faded[1])           # the median
        for one, other in zip(full, faded):
            self.assertAlmostEqual(full[1] + 0.6 * (one - full[1]), other)

    def test_without_trust_nothing_is_said(self):
        passing, weights = self.weights(0.49)
        self.assertEqual(['a', 'b', 'c'], passing)
        self.assertEqual([0.0], sorted(set(weights)))
        self.assertEqual({assessment.Status.DRIFTED}, set(self.judged.assessment.status))

    def test_through_a_shared_pool_it_refuses_no_host_of_another_type(self):
        here = 0.3 * synthetic.CAPACITY
        state = cluster.build([
            # Though its cores are known.
            cluster.Host('a', (cluster.Resident('vm-a', here, limits.Limits(1.5)),), 'old',
                         'pool', time.time(), 4),
            cluster.Host('b', (), 'new', 'pool', time.time())],
            {newcomer.ALL: newcomer.Profile(3 * here, np.zeros(4), 3, 'all VMs')}, 1, time.time())
        both = {**synthetic.models('old'), **synthetic.models('new')}
        states = [base.host_state(name) for name in 'ab']
        statuses, scores = assessment.Status, []
        for version, (trust, passing, status) in enumerate((
                ({'new': 0.9}, [], statuses.KNOWN),
                ({'old': 0.064}, ['a', 'b'], statuses.DRIFTED)), 1):
            self.engine().publish(snapshot.Snapshot(
                dataclasses.replace(state, version=version), both, 900.0, 1, trust))
            judge = self.judge(on_all_refused='refuse')
            judge.passing(states, base.request_spec())
            self.wait_for(lambda: judge.snapshots.current.cluster.version == version)
            self.assertEqual(passing, [one.host for one in judge.passing(
                states, base.request_spec())])
            found = judge.judge(base.request_spec(), states).assessment
            self.assertEqual([status, statuses.KNOWN], found.status.tolist())
            scores.append(found.score[1])
        # Its harm does not count either.
        self.assertLess(scores[1], scores[0])

    def test_another_type_is_not_concerned(self):
        self.write(self.HOSTS, trust={'other': 0.0})
        judge = self.judge()
        states = [base.host_state(name) for name in 'abc']
        self.assertEqual(2, len(judge.passing(states, base.request_spec())))


class ReconfiguredTest(base.JudgeCase):
    """Options that are changed while a worker judges."""

    def setUp(self):
        super().setUp()
        self.write({'a': {'vm-a': 2.0}, 'b': {}})
        self.current = self.judge()

    def change(self, **changes):
        self.current.reconfigure(options.Options(self.snapshot_file, **changes))

    def passing(self, spec=None):
        return [state.host for state in self.current.passing(
            [base.host_state(name) for name in 'ab'], spec or base.request_spec())]

    def test_mode(self):
        for mode, expected in (('enforce', ['b']), ('advise', ['a', 'b']), ('enforce', ['b']),
                               ('off', ['a', 'b'])):
            self.change(mode=mode)
            self.assertEqual(expected, self.passing())

    def test_limits_and_what_is_done_when_all_are_refused(self):
        self.write({'a': {'vm-a': 2.0}, 'b': {'vm-b': None}})
        self.wait_for(lambda: self.passing() == ['b'])
        self.change(mode='enforce', limits=limits.Limits(1.01))
        self.assertEqual(['a', 'b'], self.passing())
        self.change(mode='enforce', limits=limits.Limits(1.01), on_all_refused='refuse')
        self.assertEqual([], self.passing())

    def test_confidence(self):
        self.write({'a': {'vm-a': 3.8}, 'b': {}})
        self.passing()
        self.wait_for(lambda: self.current.snapshots.current.cluster.version == 2)
        for confidence, expected in ((0.5, ['b']), (0.975, ['a', 'b'])):
            self.change(mode='enforce', confidence=confidence)
            self.wait_for(lambda confidence=confidence: confidence == (
                self.current.snapshots.current.assessor.settings.confidence))
            self.assertEqual(expected, self.passing())
