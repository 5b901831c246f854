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
"""Kinds of contention on synthetic readings, node_exporter's answers, training and its faults."""

import http.server
import json
import logging
import math
import pathlib
import signal
import threading
import time
import unittest
from unittest import mock

import numpy as np
import prometheus_client

from tests import opacity
from tests.unit.folder import FolderCase
from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher.tenant import classification
from tracon_watcher.tenant import controller as controllers
from tracon_watcher.tenant import dial
from tracon_watcher.tenant import haproxy
from tracon_watcher.tenant import settings as dial_settings

#: What node_exporter 1.7 says, in part.
ANSWER = '''# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{{cpu="0",mode="idle"}} {idle}
node_cpu_seconds_total{{cpu="0",mode="iowait"}} 3
node_cpu_seconds_total{{cpu="0",mode="irq"}} 1
node_cpu_seconds_total{{cpu="0",mode="softirq"}} 1
node_cpu_seconds_total{{cpu="0",mode="system"}} 10
node_cpu_seconds_total{{cpu="0",mode="user"}} {user}
node_cpu_seconds_total{{cpu="1",mode="nice"}} 2
node_cpu_seconds_total{{cpu="1",mode="steal"}} 5
# TYPE node_memory_MemFree_bytes gauge
node_memory_MemFree_bytes 1e9
# TYPE node_netstat_Tcp_RetransSegs untyped
node_netstat_Tcp_RetransSegs {segments}
'''
#: What each kind does to usr, sys, wai, steal, retransmitted and connect_ms (synthetic).
SIGNS = {'load': (1.0, 1.0, 0.0, 0.0, 0.0, 1.0), 'cpu': (1.0, 1.0, 0.0, 0.3, 0.0, 1.0),
         'memory': (1.8, 1.3, 0.0, 0.0, 0.0, 1.0), 'disk': (1.0, 1.2, 0.3, 0.0, 0.0, 1.0),
         'network': (1.0, 1.0, 0.0, 0.0, 8.0, 30.0)}


def synthetic_runs(number=8, seed=1, intervals=6):
    """Return synthetic runs of each kind at random rates, with 5 % of noise."""
    rng, found = np.random.default_rng(seed), []
    for kind, signs in SIGNS.items():
        for _ in range(number):
            rates = rng.uniform(20, 40) * rng.normal(1, 0.05, intervals)
            noise = rng.normal(1, 0.05, (intervals, 6))
            background = 0.0 if kind == 'load' else rng.choice([0.35, 0.4, 0.5])
            rows = np.array(signs) * noise
            rows[:, 0] *= 0.02 + 0.004 * rates
            rows[:, 1] *= 0.01 + 0.001 * rates
            rows[:, 4] += rng.uniform(0, 1, intervals)
            found.append(classification.Run(
                len(found), kind, background, np.column_stack([rows, rates]),
                20.0 / (1 - rates / 100 - background)))
    return found


class TestCounters(unittest.TestCase):

    def test_by_hand(self):
        found = classification.counters(ANSWER.format(idle=70, user=20, segments=4))
        self.assertEqual([20 + 2, 10 + 1 + 1, 3, 5, 112, 4], found.tolist())

    def test_only_what_is_listed_is_read(self):
        for row in opacity.table():
            if row.source == 'node_exporter':
                self.assertEqual({classification.CPU, classification.SEGMENTS}, row.fields)
                self.assertEqual({'tenant'}, row.rooms)
                return
        self.fail('node_exporter is not in the table')

    def test_something_else(self):
        for text in ('', '<html>', 'node_cpu_seconds_total{mode="user"} x',
                     ANSWER.format(idle=70, user=20, segments='NaN'),
                     'node_cpu_seconds_total{cpu="0",mode="user"} 1\n'):
            with self.subTest(text), self.assertRaises(ValueError):
                classification.counters(text)


