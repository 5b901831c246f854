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
import unittest
from unittest import mock

import hypothesis
from hypothesis import strategies
import numpy as np

from tests import synthetic
from tracon_watcher import characteristics
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import encounter
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer
from tracon_watcher.placement import residents
from tracon_watcher.placement import storage

POOLS = (cluster.LOCAL, 'pool')
MODELS = synthetic.models()
WILD = synthetic.models(wild=True)


def by_hand(state, vm, host, judged_by=None, storage=None, own_wait=0.0):
    """Judge one host the slow way: put the newcomer there and predict everybody again.

    Its storage is the host's own where none is given. Returns its exponents, the score, and which
    residents' bounds cross their limits.
    """
    settings = assessment.Settings()
    models = (judged_by or MODELS)[synthetic.HOST_TYPE]
    after = state.with_residents([(host, 'newcomer', vm, limits.NONE)],
                                 {'newcomer': storage} if storage else None,
                                 {'newcomer': own_wait})
    place = after.uuids.index('newcomer')
    score, breaches, own = 0.0, set(), []
    for response, model in enumerate(models):
        before_exponents = synthetic.exponents(state, model)
        after_exponents = synthetic.exponents(after, model)
        counted = np.ones(len(after.uuids), dtype=bool)
        if response == 1:
            counted = characteristics.request_rate(after.profiles) >= characteristics.MINIMUM_IOPS
        own.append(after_exponents[place] if counted[place] else np.nan)
        for row, uuid in enumerate(after.uuids):
            if not counted[row]:
                continue
            before = 0.0 if uuid == 'newcomer' else before_exponents[state.uuids.index(uuid)]
            score += after_exponents[row] - before
            if uuid == 'newcomer':
                continue
            limit = (np.log(after.max_slowdown[row]) if response == 0
                     else -np.log(after.min_iops_ratio[row]) if after.min_iops_ratio[row]
                     else np.inf)
            bound = model.interval.bound(np.array([before, after_exponents[row]]),
                                         1 - settings.confidence)
            worse = after_exponents[row] - before > np.log1p(settings.margin)
            moved = after_exponents[row] > before
            if moved and bound[1] > limit and (bound[0] <= limit or worse):
                breaches.add(uuid)
    return own, score, breaches


