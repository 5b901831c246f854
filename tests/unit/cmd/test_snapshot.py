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

import time
from unittest import mock

from tests.unit import command_line
from tests.unit import folder
from tracon_watcher.cmd import snapshot
from tracon_watcher import errors

TABLE = '''\
host,uuid,read_requests_per_second,write_requests_per_second,guest_cpu,host_cpu,cores,vcpus
a,vm1,0,0,0.9,0,2,1
a,vm2,0,0,1.8,0,2,2
a,vm3,50,50,0.5,0.1,2,1
b,vm4,0,0,0.2,0,4,1
c,vm5,0,0,0.2,0,,1
'''


class TestSnapshot(folder.FolderCase):

    def test_hosts_are_judged_by_their_cores(self):
        table, output = self.folder / 'state.csv', str(self.folder / 'snapshot.jsonl')
        table.write_text(TABLE)
        with self.assertLogs(level='WARNING') as logged:
            self.assertIn('3 hosts, 5 VMs', command_line.output(
                snapshot.Build, table, '--output', output))
        self.assertIn('1 hosts, such as c: they are unknown; state column cores', logged.output[0])

        rows = command_line.rows(snapshot.Check, output)
        self.assertEqual(['known', 'known', 'unknown_cores'], [row['status'] for row in rows])
        self.assertGreater(rows[0]['worst slowdown'], 1.5)
        self.assertLess(rows[0]['worst IOPS ratio'], 0.95)
        self.assertEqual(1.0, rows[1]['worst slowdown'])
        for ahead, status in ((-800.0, 'stale'), (1000.0, 'stale'), (100.0, 'known')):
            with mock.patch('time.time', autospec=True, return_value=time.time() + ahead):
                self.assertEqual(status, command_line.rows(snapshot.Check, output)[0]['status'])

    def test_an_output_that_cannot_be_written_is_named_and_nothing_is_left(self):
        table = self.folder / 'state.csv'
        table.write_text('\ufeff' + TABLE)
        before = set(self.folder.iterdir())
        for output in (self.folder, self.folder / 'no' / 'snapshot'):
            with self.assertRaisesRegex(errors.InvalidDocument, 'the file is .*cannot be written'):
                command_line.output(snapshot.Build, table, '--output', output)
        self.assertEqual(before, set(self.folder.iterdir()))
