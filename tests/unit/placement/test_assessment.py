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

"""The properties that every judgement must have, whatever the cluster."""

import dataclasses
import math
import unittest

import hypothesis
from hypothesis import strategies
import numpy as np

from tests import synthetic
from tracon_watcher import characteristics
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import queues
from tracon_watcher.placement import storage_backends

STORAGE = (cluster.LOCAL, 'pool')
SETTINGS = assessment.Settings(pools={'pool': queues.Pool(0.001, 8.0)})
#: What one round of the law leaves of a log response, which leads from the state without a
#: newcomer to the one with it: rounds end at 1e-4 of a slowdown, whatever part of its time a VM
#: works.
ROUNDING = 0.01
#: How far what is assessed is from what is predicted again: the round leaves up to a quarter of
#: the rise of residents, and a twentieth of a slowdown, which is more where a VM works for a part
#: of its time or waits for its own limits; what a newcomer waits for on a pool it asks of cores.
CLOSE, PART = 0.2, 0.25


def judge(state, settings=SETTINGS):
    return assessment.Assessor(state, settings)


def by_hand(state, profile, host, backend=None):
    """Judge one host the slow way: put the newcomer there and predict all VMs again.

    Its storage is the host's own where none is given. Returns its log responses, the score, and by
    how much the log response of the resident hit worst rises beyond what its limit allows.
    """
    after = state.with_residents([(host, 'newcomer', profile, limits.NONE)],
                                 {'newcomer': backend} if backend else None)
    place = after.resident_index['newcomer']
    before, found = judge(state), judge(after).log_responses()
    rise = np.delete(found, place, axis=1) - before.log_responses()
    # What contention adds counts with its own uncertainty: test_contention has the bounds.
    room = np.full(rise.shape, np.inf)
    room[:, before.law.residents] = (
        before.law.allowed(SETTINGS.confidence) - before.law.log_response)
    allowance = np.where(before.breaches_by_response(), SETTINGS.least_rise, room)
    overshoot = np.nan_to_num(rise - allowance, nan=-np.inf).max(initial=-np.inf)
    counted = np.nansum(rise[:, ~state.background])
    return found[:, place], np.nansum(found[:, place]) + counted, overshoot


