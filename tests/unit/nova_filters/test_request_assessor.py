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

"""What a judge makes of HostStates that differ from the snapshot, and of its siblings."""

import gc
import json
import os
import threading
import time
from unittest import mock

import fixtures
import numpy as np

from nova_filters import assumed_placements
from nova_filters import scheduling_result
from nova_filters import selection_tracker
from tests import synthetic
from tests.unit.nova_filters import base
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import queues


def names(states):
    return [state.host for state in states]


class InFlightTest(base.JudgeCase):
    """Every VM tolerates a slowdown of 1.5, and two busy ones exceed that."""

    SPECS = {limits.MAX_SLOWDOWN: '1.5'}

    def setUp(self):
        super().setUp()
        self.write({'a': {}, 'b': {}})

    def states(self, **instances):
        return [base.host_state(name, instances.get(name, ())) for name in ('a', 'b')]

    def place(self, judge, host):
        """Have a request judged and put on a host; return its spec."""
        spec, states = base.request_spec(self.SPECS), self.states()
        judge.passing(states, spec)
        base.consume(next(state for state in states if state.host == host))
        return spec

    def passing(self, judge, **instances):
        return names(judge.passing(self.states(**instances), base.request_spec(self.SPECS)))

    def test_a_raised_count_marks_the_host_that_was_chosen(self):
        judge = self.judge()
        self.place(judge, 'a')
        self.assertEqual(['b'], self.passing(judge))

    def test_it_is_counted_once_when_nova_lists_it(self):
        judge = self.judge()
        spec = self.place(judge, 'a')
        self.assertEqual(['b'], names(judge.passing(
            self.states(a=[spec.instance_uuid]), base.request_spec())))
        record = self.log.output.splitlines()[-1]
        self.assertIn(spec.instance_uuid, record)

    def test_it_is_forgotten_when_it_leaves_the_host(self):
        judge = self.judge()
        spec = self.place(judge, 'a')
        self.passing(judge, a=[spec.instance_uuid])
        self.assertEqual(['a', 'b'], self.passing(judge))

    def test_it_is_forgotten_after_a_time(self):
        judge = self.judge(pending_expiry_seconds=600.0)
        self.place(judge, 'a')
        self.passing(judge)
        self.assertTrue(judge.pending.all())
        judge._clock = lambda: time.time() + 650.0
        self.wait_for(lambda: not judge.pending.all())
        self.assertEqual(['a', 'b'], self.passing(judge))

    def test_what_the_snapshot_shows_is_not_counted_twice(self):
        judge = self.judge()
        spec = self.place(judge, 'a')
        self.passing(judge)
        self.write({'a': {spec.instance_uuid: 100.0}, 'b': {}})
        self.wait_for(lambda: judge.snapshots.current.cluster.version == 2)
        # Beside one VM the newcomer suffers 1.8, beside two of them 2.7.
        wide = base.request_spec({limits.MAX_SLOWDOWN: '2'})
        self.assertEqual(['a', 'b'], names(judge.passing(self.states(), wide)))

    def test_a_request_that_failed_leaves_nothing_behind(self):
        judge = self.judge()
        spec, states = base.request_spec(self.SPECS), self.states()
        judge.passing(states, spec)
        base.consume(states[0])
        self.assertEqual(['b'], self.passing(judge))
        states[0].updated = None
        self.assertEqual(['a', 'b'], self.passing(judge))

    def test_siblings_hear_of_it(self):
        first, second = self.judge(), self.judge()
        self.assertEqual(['a', 'b'], self.passing(second))
        self.place(first, 'a')
        self.wait_for(second.pending.all)
        self.assertEqual(['b'], self.passing(second))

    def test_siblings_hear_that_it_failed(self):
        first, second = self.judge(), self.judge()
        self.passing(second)
        spec, states = base.request_spec(self.SPECS), self.states()
        first.passing(states, spec)
        base.consume(states[0])
        self.wait_for(second.pending.all)
        states[0].updated = None
        self.wait_for(lambda: not second.pending.all())

    def test_siblings_hear_that_it_was_built_elsewhere(self):
        first, second = self.judge(), self.judge()
        self.passing(second)
        spec = self.place(first, 'a')
        self.wait_for(second.pending.all)
        # It failed on a, and conductor took the alternate without asking.
        self.assertEqual(['a'], self.passing(first, b=[spec.instance_uuid]))
        self.wait_for(lambda: not second.pending.all())

    def test_a_line_that_is_no_placement_is_passed_over(self):
        os.makedirs(os.path.join(self.directory, 'p'))
        with open(os.path.join(self.directory, 'p', 'x.placements'), 'w') as stream:
            stream.write('{"uuid": 1}\nnot json\n')
        judge = self.judge()
        self.assertEqual(['a', 'b'], self.passing(judge))
        self.wait_for(lambda: 'not a placement' in self.log.output)
        self.wait_for(lambda: judge._exchange._readings)
        self.assertEqual(1, self.log.output.count('not a placement'))

    def test_a_directory_that_cannot_be_written_is_said_once(self):
        judge = self.judge(pending_directory='/dev/null/p')
        for _again in range(3):
            self.place(judge, 'a')
        self.passing(judge)
        self.wait_for(lambda: 'pending_directory' in self.log.output)
        self.assertEqual(1, self.log.output.count('pending_directory'))

    def test_an_instance_that_a_host_counts_but_that_is_not_known(self):
        judge = self.judge()
        self.passing(judge)
        states = self.states()
        states[1].num_instances += 1
        self.assertEqual(['a'], names(judge.passing(states, base.request_spec(self.SPECS))))


