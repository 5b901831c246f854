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

from tests.unit.tracon_lab.scheduling import synthetic
from tracon_lab.scheduling import catalogue
from tracon_lab.simulator import experiment
from tracon_lab.simulator import figures
from tracon_lab.simulator import results
from tracon_lab.simulator import words
from tracon_watcher import errors

SETUP = experiment.Setup(('file.csv',), ('somewhere',))


def static(scheduler, seed, runtime, iops=1000.0, objective='RT'):
    return experiment.Result(
        experiment.Case(SETUP, scheduler, 8, objective=objective, seed=seed), 16, 16, runtime,
        iops, best_runtime=800.0, best_iops=2000.0, scheduling=0.5)


def dynamic(scheduler, seed, tasks, runtime=200.0):
    return experiment.Result(
        experiment.Case(SETUP, scheduler, 8, rate=10.0, hours=1.0, seed=seed), tasks, 600, runtime,
        1000.0, most=500.0, valued=float(tasks), load=1.2, waited=3.0, events=100, elapsed=0.01)


class TestRows(unittest.TestCase):

    def test_static_ratios_are_against_the_named_fifo_of_the_same_tasks(self):
        rows = {row.scheduler: row for row in results.rows(
            [static('FIFO-packed', 1, 900.0), static('FIFO-packed', 2, 900.0),
             static('FIFO-spread', 1, 1000.0), static('FIFO-spread', 2, 1600.0),
             static('MIOS', 1, 1000.0), static('MIOS', 2, 800.0)])}
        self.assertEqual((1.0, 0.0), (rows['FIFO-spread'].speedup, rows['FIFO-spread'].deviation))
        self.assertAlmostEqual((1.0 + 2.0) / 2, rows['MIOS'].speedup)
        self.assertAlmostEqual(math.sqrt(0.5), rows['MIOS'].deviation)
        # Student's t with one degree of freedom, times the standard error of two.
        self.assertAlmostEqual(12.7062 * math.sqrt(0.5) / math.sqrt(2), rows['MIOS'].interval, 4)
        self.assertAlmostEqual((0.25 + 0.0) / 2, rows['MIOS'].distance)
        self.assertAlmostEqual((1.25 + 2.0) / 2, rows['MIOS'].ceiling)
        self.assertTrue(math.isnan(rows['MIOS'].throughput))
        self.assertEqual(2, rows['MIOS'].runs)

    def test_io_is_to_be_large(self):
        rows = {row.scheduler: row for row in results.rows(
            [static('FIFO-spread', 1, 1.0, 1000.0, 'IO'),
             static('MIX_8', 1, 1.0, 1500.0, 'IO')])}
        self.assertEqual(1.5, rows['MIX_8'].io_boost)
        self.assertEqual(0.25, rows['MIX_8'].distance)
        self.assertEqual(2.0, rows['MIX_8'].ceiling)

    def test_dynamic(self):
        rows = {row.scheduler: row for row in results.rows(
            [dynamic('FIFO-packed', 1, 300), dynamic('FIFO-spread', 1, 400),
             dynamic('PRICED_8', 1, 480, 100.0)])}
        priced = rows['PRICED_8']
        self.assertAlmostEqual(1.2, priced.throughput)
        self.assertAlmostEqual(2.0, priced.speedup)
        self.assertAlmostEqual(1 - 480 / 500, priced.distance)
        self.assertAlmostEqual(500 / 400, priced.ceiling)
        self.assertAlmostEqual(8.0, priced.per_minute)
        self.assertAlmostEqual(1e-4, priced.event_cost)

    def test_what_is_undefined_spoils_no_mean(self):
        nothing = experiment.Result(experiment.Case(SETUP, 'MIOS', 8, rate=1.0, hours=1.0), 0, 0,
                                    math.nan, 0.0, most=0.0, valued=0.0)
        base = dataclasses.replace(nothing, case=dataclasses.replace(
            nothing.case, scheduler='FIFO-spread'))
        row = results.rows([base, nothing])[1]
        for value in (row.throughput, row.speedup, row.io_boost, row.distance):
            self.assertTrue(math.isnan(value))
        # A run in which nothing was completed counts as such.
        rows = results.rows([dynamic('FIFO-spread', 1, 300), dynamic('FIFO-spread', 2, 300),
                             dynamic('MIOS', 1, 300), dynamic('MIOS', 2, 0)])
        self.assertAlmostEqual(0.5, rows[1].throughput)

    def test_without_fifo_ratios_are_undefined(self):
        row = results.rows([dynamic('MIX_8', 1, 480)])[0]
        self.assertTrue(math.isnan(row.throughput))
        self.assertEqual(480 / 60, row.per_minute)


