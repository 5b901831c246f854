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
import collections
import unittest

from tracon_lab.models import naming
from tracon_lab.testbed import host_types
from tracon_lab.testbed import plan
from tracon_lab.testbed import programs


class TestFullPlan(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.kinds = list(host_types.HOST_TYPES.values())

    def test_counts(self):
        for kind in self.kinds:
            made = plan.full(kind, 1)
            counts = collections.Counter(window.kind for window in made.windows)
            self.assertEqual(36, counts['pair'])
            self.assertEqual(60, counts['repeat'])
            self.assertEqual(8 * len(plan.grid(kind)), counts['background'])
            self.assertTrue(29 <= len(plan.grid(kind)) <= 36, kind.name)
            self.assertLessEqual(len(made.windows), 650)

    def test_at_least_forty_generator_targets_meet_three_others(self):
        for kind in self.kinds:
            met = collections.defaultdict(set)
            for window in plan.full(kind, 1).windows:
                if window.kind == 'generator':
                    met[window.target].add(window.background)
                    met[window.background].add(window.target)
            self.assertGreaterEqual(len(met), 40)
            self.assertEqual({3}, {len(others) for others in met.values()})

    def test_every_program_meets_every_program_and_itself(self):
        made = plan.full(self.kinds[0], 1)
        met = {frozenset((w.target, w.background)) for w in made.windows if w.kind == 'pair'}
        self.assertEqual(36, len(met))
        self.assertTrue(all(w.back == 'pair' for w in made.windows if w.kind == 'pair'))

    def test_all_pairs_stand_in_the_first_part(self):
        windows = plan.full(self.kinds[0], 1).windows
        last = max(place for place, window in enumerate(windows) if window.kind == 'pair')
        self.assertLess(last / len(windows), 0.65)

    def test_twelve_points_are_repeated_five_times_over_the_whole_run(self):
        windows = plan.full(self.kinds[0], 1).windows
        places = collections.defaultdict(list)
        for place, window in enumerate(windows):
            if window.kind == 'repeat':
                places[window.point].append(place / len(windows))
        self.assertEqual(12, len(places))
        for point, seen in places.items():
            self.assertEqual(5, len(seen), point)
            self.assertGreater(max(seen) - min(seen), 0.5, point)

    def test_no_window_is_planned_twice(self):
        for kind in self.kinds:
            keys = [window.key for window in plan.full(kind, 1).windows]
            self.assertEqual(len(set(keys)), len(keys))

    def test_the_seed_decides(self):
        kind = self.kinds[0]
        self.assertEqual(plan.full(kind, 7), plan.full(kind, 7))
        self.assertNotEqual(plan.full(kind, 7).windows, plan.full(kind, 8).windows)

    def test_cut_short_it_is_balanced(self):
        kind = self.kinds[0]
        windows = plan.full(kind, 1).windows
        first = windows[:len(windows) // 3]
        targets = collections.Counter(w.target for w in first if w.kind == 'background')
        self.assertEqual(set(programs.programs(1, 1)), set(targets))
        block = -(-len(plan.grid(kind)) // plan.BLOCKS)
        self.assertLessEqual(max(targets.values()) - min(targets.values()), block)
        kinds = {window.kind for window in first}
        self.assertEqual({'background', 'pair', 'repeat', 'generator'}, kinds)

    def test_points_of_one_target_stand_together(self):
        windows = [w for w in plan.full(self.kinds[0], 1).windows if w.kind != 'generator']
        changes = sum(a.target != b.target for a, b in zip(windows, windows[1:], strict=False))
        self.assertLess(changes, len(windows) / 6)

    def test_a_slowdown_that_counts_has_a_fresh_window_alone(self):
        beside = plan.Window('background', 'calc', 'gen-c030-r0-w0')
        self.assertEqual({'calc': 40.0, 'gen-c030-r0-w0': float('inf')}, beside.solo_ages())
        pair = plan.Window('pair', 'calc', 'mixed', back='pair')
        self.assertEqual({'calc': 40.0, 'mixed': 120.0}, pair.solo_ages())
        self.assertEqual({'calc': 40.0},
                         plan.Window('pair', 'calc', 'calc', back='pair').solo_ages())

    def test_names_of_programs_may_begin_with_what_ends_a_point(self):
        for names, expected in (
                (('calc', 'backup'), ['pair/calc/backup', 'pair/backup/calc']),
                (('backup', 'backup'), ['pair/backup/backup', 'pair/backup/backup/back']),
                (('back', 'back+back'), ['pair/back/back+back', 'pair/back/back+back/back',
                                         'pair/back/back+back/back/back'])):
            window = plan.Window('pair', *names, back='pair')
            self.assertEqual(expected, [row.point for row in window.directions()])


class TestSettings(unittest.TestCase):

    def test_grid_reaches_saturation_and_stays_below_it_mostly(self):
        for kind in host_types.HOST_TYPES.values():
            loads = [kind.load(*naming.setting(name))
                     for name in plan.grid(kind)]
            self.assertGreater(max(loads), 1.0)
            self.assertLess(sum(load > 1 for load in loads), len(loads) / 2)
            self.assertGreater(min(loads), 0)

    def test_space_filling_settings_differ(self):
        kind = host_types.named('same-core-raw-disk')
        self.assertEqual(48, len(set(plan.space_filling(kind, 48, 1))))

    def test_small_plan_has_every_kind(self):
        kinds = {w.kind for w in plan.small(host_types.named('same-core-raw-disk'), 1).windows}
        self.assertEqual({'background', 'pair', 'repeat'}, kinds)


class TestOneSided(unittest.TestCase):
    """On separate cores only the target's is watched."""

    def test_what_counted_for_both_is_measured_for_each(self):
        two = plan.Plan('p', 1, (
            plan.Window('background', 'calc', 'gen-c030-r0-w0', back='reverse'),
            plan.Window('pair', 'calc', 'seqread', back='pair'),
            plan.Window('pair', 'calc', 'calc', back='pair'),
            plan.Window('co-residents', 'calc', 'calc+seqread', back='co-residents'),
            plan.Window('repeat', 'calc', 'seqread', 3, back='repeat')))
        one = two.one_sided()
        self.assertEqual(
            [('background/calc/gen-c030-r0-w0', 0), ('pair/calc/seqread', 0),
             ('pair/seqread/calc', 0), ('pair/calc/calc', 0),
             ('co-residents/calc/calc+seqread', 0), ('repeat/calc/seqread', 3)],
            [window.key for window in one.windows])
        self.assertEqual({1}, {len(window.directions()) for window in one.windows})

    def test_all_plans_have_such_a_form(self):
        kind = host_types.named('separate-cores-raw-disk')
        for make in (plan.full, plan.small):
            two = make(kind, 1)
            rows = {row.point for window in two.windows for row in window.directions()
                    if row.kind not in ('reverse', 'repeat')
                    and not row.point.endswith('/back')}
            one = {row.point for window in two.one_sided().windows
                   for row in window.directions()}
            self.assertEqual(set(), rows - one)