class BackgroundTest(base.JudgeCase):
    """Requests for background VMs, and for others beside them."""

    SPECS = {limits.CLASS: 'background', limits.MAX_SLOWDOWN: '1.1'}

    def setUp(self):
        super().setUp()
        self.write({'busy': {'vm-busy': None}, 'strict': {'vm-strict': 1.1}, 'empty': {}}, more=[
            cluster.Host('batch', (cluster.Resident('vm-batch', base.BUSY, limits.BACKGROUND),),
                         'synthetic', updated_at=time.time(), cores=1)])
        self.states = [base.host_state(name, [f'vm-{name}'] if name != 'empty' else [])
                       for name in ('busy', 'strict', 'empty', 'batch')]

    def weights(self, specs, **options):
        return dict(zip(('busy', 'strict', 'empty', 'batch'), self.judge(**options).weights(
            self.states, base.request_spec(specs), [0.0])))

    def test_it_is_refused_for_others_alone(self):
        found = self.judge(limits=limits.Limits(1.1)).passing(
            self.states, base.request_spec(self.SPECS))
        self.assertEqual(['busy', 'empty', 'batch'], names(found))
        # One of the foreground has a limit of its own.
        found = self.judge(limits=limits.Limits(1.1)).passing(
            self.states, base.request_spec())
        self.assertEqual(['empty'], names(found))

    def test_only_harm_to_the_foreground_weighs(self):
        background = self.weights(self.SPECS)
        self.assertEqual(background['empty'], background['batch'])
        self.assertGreater(background['empty'], background['busy'])
        self.assertGreater(background['busy'], background['strict'])
        foreground = self.weights({})
        # What it suffers itself is the same beside either; what it does is not.
        self.assertGreater(foreground['empty'], foreground['batch'])
        self.assertGreater(foreground['batch'], foreground['busy'])

    def test_one_that_has_a_host_already_is_still_background_work(self):
        judge = self.judge()
        spec = base.request_spec(self.SPECS)
        states = self.states[2:3]
        judge.passing(states, spec)
        base.consume(states[0])
        judge.passing(self.states, base.request_spec(self.SPECS))
        (placed,) = judge.pending.all()
        self.assertEqual(limits.BACKGROUND, placed.limits)
        self.assertEqual(limits.BACKGROUND, type(placed).from_record(
            json.loads(json.dumps(placed.to_record()))).limits)