class AssessmentProperties(unittest.TestCase):

    @hypothesis.given(synthetic.hosts(storage=POOLS), synthetic.profiles(),
                      strategies.sampled_from((MODELS, WILD)),
                      strategies.sampled_from((0.0, 0.1, 0.9)))
    @hypothesis.settings(deadline=None, max_examples=150)
    def test_closed_form_equals_predicting_again(self, hosts, vm, models, own_wait):
        state = cluster.build(hosts)
        verdict = assessment.Assessor(state, models).assess(newcomer.own(vm, own_wait))
        for host in range(len(hosts)):
            own, score, breaches = by_hand(state, vm, host, models, own_wait=own_wait)
            np.testing.assert_allclose(verdict.exponent[:, host], own, atol=1e-9)
            self.assertAlmostEqual(score, verdict.score[host], places=8)
            if abs(verdict.excess[host]) > 1e-9:
                self.assertEqual(bool(breaches), bool(verdict.refused[host]))
                if breaches:
                    self.assertIn(verdict.breach(host).vm, breaches)

    @hypothesis.given(synthetic.hosts(storage=POOLS))
    @hypothesis.settings(deadline=None)
    def test_idle_vm_changes_nothing(self, hosts):
        verdict = assessment.Assessor(cluster.build(hosts), MODELS).assess(
            newcomer.own(np.zeros(4)))
        self.assertFalse(verdict.refused.any())
        np.testing.assert_allclose(verdict.score, np.nan_to_num(verdict.exponent[0]),
                                   atol=1e-12)

    @hypothesis.given(synthetic.profiles())
    @hypothesis.settings(deadline=None)
    def test_empty_host_gives_exactly_one(self, vm):
        state = cluster.build([cluster.Host('empty', host_type=synthetic.HOST_TYPE)])
        verdict = assessment.Assessor(state, MODELS).assess(
            newcomer.own(vm), limits.Limits(1.0, 1.0))
        self.assertEqual(1.0, verdict.slowdown[0])
        if vm[:2].sum() >= characteristics.MINIMUM_IOPS:
            self.assertEqual(1.0, verdict.iops_ratio[0])
        else:
            self.assertTrue(np.isnan(verdict.iops_ratio[0]))
        self.assertEqual(0.0, verdict.score[0])
        self.assertFalse(verdict.refused[0])

    @hypothesis.given(synthetic.hosts(storage=POOLS), synthetic.profiles(),
                      strategies.randoms(use_true_random=False))
    @hypothesis.settings(deadline=None)
    def test_order_of_hosts_does_not_matter(self, hosts, vm, random):
        shuffled = list(hosts)
        random.shuffle(shuffled)
        one = assessment.Assessor(cluster.build(hosts), MODELS).assess(newcomer.own(vm))
        other = assessment.Assessor(cluster.build(shuffled), MODELS).assess(newcomer.own(vm))
        place = [other.cluster.host_index[host.name] for host in hosts]
        np.testing.assert_allclose(one.score, other.score[place], atol=1e-9)
        np.testing.assert_array_equal(one.refused, other.refused[place])

    @hypothesis.given(synthetic.hosts(), synthetic.profiles())
    @hypothesis.settings(deadline=None)
    def test_one_host_alone_equals_the_batch(self, hosts, vm):
        batch = assessment.Assessor(cluster.build(hosts), MODELS).assess(newcomer.own(vm))
        for index, host in enumerate(hosts):
            alone = assessment.Assessor(cluster.build([host]), MODELS).assess(newcomer.own(vm))
            self.assertAlmostEqual(batch.score[index], alone.score[0], places=9)
            self.assertEqual(batch.refused[index], alone.refused[0])

    @hypothesis.given(synthetic.hosts(storage=POOLS), synthetic.profiles(),
                      strategies.sampled_from((MODELS, WILD)))
    @hypothesis.settings(deadline=None)
    def test_one_more_vm_never_helps_anybody(self, hosts, vm, models):
        state = cluster.build(hosts)
        verdict = assessment.Assessor(state, models).assess(newcomer.own(vm))
        self.assertTrue((verdict.exponent[0] >= 0).all())
        self.assertTrue((verdict.score >= np.nansum(verdict.exponent, axis=0) - 1e-9).all())

    @hypothesis.given(synthetic.hosts(storage=POOLS))
    @hypothesis.settings(deadline=None)
    def test_residents_as_predicted_one_by_one(self, hosts):
        state = cluster.build(hosts)
        slow, _ratio = assessment.Assessor(state, MODELS).exponents()
        np.testing.assert_allclose(
            slow, synthetic.exponents(state, MODELS[synthetic.HOST_TYPE].slowdown), atol=1e-9)

    @hypothesis.given(synthetic.hosts(storage=POOLS), synthetic.profiles(),
                      strategies.sampled_from((MODELS, WILD)))
    @hypothesis.settings(deadline=None, max_examples=150)
    def test_one_on_a_volume_is_judged_as_the_next_snapshot_shows_it(self, hosts, vm, models):
        state = cluster.build(hosts)
        verdict = assessment.Assessor(state, models).assess(newcomer.own(vm).set_apart())
        for host in range(len(hosts)):
            own, score, breaches = by_hand(state, vm, host, models, 'volume')
            np.testing.assert_allclose(verdict.exponent[:, host], own, atol=1e-9)
            self.assertAlmostEqual(score, verdict.score[host], places=8)
            if abs(verdict.excess[host]) > 1e-9:
                self.assertEqual(bool(breaches), bool(verdict.refused[host]))
        self.assertFalse(verdict.elsewhere.any())

    def test_a_volume_beside_disk_io(self):
        reader, vm = np.array([400.0, 100.0, 0.05, 0.01]), np.array([400.0, 100.0, 0.3, 0.05])
        there = [cluster.Resident(name, reader) for name in 'xy']
        coming = cluster.Resident('n', vm, limits.Limits(1.5), io_domain='ceph')
        before, after = (assessment.Assessor(cluster.build(
            [cluster.Host('a', tuple(residents), synthetic.HOST_TYPE)]), MODELS)
            for residents in (there, [*there, coming]))
        verdict = before.assess(newcomer.own(vm).set_apart(), coming.limits)
        shown, then = np.stack(after.exponents()), np.stack(before.exponents())
        np.testing.assert_allclose(verdict.exponent[:, 0], shown[:, 2])
        np.testing.assert_allclose(verdict.score[0], shown.sum() - then.sum())
        self.assertFalse(verdict.refused[0])
        self.assertTrue((verdict.lower[:, 0] <= verdict.exponent[:, 0]).all())
        # On the host's own disk it is hit hard by the same neighbours.
        self.assertTrue(before.assess(newcomer.own(vm), coming.limits).refused[0])

    def test_bounds_of_a_volume_are_of_what_it_meets(self):
        vm = np.array([400.0, 100.0, 0.3, 0.05])
        state = cluster.build([
            cluster.Host('a', (cluster.Resident('x', vm), cluster.Resident('y', vm)),
                         synthetic.HOST_TYPE, 'pool'),
            cluster.Host('b', (), synthetic.HOST_TYPE, 'pool'),
            cluster.Host('c', (), synthetic.HOST_TYPE)])
        assessor = assessment.Assessor(state, MODELS)
        self.assertEqual([0.0, 0.0], assessor.assess(newcomer.own(vm).set_apart()).upper[0, 1:]
                         .tolist())
        moving = assessor.assess(newcomer.own(vm), pool=state.io_domains.index('pool'))
        self.assertGreater(moving.exponent[0, 2], 0.0)
        self.assertGreater(moving.upper[0, 2], moving.exponent[0, 2])

    def test_on_a_pool_of_unknown_io_a_vm_is_unknown_wherever_it_goes(self):
        vm = np.array([400.0, 100.0, 0.3, 0.05])
        state = cluster.build([
            cluster.Host('a', (cluster.Resident('mover', vm, io_domain='ceph'),),
                         synthetic.HOST_TYPE),
            cluster.Host('b', (cluster.Resident('lost', io_domain='ceph'),), synthetic.HOST_TYPE),
            cluster.Host('c', (cluster.Resident('x', vm),), synthetic.HOST_TYPE)])
        assessor = assessment.Assessor(state, MODELS)
        pool = state.io_domains.index('ceph')
        self.assertEqual(assessment.Status.KNOWN, assessor.status[2])
        verdict = assessor.assess(newcomer.own(vm), pool=pool)
        self.assertEqual(assessment.Status.UNKNOWN_PROFILE, verdict.status[2])
        self.assertTrue(np.isnan(verdict.score[2]))
        self.assertTrue(assessor.assess(newcomer.own(vm).set_apart()).known[2])

    @hypothesis.given(synthetic.hosts(storage=POOLS), strategies.data())
    @hypothesis.settings(deadline=None)
    def test_a_vm_that_stays_on_its_pool(self, hosts, data):
        state = cluster.build(hosts)
        domain = state.io_domains.index('pool') if 'pool' in state.io_domains else -1
        rows = np.flatnonzero(state.io_domain == domain) if domain >= 0 else []
        hypothesis.assume(len(rows))
        row = data.draw(strategies.sampled_from(list(rows)))
        verdict = assessment.Assessor(state, MODELS).assess(state.resident_profile(row),
                                                            pool=domain)
        # Also on hosts whose own storage is another one.
        for host in range(len(hosts)):
            if host == state.host[row]:
                continue
            after = state.moved({state.uuids[row]: state.hosts[host]})
            score = 0.0
            for index, model in enumerate(MODELS[synthetic.HOST_TYPE]):
                old, new = synthetic.exponents(state, model), synthetic.exponents(after, model)
                for place in np.flatnonzero(after.host == host):
                    if index and after.profiles[place, :2].sum() < characteristics.MINIMUM_IOPS:
                        continue
                    own = after.uuids[place] == state.uuids[row]
                    score += new[place] - (
                        0.0 if own else old[state.resident_index[after.uuids[place]]])
            self.assertAlmostEqual(score, verdict.score[host], places=7)

    @hypothesis.given(synthetic.hosts(), synthetic.profiles())
    @hypothesis.settings(deadline=None)
    def test_uncertain_newcomer_is_refused_no_more_often(self, hosts, vm):
        assessor = assessment.Assessor(cluster.build(hosts), MODELS)
        certain = assessor.assess(newcomer.own(vm), limits.Limits(1.5, 0.5))
        vague = assessor.assess(newcomer.Profile(vm, vm * 0.7), limits.Limits(1.5, 0.5))
        self.assertFalse((vague.refused & ~certain.refused).any())
        np.testing.assert_allclose(vague.score, certain.score)