class TestExporters(unittest.TestCase):

    def setUp(self):
        outer, self.texts, self.time = self, [], 0.0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                text = outer.texts.pop(0)
                self.send_response(200 if text else 500)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *args):
                pass

        server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.exporters = classification.Exporters(
            {'w1': f'http://127.0.0.1:{server.server_address[1]}/metrics',
             'gone': 'http://127.0.0.1:9/metrics'}, lambda: self.time)

    def sample(self, text):
        self.texts.append(text)
        self.time += 10.0
        return self.exporters.sample()

    def test_rates_restart_and_silence(self):
        first = ANSWER.format(idle=70, user=20, segments=4)
        self.assertEqual({}, self.sample(first))
        found = self.sample(ANSWER.format(idle=76, user=24, segments=24))
        self.assertEqual({'w1': [0.4, 0.0, 0.0, 0.0, 2.0]}, found)
        self.assertEqual({}, self.sample(first), 'it was restarted')
        self.assertEqual({}, self.sample(''))
        self.assertEqual({}, self.sample(first), 'nothing is known of before')
        self.assertEqual({}, self.sample(first), 'no time has passed in it')


class TestModel(FolderCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.runs = synthetic_runs()
        cls.model = classification.fit(cls.runs, 100.0)

    def test_runs_of_other_rates_are_named_rightly(self):
        for run in synthetic_runs(seed=2):
            self.assertEqual(run.kind, self.model.classify(run.readings))

    def test_validation_leaves_each_run_out(self):
        told, off = zip(*classification.validate(self.runs, 100.0))
        self.assertEqual([run.kind for run in self.runs], list(told))
        # T_x is what the curve of each kind says of the background load.
        for run, error in zip(self.runs, off):
            if run.kind == 'load':
                self.assertTrue(math.isnan(error))
            else:
                self.assertLess(error, 0.01)
        # Two workers of one run, of a kind that no other run has: not known without it.
        odd = np.array([[9.0, 9.0, 0.9, 0.0, 90.0, 900.0, 30.0]] * 6)
        more = [classification.Run(999, 'odd', math.nan, odd, np.full(6, 90.0))] * 2
        told, _off = zip(*classification.validate([*self.runs, *more], 100.0))
        self.assertNotIn('odd', told)
        self.assertNotIn('', told)

    def test_contention_that_does_not_show_is_not_learnt(self):
        hidden = [classification.Run(1000 + run.number, 'hidden', math.nan, run.readings,
                                     np.full(6, 20.0))
                  for run in synthetic_runs(seed=4) if run.kind == 'load']
        runs = [*self.runs, *hidden]
        self.assertNotIn('hidden', classification.fit(runs, 100.0).kinds)
        told, _off = zip(*classification.validate(runs, 100.0))
        self.assertEqual(('',) * len(hidden), told[-len(hidden):])

    def test_it_is_what_scikit_learn_says(self):
        from sklearn import tree
        with mock.patch.object(tree.DecisionTreeClassifier, 'fit', autospec=True,
                               side_effect=tree.DecisionTreeClassifier.fit) as fit:
            model = classification.fit(self.runs, 100.0)
        grown, rows, _labels = fit.call_args.args
        for run in synthetic_runs(seed=3, intervals=1):
            row = classification._normalised(run.readings, model.usage)
            self.assertEqual(grown.predict(row)[0], model.classify(run.readings))
        self.assertEqual(6, rows.shape[1])

    def test_usage_is_predicted_from_the_rate(self):
        np.testing.assert_allclose([[0.02, 0.004], [0.01, 0.001]], self.model.usage, atol=0.01)

    def test_coefficients_of_each_kind(self):
        self.assertEqual(set(SIGNS), set(self.model.coefficients))
        np.testing.assert_allclose((0.0, 20.0, 0.0), self.model.coefficients['disk'], atol=1e-6)
        # A curve that is negative without load is none that is used, or read again.
        steep = [classification.Run(run.number, run.kind, run.background, run.readings,
                                    run.tails - 24.0) for run in self.runs]
        self.assertEqual({}, classification.fit(steep, 100.0).coefficients)
        unknown = [classification.Run(run.number, run.kind, math.nan if run.kind != 'load' else 0,
                                      run.readings, run.tails) for run in self.runs]
        self.assertEqual(['load'], [*classification.fit(unknown, 100.0).coefficients])

    def test_metrics_that_are_silent(self):
        readings = self.runs[-1].readings.copy()
        readings[1:, 2] = np.nan
        self.assertEqual('network', self.model.classify(readings))
        readings[0, 5] = np.nan
        self.assertEqual('unknown', self.model.classify(readings))
        with self.assertRaisesRegex(errors.NotEnoughData, 'contention and quiet times'):
            classification.fit([run for run in self.runs if run.kind == 'load'], 100.0)

    def test_a_document_that_was_edited(self):
        path = self.folder / 'model.json'
        classification.write(self.model, path)
        found = classification.read(path)
        self.assertEqual(self.model.coefficients, found.coefficients)
        for run in self.runs:
            self.assertEqual(run.kind, found.classify(run.readings))
        content = json.loads(path.read_text())
        for field, value, words in (
                ('schema', 'x/1', "schema is 'x/1': expected one of tracon-dial/1"),
                ('features', ['a'], 'features is .*: expected usr, sys'),
                ('column', [], 'children is .*: expected a list of 0'),
                ('children', [[0, 0]] * len(content['column']), 'expected nodes that come later'),
                ('usage', [[1, 2]], 'usage is .*: expected a list of 2 entries'),
                ('coefficients', {'cpu': [9, -3, 1]}, 'coefficients.cpu is .*: expected .c0, c1'),
                ('threshold', [0.5] * len(content['column']), 'checksum is .*: the content was')):
            path.write_text(json.dumps({**content, field: value}))
            with self.subTest(field), self.assertRaisesRegex(errors.InvalidDocument, words):
                classification.read(path)


class TestController(unittest.TestCase):
    """Two synthetic workers, of which one becomes slow while metrics speak or are silent."""

    def setUp(self):
        self.settings = dial_settings.Settings(
            pathlib.Path('s'), pathlib.Path('l'), 'web', ('w1', 'w2'), 100.0, quiet_readings=20)
        self.model = classification.fit(synthetic_runs(), 100.0)
        self.controller = controllers.Controller(self.settings, self.model)

    def decide(self, slow, reading=None):
        return self.controller.decide(controllers.Observation(
            10.0, ('w1', 'w2'), {'w1': [slow] * 60, 'w2': [25.0] * 60}, {'w1': 60, 'w2': 60},
            readings={'w1': reading} if reading is not None else {}))

    def contended(self, readings):
        for _ in range(12):
            self.decide(25.0)
        return sum((self.decide(80.0, reading) for reading in readings), [])

    def test_the_kind_is_named(self):
        reading = [0.14, 0.048, 0.3, 0.0, 0.0, 1.0, 30.0]
        [line] = self.contended([reading] * 2)
        self.assertRegex(line, r'^w1 is contended \(disk\): T90 80 ms, quiet up to .*; background')
        # T_x = 20 / (1 - rho_fg - rho_bg) was trained.
        self.assertAlmostEqual(1 - 0.06 - 20 / 80, self.controller.workers['w1'].background_load)
        # The kind stands, whatever a trickle shows, until the end.
        self.decide(80.0, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.1])
        service = dial.Dial(self.settings, None, mock.create_autospec(haproxy.Observer),
                            model=self.model)
        service.observer.refused = 0
        service.controller = self.controller
        self.assertIn('tracon_dial_kind{kind="disk",worker="w1"} 1.0',
                      prometheus_client.generate_latest(service).decode())
        self.decide(25.0)
        self.decide(25.0)
        self.assertEqual('', self.controller.workers['w1'].kind)
        self.assertNotIn('kind="disk"', prometheus_client.generate_latest(service).decode())

    def test_load_begins_no_contention(self):
        load = [0.08, 0.04, 0.0, 0.0, 0.0, 1.0, 30.0]
        self.assertEqual('load', self.model.classify(np.array([load])))
        self.assertEqual([], self.contended([load] * 5))
        self.assertFalse(self.controller.workers['w1'].contended)
        self.assertEqual('', self.controller.workers['w1'].kind)
        # It is asked again, and what shows later counts.
        disk = [0.14, 0.048, 0.3, 0.0, 0.0, 1.0, 30.0]
        told = sum((self.decide(80.0, disk) for _turn in range(2)), [])
        self.assertRegex(told[0], r'contended \(disk\)')

    def test_silent_metrics(self):
        [line] = self.contended([None] * 2)
        self.assertRegex(line, r'^w1 is contended \(unknown\)')
        # By the curve of the settings: 1 / (1 - rho), relative to quiet times.
        self.assertGreater(self.controller.workers['w1'].background_load, 0.6)

    def test_one_reading_is_enough(self):
        [line] = self.contended([None, [0.14, 0.04, 0.0, 0.0, 8.0, 30.0, 30.0]])
        self.assertRegex(line, r'contended \(network\)')


