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

"""Which few settings suffice, and who is whose best partner (synthetic points)."""

import dataclasses
import unittest

import numpy as np

from tests.unit.models import synthetic
from tracon_watcher.models import naming
from tracon_watcher.models import partners
from tracon_watcher.models import points as measured
from tracon_watcher.models import subsets


def named(points, rng):
    """Give the settings of synthetic points names as the generator has them."""
    settings = np.unique([name for name in np.concatenate([points.target, points.background])
                          if name.startswith(('generator', 'setting'))])
    names = {name: f'gen-c{place % 101:03}-r{rng.integers(900)}-w{rng.integers(900)}'
             for place, name in enumerate(settings)}
    return dataclasses.replace(
        points, target=np.array([names.get(name, name) for name in points.target]),
        background=np.array([names.get(name, name) for name in points.background]))


class TestNaming(unittest.TestCase):

    def test_what_is_a_setting(self):
        names = np.array(['gen-c050-r20-w0', 'gen-c50-r20-w0', 'gen-c050-r20-w0+calc', 'web', ''])
        self.assertEqual([True, False, False, False, False], naming.generated(names).tolist())
        self.assertEqual((50, 20, 0), naming.setting('gen-c050-r20-w0'))
        self.assertTrue(naming.all_generated('gen-c050-r20-w0+gen-c050-r0-w0'))
        self.assertFalse(naming.all_generated('gen-c050-r20-w0+web'))
        with self.assertRaisesRegex(ValueError, 'web is no setting'):
            naming.setting('web')


class TestSubsets(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.points = named(synthetic.build(generator=20, backgrounds=52, reverse=True,
                                           names=('cpu', 'randread', 'mixed')),
                           np.random.default_rng(1))

    def test_nothing_held_out_is_fitted(self):
        fitted = self.points.defined('slowdown', measured.FITTED)
        names = np.unique(fitted.background[fitted.kind == 'background'])
        chosen = names[:20]
        kept, held = subsets.split(fitted, chosen)
        used = set(kept.target[naming.generated(kept.target)]) | set(
            kept.background[naming.generated(kept.background)])
        self.assertEqual(set(), used - set(chosen))
        self.assertEqual(set(names[20:]), set(held.background))
        self.assertEqual({'background'}, set(held.kind))
        # each chosen setting is there with all programs, in both directions
        self.assertEqual(2 * 20 * 3, len(kept))

    def test_a_file_is_predicted_with_each_subset(self):
        test = synthetic.build(seed=9, generator=3, backgrounds=6, names=('cpu', 'mixed'))
        rows = [dict(zip(subsets.COLUMNS, row))
                for row in subsets.subsets(self.points, 'slowdown', test=test)]
        self.assertTrue(all(0 < row['file_error'] < 1 for row in rows))
        without = [dict(zip(subsets.COLUMNS, row))
                   for row in subsets.subsets(self.points, 'slowdown')]
        self.assertTrue(np.isnan([row['file_error'] for row in without]).all())
        self.assertEqual([row['pair_error'] for row in rows],
                         [row['pair_error'] for row in without])

    def test_rows(self):
        rows = [dict(zip(subsets.COLUMNS, row))
                for row in subsets.subsets(self.points, 'slowdown')]
        self.assertEqual([10, 10, 15, 15, 20, 20, 25, 25, 52],
                         [row['backgrounds'] for row in rows])
        self.assertEqual('all', rows[-1]['chosen'])
        self.assertLess(rows[6]['pair_error'], rows[0]['pair_error'] + 0.02)
        self.assertTrue(all(0 < row['held_out_error'] < 1 for row in rows))
        by_chance = [row['held_out_error'] for row in rows if 'chance' in row['chosen']]
        self.assertLess(by_chance[-1], by_chance[0])

    def test_too_few_settings(self):
        few = named(synthetic.build(generator=5, backgrounds=20), np.random.default_rng(1))
        self.assertEqual([], subsets.subsets(few, 'slowdown'))


class TestPartners(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.points = synthetic.build(names=('cpu', 'randread', 'mixed'), noise=0.0)

    def rows(self, response):
        return [dict(zip(partners.COLUMNS, row))
                for row in partners.partners(self.points, response)]

    def test_the_best_is_the_least_slowdown_and_the_most_iops(self):
        for response, least in (('slowdown', True), ('iops_ratio', False)):
            pairs = self.points.defined(response, ('pair',))
            for row in self.rows(response):
                own = pairs.take(pairs.target == row['application'])
                values = own.response(response)
                self.assertEqual(values.min() if least else values.max(), row['measured_best'])
                self.assertEqual(values.max() if least else values.min(), row['measured_worst'])
                self.assertEqual(values[list(own.background).index(row['predicted_partner'])],
                                 row['measured_with_it'])
                self.assertAlmostEqual(values.mean(), row['measured_mean'])
                self.assertEqual(values[list(own.background).index(row['best_partner'])],
                                 row['measured_best'])

    def test_a_model_that_follows_the_truth_finds_good_partners(self):
        found = [row['measured_with_it'] / row['measured_best'] for row in self.rows('slowdown')
                 if row['model'] == 'pairwise']
        self.assertEqual(3, len(found))
        self.assertLess(max(found), 1.2)

    def test_nothing_without_pairs(self):
        self.assertEqual([], partners.partners(
            self.points.take(self.points.kind != 'pair'), 'slowdown'))
