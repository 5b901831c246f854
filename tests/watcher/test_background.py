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

"""Background VMs that audits stop, shelve or delete where no migration helps."""

import pathlib
import tempfile
import unittest
from unittest import mock

import numpy as np
from watcher.applier.loading import default

from tests.watcher import clouds
from tests.watcher import test_steps
from tracon_watcher.decision_engine import parameters
from tracon_watcher.placement import limits
from tracon_watcher.placement import snapshot


class BackgroundTestCase(unittest.TestCase):
    """One host with a VM in breach beside background work, and one that has room or none."""

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = str(pathlib.Path(directory.name) / 'snapshot')
        clock = mock.patch('time.time', autospec=True, return_value=clouds.NOW)
        clock.start()
        self.addCleanup(clock.stop)
        hosts = {name: clouds.Host(name, 'north', (4, 8, 100), 4.0) for name in 'ab'}
        hosts['b'].enabled = False
        busy = np.array([0.0, 0.0, 0.8, 0.0])
        vms = {name: clouds.Vm(name, 'a', (1, 1, 1), busy, of) for name, of in (
            ('web', limits.Limits(1.3)), ('batch', limits.BACKGROUND))}
        self.world = clouds.World(hosts, vms, [], {})

    def actions(self, **given):
        """Return type and VM of each action of an audit."""
        snapshot.write(self.path, clouds.state_of(
            self.world, {uuid: vm.host for uuid, vm in self.world.vms.items()}))
        self.audit = test_steps.Ours(self.world, self.path, **given)
        self.message = mock.Mock(spec_set=['status_message', 'uuid'], uuid=None)
        self.solution = self.audit.execute(self.message)
        return [(one['action_type'], one['input_parameters']['resource_id'])
                for one in self.solution.actions]

    def test_by_default_nothing_is_done_to_it(self):
        self.assertEqual([], self.actions())
        self.assertEqual(1, self.audit._plan.after.in_breach)

    def test_each_action_is_one_of_watchers(self):
        known = default.DefaultActionLoader().list_available()
        for action in parameters.ACTIONS:
            self.assertIn(action, known)
            self.assertEqual([(action, 'batch')], self.actions(background_action=action))
            self.assertIn(f'0 live migrations, 1 background VMs to {action}',
                          self.message.status_message)
        found = {one['name']: one['value'] for one in self.solution.efficacy_indicators}
        self.assertEqual((1, 0, 0, 1), tuple(found[name] for name in (
            'vms_in_breach_before', 'vms_in_breach_after', 'live_migrations_count',
            'background_vms_removed')))
        self.assertEqual({'batch': []}, test_steps.parents_of(self.audit, self.solution))

    def test_a_migration_that_helps_comes_first(self):
        self.world.hosts['b'].enabled = True
        ((action, _vm),) = self.actions(background_action='delete')
        self.assertEqual('migrate', action)

    def test_who_must_stay_is_left_alone(self):
        for change in ({'locked': True}, {'opted_out': True}, {'excluded': True},
                       {'task': 'rebooting'}):
            for name, value in change.items():
                setattr(self.world.vms['batch'], name, value)
            self.assertEqual([], self.actions(background_action='delete'), change)
            self.world.vms['batch'] = clouds.Vm(
                'batch', 'a', (1, 1, 1), self.world.vms['batch'].profile, limits.BACKGROUND)

    def test_a_snapshot_alone_makes_no_vm_background_work(self):
        with mock.patch.object(clouds, '_server', autospec=True,
                               side_effect=lambda vm, real=clouds._server: {
                                   **real(vm), 'flavor': {'extra_specs': {}}}):
            self.assertEqual([], self.actions(background_action='delete'))

    def test_in_a_blackout_window_nothing_is_done(self):
        self.assertEqual([], self.actions(background_action='stop',
                                          blackout_windows=['00:00-24:00']))

    def test_another_action_is_refused(self):
        with self.assertRaisesRegex(Exception, "'suspend' is not one of"):
            self.actions(background_action='suspend')


if __name__ == '__main__':
    unittest.main()
