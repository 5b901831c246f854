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

"""An audit of a synthetic cloud whose hosts are of a type that has drifted."""

import dataclasses
import math
import pathlib
import tempfile
import unittest
from unittest import mock

from tests import synthetic
from tests.watcher import clouds
from tests.watcher import test_steps
from tracon_watcher.placement import limits
from tracon_watcher.placement import queues
from tracon_watcher.placement import snapshot

LOGGER = 'tracon_watcher.decision_engine.strategy'


class TrustTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = str(pathlib.Path(directory.name) / 'snapshot')
        clock = mock.patch('time.time', autospec=True, return_value=clouds.NOW)
        clock.start()
        self.addCleanup(clock.stop)

    def moves(self, coverage):
        hosts = {name: clouds.Host(name, 'north', (8, 8, 8), 1.0) for name in ('h0', 'h1')}
        vms = {f'vm-{row}': clouds.Vm(f'vm-{row}', 'h0', (1, 1, 1), 0.5 * synthetic.CAPACITY,
                                      limits.Limits(1.4)) for row in range(3)}
        world = clouds.World(hosts, vms, [], {})
        state = clouds.state_of(world, {uuid: vm.host for uuid, vm in vms.items()})
        pathlib.Path(self.path).write_text(''.join(snapshot.lines(snapshot.Snapshot(
            state, 900.0, 3, {synthetic.HOST_TYPE: queues.LearnedParameters(
                vm_hours=30.0, coverage=coverage)}))), encoding='utf-8')
        return test_steps.Ours(world, self.path).execute().actions

    def test_an_audit_says_that_names_of_hosts_match_nothing(self):
        hosts = {name: clouds.Host(name, 'north', (8, 8, 8), 1.0) for name in ('h0', 'h1')}
        world = clouds.World(hosts, {'vm': clouds.Vm(
            'vm', 'h0', (1, 1, 1), 0.5 * synthetic.CAPACITY, limits.NONE)}, [], {})
        state = clouds.state_of(world, {'vm': 'h0'})
        snapshot.write(self.path, dataclasses.replace(state, hosts=('H0', 'h1.old')))
        audit = test_steps.Ours(world, self.path)
        with self.assertLogs(LOGGER, 'WARNING') as logs:
            audit.execute()
        self.assertIn("does not have h0 and 1 more of Nova's hosts (it has H0)", logs.output[0])
        self.assertIn("does not have h0 and 1 more of Nova's hosts", audit._plan.reason)

    def test_hosts_are_left_alone_whose_type_is_not_trusted(self):
        with self.assertNoLogs(LOGGER, 'WARNING'):
            self.assertTrue(self.moves(math.nan))
            self.assertTrue(self.moves(0.4))
        with self.assertLogs(LOGGER, 'WARNING') as logs:
            self.assertEqual([], self.moves(0.32))
        self.assertIn('Hosts of type synthetic are not judged', logs.output[0])
        self.assertIn('trusted 40 %', logs.output[0])