class Unknown(unittest.TestCase):
    VM = np.array([100.0, 50.0, 0.4, 0.1])

    def assess(self, hosts, now=None, age=np.inf, vm=None):
        state = cluster.build(hosts)
        settings = assessment.Settings(maximum_age=age)
        return assessment.Assessor(state, MODELS, settings).assess(
            vm or newcomer.own(self.VM), limits.Limits(1.01), now)

    def resident(self, uuid, profile=VM):
        return cluster.Resident(uuid, profile, limits.Limits(1.01))

    def check_unknown(self, verdict, status):
        self.assertEqual([status], list(verdict.status[:1]))
        self.assertTrue(np.isnan(verdict.score[0]))
        self.assertFalse(verdict.refused[0])
        self.assertTrue(np.isnan(verdict.exponent[:, 0]).all())

    def test_resident_without_profile(self):
        host = cluster.Host('h', (self.resident('a', None), self.resident('b')),
                            synthetic.HOST_TYPE)
        self.check_unknown(self.assess([host]), assessment.Status.UNKNOWN_PROFILE)

    def test_unknown_storage(self):
        host = cluster.Host('h', (self.resident('a'),), synthetic.HOST_TYPE, io_domain=None)
        self.check_unknown(self.assess([host]), assessment.Status.UNKNOWN_STORAGE)

    def test_host_type_without_model(self):
        for name in (None, 'another'):
            host = cluster.Host('h', (self.resident('a'),), name)
            self.check_unknown(self.assess([host]), assessment.Status.NO_MODEL)

    def test_stale(self):
        host = cluster.Host('h', (self.resident('a'),), synthetic.HOST_TYPE, updated_at=100.0)
        self.assertTrue(self.assess([host], now=160.0, age=60.0).refused[0])
        self.check_unknown(self.assess([host], now=160.5, age=60.0), assessment.Status.STALE)

    def test_newcomer_of_whom_nothing_is_known(self):
        host = cluster.Host('h', (self.resident('a'),), synthetic.HOST_TYPE)
        self.check_unknown(self.assess([host], vm=newcomer.UNKNOWN),
                           assessment.Status.UNKNOWN_PROFILE)

    def test_target_far_outside_the_hull(self):
        host = cluster.Host('h', (self.resident('a', self.VM * [100, 1, 1, 1]),),
                            synthetic.HOST_TYPE)
        self.check_unknown(self.assess([host]), assessment.Status.OUTSIDE_HULL)

    def test_what_is_unknown_refuses_nobody_on_other_hosts(self):
        for old, profile, status in ((100.0, self.VM, assessment.Status.STALE),
                                     (200.0, self.VM * [100, 1, 1, 1],
                                      assessment.Status.OUTSIDE_HULL)):
            hosts = [cluster.Host('a', (self.resident('victim', profile),), synthetic.HOST_TYPE,
                                  'pool', old),
                     cluster.Host('b', (), synthetic.HOST_TYPE, 'pool', 200.0)]
            verdict = assessment.Assessor(
                cluster.build(hosts), MODELS, assessment.Settings(maximum_age=60.0)).assess(
                    newcomer.own(self.VM), now=200.0)
            self.assertEqual([status, assessment.Status.KNOWN], verdict.status.tolist())
            self.assertFalse(verdict.refused[1], status)
            known = assessment.Assessor(cluster.build(
                [cluster.Host('a', (self.resident('victim'),), synthetic.HOST_TYPE, 'pool', 200.0),
                 hosts[1]]), MODELS).assess(newcomer.own(self.VM))
            self.assertTrue(known.refused[1])

    def test_a_vm_far_outside_has_no_exponent(self):
        state = cluster.build([cluster.Host(
            'h', (self.resident('far', self.VM * [100, 1, 1, 1]),), synthetic.HOST_TYPE)])
        assessor = assessment.Assessor(state, MODELS)
        self.assertTrue(np.isnan(assessor.exponents()).all())
        self.assertFalse(assessor.breaches().any())
        self.assertEqual([assessment.Status.OUTSIDE_HULL], assessor.status.tolist())

    def test_ranking_takes_the_median_of_the_known(self):
        busy = [cluster.Host(f'h{count}', tuple(
            cluster.Resident(f'{count}-{row}', self.VM) for row in range(count)),
            synthetic.HOST_TYPE) for count in range(3)]
        verdict = self.assess(busy + [cluster.Host('unknown')])
        ranks = verdict.ranked()
        self.assertEqual(ranks[1], ranks[3])
        self.assertLess(ranks[0], ranks[1])
        self.assertLess(ranks[1], ranks[2])

    def ranked(self, first):
        hosts = [cluster.Host('first', first, synthetic.HOST_TYPE)] + [
            cluster.Host(f'h{count}', tuple(
                cluster.Resident(f'{count}-{row}', self.VM) for row in range(count)),
                synthetic.HOST_TYPE) for count in range(3)]
        return self.assess(hosts)

    def test_a_host_fuller_than_any_measured_is_the_worst(self):
        verdict = self.ranked(tuple(
            cluster.Resident(f'x{row}', synthetic.CAPACITY) for row in range(9)))
        self.assertFalse(verdict.flagged.any())
        self.assertEqual(0, np.argmax(verdict.score))

    def test_a_vm_outside_the_hull_is_flagged_and_never_looks_harmless(self):
        verdict = self.ranked((cluster.Resident('huge', 5 * synthetic.CAPACITY),))
        self.assertEqual([True, False, False, False], verdict.flagged.tolist())
        self.assertGreaterEqual(verdict.ranked()[0], np.median(verdict.score[1:]))
        self.assertEqual(assessment.Status.KNOWN, verdict.status[0])

    def test_a_newcomer_outside_the_hull_of_all_hosts_changes_no_order(self):
        busy = [cluster.Host(f'h{count}', tuple(
            cluster.Resident(f'{count}-{row}', self.VM) for row in range(count)),
            synthetic.HOST_TYPE) for count in range(4)]
        verdict = self.assess([*busy, cluster.Host('huge', (
            cluster.Resident('huge', 5 * synthetic.CAPACITY),), synthetic.HOST_TYPE)],
            vm=newcomer.own(5 * synthetic.CAPACITY))
        self.assertTrue(verdict.clamped.all())
        self.assertEqual([False] * 4 + [True], verdict.flagged.tolist())
        ranks = verdict.ranked()
        self.assertEqual(verdict.score[:4].tolist(), ranks[:4].tolist())
        self.assertTrue((np.diff(ranks[:4]) > 0).all())
        # The one whose resident is too large as well is still no better than half of them.
        self.assertGreaterEqual(ranks[4], np.median(ranks[:4]))

    def test_a_vm_without_io_is_no_target_of_the_io_model(self):
        models = synthetic.models()
        pair = models[synthetic.HOST_TYPE]
        ratio = dataclasses.replace(pair.iops_ratio, hull=dataclasses.replace(
            pair.iops_ratio.hull, target_maximum=0.5 * synthetic.CAPACITY))
        models = {synthetic.HOST_TYPE: assessment.Models(pair.slowdown, ratio)}
        state = cluster.build([cluster.Host('h', (), synthetic.HOST_TYPE)])
        for vm, clamped in (([0, 0, 0.9, 0.1], False), ([300.0, 0, 0.9, 0.1], True),
                            ([0, 0, 4.5, 0.1], True)):
            verdict = assessment.Assessor(state, models).assess(newcomer.own(np.array(vm)))
            self.assertEqual([clamped], verdict.clamped.tolist(), vm)

    def test_some_hosts_alone_are_judged_as_among_all(self):
        busy = cluster.build([cluster.Host(f'h{count}', tuple(
            cluster.Resident(f'{count}-{row}', self.VM * (1 + row) / 3) for row in range(count)),
            synthetic.HOST_TYPE, 'pool', 1.0) for count in (2, 0, 3, 1)])
        group = assessment.Assessor(busy, MODELS).groups[0]
        for response in group.responses:
            meeting = encounter.Encounter(busy, group, response)
            everywhere = meeting.newcomer(self.VM)
            for places in ([0, 2], [3], [1, 0, 3, 2]):
                np.testing.assert_allclose(meeting.newcomer(self.VM, np.array(places)),
                                           everywhere[places])
            rows = np.array([4, 1])
            np.testing.assert_allclose(meeting.residents(self.VM, rows),
                                       meeting.residents(self.VM)[rows])

    def test_blocks_of_residents_change_nothing(self):
        hosts = [cluster.Host(f'h{place}', tuple(
            cluster.Resident(f'{place}-{row}', self.VM * (1 + row) / 3, limits.Limits(1.3))
            for row in range(count)), synthetic.HOST_TYPE)
            for place, count in enumerate((2, 0, 7, 1, 0, 3, 0))]
        whole = assessment.Assessor(cluster.build(hosts), MODELS)
        with mock.patch.object(residents, '_AT_ONCE', 4):
            parts = assessment.Assessor(cluster.build(hosts), MODELS)
        self.assertEqual(1, len(whole.groups[0].blocks))
        blocks = parts.groups[0].blocks
        # The host with seven has a block of its own.
        self.assertEqual([(0, 2), (2, 9), (9, 13)],
                         [(rows.start, rows.stop) for _hosts, rows in blocks])
        self.assertEqual([*range(7)], [host for one, _rows in blocks
                                       for host in range(one.start, one.stop)])
        one, other = (each.assess(newcomer.own(self.VM)) for each in (whole, parts))
        self.assertTrue(one.refused.any() and not one.refused.all())
        for name in ('score', 'exponent', 'excess', 'refused'):
            np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-12)

    def test_intervals_hold_the_prediction_and_are_exact_beside_nobody(self):
        hosts = [cluster.Host('empty', (), synthetic.HOST_TYPE),
                 cluster.Host('busy', (cluster.Resident('a', self.VM),), synthetic.HOST_TYPE),
                 cluster.Host('unknown')]
        verdict = self.assess(hosts)
        for index in range(2):
            self.assertEqual([0.0, 0.0], [verdict.lower[index, 0], verdict.upper[index, 0]])
            self.assertLess(verdict.lower[index, 1], verdict.exponent[index, 1])
            self.assertGreater(verdict.upper[index, 1], verdict.exponent[index, 1])
            model = (MODELS[synthetic.HOST_TYPE].slowdown,
                     MODELS[synthetic.HOST_TYPE].iops_ratio)[index]
            self.assertAlmostEqual(verdict.upper[index, 1], float(model.interval.bound(
                verdict.exponent[index, 1:2], 0.8)[0]))
        self.assertTrue(np.isnan(verdict.upper[:, 2]).all())

    def test_all_unknown_ranks_all_alike(self):
        self.assertEqual([0.0, 0.0], self.assess(
            [cluster.Host('a'), cluster.Host('b')]).ranked().tolist())


