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

"""Hosts judged by the law of queueing, in cases by hand."""

import math
import unittest

import numpy as np

from tracon_watcher.placement import assessment
from tracon_watcher.placement import attribution
from tracon_watcher.placement import cluster
from tracon_watcher.placement import current_interference
from tracon_watcher.placement import explanation
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import plan
from tracon_watcher.placement import planner
from tracon_watcher.placement import queues
from tracon_watcher.queueing import network

BUSY = np.array([0.0, 0.0, 0.9, 0.0])
IO = np.array([100.0, 100.0, 0.6, 0.1])
IDLE = np.array([0.0, 0.0, 0.0, 0.0])


def host(name, cores, *residents):
    return cluster.Host(name, residents, 'unmeasured', cores=cores)


def vm(uuid, profile=BUSY, tolerance=limits.NONE, **more):
    return cluster.Resident(uuid, profile, tolerance, **more)


class SharingTest(unittest.TestCase):
    """Whose virtual CPUs share which cores."""

    @staticmethod
    def slowdowns(cores, *vms, threads=1, coming=None):
        assessor = assessment.Assessor(cluster.build([
            cluster.Host('h', vms, 'unmeasured', cores=cores, threads=threads)]))
        if coming is None:
            return np.exp(assessor.log_responses()[0])
        return assessor.assess(coming).slowdown[0]

    def test_cores_of_its_own(self):
        many = [vm(name) for name in 'abc']
        pinned = vm('p', cpu_weight=0.0)
        np.testing.assert_allclose(self.slowdowns(1, *many, pinned),
                                   [*self.slowdowns(1, *many), 1.0])
        self.assertAlmostEqual(1.0, self.slowdowns(
            1, *many, coming=newcomer_profiles.own(BUSY, cpu_weight=0.0)))
        # They share the disk all the same.
        reading = [vm(name, IO, storage_wait=0.4, cpu_weight=weight)
                   for name, weight in zip('abcd', (0.0, 0.0, 1.0, 0.0))]
        learnt = {'unmeasured': queues.LearnedParameters(disk=1.0)}
        assessor = assessment.Assessor(cluster.build([host('h', 4, *reading)]),
                                       assessment.Settings(learnt=learnt))
        self.assertGreater(np.exp(assessor.log_responses()[0]).min(), 1.3)

    def test_weights(self):
        heavy, light = self.slowdowns(1, vm('a', cpu_weight=4.0), vm('b'))
        equal = self.slowdowns(1, vm('a'), vm('b'))
        self.assertLess(heavy, equal[0] - 0.2)
        self.assertGreater(light, equal[1] + 0.2)
        newcomers = [self.slowdowns(1, vm('a'),
                                    coming=newcomer_profiles.own(BUSY, cpu_weight=weight))
                     for weight in (4.0, 1.0, 0.25)]
        self.assertEqual(sorted(newcomers), newcomers)
        self.assertGreater(newcomers[2] - newcomers[0], 0.4)

    def test_threads_of_a_core(self):
        few, many = ([vm(str(number)) for number in range(count)] for count in (2, 8))
        # As long as each has a core there is nothing to share.
        np.testing.assert_allclose(self.slowdowns(16, *few, threads=2), 1.0)
        # Eight threads of four cores do as much as 5.2 cores: all are busy nearly all the time.
        found = self.slowdowns(8, *many, threads=2)
        self.assertGreater(found.min(), self.slowdowns(8, *many).max() + 0.3)
        self.assertLess(found.max(), self.slowdowns(4, *many).min())


