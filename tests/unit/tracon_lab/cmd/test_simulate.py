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

import csv
import functools
import json
from unittest import mock

from tests.unit import command_line
from tests.unit import folder
from tracon_lab.cmd import simulate_run
from tracon_lab.cmd import simulate_tune
from tracon_lab.models import dataset
from tracon_lab.simulator import experiment

_REQUIRED = {'scheduler', 'machines', 'mix', 'objective', 'lambda', 'speedup', 'io_boost',
             'normalised_throughput', 'distance_to_optimum', 'scheduling_seconds', 'rho',
             'interval_95', 'ceiling', 'occupied_slots'}


class SimulateCase(folder.FolderCase):

    def rows(self, *arguments):
        code, out, err = command_line.run('simulate', *arguments, '-f', 'json')
        self.assertEqual(0, code, err)
        rows = json.loads(out)
        for row in rows:
            self.assertLessEqual(_REQUIRED, set(row))
        return rows


class TestFigures(SimulateCase):
    """Figures from a small data centre; tests/long draws more of them."""

    figures = ('table1',)
    words = ('Published:', '<svg')

    def test_figures(self):
        output = self.folder / 'figures'
        rows = self.rows('figures', '--figures', ','.join(self.figures), '--runs', '1', '--hours',
                         '0.2', '--largest', '8', '--processes', '1', '--output', str(output))
        self.assertEqual(set(self.figures), {row['figure'] for row in rows})
        for name in self.figures:
            self.assertEqual(b'\x89PNG', (output / f'figure-{name}.png').read_bytes()[:4])
            with (output / f'figure-{name}.csv').open() as file:
                self.assertEqual(sum(row['figure'] == name for row in rows),
                                 len(list(csv.DictReader(file))))
        page = (output / 'figures.html').read_text()
        for text in self.words:
            self.assertIn(text, page)


