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

from tracon_watcher.queueing import capacity
from tracon_watcher.queueing import normal


class CapacityTest(unittest.TestCase):

    def test_servers(self):
        self.assertEqual([1, 2, 3], capacity.servers(3).tolist())
        with self.assertRaisesRegex(ValueError, 'servers: 0 is less than 1'):
            capacity.servers(0)

    def test_threads(self):
        # Two cores of two threads each.
        self.assertEqual([1.0, 2.0, 2.3, 2.6, 2.6], [
            round(float(capacity.threads(np.array(4.0), np.array(2.0), busy=np.array(busy))), 6)
            for busy in (1.0, 2.0, 3.0, 4.0, 5.0)])

    def test_a_disk_between_the_depths_that_were_measured(self):
        np.testing.assert_allclose([1.0, 1.5, 1.75, 2.0],
                                   capacity.by_depth([1, 2, 4], [200, 300, 400]))

    def test_a_disk_that_falls_with_depth_is_used_less_deep(self):
        self.assertEqual([1.0, 1.5, 1.5], capacity.by_depth([1, 2, 3], [100, 150, 120]).tolist())

    def test_depths_and_work_that_are_none(self):
        for depths in ([], [2, 3], [1, 3, 2]):
            with self.subTest(depths), self.assertRaisesRegex(ValueError, 'do not ascend from 1'):
                capacity.by_depth(depths, [1.0] * len(depths))
        for work in ([1.0], [1.0, 0.0], [1.0, np.nan]):
            with self.subTest(work), self.assertRaisesRegex(ValueError, 'not a positive number'):
                capacity.by_depth([1, 2], work)

    def test_several_go_on_as_they_end(self):
        self.assertEqual([[1, 1, 1], [1, 2, 3]], capacity.table(
            [capacity.servers(1), capacity.servers(3)]).tolist())

    def test_stretch_is_the_mean_over_who_is_there(self):
        # Of 40 others each ready for a tenth of the time, beside two servers.
        ready = np.random.default_rng(1).binomial(40, 0.1, 200000)
        found = capacity.stretch(capacity.table([capacity.servers(2)]), np.array([4.0]),
                                 np.array([np.sqrt(3.6)]))
        self.assertAlmostEqual(np.maximum((1 + ready) / 2, 1.0).mean(), found[0], delta=0.02)
        empty = capacity.stretch(capacity.table([capacity.servers(1)]), np.zeros(1),
                                 np.full(1, 1e-6))
        self.assertEqual([1.0], empty.tolist())


class NormalTest(unittest.TestCase):
    """By sums over the density, which the tables do not use."""

    def setUp(self):
        self.z = np.linspace(-12.0, 12.0, 240001)
        self.density = np.exp(-0.5 * self.z ** 2) / np.sqrt(2.0 * np.pi) * (self.z[1] - self.z[0])

    def test_probability(self):
        for z in (-3.0, -0.4, 0.0, 1.7):
            self.assertAlmostEqual(self.density[self.z <= z].sum(),
                                   normal.probability(np.array(z)), delta=1e-4)

    def test_mean_beyond(self):
        for begin, end in ((-2.0, 1.0), (1.0, -2.0), (0.3, 0.3), (-50.0, -40.0), (-100.0, 100.0)):
            between = np.linspace(begin, end, 2001)
            expected = np.mean([self.density[self.z > one].sum() for one in between])
            found = normal.mean_beyond(np.array([begin]), np.array([end]))[0]
            self.assertAlmostEqual(expected, found, delta=1e-3)

    def test_a_part_that_is_not_negative_keeps_the_mean(self):
        for mean, deviation in ((0.05, 0.2), (1.0, 1.0), (9.0, 0.5)):
            x = np.maximum(mean + deviation * self.z, 0.0)
            alpha = normal.scale(np.array(mean), np.array(deviation))
            self.assertAlmostEqual(mean, (alpha * x * self.density).sum(), delta=1e-4)
            for over in (0.0, 0.5, 3.0):
                self.assertAlmostEqual(
                    (np.maximum(alpha * x - over, 0.0) * self.density).sum(),
                    normal.excess(np.array(mean), np.array(deviation), over), delta=1e-4)