class TestTrain(FolderCase):

    def settings(self, **stressors):
        return dial_settings.Settings(
            pathlib.Path('s'), pathlib.Path('l'), 'web', ('w1', 'w2'), 100.0,
            exporters={'w1': 'http://a/m', 'w2': 'http://b/m'}, stressors=stressors, runs=2,
            run_intervals=3)

    def train(self, blind='', **stressors):
        """Return the runs, what weights were set, and whether the stressor ran in intervals."""
        self.at, self.alive = 0, []
        self.mark = self.folder / 'mark'
        api = mock.create_autospec(haproxy.RuntimeAPI, instance=True)
        observer = mock.create_autospec(haproxy.Observer, instance=True)
        observer.observe.side_effect = self.observe
        self.blind = blind
        runs = dial.train(self.settings(**stressors), api, observer, lambda: time.sleep(0.2))
        return runs, [call.args[1] for call in api.set_weights.call_args_list]

    def observe(self):
        self.at += 1
        self.alive.append(self.mark.exists())
        return controllers.Observation(
            1.0, ('w1', 'w2'), {'w1': [10.0] * 9, 'w2': []}, {}, self.blind,
            {'w1': [0.1, 0.1, 0.0, 0.0, 0.0, 1.0, float(self.at)]}), {}

    def test_runs_are_labelled_and_stressors_end(self):
        script = self.folder / 'stressor'
        script.write_text(f'touch {self.folder}/mark\ntrap "rm {self.folder}/mark; exit" TERM\n'
                          'echo $1 >> ' + f'{self.folder}/levels\nwhile :; do sleep 0.01; done\n')
        runs, weights = self.train(cpu={'w1': f'sh {script} {{percent}}'})
        # Two rounds of cpu on w1 and of none with each worker twice as busy, of both workers.
        self.assertEqual(['cpu', 'load', 'load', 'load', 'load'], [
            run.kind for run in runs[:5]])
        self.assertEqual([0.4, 0.6], sorted(run.background for run in runs if run.kind == 'cpu'))
        self.assertEqual('40\n60\n', (self.folder / 'levels').read_text())
        self.assertIn({'w1': 2, 'w2': 1}, weights)
        self.assertEqual(10, len(runs))
        # The first interval of a run has no stressor, the second is left out.
        self.assertEqual([False, True, True, True, True] + [False] * 5, self.alive[:10])
        self.assertEqual([3.0, 4.0, 5.0], runs[0].readings[:, -1].tolist())
        self.assertEqual([10.0] * 3, runs[0].tails.tolist())
        # Nothing is known of w2.
        self.assertTrue(np.isnan(runs[2].readings).all() and np.isnan(runs[2].tails).all())

    def test_faults(self):
        for command, words in (('false', "stressors='false': ended by itself with status 1"),
                               ('/no/such', "stressors='/no/such': .*; name a command"),
                               ('sh "', 'No closing quotation; name a command')):
            with self.subTest(command), self.assertRaisesRegex(errors.InvalidOption, words):
                self.train(cpu={'w1': command})

    def test_blind_intervals_do_not_count(self):
        with self.assertLogs('tracon_watcher.tenant.dial', logging.WARNING) as caught:
            runs, _weights = self.train('log is away', cpu={'w1': 'sleep 60'})
        self.assertIn('log is away; the interval does not count', caught.output[0])
        for run in runs:
            self.assertTrue(np.isnan(run.readings).all() and np.isnan(run.tails).all())
        with self.assertRaises(errors.NotEnoughData):
            classification.fit(runs, 100.0)

    def test_one_that_does_not_listen_is_killed(self):
        with mock.patch.object(dial, '_PATIENCE', 0.2), dial._running(
                "sh -c 'trap : TERM; while :; do sleep 0.1; done'") as poll:
            time.sleep(0.2)
            self.assertIsNone(poll())
        self.assertEqual(-signal.SIGKILL, poll())


