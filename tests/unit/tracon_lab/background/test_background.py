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

"""Background work beside guests: order of arms, table, limits, configuration, programs."""

import math
import pathlib
import tempfile
import unittest
from unittest import mock

from oslo_config import cfg

from tests.unit import command_line
from tracon_lab.background import comparison
from tracon_lab.background import measurement
from tracon_lab.background import programs
from tracon_lab.background import second_vm
from tracon_lab.background import web_service
from tracon_watcher.background import cgroups
from tracon_watcher.background import regulator
from tracon_watcher.conf import background as options
from tracon_watcher import errors

PROGRAMS = tuple(programs.PROGRAMS)


def windows(*runs):
    """Windows in which all of the foreground is so many times slower in each arm, a run each.

    Background work is done at 0, 4, 2 and 1 units a second, with 1, 2, 1.5 and 1.2 cores in use.
    """
    return {(number, arm): {
        **dict.fromkeys((*comparison.FOREGROUND, comparison.WEB_MEDIAN), 0.01 * slower),
        **dict.fromkeys(PROGRAMS, rate), comparison.CPU_USE: cores}
        for number, factors in enumerate(runs, 1)
        for arm, slower, rate, cores in zip(comparison.ARMS, (1, *factors), (0, 4, 2, 1),
                                            (1.0, 2.0, 1.5, 1.2))}


class PlanTestCase(unittest.TestCase):

    def planned(self, runs, seed):
        return comparison.planned(comparison.ARMS, runs, seed)

    def test_each_arm_is_in_each_place_equally_often(self):
        orders = self.planned(8, 1)
        for place in range(4):
            self.assertEqual(sorted(2 * comparison.ARMS), sorted(one[place] for one in orders))

    def test_orders_are_drawn_again_and_repeat_with_the_seed(self):
        self.assertEqual(self.planned(8, 1), self.planned(8, 1))
        self.assertGreater(len({tuple(map(tuple, self.planned(4, seed)))
                                for seed in range(9)}), 3)

    def test_each_window_is_kept_in_the_order_planned(self):
        counts, reports = [], []
        comparison.measure(comparison.ARMS, 2, 1, lambda arm, run: {arm: float(run)},
                           reports.append, lambda windows: counts.append(len(windows)))
        self.assertEqual([f'run {run}, {arm}: {arm} {run}' for run, order in enumerate(
            self.planned(2, 1), 1) for arm in order], reports)
        self.assertEqual(list(range(1, 9)), counts)


class TableTestCase(unittest.TestCase):

    def rows(self, found):
        return {row[:2]: dict(zip(comparison.TABLE, row, strict=True))
                for row in comparison.table(found)}

    def test_means_and_intervals_over_runs(self):
        rows = self.rows(windows((3, 2, 1), (5, 2, 1.2)))
        slowdown = rows['slowdown of calc', 'ratio']
        self.assertAlmostEqual(4.0, slowdown[comparison.CPUSET])
        # Student's quantile for two runs is 12.7, and their standard error is 1.
        self.assertAlmostEqual(12.706, slowdown['± cpuset only'], 3)
        self.assertAlmostEqual(0.0, slowdown['± static quotas'])
        degradation = rows[comparison.DEGRADATION, '%']
        self.assertAlmostEqual(300.0, degradation[comparison.CPUSET])
        self.assertAlmostEqual(10.0, degradation[comparison.REGULATED])
        self.assertIn('283, 572', degradation['thesis'])
        self.assertAlmostEqual(0.5, rows['work of sort', 'of static quotas'][
            comparison.REGULATED])
        self.assertAlmostEqual(2.0, rows['work, mean', 'of static quotas'][comparison.CPUSET])
        self.assertAlmostEqual(1.0, rows['work of cpu', 'MiB hashed/s'][comparison.REGULATED])
        self.assertAlmostEqual(20.0, rows[comparison.INCREASE, '%'][comparison.REGULATED])

    def test_a_run_that_is_not_whole_is_left_out(self):
        found = windows((3, 2, 1), (5, 2, 1.2))
        del found[2, comparison.STATIC]
        row = self.rows(found)['slowdown of calc', 'ratio']
        self.assertEqual((1, 3.0), (row['runs'], row[comparison.CPUSET]))
        self.assertTrue(math.isnan(row['± cpuset only']))

    def test_work_that_static_quotas_do_not_let_be_done_has_no_ratio(self):
        found = windows((3, 2, 1))
        found[1, comparison.STATIC]['disk'] = 0.0
        row = self.rows(found)['work of disk', 'of static quotas']
        self.assertTrue(math.isnan(row[comparison.REGULATED]))


class FileTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / 'windows.csv'

    def test_windows_come_back_and_the_command_shows_them(self):
        found = windows((3, 2, 1), (5, 2, 1.2))
        comparison.write(self.path, {'cores': '2'}, found)
        self.assertEqual(found, comparison.read(self.path))
        picture = self.path.with_suffix('.svg')
        code, out, err = command_line.run('lab', 'background', str(self.path), '--plot',
                                          str(picture), '-f', 'csv')
        self.assertEqual(0, code, err)
        self.assertIn('slowdown of web T95', out)
        self.assertIn('static quotas', picture.read_text())

    def test_another_arm_is_refused(self):
        self.path.write_text('run,arm,measure,value\n1,other,calc,2\n')
        with self.assertRaisesRegex(errors.InvalidDocument, 'line 2, column arm'):
            comparison.read(self.path)

    def test_the_command_of_the_second_vm_reads_its_own_windows(self):
        found = {(1, setting): {'P50': 0.01, 'P75': 0.02, 'P95': 0.04}
                 for setting in second_vm.SETTINGS}
        comparison.write(self.path, {}, found)
        code, out, err = command_line.run('lab', 'second', 'vm', str(self.path), '-f', 'csv')
        self.assertEqual(0, code, err)
        self.assertIn('140 / 330 / 1140', out)
        code, _out, err = command_line.run('lab', 'background', str(self.path))
        self.assertNotEqual(0, code)
        self.assertIn('expected one of nothing', err)

    def test_without_windows_the_command_says_how_to_measure(self):
        code, _out, err = command_line.run('lab', 'background')
        self.assertNotEqual(0, code)
        self.assertIn('--output', err)


class LimitsTestCase(unittest.TestCase):

    def test_static_quotas_are_half_of_all_together(self):
        found = measurement.limits_of(comparison.STATIC, frozenset({0, 1}), 8e6)
        self.assertEqual(set(measurement.GROUPS), set(found))
        self.assertAlmostEqual(1.0, sum(one.cores for one in found.values()))
        # A half each for reads and for writes.
        self.assertAlmostEqual(2e6, sum(one.rates[regulator.BYTES] for one in found.values()))
        self.assertEqual({(frozenset({0, 1}), False)},
                         {(one.cpus, one.idle) for one in found.values()})

    def test_nothing_pauses_and_cpuset_alone_limits_nothing_else(self):
        for arm, paused in ((comparison.NOTHING, True), (comparison.CPUSET, False)):
            for one in measurement.limits_of(arm, frozenset({0}), 8e6).values():
                self.assertEqual((paused, 1.0, frozenset({0})), (one.paused, one.cores, one.cpus))
                self.assertGreater(min(one.rates.values()), 1e5)


