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

"""Tests of what VMs suffer that wait for limits of their own."""

import math
import unittest

import numpy as np

from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import current_interference
from tracon_watcher.placement import limits

LOOP = np.array([0.0, 0.0, 1.0, 0.0])


def host(waits, tolerance=limits.NONE):
    """Return a host with a VM that waits so long for its own limits, beside two loops."""
    residents = [cluster.Resident('limited', 0.3 * LOOP, tolerance, own_wait=waits),
                 cluster.Resident('loop-1', LOOP), cluster.Resident('loop-2', LOOP)]
    return cluster.Host('h1', tuple(residents), cores=1)


class TestFelt(unittest.TestCase):

    def test_a_quota_of_30_percent_beside_three_loops(self):
        # A fourth of a core is left of 0.3 of one.
        self.assertAlmostEqual(1.22, math.exp(current_interference.beyond_own_wait(np.log([1.9]),
                                                                                   0.68)[0]))

    def test_what_fits_into_the_waiting_is_not_felt(self):
        self.assertEqual([0.0, 0.0],
                         current_interference.beyond_own_wait(np.log([1.5, 1.0]), 0.6).tolist())

    def test_one_without_a_limit_feels_all(self):
        log_responses = np.array([0.1, 2.0, np.nan])
        np.testing.assert_array_equal(log_responses,
                                      current_interference.beyond_own_wait(log_responses, 0.0))

    def test_unknown_stays_unknown(self):
        self.assertTrue(np.isnan(current_interference.beyond_own_wait(np.array([np.nan]),
                                                                      np.array([0.5]))[0]))

    def test_each_by_its_own(self):
        np.testing.assert_allclose(
            [math.log(2), math.log(1.5), 0.0],
            current_interference.beyond_own_wait(np.full(3, math.log(2)),
                                                 np.array([0.0, 0.5, 1.0])))


class TestPredicted(unittest.TestCase):

    def log_responses(self, waits, tolerance=limits.NONE):
        return assessment.Assessor(cluster.build([host(waits, tolerance)]))

    def test_of_a_resident(self):
        free, limited = (
            math.exp(self.log_responses(waits).log_responses()[0][0]) for waits in (0.0, 0.2))
        self.assertGreater(free, 1.3)
        # Of all of its time, of which it works for three tenths.
        self.assertAlmostEqual(free - 0.2 / 0.3, limited)

    def test_a_limit_that_only_a_free_one_would_breach(self):
        tolerance = limits.Limits(1.1)
        self.assertTrue(self.log_responses(0.0, tolerance).breaches()[0])
        self.assertFalse(self.log_responses(0.7, tolerance).breaches()[0])

    def test_a_newcomer_is_let_in_beside_one_that_does_not_feel_it(self):
        for waits, refused in ((0.0, True), (0.95, False)):
            alone = cluster.build([cluster.Host('h1', (
                cluster.Resident('limited', 0.3 * LOOP, limits.Limits(1.1), own_wait=waits),),
                cores=1)])
            found = assessment.Assessor(alone).assess(
                cluster.build([host(0.0)]).resident_profile(1))
            self.assertEqual(refused, bool(found.refused[0]))

    def test_one_that_moves_takes_it_along(self):
        state = cluster.build([host(0.6), cluster.Host('h2', (), cores=1)])
        self.assertEqual(0.6, state.resident_profile(0).own_wait)
        after = state.moved({'limited': 'h2'})
        self.assertEqual(0.6, after.own_wait[after.resident_index['limited']])
        self.assertEqual(0.6, state.restricted([0]).own_wait[0])
