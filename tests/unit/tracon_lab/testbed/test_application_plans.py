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

"""The plans of the eight applications."""

import collections
import unittest

from tracon_lab.models import naming
from tracon_lab.testbed import application_plans
from tracon_lab.testbed import applications
from tracon_lab.testbed import host_types
from tracon_lab.testbed import programs


class TestPlans(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.raw = host_types.named('same-core-raw-disk')
        self.separate = host_types.named('separate-cores-raw-disk')

    def test_all_levels_but_nothing_at_all(self):
        levels = application_plans.levels(self.raw)
        self.assertEqual(124, len(set(levels)))
        self.assertIn(programs.generator(100, 800, 600), levels)
        self.assertNotIn(programs.generator(0, 0, 0), levels)

    def test_every_application_beside_every_level_and_every_application(self):
        windows = application_plans.full(self.raw, 1).windows
        counts = collections.Counter(window.kind for window in windows)
        self.assertEqual({'background': 8 * 124, 'pair': 36, 'repeat': 60}, dict(counts))
        met = {frozenset((w.target, w.background)) for w in windows if w.kind == 'pair'}
        self.assertEqual(36, len(met))
        self.assertEqual(len(windows), len({window.key for window in windows}))

    def test_cut_short_it_is_balanced(self):
        windows = application_plans.full(self.raw, 1).windows
        first = windows[:len(windows) // 5]
        counts = collections.Counter(w.target for w in first if w.kind == 'background')
        self.assertEqual(set(applications.NAMES), set(counts))
        self.assertLessEqual(max(counts.values()) - min(counts.values()), 2)

    def test_on_separate_cores_only_the_target_counts(self):
        windows = application_plans.reduced(self.separate, 1).windows
        self.assertEqual({None}, {window.back for window in windows})
        pairs = {(w.target, w.background) for w in windows if w.kind == 'pair'}
        self.assertEqual(64, len(pairs))

    def test_the_reduced_plan_has_thirty_levels_the_extremes_among_them(self):
        windows = application_plans.reduced(self.raw, 1).windows
        levels = {w.background for w in windows if w.kind == 'background'}
        self.assertEqual(30, len(levels))
        for extreme in ((100, 0, 0), (0, 800, 0), (0, 0, 600), (100, 800, 600)):
            self.assertIn(programs.generator(*extreme), levels)
        repeated = collections.Counter(w.point for w in windows if w.kind == 'repeat')
        self.assertEqual([5] * 12, list(repeated.values()))

    def test_two_and_three_co_residents(self):
        plan = application_plans.co_residents(self.raw, 1)
        self.assertEqual(4, plan.guests)
        sizes = collections.Counter(len(window.backgrounds) for window in plan.windows)
        self.assertEqual({2, 3}, set(sizes))
        generated = sum(all(map(naming.is_generator, window.backgrounds))
                        for window in plan.windows)
        self.assertGreater(generated, 30)
        self.assertGreater(len(plan.windows) - generated, 30)
        self.assertEqual(set(applications.NAMES), {window.target for window in plan.windows})

    def test_the_seed_decides(self):
        for make in (application_plans.full, application_plans.reduced,
                     application_plans.co_residents):
            self.assertEqual(make(self.raw, 3), make(self.raw, 3))
            self.assertNotEqual(make(self.raw, 3).windows, make(self.raw, 4).windows)