class TestSimulateCommands(SimulateCase):

    def test_static(self):
        rows = {row['scheduler']: row for row in self.rows(
            'static', '--machines', '16', '--runs', '2', '--processes', '1')}
        self.assertEqual({'FIFO-packed', 'FIFO-spread', 'MIOS', 'MIBS', 'MIBS_8', 'MIX_8',
                          'matching', 'optimum'}, set(rows))
        self.assertEqual(0.0, rows['optimum']['distance_to_optimum'])
        self.assertEqual(1.0, rows['FIFO-spread']['speedup'])
        self.assertNotEqual(1.0, rows['FIFO-packed']['speedup'])
        for row in rows.values():
            self.assertAlmostEqual(rows['optimum']['speedup'], row['ceiling'])
        self.assertTrue(all(row['distance_to_optimum'] >= -1e-9 for row in rows.values()))
        self.assertIsNone(rows['MIOS']['lambda'])

    def test_the_papers_table_1(self):
        found = {ranks: {row['scheduler']: row for row in self.rows(
            'static', '--truth', 'table1', '--calc-ranks', ranks, '--machines', '64', '--runs',
            '2', '--processes', '1', '--schedulers', 'FIFO-spread,MIBS,optimum')}
            for ranks in '37'}
        self.assertEqual('table1', found['3']['MIBS']['host_type'])
        self.assertAlmostEqual(found['3']['optimum']['speedup'], found['3']['MIBS']['speedup'])
        self.assertNotEqual(found['3']['MIBS']['speedup'], found['7']['MIBS']['speedup'])

    def test_one_vm_a_host_is_a_row_of_the_stream(self):
        rows = {row['scheduler']: row for row in self.rows(
            'dynamic', '--machines', '8', '--rate', '20', '--hours', '1', '--runs', '2',
            '--processes', '1')}
        self.assertLessEqual(rows['FIFO-single']['occupied_slots'], 0.5)
        self.assertGreater(rows['FIFO-spread']['occupied_slots'], 0.9)
        self.assertGreater(rows['FIFO-spread']['ceiling'], 1.0)

    def test_tune(self):
        # As the command would be called; its entry point is known after installation only.
        command = simulate_tune.Tune(mock.Mock(), None)
        arguments = command.get_parser('tune').parse_args([
            '--machines', '8', '--rate', '10', '--hours', '0.2', '--runs', '2', '--choice-runs',
            '1', '--mix', 'medium', '--processes', '1', '-f', 'json'])
        columns, rows = command.take_action(arguments)
        self.assertEqual({'same-core-raw-disk', 'shared-slow-device'},
                         {row[columns.index('shown_on')] for row in rows})
        self.assertEqual({'', 'default', 'same-core-raw-disk', 'shared-slow-device'},
                         {row[columns.index('chosen_on')] for row in rows})
        arguments.host_type = ['same-core-raw-disk']
        with self.assertRaisesRegex(Exception, 'name two at least'):
            command.take_action(arguments)
        arguments.host_type = ['same-core-raw-disk', 'table1']
        world = simulate_tune._setup(arguments, 'table1')
        self.assertEqual((experiment.PUBLISHED, 'truth'), (world.truth, world.model))

    def test_progress_reaches_the_end_of_many_cases(self):
        setup = experiment.Setup((), ('table1',), model='truth', truth=experiment.PUBLISHED)
        cases = [experiment.Case(setup, 'FIFO-spread', 8, seed=seed) for seed in range(30)]
        with mock.patch.object(simulate_run.progresses.Progress, 'report',
                               autospec=True) as report:
            found = simulate_run.run(cases, 2)
        self.assertEqual(cases, [one.case for one in found])
        ended = [call.args[1] for call in report.call_args_list if call.args[2] == 1.0]
        self.assertEqual((30, 30), (len(ended), len(set(ended))))

    def test_the_same_on_one_process_and_on_two(self):
        # Nothing has to be fitted for the paper's table, and the processes are the same.
        arguments = ('dynamic', '--truth', 'table1', '--machines', '8', '--rate', '2,20',
                     '--hours', '1', '--runs', '2', '--schedulers', 'FIFO-spread,MIX_8,PRICED_8')
        one, two = (self.rows(*arguments, '--processes', number) for number in '12')
        self.assertEqual(6, len(one))
        for row in (*one, *two):
            # What took time on this machine.
            del row['scheduling_seconds'], row['event_seconds']
        self.assertEqual(one, two)

    def test_an_error_comes_out_of_a_process_as_it_was(self):
        code, out, err = command_line.run('simulate', 'trace', 'nowhere.csv')
        self.assertEqual((2, ''), (code, out), err)
        self.assertIn('nowhere.csv', err)
        self.assertIn('cannot be read', err)

    def test_a_public_trace_is_converted_and_simulated(self):
        public, made = self.folder / 'vmtable.csv', str(self.folder / 'trace.csv')
        public.write_text(''.join(
            f'v{number},s,d,{number * 60},{number * 60 + 600},90,{number % 10},95,Unknown,2,4\n'
            for number in range(40)))
        code, _out, err = command_line.run('simulate', 'convert', 'azure', str(public), '--output',
                                           made)
        self.assertEqual(0, code, err)
        self.assertIn('40 tasks', err)
        rows = self.rows('trace', made, '--machines', '8', '--hours', '2', '--schedulers',
                         'FIFO-spread,PRICED_8', '--processes', '1')
        for row in rows:
            self.assertEqual(('trace', 0.0), (row['mix'], row['distance_to_optimum']))

    def test_bad_input_is_named(self):
        trace = self.folder / 'bad.csv'
        trace.write_text('arrival_seconds,class,solo_seconds\n-5,calc,\n')
        read_once = mock.patch.object(dataset, 'read', functools.cache(dataset.read))
        for arguments, said in (
                (('static', '--machines', '0'), "--machines: '0': expected a whole number of at"),
                (('static', '--solo-minutes', '1e300'), "--solo-minutes: '1e300': expected a fin"),
                (('dynamic', '--audit-minutes', '1e-9'), 'audit_minutes=1e-09: expected 0'),
                (('dynamic', '--audit-minutes', 'nan'), "--audit-minutes: 'nan': expected a fini"),
                (('dynamic', '--pause', '-1'), "--pause: '-1': expected a finite number from 0"),
                (('dynamic', '--hours', 'inf'), "--hours: 'inf': expected a finite number"),
                (('static', '--host-type', 'x=1_5'), "NAME=PARTS: PARTS is '1_5': expected a"),
                (('static', '--schedulers', 'LIFO'), "scheduler='LIFO'"),
                (('static', '--schedulers', 'PRICED_8'), 'append :threshold=-inf'),
                (('static', '--schedulers', 'FIFO-single'), 'lets tasks wait'),
                (('static', '--schedulers', 'MIX_8-full'), "scheduler='MIX_8-full'"),
                (('static', '--truth', 'table2'), "--truth='table2'"),
                (('static', '--truth', 'table1', '--calc-ranks', '8'), 'calc_ranks=8'),
                (('static', '--truth', 'table1', '--model', 'nlm'), "--model='nlm'"),
                (('static', '--truth', 'spindle', '--calc-ranks', '4'), '--calc-ranks=4'),
                (('static', '--truth', 'table1', '--host-type', 'x'), '--host-type'),
                (('static', '--truth', 'table1', '--slots', '2,2'), '--slots'),
                (('dynamic', '--truth', 'table1', '--audit-minutes', '5'), 'audit_minutes'),
                (('convert', 'azure', 'x.csv', '--truth', 'table1'), "--truth='table1'"),
                (('static', '--mix', 'dense'), "mix='dense'"),
                (('static', '--sigma', '-1'), "--sigma: '-1': expected"),
                (('static', '--objective', 'CPU'), "objective='CPU'"),
                (('static', '--machines', ''), '--machines'),
                (('static', '--runs', '0'), "--runs: '0': expected"),
                (('static', '--slots', '2,3'), '--slots'),
                (('static', '--slots', '0'), "--slots: '0': expected"),
                (('static', '--slots', '60'), 'fewer slots'),
                (('static', '--host-type', 'moon'), "host_type='moon'"),
                (('static', '--host-type', 'same-core-raw-disk=x'), '--host-type'),
                (('static', '--measurements', 'nowhere.csv'), 'nowhere.csv'),
                (('dynamic', '--rate', '0'), '--rate=0.0'),
                (('dynamic', '--rate', 'nan'), "--rate: 'nan': expected"),
                (('dynamic', '--rate', ','), '--rate'),
                (('dynamic', '--rate', '1e9'), 'are more than 1e+09'),
                (('static', '--sigma', '1e-200'), 'sigma=1e-200'),
                (('static', '--plan', 'nope'), "plan='nope'"),
                (('trace', str(trace), '--hours', '-1'), "--hours: '-1': expected"),
                (('dynamic', '--hours', '-1'), "--hours: '-1': expected"),
                (('dynamic', '--schedulers', 'optimum'), "scheduler='optimum'"),
                (('dynamic', '--audit-minutes', '-1'), 'audit'),
                (('trace', str(trace)), "line 2, column arrival_seconds is '-5'"),
                (('trace', 'nowhere.csv'), 'cannot be read'),
                (('convert', 'azure', 'nowhere.csv'), 'cannot be read'),
                (('figures', '--figures', '7'), '--figures'),
                (('figures', '--figures', '4', '--largest', '1', '--output',
                  str(self.folder / 'x')), 'largest=1')):
            alone = () if arguments[0] == 'convert' else ('--processes', '1')
            with self.subTest(arguments=arguments), read_once:
                code, out, err = command_line.run('simulate', *arguments, *alone)
                self.assertEqual((2, ''), (code, out), err)
                self.assertIn(said, err)
                self.assertNotIn('Traceback', err)
