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

import time
from unittest import mock

from nova_filters import policy
from tests.unit.nova_filters import base
from tests.unit.nova_filters import test_request_assessor
from tracon_watcher.messaging import protocol
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import queues


class InFlightByEngineTest(test_request_assessor.InFlightTest):
    source = 'engine'


class ExpectedByEngineTest(test_request_assessor.ExpectedTest):
    source = 'engine'


class ResidencyByEngineTest(test_request_assessor.ResidencyTest):
    source = 'engine'


class LossTest(base.JudgeCase):
    source = 'engine'

    def states(self):
        return [base.host_state(name) for name in 'ab']

    def passing(self, judge):
        return [state.host for state in judge.passing(self.states(), base.request_spec())]

    def test_the_last_snapshot_is_used_until_it_is_stale(self):
        self.write({'a': {'vm-a': 1.5}, 'b': {}})
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
        judge.reconfigure(policy.Options(
            self.snapshot_file, 'engine', mode='enforce', maximum_age_seconds=0.001))
        self.wait_for(lambda: self.passing(judge) == ['a', 'b'])
        self.assertIn('tracon-engine: snapshot 1 is stale', self.log.output)

    def test_without_an_engine_no_request_waits_for_long_and_it_is_said(self):
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
        self.write({'a': {'vm-a': 1.5}, 'b': {}})
        self.wait_for(lambda: self.passing(judge) == ['b'])
        # As long as there is somebody who answers.
        judge.close()


class DriftedTest(base.JudgeCase):
    """Measured and predicted part ways on hosts of one type."""

    source = 'engine'

    def judged(self, coverage):
        """Return the judgement of a newcomer, and who passes."""
        waits = cluster.Resident('vm-a', base.BUSY / 2, limits.Limits(1.5), storage_wait=0.5)
        self.write({}, more=[
            cluster.Host('a', (waits,), 'old', 'pool', time.time(), 1),
            cluster.Host('b', (), 'new', 'pool', time.time(), 1)],
            learnt={'old': queues.LearnedParameters(vm_hours=100.0, coverage=coverage)},
            pools={'pool': queues.Pool(0.005, 1.0)})
        judge = self.judge(on_all_refused='refuse')
        states = [base.host_state(name) for name in 'ab']
        passing = [one.host for one in judge.passing(states, base.request_spec())]
        return judge.judge(base.request_spec(), states), passing

    def test_nothing_is_said_of_them_nor_of_others_on_their_account(self):
        judged, passing = self.judged(0.8)
        self.assertEqual([], passing)
        self.assertGreater(judged.assessment.remote[1], 0.0)
        judged, passing = self.judged(0.3)
        self.assertEqual(['a', 'b'], passing)
        self.assertEqual([assessment.Status.DRIFTED, assessment.Status.KNOWN],
                         judged.assessment.status.tolist())
        # Such a host ranks as the others do, to which its pool does no harm.
        self.assertEqual(0.0, judged.assessment.remote[1])
        self.assertEqual(1, len(set(judged.weights())))


class ReconfiguredTest(base.JudgeCase):
    """Options that are changed while a worker judges."""

    def setUp(self):
        super().setUp()
        self.write({'a': {'vm-a': 1.5}, 'b': {}})
        self.current = self.judge()

    def change(self, **changes):
        self.current.reconfigure(policy.Options(self.snapshot_file, **changes))

    def passing(self, spec=None):
        return [state.host for state in self.current.passing(
            [base.host_state(name) for name in 'ab'], spec or base.request_spec())]

    def test_mode(self):
        for mode, expected in (('enforce', ['b']), ('advise', ['a', 'b']), ('enforce', ['b']),
                               ('off', ['a', 'b'])):
            self.change(mode=mode)
            self.assertEqual(expected, self.passing())

    def test_limits_and_what_is_done_when_all_are_refused(self):
        self.write({'a': {'vm-a': 1.5}, 'b': {'vm-b': None}})
        self.wait_for(lambda: self.passing() == ['b'])
        self.change(mode='enforce', limits=limits.Limits(1.01))
        self.assertEqual(['a', 'b'], self.passing())
        self.change(mode='enforce', limits=limits.Limits(1.01), on_all_refused='refuse')
        self.assertEqual([], self.passing())

    def test_confidence(self):
        self.write({'a': {'vm-a': 1.6}, 'b': {}})
        self.passing()
        self.wait_for(lambda: self.current.snapshots.current.cluster.version == 2)
        for confidence, expected in ((0.5, ['b']), (0.975, ['a', 'b'])):
            self.change(mode='enforce', confidence=confidence)
            self.wait_for(lambda confidence=confidence: confidence == (
                self.current.snapshots.current.assessor.settings.confidence))
            self.assertEqual(expected, self.passing())