class AssessmentTest(unittest.TestCase):

    def setUp(self):
        self.state = cluster.build([
            host('full', 1, vm('a'), vm('b', IO, limits.Limits(5.0))),
            host('wide', 8, vm('c', vcpus=4), vm('d', IO)), host('empty', 2),
            host('unknown', None, vm('e')), host('silent', 4, vm('f', None))])
        self.assessor = assessment.Assessor(self.state)

    def by_hand(self, cores, *vms):
        """Return slowdowns, and by how much all of the time stretches."""
        used, vcpus = (np.array(column) for column in zip(*vms))
        whole = network.effects(
            network.Hosts(np.array([float(cores)])),
            network.VMs(np.zeros(len(vms), dtype=int), vcpus, used)).slowdown
        return 1.0 + (whole - 1.0) / used, whole

    def test_what_residents_suffer_now(self):
        slow, ratio = self.assessor.log_responses()
        expected, whole = self.by_hand(1, (0.9, 1), (0.7, 1))
        # How long the second one waits for storage is not known: it may be all of its time.
        np.testing.assert_allclose(np.exp(slow[:2]), [expected[0], whole[1]])
        self.assertGreater(slow[0], math.log(1.5))
        # Eight cores are enough for five virtual CPUs.
        np.testing.assert_allclose(slow[2:4], 0.0, atol=1e-3)
        # Who does no I/O has no IOPS ratio.
        np.testing.assert_array_equal([True, False], np.isnan(ratio[:2]))
        self.assertAlmostEqual(math.log(whole[1]), ratio[1])
        self.assertTrue(np.isnan(slow[4:]).all())

    def test_nothing_is_known_without_cores_or_without_a_profile(self):
        found = self.assessor.assess(newcomer_profiles.own(BUSY))
        self.assertEqual(
            [assessment.Status.KNOWN] * 3
            + [assessment.Status.UNKNOWN_CORES, assessment.Status.UNKNOWN_PROFILE],
            found.status.tolist())

    def test_what_a_newcomer_meets_and_does(self):
        found = self.assessor.assess(newcomer_profiles.own(BUSY, vcpus=2))
        own, whole = self.by_hand(1, (0.9, 1), (0.7, 1), (0.45, 2))
        np.testing.assert_allclose(found.slowdown[0], own[2], rtol=0.05)
        np.testing.assert_allclose(found.slowdown[1:3], 1.0, rtol=0.01)
        self.assertTrue(np.isnan(found.iops_ratio[0]))
        before, whole_before = self.by_hand(1, (0.9, 1), (0.7, 1))
        # The one with I/O is slower, and has a lower IOPS ratio.
        rise = np.log([own[0] / before[0], whole[1] / whole_before[1]])
        self.assertAlmostEqual(math.log(own[2]) + rise[0] + 2 * rise[1], found.score[0], delta=0.1)
        self.assertFalse(found.refused.any())
        self.assertLess(found.lower[0, 0], found.log_response[0, 0])
        self.assertGreater(found.upper[0, 0], found.log_response[0, 0])

    def test_a_newcomer_that_would_suffer_is_refused(self):
        found = self.assessor.assess(newcomer_profiles.own(IO), limits.Limits(1.3))
        self.assertEqual([True, False, False], found.refused[:3].tolist())
        self.assertEqual(('newcomer', 'slowdown'),
                         (found.breach(0).vm, found.breach(0).response))
        self.assertTrue(self.assessor.assess(newcomer_profiles.own(IO), limits.Limits(
            min_iops_ratio=0.9)).refused[0])

    def test_a_resident_that_would_suffer(self):
        wide = cluster.build([host('h', 2, vm('a', IO, limits.Limits(1.2)), vm('b'))])
        assessor = assessment.Assessor(wide)
        self.assertFalse(assessor.breaches().any())
        self.assertFalse(assessor.assess(newcomer_profiles.own(IDLE)).refused[0])
        found = assessor.assess(newcomer_profiles.own(0.2 * BUSY, vcpus=2))
        self.assertFalse(found.refused[0])
        found = assessor.assess(newcomer_profiles.own(2 * BUSY, vcpus=2))
        self.assertTrue(found.refused[0])
        self.assertEqual(('a', 'slowdown'), (found.breach(0).vm, found.breach(0).response))
        # What may as well demand little refuses nothing.
        unsure = newcomer_profiles.Profile(2 * BUSY, 2 * BUSY, vcpus=2)
        self.assertFalse(assessor.assess(unsure).refused[0])

    def test_one_in_breach_may_not_become_worse(self):
        state = cluster.build([host('h', 1, vm('a', IO, limits.Limits(1.1)), vm('b'), vm('c'))])
        assessor = assessment.Assessor(state)
        self.assertEqual([True, False, False], assessor.breaches().tolist())
        self.assertTrue(assessor.assess(newcomer_profiles.own(BUSY)).refused[0])
        self.assertFalse(assessor.assess(newcomer_profiles.own(0.001 * BUSY)).refused[0])

    def test_own_limits_are_waited_for_anyway(self):
        states = [cluster.build([host('h', 1, vm('a', own_wait=wait), vm('b'))])
                  for wait in (0.0, 0.3)]
        free, limited = (assessment.Assessor(state).log_responses()[0][0] for state in states)
        # Of all of its time, of which it works for nine tenths.
        self.assertAlmostEqual(math.exp(free) - 0.3 / 0.9, math.exp(limited))

    def test_types_of_which_measurements_have_drifted_away(self):
        for coverage, hours, drifted in ((0.3, 20.0, True), (0.3, 5.0, False),
                                         (0.5, 20.0, False)):
            learnt = queues.LearnedParameters(vm_hours=hours, coverage=coverage)
            self.assertEqual(drifted, learnt.drifted)
            assessor = assessment.Assessor(self.state, assessment.Settings(
                learnt={'unmeasured': learnt}))
            expected = assessment.Status.DRIFTED if drifted else assessment.Status.KNOWN
            self.assertEqual({expected}, set(assessor.status[:3]))
            self.assertEqual(0 if drifted else 3, len(assessor.law.hosts))
            self.assertEqual(drifted, bool(np.isnan(assessor.log_responses()).all()))
        # Hosts of other types, or of none, are judged as before.
        assessor = assessment.Assessor(self.state, assessment.Settings(
            learnt={'': queues.LearnedParameters(vm_hours=20.0, coverage=0.0)}))
        self.assertEqual({assessment.Status.KNOWN}, set(assessor.status[:3]))

    def test_trust_is_the_coverage_over_what_it_should_be(self):
        for coverage, expected in ((0.8, 1.0), (0.9, 1.0), (0.6, 0.75), (0.0, 0.0),
                                   (math.nan, 1.0)):
            self.assertAlmostEqual(expected, queues.LearnedParameters(
                vm_hours=queues.ENOUGH, coverage=coverage).trust)