class AssessmentProperties(unittest.TestCase):

    def compare(self, state, profile, verdict, backend=None):
        """Compare what is assessed with what is predicted again."""
        for host in range(len(state.hosts)):
            own, score, overshoot = by_hand(state, profile, host, backend)
            np.testing.assert_allclose(verdict.log_response[0, host], own[0], atol=CLOSE)
            does_io = profile.mean[:2].sum() >= characteristics.MINIMUM_IOPS
            self.assertEqual(does_io, not np.isnan(verdict.log_response[1, host]))
            if does_io:
                np.testing.assert_allclose(verdict.log_response[1, host], own[1], atol=CLOSE)
            self.assertAlmostEqual(score, verdict.score[host], delta=CLOSE + PART * score)
            if abs(overshoot) > CLOSE + PART * score:
                self.assertEqual(overshoot > 0, bool(verdict.refused[host]))

    @hypothesis.given(synthetic.hosts(storage=STORAGE, background=True), synthetic.profiles(),
                      strategies.sampled_from((0.0, 0.1, 0.9)), strategies.floats(0.0, 0.9))
    @hypothesis.settings(deadline=None, max_examples=25)
    def test_it_equals_predicting_again(self, hosts, vm, own_wait, storage_wait):
        state = synthetic.state(hosts)
        profile = newcomer_profiles.own(vm, own_wait, storage_wait=storage_wait)
        self.compare(state, profile, judge(state).assess(profile))

    @hypothesis.given(synthetic.hosts(storage=STORAGE), synthetic.profiles(),
                      strategies.floats(0.0, 0.9))
    @hypothesis.settings(deadline=None, max_examples=25)
    def test_one_on_a_volume_is_judged_as_the_next_snapshot_shows_it(self, hosts, vm,
                                                                     storage_wait):
        state = synthetic.state(hosts)
        profile = newcomer_profiles.own(vm, storage_wait=storage_wait).set_apart()
        verdict = judge(state).assess(profile)
        self.compare(state, profile, verdict, 'volume')
        self.assertFalse(verdict.remote.any())

    @hypothesis.given(synthetic.hosts(storage=STORAGE, background=True), strategies.data())
    @hypothesis.settings(deadline=None, max_examples=25)
    def test_a_vm_that_stays_on_its_pool(self, hosts, data):
        state = synthetic.state(hosts)
        domain = state.io_domains.index('pool') if 'pool' in state.io_domains else -1
        rows = np.flatnonzero(state.io_domain == domain) if domain >= 0 else []
        hypothesis.assume(len(rows))
        row = data.draw(strategies.sampled_from(list(rows)))
        assessor = judge(state)
        verdict = assessor.assess(state.resident_profile(row), pool=domain)
        before = assessor.log_responses()
        # Also on hosts whose own storage is another one.
        for host in np.flatnonzero(state.cores >= state.vcpus[row]):
            if host == state.host[row]:
                continue
            after = state.moved({state.uuids[row]: state.hosts[host]})
            there = np.flatnonzero(after.host == host)
            old = before[:, [state.resident_index[after.uuids[place]] for place in there]]
            old[:, [after.uuids[place] == state.uuids[row] for place in there]] = 0.0
            # It is judged as one of the foreground, whatever it is.
            counted = [not state.background[state.resident_index[after.uuids[place]]]
                       or after.uuids[place] == state.uuids[row] for place in there]
            score = np.nansum((judge(after).log_responses()[:, there] - old)[:, counted])
            self.assertAlmostEqual(score, verdict.score[host], delta=CLOSE + PART * score)

    @hypothesis.given(synthetic.hosts(storage=STORAGE))
    @hypothesis.settings(deadline=None, max_examples=25)
    def test_idle_vm_changes_nothing(self, hosts):
        verdict = judge(cluster.build(hosts)).assess(newcomer_profiles.own(np.zeros(4)))
        self.assertFalse(verdict.refused.any())
        np.testing.assert_allclose(verdict.slowdown, 1.0, rtol=1e-6)
        np.testing.assert_allclose(verdict.score, 0.0, atol=ROUNDING)

    @hypothesis.given(synthetic.profiles(), strategies.integers(1, 4), strategies.floats(0, 0.9))
    @hypothesis.settings(deadline=None)
    def test_empty_host_gives_exactly_one(self, vm, vcpus, storage_wait):
        for backend in STORAGE:
            state = cluster.build([cluster.Host('empty', (), synthetic.HOST_TYPE, backend,
                                                cores=4)])
            verdict = judge(state).assess(newcomer_profiles.own(
                vm, vcpus=vcpus, storage_wait=storage_wait), limits.Limits(1.0, 1.0))
            self.assertEqual(1.0, verdict.slowdown[0])
            if vm[:2].sum() >= characteristics.MINIMUM_IOPS:
                self.assertEqual(1.0, verdict.iops_ratio[0])
            else:
                self.assertTrue(np.isnan(verdict.iops_ratio[0]))
            self.assertEqual(0.0, verdict.score[0])
            self.assertFalse(verdict.refused[0])

    @hypothesis.given(synthetic.hosts(storage=STORAGE), synthetic.profiles(),
                      strategies.randoms(use_true_random=False))
    @hypothesis.settings(deadline=None, max_examples=25)
    def test_order_of_hosts_does_not_matter(self, hosts, vm, random):
        shuffled = list(hosts)
        random.shuffle(shuffled)
        one = judge(cluster.build(hosts)).assess(newcomer_profiles.own(vm))
        other = judge(cluster.build(shuffled)).assess(newcomer_profiles.own(vm))
        place = [other.cluster.host_index[host.name] for host in hosts]
        np.testing.assert_allclose(one.score, other.score[place], atol=1e-3)
        clear = np.abs(one.overshoot) > 1e-3
        np.testing.assert_array_equal(one.refused[clear], other.refused[place][clear])

    @hypothesis.given(synthetic.hosts(), synthetic.profiles())
    @hypothesis.settings(deadline=None, max_examples=25)
    def test_one_host_alone_equals_the_batch(self, hosts, vm):
        profile = newcomer_profiles.own(vm, storage_wait=0.2)
        batch = judge(synthetic.state(hosts)).assess(profile)
        for index, host in enumerate(hosts):
            alone = judge(synthetic.state([host])).assess(profile)
            self.assertAlmostEqual(batch.score[index], alone.score[0], delta=ROUNDING)
            if abs(alone.overshoot[0]) > ROUNDING:
                self.assertEqual(batch.refused[index], alone.refused[0])

    @hypothesis.given(synthetic.hosts(), synthetic.profiles(), strategies.integers(1, 4),
                      strategies.floats(0, 0.9))
    @hypothesis.settings(deadline=None, max_examples=25)
    def test_no_vm_suffers_less_for_one_more_neighbour(self, hosts, vm, vcpus, storage_wait):
        state = synthetic.state(hosts)
        profile = newcomer_profiles.own(vm, vcpus=vcpus, storage_wait=storage_wait)
        verdict = judge(state).assess(profile)
        self.assertTrue((verdict.log_response[0] >= 0).all())
        self.assertTrue((verdict.score >= np.nansum(verdict.log_response, axis=0)).all())
        before = judge(state).log_responses()
        # The same when it is predicted again.
        for host in np.flatnonzero(state.cores >= vcpus):
            after = judge(state.with_residents(
                [(host, 'more', newcomer_profiles.own(vm, vcpus=vcpus, storage_wait=storage_wait),
                  limits.NONE)]))
            rows = [after.cluster.resident_index[uuid] for uuid in state.uuids]
            rise = np.nan_to_num(after.log_responses()[:, rows] - before)
            self.assertGreater(rise.min(initial=0.0), -1e-3)

    @hypothesis.given(synthetic.hosts(storage=STORAGE), synthetic.profiles())
    @hypothesis.settings(deadline=None, max_examples=25)
    def test_uncertain_newcomer_is_refused_no_more_often(self, hosts, vm):
        assessor = judge(cluster.build(hosts))
        certain = assessor.assess(newcomer_profiles.own(vm), limits.Limits(1.5, 0.5))
        vague = assessor.assess(newcomer_profiles.Profile(vm, vm * 0.7), limits.Limits(1.5, 0.5))
        self.assertFalse((vague.refused & ~certain.refused).any())
        np.testing.assert_allclose(vague.score, certain.score)
        self.assertTrue((vague.lower[0] <= certain.lower[0]).all())
        self.assertTrue((vague.upper[0] >= certain.upper[0]).all())

    @hypothesis.given(synthetic.hosts(storage=STORAGE), synthetic.profiles(),
                      strategies.floats(1.05, 4.0))
    @hypothesis.settings(deadline=None, max_examples=40)
    def test_a_refusal_names_a_vm_whose_bound_crosses_its_limit(self, hosts, vm, tolerated):
        state = cluster.build(hosts)
        own = limits.Limits(tolerated, 0.3)
        verdict = judge(state).assess(newcomer_profiles.own(vm), own)
        for host in np.flatnonzero(verdict.refused):
            for breach in (verdict.breach(host), *verdict.breaches(host)):
                limit = own
                if breach.vm != 'newcomer':
                    row = state.resident_index[breach.vm]
                    limit = state.resident_limits(row)
                    self.assertTrue(state.host[row] == host
                                    or state.io_domain[row] == state.host_io_domain[host])
                if breach.response == 'slowdown':
                    self.assertAlmostEqual(limit.max_slowdown, breach.limit)
                    self.assertGreater(breach.bound, breach.limit)
                else:
                    self.assertAlmostEqual(limit.min_iops_ratio, breach.limit)
                    self.assertLess(breach.bound, breach.limit)