class Breaches(unittest.TestCase):
    VM = np.array([300.0, 50.0, 0.5, 0.2])

    def setUp(self):
        super().setUp()
        self.model = MODELS[synthetic.HOST_TYPE].slowdown

    def test_breach_names_vm_prediction_and_limit(self):
        resident = cluster.Resident('victim', self.VM, limits.Limits(1.1))
        state = cluster.build([cluster.Host('h', (resident,), synthetic.HOST_TYPE)])
        verdict = assessment.Assessor(state, MODELS).assess(newcomer.own(self.VM))
        breach = verdict.breach(0)
        exponent = self.model.exponents(self.VM[None], self.VM[None])
        bound = np.exp(self.model.interval.bound(exponent, 0.2))[0]
        self.assertEqual(('h', 'victim', 'slowdown'), (breach.host, breach.vm, breach.response))
        self.assertAlmostEqual(bound, breach.bound)
        self.assertAlmostEqual(1.1, breach.limit)

    def test_newcomers_own_limit(self):
        state = cluster.build([cluster.Host('h', (cluster.Resident('a', self.VM),),
                                            synthetic.HOST_TYPE),
                               cluster.Host('free', (), synthetic.HOST_TYPE)])
        verdict = assessment.Assessor(state, MODELS).assess(
            newcomer.own(self.VM), [limits.Limits(1.1), limits.Limits(1.1)])
        self.assertEqual([True, False], verdict.refused.tolist())
        self.assertEqual('newcomer', verdict.breach(0).vm)
        with self.assertRaisesRegex(ValueError, 'free is not refused'):
            verdict.breach(1)

    def test_iops_ratio_limit(self):
        resident = cluster.Resident('victim', self.VM, limits.Limits(min_iops_ratio=0.9))
        state = cluster.build([cluster.Host('h', (resident,), synthetic.HOST_TYPE)])
        breach = assessment.Assessor(state, MODELS).assess(newcomer.own(self.VM)).breach(0)
        self.assertEqual('iops_ratio', breach.response)
        self.assertLess(breach.bound, 0.9)
        self.assertAlmostEqual(0.9, breach.limit)

    def test_in_breach_already_counts_only_when_it_gets_worse(self):
        suffering = (cluster.Resident('victim', self.VM, limits.Limits(1.01)),
                     cluster.Resident('culprit', self.VM))
        state = cluster.build([cluster.Host('h', suffering, synthetic.HOST_TYPE)])
        assessor = assessment.Assessor(state, MODELS)
        self.assertEqual([True, False], assessor.breaches().tolist())
        self.assertFalse(assessor.assess(newcomer.own(self.VM * 0.001)).refused[0])
        self.assertTrue(assessor.assess(newcomer.own(self.VM)).refused[0])

    def test_pool_neighbour_on_another_host(self):
        reader = np.array([900.0, 0.0, 0.1, 0.1])
        resident = cluster.Resident('victim', reader, limits.Limits(1.2))
        state = cluster.build([
            cluster.Host('a', (resident,), synthetic.HOST_TYPE, 'pool'),
            cluster.Host('b', (), synthetic.HOST_TYPE, 'pool'),
            cluster.Host('c', (), synthetic.HOST_TYPE)])
        verdict = assessment.Assessor(state, MODELS).assess(newcomer.own(reader))
        self.assertEqual([True, True, False], verdict.refused.tolist())
        self.assertEqual('victim', verdict.breach(1).vm)

    def test_on_a_pool_the_worst_of_the_other_hosts_decides(self):
        reader = np.array([900.0, 0.0, 0.1, 0.1])
        state = cluster.build([
            cluster.Host(name, (cluster.Resident(f'on-{name}', reader, limits.Limits(limit)),),
                         synthetic.HOST_TYPE, 'pool')
            for name, limit in (('a', 1.05), ('b', 1.1), ('c', 9.0))])
        verdict = assessment.Assessor(state, MODELS).assess(newcomer.own(reader))
        elsewhere = verdict.excess_elsewhere
        self.assertEqual(elsewhere[1], elsewhere[2])            # on-a, on both
        self.assertGreater(elsewhere[0], 0)                     # on-b; on-a is a neighbour
        self.assertEqual('on-a', verdict.breach(2).vm)

    def test_exponents_are_nan_where_unknown_or_undefined(self):
        state = cluster.build([cluster.Host('h', (
            cluster.Resident('busy', self.VM), cluster.Resident('calc', self.VM * [0, 0, 1, 1])),
            synthetic.HOST_TYPE), cluster.Host('u', (cluster.Resident('lost', self.VM),))])
        slow, ratio = assessment.Assessor(state, MODELS).exponents()
        self.assertEqual([False, False, True], np.isnan(slow).tolist())
        self.assertEqual([False, True, True], np.isnan(ratio).tolist())


