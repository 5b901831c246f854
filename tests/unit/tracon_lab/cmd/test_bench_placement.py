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
import os
import subprocess
import sys
import unittest


class BenchPlacementTest(unittest.TestCase):

    def test_each_row_beside_novas_own_weighing(self):
        # In a process of its own: Nova's options are global.
        done = subprocess.run(
            [sys.executable, '-m', 'tracon_watcher.cmd.app', 'bench', 'placement', '--hosts', '3',
             '--vms-per-host', '2', '--rounds', '1', '-f', 'json'],
            capture_output=True, text=True, timeout=240,
            env={**os.environ, 'OS_NOVA_DISABLE_EVENTLET_PATCHING': 'true'})
        self.assertEqual(0, done.returncode, done.stderr)
        rows = {row['what']: row for row in json.loads(done.stdout)}
        self.assertEqual(7, len(rows))
        (base,) = (row['milliseconds'] for name, row in rows.items() if 'stock weighers' in name)
        own = rows['interference filter and weigher']
        self.assertGreater(own['milliseconds'], 0)
        self.assertAlmostEqual(own['milliseconds'] / base, own["share of Nova's weighing"], 2)