class Unknown(unittest.TestCase):
    VM = np.array([100.0, 50.0, 0.4, 0.1])

    def assess(self, hosts, now=None, age=np.inf, vm=None, **settings):
        return judge(cluster.build(hosts), assessment.Settings(
            maximum_age=age, **settings)).assess(
                vm or newcomer_profiles.own(self.VM), limits.Limits(1.01), now)

    def resident(self, uuid, profile=VM, **more):
        return cluster.Resident(uuid, profile, limits.Limits(1.01), **more)

    def host(self, *residents, name='h', cores=1, **more):
        return cluster.Host(name, residents, synthetic.HOST_TYPE, cores=cores, **more)

    def check_unknown(self, host, status, **more):
        """See that this host alone is unknown."""
        verdict = self.assess([host, self.host(self.resident('there'), name='other',
                                               updated_at=160.0)], **more)
        self.assertEqual([status, assessment.Status.KNOWN], verdict.status.tolist())
        self.assertTrue(np.isnan(verdict.score[0]))
        self.assertEqual([False, True], verdict.refused.tolist())
        self.assertTrue(np.isnan(verdict.log_response[:, 0]).all())
        self.assertTrue(np.isnan(verdict.upper[:, 0]).all())
        self.assertFalse(np.isnan(verdict.score[1]))

    def test_resident_without_profile(self):
        self.check_unknown(self.host(self.resident('a', None), self.resident('b')),
                           assessment.Status.UNKNOWN_PROFILE)

    def test_unknown_storage(self):
        for host in (self.host(self.resident('a'), io_domain=None),
                     self.host(self.resident('a', io_domain=cluster.UNKNOWN))):
            self.check_unknown(host, assessment.Status.UNKNOWN_STORAGE)

    def test_unknown_cores(self):
        self.check_unknown(self.host(self.resident('a'), cores=None),
                           assessment.Status.UNKNOWN_CORES)

    def test_a_type_of_which_measurements_have_drifted_away(self):
        host = dataclasses.replace(self.host(self.resident('a')), host_type='drifted')
        self.check_unknown(host, assessment.Status.DRIFTED, learnt={
            'drifted': queues.LearnedParameters(vm_hours=20.0, coverage=0.2),
            synthetic.HOST_TYPE: queues.LearnedParameters(vm_hours=20.0, coverage=0.7)})

    def test_stale(self):
        host = self.host(self.resident('a'), updated_at=100.0)
        self.assertTrue(self.assess([host], now=160.0, age=60.0).refused[0])
        self.check_unknown(host, assessment.Status.STALE, now=160.5, age=60.0)
        # Data with a time in the future has no known age.
        ahead = dataclasses.replace(host, updated_at=160.0 + assessment.AHEAD)
        self.assertTrue(self.assess([ahead], now=160.0, age=60.0).refused[0])
        self.check_unknown(ahead, assessment.Status.STALE, now=159.0, age=60.0)
        self.check_unknown(ahead, assessment.Status.STALE, now=159.0, age=math.inf)

    def test_newcomer_of_whom_nothing_is_known(self):
        verdict = self.assess([self.host(self.resident('a'))], vm=newcomer_profiles.UNKNOWN)
        self.assertEqual([assessment.Status.UNKNOWN_PROFILE], verdict.status.tolist())
        self.assertTrue(np.isnan(verdict.score[0]))
        self.assertFalse(verdict.refused[0])

    def test_what_is_unknown_refuses_no_newcomer_on_other_hosts(self):
        reader = newcomer_profiles.own(np.array([900.0, 0.0, 0.1, 0.0]))
        victim = self.resident('victim', storage_wait=0.4)
        sound = cluster.Host('a', (victim,), 'one', 'pool', 200.0, 4)
        other = cluster.Host('b', (), synthetic.HOST_TYPE, 'pool', 200.0, 4)
        for changes, refused in (({}, True), ({'updated_at': 100.0}, False),
                                 ({'cores': None}, False), ({'host_type': 'drifted'}, False)):
            hosts = [dataclasses.replace(sound, **changes), other]
            verdict = judge(cluster.build(hosts), assessment.Settings(
                maximum_age=60.0, pools={'pool': queues.Pool(0.002, 1.0)}, learnt={
                    'drifted': queues.LearnedParameters(vm_hours=20.0, coverage=0.1)})).assess(
                        reader, now=200.0)
            self.assertEqual([refused, True], verdict.known.tolist())
            self.assertEqual(refused, bool(verdict.refused[1]), changes)
            if refused:
                self.assertEqual('victim', verdict.breach(1).vm)

    def test_residents_of_hosts_that_are_unknown_have_no_exponents(self):
        state = cluster.build([self.host(self.resident('a'), self.resident('b'), cores=None)])
        assessor = judge(state)
        self.assertTrue(np.isnan(assessor.log_responses()).all())
        self.assertFalse(assessor.breaches().any())

    def test_no_host_at_all_and_none_that_is_known(self):
        for hosts in ([], [self.host(self.resident('a'), cores=None)]):
            assessor = judge(cluster.build(hosts))
            verdict = assessor.assess(newcomer_profiles.own(self.VM), limits.Limits(1.01, 0.9))
            self.assertEqual(len(hosts), len(verdict.score))
            self.assertFalse(verdict.known.any() or verdict.refused.any())
            self.assertTrue(np.isnan(verdict.upper).all())
            self.assertEqual(2, len(assessor.log_responses()))
            self.assertFalse(assessor.breaches().any())

    def ranks(self, *hosts):
        return self.assess(hosts).ranked(np.arange(len(hosts)))

    def test_ranking_takes_the_median_of_the_known(self):
        busy = [self.host(*(cluster.Resident(f'{count}-{row}', self.VM) for row in range(count)),
                          name=f'h{count}') for count in range(3)]
        ranks = self.ranks(*busy, cluster.Host('unknown'))
        self.assertEqual(ranks[1], ranks[3])
        self.assertLess(ranks[0], ranks[1])
        self.assertLess(ranks[1], ranks[2])
        full = self.host(*(cluster.Resident(f'x{row}', synthetic.CAPACITY) for row in range(9)),
                         name='full')
        self.assertEqual(3, np.argmax(self.ranks(*busy, full)))

    def test_all_unknown_ranks_all_alike(self):
        self.assertEqual([0.0, 0.0], self.ranks(cluster.Host('a'), cluster.Host('b')).tolist())

    def test_intervals_hold_the_prediction_and_are_exact_on_an_empty_host(self):
        verdict = self.assess([self.host(name='empty'),
                               self.host(self.resident('a'), name='busy'),
                               cluster.Host('unknown')])
        for index in range(2):
            self.assertEqual([0.0, 0.0], [verdict.lower[index, 0], verdict.upper[index, 0]])
            self.assertLess(verdict.lower[index, 1], verdict.log_response[index, 1])
            self.assertGreater(verdict.upper[index, 1], verdict.log_response[index, 1])
            self.assertAlmostEqual(verdict.upper[index, 1], float(queues.bound(
                verdict.log_response[index, 1:2], 0.8, queues.SPREAD)[0]))
        self.assertTrue(np.isnan(verdict.upper[:, 2]).all())