class BootFromVolumeTest(base.JudgeCase):
    """Newcomers whose disk is a volume; on their host's own disk their I/O is not felt."""

    source = 'engine'
    SPECS = {limits.MAX_SLOWDOWN: '1.2'}
    IO = np.array([400.0, 100.0, 0.05, 0.01])
    #: Disks of hosts serve one request at once.
    LEARNT = {synthetic.HOST_TYPE: queues.LearnedParameters(disk=1.0)}

    def hosts(self, storage):
        busy = cluster.Resident('vm', self.IO, storage_wait=0.6)
        return [cluster.Host(name, residents, synthetic.HOST_TYPE, storage, time.time(), 1)
                for name, residents in (('a', (busy,)), ('b', ()))]

    def passing(self, judge, volume):
        spec = base.request_spec(self.SPECS, is_bfv=volume)
        states = [base.host_state('a', ['vm']), base.host_state('b')]
        return names(judge.passing(states, spec))

    def test_on_a_disk_of_the_hosts_own_only_the_cpu_counts(self):
        self.write({}, self.IO, more=self.hosts(cluster.LOCAL), learnt=self.LEARNT)
        judge = self.judge()
        self.assertEqual(['b'], self.passing(judge, False))
        self.assertEqual(['a', 'b'], self.passing(judge, True))

    def test_where_there_is_only_one_pool_it_is_on_that(self):
        hosts = self.hosts('ceph')
        # On a pool it matters who else is on it, not which host.
        self.write({}, self.IO, more=hosts, pools={'ceph': queues.Pool(0.001, 1.0)})
        judge = self.judge(on_all_refused='refuse')
        self.assertEqual([], self.passing(judge, False))
        self.assertEqual([], self.passing(judge, True))

    def test_until_a_snapshot_shows_it_others_feel_its_cpu_alone(self):
        self.write({}, self.IO, more=self.hosts(cluster.LOCAL), learnt=self.LEARNT)
        judge = self.judge()
        spec = base.request_spec(is_bfv=True)
        states = [base.host_state('a', ['vm']), base.host_state('b')]
        judge.passing(states, spec)
        base.consume(states[1])
        self.wait_for(judge.pending.all)
        placed, = judge.pending.all()
        self.assertTrue(placed.profile.apart)
        self.assertIn('CPU alone', placed.profile.source)

    def test_one_on_storage_that_is_not_known_is_moved_by_its_cpu(self):
        vm = '11111111-1111-4111-8111-111111111111'
        hosts = self.hosts(cluster.LOCAL)
        hosts.append(cluster.Host('c', (cluster.Resident(vm, self.IO, io_domain=cluster.UNKNOWN),),
                                  synthetic.HOST_TYPE, cluster.LOCAL, time.time(), 1))
        self.write({}, self.IO, more=hosts, learnt=self.LEARNT)
        judge = self.judge()
        spec = base.request_spec(self.SPECS, is_bfv=True)
        spec.instance_uuid = vm
        found = judge.judge(spec, [base.host_state('a', ['vm']), base.host_state('b')])
        self.assertTrue(found.inputs.newcomer.apart)

    def test_no_disk_io_of_its_neighbours_is_felt_on_a_volume(self):
        self.write({}, self.IO * [1, 1, 6, 5], more=self.hosts(cluster.LOCAL),
                   learnt=self.LEARNT)
        judge = self.judge()
        found = judge.judge(base.request_spec(self.SPECS, is_bfv=True),
                            [base.host_state('a', ['vm']), base.host_state('b')])
        shown = assessment.Assessor(cluster.build([cluster.Host('a', (
            cluster.Resident('vm', self.IO, storage_wait=0.6),
            cluster.Resident('new', self.IO * [1, 1, 6, 5], io_domain='ceph')),
            synthetic.HOST_TYPE, cores=1)]), judge.snapshots.current.assessor.settings)
        np.testing.assert_allclose(found.assessment.log_response[:, 0],
                                   shown.log_responses()[:, 1],
                                   rtol=0.05)

    def test_a_moving_volume_stays_on_its_pool(self):
        vm = '11111111-1111-4111-8111-111111111111'
        hosts = self.hosts(cluster.LOCAL)
        hosts.append(cluster.Host('c', (cluster.Resident(vm, self.IO, io_domain='ceph'),),
                                  synthetic.HOST_TYPE, cluster.LOCAL, time.time(), 1))
        self.write({}, self.IO, more=hosts, learnt=self.LEARNT)
        spec = base.request_spec(self.SPECS, is_bfv=True)
        spec.instance_uuid = vm
        judge = self.judge()
        found = judge.judge(spec, [base.host_state('a', ['vm']), base.host_state('b')])
        moved = assessment.Assessor(judge.snapshots.current.cluster.moved({vm: 'a'}),
                                    judge.snapshots.current.assessor.settings)
        np.testing.assert_allclose(
            found.assessment.log_response[:, 0],
            moved.log_responses()[:, moved.cluster.resident_index[vm]], rtol=0.05)


