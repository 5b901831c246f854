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

import numpy as np

from tests.unit.folder import FolderCase
from tracon_lab.simulated_cloud import demand
from tracon_watcher import errors

NAMES = 'day,vm,' + ','.join(f'm{5 * step}' for step in range(demand.STEPS))


class ReadTest(FolderCase):

    def read(self, *lines):
        path = self.folder / 'traces.csv'
        path.write_text('\n'.join(lines) + '\n')
        return demand.read(path)

    def test_a_line_for_each_vm_and_day(self):
        found = self.read(NAMES, '1,7,' + ','.join(['50'] * 288), '1,8,' + ','.join(['0'] * 288))
        self.assertEqual((2, 288), found.shape)
        self.assertEqual([0.5, 0.0], found[:, 17].tolist())

    def test_what_is_wrong_is_named(self):
        line = ['1', '7', *['50'] * 288]
        for lines, said in (
                (['day,vm'], 'm0, m5 to m1435'), ([NAMES], 'lines'),
                ([NAMES, ','.join(line[:-1])], 'line 2'),
                ([NAMES, ','.join([*line[:4], '101', *line[5:]])], 'line 2, column m10'),
                ([NAMES, ','.join([*line[:4], 'x', *line[5:]])], 'line 2'),
                ([NAMES, ','.join([*line[:4], 'nan', *line[5:]])], 'line 2, column m10')):
            with self.subTest(said), self.assertRaisesRegex(errors.InvalidDocument, said):
                self.read(*lines)
        with self.assertRaisesRegex(errors.InvalidDocument, 'none.csv'):
            demand.read(self.folder / 'none.csv')


class RecordedTest(FolderCase):

    def recorded(self, *lines, day=0):
        path = self.folder / 'vms.csv'
        path.write_text('\n'.join(
            ['vm,begins,project,vcpus,' + NAMES.removeprefix('day,vm,'), *lines]) + '\n')
        return demand.recorded(path, day)

    def line(self, vm, begins='2026-01-01', project='p', vcpus='2', cells=('50',) * 288):
        return ','.join([vm, begins, project, vcpus, *cells])

    def test_a_vm_is_there_while_it_has_values(self):
        found = self.recorded(
            self.line('c', cells=[*[''] * 4, '20', '', '40', *[''] * 281], project='q'),
            self.line('a'), self.line('b', cells=[*['50'] * 287, ''], vcpus='8'),
            self.line('none', cells=[''] * 288))
        self.assertEqual([-1, -1, 4], found.arrives.tolist())
        self.assertEqual([289, 287, 7], found.leaves.tolist())
        self.assertEqual([2, 8, 2], found.vcpus.tolist())
        self.assertEqual([0, 0, 1], found.project.tolist())
        # A gap is interpolated.
        np.testing.assert_allclose([0.2, 0.3, 0.4], found.used[2, 4:7])
        self.assertAlmostEqual(2 + 8 * 287 / 288 + 2 * 3 / 288, found.running())

    def test_days_in_order(self):
        lines = [self.line('a', '2026-01-02', vcpus='4'), self.line('a', '2026-01-01')]
        self.assertEqual([[2], [4]],
                         [self.recorded(*lines, day=day).vcpus.tolist() for day in range(2)])

    def test_what_is_wrong_is_named(self):
        for line, day, said in (
                (self.line('a', vcpus='many'), 0, 'column vcpus.*many'),
                (self.line('a', vcpus='0'), 0, 'column vcpus is 0'),
                (self.line('a', cells=['50', 'x', *['50'] * 286]), 0, "line 2, column m5 is 'x'"),
                (self.line('a', cells=[''] * 288), 0, "day 2026-01-01 is 'empty'"),
                (self.line('a'), 1, 'days is 1: expected 2'),
                ('a,2026-01-01,p', 0, "line 2 is '3 columns'")):
            with self.subTest(said), self.assertRaisesRegex(errors.InvalidDocument, said):
                self.recorded(line, day=day)
        with self.assertRaisesRegex(errors.InvalidDocument, 'begins, project, vcpus, m0'):
            (self.folder / 'traces.csv').write_text(NAMES + '\n')
            demand.recorded(self.folder / 'traces.csv', 0)


class DrawTest(FolderCase):

    def test_sizes_and_lifetimes_are_those_of_azure(self):
        hours, weights = demand._lifetimes()
        self.assertAlmostEqual(1.0, weights.sum())
        self.assertAlmostEqual(51.8, hours @ weights, delta=1.0)
        self.assertAlmostEqual(2.28, sum(size * share for size, share in demand.SIZES.items()),
                               delta=0.05)
        self.assertAlmostEqual(1.0, sum(demand.SIZES.values()))

    def test_as_many_run_at_a_time_as_asked_for(self):
        found = demand.draw(demand.synthetic(500, 1), 8000.0, 1)
        running = [found.vcpus[found.there(step)].sum() for step in range(0, 288, 20)]
        self.assertAlmostEqual(8000.0, np.mean(running), delta=600.0)
        self.assertTrue((np.diff(found.arrives) >= 0).all())
        self.assertTrue((found.leaves > found.arrives).all())

    def test_vms_of_a_project_are_alike(self):
        traces = demand.synthetic(2000, 1)
        spread = {}
        for alike in (0.0, 0.15, 5.0):
            found = demand.draw(traces, 8000.0, 1, alike)
            place = traces.mean(axis=1)[:, np.newaxis] < found.used.mean(axis=1)
            rank = place.mean(axis=0)
            spread[alike] = np.mean([rank[found.project == one].std()
                                     for one in np.unique(found.project)])
        self.assertLess(spread[0.0], 0.01)
        self.assertTrue(0.05 < spread[0.15] < 0.2, spread)
        self.assertGreater(spread[5.0], 0.25)
