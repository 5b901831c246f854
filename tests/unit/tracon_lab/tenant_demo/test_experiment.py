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
"""The demonstration's pure parts: windows and the table on synthetic outcomes, load, settings."""

import asyncio
import pathlib
import shlex
import socket
import threading
import time
import unittest
from unittest import mock

import numpy as np

from tests.unit.folder import FolderCase
from tracon_lab.cmd import tenant_demo
from tracon_lab.tenant_demo import experiment
from tracon_lab.tenant_demo import hosts
from tracon_lab.tenant_demo import load
from tracon_lab.tenant_demo import programs
from tracon_watcher import errors
from tracon_watcher.tenant import classification
from tracon_watcher.tenant import settings


def synthetic_outcome(factor, named=()):
    """Return a synthetic outcome: 10 ms, and during each kind 100 ms times a factor."""
    windows = {'none': (0.0, 10.0), **{kind: (10.0 * place, 10.0 * place + 5.0)
                                       for place, kind in enumerate(programs.KINDS, 1)}}
    sent = np.arange(0.0, 50.0, 0.1)
    taken = np.where((sent >= 10.0) & (sent % 10.0 < 4.99), 0.1 * factor, 0.01)
    taken[(sent >= 12.55) & (sent < 14.99)] /= 2.0
    return experiment.Outcome(windows, sent, taken, dict(named),
                              {kind: len(said) / 2.0 for kind, said in dict(named).items()}, 2)


class TestTable(FolderCase):

    def setUp(self):
        self.outcomes = {
            'round robin': [synthetic_outcome(1.0)], 'least connections': [synthetic_outcome(0.4)],
            'DIAL': [synthetic_outcome(factor, {'cpu': said}) for factor, said in (
                (0.2, 'cpu'), (0.5, 'memory'), (0.3, 'cpu'))]}

    def test_medians_and_differences(self):
        rows = experiment.table(self.outcomes)
        self.assertEqual(['none', *programs.KINDS], [row[0] for row in rows])
        np.testing.assert_allclose([10.0] * 4 + [0.0, 0.0], rows[0][1:7], atol=1e-9)
        # DIAL is twice as quick in the second half of the contention of the CPU.
        np.testing.assert_allclose([100.0, 40.0, 30.0, 15.0, -70.0, -25.0], rows[1][1:7])
        # Two false alarms in each of three quiet times; seen in all rounds, and in none.
        self.assertEqual([6, 3, 0], [row[7] for row in rows[:3]])
        self.assertEqual([None, 1.5, None], [row[8] for row in rows[:3]])
        self.assertEqual(['', 'cpu 2 memory 1', ''], [row[9] for row in rows[:3]])
        self.assertEqual(len(experiment.COLUMNS), len(rows[0]))

    def test_plot(self):
        path = self.folder / 'tail.png'
        tenant_demo._draw({arm: found[0] for arm, found in self.outcomes.items()}, path)
        self.assertEqual(b'\x89PNG', path.read_bytes()[:4])


class TestLoad(unittest.TestCase):

    def serve(self, answer, seconds):
        server = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(server.close)

        def serve():
            while True:
                try:
                    connection, _address = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(100)
                    time.sleep(seconds)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        generator = load.Load(server.getsockname()[1], 100.0, 1)
        generator.start()
        time.sleep(0.5)
        generator.stop()
        return np.array(sorted(generator.done)).T

    def test_a_slow_server_changes_no_intended_time(self):
        quick, slow = (self.serve(b'HTTP/1.1 200 OK\r\n\r\n', seconds)[0] for seconds in (
            0.0, 0.03))
        both = min(len(quick), len(slow))
        self.assertGreater(both, 20)
        np.testing.assert_allclose(np.diff(quick[:both]), np.diff(slow[:both]), atol=1e-6)

    def test_waiting_counts_from_the_intended_time(self):
        # One after the other takes 30 ms, and 10 ms lie between requests: they queue.
        _sent, taken = self.serve(b'HTTP/1.1 200 OK\r\n\r\n', 0.03)
        self.assertGreater(taken[-1], 0.2)

    def test_failures_count_as_the_longest(self):
        _sent, taken = self.serve(b'HTTP/1.1 503 No\r\n\r\n', 0.0)
        self.assertEqual({load.PATIENCE}, set(taken))
        with socket.create_server(('127.0.0.1', 0)) as free:
            port = free.getsockname()[1]
        generator = load.Load(port, 100.0, 1)
        asyncio.run(generator._ask(time.monotonic()))
        self.assertEqual(load.PATIENCE, generator.done[0][1])