class TestFigures(unittest.TestCase):

    def test_every_figure_has_cases_that_can_be_built_and_a_baseline(self):
        found = figures.all_figures(SETUP, 2, 1, 10.0, 1024)
        self.assertEqual(['4', '8', '9', '10', '11', '12', 'table1', 'sigma', 'cost'],
                         [one.name for one in found])
        for one in found:
            names = {case.scheduler for case in one.cases}
            self.assertIn(results.BASELINE, names, one.name)
            self.assertEqual(len(set(one.cases)), len(one.cases), one.name)
            for name in names - {'optimum'}:
                catalogue.check(name)

    def test_published_numbers_stand_at_their_place(self):
        figure = next(one for one in figures.all_figures(SETUP, 1, 1, 10.0, 1024)
                      if one.name == '8')
        row = results.rows([static('MIBS', 1, 1000.0)])[0]
        found = [[one.value for one in figure.published if one.belongs(figure, at)] for at in (
            row, dataclasses.replace(row, objective='IO', machines=1024),
            dataclasses.replace(row, scheduler='MIX_8'), dataclasses.replace(row, mix='heavy'))]
        self.assertEqual([[1.4], [1.4, 1.5], [], []], found)

    def test_words_tell_where_the_order_does_not_hold(self):
        rows = results.rows(dynamic(name, seed, tasks + 2 * seed) for name, tasks in (
            ('FIFO-spread', 400), ('MIX_8-eager', 410), ('PRICED_8', 380), ('FIFO-single', 200))
            for seed in (1, 2, 3))
        said = ' '.join(words.of_figure('9', rows))
        self.assertIn('PRICED_8 against MIX_8-eager, intervals apart: ahead at none, behind at 10',
                      said)
        self.assertIn('PRICED_8 against FIFO-single, intervals apart: ahead at 10, behind', said)
        self.assertIn('PRICED_8 -5.0 % ± 0.1', said)
        self.assertIn('possible at most +23.8 %', said)
        self.assertIn(words.WHY, said)

    def test_nothing_is_said_of_another_machine_where_the_interference_is_the_papers(self):
        rows = [dataclasses.replace(row, host_type='table1') for row in results.rows(
            dynamic(name, 1, tasks) for name, tasks in (
                ('FIFO-spread', 400), ('MIBS_8', 560), ('MIBS_4', 500)))]
        said = ' '.join(words.of_figure('table1', rows))
        self.assertIn('MIBS_8 against MIBS_4 +12.0 % (published: about +10 %)', said)
        self.assertNotIn(words.WHY, said)

    def test_too_few_machines(self):
        with self.assertRaisesRegex(errors.InvalidOption, 'largest=4'):
            figures.all_figures(SETUP, 1, 1, 1.0, 4)


class TestSetup(unittest.TestCase):

    def test_host_types_alternate_by_their_parts(self):
        setup = experiment.Setup((), ('a', 'b'), (3.0, 1.0), (2, 2))
        self.assertEqual(300, int((setup.hosts(400) == 0).sum()))
        self.assertEqual([2, 1], [int((setup.hosts(3) == kind).sum()) for kind in (0, 1)])

    def test_no_machine_is_refused(self):
        for machines in (0, -3, 10**9):
            with self.assertRaisesRegex(errors.InvalidOption, f'machines={machines}'):
                SETUP.hosts(machines)


class TestCatalogue(unittest.TestCase):

    def test_names_that_are_none(self):
        for name in ('', 'FIFO', 'FIFO-up', 'FIFO-packed-spread', 'MIOS_8', 'MIBS_0', 'MIX',
                     'MIX_8-half', 'LIFO', 'MINMIN', 'MINMIN_8-paired', 'MIBS-eager',
                     'MIBS:wait=1', 'MIBS_8-eager-partial', 'MIBS_8-eager:wait=1',
                     'MIX_8:wait=-1', 'MIX_8:wait=inf', 'MIX_8-paired-paired', 'PRICED_8-eager',
                     'MIOS:wait=1', 'PRICED', 'PRICED_8:price=1', 'PRICED_8:threshold=',
                     'matching_8', 'PRICED_8:threshold=nan', 'MIX_100000'):
            with self.subTest(name=name), self.assertRaises(errors.InvalidOption) as caught:
                catalogue.check(name)
            self.assertIn(repr(name), str(caught.exception))

    def test_a_scheduler_has_the_name_by_which_it_was_built(self):
        performance = synthetic.harmful()
        for name in ('FIFO-single', 'MIOS', 'MIBS', 'MIBS-paired', 'MIBS_8', 'MIX_4-paired-eager',
                     'MINMIN_8-partial:wait=30', 'PRICED_8:threshold=-inf', 'matching'):
            self.assertEqual(name, catalogue.build(name, performance, 'RT').name)

    def test_several_settings_of_one(self):
        catalogue.check('PRICED_8:threshold=-inf:surplus=0.5')
        with self.assertRaises(errors.InvalidOption):
            catalogue.check('PRICED_8:surplus=-inf')
