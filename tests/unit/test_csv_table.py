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

"""Tables as people and spreadsheets write them: each fault names line, column, value, remedy."""

import gzip
import math

from tests.unit import folder
from tracon_watcher import csv_table
from tracon_watcher import errors

TEXT = '# cores: 2\n# a remark\nname,size\na,1.5\n\n"b, c",\n'


class TestTable(folder.FolderCase):

    def refused(self, text, said, **how):
        with self.assertRaises(errors.InvalidDocument) as caught:
            csv_table.parse(text, 'x.csv', ('name', 'size'), **how)
        self.assertRegex(str(caught.exception), '^x.csv: ' + said)

    def test_header_columns_and_rows(self):
        found = csv_table.parse(TEXT, 'x.csv')
        self.assertEqual(({'cores': '2'}, 3, ('name', 'size')),
                         (found.header, found.line, found.columns))
        self.assertEqual([(4, 'a', 1.5), (6, 'b, c', 'NaN')], [
            (row.line, row.text('name'), 'NaN' if math.isnan(row.optional('size'))
             else row.number('size')) for row in found.rows])
        self.assertEqual((2.0, ''), (found.fact('cores'), found.rows[0].text('colour')))

    def test_the_same_however_it_is_saved(self):
        expected = [row.fields for row in csv_table.parse(TEXT, 'x.csv').rows]
        mark = '\ufeff' + TEXT
        for name, content in (('mark.csv', mark.encode()),
                              ('dos.csv', mark.replace('\n', '\r\n').encode()),
                              ('packed.csv.gz', gzip.compress(mark.encode()))):
            path = self.folder / name
            path.write_bytes(content)
            found = csv_table.read(path, 'name another')
            self.assertEqual(expected, [row.fields for row in found.rows], name)
            self.assertEqual(6, found.rows[1].line)

    def test_what_is_no_table(self):
        self.refused('', "line 1, the columns is '': column name, size is missing; add it")
        self.refused('name;size\na;1,5\n', "line 1, the columns is 'name;size': separated by semic"
                     'olons; separate them by commas, and write decimals with a point')
        self.refused('name\tsize\na\t1\n', 'line 1.*separated by tabs')
        self.refused('# x\nname,size,size\n', "line 2, the columns is 'size': stands there twice")
        self.refused('name,size,colour\n', "line 1, the columns is 'colour': unknown column",
                     known=('name', 'size'))
        self.refused('name,size\n', "the rows is 'none'")
        self.refused('name,size\na,1', "line 2 is 'a,1': the file ends within a line: .*copy it",
                     ended='copy it')

    def test_rows_that_are_none(self):
        self.refused('name,size\na,1\n\na\n', "line 4 is 'a': expected 2 fields, found 1")
        self.refused('name,size\n' + 'x' * 200000 + ',1\n', "line 2 is 'field larger than field "
                     r"limit \(131072\)': no CSV; correct the line")
        self.refused('name,size\na,1\n"b,2\nc,3\n', "line 3 is 'unexpected end of data': no CSV")
        self.refused('name,size\na\0,1\n', r"line 2 is 'a\\x00': holds a control character")

    def test_fields_that_are_no_numbers(self):
        row, = csv_table.parse('name,size\na, 1_5\n', 'x.csv').rows
        for read, said in ((row.number, "x.csv: line 2, column size is ' 1_5': expected a finite "
                                        'number of at least 0'),
                           (row.whole, 'expected a whole number of at least 0'),
                           (row.optional, 'expected a finite number')):
            with self.assertRaises(errors.InvalidDocument) as caught:
                read('size')
            self.assertIn(said, str(caught.exception))
        with self.assertRaisesRegex(errors.InvalidDocument, 'x.csv: header cores is None: exp'):
            csv_table.parse('name\na\n', 'x.csv').fact('cores', 1)

    def test_files_that_cannot_be_read(self):
        (self.folder / 'utf16.csv').write_bytes(TEXT.encode('utf-16'))
        for path, said in ((self.folder / 'none.csv', "No such file.*: cannot be read; name it"),
                           (self.folder, "Is a directory': cannot be read; name it"),
                           (self.folder / 'utf16.csv', 'save it in UTF-8')):
            with self.assertRaisesRegex(errors.InvalidDocument, said):
                csv_table.read(path, 'name it')
