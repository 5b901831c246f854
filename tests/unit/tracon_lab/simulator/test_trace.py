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

import io

import numpy as np

from tests.unit import folder
from tracon_lab.simulator import convert
from tracon_lab.simulator import trace
from tracon_watcher import errors

CLASSES = ('calm', 'loud')
SOLO = np.array([100.0, 50.0])
HEAD = 'arrival_seconds,class,solo_seconds\n'
AZURE = ('v1,s1,d1,0,3600,99.0,80.5,97.0,Unknown,4,32\n'
         'v2,s1,d1,300,900,20.0,5.1,12.0,Interactive,2,4\n'
         'v3,s2,d2,600,600,20.0,5.1,12.0,Delay-insensitive,2,4\n'
         'v4,s2,d2,100,1000,50.0,33.0,40.0,Delay-insensitive,>24,>64\n')
ALIBABA = ('M1,10,j_1,1,Terminated,86400,86430,100.0,0.5\n'
           'M2,1,j_1,1,Failed,,,,\n'
           'R3_2,4,j_2,1,Terminated,86399,86500,50.0,0.2\n')


class TestTrace(folder.FolderCase):

    def read(self, text, binary=False):
        path = self.folder / 'trace.csv'
        path.write_bytes(text if binary else text.encode())
        return trace.read(path, CLASSES, SOLO)

    def test_times_classes_and_work(self):
        source, last = self.read(HEAD + '0,loud,\n1.5,calm,250\n1.5,loud,25\n')
        chunk = next(iter(source.chunks()))
        self.assertEqual(([0.0, 1.5, 1.5], [1, 0, 1], [1.0, 2.5, 0.5], 1.5),
                         (chunk.times, chunk.classes, chunk.work, last))

    def test_columns_may_stand_anywhere_beside_others(self):
        source, _last = self.read('note,solo_seconds,class,arrival_seconds\nx,,calm,3\n')
        self.assertEqual([3.0], next(iter(source.chunks())).times)

    def test_bad_input_names_line_column_value_and_remedy(self):
        for text, said in (
                (HEAD + '-1,calm,\n', "line 2, column arrival_seconds is '-1': expected a finite"),
                (HEAD + '0,calm,\nnan,calm,\n', "line 3, column arrival_seconds is 'nan'"),
                (HEAD + '5,calm,\n4,calm,\n', 'the line before has 5: sort'),
                (HEAD + '0,storm,\n', "class is 'storm': expected one of calm, loud"),
                (HEAD + '0,calm,-3\n', "solo_seconds is '-3'"),
                (HEAD + '0,calm,0\n', 'a task takes some time'),
                (HEAD + '0,calm,\n1,ca', 'truncated'),
                (HEAD + '0,calm\n', 'expected 3 fields, found 2'),
                (HEAD, 'has no rows'), (HEAD.replace(',', ';'), 'separated by semicolons'),
                (HEAD + '1_0,calm,\n', "line 2, column arrival_seconds is '1_0'"),
                ('', 'is missing'),
                ('arrival_seconds,class\n0,calm\n', 'solo_seconds is missing')):
            with self.subTest(text=text):
                with self.assertRaises(errors.InvalidDocument) as caught:
                    self.read(text)
                self.assertIn(said, str(caught.exception))
        with self.assertRaisesRegex(errors.InvalidDocument, 'cannot be read'):
            self.read(b'\xff\xfe\x00', binary=True)
        with self.assertRaisesRegex(errors.InvalidDocument, 'cannot be read'):
            trace.read(self.folder / 'nowhere.csv', CLASSES, SOLO)

    def converted(self, text, layout):
        path = self.folder / 'public.csv'
        path.write_text(text)
        out = io.StringIO()
        counts = convert.convert(path, layout, CLASSES, np.array([0.1, 0.9]), out)
        return counts, out.getvalue()

    def test_azure(self):
        # Sorted by creation, shifted to 0; by average CPU v2 < v4 < v1. v3 lived no time at all.
        for head in ('', ','.join(convert.LAYOUTS['azure'].columns) + '\n'):
            counts, text = self.converted(head + AZURE, 'azure')
            self.assertEqual((3, 1), counts)
            self.assertEqual(HEAD + '0,loud,3600\n100,calm,900\n300,calm,600\n', text)
            self.read(text)

    def test_alibaba(self):
        counts, text = self.converted(ALIBABA, 'alibaba')
        self.assertEqual((2, 1), counts)
        self.assertEqual(HEAD + '0,calm,101\n1,loud,30\n', text)
        self.read(text)

    def test_another_table_is_refused(self):
        for text, said in (('a,b,c\n', 'expected 11 fields'), ('', 'none has a beginning')):
            with self.assertRaises(errors.InvalidDocument) as caught:
                self.converted(text, 'azure')
            self.assertIn(said, str(caught.exception))
        with self.assertRaisesRegex(errors.InvalidOption, 'azure, alibaba'):
            self.converted(AZURE, 'google')
