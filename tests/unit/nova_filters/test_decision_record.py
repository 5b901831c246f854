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

"""What the engine is told of each decision, and when."""

import dataclasses
import json
import math
import threading
import time
import unittest
from unittest import mock

import numpy as np
from oslo_context import context

from nova_filters import decision_record
from nova_filters import log_once
from tests import synthetic
from tests.unit.nova_filters import base
from tracon_watcher.messaging import protocol
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import queues


class DecisionCase(base.JudgeCase):
    source = 'engine'

    def documents(self, count=1):
        """Wait for so many documents of decisions, and return them."""
        found = self.told[protocol.RECORD_DECISIONS]
        self.wait_for(lambda: len(found) >= count)
        self.assertEqual(count, len(found))
        return found

    def settled(self, count=1):
        found = self.told[protocol.SETTLED]
        self.wait_for(lambda: len(found) >= count)
        return found

    def ask(self, judge, spec, *names, **instances):
        """Have a request filtered and weighed; return the HostStates."""
        states = [base.host_state(name, instances.get(name, ())) for name in names]
        judge.weights(judge.passing(states, spec), spec, [0.0])
        return states


class DocumentTest(DecisionCase):

    def setUp(self):
        super().setUp()
        self.write({'a': {'vm-a': 1.5}, 'b': {}, 'c': {'vm-c': None, 'vm-d': None}})
        self.spec = base.request_spec()

    def test_hosts_are_judged_by_their_cores(self):
        busy = np.array([0.0, 0.0, 0.9, 0.0])
        self.write({}, busy, more=[
            cluster.Host(name, (cluster.Resident(f'vm-{name}', busy, limits.Limits(1.2)),), None,
                         cluster.LOCAL, time.time(), cores)
            for name, cores in (('narrow', 1), ('wide', 8), ('unknown', None))])
        self.ask(self.judge(), self.spec, 'narrow', 'wide', 'unknown')
        said, = self.documents()
        hosts = {one['host']: one for one in said['hosts']}
        self.assertEqual({'narrow': ('known', True), 'wide': ('known', False),
                          'unknown': ('unknown_cores', False)},
                         {name: (one['status'], one['refused']) for name, one in hosts.items()})
        lower, slowdown, upper = hosts['narrow']['slowdown']
        self.assertTrue(1.3 < lower < slowdown < upper)
        worst = hosts['narrow']['worst']
        self.assertEqual(('vm-narrow', 1.0), (worst['vm'], worst['before']))
        self.assertAlmostEqual(slowdown, worst['after'], delta=0.05)
        self.assertEqual([1.0] * 3, [round(one, 3) for one in hosts['wide']['slowdown']])

    def test_what_it_says(self):
        before = time.time()
        request = context.RequestContext(overwrite=True)
        self.addCleanup(context._request_store.__dict__.clear)
        self.ask(self.judge(), self.spec, 'a', 'b', 'c', 'remote')
        said, = self.documents()
        self.assertEqual(said, json.loads(json.dumps(said, allow_nan=False)))
        self.assertEqual(
            {'schema': 'tracon-decision/1', 'vm': self.spec.instance_uuid, 'outcome': 'refused',
             'operation': 'create', 'snapshot': [1, 1], 'considered': 4, 'refused': 1,
             'unknown': 1, 'chosen': None, 'request': request.request_id,
             'weight_multiplier': 40.0, 'on_all_refused': 'least_harm',
             'newcomer': {'source': 'all VMs', 'mean': base.BUSY.tolist(),
                          'deviation': [0.0] * 4}},
            {key: value for key, value in said.items() if key not in ('id', 'at', 'hosts')})
        self.assertTrue(before <= said['at'] <= time.time())
        hosts = {one['host']: one for one in said['hosts']}
        self.assertEqual(['b', 'remote', 'c', 'a'], [one['host'] for one in said['hosts']])
        self.assertEqual([1, 2, 3, None], [one['rank'] for one in said['hosts']])
        self.assertEqual('unknown_host', hosts['remote']['status'])
        self.assertIsNone(hosts['remote']['slowdown'])
        refused = hosts['a']
        self.assertEqual((True, 'enforce', 'known', {'resident slowdown': 1}),
                         (refused['refused'], refused['mode'], refused['status'],
                          refused['reasons']))
        worst = refused['worst']
        self.assertEqual(('vm-a', 'slowdown', 1.0, 1.5),
                         (worst['vm'], worst['response'], worst['before'],
                          round(worst['limit'], 6)))
        self.assertTrue(1.5 < worst['bound'] < worst['after'], worst)
        low, mean, high = refused['slowdown']
        self.assertTrue(1 < low < mean < high)
        low, mean, high = refused['iops_ratio']
        self.assertTrue(0 < low < mean < high < 1)

    def test_bounds_of_one_that_stays_on_its_pool_lie_about_what_is_predicted(self):
        hosts = [cluster.Host(name, tuple(
            cluster.Resident(uuid, base.BUSY, io_domain=backend) for uuid, backend in residents),
            synthetic.HOST_TYPE, updated_at=time.time(), cores=1) for name, residents in (
                ('d', ((self.spec.instance_uuid, 'ceph'), ('vm-d', None))),
                ('e', (('vm-e', None),)))]
        self.write({}, more=hosts, pools={'ceph': queues.Pool(0.001)})
        judge = self.judge()
        self.ask(judge, self.spec, 'd', 'e', d=[self.spec.instance_uuid, 'vm-d'], e=['vm-e'])
        said, = self.documents()
        for host in said['hosts']:
            low, mean, high = host['slowdown']
            self.assertTrue(1 < low < mean < high < 1.5 * mean, host)

    def test_it_says_what_was_judged_by(self):
        judge = self.judge()
        states = [base.host_state(name) for name in 'abc']
        judged = judge.judge(self.spec, states)
        judge._capture(judged, self.spec, 'test')
        said, = self.documents()
        for one in said['hosts']:
            place = 'abc'.index(one['host'])
            self.assertAlmostEqual(judged.weights()[place], one['weight'], 5)
            self.assertAlmostEqual(judged.foreseen.score[place], one['score'], 5)
            for name, sign, index in (('slowdown', 1, 0), ('iops_ratio', -1, 1)):
                bounds = [np.exp(sign * part[index, place]) for part in (
                    judged.assessment.lower, judged.assessment.log_response,
                    judged.assessment.upper)]
                np.testing.assert_allclose(sorted(bounds), one[name], rtol=1e-4)

    def test_what_other_weighers_gave(self):
        states = [base.host_state(name) for name in 'abc']
        judge = self.judge()
        with mock.patch.object(judge, '_tell_engine', autospec=True):
            judge.weights(judge.passing(states, self.spec), self.spec, [2.0, 3.0])
        judge._tell_engine()
        said, = self.documents()
        # Nova does not weigh what is refused.
        self.assertEqual({'a': None, 'b': 2.0, 'c': 3.0}, {
            one['host']: one['other_weights'] for one in said['hosts']})

    def test_limits_that_would_be_breached(self):
        for limit in (1.2, 1.5, 1.8, 2.5):
            self.write({'a': {'vm-a': limit}})
            self.told[protocol.RECORD_DECISIONS].clear()
            self.ask(self.judge(), base.request_spec(), 'a')
            said, = self.documents()
            host, = said['hosts']
            (low, high), = host['breached_limits']
            self.assertEqual((1.0, bool(host['reasons'])), (low, limit < high))
            if host['reasons']:
                self.assertAlmostEqual(high, host['worst']['bound'], 3)

    def test_the_widest_intervals_of_limits_are_kept(self):
        intervals = [(0.1 * one, 0.1 * one + 0.01 * width) for one, width in enumerate(
            (3, 9, 0.01, 4, 5, 2, 6))]
        self.assertEqual([intervals[one] for one in (0, 1, 3, 4, 6)],
                         decision_record._widest(intervals))

    def test_who_suffers_most_where_no_host_is_refused(self):
        self.ask(self.judge(mode='weigh'), self.spec, 'b', 'c')
        said, = self.documents()
        alone, beside = said['hosts']
        self.assertEqual(('newcomer', 1.0, 1.0),
                         tuple(alone['worst'][key] for key in ('vm', 'before', 'after')))
        self.assertEqual(('newcomer', 'slowdown', None), tuple(
            beside['worst'][key] for key in ('vm', 'response', 'limit')))
        self.assertEqual(beside['slowdown'][1], beside['worst']['after'])

    def test_one_that_does_little_may_suffer_most(self):
        little = np.array([0.0, 0.0, 0.1, 0.0])
        self.write({}, np.array([0.0, 0.0, 0.9, 0.0]), more=[
            cluster.Host('a', (cluster.Resident('vm-a', little),), None, cluster.LOCAL,
                         time.time(), 1)])
        self.ask(self.judge(), self.spec, 'a')
        said, = self.documents()
        host, = said['hosts']
        worst = host['worst']
        self.assertEqual(('vm-a', 'slowdown', 1.0, None, None), tuple(
            worst[key] for key in ('vm', 'response', 'before', 'bound', 'limit')))
        self.assertGreater(worst['after'], 1.5)
        self.assertLess(host['slowdown'][1], 1.2)

    def test_a_host_that_differs_from_the_snapshot(self):
        judge = self.judge()
        first = base.request_spec()
        base.consume(self.ask(judge, first, 'a', 'b')[1])
        self.wait_for(judge.pending.all)
        judge.passing([base.host_state(name) for name in 'ab'],
                      base.request_spec({limits.MAX_SLOWDOWN: '1.5'}))
        said = self.documents(2)[1]
        changed = next(one for one in said['hosts'] if one['host'] == 'b')
        self.assertEqual('newcomer', changed['worst']['vm'])
        self.assertGreater(changed['worst']['after'], 1.5)
        self.assertLess(changed['slowdown'][0], changed['worst']['after'])

    def test_a_move(self):
        self.spec.instance_uuid = 'vm-c'
        self.ask(self.judge(), self.spec, 'a', 'b', 'c', c=['vm-c', 'vm-d'])
        said, = self.documents()
        self.assertEqual(('move', 0), (said['operation'], said['refused']))
        self.assertEqual('own', said['newcomer']['source'])
        home = next(one for one in said['hosts'] if one['host'] == 'c')
        # It is not beside itself there.
        self.assertIn(home['worst']['vm'], ('newcomer', 'vm-d'))

    def test_several_at_once(self):
        self.spec.num_instances = 2
        self.ask(self.judge(), self.spec, 'a', 'b')
        self.assertEqual('multi-create', self.documents()[0]['operation'])

    def test_nothing_is_known_of_the_newcomer(self):
        self.write({'a': {}, 'b': {}}, expected=None)
        self.ask(self.judge(), self.spec, 'a', 'b')
        said, = self.documents()
        self.assertEqual([None] * 4, said['newcomer']['mean'])
        self.assertEqual((2, {'unknown_profile'}),
                         (said['unknown'], {one['status'] for one in said['hosts']}))

    def test_all_would_be_refused(self):
        judge = self.judge()
        spec = base.request_spec({limits.MAX_SLOWDOWN: '1.01'})
        self.ask(judge, spec, 'a', 'c')
        said, = self.documents()
        self.assertEqual(('all would be refused, least harm first', 0),
                         (said['outcome'], said['refused']))
        self.assertEqual([{'newcomer slowdown': 1}] * 2, [one['reasons'] for one in
                                                          said['hosts']])

    def test_the_weigher_alone(self):
        states = [base.host_state(name) for name in 'abc']
        self.judge(mode='weigh').weights(states, self.spec, [0.0])
        self.assertEqual('weighed only', self.documents()[0]['outcome'])

    def test_what_is_off_is_no_decision(self):
        judge = self.judge(mode='off')
        self.ask(judge, self.spec, 'a')
        judge._work()
        self.assertEqual([], self.told[protocol.RECORD_DECISIONS])


