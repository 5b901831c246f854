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

"""Watcher's model of the cluster brought together with snapshot and inventory."""

import dataclasses
import unittest

import numpy as np
from watcher.decision_engine.model import element
from watcher.decision_engine.model import model_root

from tests import synthetic
from tracon_watcher.decision_engine import constraints_builder
from tracon_watcher.decision_engine import inventory
from tracon_watcher.decision_engine import reconcile
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import placement_constraints

WISHES = constraints_builder.ConstraintParameters(frozenset(), 'tracon:exclude', 600)


def server(uuid, host, **fields):
    return inventory.Server(**{**dict(
        uuid=uuid, name=uuid, project='p', host=host, vm_state='active', task_state=None,
        locked=False, metadata={}, extra_specs={}, image_properties={}, pinned_zone=None),
        **fields})


def service(host, up=True):
    return inventory.Service(host, True, up, 'nova', None)


def watcher_model(where):
    """Build Watcher's own model: names of VMs by host."""
    model = model_root.ModelRoot()
    for host, vms in where.items():
        node = element.ComputeNode(
            uuid=f'node-{host}', hostname=host, memory=1024, memory_mb_reserved=0, disk=100,
            disk_gb_reserved=0, vcpus=8, vcpu_reserved=0, memory_ratio=1.0, vcpu_ratio=2.0,
            disk_ratio=1.0, state='up', status='enabled', disabled_reason=None)
        model.add_node(node)
        for vm in vms:
            instance = element.Instance(uuid=vm, name=vm, memory=256, disk=1, vcpus=1,
                                        state='active', watcher_exclude=vm == 'excluded')
            model.add_instance(instance)
            model.map_instance(instance, node)
    return model


class ReconcileCase(unittest.TestCase):
    """Has a snapshot, Watcher's model and Nova's answers, which differ."""

    def setUp(self):
        super().setUp()
        busy = 0.3 * synthetic.CAPACITY
        self.known = cluster.build([
            cluster.Host('h1', (
                cluster.Resident('a', busy, limits.Limits(1.5), own_wait=0.4, vcpus=4,
                                 storage_wait=0.2),
                cluster.Resident('gone', busy),
                cluster.Resident('left', busy)), synthetic.HOST_TYPE, 'pool', 5.0, 48),
            cluster.Host('h2', (cluster.Resident('stopped', busy, own_wait=0.4),),
                         synthetic.HOST_TYPE, cluster.LOCAL, 6.0),
            cluster.Host('far', (cluster.Resident('b', busy),), synthetic.HOST_TYPE),
            cluster.Host('removed', (), synthetic.HOST_TYPE)], version=7)
        self.model = watcher_model({'h1': ['a', 'gone', 'left'], 'h2': ['stopped', 'excluded'],
                                    'h3': ['new']})
        listed = (server('a', 'h1'), server('left', 'h2'), server('b', 'far'),
                  server('stopped', 'h2', vm_state='stopped'), server('excluded', 'h2'),
                  server('new', 'h3'))
        self.found = inventory.Inventory(
            {one.uuid: one for one in listed},
            (inventory.ServerGroup('g', 'affinity', 1, frozenset(('a', 'lost'))),),
            {host: service(host, host != 'h3') for host in ('h1', 'h2', 'h3', 'far')},
            {'a': 1000.0}, {}, arriving={'h2': 'far-away', 'h3': 'far-away'})
        self.state = reconcile.reconcile(self.known, self.model, self.found)


