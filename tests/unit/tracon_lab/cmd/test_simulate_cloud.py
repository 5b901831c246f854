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

import argparse
import concurrent.futures
import pathlib
import tempfile
import unittest
from unittest import mock

import numpy as np

from tests.unit import command_line
from tracon_lab.cmd import simulate_cloud
from tracon_lab.simulated_cloud import demand
from tracon_watcher import errors

#: By who runs the cloud: synthetic P99 at 4 and 8 vCPUs for each core.
P99 = {'stock Nova': (1.1, 1.5), 'all': (1.0, 1.3)}


class Threads(concurrent.futures.ThreadPoolExecutor):
    """Stands where processes are started."""

    def __init__(self, *_given, **_named):
        super().__init__(1)


def synthetic_day(given):
    p99 = P99[given['name']][given['density'] > 5] + 0.01 * given['day']
    return 100.0, 1.0, p99, 0.0, 0.0, 0, 0, 0, 1.0, 2.0, 300.0


def run(*arguments, read=command_line.rows):
    """Run the command, and return its rows, or what ``read`` returns of it."""
    with mock.patch.object(concurrent.futures, 'ProcessPoolExecutor', Threads):
        return read(simulate_cloud.Cloud, *arguments)


class CloudTest(unittest.TestCase):

    def rows(self, *arguments, **read):
        with mock.patch.object(simulate_cloud, '_simulate', synthetic_day):
            return run('--vcpus-per-core', '4,8', '--by', 'stock Nova,all', *arguments, **read)

    def test_means_and_intervals_over_days(self):
        rows = self.rows('--days', '3')
        self.assertEqual([(4.0, 'stock Nova'), (4.0, 'all'), (8.0, 'stock Nova'), (8.0, 'all')],
                         [(row['vcpus_per_core'], row['run_by']) for row in rows])
        self.assertAlmostEqual(1.11, rows[0]['p99'])
        # Student's t of two degrees of freedom, 4.303, times 0.01 over the root of 3.
        self.assertAlmostEqual(0.02484, rows[0]['p99_ci'], delta=1e-4)
        # Both ways have the same VMs: what is compared is the same each day.
        self.assertAlmostEqual(-0.1, rows[1]['p99_change'])
        self.assertAlmostEqual(0.0, rows[1]['p99_change_ci'])
        self.assertAlmostEqual(100.0 / 3.0, rows[1]['more_vms_percent'])
        self.assertAlmostEqual(0.0, rows[1]['more_vms_percent_ci'])
        self.assertEqual((2.0, 300.0), (rows[0]['wall_seconds'], rows[0]['peak_mib']))

    def test_a_table_has_intervals_beside_means(self):
        self.assertIn('1.11 ± 0.02', self.rows('--days', '3', read=command_line.output))
        self.assertEqual(['1390 ± 20', '1.5'], simulate_cloud._cells(
            np.array([1390.0, 1.5]), np.array([24.8, np.nan]),
            argparse.Namespace(formatter='table')))

    def test_how_many_more_vms(self):
        rows = self.rows()
        # "all" has 1.1, the P99 of stock Nova at 4, at a third of the way from 4 to 8.
        self.assertAlmostEqual(100.0 / 3.0, rows[1]['more_vms_percent'])
        self.assertIsNone(rows[0]['more_vms_percent'])
        self.assertIsNone(rows[3]['more_vms_percent'])
        self.assertIsNone(rows[0]['p99_ci'])

    def test_plot(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'p99.svg')
            self.rows('--plot', str(path))
            self.assertIn('stock Nova', ''.join(path.read_text().split('<!-- ')))

    def test_a_small_cloud(self):
        with mock.patch.object(demand, 'STEPS', 6):
            [row] = run('--hosts', '2', '--cores', '2', '--vcpus-per-core', '2', '--by',
                        'stock Nova')
        self.assertGreater(row['vms'], 0)
        self.assertTrue(1.0 <= row['mean'] <= row['p99'] < 3.0, row)

    def test_vms_of_a_real_cloud(self):
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), 'vms.csv')
        path.write_text('\n'.join([
            'vm,begins,project,vcpus,' + ','.join(f'm{5 * step}' for step in range(6)),
            *(f'{vm},2026-01-01,p,{vcpus},' + ','.join(['30'] * 6)
              for vm, vcpus in (('a', 2), ('b', 4), ('c', 2)))]) + '\n')
        with mock.patch.object(demand, 'STEPS', 6):
            [row] = run('--vms', path, '--cores', '4', '--vcpus-per-core', '1', '--by',
                        'stock Nova')
            self.assertEqual(3.0, row['vms'])
            for options, said in (
                    (('--cores', '2'), '--cores=2.*4 vCPUs'), (('--days', '2'), 'days is 1'),
                    (('--hosts', '3'), "--hosts='3'"), (('--traces', path), '--traces')):
                with self.subTest(said), self.assertRaisesRegex(errors.TraconError, said):
                    run('--vms', path, '--by', 'stock Nova', *options)

    def test_bad_options(self):
        with self.assertRaisesRegex(errors.InvalidOption, "--by.*magic.*stock Nova"):
            run('--by', 'magic')