class BreachedLimitsTest(unittest.TestCase):
    """Limits that residents would breach, beside assessments with each of these limits."""

    def test_each_limit_is_judged_alike(self):
        rng = np.random.default_rng(1)
        hosts = [cluster.Host(f'host-{place}', tuple(
            cluster.Resident(f'vm-{place}-{number}', np.array([0.0, 0.0, used, 0.0]))
            for number, used in enumerate(rng.uniform(0.05, 0.9, 1 + place))), cores=2)
            for place in range(6)]
        state = cluster.build(hosts)
        for deviation in (0.0, 0.2):
            newcomer = newcomer_profiles.Profile(
                np.array([0.0, 0.0, 0.5, 0.0]), np.array([0.0, 0.0, deviation, 0.0]))
            assessor, coming = assessment.Assessor(state), queues.Newcomer(newcomer, -1, False)
            found = decision_record.breached_limits(assessor, coming,
                                                    assessor.law.beside(coming)[1])
            several = 0
            for limit in np.linspace(1.005, 4.0, 60):
                limited = dataclasses.replace(state, max_slowdown=np.full(len(state.uuids), limit))
                refused = assessment.Assessor(limited).assess(newcomer).refused
                expected = [any(low <= math.log(limit) < high for low, high in found.get(host, ()))
                            for host in range(len(hosts))]
                self.assertEqual(expected, refused.tolist(), (deviation, limit))
                several += 0 < sum(expected) < len(hosts)
            self.assertGreater(several, 10)
            for intervals in found.values():
                ends = [end for interval in intervals for end in interval]
                self.assertEqual(sorted(ends), ends)