class ExpectedTest(base.JudgeCase):
    """Requests that are weighed before the earlier one's host is known."""

    SPECS = {limits.MAX_SLOWDOWN: '1.5'}    # which two busy VMs on a host exceed

    def setUp(self):
        super().setUp()
        # No VM is forgotten while a busy machine takes its time.
        self.useFixture(fixtures.MockPatchObject(assumed_placements, '_LONGEST_CLAIM', 600.0))
        self.useFixture(fixtures.MockPatchObject(selection_tracker, '_LONGEST_REQUEST', 600.0))
        self.write({name: {} for name in 'abc'})
        self.specs = []

    def weigh(self, judge, specs=None, **instances):
        """Have a request filtered and weighed; return the weights of the hosts that are left."""
        self.specs.append(base.request_spec(specs))
        return self.weigh_again(judge, **instances)

    def weigh_again(self, judge, **instances):
        """Have the last request filtered and weighed, as for the first time."""
        self.states = [base.host_state(name, instances.get(name, ())) for name in 'abc']
        passing = judge.passing(self.states, self.specs[-1])
        return judge.weights(passing, self.specs[-1], [0.0])

    def expected(self, judge):
        return [(one.uuid, one.host) for one in judge.pending.expected(time.time())]

    def test_they_prefer_different_hosts(self):
        judge = self.judge(mode='weigh')
        found = [self.weigh(judge) for _host in 'abc']
        self.assertEqual([0, 1, 2], [weights.index(max(weights)) for weights in found])

    def test_what_becomes_known_counts_once(self):
        judge = self.judge(mode='weigh')
        self.weigh(judge)
        base.consume(self.states[0])
        beside_one = self.weigh(judge)
        self.assertLess(beside_one[0], 1.0)
        placed = self.specs.pop(0).instance_uuid
        self.specs.clear()
        gc.collect()        # a RequestSpec refers to itself
        self.assertEqual(beside_one, self.weigh(judge, a=[placed]))

    def test_the_host_that_was_taken_counts_not_the_expected_one(self):
        judge = self.judge(mode='weigh')
        self.weigh(judge)
        base.consume(self.states[2])
        # No request waits until all hosts of another one were looked at again.
        self.wait_for(judge.pending.all)
        weights = self.weigh(judge, c=[self.specs[0].instance_uuid])
        self.assertEqual(1.0, weights[0])
        self.assertLess(weights[2], 1.0)

    def test_a_request_that_ends_without_a_host_is_forgotten(self):
        judge = self.judge(mode='weigh')
        self.weigh(judge)
        self.specs.clear()
        gc.collect()
        self.assertEqual([1.0, 1.0, 1.0], self.weigh(judge))

    def test_the_host_of_one_that_has_ended_is_looked_up(self):
        judge = self.judge(mode='weigh')
        self.weigh(judge)
        base.consume(self.states[2])
        placed = self.specs.pop().instance_uuid
        gc.collect()
        # Whichever comes first: a request that passes by, or the background.
        self.weigh(judge)
        self.wait_for(judge.pending.all)
        self.assertEqual([(placed, 'c')],
                         [(one.uuid, one.host) for one in judge.pending.all()])

    def test_so_is_one_that_takes_too_long(self):
        judge = self.judge(mode='weigh')
        self.weigh(judge)
        now = time.time()
        self.assertEqual([self.specs[0].instance_uuid],
                         [one.uuid for one in judge.pending.expected(now + 300)])
        self.assertEqual([], judge.pending.expected(now + 900))

    def test_one_that_the_snapshot_shows_counts_once(self):
        judge = self.judge(mode='weigh')
        self.weigh(judge)
        first = self.specs[0].instance_uuid
        self.write({'a': {first: None}, 'b': {}, 'c': {}})
        self.wait_for(lambda: judge.snapshots.current.cluster.version == 2)
        self.assertEqual([(first, 'a')], self.expected(judge))
        weights = self.weigh(judge, a=[first])
        self.assertEqual(self.weigh(self.judge(mode='weigh'), a=[first]), weights)

    def test_a_request_is_not_in_its_own_way(self):
        judge = self.judge(mode='weigh')
        self.assertEqual(self.weigh(judge), self.weigh_again(judge))
        self.assertEqual([(self.specs[0].instance_uuid, 'a')], self.expected(judge))

    def test_no_vm_is_expected_on_a_host_that_was_refused(self):
        self.write({'a': {'resident': None}, 'b': {}, 'c': {}})
        judge = self.judge()
        self.assertEqual(2, len(self.weigh(judge, self.SPECS, a=['resident'])))
        self.assertEqual([(self.specs[0].instance_uuid, 'b')], self.expected(judge))

    def test_a_breach_of_limits_beside_them_weighs(self):
        judge = self.judge(mode='weigh')
        self.weigh(judge, self.SPECS)
        weights = self.weigh(judge, self.SPECS)
        self.assertLess(weights[0], 0.5)        # half is for breaching no limit
        self.assertEqual([1.0, 1.0], weights[1:])

    def test_they_count_beside_those_that_have_come(self):
        judge = self.judge(mode='weigh')
        self.weigh(judge)
        base.consume(self.states[0])
        come = [self.specs[0].instance_uuid]
        for _host in 'bca':
            weights = self.weigh(judge, a=come)
        self.assertEqual(1, len(set(weights)))      # one VM on each
        self.assertEqual(['b', 'c', 'a'], [host for _uuid, host in self.expected(judge)])
        weights = self.weigh(judge, a=come)
        self.assertLess(weights[0], weights[1])     # one has come to a, one is expected there
        self.assertEqual(weights[1], weights[2])

    def test_no_host_is_refused_for_them(self):
        judge = self.judge(on_all_refused='refuse')
        for _again in range(4):
            self.weigh(judge, self.SPECS)
        self.assertEqual(3, len({host for _uuid, host in self.expected(judge)}))
        self.assertEqual(['a', 'b', 'c'], names(
            judge.passing(self.states, base.request_spec(self.SPECS))))

    def test_where_nothing_is_decided_the_background_finds_the_host(self):
        judge = self.judge(mode='advise')
        self.weigh(judge)
        looked, real = [], selection_tracker.SelectionTracker._raised
        with mock.patch.object(
                selection_tracker.SelectionTracker, '_raised', staticmethod(lambda one, hasty: (
                looked.append((threading.current_thread().name, hasty)), real(one, hasty))[1])):
            base.consume(self.states[1])
            placed = self.specs[0].instance_uuid
            self.weigh(judge)
            self.wait_for(judge.pending.all)
        self.assertEqual([(placed, 'b')],
                         [(one.uuid, one.host) for one in judge.pending.all()])
        self.assertEqual({'tracon'}, {name for name, hasty in looked if not hasty})

    def test_where_nothing_is_weighed_nothing_is_expected(self):
        judge = self.judge(mode='advise')
        self.assertEqual([0.0, 0.0, 0.0], self.weigh(judge))
        self.assertEqual([], judge.pending.expected(0.0))


