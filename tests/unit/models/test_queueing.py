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

"""The queueing law, against programs whose queueing is computed by hand (synthetic points)."""

import unittest

import numpy as np

from tracon_watcher import errors
from tracon_watcher.models import queueing

# reads/s, writes/s, guest CPU, host CPU
NOTHING, COMPUTES = (0, 0, 0, 0), (0, 0, 0.9, 0.1)


def law(stretch=1.0, core_wait=(0.0, 0.0), disk_time=(0.0, 0.0), disk_wait=(0.0, 0.0),
        ceiling=9.0):
    """Return a law as if it had been fitted; constants in seconds."""
    found = queueing.QueueingRegressor()
    found.stretch_, found.ceiling_ = stretch, ceiling
    found.core_wait_, found.disk_time_, found.disk_wait_ = (
        np.array(one) for one in (core_wait, disk_time, disk_wait))
    return found


def slowdown(model, target, neighbour):
    """Return the slowdown of one (4,) target beside one (4,) neighbour."""
    return float(np.exp(model.predict(np.array([[*target, *neighbour]], dtype=float)))[0])


def programs(count, seed=0):
    """Return (count, 8) drawn columns: two programs that share a core and a disk."""
    rng = np.random.default_rng(seed)
    columns = rng.uniform(0, 1, (count, 8)) ** 2
    for side in (0, 4):
        columns[:, side:side + 2] *= 1000
        columns[:, side + 2:side + 4] *= 0.5
    return columns


class LawTest(unittest.TestCase):

    def test_two_that_compute_take_twice_as_long(self):
        self.assertAlmostEqual(2.0, slowdown(law(), COMPUTES, COMPUTES))

    def test_what_caches_lose_comes_on_top(self):
        self.assertAlmostEqual(2.2, slowdown(law(1.2), COMPUTES, COMPUTES))

    def test_nothing_beside_it_costs_nothing(self):
        wild = law(1.5, (0.01, 0.01), (0.01, 0.01), (0.01, 0.01))
        for target in (COMPUTES, (500, 200, 0.3, 0.1)):
            self.assertEqual(1.0, slowdown(wild, target, NOTHING))

    def test_half_a_core_beside_all_of_it(self):
        # The neighbour computes for 1 and sleeps for 1: of three units of time two are shared
        # fairly and one is the target's own, so it gets two thirds of the core.
        half = (0, 0, 0.5, 0)
        self.assertAlmostEqual(1.5, slowdown(law(), COMPUTES, half))
        # Half of its time is on the core, which takes twice as long.
        self.assertAlmostEqual(1.5, slowdown(law(), half, COMPUTES))

    def test_who_waits_for_the_core_after_each_request_gets_less_of_it(self):
        # 100 requests, each of which waits 10 ms: twice the time, half the share of the core.
        model = law(core_wait=(0.01, 0.0))
        reads = (100, 0, 1.0, 0)
        self.assertAlmostEqual(1 + (1 + 1), slowdown(model, reads, COMPUTES))
        self.assertAlmostEqual(1 + 1 / 2, slowdown(model, COMPUTES, reads))

    def test_a_request_waits_for_the_disk_while_the_others_is_there(self):
        # 50 reads of 20 ms: the disk is at them for half of the time. 30 requests wait 10 ms each.
        model = law(0.0, disk_time=(0.02, 0.0), disk_wait=(0.0, 0.01))
        self.assertAlmostEqual(1 + 0.3 * 0.5, slowdown(model, (0, 30, 0, 0), (50, 0, 0, 0)))

    def test_no_prediction_exceeds_what_was_measured(self):
        self.assertAlmostEqual(np.exp(0.4), slowdown(law(ceiling=0.4), COMPUTES, COMPUTES))


class FitTest(unittest.TestCase):

    def test_constants_are_found_again(self):
        truth = law(1.3, (0.4e-3, 3e-3), (5e-3, 8e-3), (2e-3, 6e-3))
        columns = programs(2000)
        noise = np.random.default_rng(1).normal(0, 0.03, len(columns))
        found = queueing.QueueingRegressor().fit(columns, truth.predict(columns) + noise)
        self.assertAlmostEqual(1.3, found.stretch_, delta=0.05)
        for name in ('core_wait_', 'disk_time_', 'disk_wait_'):
            np.testing.assert_allclose(getattr(found, name), getattr(truth, name), rtol=0.25)

    def test_a_core_for_each_costs_nothing(self):
        columns = programs(500)
        noise = np.random.default_rng(1).normal(0, 0.02, len(columns))
        found = queueing.QueueingRegressor().fit(columns, noise)
        self.assertLess(float(found.predict(programs(500, 1)).max()), 0.03)

    def test_what_data_say_nothing_of_stays_as_it_is_expected(self):
        columns = programs(500)
        columns[:, [0, 1, 4, 5]] = 0.0
        found = queueing.QueueingRegressor().fit(columns, law(1.1).predict(columns))
        self.assertAlmostEqual(1.1, found.stretch_, delta=0.01)
        np.testing.assert_allclose(1e-3, found.disk_time_, rtol=1e-3)

    def test_outliers_hardly_count(self):
        columns = programs(400)
        exponents = law(1.2, (1e-3, 1e-3)).predict(columns)
        exponents[::20] += 2.0
        found = queueing.QueueingRegressor().fit(columns, exponents)
        self.assertAlmostEqual(1.2, found.stretch_, delta=0.1)

    def test_what_only_helps_counts_less(self):
        columns = programs(400)
        helping = np.arange(400) % 2 == 0
        exponents = np.where(helping, law(2.0).predict(columns), law(1.0).predict(columns))
        alike, less = (queueing.QueueingRegressor().fit(columns, exponents, which).stretch_
                       for which in (None, helping))
        self.assertLess(less, alike - 0.05)

    def test_too_few_points(self):
        with self.assertRaisesRegex(errors.NotEnoughData, 'queueing law'):
            queueing.QueueingRegressor().fit(programs(29), np.zeros(29))
