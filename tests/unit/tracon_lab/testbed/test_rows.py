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
import math
import pathlib
import tempfile
import unittest

from tracon_lab.models import dataset
from tracon_lab.testbed import errors
from tracon_lab.testbed import observation
from tracon_lab.testbed import rows


def observed(reads=100.0, writes=0.0, guest=0.5):
    return observation.Observation(
        reads, writes, guest, 0.1, 0.2, 0.001 if reads else math.nan,
        0.001 if writes else math.nan, int(2 * (reads + writes)))


def side(name, time_per_unit=0.01, **kwargs):
    return rows.Side(name, 200, time_per_unit, observed(**kwargs))


def taken(at=1000.0):
    return rows.Taken(at, 2.0, 0.01, 0.2, 0.0, 3e-4, 3e-4, 3e-4, 1)


def header(**changed):
    return {'schema': dataset.SCHEMA, 'host_type': 'synthetic', 'accelerator': 'tcg',
            'plan': 'small', 'seed': '1', **changed}


def solo(name, at, time_per_unit=0.01, repetition=0, **kwargs):
    alone = side(name, time_per_unit, **kwargs)
    return rows.row('solo/' + name, 'solo', repetition, alone, None, taken(at),
                    rows.Solo(at, alone), None)


def pair(target, background, at, time_per_unit=0.02, repetition=0):
    return rows.row('pair/%s/%s' % (target, background), 'pair', repetition,
                    side(target, time_per_unit), side(background), taken(at),
                    rows.Solo(0, side(target)), side(background))


class TestRow(unittest.TestCase):

    def test_slowdown_and_iops_ratio(self):
        found = rows.row('p', 'pair', 0, side('a', 0.03, reads=50.0), side('b'), taken(),
                         rows.Solo(0, side('a', 0.01)), side('b'))
        self.assertEqual(tuple(dataset.COLUMNS), tuple(found))
        self.assertAlmostEqual(3.0, float(found['slowdown']))
        self.assertAlmostEqual(0.5, float(found['iops_ratio']))
        self.assertEqual('0.2', found['background_vcpu_delay'])

    def test_iops_ratio_is_undefined_for_a_program_without_io(self):
        quiet = side('calc', reads=1.0)
        found = rows.row('p', 'pair', 0, quiet, side('b'), taken(), rows.Solo(0, quiet),
                         side('b'))
        self.assertEqual('', found['iops_ratio'])

    def test_latency_is_undefined_without_requests(self):
        self.assertEqual('', solo('a', 0)['target_write_latency'])
        self.assertEqual('0.001', solo('a', 0)['target_read_latency'])

    def test_a_solo_row_has_no_background(self):
        found = solo('a', 0)
        self.assertEqual('', found['background'])
        self.assertEqual('', found['background_alone_guest_cpu'])
        self.assertEqual('1', found['slowdown'])


class TestFile(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), 'synthetic.csv')
        self.file = rows.File(self.path)
        self.file.begin(header())
        self.file.append(solo('a', 0.0), solo('b', 0.0))
        self.file.append(pair('a', 'b', 10.0), pair('b', 'a', 10.0))

    def test_models_can_read_it(self):
        found = dataset.read(self.path)
        self.assertEqual('synthetic', found.host_type)
        self.assertEqual(4, len(found.points))

    def test_a_new_process_knows_what_is_done(self):
        again = rows.File(self.path)
        again.begin(header())
        self.assertEqual({('solo/a', 0), ('solo/b', 0), ('pair/a/b', 0), ('pair/b/a', 0)},
                         again.done())

    def test_a_row_that_was_being_written_is_dropped(self):
        text = self.path.read_text()
        self.path.write_text(text[:-30])
        again = rows.File(self.path)
        self.assertNotIn(('pair/b/a', 0), again.done())
        again.append(pair('b', 'a', 11.0))
        self.assertEqual(4, len(dataset.read(self.path).points))

    def test_another_run_is_refused(self):
        for key, value in (('host_type', 'other'), ('seed', '2'), ('accelerator', 'kvm')):
            with self.assertRaisesRegex(errors.TestbedError, '%s .*, not %s' % (key, value)):
                rows.File(self.path).begin(header(**{key: value}))

    def test_other_columns_are_refused(self):
        text = self.path.read_text().replace('time_per_unit,', 'unit_time,')
        self.path.write_text(text)
        with self.assertRaisesRegex(errors.TestbedError, 'other columns'):
            rows.File(self.path)

    def completed(self):
        self.file.complete()
        self.assertEqual(header(), rows.File(self.path).header)
        return {(r['point'], r['repetition']): r for r in rows.File(self.path).rows}

    def test_completed_with_the_mean_of_the_solo_windows_around(self):
        self.file.append(solo('a', 12.0, 0.016, repetition=1, guest=0.75))
        found = self.completed()
        first = found['pair/a/b', '0']
        self.assertAlmostEqual(0.013, float(first['solo_time_per_unit']))
        self.assertAlmostEqual(0.02 / 0.013, float(first['slowdown']), places=4)
        self.assertEqual('0.625', first['target_alone_guest_cpu'])
        self.assertEqual('0.625', found['pair/b/a', '0']['background_alone_guest_cpu'])
        self.assertEqual('1', found['solo/a', '0']['slowdown'])
        self.assertEqual('1', found['solo/a', '1']['slowdown'])

    def test_a_far_solo_window_does_not_count(self):
        self.file.append(pair('a', 'b', 1000.0, repetition=1))
        self.file.append(solo('a', 1010.0, 0.016, repetition=1))
        found = self.completed()
        self.assertAlmostEqual(0.01, float(found['pair/a/b', '0']['solo_time_per_unit']))
        self.assertAlmostEqual(0.016, float(found['pair/a/b', '1']['solo_time_per_unit']))

    def test_completing_twice_changes_nothing(self):
        self.file.append(solo('a', 12.0, 0.016, repetition=1))
        self.assertEqual(self.completed(), self.completed())
