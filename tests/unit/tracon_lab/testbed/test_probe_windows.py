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

"""How often readings are right, and what they cost, told from windows (synthetic)."""

import csv
import dataclasses
import io
import json
import math
import pathlib
import tempfile
import unittest

import numpy as np

from tracon_lab.testbed import probe_scene
from tracon_lab.testbed import probe_tuning
from tracon_lab.testbed import probe_windows
from tracon_watcher import errors
from tracon_watcher.probe import phases
from tracon_watcher.probe import tuning


def windows(count=30, slower=1.5, phase='memory', seed=1):
    """Return windows of a sensor that takes 40 ms alone, with 3 % deviation.

    The neighbour takes 5 % longer while the sensor works.
    """
    random = np.random.default_rng(seed)
    return [probe_windows.Window(
        phase, scene, 0.04 * random.normal(slower if scene == probe_scene.CONTENDED else 1.0,
                                           0.03), 0.0004, 3.0, 0.3,
        math.nan if scene in (probe_scene.QUIET, probe_windows.BASELINE) else 0.010,
        math.nan if scene in (probe_scene.QUIET, probe_windows.BASELINE)
        else 0.010 * random.normal(1.05, 0.01), '')
        for scene in (*[probe_windows.BASELINE] * 10, *probe_windows.SCENES * count)]


class TableTest(unittest.TestCase):

    def rows(self, found):
        return {row[1]: dict(zip(probe_windows.TABLE, row)) for row in probe_windows.table(found)}

    def test_contention_is_flagged_and_its_control_is_not(self):
        rows = self.rows(windows())
        self.assertEqual(list(probe_windows.SCENES), list(rows))
        self.assertEqual((30, 30, 29), tuple(rows['contended'][name] for name in (
            'Windows', 'Flagged', 'Two in a row')))
        self.assertAlmostEqual(1.5, rows['contended']['Times the baseline'], delta=0.05)
        self.assertLess(rows['control']['Flagged'], 4)
        self.assertEqual(0, rows['quiet']['Two in a row'])
        # The interval of the mean, as published, takes many quiet readings for others.
        self.assertGreater(rows['quiet']['Flagged by the mean\'s interval'],
                           rows['quiet']['Flagged'] + 2)

    def test_intervals_are_exact(self):
        self.assertEqual((0.0, 0.1157), tuple(round(one, 4) for one in probe_windows.share(0, 30)))
        self.assertEqual((0.8843, 1.0), tuple(round(one, 4)
                                              for one in probe_windows.share(30, 30)))
        self.assertEqual((0.0, 1.0), probe_windows.share(0, 0))

    def test_no_reading_is_neither_flagged_nor_quiet(self):
        found = [dataclasses.replace(one, mean=math.nan, half=math.nan, reason='late')
                 if one.scene == probe_scene.CONTENDED and index % 2 else one
                 for index, one in enumerate(windows())]
        row = self.rows(found)['contended']
        self.assertEqual(row['Windows'], row['No reading'] + row['Flagged'])
        self.assertGreater(row['No reading'], 10)

    def test_costs(self):
        (_, busy, average, scene, lost, half, duty), control = probe_windows.costs(
            windows(), 300.0)
        self.assertEqual(('contended', 'control'), (scene, control[3]))
        self.assertAlmostEqual(0.1, busy)
        # The default phase asks for 25 traversals where the windows have 15 of 20 ms.
        self.assertAlmostEqual(25 * 0.02 / 300, average)
        self.assertAlmostEqual(0.05, lost, delta=0.01)
        self.assertLess(half, 0.01)
        self.assertAlmostEqual(lost * average / busy, duty)


class FileTest(unittest.TestCase):

    def test_what_is_written_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'windows.csv'
            with self.assertRaisesRegex(errors.InvalidDocument, 'windows.csv: .*cannot be'):
                probe_windows.read(path)
            out = io.StringIO()
            rows = csv.writer(out)
            rows.writerow(probe_windows.COLUMNS)
            rows.writerows(['' if one != one else one for one in dataclasses.astuple(window)]
                           for window in windows(2))
            path.write_text('# by hand\n' + out.getvalue())
            self.assertEqual([repr(one) for one in windows(2)],
                             [repr(one) for one in probe_windows.read(path)])
            path.write_text('a,b\n1,2\n')
            with self.assertRaisesRegex(errors.InvalidDocument, 'column phase, .* missing'):
                probe_windows.read(path)


class SettingsTest(unittest.TestCase):

    def test_each_phase_has_its_scenes(self):
        self.assertEqual(set(phases.PHASES), set(probe_scene.LOADS))
        for name, setting in probe_windows.SETTINGS.items():
            setting.check(phases.PHASES[name])
            self.assertEqual({probe_scene.CONTENDED, probe_scene.CONTROL},
                             set(probe_scene.LOADS[name]))

    def test_the_tunings_end_with_the_least_that_still_feels_contention(self):
        for name in phases.PHASES:
            with self.subTest(name):
                path = probe_windows.PACKAGED / f'tuning-{name}.json'
                phase, setting = tuning.load(path)
                self.assertEqual(name, phase)
                setting.check(phases.PHASES[name])
                steps = json.loads(path.read_text())['steps']
                self.assertEqual(probe_tuning.STARTS[name], phases.Setting(
                    *(steps[0][part] for part in ('rate', 'seconds', 'amount'))))
                kept = [one for one in steps if one['troubled'] and one['kept']]
                self.assertTrue(all(one['detected'] for one in kept))
                self.assertEqual(dataclasses.astuple(setting), tuple(
                    kept[-1][part] for part in ('rate', 'seconds', 'amount')))
                calm = [one['harmed'] for one in steps if not one['troubled']]
                self.assertEqual([True] * (len(calm) - 1) + [False], calm)
