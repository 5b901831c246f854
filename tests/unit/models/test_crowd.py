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

"""Rules for several co-residents, on points that follow one of them (synthetic)."""

import dataclasses
import unittest

import numpy as np

from tests.unit.models import synthetic
from tracon_watcher.models import crowd
from tracon_watcher.models import points as measured
from tracon_watcher.prediction import pairwise


class Nothing:
    """A model that sees no interference."""

    def predict(self, columns):
        return np.zeros(len(columns))


class TestCompare(unittest.TestCase):

    def build(self, together):
        points = synthetic.build(noise=0.0, names=('cpu', 'randread', 'mixed'))
        slow = {(t, b): s for t, b, s, k in zip(
            points.target, points.background, points.slowdown, points.kind) if k == 'pair'}
        names = ('cpu', 'randread', 'mixed')
        rows = [(t, a, b) for t in names for a in names for b in names]
        count = len(rows)
        each = np.log([[slow[t, a], slow[t, b]] for t, a, b in rows])
        value = np.exp(together(each))
        crowds = measured.Points(
            'synthetic', np.array(['co-residents'] * count), np.array([t for t, _a, _b in rows]),
            np.array([f'{a}+{b}' for _t, a, b in rows]), np.ones((count, 4)),
            np.ones((count, 4)), value, 1 / value, np.ones((count, 4)))
        return measured.join([points, crowds])

    def rows(self, together):
        return {row.rule: row for row in crowd.compare(
            self.build(together), 'slowdown', Nothing())}

    def test_the_rule_that_holds_is_exact(self):
        rows = self.rows(pairwise.together)
        self.assertLess(rows['sum of excess'].mean_error, 1e-9)
        self.assertGreater(rows['sum of exponents'].bias, 0.01)
        self.assertLess(rows['largest'].bias, -0.01)
        self.assertEqual({2}, {row.neighbours for row in rows.values()})
        self.assertEqual({27}, {row.points for row in rows.values()})
        rows = self.rows(lambda each: each.sum(axis=1))
        self.assertLess(rows['sum of exponents'].mean_error, 1e-9)
        self.assertLess(rows['sum of excess'].bias, 0)

    def test_sums_of_characteristics_are_the_models(self):
        rows = self.rows(pairwise.together)
        self.assertLess(rows[crowd.CHARACTERISTICS].bias, -0.1)

    def test_what_the_crowding_is_learnt_from_judges_no_rule(self):
        points = self.build(lambda each: pairwise.together(each, 0.3))
        settings = ['gen-c040-r0-w0', 'gen-c070-r0-w0']
        single = points.take(np.flatnonzero(points.kind == 'background')[:2])
        single = dataclasses.replace(single, background=np.array(settings),
                                     target=np.array(['cpu'] * 2))
        crowd_of_them = points.take(np.flatnonzero(points.kind == 'co-residents')[:1])
        crowd_of_them = dataclasses.replace(
            crowd_of_them, target=np.array(['cpu']), background=np.array(['+'.join(settings)]),
            slowdown=np.exp(pairwise.together(np.log(single.slowdown), 0.3))[None])
        together = measured.join([points, single, crowd_of_them])
        self.assertAlmostEqual(0.3, crowd.fitted_crowding(together, 'slowdown'), places=3)
        rows = {row.rule: row for row in crowd.compare(together, 'slowdown', Nothing())}
        self.assertEqual({27}, {row.points for row in rows.values()})
        self.assertLess(rows[crowd.CROWDING].mean_error, 1e-4)
        self.assertLess(rows['sum of excess'].bias, -0.01)

    def test_neighbours_never_met_alone_leave_a_point_out(self):
        points = self.build(pairwise.together)
        stranger = points.take(points.kind == 'co-residents')
        stranger.background[0] = 'cpu+stranger'
        rows = crowd.compare(measured.join(
            [points.take(points.kind != 'co-residents'), stranger]), 'slowdown', Nothing())
        self.assertEqual({26}, {row.points for row in rows})

    def test_crowding_is_learnt_from_settings_of_the_generator_only(self):
        alone = {'p': 0.9, 'q': 0.5}
        settings = {'gen-c040-r0-w0': 0.4, 'gen-c070-r0-w0': 0.7}

        def row(kind, target, background, exponent):
            value = np.exp([exponent])
            four = np.ones((1, 4))
            return measured.Points('synthetic', np.array([kind]), np.array([target]),
                                   np.array([background]), four, four, value, 1 / value, four)
        rows = [row('background', target, name, f * g)
                for target, f in alone.items() for name, g in settings.items()]
        rows += [row('pair', 'p', 'q', 0.5), row('pair', 'p', 'p', 0.6)]
        for target, f in alone.items():
            each = np.array([f * g for g in settings.values()])
            rows.append(row('co-residents', target, 'gen-c040-r0-w0+gen-c070-r0-w0',
                            float(pairwise.together(each, 0.3))))
        # programs follow another rule, and are not asked
        rows.append(row('co-residents', 'p', 'q+p', 5.0))
        # nor are repeats, which tell the noise and nothing else
        rows.append(row('repeat', 'p', 'gen-c040-r0-w0', 0.1))
        points = measured.join(rows)
        self.assertAlmostEqual(0.3, crowd.fitted_crowding(points, 'slowdown'), places=3)
        self.assertEqual(0.0, crowd.fitted_crowding(
            points.take(points.kind != 'co-residents'), 'slowdown'))

    def test_crowding_is_the_least_squares_of_exponents(self):
        settings = ('gen-c040-r0-w0', 'gen-c070-r0-w0')
        each = np.array([0.5, 0.5])
        actual = [float(pairwise.together(each, crowding)) for crowding in (0.1, 0.1, 0.7)]

        def row(kind, target, background, exponent):
            value = np.exp([exponent])
            four = np.ones((1, 4))
            return measured.Points('synthetic', np.array([kind]), np.array([target]),
                                   np.array([background]), four, four, value, 1 / value, four)
        points = measured.join([
            row('background', f'p{target}', name, exponent)
            for target in range(3) for name, exponent in zip(settings, each, strict=True)] + [
            row('co-residents', f'p{target}', '+'.join(settings), exponent)
            for target, exponent in enumerate(actual)])
        found = crowd.fitted_crowding(points, 'slowdown')
        # The same neighbours three times: least squares are where the mean exponent is.
        self.assertAlmostEqual(np.mean(actual), float(pairwise.together(each, found)), places=4)