class DiskTest(unittest.TestCase):
    """Twelve VMs, each of which waits for nine tenths of its time for eight at once."""

    WRITER = np.array([0.0, 900.0, 0.05, 0.0])

    def state(self, *waits, storage=cluster.LOCAL):
        writers = [vm(f'w{place}', self.WRITER, storage_wait=wait)
                   for place, wait in enumerate(waits)]
        return cluster.build([
            cluster.Host('a', tuple(writers), None, storage, cores=64),
            cluster.Host('b', (vm('other', BUSY, storage_wait=0.0),), None, storage, cores=64)])

    def test_they_slow_each_other_down(self):
        slow, ratio = assessment.Assessor(self.state(*[0.9] * 12)).log_responses()
        self.assertGreater(slow[0], math.log(1.2))
        np.testing.assert_allclose(slow[:12], slow[0], rtol=1e-6)
        np.testing.assert_allclose(np.expm1(ratio[:12]), 0.95 * np.expm1(slow[:12]))
        self.assertEqual(0.0, slow[12])

    def test_one_of_which_it_is_not_told_waits_as_the_others_do(self):
        told, guessed = (assessment.Assessor(self.state(*[0.9] * 11, last)).log_responses()[0]
                         for last in (0.9, math.nan))
        np.testing.assert_allclose(told, guessed)
        nothing = assessment.Assessor(self.state(*[math.nan] * 12)).log_responses()[0]
        np.testing.assert_allclose(nothing, 0.0, atol=1e-9)

    def test_a_pool_is_not_judged(self):
        slow, _ratio = assessment.Assessor(
            self.state(*[0.9] * 12, storage='pool')).log_responses()
        np.testing.assert_allclose(slow, 0.0, atol=1e-9)

    def test_a_newcomer(self):
        assessor = assessment.Assessor(self.state(*[0.9] * 12))
        for known in (newcomer_profiles.own(self.WRITER, storage_wait=0.9),
                      newcomer_profiles.own(self.WRITER)):
            found = assessor.assess(known, limits.Limits(1.15))
            self.assertEqual([True, False], found.refused.tolist())
            self.assertGreater(found.slowdown[0], 1.2)
            self.assertAlmostEqual(1.0, found.slowdown[1], places=6)
        # One on a volume does not feel the disk, nor one that only computes.
        for none in (known.set_apart(), newcomer_profiles.own(BUSY)):
            self.assertFalse(assessor.assess(none, limits.Limits(1.15)).refused.any())


