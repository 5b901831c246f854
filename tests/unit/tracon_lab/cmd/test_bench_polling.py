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

"""The benchmark of polling: both ways poll the same, one of them in one call."""

import json
import unittest

from tests.unit import command_line


class TestBenchPolling(unittest.TestCase):

    def test_both_ways_on_each_source(self):
        code, out, err = command_line.run('bench', 'polling', '--domains', '3', '--rounds', '1',
                                          '-f', 'json')
        self.assertEqual(0, code, err)
        rows = json.loads(out)
        self.assertLessEqual({'recorded', 'test driver'}, {row['source'] for row in rows})
        for row in rows:
            # lookup, info twice, memory and statistics; lookup, info, XML and two for each disk
            self.assertEqual({'ours': 1, 'stock': 3 * (5 + 3 + 4)}[row['pollsters']],
                             row['calls'], row)
            if row['what'] == 'cycle':
                # the CPU and four meters of each of two disks; our ten
                self.assertEqual({'ours': 30, 'stock': 27}[row['pollsters']], row['samples'])
            stock = next(other for other in rows if other['pollsters'] == 'stock' and (
                other['source'], other['what']) == (row['source'], row['what']))
            # Milliseconds are rounded to hundredths.
            share = row['share_of_stock']
            self.assertAlmostEqual(share, row['milliseconds'] / stock['milliseconds'],
                                   delta=0.01 * (1 + share) / stock['milliseconds'])
            self.assertGreater(row['MiB'], 0)

    def test_real_domains_or_none(self):
        code, _out, err = command_line.run('bench', 'polling', '--uri', 'nowhere:///')
        self.assertEqual(2, code, err)
        self.assertIn('--uri=', err)

    def test_bad_options(self):
        for option in ('--domains', '--rounds'):
            code, out, err = command_line.run('bench', 'polling', option, '0')
            self.assertEqual((2, ''), (code, out), err)
            self.assertIn(f"{option}: '0': expected a whole number of at least 1", err)
