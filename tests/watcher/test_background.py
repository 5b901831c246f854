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

import unittest
from unittest import mock

import numpy as np
from watcher.applier.loading import default

from tests.watcher import audits
from tests.watcher import clouds
from tracon_watcher.decision_engine import parameters
from tracon_watcher.decision_engine import records
from tracon_watcher import errors
from tracon_watcher.placement import limits

BUSY = np.array([0.0, 0.0, 0.8, 0.0])


class BackgroundCase(audits.AuditCase):

    def actions(self, **given):
        """Return type and VM of each action of an audit."""
        self.audited = self.audit(self.world, **given)
        self.message = mock.Mock(spec_set=['status_message', 'uuid'], uuid=None)
        self.solution = self.audited.execute(self.message)
        return [(one['action_type'], one['input_parameters']['resource_id'])
                for one in self.solution.actions]


class BreachTestCase(BackgroundCase):
    """One host with a VM in breach beside background work, and one that has room or none."""

    def setUp(self):
        super().setUp()
        self.world = clouds.world('ab', [
            clouds.Vm('web', 'a', (1, 1, 1), BUSY, limits.Limits(1.3)),
            clouds.Vm('batch', 'a', (1, 1, 1), BUSY, limits.BACKGROUND)])
        self.world.hosts['b'].enabled = False

    def test_by_default_nothing_is_done_to_it(self):
        self.assertEqual([], self.actions())
        self.assertEqual(1, self.audited._plan.after.in_breach)

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
        self.assertEqual({'batch': []}, audits.parents_of(self.audited, self.solution))

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


class RequestTestCase(BackgroundCase):
    """Two hosts full of background work, and a request of the foreground that found no host."""

    def setUp(self):
        super().setUp()
        self.world = clouds.world('ab', [
            clouds.Vm(name, host, (1, memory, 1), 0.1 * BUSY, limits.BACKGROUND)
            for name, host, memory in (('large', 'a', 5), ('small', 'a', 3), ('all', 'b', 8))])
        self.ask('new')

    def ask(self, name, memory=2, age=60.0, **more):
        self.world.unplaced.append(clouds.Vm(
            name, None, (1, memory, 1), None, limits.NONE, 'error', age=age, **more))

    def removed(self, action='delete', **given):
        found = self.actions(background_action=action, **given)
        self.assertLessEqual({kind for kind, _uuid in found}, {action})
        return [uuid for _kind, uuid in found]

    def test_the_least_that_makes_room_leaves(self):
        for action in ('delete', 'shelve'):
            self.assertEqual(['small'], self.removed(action))
            self.assertIn('of 1 requests that found no host 1 fit without 1 background VMs, '
                          '0 fit already, 0 nowhere', self.message.status_message)
        (removal,) = self.audited._plan.removals
        self.assertEqual(('a', 'new', ()), (removal.host, removal.request, removal.ends))

    def test_without_an_action_that_frees_room_none_leaves(self):
        # A stopped VM keeps its allocation.
        for action in ('none', 'stop'):
            self.assertEqual([], self.removed(action))
        self.assertEqual([], self.removed(request_age_seconds=0))
        self.assertEqual([], self.removed(blackout_windows=['00:00-24:00']))

    def test_an_old_request_does_not_count(self):
        self.assertEqual([], self.removed(request_age_seconds=59))
        for age in (1000.0, -1000.0):
            self.world.unplaced[0].age = age
            self.assertEqual([], self.removed())

    def test_a_request_counts_once(self):
        for at, expected in ((clouds.NOW - 61.0, ['small']), (clouds.NOW - 60.0, [])):
            self.assertEqual(expected, self.removed(recorded=records.Records(preempted_at=at)))

    def test_a_request_that_was_served_meanwhile_does_not_count(self):
        self.world.vms['all'].age = 30.0
        self.assertEqual([], self.removed())
        # Of two requests one is left.
        self.ask('newer', age=50.0)
        self.removed()
        self.assertEqual(['newer'], [one.request for one in self.audited._plan.removals])
        for other in ({'flavor': 'other'}, {'age': 90.0}):
            with mock.patch.multiple(self.world.vms['all'], **other):
                self.removed()
                self.assertIn('of 2 requests', self.message.status_message)

    def test_a_request_that_fits_already_needs_no_removal(self):
        self.world.hosts['b'].total = (4, 10, 100)
        self.assertEqual([], self.removed())
        self.assertIn('0 fit without 0 background VMs, 1 fit already',
                      self.message.status_message)

    def test_several_share_what_becomes_free(self):
        self.world.unplaced.clear()
        for number in range(3):
            self.ask(f'new-{number}', age=60.0 - number)
        # The third one fits where the large one was.
        self.assertEqual(['large', 'small'], sorted(self.removed()))
        self.assertIn('of 3 requests that found no host 2 fit without 2 background VMs, 1 fit '
                      'already', self.message.status_message)

    def test_background_and_unusual_requests_do_not_count(self):
        self.world.unplaced.clear()
        for number, specs in enumerate((
                {limits.CLASS: limits.BACKGROUND_CLASS}, {'trait:CUSTOM_X': 'required'},
                {'hw:cpu_policy': 'dedicated'}, {'hw:mem_page_size': 'large'},
                {'resources:CUSTOM_Y': '1'}, {'ssd': 'true'})):
            self.ask(f'new-{number}', extra_specs=specs)
        self.ask('grouped')
        self.world.groups.append(clouds.Group('g', 'anti-affinity', ('grouped', 'other'), 1))
        self.ask('elsewhere', zone='south')
        self.ask('huge', memory=9)
        self.assertEqual([], self.removed())
        self.assertIn('of 2 requests that found no host 0 fit without 0 background VMs, '
                      '0 fit already, 2 nowhere', self.message.status_message)

    def test_what_cannot_be_read_is_no_request(self):
        for field, value in (('fault', None), ('fault', {'message': 5}),
                             ('fault', {'message': 'No valid host was found.'}),
                             ('fault', {'message': 'Exceeded maximum number of retries.'}),
                             ('fault', {'message': 'No valid host was found.', 'created': 'x'}),
                             ('flavor', {'extra_specs': {}}), ('OS-EXT-STS:vm_state', 'active'),
                             ('OS-EXT-SRV-ATTR:host', 'gone')):
            with self.subTest(field=field, value=value), mock.patch.object(
                    clouds, '_server', autospec=True,
                    side_effect=lambda vm, real=clouds._server, field=field, value=value: {
                        **real(vm), **({} if vm.host else {field: value})}):
                self.assertEqual([], self.removed())

    def test_without_a_snapshot_or_nova_nothing_leaves(self):
        audit = self.audit(self.world, background_action='delete')
        audit._services._bodies['/servers/detail'] = {}
        with self.assertRaisesRegex(errors.TraconError, 'has no servers'):
            audit.execute()
        self.assertEqual([], audit.solution.actions)
        audit = audits.Ours(self.world, f'{self.path}.lost', background_action='delete')
        with self.assertRaises(errors.TraconError):
            audit.execute()
        self.assertEqual([], audit.solution.actions)

    def test_who_must_stay_is_left_alone(self):
        for uuid in ('small', 'all'):
            self.world.vms[uuid].locked = True
        self.assertEqual(['large'], self.removed())
        self.world.vms['large'].opted_out = True
        self.assertEqual([], self.removed())


if __name__ == '__main__':
    unittest.main()