class LearntTest(unittest.TestCase):

    def setUp(self):
        self.state = cluster.build([
            host('one', 2, *(vm(f'a{number}', IO, vcpus=1, storage_wait=0.2)
                             for number in range(4))),
            cluster.Host('other', (vm('b0', IO), vm('b1'), vm('b2')), cores=2)])

    def suffered(self, **learnt):
        return assessment.Assessor(self.state, assessment.Settings(learnt=learnt))

    def test_what_was_learnt_counts_for_hosts_of_that_type(self):
        before = self.suffered().log_responses()[0]
        for one in (queues.LearnedParameters(gain=1.5), queues.LearnedParameters(disk=1.0)):
            after = self.suffered(unmeasured=one).log_responses()[0]
            self.assertTrue((after[:4] > before[:4] + 0.01).all())
            np.testing.assert_allclose(before[4:], after[4:], rtol=1e-6)
        after = self.suffered(**{'': queues.LearnedParameters(gain=1.5)}).log_responses()[0]
        np.testing.assert_allclose(before[:4], after[:4], rtol=1e-6)
        self.assertTrue((after[4:] > before[4:] + 0.01).all())

    def test_what_was_checked_is_judged_with_a_narrower_interval(self):
        wide, narrow = (
            current_interference.current_interference(self.suffered(**known))
            for known in ({}, {'unmeasured': queues.LearnedParameters(spread=0.1)}))
        np.testing.assert_array_equal(wide.log_response, narrow.log_response)
        self.assertTrue((narrow.upper[0, :4] < wide.upper[0, :4]).all())
        np.testing.assert_array_equal(narrow.upper[0, 4:], wide.upper[0, 4:])

    def test_stretches_are_those_that_slowdowns_are_made_of(self):
        law = self.suffered().law
        answers = [queues.UNCHECKED, queues.LearnedParameters(gain=1.5),
                   queues.LearnedParameters(disk=1.0)]
        plain, gained, slow = law.stretches(answers)
        self.assertEqual((7, 2), plain.shape)
        # They use the CPU for 0.7 of their time alone, and wait for the disk for 0.2.
        np.testing.assert_allclose(
            np.exp(law.log_response[1, :4]), 1 + (plain[:4] - 1) @ [0.7, 0.2], rtol=1e-3)
        # The slowdown is the mean stretch of what they do.
        np.testing.assert_allclose(
            np.exp(law.log_response[0, :4]), plain[:4] @ [7 / 9, 2 / 9], rtol=1e-3)
        self.assertTrue((gained[:, 0] > plain[:, 0]).all())
        self.assertTrue((slow[:4, 1] > plain[:4, 1]).all())
        # What is not used does not stretch.
        self.assertTrue(np.isnan(plain[5:, 1]).all())
        np.testing.assert_allclose(law.stretches(answers[2:])[0], slow)


