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

import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

from tests.unit import command_line
from tests.unit import folder
from tests.unit.tracon_lab.models import synthetic
from tracon_lab.cmd import packaged


class TestModelCommands(folder.FolderCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.measurements = str(cls.folder / 'synthetic.csv')
        points = synthetic.build(generator=6, backgrounds=24, names=('cpu', 'randread', 'mixed'))
        synthetic.write(cls.measurements, points, 'synthetic, same core')

    def test_fit_then_show(self):
        output = self.folder / 'models'
        code, out, err = command_line.run(
            'model', 'fit', self.measurements, '--output', str(output), '-f', 'json')
        self.assertEqual(0, code, err)
        rows = json.loads(out)
        self.assertEqual(3 * 5, len(rows))
        self.assertEqual({'polynomial', 'weighted_mean'}, {r['form'] for r in rows})
        self.assertEqual('synthetic_same_core-cpu-WMM-slowdown.json',
                         os.path.basename(rows[0]['file']))
        for form in ('polynomial', 'weighted_mean'):
            with self.subTest(form=form):
                name = next(row['file'] for row in rows if row['form'] == form)
                code, out, err = command_line.run('model', 'show', name, '-f', 'json')
                self.assertEqual(0, code, err)
                parts = {row['part'] for row in json.loads(out)}
                self.assertLessEqual({'model', 'training', 'hull', 'errors'}, parts)
                code, out, err = command_line.run('model', 'show', name)
                self.assertIn('synthetic, same core', out)

    def test_evaluate(self):
        code, out, err = command_line.run('model', 'evaluate', self.measurements, '-f', 'json')
        self.assertEqual(0, code, err)
        rows = json.loads(out)
        self.assertEqual(['host_type', 'response', 'application', 'model', 'tested_on',
                          'mean_error', 'standard_deviation', 'points', 'noise_floor'],
                         list(rows[0]))
        self.assertEqual({'cross-validation', 'pairs'}, {row['tested_on'] for row in rows})
        self.assertEqual({'WMM', 'LM', 'NLM', 'NLM without host CPU'},
                         {row['model'] for row in rows})
        self.assertEqual({'slowdown', 'iops_ratio'}, {row['response'] for row in rows})
        self.assertIsInstance(rows[0]['mean_error'], float)

    def test_another_table(self):
        code, out, err = command_line.run('model', 'evaluate', self.measurements, '--table',
                                          'unknown-programs', '-f', 'json')
        self.assertEqual(0, code, err)
        self.assertEqual({'law of queueing', 'law, learnt', 'law, learnt, and NLM', 'constant',
                          'no interference'},
                         {row['model'] for row in json.loads(out)})
        code, out, err = command_line.run(
            'model', 'evaluate', self.measurements, '--table', 'adaptation')
        self.assertEqual(0, code, err)      # of one host type there is no move

    def test_a_file_that_no_model_has_seen(self):
        other = str(self.folder / 'other.csv')
        points = synthetic.build(seed=3, generator=4, backgrounds=5, names=('search', 'cpu'))
        synthetic.write(other, points, 'synthetic, same core')
        code, out, err = command_line.run(
            'model', 'evaluate', self.measurements, '--test', other, '-f', 'json')
        self.assertEqual(0, code, err)
        rows = [row for row in json.loads(out) if row['tested_on'] == 'file']
        # A model of one program has nothing to say of a program that it does not know.
        self.assertEqual({'cpu', 'all'},
                         {row['application'] for row in rows if row['model'] == 'NLM'})
        code, out, err = command_line.run(
            'model', 'evaluate', self.measurements, '--test', self.measurements)
        self.assertEqual(2, code)
        self.assertIn('stands in synthetic.csv as well', err)

    def test_options_of_another_table_are_refused_not_passed_over(self):
        for table, option, value, expected in (
                ('unknown-programs', '--plot', 'x.html', '--plot belongs to the table errors'),
                ('adaptation', '--test', 'other.csv', '--test belongs to the table errors')):
            code, _out, err = command_line.run(
                'model', 'evaluate', self.measurements, '--table', table, option, value)
            self.assertEqual(2, code)
            self.assertIn(expected, err)

    def test_bad_measurements_say_what_is_wrong(self):
        lines = pathlib.Path(self.measurements).read_text().splitlines()

        def written(name, chosen):
            path = self.folder / name
            path.write_text('\n'.join(chosen) + '\n')
            return str(path)
        for path, expected in (
                (written('old.csv', ['# schema: tracon-measurements/9', *lines[1:]]),
                 'header schema is'),
                (written('few.csv', lines[:13]),
                 'a model of an application on synthetic, same core needs at least 10 points'),
                (written('double.csv', [*lines, lines[-1]]), 'stands already in line')):
            for command in (('evaluate',), ('fit', '--output', str(self.folder / 'none'))):
                with self.subTest(path=path, command=command[0]):
                    code, out, err = command_line.run('model', command[0], path, *command[1:])
                    self.assertEqual((2, 1), (code, len(err.splitlines())))
                    self.assertIn(expected, err)
        for name in ('same-core-raw-disk', 'unheard-of'):
            other = written('type.csv', [lines[0], f'# host_type: {name}', *lines[2:]])
            code, out, err = command_line.run(
                'model', 'evaluate', self.measurements, '--test', other)
            self.assertEqual(2, code)
            self.assertIn(f"type.csv: header host_type is '{name}'", err)

    def test_bad_input_is_one_line_and_exit_code_2(self):
        broken = self.folder / 'broken.csv'
        broken.write_text(pathlib.Path(self.measurements).read_text()[:-40])
        edited = self.folder / 'edited.json'
        edited.write_text('{"schema": "tracon-model/2", "form": "spline"}')
        for arguments, expected in (
                (('model', 'evaluate', str(broken)), 'broken.csv: line'),
                (('model', 'fit', str(broken), '--output', str(self.folder / 'x')),
                 'broken.csv: line'),
                (('model', 'fit', self.measurements, '--output', self.measurements),
                 "the file is 'File exists': cannot be"),
                (('model', 'evaluate', self.measurements, '--plot', 'x.pdf'), "--plot='x.pdf'"),
                (('model', 'show', str(edited)), "edited.json: form is 'spline'"),
                (('model', 'show', 'nowhere.json'), 'nowhere.json: the file')):
            with self.subTest(arguments=arguments[:2]):
                code, out, err = command_line.run(*arguments)
                self.assertEqual(2, code)
                self.assertIn(expected, err)
                self.assertNotIn('Traceback', err)

    def test_nothing_measured(self):
        with mock.patch.object(packaged, 'measurements', autospec=True, return_value=[]):
            code, out, err = command_line.run('model', 'evaluate')
        self.assertEqual(2, code)
        self.assertIn('no measurements came with the package', err)


class TestPlot(unittest.TestCase):

    def test_a_page_and_a_picture(self):
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            self.skipTest('matplotlib is not installed')
        from tracon_lab.cmd import model_plot
        from tracon_lab.models import evaluation
        rows = [evaluation.Row('synthetic', 'slowdown', name, which, 'pairs', 0.1, 0.05, 5, 0.03)
                for name in ('cpu', 'all') for which in ('NLM', 'LM')]
        with tempfile.TemporaryDirectory() as folder:
            page, picture = os.path.join(folder, 'a.html'), os.path.join(folder, 'a.png')
            model_plot.draw(rows, page)
            model_plot.draw(rows, picture)
            text = pathlib.Path(page).read_text()
            self.assertIn('<svg', text)
            self.assertNotIn('href="http', text.replace('xmlns:xlink', ''))
            self.assertEqual(b'\x89PNG', pathlib.Path(picture).read_bytes()[:4])
