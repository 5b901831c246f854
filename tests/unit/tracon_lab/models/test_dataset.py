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

import gzip
import os
import re
import shutil
import tempfile
import unittest

import numpy as np

from tests.unit.tracon_lab.models import synthetic
from tracon_lab.models import dataset
from tracon_watcher import errors


class TestRead(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), 'synthetic.csv')
        self.points = synthetic.build(generator=4, backgrounds=4)
        synthetic.write(self.path, self.points)
        with open(self.path, encoding='utf-8') as stream:
            self.lines = stream.read().splitlines()

    def refused(self, expected, lines=None, text=None):
        with open(self.path, 'w', encoding='utf-8') as stream:
            stream.write('\n'.join(lines) + '\n' if text is None else text)
        with self.assertRaises(errors.InvalidDocument) as caught:
            dataset.read(self.path)
        self.assertIn(self.path, str(caught.exception))
        self.assertRegex(str(caught.exception), expected)

    def edited(self, column, value, line=5):
        names, fields = self.lines[3].split(','), self.lines[line].split(',')
        fields[names.index(column)] = value
        return [*self.lines[:line], ','.join(fields), *self.lines[line + 1:]]

    def test_gives_back_what_was_written(self):
        found = dataset.read(self.path)
        self.assertEqual('synthetic', found.host_type)
        self.assertEqual(64, len(found.sha256))
        points = found.points
        np.testing.assert_array_equal(points.kind, self.points.kind)
        np.testing.assert_array_equal(points.slowdown, self.points.slowdown)
        np.testing.assert_array_equal(points.iops_ratio, self.points.iops_ratio)
        np.testing.assert_array_equal(points.target_alone, self.points.target_alone)
        np.testing.assert_array_equal(points.background_alone, self.points.background_alone)

    def test_no_file(self):
        with self.assertRaisesRegex(errors.InvalidDocument, 'nowhere.csv.*cannot be read'):
            dataset.read('nowhere.csv')

    def test_truncated_within_a_line(self):
        self.refused('line .*truncated', text='\n'.join(self.lines)[:-30])

    def test_line_too_short(self):
        self.refused('line 6 .*expected .* fields, found 3',
                     [*self.lines[:5], 'p1,background,cpu', *self.lines[6:]])

    def test_missing_columns(self):
        names = self.lines[3].replace('target_alone_guest_cpu', 'target_cpu')
        self.refused('line 4, the columns.*target_alone_guest_cpu',
                     [*self.lines[:3], names, *self.lines[4:]])

    def test_no_number(self):
        self.refused("line 6, column slowdown is 'nan': expected a finite",
                     self.edited('slowdown', 'nan'))
        self.refused("line 6, column iops_ratio is 'inf'", self.edited('iops_ratio', 'inf'))
        self.refused("line 6, column slowdown is 'fast'", self.edited('slowdown', 'fast'))

    def test_out_of_range(self):
        self.refused("line 6, column background_alone_host_cpu is '-0.2'",
                     self.edited('background_alone_host_cpu', '-0.2'))
        self.refused("line 6, column slowdown is '0'", self.edited('slowdown', '0'))

    def test_gaps(self):
        self.refused("line 6, column target_alone_guest_cpu is ''",
                     self.edited('target_alone_guest_cpu', ''))
        self.refused("line 6, column background is ''", self.edited('background', ''))

    def test_unknown_kind(self):
        self.refused("column kind is 'twin': expected one of solo", self.edited('kind', 'twin'))

    def test_double_point(self):
        self.refused("line 7, column point is 'p1': stands already in line 6",
                     self.edited('point', 'p1', 6))

    def test_header(self):
        self.refused('header schema is None', self.lines[1:])
        self.refused('header host_type is None', [self.lines[0], *self.lines[2:]])

    def test_nothing_in_it(self):
        self.refused("the rows is 'none'", self.lines[:4])
        self.refused('line 1, the columns.* is missing', text='\n')

    def test_compressed(self):
        with open(self.path, 'rb') as plain, gzip.open(self.path + '.gz', 'wb') as packed:
            packed.write(plain.read())
        one, other = dataset.read(self.path), dataset.read(self.path + '.gz')
        self.assertEqual(one.sha256, other.sha256)
        np.testing.assert_array_equal(one.points.slowdown, other.points.slowdown)
        with open(self.path + '.gz', 'r+b') as packed:
            packed.truncate(200)
        with self.assertRaisesRegex(errors.InvalidDocument, 'csv.gz: the file .*cannot be read'):
            dataset.read(self.path + '.gz')

    def test_a_byte_order_mark_is_passed_over(self):
        one = dataset.read(self.path)
        with open(self.path, 'rb') as stream:
            content = stream.read()
        other = self.path.replace('synthetic', 'saved')
        with open(other, 'wb') as stream:
            stream.write(b'\xef\xbb\xbf' + content)
        self.assertEqual(one.sha256, dataset.read(other).sha256)

    def test_a_cell_that_is_too_large(self):
        self.refused(r"line 6 is 'field larger than field limit \(131072\)': no CSV",
                     self.edited('target', 'x' * 200000))

    def test_numbers_are_written_as_json_writes_them(self):
        for text in ('1_5', '１.５', '.5', '+1'):
            self.refused(f"line 6, column slowdown is '{re.escape(text)}': expected a finite",
                         self.edited('slowdown', text))

    def test_a_file_named_twice(self):
        other = self.path.replace('synthetic', 'copy')
        shutil.copy(self.path, other)
        with self.assertRaisesRegex(errors.InvalidDocument,
                                    r'copy\.csv: the file .* stands in synthetic\.csv as well'):
            dataset.read_all([self.path, other])