class PoolTest(unittest.TestCase):
    """Three hosts whose VMs' disks are on one pool, and one with a disk of its own."""

    POOLS = {'ceph': queues.Pool(0.004, 2.0)}
    #: 100 requests a second, which take 0.4 of its time alone.
    WAITER = np.array([100.0, 0.0, 0.1, 0.0])

    def setUp(self):
        def waiter(uuid, tolerance=limits.NONE, **more):
            return vm(uuid, self.WAITER, tolerance, storage_wait=0.4, **more)
        self.state = cluster.build([
            cluster.Host('one', (waiter('a0'), waiter('a1')), None, 'ceph', cores=64),
            cluster.Host('two', (waiter('b0'), waiter('b1', limits.Limits(1.35))), None, 'ceph',
                         cores=64),
            cluster.Host('three', (vm('c0', BUSY),), None, 'ceph', cores=64),
            cluster.Host('own', (waiter('d0'),), None, cores=64)])
        self.assessor = self.judged(self.state)

    def judged(self, state, pools=None):
        return assessment.Assessor(state, assessment.Settings(
            pools=self.POOLS if pools is None else pools))

    def test_residents_wait_for_each_other_whichever_host_they_are_on(self):
        slow, ratio = self.assessor.log_responses()
        # Three others with 100 requests of 4 ms a second each.
        pool = queues.Pools(self.state, self.POOLS)
        stretch = pool.stretch(self.state.io_domain[:1], np.array([100.0]))[0]
        self.assertAlmostEqual(1.35, stretch, delta=0.15)
        np.testing.assert_allclose(np.exp(ratio[:4]), 1 + 0.4 * (stretch - 1), rtol=1e-3)
        np.testing.assert_allclose(np.exp(slow[:4]), 1 + 0.4 / 0.5 * (stretch - 1), rtol=1e-3)
        np.testing.assert_allclose(slow[4:], 0.0, atol=1e-3)
        self.assertTrue((self.judged(self.state, {}).log_responses()[0] < 1e-3).all())

    def test_more_at_once_means_less_waiting(self):
        found = [self.judged(self.state,
                             {'ceph': queues.Pool(0.004, at_once)}).log_responses()[0][0]
                 for at_once in (1.0, 2.0, 4.0, 64.0)]
        self.assertEqual(sorted(found, reverse=True), found)
        self.assertGreater(found[0], 0.3)
        self.assertLess(found[3], 1e-6)

    def test_a_part_of_the_cloud_suffers_as_in_the_whole(self):
        part = self.judged(self.state.restricted([1]))
        np.testing.assert_allclose(part.log_responses()[0], self.assessor.log_responses()[0][2:4],
                                   rtol=1e-6)

    def test_a_newcomer_harms_those_on_other_hosts_too(self):
        found = self.assessor.assess(newcomer_profiles.own(self.WAITER, storage_wait=0.4))
        # On each host of the pool it meets and does the same.
        np.testing.assert_allclose(found.log_response[0, :3], found.log_response[0, 0], rtol=1e-3)
        np.testing.assert_allclose(found.score[:3], found.score[0], rtol=1e-2)
        self.assertGreater(found.remote[2], 1.9 * found.remote[0])
        self.assertGreater(found.remote[0], 0.01)
        self.assertEqual(0.0, found.remote[3])
        self.assertLess(found.score[3], 0.05)

    def test_a_limit_on_another_host_refuses(self):
        many = newcomer_profiles.own(np.array([800.0, 0.0, 0.1, 0.0]), storage_wait=0.9)
        found = self.assessor.assess(many)
        self.assertEqual([True, True, True, False], found.refused.tolist())
        for host in (0, 1, 2):
            self.assertEqual('b1', found.breach(host).vm)
        self.assertFalse(self.assessor.assess(many, remote=False).refused[0])
        # Nor where its I/O is not felt, or was felt before.
        self.assertFalse(self.assessor.assess(many.set_apart()).refused.any())
        domain = self.state.io_domains.index('ceph')
        self.assertFalse(self.assessor.assess(many, pool=domain).refused.any())
        self.assertTrue(self.assessor.assess(many, pool=domain, felt=False).refused[:3].all())

    def test_stale_hosts_and_uncertain_newcomers_refuse_nothing(self):
        many = np.array([800.0, 0.0, 0.1, 0.0])
        judged = assessment.Assessor(self.state, assessment.Settings(
            pools=self.POOLS, maximum_age=10.0))
        self.assertFalse(judged.assess(newcomer_profiles.own(many), now=100.0).refused.any())
        vague = newcomer_profiles.Profile(many, np.array([800.0, 0.0, 0.0, 0.0]), 3, 'kind',
                                          storage_wait=0.9)
        self.assertFalse(self.assessor.assess(vague).refused.any())

    def test_requests_of_one_whose_wait_is_unknown_take_as_long_as_others(self):
        known = self.assessor.assess(newcomer_profiles.own(self.WAITER, storage_wait=0.4))
        unknown = self.assessor.assess(newcomer_profiles.own(self.WAITER))
        np.testing.assert_allclose(unknown.score[:3], known.score[:3], rtol=1e-3)


