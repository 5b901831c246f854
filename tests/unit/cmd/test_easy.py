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

"""``tracon easy``: from a synthetic query log to workers, and input that is refused."""

import argparse
import contextlib
import io
import unittest

from tests.unit import command_line
from tests.unit import folder
from tracon_watcher.cmd import app
from tracon_watcher.cmd import easy
from tracon_watcher import errors

LOG = 'query,cpu_seconds,rows_scanned,table,segment,rows,age_days,fraction\n'
SEGMENTS = 'segment,table,rows,age_days,worker\n'


def log(ages=range(1, 41), table='views'):
    """Return rows of a synthetic log, with one query for each segment.

    A row costs 1e-6 (1 + 1 / age) CPU seconds; each of 1000 rows is scanned 6 / age times.
    """
    lines = []
    for age in ages:
        seconds = 1e-6 * (1.0 + 1.0 / age) * 6000.0 / age
        lines.append(f'{table}{age},{seconds:.12g},{6000.0 / age:.12g},{table},{table}-{age},1000,'
                     f'{age},0.5\n')
    return ''.join(lines)


class EasyCase(folder.OwnFolderCase):

    def setUp(self):
        super().setUp()
        self.model = self.folder / 'model.json'

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding='utf-8')
        return path


class TestFit(EasyCase):

    def fit(self, text, *arguments):
        return command_line.rows(
            easy.Fit, self.write('log.csv', text), '-o', self.model, *arguments)

    def test_curves(self):
        rows = self.fit(LOG + log() + log(table='jobs'), '--hours', '12')
        self.assertEqual([('views', 'cpu_seconds_per_row'), ('views', 'scans_per_day'),
                          ('jobs', 'cpu_seconds_per_row'), ('jobs', 'scans_per_day')],
                         [(row['table'], row['curve']) for row in rows])
        for row in rows:
            self.assertLess(row['error_percent'], 0.1)
        models = easy.read_model(str(self.model))
        # 6 scans of each row in half a day, at age 1.
        self.assertAlmostEqual(12.0, float(models['jobs'].scans(1.0)), 3)
        self.assertAlmostEqual(2e-6, float(models['jobs'].cpu_per_row(1.0)), 10)
        self.assertEqual((1.0, 90.0), (models['views'].youngest, models['views'].expiry))

    def test_a_segment_without_query_counts(self):
        text = LOG + log(range(1, 20))
        before = self.fit(text)[1]
        after = self.fit(text + ''.join(f',,,views,old-{age},1000,{age},\n'
                                        for age in range(20, 60)))[1]
        self.assertEqual((19, 59), (before['segments'], after['segments']))
        models = easy.read_model(str(self.model))
        self.assertLess(float(models['views'].scans(80.0)), 0.5)

    def test_input_that_is_refused(self):
        one = 'q,1,100,views,s,1000,1,1\n'
        for text, words in (
                (one + 'p,1,100,views,s,1000,1,1.5\n', "line 3, column fraction is '1.5'"),
                (one + 'p,1,100,views,s,1001,1,1\n', "line 3, column segment is 's': rows or age"),
                (one + one, "line 3, column query is 'q': an earlier row has this segment"),
                (one + 'q,2,100,views,t,1000,1,1\n', "line 3, column query is 'q'"),
                ('q,1,100,views,s,1000,0,1\n', "column age_days is '0': expected a finite number"),
                ('q,1e13,100,views,s,1000,1,1\n', "column cpu_seconds is '1e13'"),
                ('q,x,100,views,s,1000,1,1\n', "column cpu_seconds is 'x'"),
                ('q,1,100,,s,1000,1,1\n', "column table is ''"),
                (',,,views,s,1000,1,\n', 'column query .*the log has no query'),
                (log(range(1, 3)), "table is 'views': .*at least 3 points, and there are 2")):
            with self.subTest(words), self.assertRaisesRegex(errors.InvalidDocument, words):
                self.fit(LOG + text)
        with self.assertRaisesRegex(errors.InvalidDocument, 'column fraction is missing'):
            self.fit(LOG.replace(',fraction', '') + one)
        with self.assertRaisesRegex(errors.InvalidDocument, 'expiry_days=0.5: expected more'):
            self.fit(LOG + log(), '--expiry-days', '0.5')
        self.assertFalse(self.model.exists())


