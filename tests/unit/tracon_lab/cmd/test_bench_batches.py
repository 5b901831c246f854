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
import unittest

from tests.unit import command_line


class TestBenchBatches(unittest.TestCase):
    """tests/long has more cases."""

    cases = 2
    hosts = 4

    def test_identical_vms_in_turn_are_the_optimum_and_moves_together_are_no_worse(self):
        code, out, err = command_line.run('bench', 'batches', '--cases', str(self.cases),
                                          '--hosts', str(self.hosts), '--host-type',
                                          'same-core-raw-disk', '-f', 'json')
        self.assertEqual(0, code, err)
        rows = {row['where']: row for row in json.loads(out)}
        self.assertEqual({'multi-create', 'moves'}, set(rows))
        self.assertEqual((0, 0.0), (rows['multi-create']['better_at_once'],
                                    rows['multi-create']['largest_gain']))
        self.assertGreater(rows['moves']['cases'], self.cases // 3)
        self.assertGreaterEqual(rows['moves']['largest_gain'], 0.0)

    def test_bad_input_is_named(self):
        for arguments, said in ((('--cases', '0'), "--cases: '0'"), (('--hosts', '1'), '--hosts'),
                                (('--host-type', 'moon'), "host_type='moon'")):
            code, out, err = command_line.run('bench', 'batches', *arguments)
            self.assertEqual((2, ''), (code, out), err)
            self.assertIn(said, err)