class ResidencyTest(base.JudgeCase):

    def setUp(self):
        super().setUp()
        self.write({'a': {'vm-a': 1.5}, 'b': {'vm-b': 1.5}})

    def passing(self, judge, states):
        return names(judge.passing(states, base.request_spec()))

    def test_a_resident_that_leaves_is_not_counted(self):
        judge = self.judge(on_all_refused='refuse')
        self.assertEqual([], self.passing(
            judge, [base.host_state('a', ['vm-a']), base.host_state('b', ['vm-b'])]))
        self.assertEqual(['a'], self.passing(
            judge, [base.host_state('a'), base.host_state('b', ['vm-b'])]))

    def test_a_resident_that_nova_never_listed_stays(self):
        judge = self.judge(on_all_refused='refuse')
        for _again in range(2):
            self.assertEqual([], self.passing(judge, [base.host_state('a'),
                                                      base.host_state('b')]))

    def test_a_list_that_could_not_be_loaded_says_nothing(self):
        judge = self.judge(on_all_refused='refuse')
        self.passing(judge, [base.host_state('a', ['vm-a'])])
        empty = base.host_state('a')
        empty.num_instances = 1
        self.assertEqual([], self.passing(judge, [empty]))

    def test_a_resident_that_moves_takes_its_profile_along(self):
        judge = self.judge(on_all_refused='refuse')
        self.passing(judge, [base.host_state('a', ['vm-a']), base.host_state('b', ['vm-b'])])
        self.assertEqual(['a'], self.passing(
            judge, [base.host_state('a'), base.host_state('b', ['vm-b', 'vm-a'])]))
        self.assertIn('"host": "b"', self.log.output.splitlines()[-1])

    def test_one_that_is_on_its_way_still_runs_where_it_was(self):
        judge = self.judge(on_all_refused='refuse')
        spec = base.request_spec()
        spec.instance_uuid = '11111111-1111-4111-8111-111111111111'
        self.write({'a': {'vm-a': 1.5}, 'b': {'vm-b': None, spec.instance_uuid: 1.5}, 'c': {}})
        states = [base.host_state('a', ['vm-a']), base.host_state('c'),
                  base.host_state('b', ['vm-b', spec.instance_uuid])]
        judge.passing(states, spec)
        base.consume(states[1])
        self.wait_for(judge.pending.all)
        states[1] = base.host_state('c')
        states[2] = base.host_state('b', [spec.instance_uuid])
        # There it suffers no neighbour; vm-b has left.
        self.assertEqual(['c'], self.passing(judge, states))

    def test_a_vm_is_not_its_own_background(self):
        judge = self.judge()
        spec = base.request_spec({limits.MAX_SLOWDOWN: '1.01'})
        spec.instance_uuid = 'vm-a'
        judged = judge.judge(spec, [base.host_state('a', ['vm-a']),
                                    base.host_state('b', ['vm-b'])])
        self.assertEqual([False, True], judged.breached().tolist())
        self.assertEqual(1.0, judged.assessment.slowdown[0])
        self.assertTrue(judged.exempt)

    def test_hosts_may_be_named_by_node_or_by_host(self):
        judge = self.judge(on_all_refused='refuse')
        other = base.host_state('service')
        other.nodename = 'a'
        elsewhere = base.host_state('b')
        elsewhere.nodename = 'b.example.org'
        self.assertEqual([], self.passing(judge, [other, elsewhere]))


