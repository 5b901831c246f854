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

import pathlib
import tempfile
import unittest

from tests.unit import command_line
from tracon_lab.cmd import simulate_hosts
from tracon_watcher import errors


def run(*arguments):
    """Run the command and return its rows."""
    return command_line.rows(simulate_hosts.Hosts, *arguments)


class TestHosts(unittest.TestCase):

    def test_the_law_finds_who_is_slowed_down_and_a_constant_does_not(self):
        rows = run('--hosts', '30', '--cores', '16', '--least', '15', '--most', '40',
                   '--events', '8000')
        found = {(row['judged_by'], row['load']): row for row in rows}
        law = found['law of queueing', 'all']
        self.assertGreater(law['above_limit'], 20)
        self.assertGreater(law['found'], 0.8)
        self.assertLess(law['false_alarms'], 0.2)
        self.assertLess(law['error'], 0.05)
        constant = found['constant', 'all']
        self.assertGreater(constant['error'], 2 * law['error'])
        self.assertEqual(0.0, constant['found'])
        self.assertEqual(0, found['law of queueing', '< 0.8']['above_limit'])

    def test_plot(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'load.svg')
            run('--hosts', '1', '--cores', '2', '--least', '2', '--most', '2', '--events', '1000',
                '--plot', str(path))
            self.assertIn('64 cores', ''.join(path.read_text().split('<!-- ')))

    def test_bad_options(self):
        with self.assertRaisesRegex(errors.InvalidOption, '--most'):
            run('--least', '5', '--most', '4')