class BoundTest(DecisionCase):

    def test_the_best_and_the_worst_of_many(self):
        crowded = {f'full{index}': {f'vm-{index}-{vm}': 1.5 for vm in range(1 + index % 3)}
                   for index in range(60)}
        free = {f'free{index}': {} for index in range(40)}
        self.write({**crowded, **free})
        names = [*crowded, *free]
        judge = self.judge()
        self.ask(judge, base.request_spec(), *names)
        said, = self.documents()
        judged = judge.judge(base.request_spec(), [base.host_state(name) for name in names])
        self.assertEqual((100, 60, 50), (said['considered'], said['refused'],
                                         len(said['hosts'])))
        refused = [one for one in said['hosts'] if one['refused']]
        self.assertEqual(25, len(refused))
        overshoot = [judged.assessment.overshoot[names.index(one['host'])] for one in refused]
        self.assertEqual(sorted(judged.assessment.overshoot, reverse=True)[:25], overshoot)
        self.assertLess(len(json.dumps(said)), 50000)


class SettledTest(DecisionCase):

    def test_the_host_that_was_taken(self):
        self.write({'a': {}, 'b': {}})
        judge, spec = self.judge(), base.request_spec()
        base.consume(self.ask(judge, spec, 'a', 'b')[1])
        settled, = self.settled()
        said, = self.documents()
        self.assertEqual({'schema': 'tracon-decision-settled/1', 'id': said['id'],
                          'vm': spec.instance_uuid, 'chosen': 'b'},
                         {key: value for key, value in settled.items() if key != 'at'})

    def test_that_it_came_to_nothing(self):
        self.write({'a': {}, 'b': {}})
        judge, spec = self.judge(), base.request_spec()
        states = self.ask(judge, spec, 'a', 'b')
        base.consume(states[0])
        self.settled()
        states[0].updated = None
        found = self.settled(2)
        self.assertEqual(['a', None], [one['chosen'] for one in found])
        self.assertEqual(1, len({one['id'] for one in found}))

    def test_a_host_is_called_as_in_the_snapshot(self):
        self.write({'service': {}})
        judge, spec = self.judge(), base.request_spec()
        state = base.host_state('service')
        state.nodename = 'service.example.org'
        judge.passing([state], spec)
        base.consume(state)
        self.assertEqual('service', self.settled()[0]['chosen'])


