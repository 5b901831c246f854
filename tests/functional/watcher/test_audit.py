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

"""Audits by Watcher's real decision engine, on a model collected from a real Nova."""

from __future__ import annotations

import collections
import json
import pathlib

from tests.functional.watcher import base
from tracon_watcher.engine import listener
from tracon_watcher.placement import limits

TOLERANT = limits.Limits(max_slowdown=1.2)


class AuditTestCase(base.WatcherTestCase):
    """What an audit recommends, and what not."""

    def test_recommends_the_migration_that_ends_a_slowdown_and_it_does(self) -> None:
        victim, culprit = self.boot('host1'), self.boot('host1')
        other = self.boot('host2')
        demands = {victim: base.LIGHT, culprit: base.HEAVY, other: base.HEAVY}
        self.write_snapshot(demands, {victim: TOLERANT})
        outcome = self.box.audit(execute=True)
        self.assertEqual(('SUCCEEDED', 'SUCCEEDED'), (outcome.state, outcome.plan_state))
        self.assertEqual(1, len(outcome.actions))
        (moved, source, destination), = self.moves(outcome)
        self.assertIn(moved, (victim, culprit))
        self.assertEqual(('host1', 'host3', 'SUCCEEDED'),
                         (source, destination, outcome.actions[0].state))
        self.assertEqual('host3', self.host_of(moved))
        self.assertEqual((1, 0, 1), tuple(outcome.efficacy[name] for name in (
            'vms_in_breach_before', 'vms_in_breach_after', 'live_migrations_count')))
        self.assertGreater(outcome.efficacy['worst_slowdown_before'], 1.2)
        self.assertEqual(1, outcome.efficacy['worst_slowdown_after'])
        self.assertEqual(1, outcome.efficacy['mean_slowdown_after'])
        self.assertEqual(100, outcome.global_efficacy[0]['value'])
        self.assertIn(f'live-migrate VM {moved} from host1 to host3', '\n'.join(outcome.log))

        # A second audit finds nothing left to do, and says so.
        self.write_snapshot(demands, {victim: TOLERANT})
        again = self.box.audit()
        self.assertEqual(('SUCCEEDED', 'SUCCEEDED', ()),
                         (again.state, again.plan_state, again.actions))
        self.assertIn('no beneficial migration', again.message)

    def test_no_beneficial_migration_is_a_proper_answer(self) -> None:
        demands = {self.boot(host): base.HEAVY for host in self.HOSTS for _each in range(2)}
        self.write_snapshot(demands)
        outcome = self.box.audit()
        self.assertEqual(('SUCCEEDED', 'SUCCEEDED', ()),
                         (outcome.state, outcome.plan_state, outcome.actions))
        self.assertRegex(outcome.message, r'^0 live migrations \(against others: gain \d\); '
                                          'no beneficial migration')
        self.assertEqual(outcome.efficacy['mean_slowdown_before'],
                         outcome.efficacy['mean_slowdown_after'])

    def test_in_a_blackout_window_it_judges_and_moves_nothing(self) -> None:
        victim, culprit = self.boot('host1'), self.boot('host1')
        self.write_snapshot({victim: base.LIGHT, culprit: base.HEAVY}, {victim: TOLERANT})
        window = '00:00-24:00 Europe/Berlin'
        outcome = self.box.audit(parameters={'blackout_windows': [window]})
        self.assertEqual(('SUCCEEDED', 'SUCCEEDED', ()),
                         (outcome.state, outcome.plan_state, outcome.actions))
        self.assertIn(f'blackout window "{window}"', outcome.message)
        self.assertEqual((1, 1), (outcome.efficacy['vms_in_breach_before'],
                                  outcome.efficacy['vms_in_breach_after']))
        self.assertRegex('\n'.join(outcome.log),
                         f'Passed over: VM {culprit} of host1 to host[23] and 1 more: blackout, ')
        # The API refuses what the schema can tell, and the audit the rest.
        self.assertEqual('REJECTED', self.box.audit(
            parameters={'blackout_windows': ['at night']}).state)
        failed = self.box.audit(parameters={'blackout_windows': ['22:00-02:00 Europe/Bonn']})
        self.assertEqual('FAILED', failed.state)
        self.assertIn('knows no time zone Europe/Bonn', failed.message)

    def test_unknown_is_left_alone(self) -> None:
        a, b = self.boot('host1'), self.boot('host1')
        new = self.boot('host2')
        self.write_snapshot({a: base.HEAVY, b: base.HEAVY})
        self.assertEqual(['host3'], [move[2] for move in self.moves(self.box.audit())])
        self.write_snapshot({a: base.HEAVY, new: base.HEAVY})
        self.assertEqual([], self.moves(self.box.audit()))
        self.write_snapshot({a: base.HEAVY, b: base.HEAVY, new: base.LIGHT}, age=86400)
        stale = self.box.audit()
        self.assertEqual([], self.moves(stale))
        self.assertIn('nothing is known', stale.message)

    def test_anti_affinity_holds_within_a_plan_of_several_moves(self) -> None:
        group = self.api.post_server_groups({'name': 'apart', 'policy': 'anti-affinity'})['id']
        hints = {'group': group}
        members = [self.boot(host, hints=hints) for host in ('host1', 'host2')]
        culprits = [self.boot(host) for host in ('host1', 'host2')]
        for culprit in culprits:
            self.api.post_server_action(culprit, {'lock': {}})
        self.write_snapshot({**dict.fromkeys(members, base.LIGHT),
                             **dict.fromkeys(culprits, base.HEAVY)},
                            dict.fromkeys(members, TOLERANT))
        # Each of the two would be best off on host3, and only one may go there. That the culprits
        # cannot move does not keep it.
        outcome = self.box.audit()
        self.assertEqual('RECOMMENDED', outcome.plan_state)
        self.assertEqual(['host3'], [move[2] for move in self.moves(outcome)])
        self.assertIn(self.moves(outcome)[0][0], members)
        self.assertEqual((2, 1), (outcome.efficacy['vms_in_breach_before'],
                                  outcome.efficacy['vms_in_breach_after']))
        # Nova's own filter agrees: the plan can be carried out.
        done = self.box.audit(execute=True)
        self.assertEqual('SUCCEEDED', done.plan_state)
        self.assertEqual(2, len({self.host_of(member) for member in members}))

    def test_affinity_holds_members_together(self) -> None:
        group = self.api.post_server_groups({'name': 'together', 'policy': 'affinity'})['id']
        pair = [self.boot('host1', hints={'group': group}) for _each in range(2)]
        self.write_snapshot(dict.fromkeys(pair, base.HEAVY))
        outcome = self.box.audit()
        self.assertEqual((), outcome.actions)
        self.assertIn('would leave its affinity group together', '\n'.join(outcome.log))


