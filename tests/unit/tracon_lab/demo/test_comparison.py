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

import math
import unittest

import hypothesis
from hypothesis import strategies
import numpy as np
from scipy import stats

from tests.unit.tracon_lab.demo import synthetic
from tracon_lab.demo import comparison
from tracon_lab.demo import outcome


class TestPaired(unittest.TestCase):

    @hypothesis.given(strategies.lists(strategies.floats(-5, 5), min_size=2, max_size=30))
    def test_interval_is_that_of_scipy(self, values):
        hypothesis.assume(np.std(values) > 1e-6)
        found = comparison.paired(values)
        expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
        self.assertAlmostEqual(float(np.mean(values)), found.mean)
        self.assertAlmostEqual(expected.low, found.low)
        self.assertAlmostEqual(expected.high, found.high)

    def test_covers_the_true_difference_as_often_as_it_says(self):
        rng = np.random.default_rng(1)
        inside = 0
        for _ in range(1000):
            found = comparison.paired(rng.normal(0.3, 1.0, 20))
            inside += found.low <= 0.3 <= found.high
        self.assertAlmostEqual(0.95, inside / 1000, delta=0.02)

    def test_one_seed_has_no_interval(self):
        found = comparison.paired([0.5])
        self.assertEqual(0.5, found.mean)
        self.assertTrue(math.isnan(found.low) and math.isnan(found.high))
        self.assertEqual('one seed: no interval', found.verdict)

    def test_seeds_without_a_difference_are_left_out(self):
        self.assertEqual(comparison.paired([1.0, 2.0, 4.0]),
                         comparison.paired([1.0, math.nan, 2.0, 4.0]))

    def test_verdict(self):
        for low, high, verdict in ((-2, -1, 'better'), (1, 2, 'WORSE'),
                                   (-1, 1, 'no difference seen'), (0, 0, 'no difference seen')):
            self.assertEqual(verdict, comparison.Difference(0, low, high).verdict)


class TestRows(unittest.TestCase):

    def result(self, *vms, requests=3, refusals=()):
        return {'vms': outcome.judged(vms, synthetic.small_truth()), 'requests': requests,
                'refusals': list(refusals)}

    def setUp(self):
        super().setUp()
        self.stock = self.result(synthetic.vm('a', 'touchy', 'host01', 'swift'),
                                 synthetic.vm('b', 'loud', 'host01'),
                                 synthetic.vm('c', 'calm', 'host02'))

    def test_only_vms_placed_in_both_are_compared(self):
        ours = self.result(synthetic.vm('a', 'touchy', 'host01', 'swift'),
                           synthetic.vm('b', 'loud', None),
                           synthetic.vm('c', 'calm', 'host01'),
                           refusals=[synthetic.refusal('b', 2, 2), synthetic.refusal('a', 1, 2)])
        stock, row = comparison.rows({1: {'stock': self.stock, 'enforce, history': ours}})
        self.assertEqual(('stock', None), (stock.arm, stock.slowdown))
        self.assertEqual((2, 1, 3), (row.placed, row.refused, row.hosts_refused))
        # a beside c: 1.2, c beside a: 1.1; with stock a suffers 4.0, c nothing.
        self.assertAlmostEqual((1.2 + 1.1) / 2 - (4.0 + 1.0) / 2, row.slowdown.mean)
        self.assertAlmostEqual(math.log(1.2 * 1.1 / 4.0) / 2, row.log_slowdown.mean)
        self.assertEqual(-1, row.breaches.mean)

    def test_the_same_placement_makes_no_difference(self):
        rows = comparison.rows({seed: {'stock': self.stock, 'weigh, oracle': self.stock}
                                for seed in (1, 2, 3)})
        self.assertEqual((0, 0, 0), (rows[1].slowdown.mean, rows[1].slowdown.low,
                                     rows[1].slowdown.high))
        self.assertEqual('no difference seen', rows[1].breaches.verdict)
        self.assertEqual(3, rows[1].seeds)


class TestRepair(unittest.TestCase):

    def state(self, host, program='loud'):
        return outcome.judged([synthetic.vm('a', 'touchy', 'host01', 'swift'),
                               synthetic.vm('b', program, host)], synthetic.small_truth())

    def test_audits_are_summed_up_over_seeds(self):
        healed = synthetic.audit(self.state('host01', 'calm'), self.state('host01'),
                                 self.state('host02'), self.state('host02'))
        left = synthetic.audit(self.state('host01', 'calm'), self.state('host01'),
                               self.state('host01'), self.state('host02'), healed=False,
                               moves=[])
        found = comparison.repair({1: {'arm': {'audit': healed}}, 2: {'arm': {'audit': left}},
                                   3: {'arm': {}}, 4: {}}, 'arm')
        self.assertEqual((2, 1, 2, 1, 2), (found.seeds, found.healed, found.put_in_breach,
                                           found.released, found.quiet))
        self.assertEqual({'before': 0, 'during': 1, 'after': 0.5, 'oracle': 0}, found.breaches)
        self.assertAlmostEqual((1.2 + 1.1) / 2, found.slowdowns['before'])
        self.assertAlmostEqual((1.0 + (4.0 + 1.3) / 2) / 2, found.slowdowns['after'])
        self.assertEqual((0.5, {2: 4.0}), (found.migrations, found.not_healed))

    def test_without_audits_there_is_nothing_to_sum_up(self):
        self.assertIsNone(comparison.repair({1: {'arm': {'vms': []}}}, 'arm'))