class PathTest(DecisionCase):
    """What it costs a request."""

    def test_the_document_is_made_in_the_background_without_host_states(self):
        self.write({'a': {}, 'b': {}})
        judge = self.judge()
        made = []

        def document(captured, real=decision_record.to_document):
            made.append((threading.current_thread(), captured.judged.states))
            return real(captured)

        with mock.patch.object(decision_record, 'to_document', document):
            self.ask(judge, base.request_spec(), 'a', 'b')
            self.documents()
        (thread, states), = made
        self.assertIsNot(threading.current_thread(), thread)
        self.assertEqual([None, None], states)

    def captured(self, count):
        """Return a queue with so many decisions, their judge, and the VMs that it posts."""
        posted = []
        kept = decision_record.DecisionQueue(lambda method,
                                             document: posted.append(document['vm']),
                                             log_once.FaultLog(base.LOG))
        self.write({'a': {}})
        judge = self.judge()
        for number in range(count):
            spec = base.request_spec()
            spec.instance_uuid = str(number)
            kept.capture(judge.judge(spec, [base.host_state('a')]), spec, 'test')
        return kept, judge, posted

    def test_one_that_fails_does_not_take_others_along(self):
        kept, judge, posted = self.captured(5)
        with mock.patch.object(decision_record, 'to_document', autospec=True, side_effect=(
                lambda captured, real=decision_record.to_document:
                real(captured) if captured.judged.uuid != '2' else {}['x'])):
            kept.tell(judge.snapshots.current)
        self.assertEqual(['0', '1', '3', '4'], posted)
        self.assertEqual(1, self.log.output.count('A decision is not recorded'))

    def test_too_many_are_dropped_and_counted(self):
        kept, judge, posted = self.captured(70)
        kept.tell(judge.snapshots.current)
        self.assertEqual([str(number) for number in range(6, 70)], posted)
        self.assertIn('6 decisions are not recorded', self.log.output)