class StaleTest(base.JudgeCase):
    """The engine is away, so that no snapshot shows what has changed since."""

    def setUp(self):
        super().setUp()
        self.clock = time.time()
        self.write({name: {f'vm-{name}': 1.5} for name in 'abc'})
        self.states = [base.host_state(name, [f'vm-{name}']) for name in 'abc']
        self.found = self.judge(on_all_refused='refuse')
        self.found._clock = lambda: self.clock
        self.assertEqual([], self.passing())

    def passing(self):
        return names(self.found.passing(self.states, base.request_spec()))

    def counted(self):
        """Count from now on the assessors that are made, and what they assess."""
        made = []
        for method in ('__init__', 'assess'):
            real = getattr(assessment.Assessor, method)
            self.useFixture(fixtures.MockPatchObject(
                assessment.Assessor, method, autospec=True, side_effect=(
                    lambda *given, _real=real, _method=method, **more: (
                        made.append(_method), _real(*given, **more))[1])))
        return made

    def come_and_go(self):
        self.states[0] = base.host_state('a')
        self.states[1] = base.host_state('b', ['vm-b', 'new-b'])
        self.states[2].num_instances += 1

    def test_what_changed_is_assessed_while_data_is_fresh(self):
        made = self.counted()
        self.come_and_go()
        self.assertEqual(['a'], self.passing())
        self.assertEqual(['__init__', 'assess'], made)

    def test_nothing_is_assessed_when_all_is_stale(self):
        self.come_and_go()
        self.clock += 3600.0
        made = self.counted()
        for _again in range(3):
            self.assertEqual(['a', 'b', 'c'], self.passing())
        moved = base.request_spec()
        moved.instance_uuid = 'vm-a'
        self.assertEqual(['a', 'b', 'c'], names(self.found.passing(self.states, moved)))
        self.assertEqual([], made)
        judged = self.found.judge(base.request_spec(), self.states)
        self.assertEqual([assessment.Status.STALE] * 3, judged.assessment.status.tolist())
        self.assertEqual([0.0] * 3, judged.weights().tolist())

    def test_hosts_that_are_stale_are_not_assessed_beside_fresh_ones(self):
        self.write({name: {f'vm-{name}': 1.5} for name in 'ab'}, more=[
            cluster.Host('c', (), synthetic.HOST_TYPE, cluster.LOCAL, self.clock - 3600.0, 1)])
        self.clock += 1.0
        self.wait_for(lambda: self.found.snapshots.current.cluster.version == 2)
        self.passing()
        self.come_and_go()
        judged = self.found.judge(base.request_spec(), self.states)
        self.assertEqual([0, 1], judged.inputs.part.hosts)
        self.assertEqual([0, 0, assessment.Status.STALE], judged.assessment.status.tolist())

    def test_stored_changes_expire(self):
        self.come_and_go()
        self.passing()
        known = self.found._residency
        self.assertEqual((1, 1), (len(known._arrived), len(known._gone)))
        self.clock += 3600.0
        self.passing()
        self.assertEqual((0, 0), (len(known._arrived), len(known._gone)))

    def test_so_they_do_when_the_clock_is_put_back(self):
        self.come_and_go()
        self.passing()
        self.clock -= 3600.0
        self.passing()
        known = self.found._residency
        self.assertEqual((0, 0), (len(known._arrived), len(known._gone)))
        # The snapshot is of the future by this clock, which is said.
        self.assertIn('or of the future by this host\'s clock', self.log.output)

    def test_it_is_said_no_more_than_a_few_times_when_it_comes_and_goes(self):
        for _again in range(10):
            self.clock += 3600.0
            self.passing()
            self.clock -= 3600.0
            self.passing()
        self.assertLessEqual(self.log.output.count('is stale'), 5)
        self.assertIn('is stale', self.log.output)


class NamesTest(base.JudgeCase):
    """Hosts that the snapshot calls otherwise than Nova."""

    def passing(self, *hosts):
        states = [base.host_state(name) for name in hosts]
        self.assertEqual(states, self.found.passing(states, base.request_spec()))
        return self.log.output.count(' hosts of a request')

    def test_it_is_said_once_with_a_name_of_each_side(self):
        self.write({name: {} for name in ('Compute-1', 'compute-2.old.example.org')})
        self.found = self.judge()
        for _request in range(3):
            self.assertEqual(1, self.passing('compute-1', 'compute-2'))
        self.assertIn(f'{self.snapshot_file}: snapshot 1 has 0 of the 2 hosts of a request, the '
                      'others are unknown: Nova calls one compute-1 (hypervisor compute-1), the '
                      'snapshot has Compute-1; write one of this cloud', self.log.output)

    def test_a_snapshot_without_hosts_has_none(self):
        self.write({})
        self.found = self.judge()
        self.assertEqual(1, self.passing('compute-1'))
        self.assertIn('the snapshot has none;', self.log.output)

    def test_few_are_as_none_and_most_are_enough(self):
        self.write({name: {} for name in 'abc'})
        self.found = self.judge()
        self.assertEqual(0, self.passing('a', 'b', 'new'))
        self.assertEqual(1, self.passing('a', 'new', 'newer'))
        # It is said again when it was so no more, and comes back.
        self.passing('a', 'b', 'c')
        self.assertEqual(2, self.passing('new', 'newer'))