class MatchedTestCase(ReconcileCase):

    def matched(self, names, hosts=('h1', 'h2', 'far', 'removed')):
        asked = []
        known = dataclasses.replace(self.known, hosts=names)
        found = reconcile.matched(known, hosts, lambda: asked.append(1) or {
            f'{name}.example.org': name for name in hosts} | {'other.example.org': 'h2'})
        return (*found, len(asked))

    def test_names_that_are_novas_need_no_other(self):
        found, missing, asked = self.matched(self.known.hosts)
        self.assertEqual((self.known.hosts, (), 0), (found.hosts, missing, asked))
        # Hosts that are newer than the snapshot have no other name in it either.
        self.assertEqual((('h4',), 0), self.matched(
            self.known.hosts, (*self.known.hosts, 'h4'))[1:])

    def test_a_host_may_have_the_name_of_its_hypervisor(self):
        names = tuple(f'{name}.example.org' for name in self.known.hosts)
        found, missing, _asked = self.matched(names)
        self.assertEqual((self.known.hosts, ()), (found.hosts, missing))
        state = reconcile.reconcile(found, self.model, self.found)
        np.testing.assert_array_equal(self.state.profiles, state.profiles)
        self.assertEqual(self.state.io_domains, state.io_domains)
        # One service may have several hypervisors: no host is there twice.
        found, _missing, _asked = self.matched(('h1', 'h2.example.org', 'other.example.org', 'x'))
        self.assertEqual(('h1', 'h2', 'other.example.org', 'x'), found.hosts)

    def test_names_that_match_nothing_are_said(self):
        found, missing, _asked = self.matched(('H1', 'h2.', 'far.old', 'removed'))
        self.assertEqual(('far', 'h1', 'h2'), missing)
        self.assertIn("does not have far and 2 more of Nova's hosts (it has H1)",
                      reconcile.unmatched(found, missing))


class RoomTestCase(ReconcileCase):

    def test_a_host_that_placement_does_not_name_is_not_full_without_a_word(self):
        found = dataclasses.replace(self.found, room={'node-h1': (1.0, 1.0, 1.0)}, arriving={})
        built = constraints_builder.build(found, self.model, WISHES, self.state.host_index)
        self.assertIn('Placement names no memory left on its node node-h2', built.closed['h2'])
        self.assertNotIn('h1', built.closed)


