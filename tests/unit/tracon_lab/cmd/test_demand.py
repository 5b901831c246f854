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

"""``tracon lab demand`` and ``tracon model calibrate``."""


from tests.unit import command_line
from tests.unit import folder
from tracon_lab.cmd import lab_demand
from tracon_lab.cmd import model_calibrate
from tracon_lab.cmd import packaged
from tracon_lab.testbed import demand
from tracon_watcher.contention import calibration


class TestCommands(folder.FolderCase):

    def test_demand(self):
        file = next(name for name in packaged.measurements() if 'remote-volume' in name)
        rows = command_line.rows(lab_demand.Demand, file)
        self.assertEqual(set(demand.COLUMNS), set(rows[0]))
        self.assertIn(demand.WINDOW, {row['method'] for row in rows})
        # What is not there is null, for machines: what was seen says nothing of a slowdown.
        self.assertIsNone(next(row for row in rows if row['method'] == demand.SEEN)
                          ['slowdown_error'])

    def test_changes(self):
        file = next(name for name in packaged.measurements() if 'remote-volume' in name)
        rows = {row['polls']: row for row in command_line.rows(
            lab_demand.Demand, file, '--changes')}
        # No VM is believed at once, nearly all are the second time.
        self.assertLess(rows[1]['rises_seen'], 0.1)
        self.assertGreater(rows[2]['rises_seen'], 0.9)
        self.assertGreater(rows[2]['falls_seen'], 0.8)

    def test_calibrate(self):
        output = self.folder / 'new' / 'calibration.json'
        rows = command_line.rows(model_calibrate.Calibrate, '--output', str(output))
        found = calibration.load(output)
        self.assertIn({'part': 'demand', 'name': 'slack', 'value': found.slack}, rows)
        self.assertEqual(len(packaged.measurements()),
                         sum(row['name'] == 'file' for row in rows))

    def test_a_file_that_cannot_be_written_is_named(self):
        (self.folder / 'file').write_text('')
        with self.assertRaisesRegex(OSError, 'file'):
            command_line.rows(
                model_calibrate.Calibrate, '--output', str(self.folder / 'file' / 'x.json'))
