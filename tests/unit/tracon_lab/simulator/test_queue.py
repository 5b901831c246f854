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

import numpy as np

from tracon_lab.simulator import queue
from tracon_lab.simulator import workload
from tracon_watcher import errors


class TestQueue(unittest.TestCase):

    def test_only_who_has_come_is_shown_and_no_more_than_the_window(self):
        waiting = queue.Queue(workload.Listed([1.0, 2.0, 3.0, 9.0], [0, 1, 2, 0]), 2)
        waiting.admit(0.5)
        self.assertEqual(([], 1.0), (waiting.classes, waiting.next))
        waiting.admit(5.0)
        self.assertEqual(([0, 1], [1.0, 2.0], 3.0),
                         (waiting.classes, waiting.times, waiting.next))
        waiting.take([0])
        waiting.admit(5.0)
        self.assertEqual([1, 2], waiting.classes)
        self.assertEqual(4, waiting.arrived(10.0))
        self.assertEqual(math.inf, waiting.next)

    def test_overtaking_counts_who_came_later_and_went_first(self):
        waiting = queue.Queue(workload.Listed([0.0] * 5, [0, 1, 1, 1, 1]), 3)
        waiting.admit(0.0)
        for expected in (1, 2, 3):
            waiting.take([1])
            waiting.admit(0.0)
            self.assertEqual(expected, waiting.overtaken)
        waiting.take([0])
        self.assertEqual(3, waiting.overtaken)


class TestWorkload(unittest.TestCase):

    def test_poisson_comes_at_its_rate_and_in_its_mix(self):
        shares = np.array([0.7, 0.3])
        chunks = list(workload.Poisson(2.0, shares, [1], 100000.0).chunks())
        times = np.concatenate([chunk.times for chunk in chunks])
        classes = np.concatenate([chunk.classes for chunk in chunks])
        self.assertGreater(len(chunks), 1)
        self.assertTrue((np.diff(times) >= 0).all() and times[-1] <= 100000.0)
        # Four standard deviations.
        self.assertAlmostEqual(200000, len(times), delta=4 * math.sqrt(200000))
        self.assertAlmostEqual(0.3, classes.mean(), delta=4 * math.sqrt(0.21 / 200000))
        gaps = np.diff(times)
        self.assertAlmostEqual(1.0, gaps.std() / gaps.mean(), delta=0.02)

    def test_mixes_have_their_means_and_spread(self):
        for name, mean in workload.MIXES.items():
            share = workload.mix(name, 8, sigma=0.6)
            self.assertAlmostEqual(1.0, share.sum())
            self.assertAlmostEqual(mean, share @ np.arange(1, 9), delta=0.05)
        self.assertEqual(4, int(np.argmax(workload.mix('medium', 8))) + 1)
        np.testing.assert_allclose(workload.mix('uniform', 5), 0.2)
        np.testing.assert_allclose(workload.mix('heavy', 1), 1.0)
        np.testing.assert_allclose(workload.mix('heavy', 8, sigma=0.01)[[4, 5]], 0.5)

    def test_bad_input(self):
        for arguments, said in ((('dense', 8), 'light, medium, heavy, uniform'),
                                (('light', 8, 0.0), 'sigma=0.0'),
                                (('light', 8, math.nan), 'sigma=nan')):
            with self.assertRaisesRegex(errors.InvalidOption, said):
                workload.mix(*arguments)
