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

"""The benchmark of snapshots runs, and compares what can be compared."""

import io
import json
import types
import unittest

from tracon_lab.cmd import bench_snapshot


def run(*arguments):
    """Run the command; return what it shows."""
    app = types.SimpleNamespace(stdout=io.StringIO())
    command = bench_snapshot.Snapshot(app, None)
    parsed = command.get_parser('tracon bench snapshot').parse_args([*arguments, '-f', 'json'])
    command.run(parsed)
    return json.loads(app.stdout.getvalue())


class TestBenchSnapshot(unittest.TestCase):

    def test_rows(self):
        rows = run('--hosts', '40', '--vms-per-host', '5', '--changed', '0.1', '--rounds', '1')
        self.assertEqual(7, len(rows))
        found = {row['what']: row for row in rows}
        part = found['delta of 0.1 of the hosts: encode and compress']
        whole = found['whole: encode and compress']
        self.assertEqual(whole['bytes'], part['reference bytes'])
        self.assertLess(part['bytes'], whole['bytes'] / 3)
        self.assertGreater(found['delta of all hosts: encode and compress']['bytes'],
                           whole['bytes'] / 2)
        for row in rows:
            self.assertGreaterEqual(row['seconds'], 0)
            self.assertGreaterEqual(row['peak MiB'], 0)

    def test_a_cloud_without_vms(self):
        self.assertEqual(7, len(run('--hosts', '3', '--vms-per-host', '0', '--rounds', '1')))
