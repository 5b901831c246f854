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

"""How much the background may have, in cases by hand and against each size one after the other."""

import math
import unittest

import hypothesis
import numpy as np

from tests import synthetic
from tracon_watcher.placement import assessment
from tracon_watcher.placement import background_capacity
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles

BUSY = np.array([0.0, 0.0, 1.0, 0.0])
HALF = BUSY / 2
NOW = 1000.0


def host(name, cores, *residents, updated_at=NOW):
    return cluster.Host(name, residents, 'unmeasured', cores=cores, updated_at=updated_at)


def vm(uuid, profile=HALF, limit=math.inf):
    return cluster.Resident(uuid, profile, limits.Limits(limit))


def assessor(*hosts):
    return assessment.Assessor(cluster.build(hosts), assessment.Settings(maximum_age=600.0))


class ByHand(unittest.TestCase):

    def test_idle_cores(self):
        judge = assessor(host('empty', 4), host('some', 4, vm('a', BUSY), vm('b')),
                         host('full', 1, vm('c', BUSY), vm('d')),
                         host('strange', None), host('silent', 2, vm('e', None)),
                         host('stale', 4, updated_at=0.0))
        np.testing.assert_allclose([4.0, 2.5, 0.0, np.nan, np.nan, np.nan],
                                   background_capacity.idle_cores(judge, NOW))
        np.testing.assert_allclose([4.0, 2.48, 0.0, np.nan, np.nan, np.nan],
                                   background_capacity.background_cores(judge, NOW))

    def test_limits_bound_it(self):
        judge = assessor(*(host(f'{limit:g}', 2, cluster.Resident(
            f'vm {limit:g}', BUSY * 0.8, limits.Limits(limit), vcpus=2, storage_wait=0.0))
            for limit in (1.0, 1.05, 1.1, 9.0, math.inf)))
        none, *between, loose, without = background_capacity.background_cores(judge, NOW)
        self.assertEqual((0.0, 1.2, 1.2), (none, loose, without))
        self.assertTrue(0.0 < between[0] < between[1] < 1.2, between)

    def test_background_work_that_is_there_bounds_nothing(self):
        there = cluster.Resident('a', HALF, limits.BACKGROUND)
        self.assertEqual([1.48], background_capacity.background_cores(
            assessor(host('h', 2, there)), NOW).tolist())

    def test_of_no_hosts(self):
        self.assertEqual(0, len(background_capacity.background_cores(assessor(), NOW)))


class AgainstEachSize(unittest.TestCase):

    @hypothesis.given(synthetic.hosts())
    @hypothesis.settings(max_examples=25, deadline=None)
    def test_the_largest_that_all_limits_bear(self, hosts):
        judge = assessment.Assessor(cluster.build(hosts))
        idle = background_capacity.idle_cores(judge, NOW)
        for row, found in enumerate(background_capacity.background_cores(judge, NOW)):
            cores, expected = judge.cluster.cores[row], 0.0
            for step in range(1, int(idle[row] * background_capacity.STEPS / cores + 1e-9) + 1):
                load = cores * step / background_capacity.STEPS
                profile = newcomer_profiles.own(BUSY * load, vcpus=int(cores))
                if judge.assess(profile, now=NOW).refused[row]:
                    break
                expected = load
            self.assertAlmostEqual(expected, found, places=9)