class RequestTestCase(base.WatcherTestCase):
    """A request of the foreground, and a host full of background work."""

    HOSTS = ('host1',)

    def flavor(self, memory: int, **specs: str) -> str:
        return str(self._create_flavor(memory_mb=memory, vcpu=1, disk=1, ephemeral=0,
                                       extra_spec=specs))

    def test_a_request_that_found_no_host_finds_one_when_background_work_has_left(self) -> None:
        batch = [self.boot('host1', flavorRef=self.flavor(memory, **{
            limits.CLASS: limits.BACKGROUND_CLASS})) for memory in (1536, 5120)]
        request = {'server': {**self._build_server(networks='none'),
                              'flavorRef': self.flavor(3072)}}
        failed = self._wait_for_state_change(self.api.post_server(request), 'ERROR')
        self.assertIn('No valid host', failed['fault']['message'])
        told, = self.notifier.wait_for_versioned_notifications(
            'compute_task.build_instances.error')
        trigger = listener.AuditTrigger(lambda: None)
        trigger.tell(told['payload']['nova_object.data'])
        self.assertTrue(trigger.wanted.is_set())
        background = dict.fromkeys(batch, limits.BACKGROUND)
        self.write_snapshot(dict.fromkeys(batch, base.LIGHT), background)
        for action in ('none', 'stop'):
            self.assertEqual((), self.box.audit(parameters={'background_action': action}).actions)
        wanted = {'background_action': 'delete'}
        outcome = self.box.audit(parameters=wanted, execute=True)
        self.assertEqual([('delete', batch[1], 'SUCCEEDED')], [
            (one.kind, one.parameters['resource_id'], one.state) for one in outcome.actions])
        self.assertEqual(1, outcome.efficacy['background_vms_removed'])
        self.assertIn(f'makes room for VM {failed["id"]}', '\n'.join(outcome.log))
        # Nova does not try again by itself.
        self.assertEqual('ERROR', self.api.get_server(failed['id'])['status'])
        served = self._wait_for_state_change(self.api.post_server(request), 'ACTIVE')
        self.assertEqual('host1', self.host_of(served['id']))
        # The request of before still stands; it counts once.
        self.write_snapshot({batch[0]: base.LIGHT, served['id']: base.LIGHT}, background)
        self.assertEqual((), self.box.audit(parameters=wanted).actions)