class ReconcileTestCase(ReconcileCase):

    def test_vms_are_where_they_are_now(self):
        where = {uuid: self.state.hosts[host]
                 for uuid, host in zip(self.state.uuids, self.state.host)}
        self.assertEqual({'a': 'h1', 'left': 'h2', 'b': 'far', 'stopped': 'h2',
                          'excluded': 'h2', 'new': 'h3'}, where)
        self.assertNotIn('removed', self.state.hosts)
        self.assertEqual(7, self.state.version)

    def test_sizes_go_along(self):
        row = self.state.resident_index['a']
        self.assertEqual((4, 0.2), (self.state.vcpus[row], self.state.storage_wait[row]))
        self.assertEqual(48, self.state.cores[self.state.host_index['h1']])
        # One that stands still waits for nothing; of one that is new nothing is known.
        self.assertEqual(0.0, self.state.storage_wait[self.state.resident_index['stopped']])
        self.assertTrue(np.isnan(self.state.storage_wait[self.state.resident_index['new']]))

    def test_what_vms_wait_for_their_own_limits_goes_along(self):
        self.assertEqual({'a': 0.4}, {
            uuid: wait for uuid, wait in zip(self.state.uuids, self.state.own_wait) if wait})

    def test_vms_that_run_nowhere_make_no_host_unknown(self):
        for state in ('error', 'building'):
            servers = {**self.found.servers, 'broken': server('broken', 'far', vm_state=state)}
            found = dataclasses.replace(self.found, servers=servers)
            self.assertNotIn('broken', reconcile.reconcile(
                self.known, self.model, found).resident_index)

    def test_one_that_ran_until_something_failed_counts_as_before(self):
        servers = {**self.found.servers, 'a': server('a', 'h1', vm_state='error')}
        found = reconcile.reconcile(self.known, self.model,
                                    dataclasses.replace(self.found, servers=servers))
        row = found.resident_index['a']
        np.testing.assert_array_equal(
            self.known.profiles[self.known.resident_index['a']], found.profiles[row])

    def test_vms_of_a_cell_that_does_not_answer_stay_where_they_were(self):
        services = {**self.found.services, 'h1': inventory.Service(
            'h1', False, False, '', None, reachable=False)}
        servers = {uuid: one for uuid, one in self.found.servers.items() if one.host != 'h1'}
        found = dataclasses.replace(self.found, servers=servers, services=services)
        state = reconcile.reconcile(self.known, self.model, found)
        where = {uuid: state.hosts[host] for uuid, host in zip(state.uuids, state.host)}
        self.assertEqual(('h1', 'h1', 'h2'), (where['a'], where['gone'], where['left']))
        made = constraints_builder.build(found, self.model, WISHES, state.host_index)
        self.assertIn('a', made.immovable)

    def test_what_the_snapshot_lacks_is_unknown_and_what_stands_still_is_idle(self):
        profile = {uuid: self.state.profiles[row]
                   for uuid, row in self.state.resident_index.items()}
        self.assertTrue(np.isnan(profile['new']).all())
        self.assertTrue((profile['stopped'] == 0).all())
        np.testing.assert_array_equal(0.3 * synthetic.CAPACITY, profile['a'])
        index = self.state.host_index
        self.assertEqual((synthetic.HOST_TYPE, None), (
            self.state.host_type[index['h1']], self.state.host_type[index['h3']]))
        self.assertEqual('pool', self.state.io_domains[self.state.host_io_domain[index['h1']]])
        self.assertEqual(1.5, self.state.max_slowdown[self.state.resident_index['a']])

    def test_storage_that_is_unknown_is_not_taken_for_the_hosts_own(self):
        busy = 0.3 * synthetic.CAPACITY
        known = cluster.build([cluster.Host('h2', (
            cluster.Resident('stopped', busy, io_domain=cluster.UNKNOWN),
            cluster.Resident('excluded', busy)), synthetic.HOST_TYPE, cluster.LOCAL, 6.0)])
        found = reconcile.reconcile(known, self.model, self.found)
        own = found.host_io_domain[found.host_index['h2']]
        self.assertEqual([-1, own], [found.io_domain[found.resident_index[uuid]]
                                     for uuid in ('stopped', 'excluded')])
        self.assertGreaterEqual(own, 0)

    def test_members_of_a_group_whose_policy_is_not_known_stay(self):
        found = dataclasses.replace(self.found, groups=(
            *self.found.groups,
            inventory.ServerGroup('far apart', 'rack-anti-affinity', 1, frozenset(('a', 'new'))),
            inventory.ServerGroup('alone', 'rack-affinity', 1, frozenset(('left',)))))
        made = constraints_builder.build(found, self.model, WISHES, self.state.host_index)
        self.assertEqual('is in server group far apart, whose policy rack-anti-affinity is not '
                         'known to this release', made.immovable['a'])
        # What was said before is said still.
        self.assertIn('does not answer', made.immovable['new'])
        self.assertIn('out of date', made.immovable['left'])
        self.assertEqual(['g'], [one.name for one in made.groups])

    def test_constraints_say_why(self):
        made = constraints_builder.build(self.found, self.model, WISHES, self.state.host_index)
        self.assertNotIn('a', made.immovable)
        for uuid, word in (('gone', 'deleted'), ('left', 'out of date'), ('b', 'scope'),
                           ('stopped', 'not active'), ('excluded', 'scope of the audit'),
                           ('new', 'does not answer')):
            self.assertIn(word, made.immovable[uuid])
        self.assertEqual({'h2', 'h3', 'far'}, set(made.closed))
        self.assertEqual((13, 256, 97), made.free['h1'])
        self.assertIn('VM far-away is on its way to it', made.closed['h2'])
        self.assertEqual((1, 256, 1), made.needs['a'])
        self.assertEqual({'a': 1600.0}, made.cooldown_until)
        self.assertEqual(placement_constraints.GroupPolicy.AFFINITY, made.groups[0].policy)
        self.assertEqual(0, made.groups[0].outside)

    def test_services_that_stand_for_several_machines_are_left_alone(self):
        found = dataclasses.replace(self.found, several=frozenset(('h1', 'far')))
        state = reconcile.reconcile(self.known, self.model, found)
        self.assertEqual({'h2', 'h3'}, set(state.hosts))
        self.assertFalse({'a', 'b'} & state.resident_index.keys())
        made = constraints_builder.build(found, self.model, WISHES, state.host_index)
        self.assertIn('several machines', made.immovable['a'])

    def leaving(self, destination, task='migrating', state='active'):
        """Return the host of VM a, what it demands, and the hosts that take no VMs."""
        found = dataclasses.replace(self.found, servers={
            **self.found.servers, 'a': server('a', 'h1', task_state=task, vm_state=state)},
            leaving={'a': destination})
        known = reconcile.reconcile(self.known, self.model, found)
        row = known.resident_index['a']
        made = constraints_builder.build(found, self.model, WISHES, known.host_index)
        self.assertIn('a', made.immovable)
        return known.hosts[known.host[row]], known.profiles[row].tolist(), 'h1' in made.closed

    def test_who_is_leaving_counts_where_it_will_be(self):
        busy = (0.3 * synthetic.CAPACITY).tolist()
        # Live, cold and back from a resize; and an evacuation, which may find it failed.
        for task in ('migrating', 'resize_migrating', 'resize_reverting', 'rebuilding'):
            for state in ('active', 'resized', 'error'):
                self.assertEqual(('h2', busy, True), self.leaving('h2', task, state))
        self.assertEqual(('far', busy, True), self.leaving('far'))
        # To where is not known, or not to be judged.
        for destination in (None, 'nowhere'):
            self.assertEqual(('h1', [0.0] * 4, True), self.leaving(destination))
        self.assertEqual(('h2', [0.0] * 4, True), self.leaving('h2', state='stopped'))

    def test_one_that_waits_for_confirmation_counts_where_it_runs(self):
        servers = {**self.found.servers, 'a': server('a', 'h2', vm_state='resized')}
        found = reconcile.reconcile(self.known, self.model,
                                    dataclasses.replace(self.found, servers=servers))
        self.assertEqual('h2', found.hosts[found.host[found.resident_index['a']]])

    def test_a_migration_without_a_task_has_ended(self):
        servers = {**self.found.servers, 'a': server('a', 'h1')}
        found = dataclasses.replace(self.found, servers=servers, leaving={'a': 'h2'})
        known = reconcile.reconcile(self.known, self.model, found)
        self.assertEqual('h1', known.hosts[known.host[known.resident_index['a']]])
        self.assertNotIn('h1', constraints_builder.build(found, self.model, WISHES,
                                                         known.host_index).closed)

    def test_who_is_about_to_stand_still_demands_nothing(self):
        for task, still in (('deleting', True), ('powering-off', True), ('suspending', True),
                            ('shelving_image_uploading', True), ('rebooting', False)):
            servers = {**self.found.servers, 'a': server('a', 'h1', task_state=task)}
            found = reconcile.reconcile(self.known, self.model,
                                        dataclasses.replace(self.found, servers=servers))
            self.assertEqual(still, not found.profiles[found.resident_index['a']].any(), task)

    def test_room_is_what_both_watcher_and_placement_see(self):
        for room, expected in (({'node-h1': (2.0, 512.0, 1.5)}, (2.0, 256, 1.5)),
                               # It has neither vCPUs nor memory left; of disks it does not tell.
                               ({'node-h2': (2.0, 512.0, 1.5)}, (0.0, 0.0, 97.0))):
            found = dataclasses.replace(self.found, room=room)
            built = constraints_builder.build(found, self.model, WISHES, self.state.host_index)
            self.assertEqual(expected, built.free['h1'])
            self.assertEqual('node-h1' not in room, 'h1' in built.full)

    def test_who_is_moved_again_and_again_stays_ever_longer(self):
        for moves, wanted, expected in ((1, 600, 600), (2, 600, 1200), (3, 600, 2400),
                                        (9, 600, 21600), (99, 600, 21600), (4, 0, 0),
                                        (3, 86400, 86400)):
            found = dataclasses.replace(self.found, moves={'a': moves})
            made = constraints_builder.build(found, self.model, dataclasses.replace(
                WISHES, cooldown_seconds=wanted), self.state.host_index)
            self.assertEqual({'a': 1000.0 + expected}, made.cooldown_until)