class Breaches(unittest.TestCase):
    VM = np.array([300.0, 50.0, 0.5, 0.2])
    READER = np.array([900.0, 0.0, 0.1, 0.1])

    def host(self, *residents, name='h', storage=cluster.LOCAL, cores=1):
        return cluster.Host(name, residents, synthetic.HOST_TYPE, storage, cores=cores)

    def victim(self, *tolerance, **named):
        return cluster.Resident('victim', self.VM, limits.Limits(*tolerance, **named))

    def test_breach_names_vm_prediction_and_limit(self):
        state = cluster.build([self.host(self.victim(1.1))])
        breach = judge(state).assess(newcomer_profiles.own(self.VM)).breach(0)
        after = judge(state.with_resident(0, 'new', self.VM)).log_responses()[0, :1]
        bound = math.exp(queues.bound(after, 0.2, queues.SPREAD)[0])
        self.assertEqual(('h', 'victim', 'slowdown'), (breach.host, breach.vm, breach.response))
        self.assertAlmostEqual(bound, breach.bound, delta=0.1 * (bound - 1))
        self.assertAlmostEqual(1.1, breach.limit)

    def test_newcomers_own_limit(self):
        state = cluster.build([self.host(cluster.Resident('a', self.VM)),
                               self.host(name='free')])
        verdict = judge(state).assess(
            newcomer_profiles.own(self.VM), [limits.Limits(1.1), limits.Limits(1.1)])
        self.assertEqual([True, False], verdict.refused.tolist())
        self.assertEqual('newcomer', verdict.breach(0).vm)
        with self.assertRaisesRegex(ValueError, 'free is not refused'):
            verdict.breach(1)

    def test_iops_ratio_limit(self):
        state = cluster.build([self.host(self.victim(min_iops_ratio=0.9))])
        breach = judge(state).assess(newcomer_profiles.own(self.VM)).breach(0)
        self.assertEqual('iops_ratio', breach.response)
        self.assertLess(breach.bound, 0.9)
        self.assertAlmostEqual(0.9, breach.limit)

    def test_in_breach_already_counts_only_when_it_gets_worse(self):
        state = cluster.build([self.host(self.victim(1.01), cluster.Resident('culprit', self.VM))])
        for margin in (0.05, 0.0):
            assessor = judge(state, assessment.Settings(margin=margin))
            self.assertEqual([True, False], assessor.breaches().tolist())
            self.assertFalse(assessor.assess(newcomer_profiles.own(self.VM * 0.0)).refused[0])
            self.assertFalse(assessor.assess(newcomer_profiles.own(self.VM * 0.001)).refused[0])
            self.assertTrue(assessor.assess(newcomer_profiles.own(self.VM)).refused[0])

    def pooled(self, state):
        return judge(state, assessment.Settings(pools={'pool': queues.Pool(0.001, 1.0)})).assess(
            newcomer_profiles.own(self.READER))

    def test_pool_neighbour_on_another_host(self):
        resident = cluster.Resident('victim', self.READER, limits.Limits(1.2), storage_wait=0.5)
        verdict = self.pooled(cluster.build([
            self.host(resident, name='a', storage='pool'), self.host(name='b', storage='pool'),
            self.host(name='c')]))
        self.assertEqual([True, True, False], verdict.refused.tolist())
        self.assertEqual('victim', verdict.breach(1).vm)

    def test_on_a_pool_the_worst_of_the_other_hosts_decides(self):
        verdict = self.pooled(cluster.build([
            self.host(cluster.Resident(f'on-{name}', self.READER / 9, limits.Limits(limit),
                                       storage_wait=0.5), name=name, storage='pool', cores=16)
            for name, limit in (('a', 1.3), ('b', 1.4), ('c', 9.0))]))
        remote = verdict.remote_overshoot
        self.assertEqual(remote[1], remote[2])            # on-a, on both
        self.assertGreater(remote[0], 0)                     # on-b; on-a is a neighbour
        self.assertLess(remote[0], remote[1])
        self.assertEqual('on-a', verdict.breach(2).vm)

    def test_exponents_are_nan_where_unknown_or_undefined(self):
        state = cluster.build([
            self.host(cluster.Resident('busy', self.VM),
                      cluster.Resident('calc', self.VM * [0, 0, 1, 1])),
            cluster.Host('u', (cluster.Resident('lost', self.VM),))])
        slow, ratio = judge(state).log_responses()
        self.assertEqual([False, False, True], np.isnan(slow).tolist())
        self.assertEqual([False, True, True], np.isnan(ratio).tolist())


