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

"""What residents suffer, how sure that is, and whether their counters agree (synthetic)."""

import unittest

import numpy as np

from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import current_interference
from tracon_watcher.placement import limits

VM = np.array([300.0, 50.0, 0.5, 0.2])
QUIET = np.array([1.0, 1.0, 0.5, 0.2])


def look(*hosts, now=None, age=np.inf):
    state = cluster.build([
        cluster.Host(f'host{place}', tuple(
            cluster.Resident(f'{place}-{row}', profile, limits.Limits(1.01, 0.99))
            for row, profile in enumerate(profiles)), cores=1, updated_at=100.0)
        for place, profiles in enumerate(hosts)])
    assessor = assessment.Assessor(state, assessment.Settings(maximum_age=age))
    return current_interference.current_interference(assessor, now)


class Efficiency(unittest.TestCase):

    def test_one_over_the_slowdown(self):
        # Below 1 is noise of counters: nothing runs faster than alone.
        np.testing.assert_array_equal(
            [1.0, 1.0, 0.5, np.nan],
            current_interference.efficiency(np.array([0.97, 1.0, 2.0, np.nan])))


class Look(unittest.TestCase):

    def test_bounds_hold_what_is_expected(self):
        found = look([VM, VM], [VM], [QUIET, VM])
        self.assertTrue((found.lower[0, :2] < found.log_response[0, :2]).all())
        self.assertTrue((found.upper[0, :2] > found.log_response[0, :2]).all())
        # Alone is exactly alone.
        self.assertEqual([0.0] * 4, [*found.upper[:, 2], *found.lower[:, 2]])
        self.assertTrue(np.isnan(found.log_response[1, 3]))
        self.assertTrue(np.isnan(found.upper[1, 3]))
        self.assertEqual([True, True, False], found.breached[0, :3].tolist())
        self.assertFalse(found.breached[1, 3])

    def test_stale_is_unknown(self):
        self.assertTrue(look([VM, VM], now=160.0, age=60.0).known.all())
        found = look([VM, VM], now=161.0, age=60.0)
        self.assertFalse(found.known.any())
        self.assertFalse(found.breached.any())
        self.assertEqual([assessment.Status.STALE], found.status.tolist())

    def test_beside_one_of_whom_nothing_is_known_nothing_is(self):
        self.assertFalse(look([VM, None]).known.any())


class Agreement(unittest.TestCase):

    def test_ranges_that_meet(self):
        found = look([VM, VM], [VM, VM], [VM, VM], [VM, None])
        expected = np.exp(found.log_response[0])
        low, high = np.exp(found.lower[0]), np.exp(found.upper[0])
        observed = expected.copy()
        observed[1] = high[1] * 1.09          # within ten per cent of error
        observed[2] = high[2] * 1.11
        observed[3] = low[3] / 1.11
        observed[4] = np.nan
        observed[6] = 2.0
        self.assertEqual(
            [current_interference.Agreement.AGREE, current_interference.Agreement.AGREE,
             current_interference.Agreement.MORE,
             current_interference.Agreement.LESS, current_interference.Agreement.UNKNOWN,
             current_interference.Agreement.AGREE,
             current_interference.Agreement.UNKNOWN, current_interference.Agreement.UNKNOWN],
            current_interference.agreement(found, observed, 0.1).tolist())
