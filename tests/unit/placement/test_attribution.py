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

"""Who does what to whom is what is predicted without him, predicted again."""

import dataclasses
import unittest

import hypothesis
from hypothesis import strategies
import numpy as np

from tests import synthetic
from tracon_watcher.placement import assessment
from tracon_watcher.placement import attribution
from tracon_watcher.placement import cluster
from tracon_watcher.placement import queues
from tracon_watcher import tie_breaking

STORAGE = (cluster.LOCAL, 'pool')
#: Who stays does what the linearizer says; on a pool, what one then does not wait for there it
#: asks of its host's cores.
CLOSE, PART = 0.05, 0.2
SETTINGS = assessment.Settings(pools={'pool': queues.Pool(0.002, 4.0)})
CLUSTERS = synthetic.hosts(largest=3, storage=STORAGE, limited=False)
VM = np.array([300.0, 50.0, 0.5, 0.2])
CPU = np.array([0.0, 0.0, 0.8, 0.1])
WRITER = np.array([0.0, 200.0, 0.05, 0.0])


def judge(state):
    return assessment.Assessor(state, SETTINGS)


def without_each(state):
    """Predict all VMs without each one the slow way: (n, n, 2) harm of who leaves, to whom."""
    now = judge(state).log_responses()
    n = len(state.uuids)
    harm = np.zeros((n, n, 2))
    for row, uuid in enumerate(state.uuids):
        left = judge(state.moved({uuid: None})).log_responses()
        harm[row, np.arange(n) != row] = (now[:, np.arange(n) != row] - left).T
    return harm


def host(name, *profiles, storage=cluster.LOCAL, cores=1, **more):
    return cluster.Host(name, tuple(cluster.Resident(f'{name}-{place}', profile, **more)
                                    for place, profile in enumerate(profiles)),
                        synthetic.HOST_TYPE, storage, cores=cores)


class AgainstPredictingAgain(unittest.TestCase):

    @hypothesis.given(CLUSTERS)
    @hypothesis.settings(deadline=None, max_examples=40)
    def test_each_pair(self, hosts):
        state = synthetic.state(hosts)
        assessor, truth = judge(state), np.nan_to_num(without_each(state))
        for row in range(len(state.uuids)):
            for found, expected in (
                    (attribution.attribute(assessor, row).influence, truth[:, row]),
                    (attribution.victims(assessor, row), truth[row])):
                harm = np.zeros((len(state.uuids), 2))
                harm[found.rows] = found.harm.T
                off = np.abs(np.nan_to_num(harm) - expected)
                self.assertTrue((off <= CLOSE + PART * np.abs(expected)).all(), off)
                self.assertEqual(len(set(found.rows)), len(found.rows))
                self.assertNotIn(row, found.rows)

    @hypothesis.given(CLUSTERS)
    @hypothesis.settings(deadline=None, max_examples=25)
    def test_what_one_does_is_what_the_other_suffers(self, hosts):
        assessor = judge(cluster.build(hosts))
        for row in range(len(assessor.cluster.uuids)):
            found = attribution.attribute(assessor, row).influence
            for place, other in enumerate(found.rows):
                done = attribution.victims(assessor, other)
                np.testing.assert_allclose(done.harm[:, list(done.rows).index(row)],
                                           found.harm[:, place], atol=1e-9)