class MovedState(unittest.TestCase):

    @hypothesis.given(synthetic.hosts(largest=3, storage=POOLS), strategies.data())
    @hypothesis.settings(deadline=None, max_examples=60)
    def test_moving_there_and_back_restores_the_state(self, hosts, data):
        state = cluster.build(hosts)
        hypothesis.assume(len(state.uuids))
        row = data.draw(strategies.integers(0, len(state.uuids) - 1))
        home = state.hosts[state.host[row]]
        there = data.draw(strategies.sampled_from(state.hosts))
        back = state.moved({state.uuids[row]: there}).moved({state.uuids[row]: home})
        for uuid in state.uuids:
            one, two = state.resident_index[uuid], back.resident_index[uuid]
            np.testing.assert_allclose(state.io_beyond[one], back.io_beyond[two], atol=1e-9)
            self.assertEqual(state.io_domains[state.io_domain[one]],
                             back.io_domains[back.io_domain[two]])
            self.assertEqual(state.host[one], back.host[two])

    def test_restricted_keeps_the_pool_load_of_the_hosts_left_out(self):
        vm = np.array([100.0, 10.0, 0.2, 0.1])
        state = cluster.build([
            cluster.Host(name, (cluster.Resident(name, vm),), synthetic.HOST_TYPE, 'pool')
            for name in 'abc'])
        part = state.restricted([1])
        np.testing.assert_allclose([[200.0, 20.0]], part.io_beyond)
        np.testing.assert_allclose([[200.0, 20.0]], part.host_io_beyond)

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
        self.assertEqual('pool', state.io_domains[storage.pool_of(state, row)])
        self.assertEqual(2, storage.pool_of(state, row, part))
        self.assertEqual(-1, storage.pool_of(state, row, state.restricted([0])))

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
        elsewhere = state.with_residents(
            [(1, 'x', vm, limits.NONE), (0, 'y', vm, limits.NONE), (1, 'z', vm, limits.NONE)],
            {'x': 'ceph', 'y': cluster.UNKNOWN})
        self.assertEqual(['local:a', None, 'local:b', 'ceph', 'local:b'], [
            None if domain < 0 else elsewhere.io_domains[domain]
            for domain in elsewhere.io_domain])
        all_ = state.with_residents([(1, 'x', vm, limits.NONE), (0, 'y', vm, limits.NONE),
                                     (1, 'z', vm, limits.NONE)])
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