class TestSite(FolderCase):

    def test_settings_are_those_of_tracon_dial(self):
        experiment.Site(self.folder, 2.0)
        found = settings.load(self.folder / 'dial.yaml')
        self.assertEqual((2.0, ('w1', 'w2', 'w3')), (found.interval_seconds, found.workers))
        self.assertEqual(set(programs.KINDS), set(found.stressors))
        command = shlex.split(found.stressors['cpu']['w1'])
        self.assertEqual(['1', f'{self.folder}/disk', 'cpu', '{percent}'], command[-4:])
        self.assertEqual(programs.FILE_BYTES, (self.folder / 'disk').stat().st_size)

    def test_a_program_that_ends_early_is_told(self):
        with self.assertRaisesRegex(errors.TraconError, 'false ended by itself with status 1'), \
                experiment.running(['false']):
            time.sleep(0.2)

    def test_a_machine_that_lets_nothing_be_made(self):
        with mock.patch.object(hosts, 'ROOT', self.folder / 'none'), \
                mock.patch.object(hosts.subprocess, 'run', autospec=True) as run, \
                mock.patch.object(pathlib.Path, 'mkdir', autospec=True,
                                  side_effect=PermissionError('not here')), \
                self.assertRaisesRegex(errors.TraconError, 'not here: .* needs root, the contr'):
            hosts.create(self.folder)
        self.assertEqual({'delete'}, {call.args[0][2] for call in run.call_args_list})


class TestHosts(FolderCase):

    def test_groups_of_both_versions(self):
        for file, expected in (('cgroup.controllers', ['tracon-tenant/tracon-tenant-2/worker']),
                               ('tasks', ['cpu/tracon-tenant/tracon-tenant-2/worker',
                                          'blkio/tracon-tenant/tracon-tenant-2'])):
            root = self.folder / file.partition('.')[0]
            root.mkdir()
            (root / file).touch()
            for one in expected:
                (root / one).mkdir(parents=True)
                (root / one / 'cgroup.procs').touch()
            with mock.patch.object(hosts, 'ROOT', root):
                hosts.enter(hosts.Host(2), 'worker')
            for one in expected:
                self.assertTrue((root / one / 'cgroup.procs').read_text().isdigit())
            # One that runs is left alone.
            with mock.patch.object(hosts, 'ROOT', root), \
                    mock.patch.object(hosts, 'remove', autospec=True) as remove, \
                    self.assertRaisesRegex(errors.TraconError, r'tracon-tenant-2\S* has proces'):
                hosts.create(self.folder)
            remove.assert_not_called()

    def test_the_first_host_has_a_core_of_its_own(self):
        for cores, expected in (([0], '000'), ([0, 1], '100'), ([4, 5, 6, 7], '756')):
            with mock.patch.object(hosts, 'CORES', cores):
                self.assertEqual(list(expected), [host.command('x')[4] for host in hosts.HOSTS])


class TestWorker(FolderCase):

    def test_metrics_are_read_as_those_of_node_exporter(self):
        file = self.folder / 'file'
        file.touch()
        with mock.patch.object(programs.os, 'O_DIRECT', 0):
            one = programs.Worker(str(file), 1)
        before = classification.counters(one.metrics())
        one._user += 1.0
        one._waited += 0.5
        used = classification.counters(one.metrics()) - before
        self.assertAlmostEqual(1.0, used[0])
        self.assertAlmostEqual(0.5, used[2])
        self.assertEqual(6, len(used))
