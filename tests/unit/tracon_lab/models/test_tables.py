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

"""The tables, of synthetic points that look like measurements."""

import dataclasses

import numpy as np

from tests.unit import folder
from tests.unit.tracon_lab.models import synthetic
from tracon_lab.cmd import model
from tracon_lab.models import adaptation
from tracon_lab.models import dataset
from tracon_lab.models import points as measured
from tracon_lab.models import tables
from tracon_lab.models import unknown_programs
from tracon_watcher import errors


class TestTables(folder.FolderCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.datasets = [cls.made(place, 10, 70) for place in range(len(tables.MOVE))]
        cls.study = tables.Study(cls.datasets[:1], cls.datasets[1:])
        cls.both = tables.Study(cls.datasets)

    @classmethod
    def made(cls, place, generator, backgrounds):
        points = synthetic.build(seed=place, generator=generator, backgrounds=backgrounds,
                                 names=('cpu', 'randread', 'mixed'))
        # On the other disk each program that does I/O is slowed down twice as much.
        if place:
            factor = np.where(np.isfinite(points.iops_ratio), points.slowdown, 1.0)
            points.slowdown[:] *= factor
            points.iops_ratio[:] /= factor
        path = cls.folder / f'{tables.MOVE[place]}.csv'
        synthetic.write(path, points, tables.MOVE[place])
        return dataset.read(path)

    def rows(self, name, study=None):
        table = tables.TABLES[name]
        rows = table.rows(study or self.both)
        self.assertEqual({len(table.columns)}, {len(row) for row in rows})
        return [dict(zip(table.columns, row)) for row in rows]

    def test_commands_name_them_all(self):
        self.assertEqual(model._TABLES, tuple(tables.TABLES))

    def test_errors(self):
        rows = self.rows('errors')
        self.assertEqual(set(tables.MOVE), {row['host_type'] for row in rows})
        self.assertTrue(all(0 < row['mean_error'] < 1 for row in rows))

    def test_a_test_file_of_another_host_type_is_not_asked_of(self):
        self.assertNotIn('file', {row['tested_on'] for row in self.rows('errors', self.study)})

    def test_both_programs_unknown_beside_baselines(self):
        rows = self.rows('unknown-programs', tables.Study(self.datasets[:1]))
        self.assertEqual([(response, name) for response in ('slowdown', 'iops_ratio')
                          for name in ('law of queueing', 'law, learnt', 'law, learnt, and NLM',
                                       'constant', 'no interference')],
                         [(row['response'], row['model']) for row in rows])
        wrong = {row['model']: row['mean_error'] for row in rows if row['response'] == 'slowdown'}
        self.assertLess(wrong['law, learnt'], wrong['no interference'])

    def test_unknown_programs_teach_the_law_nothing(self):
        points = self.study.points[tables.MOVE[0]]
        # Whatever was measured of a program and its neighbour says nothing of the two together.
        either = (points.target == 'cpu') | (points.background == 'cpu')
        couple = (points.kind == 'pair') & (points.target == 'cpu') & (points.background == 'cpu')
        changed = np.where(either & (points.kind != 'pair'), 3.0, 1.0) * points.slowdown
        first, second = (unknown_programs.unknown_programs(dataclasses.replace(
            points, slowdown=slowdown).take((points.kind != 'pair') | couple))[:3]
            for slowdown in (points.slowdown, changed))
        self.assertEqual(['law of queueing', 'law, learnt', 'law, learnt, and NLM'],
                         [row.model for row in first])
        # A precision of none is NaN, which equals nothing.
        self.assertEqual(str(first), str(second))

    def test_the_law_is_told_of_cores_and_of_waiting_alone(self):
        points = measured.Points(
            'any', np.array(['pair'] * 2), np.array(['cpu', 'disk']), np.array(['disk', 'disk']),
            np.array([[0, 0, 0.8, 0], [100, 0, 0.1, 0.1]]),
            np.array([[100, 0, 0.1, 0.1], [100, 0, 0.1, 0.1]]), *np.ones((2, 2)),
            np.zeros((2, 4)))
        waits = {'disk': 0.7}
        one = unknown_programs.by_law(points, unknown_programs.Host(1, waits, disk=1.0))
        self.assertAlmostEqual(1.1, one[0], delta=0.08)
        # Two that are at the disk for seven tenths of their time each.
        self.assertAlmostEqual(1.5, one[1], delta=0.15)
        two = unknown_programs.by_law(points, unknown_programs.Host(2, waits, disk=2.0))
        np.testing.assert_allclose(two, 1.0, atol=0.03)

    def test_programs_wait_for_what_their_requests_take(self):
        data = self.datasets[0]
        rates = data.points.target_alone[:, :2]
        timed = dataclasses.replace(data, numbers={
            **data.numbers, 'target_alone_read_latency': np.full(len(rates), 0.001),
            'target_alone_write_latency': np.full(len(rates), np.nan)})
        found = dataset.storage_waits([timed])
        reader = data.text['target'] == 'randread'
        self.assertAlmostEqual(0.001 * np.median(rates[reader, 0]), found['randread'])
        self.assertEqual(0.0, found['cpu'])
        # It writes as well, and how long that takes is not known.
        self.assertNotIn('mixed', found)

    def test_breaches_are_counted(self):
        row = unknown_programs._row('some', 'slowdown', 'any', np.array([3.0, 3.0, 1.0, 1.0]),
                                    np.array([2.5, 1.5, 2.2, 1.1]))
        self.assertEqual((2, 0.5, 0.5), (row.breaches, row.precision, row.recall))
        row = unknown_programs._row('some', 'iops_ratio', 'any', np.array([0.4, 0.6]),
                                    np.array([0.3, 0.4]))
        self.assertEqual((2, 1.0, 0.5), (row.breaches, row.precision, row.recall))

    def test_errors_of_a_file_that_was_not_fitted(self):
        path = self.folder / 'unseen.csv'
        points = synthetic.build(seed=7, generator=4, backgrounds=12,
                                 names=('cpu', 'randread', 'mixed'))
        synthetic.write(path, points, tables.MOVE[0])
        without = tables.TABLES['errors'].rows(tables.Study(self.datasets[:1]))
        rows = self.rows('errors', tables.Study(self.datasets[:1], [dataset.read(path)]))
        self.assertTrue([row for row in rows if row['tested_on'] == 'file'])
        # ... and tells the same of everything else
        self.assertEqual(str(without), str([tuple(row.values()) for row in rows
                                            if row['tested_on'] != 'file']))

    def test_collections_have_a_row_each(self):
        collections = [dataclasses.replace(self.datasets[0], header=self.datasets[0].header | {
            'plan': plan}) for plan in ('full', 'applications')]
        names = {part: one.text['target'] == name for part, (one, name) in enumerate(
            zip(collections, ('cpu', 'mixed')))}
        for part, own in names.items():
            keep = own | ((collections[part].text['kind'] == 'generator') & (part == 0))
            collections[part] = dataclasses.replace(
                collections[part],
                text={key: value[keep] for key, value in collections[part].text.items()},
                numbers={key: value[keep] for key, value in collections[part].numbers.items()})
        applications = {row['application'] for row in self.rows(
            'errors', tables.Study(collections))}
        for whole in ('all', 'all of programs', 'all of applications'):
            self.assertIn(whole, applications)

    def test_a_host_type_with_too_few_points_is_an_error_unless_it_may_be_left_out(self):
        few = synthetic.build(generator=1, backgrounds=3, names=('cpu',))
        path = self.folder / 'few.csv'
        synthetic.write(path, few, 'few')
        both = [self.datasets[0], dataset.read(path)]
        with self.assertRaisesRegex(errors.NotEnoughData, 'few'):
            tables.Study(both).errors
        self.assertEqual({tables.MOVE[0]},
                         {row.host_type for row in tables.Study(both, lenient=True).errors})

    def test_adaptation(self):
        rows = {row['policy']: row for row in self.rows('adaptation')
                if row['response'] == 'slowdown'}
        stays, adapts = rows[adaptation.NOTHING], rows[adaptation.PAPER]
        self.assertEqual(3 * 70, adapts['points'])
        self.assertEqual(adapts['alarm_after'] + 159, adapts['refit_after'])
        self.assertEqual(stays['error_until_refit'], adapts['error_until_refit'])
        self.assertGreater(stays['error_until_refit'], 1.5 * stays['error_before'])
        self.assertLess(adapts['error_after_refit'], stays['error_after_refit'])
        self.assertEqual([], tables.TABLES['adaptation'].rows(self.study))
