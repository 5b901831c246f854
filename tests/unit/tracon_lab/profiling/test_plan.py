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

import hypothesis
from hypothesis import strategies
import numpy as np

from tracon_lab.models import naming
from tracon_lab.profiling import plan
from tracon_lab.testbed import plan as plans

SPEED = plan.Speed(1e8, 3000.0, 2000.0)


class TestSettings(unittest.TestCase):

    def test_they_fill_the_space(self):
        found = np.array([naming.setting(name) for name in plan.settings(SPEED)], dtype=float)
        self.assertEqual((plan.BACKGROUNDS, 3), found.shape)
        shares = found / [100, SPEED.reads, SPEED.writes]
        self.assertLess(shares.sum(axis=1).max(), 1.2)
        # Each resource alone, and in each the most that a VM can do.
        self.assertEqual([1.0, 1.0, 1.0], list(np.round(shares.max(axis=0), 2)))
        self.assertTrue((np.count_nonzero(shares, axis=1) > 1).any())
        # The first few are as different as all are.
        first = shares[:6]
        self.assertGreater(min(np.linalg.norm(one - other) for n, one in enumerate(first)
                               for other in first[:n]), 0.5)

    @hypothesis.settings(deadline=None, max_examples=15)
    @hypothesis.given(strategies.floats(3, 1e6), strategies.floats(3, 1e6))
    def test_on_any_disk_they_are_all_different_and_named(self, reads, writes):
        found = plan.settings(plan.Speed(1e8, reads, writes))
        self.assertEqual(len(found), len(set(found)))
        self.assertGreater(len(found), 10)
        for name in found:
            self.assertTrue(naming.is_generator(name), name)
            self.assertNotEqual((0, 0, 0), naming.setting(name))


class TestPoints(unittest.TestCase):

    def test_each_prefix_is_balanced(self):
        found = plan.points(SPEED, plan.MOST_POINTS)
        self.assertEqual(plan.MOST_POINTS, len({one.key for one in found}))
        self.assertEqual(found[:7], plan.points(SPEED, 7))
        for count in (6, 25, 50, 150):
            targets = [one.target for one in found[:count]]
            often = [targets.count(name) for name in plan.TARGETS]
            self.assertLessEqual(max(often) - min(often), 2, often)
        first = [one.background for one in found[:plan.BACKGROUNDS]]
        self.assertEqual(plan.BACKGROUNDS, len(set(first)))

    def test_the_catalogue_has_them(self):
        catalogue = plan.catalogue(plan.Speed(1e8, 1.0, 1.0))
        self.assertEqual(set(plan.TARGETS), set(catalogue))
        self.assertGreater(catalogue['openread'].reads, 0)


class TestSlots(unittest.TestCase):

    def test_programs_are_alone_before_they_are_beside_each_other(self):
        alone, beside = set(), 0
        for slot in plan.slots(plan.points(SPEED, 50), ()):
            if slot.window is None:
                self.assertEqual('', slot.target and slot.background)
                alone.add(slot.target or slot.background)
                self.assertIn(slot.target or slot.background, slot.point)
            else:
                self.assertLessEqual({slot.target, slot.background}, alone)
                beside += 1
        self.assertEqual(50, beside)

    def test_how_many_there_are_is_known_before(self):
        for count in (1, 25, plan.POINTS):
            self.assertEqual(len(plan.slots(plan.points(SPEED, count), ())), plan.windows(count))
        self.assertEqual(3, plan.windows(1))

    def test_targets_are_measured_alone_again_after_a_while(self):
        found = plan.slots(plan.points(SPEED, 50), ())
        often = [sum(slot.window is None and slot.target == name for slot in found)
                 for name in plan.TARGETS]
        self.assertGreater(min(often), 1)
        # The VM that runs the generator is alone once for each setting.
        settings = [slot.background for slot in found if slot.window is None and slot.background]
        self.assertEqual(len(settings), len(set(settings)))

    def test_what_is_known_is_not_measured_alone_and_what_is_awaited_is(self):
        one = plans.Window(plans.BACKGROUND, 'calc', 'gen-c100-r0-w0', back=plans.REVERSE)
        self.assertEqual([one], [slot.window for slot in plan.slots(
            [one], ('calc', 'gen-c100-r0-w0'))])
        awaited = plan.alone('background', 'gen-c100-r0-w0')
        found = plan.slots([one], ('calc',), [awaited])
        self.assertEqual([awaited, plan.Slot(one, 'calc', 'gen-c100-r0-w0')], found)
