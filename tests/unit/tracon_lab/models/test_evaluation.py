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
import math
import unittest

import numpy as np

from tests.unit.tracon_lab.models import synthetic
from tracon_lab.models import evaluation
from tracon_lab.models import points as measured
from tracon_lab.models import validation


NAMES = ('cpu', 'randread', 'mixed')


class TestEvaluate(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.points = synthetic.build(generator=15, names=NAMES)
        cls.rows = evaluation.evaluate(cls.points)

    def row(self, **wanted):
        found = [row for row in self.rows
                 if all(getattr(row, name) == value for name, value in wanted.items())]
        self.assertEqual(1, len(found), wanted)
        return found[0]

    def test_a_row_a_response_application_model_and_test(self):
        keys = [(r.response, r.application, r.model, r.tested_on) for r in self.rows]
        self.assertEqual(len(keys), len(set(keys)))
        for application in NAMES:
            for model in evaluation.PAPER:
                row = self.row(response='slowdown', application=application, model=model,
                               tested_on='cross-validation')
                self.assertEqual(30, row.points)
                pair = self.row(response='slowdown', application=application, model=model,
                                tested_on='pairs')
                self.assertEqual(3, pair.points)
        self.assertFalse([r for r in self.rows
                          if (r.response, r.application) == ('iops_ratio', 'cpu')])

    def test_the_row_of_all_is_over_the_same_points_for_all_models(self):
        counts = {(r.response, r.tested_on): set() for r in self.rows}
        for row in self.rows:
            if row.application == evaluation.ALL:
                counts[row.response, row.tested_on].add(row.points)
        self.assertEqual({1}, {len(found) for found in counts.values()})

    def test_noise_floor_is_that_of_the_noise_put_in(self):
        # Of normal noise with deviation 0.04 the mean absolute value is 0.032.
        row = self.row(response='slowdown', application='all', model='NLM',
                       tested_on='cross-validation')
        self.assertAlmostEqual(0.032, row.noise_floor, delta=0.008)

    def test_nothing_repeated_leaves_the_floor_undefined(self):
        kept = self.points.take(self.points.kind != 'repeat')
        floor = validation.noise(kept, 'slowdown')
        self.assertTrue(np.isnan(floor).all())

    def test_pairs_change_no_other_row(self):
        points = synthetic.build(generator=6, backgrounds=12, names=NAMES[:2])
        pairs = points.kind == 'pair'
        other = dataclasses.replace(points, slowdown=np.where(pairs, 7.0, points.slowdown),
                                    iops_ratio=np.where(pairs, 0.1, points.iops_ratio))
        one, two = ([r for r in evaluation.evaluate(found) if r.tested_on != 'pairs']
                    for found in (points, other))
        self.assertGreater(len(one), 15)
        self.assertEqual([repr(row) for row in one], [repr(row) for row in two])

    def test_order_is_by_test_with_the_sum_last(self):
        tests = [r.tested_on for r in evaluation.ordered(self.rows) if r.response == 'slowdown']
        places = [evaluation.TESTS.index(one) for one in tests]
        self.assertEqual(sorted(places), places)
        self.assertEqual(2, len(set(places)))
        last = [r.application for r in evaluation.ordered(self.rows)
                if r.response == 'slowdown' and r.tested_on == 'pairs'][-1]
        self.assertEqual('all', last)

    def test_without_host_cpu_nothing_depends_on_it(self):
        # The paper's models of one program see its background's host CPU alone.
        other = dataclasses.replace(self.points, background_alone=np.array(
            self.points.background_alone))
        other.background_alone[:, 3] = np.random.default_rng(1).uniform(0, 0.5, len(other))
        changed = {}
        for row in evaluation.evaluate(other):
            key = (row.response, row.application, row.tested_on)
            before = self.row(response=row.response, application=row.application,
                              model=row.model, tested_on=row.tested_on)
            changed.setdefault(row.model, {})[key] = repr(row) != repr(before)
        self.assertFalse(any(changed['NLM without host CPU'].values()))
        self.assertTrue(any(changed['NLM'].values()))

    def test_several_beside_the_target_are_no_test_of_a_model_of_one(self):
        other = synthetic.build(seed=2, names=NAMES[:2], backgrounds=5, generator=2)
        crowd = other.take(other.kind == 'pair')
        crowd = dataclasses.replace(crowd, kind=np.array(['co-residents'] * len(crowd)))
        counts = [sum(row.points for row in evaluation.evaluate(self.points, test=test)
                      if row.tested_on == 'file' and row.model == 'NLM')
                  for test in (other, measured.join([other, crowd]))]
        self.assertEqual(counts[0], counts[1])

    def test_collections_have_their_own_noise(self):
        repeated = self.points.kind == 'repeat'
        noisy = np.array(self.points.slowdown)
        rows = np.flatnonzero(repeated & (self.points.target == NAMES[0]))
        noisy[rows] *= np.exp(np.random.default_rng(1).normal(0, 0.3, len(rows)))
        found = {row.application: row.noise_floor for row in evaluation.evaluate(
            dataclasses.replace(self.points, slowdown=noisy),
            collections={NAMES[0]: 'loud', NAMES[1]: 'still', NAMES[2]: 'still'})
            if (row.response, row.model, row.tested_on) == ('slowdown', 'NLM', 'pairs')}
        self.assertGreater(found['all of loud'], 2 * found['all of still'])
        self.assertTrue(found['all of still'] < found['all'] < found['all of loud'])

    def test_errors_are_relative_to_what_was_measured(self):
        found = validation.Errors.of(np.array([1.1, 1.8]), np.array([1.0, 2.0]))
        self.assertAlmostEqual(0.1, found.mean)
        self.assertAlmostEqual(0.0, found.deviation)
        self.assertTrue(math.isnan(validation.Errors.of(np.empty(0), np.empty(0)).mean))