class ConfigurationTestCase(unittest.TestCase):

    def read(self, chosen=measurement.Measurement()):
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
            file.write(measurement.configuration(frozenset({0, 2}), '/dev/vda', 5e8, chosen))
            file.flush()
            conf = cfg.ConfigOpts()
            options.register_opts(conf)
            conf(['--config-file', file.name], project='tracon')
            return conf[options.GROUP.name]

    def test_tracon_background_reads_it(self):
        found = self.read()
        self.assertEqual(list(measurement.GROUPS), found.groups)
        self.assertEqual(frozenset({0, 2}), cgroups.parsed(found.cpus))
        self.assertEqual((500.0, 60, 15), (found.disk_capacity, found.memory_window,
                                           found.processor_window))
        self.assertFalse(found.dry_run)
        self.assertEqual(web_service.CAPACITY, found.network_capacity)

    def test_it_can_learn_sooner_and_have_a_wider_band(self):
        found = self.read(measurement.Measurement(learning=6, factor=2.5))
        self.assertEqual((6, 6, 6, 2.5), (found.memory_window, found.rate_window,
                                          found.processor_window, found.processor_factor))


class ArrivalsTestCase(unittest.TestCase):

    def test_rate_and_work_are_means_and_the_seed_decides(self):
        found = web_service.arrivals(1000.0, 20.0, 1)
        self.assertEqual(found, web_service.arrivals(1000.0, 20.0, 1))
        self.assertNotEqual(found, web_service.arrivals(1000.0, 20.0, 2))
        self.assertAlmostEqual(1.0, len(found) / 20_000, delta=0.03)
        self.assertAlmostEqual(1.0, sum(work for _due, work in found) / len(found)
                               / web_service.WORK, delta=0.03)
        dues = [due for due, _work in found]
        self.assertEqual(sorted(dues), dues)
        self.assertLess(dues[-1], 1000.0)


class SecondVMTestCase(unittest.TestCase):

    def test_percentiles_and_their_ratio_to_no_second_vm(self):
        found = {(run, setting): dict(zip(('P50', 'P75', 'P95'), (
            0.01, 0.02, 0.04 if setting == second_vm.NONE else 0.04 * factor)))
            for run, factor in ((1, 2.0), (2, 4.0)) for setting in second_vm.SETTINGS}
        found[3, second_vm.NONE] = {}       # the run did not end
        rows = {row[:2]: dict(zip(second_vm.TABLE, row, strict=True))
                for row in second_vm.table(found)}
        self.assertEqual(9, len(rows))
        row = rows['PI', 'shared']
        self.assertEqual((2, '64 / 180 / 560'), (row['runs'], row['Zhang, ms']))
        self.assertAlmostEqual(10.0, row['P50, ms'])
        self.assertAlmostEqual(120.0, row['P95, ms'])
        self.assertAlmostEqual(3.0, row['P95, ratio to none'])
        self.assertAlmostEqual(1.0, rows['none', '']['P95, ratio to none'])

    def test_each_setting_has_its_figures_in_the_source(self):
        self.assertEqual(set(second_vm.SETTINGS), set(second_vm.PAPER))


class DiskTestCase(unittest.TestCase):

    def test_a_file_on_no_disk_is_refused(self):
        with self.assertRaisesRegex(errors.TraconError, '--cache'):
            measurement.disk_of(pathlib.Path('/proc/self'))


class ProgramsTestCase(unittest.TestCase):

    def test_a_program_counts_its_work(self):
        with tempfile.TemporaryDirectory() as name, \
                mock.patch.object(programs, '_FILE', 1 << 20), \
                mock.patch.object(programs, '_LINES', 100):
            folder = pathlib.Path(name)
            programs.prepare(folder)
            for program, amount in (('cpu', 1.0), ('sort', 0.1)):
                work = programs.PROGRAMS[program][0](folder)
                self.assertEqual([amount] * 2, [next(work), next(work)])
            lines = (folder / 'background.lines').read_text().splitlines()
            self.assertEqual((100, {64}), (len(lines), set(map(len, lines))))
            self.assertEqual(sorted(lines),
                             (folder / 'background.sorted').read_text().splitlines())

    def test_each_is_in_one_group(self):
        self.assertEqual(sorted(PROGRAMS), sorted(
            name for members in measurement.GROUPS.values() for name in members))