class MovedState(unittest.TestCase):

    @hypothesis.given(synthetic.hosts(largest=3, storage=STORAGE), strategies.data())
    @hypothesis.settings(deadline=None, max_examples=25)
    def test_moving_there_and_back_restores_the_state(self, hosts, data):
        state = cluster.build(hosts)
        hypothesis.assume(len(state.uuids))
        row = data.draw(strategies.integers(0, len(state.uuids) - 1))
        home = state.hosts[state.host[row]]
        there = data.draw(strategies.sampled_from(state.hosts))
        back = state.moved({state.uuids[row]: there}).moved({state.uuids[row]: home})
        for index, name in enumerate(state.io_domains):
            self.assertAlmostEqual(state.request_rate[index],
                                   back.request_rate[back.io_domains.index(name)])
        for uuid in state.uuids:
            one, two = state.resident_index[uuid], back.resident_index[uuid]
            self.assertEqual(state.io_domains[state.io_domain[one]],
                             back.io_domains[back.io_domain[two]])
            self.assertEqual(state.host[one], back.host[two])

    def test_restricted_keeps_the_pool_load_of_the_hosts_left_out(self):
        vm = np.array([100.0, 10.0, 0.2, 0.1])
        state = cluster.build([
            cluster.Host(name, (cluster.Resident(name, vm),), synthetic.HOST_TYPE, 'pool')
            for name in 'abc'])
        part = state.restricted([1])
        self.assertEqual(1, len(part.uuids))
        np.testing.assert_allclose([220.0], part.rate_elsewhere)
        np.testing.assert_allclose([330.0], part.request_rate)
        np.testing.assert_allclose([220.0], part.moved({'b': None}).request_rate)

    def test_restricted_keeps_the_storage_of_its_own_hosts_alone(self):
        vm = np.array([100.0, 10.0, 0.2, 0.1])
        state = cluster.build([
            *(cluster.Host(name, (), synthetic.HOST_TYPE) for name in 'abc'),
            cluster.Host('d', (cluster.Resident('volume', vm, io_domain='pool'),
                               cluster.Resident('unknown', vm, io_domain=cluster.UNKNOWN)),
                         synthetic.HOST_TYPE)])
        part = state.restricted([3, 1])
        self.assertEqual(('local:b', 'local:d', 'pool'), part.io_domains)
        self.assertEqual([1, 0], part.host_io_domain.tolist())
        self.assertEqual([2, -1], part.io_domain.tolist())
        row = state.resident_index['volume']
        self.assertEqual('pool', state.io_domains[storage_backends.pool_of(state, row)])
        self.assertEqual(2, storage_backends.pool_of(state, row, part))
        self.assertEqual(-1, storage_backends.pool_of(state, row, state.restricted([0])))

    def test_a_disk_of_its_own_comes_along_and_a_volume_stays(self):
        vm = np.array([100.0, 10.0, 0.2, 0.1])
        state = cluster.build([
            cluster.Host('s', (cluster.Resident('disk', vm, io_domain=cluster.LOCAL),
                               cluster.Resident('volume', vm)), synthetic.HOST_TYPE, 'pool'),
            cluster.Host('d', (cluster.Resident('there', vm),), synthetic.HOST_TYPE),
            cluster.Host('e', (), synthetic.HOST_TYPE, 'pool')])
        moved = state.moved({'disk': 'd', 'volume': 'd'})
        self.assertEqual({'disk': 'local:d', 'volume': 'pool', 'there': 'local:d'},
                         {uuid: moved.io_domains[domain]
                          for uuid, domain in zip(moved.uuids, moved.io_domain)})
        again = state.moved({'disk': 'e'})
        self.assertEqual('local:e', again.io_domains[again.io_domain[-1]])

    def test_several_residents_at_once(self):
        vm = np.array([100.0, 10.0, 0.2, 0.1])
        state = cluster.build([cluster.Host(name, (cluster.Resident(name, vm),)) for name in 'ab'])
        one = state.with_resident(1, 'x', vm).with_resident(0, 'y', vm).with_resident(1, 'z', vm)
        came = [(host, name, newcomer_profiles.own(vm), limits.NONE)
                for host, name in ((1, 'x'), (0, 'y'), (1, 'z'))]
        remote = state.with_residents(
            came, {'x': 'ceph', 'y': cluster.UNKNOWN})
        self.assertEqual(['local:a', None, 'local:b', 'ceph', 'local:b'], [
            None if domain < 0 else remote.io_domains[domain]
            for domain in remote.io_domain])
        all_ = state.with_residents(came)
        self.assertEqual(('a', 'y', 'b', 'x', 'z'), all_.uuids)
        self.assertEqual(one.uuids, all_.uuids)
        np.testing.assert_array_equal(one.host, all_.host)
        np.testing.assert_array_equal(one.io_domain, all_.io_domain)

    def test_gone(self):
        state = cluster.build([cluster.Host('a', (cluster.Resident('x', np.ones(4)),
                                                  cluster.Resident('y', np.ones(4))))])
        self.assertEqual(('y',), state.moved({'x': None}).uuids)

    def test_names_must_differ(self):
        for hosts in ([cluster.Host('a'), cluster.Host('a')],
                      [cluster.Host('a', (cluster.Resident('x'), cluster.Resident('x')))]):
            with self.assertRaisesRegex(ValueError, '(host a|VM x) occurs twice'):
                cluster.build(hosts)
