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

"""Who does what to whom is what is predicted without him, predicted again (synthetic models)."""

import unittest

import hypothesis
from hypothesis import strategies
import numpy as np

from tests import synthetic
from tracon_watcher.placement import assessment
from tracon_watcher.placement import attribution
from tracon_watcher.placement import cluster
from tracon_watcher.placement import culprits
from tracon_watcher import tie_breaking

POOLS = (cluster.LOCAL, 'pool')
MODELS = synthetic.models()
WILD = synthetic.models(wild=True)
VM = np.array([300.0, 50.0, 0.5, 0.2])


def without_each(state, models):
    """Predict everybody without each VM the slow way: (n, n, 2) harm of who leaves, to whom."""
    now = np.stack(assessment.Assessor(state, models).exponents())
    n = len(state.uuids)
    harm = np.zeros((n, n, 2))
    for row, uuid in enumerate(state.uuids):
        left = np.stack(assessment.Assessor(state.moved({uuid: None}), models).exponents())
        harm[row, np.arange(n) != row] = (now[:, np.arange(n) != row] - left).T
    return harm


def host(name, *profiles, storage=cluster.LOCAL, host_type=synthetic.HOST_TYPE):
    return cluster.Host(name, tuple(cluster.Resident(f'{name}-{place}', profile)
                                    for place, profile in enumerate(profiles)),
                        host_type, storage)


class AgainstPredictingAgain(unittest.TestCase):

    @hypothesis.given(synthetic.hosts(largest=3, storage=POOLS, limited=False),
                      strategies.sampled_from((MODELS, WILD)))
    @hypothesis.settings(deadline=None, max_examples=80)
    def test_each_pair(self, hosts, models):
        state = cluster.build(hosts)
        assessor = assessment.Assessor(state, models)
        truth = without_each(state, models)
        for row in range(len(state.uuids)):
            found = attribution.attribute(assessor, row)
            harm = np.zeros((len(state.uuids), 2))
            harm[found.influence.rows] = found.influence.harm.T
            np.testing.assert_allclose(np.nan_to_num(harm), np.nan_to_num(truth[:, row]),
                                       atol=1e-5)
            self.assertEqual(len(set(found.influence.rows)), len(found.influence.rows))
            reverse = attribution.victims(assessor, row)
            harm = np.zeros((len(state.uuids), 2))
            harm[reverse.rows] = reverse.harm.T
            np.testing.assert_allclose(np.nan_to_num(harm), np.nan_to_num(truth[row]), atol=1e-5)

    @hypothesis.given(synthetic.hosts(largest=3, storage=POOLS, limited=False),
                      strategies.sampled_from((MODELS, WILD)))
    @hypothesis.settings(deadline=None, max_examples=80)
    def test_all_at_once_as_one_by_one(self, hosts, models):
        assessor = assessment.Assessor(cluster.build(hosts), models)
        found = culprits.find(assessor)
        for row in range(len(assessor.cluster.uuids)):
            one = attribution.attribute(assessor, row)
            self.assertAlmostEqual(one.joint, found.joint[row], places=6)
            self.assertAlmostEqual(one.share.max(initial=0.0), found.share[row], places=6)
            if found.culprit[row] >= 0:
                place = list(one.influence.rows).index(found.culprit[row])
                self.assertAlmostEqual(one.share[place], found.share[row], places=6)
            self.assertAlmostEqual(attribution.victims(assessor, row).total.sum(),
                                   found.harm[row], places=6)


