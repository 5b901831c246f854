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

import dataclasses
import unittest

import numpy as np

from tests.unit.tracon_lab.models import synthetic
from tracon_lab.models import points as measured
from tracon_lab.models import validation


class TestNoise(unittest.TestCase):

    def test_two_repetitions(self):
        points = synthetic.build(generator=4, backgrounds=4)
        again = points.take(np.flatnonzero(points.kind == 'repeat')[:2])
        again.slowdown[:] = [1.0, 1.2]
        np.testing.assert_allclose(validation.noise(again, 'slowdown'),
                                   np.array([0.1 / 1.0, 0.1 / 1.2]) * np.sqrt(2))


class TestNoiseFloor(unittest.TestCase):

    def test_each_program_counts_once(self):
        points = synthetic.build(names=('cpu', 'mixed'), backgrounds=4)
        points = points.take(points.kind != 'background')
        repeated = np.flatnonzero(points.kind == 'repeat')
        values = np.array(points.slowdown)
        values[repeated] = 1.0
        quiet, loud = (repeated[points.target[repeated] == name] for name in ('cpu', 'mixed'))
        values[loud] = np.where(np.arange(len(loud)) % 2, 0.9, 1.1)
        noisy = dataclasses.replace(points, slowdown=values)
        floor = validation.noise_floor(noisy, 'slowdown')
        self.assertEqual(0.0, validation.noise_floor(noisy, 'slowdown', ['cpu']))
        self.assertAlmostEqual(2 * floor, validation.noise_floor(noisy, 'slowdown', ['mixed']))
        # Repeating the quiet one more often changes nothing.
        again = measured.join([noisy, noisy.take(quiet), noisy.take(quiet)])
        self.assertAlmostEqual(floor, validation.noise_floor(again, 'slowdown'))
        # One that was not repeated has the floor of all.
        self.assertAlmostEqual(floor, validation.noise_floor(noisy, 'slowdown', ['stranger']))
        self.assertTrue(np.isnan(validation.noise_floor(
            noisy.take(noisy.kind != 'repeat'), 'slowdown')))
