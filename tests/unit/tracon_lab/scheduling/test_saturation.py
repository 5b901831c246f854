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

import unittest

import numpy as np

from tests.unit.tracon_lab.scheduling import synthetic
from tracon_lab.scheduling import saturation


class TestSaturation(unittest.TestCase):

    def test_without_interference_every_slot_works_at_full_speed(self):
        found = saturation.solve(synthetic.harmless((2, 3)), np.full(3, 1 / 3), np.array([4, 2]))
        self.assertAlmostEqual((4 * 2 + 2 * 3) / 100.0, found.throughput)

    def test_worked_out_by_hand(self):
        # Two classes: beside their own kind at half the speed, beside the other at full speed.
        performance = synthetic.performance_of([[2.0, 1.0], [1.0, 2.0]])
        even = saturation.solve(performance, np.array([0.5, 0.5]), np.array([10]))
        self.assertAlmostEqual(10 * 2 / 100.0, even.throughput)
        # Three of one kind to one of the other: of four hosts' time two go into pairs of both,
        # which complete one of each, and the rest of the first kind runs as well alone as in two.
        uneven = saturation.solve(performance, np.array([0.75, 0.25]), np.array([10]))
        # x pairs of both and 10 − x of the first alone: (10) / 3 = x.
        self.assertAlmostEqual((10 + 10 / 3) / 100.0, uneven.throughput)

    def test_prices_and_what_hosts_earn_are_the_throughput_again(self):
        for seed in range(5):
            performance = synthetic.random_pairs(seed, 6)
            mix = np.random.default_rng(seed).dirichlet(np.ones(6))
            found = saturation.solve(performance, mix, np.array([64]))
            self.assertAlmostEqual(1.0, float(mix @ found.price), places=6)
            self.assertAlmostEqual(found.throughput, float(64 * found.earned[0]), places=6)
            value = performance.completions @ found.price
            # No configuration earns more; those of the optimum earn just that.
            self.assertLessEqual(float(value.max()), found.earned[0] * (1 + 1e-6))
            np.testing.assert_allclose(value[found.shares > 1e-6], found.earned[0], rtol=1e-6)

    def test_the_mix_is_what_is_completed(self):
        performance = synthetic.random_pairs(3, 5)
        mix = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
        found = saturation.solve(performance, mix, np.array([10]))
        np.testing.assert_array_less(found.throughput * mix - 1e-9,
                                     found.shares @ performance.completions)
