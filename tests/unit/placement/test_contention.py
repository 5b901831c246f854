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

"""Contention that a probe VM feels, as one more factor of the slowdowns of a host (synthetic)."""

import dataclasses
import math
import unittest

import numpy as np

from tracon_watcher.placement import assessment
from tracon_watcher.placement import attribution
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles

VM = np.array([0.0, 0.0, 0.4, 0.1])
READER = np.array([100.0, 0.0, 0.1, 0.1])
FELT = (math.log(1.5), 0.1, math.log(1.2), 0.05)
TOLERANT = limits.Limits(2.0, 0.2)


def state(contention=FELT, tolerance=TOLERANT):
    """Return two hosts alike, of which the second one is contended."""
    return cluster.build([cluster.Host(name, (
        cluster.Resident(f'calc-{name}', VM, tolerance),
        cluster.Resident(f'read-{name}', READER, tolerance, storage_wait=0.3)),
        'small', cores=2, contention=felt) for name, felt in (('a', None), ('b', contention))])


class ContentionTest(unittest.TestCase):

    def setUp(self):
        self.assessor = assessment.Assessor(state())
        self.law = self.assessor.law

    def test_residents_are_slower_by_it(self):
        slow, ratio = self.assessor.log_responses()
        np.testing.assert_allclose(FELT[0], slow[2:] - slow[:2])
        self.assertAlmostEqual(FELT[2], ratio[3] - ratio[1])
        self.assertTrue(np.isnan(ratio[[0, 2]]).all())

    def test_so_would_a_newcomer_be(self):
        found = self.assessor.assess(newcomer_profiles.own(READER, storage_wait=0.3))
        np.testing.assert_allclose([FELT[0], FELT[2]],
                                   found.log_response[:, 1] - found.log_response[:, 0])
        # It hurts others as much on either, so that the quiet host is better by its own part.
        self.assertAlmostEqual(FELT[0] + FELT[2], found.score[1] - found.score[0], places=6)

    def test_bounds_are_wider_by_how_uncertain_it_is(self):
        for level, sign in ((0.1, -1), (0.9, 1)):
            bound = self.law.bound(level)
            np.testing.assert_allclose(FELT[0] + sign * 1.2816 * FELT[1],
                                       bound[0, 2:] - bound[0, :2], atol=1e-4)

    def test_what_is_allowed_is_where_the_lower_bound_is_the_limit(self):
        allowed = self.law.allowed(0.8)
        np.testing.assert_allclose(self.law.limit, self.law.bound(0.2, allowed))

    def test_it_makes_a_breach_and_the_quiet_host_ends_it(self):
        assessor = assessment.Assessor(state(tolerance=limits.Limits(1.3)))
        self.assertEqual([False, False, True, True], assessor.breaches().tolist())
        found = assessor.assess(newcomer_profiles.own(VM), limits.Limits(1.3))
        self.assertEqual([False, True], found.refused.tolist())

    def test_one_that_may_be_nothing_makes_none(self):
        uncertain = (math.log(1.5), 1.0, 0.0, 0.0)
        assessor = assessment.Assessor(state(uncertain, limits.Limits(1.3)))
        self.assertFalse(assessor.breaches().any())

    def test_an_idle_vm_suffers_nothing(self):
        idle = np.zeros(4)
        found = assessment.Assessor(self.assessor.cluster.with_resident(1, 'idle', idle))
        self.assertAlmostEqual(0.0, found.log_responses()[0, -1])
        self.assertAlmostEqual(0.0, found.law.bound(0.9)[0, -1])
        self.assertAlmostEqual(0.0,
                               self.assessor.assess(
                                   newcomer_profiles.own(idle)).log_response[0, 1])

    def test_no_neighbour_is_blamed_for_it(self):
        bare = attribution.find_culprits(assessment.Assessor(state(None)))
        found = attribution.find_culprits(self.assessor)
        np.testing.assert_allclose(bare.harm, found.harm)
        np.testing.assert_allclose(bare.share, found.share)

    def test_without_it_nothing_changes(self):
        bare = assessment.Assessor(state(None))
        zero = assessment.Assessor(state(cluster.NO_CONTENTION))
        self.assertIsNone(bare.cluster.contention)
        np.testing.assert_array_equal(bare.log_responses(), zero.log_responses())
        np.testing.assert_array_equal(bare.law.bound(0.2), zero.law.bound(0.2))
        first = dataclasses.replace(self.assessor.cluster, contention=None)
        np.testing.assert_array_equal(bare.log_responses(),
                                      assessment.Assessor(first).log_responses())