class LastingFaultTest(base.JudgeCase):
    """What fails again and again in the background keeps nothing else from its work."""

    def test_placements_are_forgotten_though_the_snapshot_cannot_be_looked_at(self):
        self.write({'a': {}, 'b': {}})
        judge = self.judge(pending_expiry_seconds=600.0)
        spec = base.request_spec()
        states = [base.host_state(name) for name in 'ab']
        judge.passing(states, spec)
        judge.source.refresh = mock.Mock(side_effect=LookupError('no such thing'))
        base.consume(states[0])
        judge.passing([base.host_state(name) for name in 'ab'], base.request_spec())
        del spec
        judge._clock = lambda: time.time() + 650.0
        self.wait_for(lambda: 'The snapshot was not looked at' in self.log.output
                      and not judge.pending.all() and not judge._choices.waiting)
        self.assertEqual(1, self.log.output.count('The snapshot was not looked at'))

    def test_a_directory_that_never_answers_keeps_nothing_from_being_forgotten(self):
        self.write({'a': {}, 'b': {}})
        judge = self.judge(pending_expiry_seconds=600.0)
        asked, answer = threading.Event(), threading.Event()
        self.addCleanup(answer.set)
        judge._exchange._collect = lambda: (asked.set(), answer.wait(120), ([], []))[-1]
        spec = base.request_spec()
        states = [base.host_state(name) for name in 'ab']
        judge.passing(states, spec)
        self.assertTrue(asked.wait(120))
        base.consume(states[0])
        del spec, states
        gc.collect()
        self.wait_for(lambda: not judge._choices.waiting)
        judge._clock = lambda: time.time() + 650.0
        self.wait_for(lambda: not judge.pending.all())
        self.write({'a': {}})
        self.wait_for(lambda: judge.snapshots.current.cluster.version == 2)

    def test_a_sibling_that_does_not_answer_makes_no_outbox_grow(self):
        self.write({'a': {}})
        judge = self.judge()
        answer = threading.Event()
        self.addCleanup(answer.set)
        judge._exchange._collect = lambda: (answer.wait(120), ([], []))[-1]
        for number in range(3):
            judge._on_superseded([f'vm-{number}-{index}' for index in range(1000)])
        self.assertLessEqual(len(judge._cancelled), assumed_placements.MOST)
        self.assertEqual('vm-2-999', judge._cancelled[-1])

    def test_without_siblings_nothing_waits_to_be_told(self):
        self.write({'a': {}})
        judge = self.judge(pending_directory='')
        for _again in range(5):
            spec, states = base.request_spec(), [base.host_state('a')]
            judge.passing(states, spec)
            base.consume(states[0])
        judge.passing([base.host_state('a')], base.request_spec())
        judge._work()
        self.assertEqual(([], []), (judge._outbox, judge._cancelled))
        self.assertTrue(judge.pending.all())


class AlternatesTest(base.JudgeCase):
    """Nova sorts the hosts once more for alternates, when all instances of a request have one."""

    def setUp(self):
        super().setUp()
        self.write({'a': {}, 'b': {}, 'c': {'vm-c': 1.5}})
        self.found = self.judge()
        self.found.passing([], base.request_spec())
        self.spec = base.request_spec()
        self.states = [base.host_state(name) for name in 'abc']

    def sorted(self):
        passed = self.found.passing(self.states, self.spec)
        self.found.weights(passed, self.spec, [0.0])
        return names(passed)

    def place(self, number):
        """Have the next instance judged and put on a host."""
        self.spec.instance_uuid = f'vm-{number}'
        self.assertEqual(['a', 'b'], self.sorted())
        base.consume(self.states[number])

    def expected(self):
        return [one.uuid for one in self.found.pending.expected(self.found._clock())]

    def test_no_vm_is_expected_there(self):
        self.place(0)
        self.place(1)
        self.sorted()
        self.assertEqual([], self.expected())
        self.assertEqual({'vm-0': 'a', 'vm-1': 'b'},
                         {one.uuid: one.host for one in self.found.pending.all()})

    def test_they_are_judged_like_others_and_nothing_is_said_again(self):
        self.place(0)
        self.place(1)
        said = self.log.output.count('Interference of instance vm-1')
        self.assertEqual(['a', 'b'], self.sorted())
        self.assertEqual(1, said)
        self.assertEqual(1, self.log.output.count('Interference of instance vm-1'))

    def test_one_that_came_to_nothing_is_judged_again(self):
        self.place(0)
        self.sorted()
        self.states[0].updated = None
        self.states[0].num_instances -= 1
        self.sorted()
        self.assertEqual(['vm-0'], self.expected())


