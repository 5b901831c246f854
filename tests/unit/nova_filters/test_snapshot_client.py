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

"""The snapshot in the scheduler: the last good one is kept, and a fault is said once."""

import logging
import pathlib

from nova_filters import faults
from nova_filters import snapshot_client
from tests.unit.nova_filters import base


class SnapshotClientTest(base.JudgeCase):

    def setUp(self):
        super().setUp()
        self.client = snapshot_client.SnapshotClient(
            self.snapshot_file,
            lambda path: snapshot_client.prepare(path, 0.8, 0.05, None),
            faults.FaultLog(logging.getLogger('nova_filters')), base.LOG)

    def lines(self):
        return [line for line in self.log.output.splitlines() if 'read from' not in line]

    def test_missing_is_said_once(self):
        for _again in range(3):
            self.client.refresh()
        self.assertIsNone(self.client.current)
        line, = self.lines()
        self.assertIn(self.snapshot_file, line)

    def test_broken_is_said_once_and_the_last_good_one_kept(self):
        self.write({'a': {}})
        self.client.refresh()
        good = self.client.current
        path = pathlib.Path(self.snapshot_file)
        path.write_bytes(path.read_bytes()[:-10])
        for _again in range(3):
            self.client.refresh()
        self.assertIs(good, self.client.current)
        line, = self.lines()
        self.assertIn('stays in use', line)

    def test_it_is_read_again_only_when_it_has_changed(self):
        self.write({'a': {}})
        self.client.refresh()
        good = self.client.current
        self.client.refresh()
        self.assertIs(good, self.client.current)
        self.write({'a': {}, 'b': {}})
        self.client.refresh()
        self.assertEqual(('a', 'b'), self.client.current.cluster.hosts)

    def test_a_fault_that_comes_back_is_said_again(self):
        self.client.refresh()
        self.write({'a': {}})
        self.client.refresh()
        pathlib.Path(self.snapshot_file).unlink()
        self.client.refresh()
        self.assertEqual(2, len(self.lines()))
