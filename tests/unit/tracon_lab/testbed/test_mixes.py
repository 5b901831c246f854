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

"""Mixes of guests: planned, read and judged (what was counted is synthetic, by events)."""

import csv
import dataclasses
import io
import pathlib
import tempfile
import unittest

import numpy as np

from tracon_lab.simulator import loops
from tracon_lab.testbed import mixes
from tracon_watcher import errors

CORES = 2
USED = {'calc-30': 0.3, 'calc-70': 0.7, 'calc-90': 0.9}


def row(mix, guest, vcpus, program, whole=1.0):
    """Return what is counted of a guest all of whose time takes ``whole`` times as long."""
    used = USED[program]
    working = 1.0 + (whole - 1.0) / used
    return mixes.Row(mix, guest, vcpus, program, 10.0, 20.0 * vcpus / whole,
                     20.0 * vcpus / whole * working * used / 20.0, used * vcpus / whole,
                     used * vcpus * (working - 1.0) / whole, 0.0, 0.0, 0.0, 0.0, 0.0)


def counted():
    """Return rows of three programs alone, and of twelve mixes of them."""
    rows = [row(mixes.ALONE, 'target', vcpus, name) for vcpus in (1, 2) for name in USED]
    rng = np.random.default_rng(1)
    sizes = np.resize(mixes.SIZES, 12)
    names = rng.choice(list(USED), (12, 8))
    vcpus = np.where(np.arange(8) < sizes[:, np.newaxis], rng.integers(1, 3, (12, 8)), 0)
    whole = loops.slowdowns(np.full(12, float(CORES)), vcpus, np.vectorize(USED.get)(names),
                            np.ones((12, 8)), 8000, 1)
    for mix, place in zip(*np.nonzero(vcpus)):
        rows.append(row(str(mix), f'g{place}', int(vcpus[mix, place]), str(names[mix, place]),
                        float(whole[mix, place])))
    return rows


class MixesTest(unittest.TestCase):

    def test_plan(self):
        found = mixes.planned(20, 1)
        self.assertEqual([2, 4, 6, 8, 2], [len(one) for one in found[:5]])
        for members in found:
            self.assertEqual(len(members), len({guest for guest, _name in members}))
            for guest, name in members:
                unit = mixes.PROGRAMS[name]
                self.assertTrue(mixes.VCPUS[guest] == 1 or not (unit.reads or unit.writes))
        self.assertEqual(found, mixes.planned(20, 1))
        self.assertNotEqual(found, mixes.planned(20, 2))

    def test_law_and_counters_tell_what_was_measured(self):
        judged = mixes.judge(counted(), CORES)
        self.assertGreater(judged.measured.max(), 2.0)
        found = {name: np.abs(values / judged.measured - 1.0).mean()
                 for name, values in judged.predicted.items()}
        self.assertLess(found[mixes.LAW], 0.05)
        # Of loops that think it is not seen from outside that they would do more.
        self.assertLess(found[mixes.ESTIMATED], found[mixes.CONSTANT])
        self.assertLess(found[mixes.COUNTERS], found[mixes.CONSTANT])
        table = mixes.table(judged)
        self.assertEqual([(mixes.LAW, 'all'), (mixes.LAW, '2 guests')],
                         [one[:2] for one in table[:2]])
        self.assertGreater(table[0][-1], 0.7)
        # Units of work take as much CPU time as alone.
        np.testing.assert_allclose(judged.waits, judged.measured)

    def test_what_was_measured(self):
        cores, rows = mixes.read(mixes.PACKAGED)
        judged = mixes.judge(rows, cores)
        self.assertEqual((20, 100), (len({row.mix for row in judged.rows}), len(judged.rows)))
        self.assertFalse(np.isnan(judged.measured).any())
        table = {one[:2]: one for one in mixes.table(judged)}
        # The table in doc/source/admin/accuracy.rst says more.
        computing = table[mixes.LAW, 'computing, 1 vCPU']
        self.assertLess(computing[7], 0.15)
        self.assertLess(table[mixes.LAW, 'all'][4], table[mixes.CONSTANT, 'all'][4])

    def test_file_is_read_as_it_was_written(self):
        rows = counted()
        text = io.StringIO()
        text.write('# cores: 2\n')
        writer = csv.writer(text)
        writer.writerow(mixes.COLUMNS)
        writer.writerows(dataclasses.astuple(one) for one in rows)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'mixes.csv')
            path.write_text(text.getvalue())
            self.assertEqual((2, rows), mixes.read(path))
            path.write_text(text.getvalue().replace('calc-30,10.0', 'calc-30,ten', 1))
            with self.assertRaisesRegex(errors.InvalidDocument, "line 3, column .* is 'ten': exp"):
                mixes.read(path)
            path.write_text(text.getvalue().replace('cores: 2', 'cores: 2_0'))
            with self.assertRaisesRegex(errors.InvalidDocument, "header cores is '2_0': expected"):
                mixes.read(path)
