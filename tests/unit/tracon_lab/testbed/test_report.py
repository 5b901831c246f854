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

"""The report, of synthetic points that look like measurements."""

import csv
import dataclasses
import html

from tests.unit import folder
from tests.unit.tracon_lab.models import synthetic
from tracon_lab.models import dataset
from tracon_lab.models import tables

try:
    from tracon_lab.testbed import report
except ImportError:         # matplotlib
    report = None


class TestReport(folder.FolderCase):

    def setUp(self):
        super().setUp()
        if report is None:
            self.skipTest('matplotlib is not installed')

    def read(self, name, points, host_type='synthetic'):
        path = self.folder / name
        synthetic.write(path, points, host_type)
        return dataset.read(path)

    def test_all_that_was_measured_and_what_was_not(self):
        measured = self.read('s.csv', synthetic.build(
            generator=12, backgrounds=16, names=('cpu', 'randread', 'mixed')))
        few = self.read('few.csv', synthetic.build(generator=1, backgrounds=3, names=('cpu',)),
                        'too few <to fit>')
        few = dataclasses.replace(few, header=few.header | {
            'command': 'tracon lab measure --output <here>', 'emulated': 'yes: a delay of 2 ms'})
        said = []
        path = report.Report([measured, few], said.append).write(self.folder / 'report')
        text = path.read_text(encoding='utf-8')
        self.assertIn('<svg', text)
        self.assertIn('Fig. 3', text)
        self.assertIn(html.escape('too few <to fit>'), text)
        self.assertIn('<code>tracon lab measure --output &lt;here&gt;</code>', text)
        self.assertIn('Emulated: <b>too few &lt;to fit&gt;</b>, a delay of 2 ms.', text)
        with open(self.folder / 'report' / 'measurements.csv', encoding='utf-8') as stream:
            self.assertEqual(['', 'tracon lab measure --output <here>'],
                             [row['command'] for row in csv.DictReader(stream)])
        # What was not measured is said, not left out.
        self.assertIn('Nothing was measured for this', text)
        self.assertTrue(said[0].startswith('1/'))
        with open(self.folder / 'report' / 'errors.csv', encoding='utf-8') as stream:
            columns, *rows = csv.reader(stream)
        self.assertEqual(tables.TABLES['errors'].columns, tuple(columns))
        study = tables.Study([measured, few], lenient=True)
        first = tables.TABLES['errors'].rows(study)[0]
        self.assertEqual([first[0], first[1], first[2]], rows[0][:3])
        self.assertAlmostEqual(first[columns.index('mean_error')],
                               float(rows[0][columns.index('mean_error')]), places=5)
        self.assertEqual(len(tables.TABLES['errors'].rows(study)), len(rows))

    def test_a_folder_that_cannot_be_made_is_found_out_first(self):
        blocked = self.folder / 'file'
        blocked.write_text('')
        said = []
        with self.assertRaises(OSError):
            report.Report([], said.append).write(blocked / 'report')
        self.assertEqual([], said)