class NeutralTest(base.JudgeCase):

    def test_no_snapshot(self):
        judge = self.judge()
        states = [base.host_state('a'), base.host_state('b')]
        spec = base.request_spec()
        self.assertEqual(states, judge.passing(states, spec))
        self.assertEqual([0.0, 0.0], judge.weights(states, spec, [0.0]))

    def test_nothing_known_of_the_newcomer(self):
        self.write({'a': {'vm-a': 1.5}, 'b': {}}, expected=None)
        judge = self.judge()
        states = [base.host_state('a'), base.host_state('b')]
        self.assertEqual(states, judge.passing(states, base.request_spec()))
        self.assertEqual([0.0, 0.0], judge.weights(states, base.request_spec(), [0.0]))

    def test_unknown_hosts_have_the_median_weight(self):
        self.write({'a': {}, 'b': {'vm-b': None}, 'c': {'vm-c': None, 'vm-d': None}})
        judge = self.judge()
        states = [base.host_state(name) for name in ('a', 'b', 'c', 'd')]
        weights = judge.weights(states, base.request_spec(), [0.0])
        self.assertEqual(1.0, weights[0])
        self.assertGreater(weights[1], weights[2])
        self.assertEqual(weights[1], weights[3])

    def test_machines_that_share_a_compute_service_are_unknown(self):
        self.write({'a': {}, 'b': {'vm-b': None}, 'c': {'vm-c': 1.01, 'vm-d': None},
                    'metal': {'vm-e': 1.01, 'vm-f': None}})
        judge = self.judge(on_all_refused='refuse')
        for kind in ('ironic', 'VMware vCenter Server'):
            nodes = [base.host_state('metal') for _index in range(2)]
            nodes[0].nodename = 'node-1'
            for one in nodes:
                one.hypervisor_type = kind
            spec = base.request_spec()
            self.assertEqual(nodes, judge.passing(nodes, spec))
            self.assertEqual([0.0, 0.0], judge.weights(nodes, spec, [0.0]))
            states = [base.host_state(name) for name in 'abc'] + nodes
            spec = base.request_spec()
            self.assertEqual([*states[:2], *nodes], judge.passing(states, spec))
            weights = judge.weights([*states[:2], *nodes], spec, [0.0])
            self.assertEqual(weights[1:2] * 2, weights[2:])
        nodes[1].hypervisor_type = 'QEMU'
        self.assertEqual(nodes[:1], judge.passing(nodes, base.request_spec()))

    def test_a_breach_weighs_more_than_harm_where_no_vm_has_a_limit(self):
        self.write({'a': {'vm-a': 1.01}, 'b': {'vm-b': None, 'vm-c': None}, 'd': {}})
        judge = self.judge(mode='weigh')
        states = [base.host_state(name) for name in ('a', 'b', 'd', 'unknown')]
        spec = base.request_spec()
        self.assertEqual(states, judge.passing(states, spec))
        weights = judge.weights(states, spec, [0.0])
        self.assertLess(weights[0], 0.5)
        self.assertGreater(weights[1], 0.5)
        self.assertEqual(1.0, weights[2])
        self.assertTrue(weights[1] <= weights[3] <= weights[2], weights)

    def test_half_of_the_weight_is_for_little_harm(self):
        self.write({'a': {}, 'b': {'vm-b': None}})
        judge = self.judge(mode='weigh')
        states = [base.host_state(name) for name in ('a', 'b')]
        for harm, weight in ((3.0, 0.75), (1.0, 0.875), (9.0, 0.625)):
            with mock.patch.object(scheduling_result.SchedulingResult, 'harm',
                                   lambda _self, harm=harm: np.array([0.0, harm])):
                self.assertEqual([1.0, weight], judge.weights(states, base.request_spec(), [0.0]))

    def test_off_and_advise_weigh_nothing(self):
        self.write({'a': {}, 'b': {'vm-b': 1.5}})
        for mode in ('off', 'advise'):
            judge = self.judge(mode=mode)
            states = [base.host_state(name) for name in ('a', 'b')]
            spec = base.request_spec()
            self.assertEqual(states, judge.passing(states, spec))
            self.assertEqual([0.0, 0.0], judge.weights(states, spec, [0.0]))