class TestSettings(FolderCase):

    GOOD = ('socket: /s\nlog: /l\nbackend: web\nworkers: [a, b]\npeak_rate: 9\n'
            'exporters: {a: "http://a:9100/metrics", b: "https://b/metrics"}\n')

    def load(self, text):
        path = self.folder / 'dial.yaml'
        path.write_text(text, encoding='utf-8')
        return dial_settings.load(path)

    def test_all_keys(self):
        found = self.load(self.GOOD + 'model: /m\nruns: 9\nrun_intervals: 4\n'
                          'stressors: {cpu: {a: ssh -tt a stress-ng --cpu 1}}\n')
        self.assertEqual((pathlib.Path('/m'), 9, 4), (found.model, found.runs,
                                                      found.run_intervals))
        self.assertEqual({'cpu': {'a': 'ssh -tt a stress-ng --cpu 1'}}, found.stressors)
        self.assertEqual('https://b/metrics', found.exporters['b'])

    def test_bad_ones_are_named_with_value_and_remedy(self):
        for text, words in (
                ('exporters: {a: "file:///etc/passwd", b: "http://b/"}',
                 r"exporters is \{'a': 'file.*: expected \"worker: http"),
                ('exporters: [a]', r"exporters is \['a'\]: expected"),
                ('exporters: {a: "http://a/"}\nmodel: /m',
                 r"exporters is \{'a': 'http://a/'\}: state one of each worker"),
                ('stressors: {cpu: {c: x}}', r"stressors.cpu is \{'c': 'x'\}: expected a, b"),
                ('stressors: {load: {a: x}}', 'stressors is .*: expected .* no kind load'),
                ('stressors: {"a b": {a: x}}', 'stressors is .*: expected "kind'),
                ('stressors: {cpu: {a: [x]}}', 'stressors is .*: expected "kind'),
                ('model: 7', 'model is 7: expected a text'),
                ('runs: 1', 'runs is 1: expected a whole number from 2 to 1000'),
                ('run_intervals: 0', 'run_intervals is 0: expected a whole number from 1')):
            with self.subTest(text), self.assertRaisesRegex(errors.InvalidDocument, words):
                self.load('\n'.join(line for line in self.GOOD.splitlines() if not line.startswith(
                    text.partition(':')[0])) + f'\n{text}\n')


class TestSeal(unittest.TestCase):

    def test_the_checksum_covers_the_tree(self):
        model = classification.fit(synthetic_runs(), 100.0)
        one = {'threshold': model.threshold.tolist()}
        self.assertNotEqual(document.checksum(one), document.checksum(
            {'threshold': [value + 1e-9 for value in one['threshold']]}))