class Shares(unittest.TestCase):

    @hypothesis.given(CLUSTERS)
    @hypothesis.settings(deadline=None, max_examples=25)
    def test_with_the_joint_part_they_are_all_of_it(self, hosts):
        assessor = judge(cluster.build(hosts))
        for row in range(len(assessor.cluster.uuids)):
            found = attribution.attribute(assessor, row)
            self.assertTrue((found.share >= 0).all())
            self.assertTrue(0 <= found.joint <= 1)
            whole = found.share.sum() + found.joint
            if found.log_response[0] > 1e-6:
                self.assertAlmostEqual(1.0, whole, places=9)
            self.assertLessEqual(whole, 1 + 1e-9)
            harm = found.influence.harm[0]
            self.assertFalse(tie_breaking.less(harm[:-1], harm[1:]).any(), harm)

    @hypothesis.given(CLUSTERS, strategies.integers(0, 2))
    @hypothesis.settings(deadline=None, max_examples=25)
    def test_who_asks_for_nothing_has_no_share(self, hosts, place):
        place = min(place, len(hosts) - 1)
        hosts[place] = dataclasses.replace(hosts[place], residents=(
            *hosts[place].residents, cluster.Resident('idle', np.zeros(4))))
        assessor = judge(cluster.build(hosts))
        row = assessor.cluster.resident_index['idle']
        harm = attribution.victims(assessor, row).harm
        np.testing.assert_allclose(np.nan_to_num(harm), 0.0, atol=1e-3)
        found = attribution.find_culprits(assessor)
        self.assertEqual(0.0, found.harm[row])
        self.assertNotIn(row, found.culprit)

    def test_the_only_neighbour_has_all_of_it(self):
        assessor = judge(cluster.build([host('a', VM, VM * 0.8)]))
        found = attribution.attribute(assessor, 0)
        self.assertEqual([1], found.influence.rows.tolist())
        self.assertAlmostEqual(1.0, found.share[0])
        self.assertAlmostEqual(0.0, found.joint)
        self.assertEqual(0.0, found.influence.without[0, 0])

    def test_two_alike_share_alike_and_what_they_do_together_is_said(self):
        found = attribution.attribute(judge(cluster.build([host('a', CPU, CPU, CPU)])), 0)
        self.assertAlmostEqual(found.share[0], found.share[1], places=3)
        # On two cores a VM does not wait beside one other VM, and waits beside two.
        found = attribution.attribute(judge(cluster.build([
            host('a', CPU, CPU, CPU, cores=2)])), 0)
        self.assertGreater(found.joint, 0.3)
        self.assertAlmostEqual(found.share[0], found.share[1], places=3)

    def test_by_hand(self):
        factor, joint = attribution.shares(np.array([0.5, 2.0, 4.0, 0.0, 0.0]),
                                           np.array([2.0, 2.0, 2.0, 2.0, 0.0]))
        # Reliefs of 0.5 out of 2: a quarter; 4 out of 2: half of it counted twice.
        np.testing.assert_allclose([0.25, 1.0, 0.5, 0.0, 0.0],
                                   factor * np.array([0.5, 2.0, 4.0, 0.0, 0.0]))
        np.testing.assert_allclose([0.75, 0.0, 0.5, 1.0, 0.0], joint)


class Unknown(unittest.TestCase):

    def check_unknown(self, assessor, rows):
        found_at_once = attribution.find_culprits(assessor)
        for row in rows:
            found = attribution.attribute(assessor, row)
            self.assertFalse(found.known)
            self.assertEqual(0, len(found.influence.rows))
            self.assertEqual(-1, found_at_once.culprit[row])
            self.assertTrue(np.isnan([found_at_once.share[row], found_at_once.harm[row]]).all())

    def test_without_cores_no_culprit(self):
        assessor = judge(cluster.build([host('a', VM, VM, cores=None)]))
        self.check_unknown(assessor, (0, 1))
        self.assertEqual(0, len(attribution.victims(assessor, 0).rows))
        empty = attribution.find_culprits(judge(cluster.build([])))
        self.assertEqual((0, 0, 0), (len(empty.culprit), len(empty.share), len(empty.harm)))

    def test_neighbour_without_a_profile(self):
        assessor = judge(cluster.build([host('a', VM, None), host('b', VM, VM)]))
        self.check_unknown(assessor, (0, 1))
        found_at_once = attribution.find_culprits(assessor)
        self.assertEqual([-1, -1, 3, 2], found_at_once.culprit.tolist())
        self.assertEqual([True, True, False, False], np.isnan(found_at_once.harm).tolist())

    def test_without_io_there_is_no_second_response(self):
        quiet = np.array([1.0, 1.0, 0.5, 0.2])
        assessor = judge(cluster.build([host('a', quiet, VM)]))
        found = attribution.attribute(assessor, 0)
        self.assertTrue(np.isnan(found.influence.harm[1]).all())
        self.assertAlmostEqual(found.influence.harm[0, 0], found.influence.total[0])
        self.assertAlmostEqual(found.influence.total[0],
                               attribution.find_culprits(assessor).harm[1])

    def test_what_one_of_an_unknown_host_does_on_a_pool(self):
        state = cluster.build([host('a', VM, storage='pool', storage_wait=0.25),
                               host('b', VM, VM * 2, storage='pool', cores=None)])
        assessor = judge(state)
        self.check_unknown(assessor, (1, 2))
        found = attribution.attribute(assessor, 0)
        self.assertEqual([2, 1], found.influence.rows.tolist())
        self.assertGreater(found.influence.harm[0, 0], 0.01)
        self.assertEqual([0], attribution.victims(assessor, 2).rows.tolist())