class Shares(unittest.TestCase):

    @hypothesis.given(synthetic.hosts(largest=3, storage=POOLS, limited=False),
                      strategies.sampled_from((MODELS, WILD)))
    @hypothesis.settings(deadline=None, max_examples=80)
    def test_with_the_joint_part_they_are_all_of_it(self, hosts, models):
        assessor = assessment.Assessor(cluster.build(hosts), models)
        for row in range(len(assessor.cluster.uuids)):
            found = attribution.attribute(assessor, row)
            self.assertTrue((found.share >= 0).all())
            self.assertTrue(0 <= found.joint <= 1)
            whole = found.share.sum() + found.joint
            if found.exponent[0] > 1e-6:
                self.assertAlmostEqual(1.0, whole, places=9)
            self.assertLessEqual(whole, 1 + 1e-9)
            harm = found.influence.harm[0]
            self.assertFalse(tie_breaking.less(harm[:-1], harm[1:]).any(), harm)

    @hypothesis.given(synthetic.hosts(largest=3, storage=POOLS, limited=False),
                      strategies.integers(0, 2))
    @hypothesis.settings(deadline=None, max_examples=60)
    def test_who_asks_for_nothing_has_no_share(self, hosts, place):
        place = min(place, len(hosts) - 1)
        idle = cluster.Resident('idle', np.zeros(4))
        hosts[place] = cluster.Host(hosts[place].name, (*hosts[place].residents, idle),
                                    synthetic.HOST_TYPE, hosts[place].io_domain)
        assessor = assessment.Assessor(cluster.build(hosts), MODELS)
        row = assessor.cluster.resident_index['idle']
        self.assertEqual(0.0, np.nansum(attribution.victims(assessor, row).harm))
        self.assertEqual(0.0, culprits.find(assessor).harm[row])
        for other in range(len(assessor.cluster.uuids)):
            found = attribution.attribute(assessor, other)
            self.assertEqual(0.0, found.share[found.influence.rows == row].sum())

    @hypothesis.given(synthetic.hosts(largest=3, storage=POOLS, limited=False),
                      strategies.randoms(use_true_random=False))
    @hypothesis.settings(deadline=None, max_examples=60)
    def test_order_does_not_matter(self, hosts, random):
        shuffled = []
        for one in hosts:
            residents = list(one.residents)
            random.shuffle(residents)
            shuffled.append(cluster.Host(one.name, tuple(residents), one.host_type,
                                         one.io_domain))
        random.shuffle(shuffled)
        one, other = (assessment.Assessor(cluster.build(each), MODELS)
                      for each in (hosts, shuffled))
        rows = [other.cluster.resident_index[uuid] for uuid in one.cluster.uuids]
        first, second = culprits.find(one), culprits.find(other)
        for name in ('share', 'joint', 'harm'):
            np.testing.assert_allclose(getattr(first, name), getattr(second, name)[rows],
                                       atol=1e-6)

    def test_the_only_neighbour_has_all_of_it(self):
        assessor = assessment.Assessor(cluster.build([host('a', VM, VM * 2)]), MODELS)
        found = attribution.attribute(assessor, 0)
        self.assertEqual([1], found.influence.rows.tolist())
        self.assertAlmostEqual(1.0, found.share[0])
        self.assertAlmostEqual(0.0, found.joint)
        self.assertEqual(0.0, found.influence.without[0, 0])

    def test_two_alike_share_alike_and_what_they_do_together_is_said(self):
        assessor = assessment.Assessor(cluster.build([host('a', VM, VM * 2, VM * 2)]), MODELS)
        found = attribution.attribute(assessor, 0)
        self.assertAlmostEqual(found.share[0], found.share[1])
        self.assertGreater(found.joint, 0.01)
        # Without the getting in each other's way there is nothing to share.
        calm = synthetic.models(crowding=0.0)
        found = attribution.attribute(assessment.Assessor(assessor.cluster, calm), 0)
        self.assertAlmostEqual(0.0, found.joint)
        np.testing.assert_allclose([0.5, 0.5], found.share)

    def test_by_hand(self):
        factor, joint = attribution.shares(np.array([0.5, 2.0, 4.0, 0.0, 0.0]),
                                           np.array([2.0, 2.0, 2.0, 2.0, 0.0]))
        # Reliefs of 0.5 out of 2: a quarter; 4 out of 2: half of it counted twice.
        np.testing.assert_allclose([0.25, 1.0, 0.5, 0.0, 0.0],
                                   factor * np.array([0.5, 2.0, 4.0, 0.0, 0.0]))
        np.testing.assert_allclose([0.75, 0.0, 0.5, 1.0, 0.0], joint)


