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

"""Baselines of VMs that are hardly ever alone (synthetic)."""

import unittest

import numpy as np

from tests.unit.contention import synthetic
from tracon_watcher.contention import baselines

DAY = 86400.0


def sums(latency, reads=1000.0, slots=3):
    """Windows of some VMs, (n, slots, 7), whose reads took so long in each slot."""
    latency = np.atleast_2d(latency)
    found = np.zeros((*latency.shape, 7))
    found[:, :, 0] = 10.0                       # running
    found[:, :, 3] = reads
    found[:, :, 5] = reads * latency
    return found


class TestBaselines(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.found = baselines.Baselines(DAY)
        self.found.resize(20)

    def update(self, rows, latency, worth=1.0, passed=0.0, pool=-1, **given):
        rows = np.atleast_1d(rows)
        self.found.update(rows, sums(latency, **given), synthetic.PLAIN,
                          np.full(len(rows), worth), np.full(len(rows), passed),
                          np.full(len(rows), pool))
        self.found.compare()

    def reads(self, row):
        return float(self.found.of(np.array([row])).read_latency[0])

    def test_it_is_a_low_quantile_of_what_was_seen(self):
        self.update(0, [0.005, 0.001, 0.02, 0.002])
        self.assertAlmostEqual(0.001, self.reads(0), places=6)
        self.assertTrue(np.isnan(self.found.of(np.array([0])).write_latency[0]))

    def test_a_few_requests_tell_nothing(self):
        self.update(0, [0.001], reads=3.0)
        self.assertTrue(np.isnan(self.reads(0)))

    def test_it_is_remembered_and_slowly_forgotten(self):
        self.update(0, [0.001])
        self.update(0, [0.01], passed=DAY / 2)
        self.assertAlmostEqual(0.001 * 2 ** 0.5, self.reads(0), places=6)
        self.update(0, [0.01], passed=10 * DAY)
        self.assertAlmostEqual(0.01, self.reads(0), places=6)

    def test_a_new_vm_takes_after_others_on_the_same_storage(self):
        for row in range(6):
            self.update(row, [0.001 + 0.0002 * row], pool=7)
        self.update(10, [0.02], worth=0.0, pool=7)
        np.testing.assert_allclose(self.reads(10), 0.0015, rtol=0.1)
        # Not after those on other storage, or on none that is known.
        self.update(11, [0.02], worth=0.0, pool=8)
        self.update(12, [0.02], worth=0.0)
        self.assertEqual([0.02, 0.02], [round(self.reads(row), 6) for row in (11, 12)])

    def test_the_longer_it_is_seen_itself_the_less_others_count(self):
        for row in range(6):
            self.update(row, [0.001], pool=7)
        found, doubts = [], []
        for _ in range(5):
            self.update(10, [0.02], worth=4.0, pool=7)
            found.append(self.reads(10))
            doubts.append(float(self.found.of(np.array([10])).read_deviation[0]))
        self.assertEqual(sorted(found), found)
        self.assertEqual(sorted(doubts, reverse=True), doubts)
        np.testing.assert_allclose(found[0], np.sqrt(0.02 * 0.001), rtol=1e-5)
        self.assertGreater(found[-1], 0.01)

    def test_others_never_make_it_slower(self):
        for row in range(6):
            self.update(row, [0.05], pool=7)
        self.update(10, [0.001], worth=0.0, pool=7)
        self.assertAlmostEqual(0.001, self.reads(10), places=6)

    def test_who_does_something_else_starts_from_what_it_was(self):
        self.update(0, [0.001], worth=12.0)
        self.found.restart(np.array([0]))
        self.update(0, [0.1], worth=4.0)
        np.testing.assert_allclose(self.reads(0), np.sqrt(0.1 * 0.001), rtol=1e-5)
        self.update(0, [0.1], worth=400.0)
        self.assertGreater(self.reads(0), 0.09)

    def test_forgotten_is_forgotten(self):
        self.update(0, [0.001])
        self.found.forget(np.array([0]))
        self.assertTrue(np.isnan(self.reads(0)))
        self.update(0, [0.1])
        self.assertAlmostEqual(0.1, self.reads(0), places=6)

    def test_delay_is_never_more_than_expected(self):
        values = sums([[0.001] * 3, [0.001] * 3])
        values[:, :, 1] = [[2.0], [0.5]]
        learnt = synthetic.dataclasses.replace(synthetic.PLAIN, self_delay=np.array([0.1, 0.0]))
        rows = np.array([0, 1])
        self.found.update(rows, values, learnt, np.ones(2), np.zeros(2), np.full(2, -1))
        self.found.compare()
        np.testing.assert_allclose(self.found.of(rows).self_delay, [1.0, 0.5], rtol=1e-6)
        # Nothing seen: what is expected.
        np.testing.assert_array_equal(self.found.of(np.array([5])).self_delay, [1.0])
