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

"""``tracon bench gnocchi`` as far as it goes without a Gnocchi."""

import argparse
import contextlib
import io
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from tracon_lab.cmd import bench_gnocchi
from tracon_lab.cmd import bench_gnocchi_server


class TestBenchGnocchi(unittest.TestCase):

    def parse(self, *arguments):
        return bench_gnocchi.Gnocchi(None, None).get_parser('bench gnocchi').parse_args(
            list(arguments))

    def test_bad_input_is_named(self):
        for pages in ('', 'x', '0', '10,-1', '10,,20'):
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
                self.parse('--pages', pages)
        self.assertEqual([1, 20], self.parse('--pages', '1,20').pages)

    def test_what_is_not_installed_is_named(self):
        with mock.patch.object(bench_gnocchi_server, '_PATH', '/nonexistent'):
            self.assertIn('uwsgi (the extra "cloud")', bench_gnocchi_server.missing())
            with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(
                    bench_gnocchi_server.ServerFailed, 'mariadbd .the package mariadb-server'):
                bench_gnocchi_server.Server(pathlib.Path(folder)).start()

    def test_processor_time_of_a_process_and_its_children(self):
        with tempfile.TemporaryDirectory() as folder:
            server = bench_gnocchi_server.Server(pathlib.Path(folder))
            self.assertEqual({'api': 0.0, 'database': 0.0}, server.processor_seconds())
            script = 'import os, time\nos.fork()\nwhile time.process_time() < 0.3: pass\n' \
                     'print("x", flush=True)\ntime.sleep(600)'
            with subprocess.Popen([sys.executable, '-c', script], stdout=subprocess.PIPE) as both:
                both.stdout.readline()
                both.stdout.readline()
                server._api = both
                self.assertGreaterEqual(server.processor_seconds()['api'], 0.5)
                for pid in list(bench_gnocchi_server._with_children(both.pid))[::-1]:
                    os.kill(pid, signal.SIGTERM)

    def test_a_sample_is_scaled_up_and_memory_is_not(self):
        class Idle:

            def processor_seconds(self):
                return {'api': 0.0, 'database': 0.0}

        shown = argparse.Namespace(say=lambda line: None)
        row = bench_gnocchi._row('way', lambda report: {'requests': 3, 'own': 0.5, 'seconds': 2.0},
                                 Idle(), 10, 100, shown)
        self.assertEqual(('way', 100, 30, 20.0, 0.0, 0.0, 5.0), row[:7])
        self.assertLess(row[7], 100.0)
        self.assertEqual(10, row[8])