class Unknown(unittest.TestCase):

    def test_no_model_no_culprit(self):
        state = cluster.build([host('a', VM, VM, host_type='another')])
        assessor = assessment.Assessor(state, MODELS)
        found = attribution.attribute(assessor, 0)
        self.assertFalse(found.known)
        self.assertEqual(0, len(found.influence.rows))
        self.assertEqual(0, len(attribution.victims(assessor, 0).rows))
        everybody = culprits.find(assessor)
        self.assertEqual([-1, -1], everybody.culprit.tolist())
        self.assertTrue(np.isnan(everybody.share).all())
        self.assertTrue(np.isnan(everybody.joint).all())
        self.assertTrue(np.isnan(everybody.harm).all())

    def test_neighbour_without_a_profile(self):
        state = cluster.build([host('a', VM, None), host('b', VM, VM)])
        assessor = assessment.Assessor(state, MODELS)
        self.assertFalse(attribution.attribute(assessor, 0).known)
        everybody = culprits.find(assessor)
        self.assertEqual([-1, -1, 3, 2], everybody.culprit.tolist())
        self.assertEqual([True, True, False, False], np.isnan(everybody.harm).tolist())

    def test_one_far_outside_the_hull_is_a_culprit_still(self):
        state = cluster.build([host('a', VM, VM, VM * [100, 1, 1, 1])])
        assessor = assessment.Assessor(state, MODELS)
        found = attribution.attribute(assessor, 0)
        self.assertTrue(found.known)
        self.assertEqual(2, found.influence.rows[0])
        self.assertFalse(attribution.attribute(assessor, 2).known)
        everybody = culprits.find(assessor)
        self.assertEqual([2, 2, -1], everybody.culprit.tolist())
        self.assertGreater(everybody.harm[2], everybody.harm[0])

    def test_without_io_there_is_no_second_response(self):
        quiet = np.array([1.0, 1.0, 0.5, 0.2])
        assessor = assessment.Assessor(cluster.build([host('a', quiet, VM)]), MODELS)
        found = attribution.attribute(assessor, 0)
        self.assertTrue(np.isnan(found.influence.harm[1]).all())
        self.assertAlmostEqual(found.influence.harm[0, 0], found.influence.total[0])
        self.assertAlmostEqual(found.influence.total[0], culprits.find(assessor).harm[1])


class ManyOnOnePool(unittest.TestCase):
    """Only those with the most I/O are left out one by one."""

    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(3)
        # Together half of what was measured; a few do most of it.
        demand = rng.pareto(1.5, (30, 8, 4))
        demand *= 0.5 * 4 * synthetic.CAPACITY / demand.sum(axis=(0, 1))
        demand[:, :, 2:] = np.minimum(demand[:, :, 2:], 0.3)
        self.assessor = assessment.Assessor(cluster.build([
            host(f'host{place}', *each, storage='pool') for place, each in enumerate(demand)]),
            MODELS)

    def test_close_to_leaving_out_each(self):
        exact, close = (culprits.find(self.assessor, pairs) for pairs in (1 << 22, 0))
        # 16 of 240 are left out one by one, and the others in proportion to their I/O.
        self.assertFalse(np.array_equal(exact.harm, close.harm))
        np.testing.assert_array_equal(exact.culprit, close.culprit)
        np.testing.assert_allclose(exact.share, close.share, atol=0.01)
        np.testing.assert_allclose(exact.joint, close.joint, atol=0.02)
        np.testing.assert_allclose(exact.harm, close.harm, rtol=0.05, atol=0.02)

    def test_all_pairs_is_what_each_is(self):
        exact = culprits.find(self.assessor)
        for row in (0, 17, 239):
            self.assertAlmostEqual(attribution.attribute(self.assessor, row).joint,
                                   exact.joint[row], places=6)
            self.assertAlmostEqual(attribution.victims(self.assessor, row).total.sum(),
                                   exact.harm[row], places=6)


class SeveralHostTypes(unittest.TestCase):

    def test_a_pool_knows_no_host_types(self):
        models = {**MODELS, **synthetic.models('other', seed=5)}
        state = cluster.build([host('a', VM, VM, storage='pool'),
                               host('b', VM * 2, storage='pool', host_type='other'),
                               host('c', VM * 2, storage='pool', host_type='no model')])
        assessor = assessment.Assessor(state, models)
        truth = without_each(state, models)
        for row in range(3):
            found = attribution.attribute(assessor, row)
            harm = np.zeros((4, 2))
            harm[found.influence.rows] = found.influence.harm.T
            np.testing.assert_allclose(harm, truth[:, row], atol=1e-5)
        found = attribution.victims(assessor, 3)
        self.assertEqual({0, 1, 2}, set(found.rows))
        # What it does on its own host is unknown, so the sum would be too small.
        self.assertTrue(np.isnan(culprits.find(assessor).harm[3]))
        self.assertAlmostEqual(attribution.victims(assessor, 2).total.sum(),
                               culprits.find(assessor).harm[2], places=6)
