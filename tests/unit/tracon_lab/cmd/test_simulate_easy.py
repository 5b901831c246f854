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

import unittest

from tests.unit import command_line
from tracon_lab.cmd import simulate_easy
from tracon_watcher import errors


def run(*arguments):
    """Run the command and return its rows by scenario and strategy."""
    return {(row['scenario'], row['strategy']): row
            for row in command_line.rows(simulate_easy.Easy, *arguments)}


class TestEasy(unittest.TestCase):

    def test_a_worker_is_added(self):
        rows = run('--runs', '3', '--queries', '4000', '--scenario', 'one table, worker added')
        self.assertEqual(5, len(rows))
        count, found = (rows['one table, worker added', one] for one in ('count', 'easy'))
        self.assertEqual((0.0, 0.0), (count['against_count'], count['ci_count']))
        self.assertLess(found['against_count'] + found['ci_count'], 0)
        self.assertLess(found['busiest'], count['busiest'])

    def test_tables_are_balanced_by_a_table_weight(self):
        rows = run('--runs', '4', '--queries', '4000', '--scenario', 'three tables')
        plain, weighted = (rows['three tables', one] for one in ('easy', 'easy, by table'))
        self.assertLess(weighted['t99_ms'], plain['t99_ms'])
        self.assertLess(weighted['against_spread'], 2)

    def test_no_such_scenario(self):
        with self.assertRaisesRegex(errors.InvalidOption, "--scenario='x y': expected a part of"):
            run('--scenario', 'x y')