class BoundTest(unittest.TestCase):

    def test_bounds_are_apart_on_both_sides(self):
        log_response = np.log([1.0, 1.5, 4.0])
        lower, upper = (
            queues.bound(log_response, level, queues.SPREAD) for level in (0.2, 0.8))
        self.assertEqual((0.0, 0.0), (lower[0], upper[0]))
        factor = math.exp(0.8416212 * queues.SPREAD)
        np.testing.assert_allclose(np.expm1(upper[1:]), np.expm1(log_response[1:]) * factor,
                                   rtol=1e-6)
        np.testing.assert_allclose(np.expm1(lower[1:]), np.expm1(log_response[1:]) / factor,
                                   rtol=1e-6)
        self.assertLess(queues.bound(log_response, 0.2, queues.SPREAD, 0.5)[1], lower[1])
        self.assertLess(queues.bound(log_response, 0.2, 0.5)[1], lower[1])

    def test_what_is_allowed_is_at_the_limit(self):
        self.assertEqual(np.inf, queues.allowed(np.array([np.inf]), 0.8, 0.25)[0])
        limit = np.log([1.2, 3.0])
        np.testing.assert_allclose(limit, queues.bound(
            queues.allowed(limit, 0.8, 0.25), 0.2, 0.25))


class AuditTest(unittest.TestCase):

    def setUp(self):
        self.state = cluster.build([
            host('hot', 2, vm('a', BUSY, limits.Limits(1.3)), vm('b'), vm('c'), vm('d')),
            host('cool', 4, vm('e'))])
        self.assessor = assessment.Assessor(self.state)

    def test_what_leaving_brings(self):
        found = attribution.leave_one_out(self.assessor, 0)
        self.assertEqual(('a', 'b', 'c', 'd'), found.uuids)
        self.assertTrue((found.relief > 0.5).all())
        without = assessment.Assessor(self.state.moved({'b': None}))
        expected = (np.nansum(self.assessor.log_responses()[0][:4])
                    - np.nansum(without.log_responses()[0][:3]))
        self.assertAlmostEqual(1.0, found.relief[1] / expected, delta=0.02)
        self.assertEqual(0, attribution.leave_one_out(assessment.Assessor(
            cluster.build([host('none', 2)])), 0).relief.size)

    def test_a_move_is_planned(self):
        found = planner.plan_moves(self.assessor, parameters=plan.Parameters(migration_cost=0.0))
        self.assertEqual([('hot', 'cool')], [
            (move.source, move.destination) for move in found.moves][:1])
        self.assertGreater(found.before.in_breach, found.after.in_breach)

    def test_what_is_shown(self):
        seen = current_interference.current_interference(self.assessor)
        self.assertTrue((seen.lower[0, :4] < seen.log_response[0, :4]).all())
        self.assertTrue((seen.upper[0, :4] > seen.log_response[0, :4]).all())
        self.assertEqual([True] + [False] * 4, seen.breached[0].tolist())
        self.assertEqual('judged now, not decided',
                         explanation.of_now(self.assessor, 'a')['outcome'])

    def test_who_is_to_blame(self):
        state = cluster.build([
            host('hot', 1, vm('a', IO), vm('large'), vm('small', 0.05 * BUSY)),
            host('alone', 2, vm('b'))])
        assessor = assessment.Assessor(state)
        found = attribution.attribute(assessor, 0)
        self.assertEqual(['large', 'small'], [state.uuids[row] for row in found.influence.rows])
        self.assertAlmostEqual(1.0, found.share.sum() + found.joint, delta=0.01)
        self.assertGreater(found.share[0], 0.7)
        without = assessment.Assessor(state.moved({'large': None})).log_responses()[0][0]
        self.assertAlmostEqual(without, found.influence.without[0, 0], delta=0.01)
        done = attribution.victims(assessor, 1)
        self.assertEqual(['a', 'small'], [state.uuids[row] for row in done.rows])
        self.assertEqual([], attribution.victims(assessor, 3).rows.tolist())
        worst = attribution.find_culprits(assessor)
        self.assertEqual([1, 0, 1, -1], worst.culprit.tolist())
        self.assertEqual(1, np.argmax(worst.harm))
        self.assertEqual(0.0, worst.harm[3])