class TestPlace(EasyCase):

    def setUp(self):
        super().setUp()
        command_line.rows(
            easy.Fit, self.write('log.csv', LOG + log() + log(table='jobs')), '-o', self.model)

    def place(self, segments, workers='worker\na\nb\nc\n', *arguments):
        return command_line.rows(easy.Place, '--model', self.model, '--segments',
                                 self.write('segments.csv', SEGMENTS + segments), '--workers',
                                 self.write('workers.csv', workers), *arguments)

    def test_a_new_worker_does_not_get_all(self):
        """The empty worker gets the first; it is dearer than the one with old segments then."""
        old = ''.join(f'v{age},views,1000,{age},{"ab"[age % 2]}\n' for age in range(60, 71))
        rows = self.place(old + 'n1,views,1000,1,\nn2,views,1000,1,\nn3,jobs,1000,1,\n')
        self.assertEqual([('n1', 'c'), ('n2', 'b'), ('n3', 'a')],
                         [(row['segment'], row['worker']) for row in rows])
        self.assertGreater(rows[0]['cpu_seconds'], 0)

    def test_replicas(self):
        rows = self.place('o,views,1000,2,b\no,views,1000,2,a\nn,views,1000,1,\n',
                          'worker\na\nb\nc\n', '--replicas', 2)
        self.assertEqual([('n', 'c'), ('n', 'a')],
                         [(row['segment'], row['worker']) for row in rows])
        with self.assertRaisesRegex(errors.InvalidOption, 'replicas=4: expected 1 to 3 workers'):
            self.place('n,views,1000,1,\n', 'worker\na\nb\nc\n', '--replicas', 4)

    def test_table_weight(self):
        segments = 'j,jobs,1500,1,a\nv,views,1000,1,b\nn,views,1000,1,\n'
        for weight, worker in ((0, 'b'), (10, 'a')):
            rows = self.place(segments, 'worker\na\nb\n', '--table-weight', weight)
            self.assertEqual(worker, rows[0]['worker'])

    def test_input_that_is_refused(self):
        for segments, words in (
                ('n,other,1,1,\n', "line 2, column table is 'other': the model knows views, jobs"),
                ('n,views,1,1,d\n', "line 2, column worker is 'd': no such worker"),
                ('n,views,0,1,\n', "line 2, column rows is '0'"),
                ('n,views,1,-1,\n', "line 2, column age_days is '-1'"),
                (',views,1,1,\n', "line 2, column segment is ''"),
                ('n,views,1,1,\nn,views,1,1,\n', "line 3, column segment is 'n'"),
                ('n,views,1,1,a\nn,views,1,1,a\n', "line 3, column segment is 'n'"),
                ('n,views,1,1,a\nn,views,1,1,\n', "line 3, column segment is 'n'"),
                ('n,views,1,1,\nn,views,1,1,a\n', "line 3, column segment is 'n'"),
                ('n,views,1,1,a\nn,views,2,1,b\n', "line 3, column segment is 'n'")):
            with self.subTest(words), self.assertRaisesRegex(errors.InvalidDocument, words):
                self.place(segments)
        for workers in ('worker\na\na\n', 'worker,zone\na,x\n,y\n'):
            with self.assertRaisesRegex(errors.InvalidDocument, 'line 3, column worker is'):
                self.place('n,views,1,1,\n', workers)

    def test_models_that_are_refused(self):
        text = self.model.read_text(encoding='utf-8')
        for old, new, words in (
                ('"expiry_days": 90.0', '"expiry_days": 91.0', 'checksum .*changed after it was'),
                ('"expiry_days": 90.0', '"expiry_days": "x"', "expiry_days is 'x'"),
                ('tracon-segment-load/1', 'tracon-segment-load/2', 'schema is'),
                ('{', '[', 'no valid JSON')):
            self.model.write_text(text.replace(old, new, 1), encoding='utf-8')
            with self.subTest(words), self.assertRaisesRegex(errors.InvalidDocument, words):
                self.place('n,views,1,1,\n')

    def test_exit_status(self):
        with contextlib.redirect_stderr(io.StringIO()) as stderr:
            status = app.main(['easy', 'place', '--model', str(self.folder / 'no'), '--segments',
                               'no', '--workers', 'no'])
        self.assertEqual(app.EXIT_BAD_INPUT, status)
        self.assertIn('tracon easy fit', stderr.getvalue())


class TestParsers(unittest.TestCase):

    def test_numbers_out_of_range(self):
        parser = easy.Place(app.TraconApp(), None).get_parser('')
        needed = ['--model', 'm', '--segments', 's', '--workers', 'w']
        self.assertIsInstance(parser.parse_args(needed), argparse.Namespace)
        for option, value in (('--replicas', '0'), ('--table-weight', '-1')):
            with contextlib.redirect_stderr(io.StringIO()) as stderr, self.assertRaises(
                    SystemExit):
                parser.parse_args([*needed, option, value])
            self.assertIn(value, stderr.getvalue())