class AllAtOnce(unittest.TestCase):
    """The culprit of each VM, by what each takes of what a VM waits for."""

    def find(self, *hosts):
        state = cluster.build(hosts)
        found = attribution.find_culprits(judge(state))
        names = [None if row < 0 else state.uuids[row] for row in found.culprit]
        return dict(zip(state.uuids, names)), found

    @hypothesis.given(CLUSTERS)
    @hypothesis.settings(deadline=None, max_examples=25)
    def test_shares_are_parts_and_all_harm_is_somebodys(self, hosts):
        state = synthetic.state(hosts)
        assessor = judge(state)
        # What a probe feels beside them is no VM's.
        found, suffered = attribution.find_culprits(assessor), np.nan_to_num(
            assessor.law.by_neighbours).sum(axis=0)
        self.assertTrue(((found.share >= 0) & (found.share <= 1)).all())
        self.assertTrue((found.harm >= 0).all())
        self.assertTrue((found.culprit != np.arange(len(state.uuids))).all())
        np.testing.assert_array_equal(found.culprit >= 0, found.share > 0)
        # One whose virtual CPUs share the threads of a core waits for itself as well.
        self.assertLess(found.harm.sum(), suffered.sum() + 1e-3)
        if (state.threads == 1).all():
            self.assertAlmostEqual(suffered.sum(), found.harm.sum(), delta=1e-3)
        for row in np.flatnonzero(found.culprit >= 0):
            other = found.culprit[row]
            self.assertTrue(state.host[other] == state.host[row]
                            or state.io_domain[other] == state.io_domain[row])
        for row in np.flatnonzero(suffered < 1e-9):
            self.assertEqual(-1, found.culprit[row])

    def test_no_culprit_on_an_empty_or_idle_host(self):
        names, found = self.find(host('empty'), host('alone', VM),
                                 host('idle', np.zeros(4), np.zeros(4)),
                                 host('wide', CPU, CPU, cores=16))
        self.assertEqual({None}, set(names.values()))
        np.testing.assert_allclose(found.harm, 0.0, atol=1e-6)
        np.testing.assert_allclose(found.share, 0.0, atol=1e-6)

    def test_who_takes_most_of_the_cores(self):
        names, found = self.find(host('a', CPU, 0.3 * CPU, 0.6 * CPU))
        self.assertEqual({'a-0': 'a-2', 'a-1': 'a-0', 'a-2': 'a-0'}, names)
        # Of those who take 0.9 and 0.6 times as much of what a-1 waits for.
        np.testing.assert_allclose(found.share, [2 / 3, 1 / 1.6, 1 / 1.3], atol=1e-3)
        self.assertEqual(0, np.argmax(found.harm))

    def test_who_takes_most_of_the_disk_harms_those_who_wait_for_it(self):
        waits = (0.9, 0.8, 0.6, 0.0)
        residents = [cluster.Resident(f'writer-{place}', WRITER, storage_wait=wait, vcpus=4)
                     for place, wait in enumerate(waits[:3])]
        residents.append(cluster.Resident('cpu', CPU, storage_wait=0.0))
        names, found = self.find(cluster.Host('a', tuple(residents), synthetic.HOST_TYPE,
                                              cores=64))
        self.assertEqual({'writer-0': 'writer-1', 'writer-1': 'writer-0', 'writer-2': 'writer-0',
                          'cpu': None}, names)
        np.testing.assert_allclose(found.share[2], 0.9 / 1.7, atol=0.02)
        self.assertAlmostEqual(0.0, found.harm[3])

    def test_far_culprits_on_a_pool(self):
        def one(name, rate, storage='pool'):
            return cluster.Host(name, (cluster.Resident(
                name, np.array([rate, 0.0, 0.1, 0.0]), storage_wait=0.5),), synthetic.HOST_TYPE,
                storage, cores=16)
        names, found = self.find(one('a', 400.0), one('b', 1500.0), one('c', 900.0),
                                 one('d', 9000.0, 'another pool'))
        self.assertEqual({'a': 'b', 'b': 'c', 'c': 'b', 'd': None}, names)
        np.testing.assert_allclose(found.share[:3], [1500 / 2400, 900 / 1300, 1500 / 1900])
        self.assertEqual(1, np.argmax(found.harm))
        self.assertEqual(0.0, found.harm[3])

    def test_no_vm_is_its_own_culprit(self):
        # Not even the only one on a pool, which takes most of the cores that it waits for.
        names, _found = self.find(cluster.Host('a', (
            cluster.Resident('small', 0.3 * CPU),
            cluster.Resident('reader', VM, io_domain='pool', storage_wait=0.25)),
            synthetic.HOST_TYPE, cores=1))
        self.assertEqual({'small': 'reader', 'reader': 'small'}, names)

    def test_one_who_waits_for_nothing_still_takes_of_the_pool(self):
        other = cluster.Host('far', (cluster.Resident(
            'far', np.array([2000.0, 0.0, 0.1, 0.0]), storage_wait=0.0),), synthetic.HOST_TYPE,
            'pool', cores=16)
        names, found = self.find(host('near', VM, storage='pool', storage_wait=0.25), other)
        self.assertEqual({'near-0': 'far', 'far': None}, names)
        self.assertAlmostEqual(1.0, found.share[0])

    def test_order_does_not_matter(self):
        rng = np.random.default_rng(3)
        hosts = [host(f'h{place}', *rng.uniform(0.05, 0.5, (4, 4)) * synthetic.CAPACITY,
                      storage=STORAGE[place % 2], storage_wait=0.3) for place in range(5)]
        names, found = self.find(*hosts)
        place = {uuid: row for row, uuid in enumerate(names)}
        self.assertNotIn(None, names.values())
        for _again in range(5):
            shuffled = [dataclasses.replace(hosts[one], residents=tuple(
                hosts[one].residents[row] for row in rng.permutation(4)))
                for one in rng.permutation(5)]
            again, other = self.find(*shuffled)
            self.assertEqual(names, again)
            rows = [place[uuid] for uuid in again]
            np.testing.assert_allclose(found.share[rows], other.share, atol=1e-3)
            np.testing.assert_allclose(found.harm[rows], other.harm, atol=1e-3)

    def test_as_leaving_out_each_has_it(self):
        rng = np.random.default_rng(5)
        state = cluster.build([host(
            f'h{place}', *rng.uniform(0.05, 0.5, (3, 4)) * synthetic.CAPACITY, storage='pool',
            storage_wait=0.3) for place in range(6)])
        assessor = judge(state)
        found = attribution.find_culprits(assessor)
        exact = [attribution.victims(assessor, row).total.sum()
                 for row in range(len(state.uuids))]
        # A VM that leaves ends more than its part where queues are long.
        self.assertGreater(np.corrcoef(found.harm, exact)[0, 1], 0.9)
        worst = [attribution.attribute(assessor, row).influence.rows[0]
                 for row in range(len(state.uuids))]
        self.assertGreater(np.mean(found.culprit == worst), 0.7)
