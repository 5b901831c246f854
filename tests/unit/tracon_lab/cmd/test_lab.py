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

"""``tracon lab track``, ``limits`` and ``events``, of the measurements in the package."""

import json
import unittest

from tests.unit import command_line
from tracon_lab.testbed import counters


class TestTables(unittest.TestCase):

    def rows(self, *arguments):
        code, out, err = command_line.run('lab', *arguments, '-f', 'json')
        self.assertEqual(0, code, err)
        return json.loads(out)

    def test_track(self):
        rows = self.rows('track')
        self.assertEqual(set(counters.TRACKING), set(rows[0]))
        stretch = [row for row in rows if row['points'] and row['signal'] == 'vCPU delay']
        self.assertGreater(len(stretch), 3)
        # What is not counted here is null, for machines.
        none = [row for row in rows if not row['points']]
        self.assertTrue(none)
        self.assertIsNone(none[0]['correlation'])
        self.assertEqual(len(rows), len({(row['file'], row['signal']) for row in rows}))

    def test_limits(self):
        rows = self.rows('limits')
        self.assertEqual(set(counters.LIMITS), set(rows[0]))
        found = {(row['file'], row['program'], row['beside']): row['limited_by'] for row in rows}
        self.assertEqual('virtual CPU', found['same-core-raw-disk.csv', 'calc', 'none'])
        self.assertEqual('storage', found['shared-slow-device.csv', 'randread', 'none'])

    def test_events(self):
        rows = self.rows('events')
        self.assertEqual(set(counters.EVENTS), set(rows[0]))
        known = {row['status'] for row in rows if row['event'] == 'vcpu_delay'}
        self.assertIn('fitted', known)
        self.assertEqual({'not available'}, {
            row['status'] for row in rows if row['event'] == 'cache_misses'})