class StayTestCase(base.WatcherTestCase):
    """VMs that must stay, for each reason there is."""

    HOSTS = ('host1', 'host2')

    def setUp(self) -> None:
        super().setUp()
        self.pair = [self.boot('host1'), self.boot('host1')]
        self.write_snapshot(dict.fromkeys(self.pair, base.HEAVY))

    def assert_moves(self, **parameters: object) -> None:
        self.assertEqual(['host2'], [move[2] for move in self.moves(
            self.box.audit(parameters=parameters))])

    def assert_stay(self, reason: str, **parameters: object) -> None:
        outcome = self.box.audit(parameters=parameters)
        self.assertEqual(('SUCCEEDED', ()), (outcome.state, outcome.actions), outcome)
        passed = [line for line in outcome.log if 'Passed over' in line and reason in line]
        self.assertEqual(2, len(passed), outcome.log)

    def test_a_vm_that_must_stay_does(self) -> None:
        self.assert_moves()
        project = self.api.get_server(self.pair[0])['tenant_id']
        self.assert_stay('is excluded', excluded_projects=[project])
        for specs, reason in (({'hw:cpu_policy': 'dedicated'}, 'is pinned'),
                              ({'resources:PCPU': '2'}, 'is pinned'),
                              ({'pci_passthrough:alias': 'nic:1'}, 'has a device')):
            for vm in self.pair:
                self.edit(vm, extra_specs=specs)
            self.assert_stay(reason)
        for vm in self.pair:
            self.edit(vm, extra_specs={}, image={'hw_cpu_policy': 'dedicated'})
        self.assert_stay('image property hw_cpu_policy')
        for vm in self.pair:
            self.edit(vm, image={}, task_state='rebooting')
        self.assert_stay('task state rebooting')
        for vm in self.pair:
            self.edit(vm, task_state=None, vm_state='error')
        self.assert_stay('not active')
        for vm in self.pair:
            self.edit(vm, vm_state='active')
        self.assert_moves()

    def test_tenants_and_administrators_are_obeyed(self) -> None:
        for value in ('false', 'true'):
            for vm in self.pair:
                self.api.api_post(f'/servers/{vm}/metadata',
                                  {'metadata': {'tracon:exclude': value, 'quiet': 'yes'}})
            if value == 'false':
                self.assert_moves()
        self.assert_stay('tracon:exclude=true')
        self.assert_stay('quiet=yes', opt_out_key='quiet')
        self.assert_moves(opt_out_key='something-else')
        for vm in self.pair:
            self.api.api_delete(f'/servers/{vm}/metadata/tracon:exclude')
            self.api.post_server_action(vm, {'lock': {}})
        self.assert_stay('is locked')
        for vm in self.pair:
            self.api.post_server_action(vm, {'unlock': {}})
        service = self.api.get_services(binary='nova-compute', host='host2')[0]['id']
        self.api.put_service(service, {'status': 'disabled'})
        self.assert_stay('its compute service is disabled')
        self.api.put_service(service, {'status': 'enabled'})
        self.assert_moves()

    def test_direct_ports_keep_a_vm(self) -> None:
        for vm, port in zip(self.pair, (self.neutron.sriov_port, self.neutron.sriov_port2)):
            self.neutron._ports.setdefault(port['id'], dict(port))['device_id'] = vm
        self.assert_stay('network port of type direct')

    def test_other_movers_count_for_the_cooldown(self) -> None:
        for vm in self.pair:
            for host in ('host2', 'host1'):
                self.migrate(vm, host)
        self.assert_stay('cools down')
        self.assert_moves(cooldown_seconds=0)

    def test_requests_do_not_grow_with_the_number_of_vms(self) -> None:
        counts = []
        self.boot('host2')
        for more in (0, 3):
            for _each in range(more):
                self.boot('host1')
                self.boot('host2')
            self.door.requests.clear()
            self.assertEqual('SUCCEEDED', self.box.audit().state)
            counts.append(collections.Counter(
                (service, path) for service, _method, path in self.door.requests
                if path.endswith(('/servers/detail', '/os-server-groups', '/os-services',
                                  '/os-migrations', '/ports'))))
        self.assertEqual(counts[0], counts[1])
        self.assertEqual(1, counts[0]['network', '/v2.0/ports'])
        self.assertEqual(1, counts[0]['compute', '/v2.1/os-migrations'])
        # All servers once by us; Watcher's own model asks for two pages of each host.
        self.assertEqual(1 + 2 * len(self.HOSTS), counts[0]['compute', '/v2.1/servers/detail'])


