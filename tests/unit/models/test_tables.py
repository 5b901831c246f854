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
from tests.unit.models import synthetic
from tracon_watcher.cmd import model
from tracon_watcher import errors
from tracon_watcher.models import dataset
from tracon_watcher.models import points as measured
from tracon_watcher.models import replay
from tracon_watcher.models import tables
from tracon_watcher.models import unknown_programs


class TestTables(folder.FolderCase):

    ablated = 1

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.datasets = [cls.made(place, 50, 60) for place in range(len(tables.MOVE))]
        # For tables that fit many models.
        cls.small = cls.made(0, 8, 15)
        cls.study = tables.Study(cls.datasets[:1], cls.datasets[1:])
        cls.both = tables.Study(cls.datasets)

    @classmethod
    def made(cls, place, generator, backgrounds):
        points = synthetic.build(seed=place, generator=generator, backgrounds=backgrounds,
                                 names=('cpu', 'randread', 'mixed'))
        points = measured.join([points, cls.crowds(points)])
        # On a remote disk each program that does I/O is slowed down twice as much.
        if place:
            factor = np.where(np.isfinite(points.iops_ratio), points.slowdown, 1.0)
            points.slowdown[:] *= factor
            points.iops_ratio[:] /= factor
        path = cls.folder / f'{tables.MOVE[place]}.csv'
        synthetic.write(path, points, tables.MOVE[place])
        return dataset.read(path)

    @staticmethod
    def crowds(points):
        pairs = points.take(points.kind == 'pair')
        names = np.unique(pairs.target)
        slow = {(t, b): s for t, b, s in zip(pairs.target, pairs.background, pairs.slowdown)}
        rows = [(t, a, b) for t in names for a in names for b in names]
        value = np.array([slow[t, a] + slow[t, b] - 1 for t, a, b in rows])
        profile = {t: p for t, p in zip(pairs.target, pairs.target_alone)}
        target = np.array([profile[t] for t, _a, _b in rows])
        return measured.Points(
            points.host_type, np.array(['co-residents'] * len(rows)),
            np.array([t for t, _a, _b in rows]), np.array([f'{a}+{b}' for _t, a, b in rows]),
            target, np.array([profile[a] + profile[b] for _t, a, b in rows]), value,
            np.where(target[:, :2].sum(axis=1) >= 5, 1 / value, np.nan), target)

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
        covered = [row['covered'] for row in rows if row['model'] == 'pairwise'
                   and row['application'] == 'all' and row['tested_on'] == 'cross-validation']
        self.assertEqual(4, len(covered))
        for share in covered:
            self.assertTrue(0.8 < share < 0.99, share)

    def test_a_test_file_of_another_host_type_is_not_asked_of(self):
        self.assertNotIn('file', {row['tested_on'] for row in self.rows('errors', self.study)})

    def test_ablation(self):
        # Each fits many models; tests/long has both host types.
        rows = self.rows('ablation', tables.Study(self.datasets[:self.ablated]))
        self.assertEqual(self.ablated * 2 * 7, len(rows))
        self.assertTrue(np.isnan([row['file'] for row in rows]).all())
        self.assertTrue(all(0 < row['pairs'] < 1 for row in rows))

    def test_both_programs_unknown_beside_baselines(self):
        done = []
        study = tables.Study(self.datasets[:1], report=lambda _part, share: done.append(share))
        rows = self.rows('unknown-programs', study)
        self.assertEqual([(response, name) for response in ('slowdown', 'iops_ratio')
                          for name in ('pairwise', 'law of queueing', 'law, learnt', 'constant',
                                       'no interference')],
                         [(row['response'], row['model']) for row in rows])
        wrong = {(row['response'], row['model']): row['mean_error'] for row in rows}
        known = {row['response']: row['mean_error'] for row in self.rows('errors', study)
                 if (row['model'], row['application'], row['tested_on'])
                 == ('pairwise', 'all', 'pairs')}
        for response in known:
            # Less is known than where the neighbour's or the target's points were fitted.
            self.assertGreaterEqual(wrong[response, 'pairwise'], known[response])
        self.assertEqual(sorted(done), done)
        self.assertEqual(1.0, done[-1])

    def test_unknown_programs_are_in_no_fit(self):
        points = self.study.points[tables.MOVE[0]]
        changed = points.slowdown.copy()
        # Whatever was measured of a program and its neighbour says nothing of the two together.
        either = (points.target == 'cpu') | (points.background == 'cpu')
        changed[either & (points.kind != 'pair')] *= 3.0
        couple = (points.kind == 'pair') & (points.target == 'cpu') & (points.background == 'cpu')
        only = points.take((points.kind != 'pair') | couple)
        other = dataclasses.replace(points, slowdown=changed).take(
            (points.kind != 'pair') | couple)
        first, second = (unknown_programs.unknown_programs(each, 'slowdown')[:3]
                         for each in (only, other))
        self.assertEqual(['pairwise', 'law of queueing', 'law, learnt'],
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

    def test_extremes_of_each_host_type_and_response(self):
        rows = self.rows('extremes')
        self.assertEqual({(host, response) for host in tables.MOVE
                          for response in ('slowdown', 'iops_ratio')},
                         {(row['host_type'], row['response']) for row in rows})

    def test_each_table_also_tells_of_a_file_that_was_not_fitted(self):
        path = self.folder / 'unseen.csv'
        points = synthetic.build(seed=7, generator=4, backgrounds=12,
                                 names=('cpu', 'randread', 'mixed'))
        synthetic.write(path, measured.join([points, self.crowds(points)]), tables.MOVE[0])
        study = tables.Study([self.small], [dataset.read(path)])
        for name in ('errors', 'extremes', 'co-residents'):
            without = tables.TABLES[name].rows(tables.Study([self.small]))
            rows = self.rows(name, study)
            of_file = [row for row in rows if row['tested_on'] == 'file']
            self.assertTrue(of_file, name)
            # ... and tells the same of everything else
            self.assertEqual(str(without), str([tuple(row.values()) for row in rows
                                                if row['tested_on'] != 'file']))
        wrong = {row['rule']: row['mean_error'] for row in rows
                 if row['tested_on'] == 'file' and row['response'] == 'slowdown'}
        self.assertLess(wrong['sum of excess'], 0.1)
        ideas = self.rows('ablation', study)
        self.assertEqual({7}, {sum(row['response'] == response for row in ideas)
                               for response in ('slowdown', 'iops_ratio')})
        self.assertTrue(all(0 < row['file'] < 1 for row in ideas))
        self.assertEqual({'unseen.csv', self.small.name},
                         {row['file'] for row in self.rows('work', study)})

    def test_design_needs_the_settings_of_the_generator(self):
        self.assertEqual([], tables.TABLES['design'].rows(self.both))   # they have other names

    def test_an_event_counts_from_the_move_on(self):
        self.assertEqual(1.0, tables._first_after(100, [100, 130]))
        self.assertEqual(31.0, tables._first_after(100, [40, 130]))
        self.assertTrue(np.isnan(tables._first_after(100, [40])))

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

    def test_co_residents_follow_the_sum_of_excess(self):
        rows = {row['rule']: row for row in self.rows('co-residents')
                if row['response'] == 'slowdown' and row['host_type'] == tables.MOVE[0]}
        self.assertLess(rows['sum of excess']['mean_error'], 0.05)
        self.assertGreater(rows['sum of exponents']['bias'], 0)
        self.assertLess(rows['largest']['bias'], 0)
        self.assertLess(rows['the same, of predicted excess']['mean_error'], 0.2)

    def test_refit(self):
        rows = self.rows('refit')
        self.assertEqual(2 * 3, len(rows))
        last = [row for row in rows if row['points'] == 200]
        self.assertEqual(set(tables.MOVE), {row['used_on'] for row in last})
        self.assertTrue(all(row['slowdown_after'] < row['slowdown_before'] for row in last))
        self.assertEqual([], tables.TABLES['refit'].rows(self.study))

    def test_adaptation(self):
        rows = {row['policy']: row for row in self.rows('adaptation')
                if row['response'] == 'slowdown'}
        self.assertEqual({replay.NOTHING, replay.PAPER, replay.OURS}, set(rows))
        ours = rows[replay.OURS]
        self.assertEqual(0, ours['false_alarms_a_week'])
        self.assertLess(ours['error_41_to_160'], rows[replay.NOTHING]['error_41_to_160'])
        self.assertTrue(0 < ours['changed_after'] <= 40, ours)
