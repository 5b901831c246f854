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
import os

import numpy as np

from tests.unit import folder
from tests.unit.tracon_lab.models import synthetic
from tracon_lab.models import dataset
from tracon_lab.models import points as measured
from tracon_lab.simulator import truth
from tracon_watcher import errors


def write(folder, points, host_type='synthetic'):
    path = os.path.join(folder, f'{host_type}.csv')
    synthetic.write(path, points, host_type)
    return dataset.read(path)


class TestTruth(folder.FolderCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.points = synthetic.build(generator=10, backgrounds=12)
        cls.data = write(cls.folder, cls.points)
        cls.truth = truth.of([cls.data], 'synthetic')

    def test_a_pair_is_its_row(self):
        rows = np.flatnonzero((self.points.kind == 'pair') & (self.points.target == 'cpu')
                              & (self.points.background == 'mixed'))
        self.assertEqual(1, len(rows))
        slowdown, ratio = self.truth.beside('cpu', 'mixed')
        self.assertAlmostEqual(self.points.slowdown[rows[0]], slowdown)
        self.assertTrue(np.isnan(ratio), 'a program without I/O has no IOPS ratio')
        self.assertAlmostEqual(
            1.0, self.truth.beside('mixed', 'cpu')[1] * self.truth.beside('mixed', 'cpu')[0])

    def test_guests_share_one_core_but_where_they_are_kept_apart(self):
        for host_type, cores in (('synthetic', 1), ('same-core-raw-disk', 1),
                                 ('separate-cores-raw-disk', 2)):
            self.assertEqual(cores, dataclasses.replace(self.truth, host_type=host_type).cores)

    def test_programs_of_different_plans_are_not_mixed(self):
        def of_plan(plan, names):
            points = synthetic.build(generator=8, backgrounds=12, names=names)
            one = write(self.folder, points)
            return dataclasses.replace(one, header={**one.header, 'plan': plan})
        many = of_plan('applications', ('cpu', 'mixed', 'search', 'seqread', 'seqwrite'))
        few = of_plan('another', ('cpu', 'mixed', 'openread'))
        found = truth.of([few, many], 'synthetic')
        self.assertEqual(('cpu', 'mixed', 'search', 'seqread', 'seqwrite'), found.programs)
        preferred = of_plan(truth.PLAN, ('openread', 'randread', 'search'))
        self.assertEqual(('openread', 'randread', 'search'),
                         truth.of([many, preferred, few], 'synthetic').programs)

    def test_several_measurements_of_a_pair_are_averaged(self):
        row = np.flatnonzero(self.points.kind == 'pair')[:1]
        again = self.points.take(row)
        again.slowdown[:] = 9.0
        target, background = str(again.target[0]), str(again.background[0])
        more = write(self.folder, measured.join([self.points, again]))
        found = truth.of([more], 'synthetic')
        self.assertAlmostEqual((9.0 + self.points.slowdown[row[0]]) / 2,
                               found.beside(target, background)[0])
        self.assertEqual(2, found.measurements[found.programs.index(target),
                                               found.programs.index(background)])

    def test_points_that_models_learn_from_do_not_touch_it(self):
        changed = self.points.take(np.arange(len(self.points)))
        changed.slowdown[np.isin(changed.kind, measured.FITTED)] = 77.0
        found = truth.of([write(self.folder, changed)], 'synthetic')
        np.testing.assert_array_equal(self.truth.slowdown, found.slowdown)

    def test_alone_is_one(self):
        self.assertEqual((1.0, 1.0), self.truth.beside('cpu', None))

    def test_profiles_are_measured_alone(self):
        np.testing.assert_allclose([synthetic.PROGRAMS['search']],
                                   self.truth.profiles['search'])

    def test_a_program_without_all_its_pairs_is_left_out(self):
        gap = (self.points.kind == 'pair') & (self.points.target == 'cpu') & (
            self.points.background == 'mixed')
        rest = self.points.take(np.flatnonzero(~gap))
        found = truth.of([write(self.folder, rest)], 'synthetic')
        self.assertEqual(len(self.truth.programs) - 1, len(found.programs))
        self.assertFalse(np.isnan(found.slowdown).any())

    def test_too_few_pairs_are_refused(self):
        few = self.points.take(np.flatnonzero(
            (self.points.kind != 'pair') | (self.points.target == 'cpu')))
        with self.assertRaisesRegex(errors.NotEnoughData, 'host type synthetic'):
            truth.of([write(self.folder, few)], 'synthetic')

    def test_host_types_with_pairs_come_with_most_first(self):
        fewer = write(self.folder, self.points.take(np.flatnonzero(
            (self.points.kind != 'pair') | (self.points.target != 'cpu'))), 'synthetic-2')
        self.assertEqual(['synthetic', 'synthetic-2'], truth.host_types([fewer, self.data]))

    def test_real_devices_come_before_emulated_ones(self):
        fewer = write(self.folder, self.points.take(np.flatnonzero(
            (self.points.kind != 'pair') | (self.points.target != 'cpu'))), 'synthetic-2')
        emulated = dataclasses.replace(self.data, header={**self.data.header,
                                                          'emulated': 'yes: a delay'})
        self.assertEqual(['synthetic-2', 'synthetic'], truth.host_types([emulated, fewer]))

    def test_the_lightest_harms_least(self):
        harm = np.log(self.truth.slowdown).mean(axis=0)
        self.assertEqual(self.truth.programs[int(harm.argmin())], self.truth.lightest_first[0])
        self.assertEqual(self.truth.programs[int(harm.argmax())], self.truth.lightest_first[-1])