class BadInputTestCase(base.WatcherTestCase):
    """What an operator gets wrong is named."""

    HOSTS = ('host1', 'host2')

    def test_bad_parameters_are_refused_by_the_api(self) -> None:
        for name, value, word in (('max_migrations', 'banana', 'banana'),
                                  ('max_migrations', 0, 'minimum'),
                                  ('min_gain', -1, 'minimum'),
                                  ('excluded_projects', 'all', 'all'),
                                  ('confidence', 2, 'maximum'),
                                  ('no_such_parameter', 1, 'no_such_parameter')):
            with self.subTest(name=name, value=value):
                outcome = self.box.audit(parameters={name: value})
                self.assertEqual('REJECTED', outcome.state)
                self.assertIn(word, '\n'.join(outcome.log))

    def test_a_corrupt_snapshot_fails_the_audit_and_is_named(self) -> None:
        vm = self.boot('host1')
        self.write_snapshot({vm: base.HEAVY})
        path = pathlib.Path(self.snapshot_file)
        whole = path.read_text()
        header, *rest = whole.splitlines(keepends=True)
        edited = {**json.loads(header), 'maximum_age_seconds': 'banana'}
        for text, words in (
                (header + rest[0], ('truncated',)),
                (json.dumps(edited) + '\n' + ''.join(rest), ('maximum_age_seconds', 'banana')),
                (whole.replace('"host":"host1"', '"host":"host9"'), ('sha256', 'changed')),
                ('', ('truncated',))):
            path.write_text(text)
            outcome = self.box.audit()
            self.assertEqual(('FAILED', None), (outcome.state, outcome.plan_state))
            for word in (self.snapshot_file, *words):
                self.assertIn(word, outcome.message)
                self.assertIn(word, '\n'.join(outcome.log))
        path.unlink()
        self.assertIn('No such file', self.box.audit().message)
        other = self.box.audit(parameters={'snapshot_file': '/nowhere/snapshot'})
        self.assertIn('/nowhere/snapshot', other.message)

    def test_watcher_lists_goal_strategy_and_scoring_engines(self) -> None:
        goal, = [one for one in self.box.get('/v1/goals')['goals']
                 if one['name'] == 'interference']
        self.assertEqual(
            ['vms_in_breach_before', 'vms_in_breach_after', 'mean_slowdown_before',
             'mean_slowdown_after', 'worst_slowdown_before', 'worst_slowdown_after',
             'live_migrations_count', 'background_vms_removed'],
            [one['name'] for one in goal['efficacy_specification']])
        strategy, = [one for one in self.box.get('/v1/strategies/detail')['strategies']
                     if one['name'] == 'tracon_interference']
        self.assertEqual('interference', strategy['goal_name'])
        self.assertEqual(5, strategy['parameters_spec']['properties']['max_migrations']['default'])
        self.assertLessEqual(
            {'tracon_slowdown', 'tracon_iops_ratio'},
            {one['name'] for one in self.box.get('/v1/scoring_engines')['scoring_engines']})
