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

import dataclasses
import math
import unittest

import numpy as np

from tracon_watcher.engine import state
from tracon_watcher.inventory import cloud
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles


def server(uuid, host='h1', vm_state='active', image='image', volumes=(), specs=None):
    return cloud.Server(uuid, uuid, 'p', host, 'm1', specs or {}, image, vm_state, volumes)


class StateTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.reported = []
        self.aggregates = []
        self.backends = {}
        self.strangers = {}
        self.remembered = frozenset()
        self.hypervisors = {name: cloud.Hypervisor(name, True, True, cores=cores)
                            for name, cores in (('h1', 48), ('h2', None))}

    def build(self, *servers, demand=state.NOTHING, defaults=state.Defaults('type', 'local')):
        inventory = cloud.Inventory(
            {one.uuid: one for one in servers},
            self.hypervisors,
            tuple(self.aggregates), self.backends, 0.0, {}, self.strangers, self.remembered)
        return state.build(inventory, demand, defaults, 7, 1000.0,
                           lambda kind, text: self.reported.append((kind, text)))

    @staticmethod
    def demand(**profiles):
        return state.Demand(
            np.array([np.full(4, value) for value in profiles.values()]),
            np.zeros((len(profiles), 4)),
            np.array([900.0 + place for place in range(len(profiles))]),
            {uuid: place for place, uuid in enumerate(profiles)})

    def test_what_vms_refer_to_and_no_listing_has_is_reported(self):
        found = self.build(server('a', 'h9'), server('b', 'h9'), server('c', None), server('d'),
                           server('e', None, 'building'), server('f', None, 'shelved_offloaded'))
        self.assertEqual(('d',), found.uuids)
        self.assertEqual(['hosts', 'hosts'], [kind for kind, _text in self.reported])
        strange, homeless = (text for _kind, text in self.reported)
        self.assertIn('VM a is on host h9, and Nova lists no compute service of that', strange)
        self.assertIn('VM c runs, and Nova names no host', homeless)

    def test_names_of_hosts_that_are_odd_are_reported(self):
        for name in ('H1', 'a\0'):
            self.hypervisors[name] = cloud.Hypervisor(name, True, True, cores=48)
        found = self.build(server('a'), server('b', 'H1'), server('c', 'a\0'))
        # Two that differ in case are two to Nova.
        self.assertEqual(('h1', 'h2', 'H1'), found.hosts)
        self.assertEqual(('a', 'b'), found.uuids)
        case, control, strange = (text for _kind, text in self.reported)
        self.assertIn('hosts H1 and h1 differ in case only', case)
        self.assertIn(r"a compute service on 'a\x00', which is no name", control)
        self.assertIn('VM c is on host', strange)

    def test_volumes_without_a_backend_are_reported_and_make_their_hosts_unknown(self):
        self.backends = {'v1': 'ceph'}
        found = self.build(server('a', image='', volumes=('v1',)),
                           server('b', 'h2', image='', volumes=('v1', 'v2')),
                           server('c', 'h2', image='', volumes=('v3',)),
                           server('d', 'h2', volumes=('v4',)), server('e', image=''))
        self.assertEqual([False, True, True], [bool(found.io_domain[
            found.resident_index[uuid]] < 0) for uuid in 'abc'])
        (kind, text), = self.reported
        self.assertEqual('storage', kind)
        self.assertRegex(text, 'VM b boots from a volume, .*volume_host_attribute')

    def test_vms_have_their_demand_and_hosts_the_time_of_their_latest_sample(self):
        found = self.build(server('a'), server('b', 'h2'), server('c', 'h2'),
                           demand=self.demand(a=1.0, b=2.0, c=3.0))
        self.assertEqual(('h1', 'h2'), found.hosts)
        np.testing.assert_array_equal([[1.0] * 4, [2.0] * 4, [3.0] * 4], found.profiles)
        np.testing.assert_array_equal([900.0, 902.0], found.updated_at)
        np.testing.assert_array_equal([48, np.nan], found.cores)
        # Nothing was told of that.
        self.assertTrue(np.isnan(found.storage_wait).all())
        self.assertEqual(7, found.version)

    def test_how_cores_are_shared(self):
        self.hypervisors['h1'] = cloud.Hypervisor('h1', True, True, cores=48, threads=2)
        found = self.build(server('a', specs={'quota:cpu_shares': '25'}),
                           server('b', specs={'hw:cpu_policy': 'dedicated'}), server('c', 'h2'))
        self.assertEqual([0.25, 0.0, 1.0], found.cpu_weight.tolist())
        self.assertEqual([2, 1], found.threads.tolist())

    def test_a_host_without_vms_is_known_to_be_idle(self):
        self.assertEqual([1000.0, 1000.0], self.build().updated_at.tolist())

    def test_a_host_whose_vms_all_stand_still_is_known_to_be_idle(self):
        found = self.build(server('a', vm_state='stopped'), server('b', 'h2'))
        self.assertEqual([1000.0, 0.0], found.updated_at.tolist())

    def test_until_a_new_vm_is_heard_of_its_launch_is_what_is_known(self):
        found = self.build(server('old'), dataclasses.replace(server('new'), launched_at=950.0),
                           demand=self.demand(old=1.0))
        self.assertEqual(950.0, found.updated_at[0])

    def test_a_vm_that_is_never_heard_of_is_unknown_after_a_while(self):
        def found(launched_at, patience, skew=0.0):
            new = dataclasses.replace(server('new'), launched_at=launched_at)
            inventory = cloud.Inventory({'old': server('old'), 'new': new}, self.hypervisors, (),
                                        {}, 0.0)
            return state.build(inventory, self.demand(old=1.0), state.Defaults(), 7, 1000.0,
                               lambda kind, text: None, patience=patience,
                               skews={'h1': skew}).profiles[1, 0]
        self.assertEqual(1.0, found(950.0, 60.0))
        self.assertTrue(math.isnan(found(930.0, 60.0)))
        # When it was launched may not be known.
        self.assertEqual(1.0, found(0.0, 60.0))
        self.assertEqual(1.0, found(0.0, 60.0, 300.0))
        # It has its time from its host's clock, and nothing is launched in the future.
        self.assertTrue(math.isnan(found(1250.0, 60.0)))
        self.assertEqual(1.0, found(1250.0, 60.0, 300.0))
        self.assertTrue(math.isnan(found(1200.0, 60.0, 300.0)))

    def test_a_time_that_is_yet_to_come_makes_no_host_known(self):
        for at, known in ((1100.0, 1000.0), (1200.0, 0.0), (1e9, 0.0)):
            for name in ('launched_at', 'resumed_at'):
                found = self.build(dataclasses.replace(server('a'), **{name: at}))
                self.assertEqual(known, found.updated_at[0])
            demand = dataclasses.replace(self.demand(a=1.0), updated_at=np.array([at]))
            self.assertEqual(known, self.build(server('a'), demand=demand).updated_at[0])

    def test_until_a_vm_that_runs_again_is_heard_of_it_does_what_its_kind_does(self):
        def found(resumed_at, **more):
            demand = self.demand(**{'x': 1.0, 'y': 3.0, 'again': math.nan, **more})
            again = dataclasses.replace(server('again', 'h2'), resumed_at=resumed_at)
            built = self.build(server('x'), server('y'), again, demand=demand)
            return built.profiles[2, 0], built.updated_at[1]
        self.assertEqual((2.0, 950.0), found(950.0))
        # Since then there were samples, and they told nothing.
        profile, updated_at = found(850.0)
        self.assertTrue(math.isnan(profile))
        self.assertEqual(902.0, updated_at)
        # What it did before it stood still says more than its kind, as long as it is kept.
        self.assertEqual((7.0, 950.0), found(950.0, again=7.0))

    def test_a_host_of_a_cell_that_does_not_answer_is_not_taken_for_idle(self):
        self.hypervisors['h2'] = cloud.Hypervisor('h2', False, False, reachable=False)
        self.assertEqual([1000.0, 0.0], self.build().updated_at.tolist())

    def test_bare_metal_servers_are_no_neighbours_and_no_ones_kind(self):
        self.hypervisors['h2'] = cloud.Hypervisor('h2', True, True, type='ironic')
        found = self.build(server('a'), server('b', 'h2'), server('c', 'h2'),
                           demand=self.demand(a=1.0, b=9.0, c=9.0))
        self.assertEqual((('h1',), ('a',)), (found.hosts, found.uuids))
        self.assertEqual([1.0] * 4, found.history[newcomer_profiles.ALL].mean.tolist())
        self.hypervisors['h2'] = cloud.Hypervisor('h2', True, True, reachable=False, type='ironic')
        self.assertEqual(('h1',), self.build(server('a')).hosts)

    def silent(self, *hosts):
        """Have the cell of these hosts not answer; h1, h3 and h4 are another one's."""
        self.hypervisors = {
            name: cloud.Hypervisor(name, True, True, reachable=name not in hosts, cores=4)
            for name in ('h1', 'h2', 'h3', 'h4')}
        self.aggregates = [cloud.Aggregate('one', frozenset(['h1', 'h2']), {state.STORAGE: 'one'}),
                           cloud.Aggregate('two', frozenset(['h3']), {state.STORAGE: 'two'})]

    def storage(self, *servers):
        """Return the storage of the hosts, and of the VMs; None where it is unknown."""
        found = self.build(*servers)
        return [[None if index < 0 else found.io_domains[index] for index in one]
                for one in (found.host_io_domain, found.io_domain)]

    def test_a_pool_that_vms_use_which_nothing_is_known_of_is_unknown_and_no_other(self):
        self.silent('h2')
        servers = server('a'), server('b', 'h3'), server('c', 'h4')
        self.assertEqual([[None, None, 'two', 'local:h4'], [None, 'two', 'local:h4']],
                         self.storage(*servers))
        self.assertEqual(['cells'], [kind for kind, _text in self.reported])
        self.assertIn('storage one', self.reported[0][1])

    def test_a_pool_is_known_when_its_vms_are_or_its_hosts_are_merely_down(self):
        self.silent('h2')
        self.remembered = frozenset(['h2'])
        known = ['one', 'one', 'two', 'local:h4']
        self.assertEqual(known, self.storage(server('a'))[0])
        self.silent()
        self.hypervisors['h2'] = cloud.Hypervisor('h2', False, False)
        self.strangers = {'b': frozenset(['two'])}
        self.assertEqual(known, self.storage(server('a'))[0])
        self.assertEqual([], self.reported)

    def test_what_volumes_the_vms_of_a_silent_cell_have_cinder_says(self):
        self.silent('h4')
        self.strangers = {'lost': frozenset(['ceph', 'two']), 'a': frozenset(['nvme'])}
        self.backends = {'va': 'nvme', 'vb': 'ceph'}
        servers = (server('a', image='', volumes=('va',)), server('c', 'h2'),
                   server('b', 'h2', image='', volumes=('vb',)))
        # Of h4 itself, which has its own disk, no other host feels anything.
        self.assertEqual([['one', 'one', None, 'local:h4'], ['nvme', 'one', None]],
                         self.storage(*servers))

    def test_a_vm_that_stands_still_demands_nothing(self):
        found = self.build(server('a', vm_state='stopped'), demand=self.demand(a=5.0))
        np.testing.assert_array_equal([[0.0] * 4], found.profiles)

    def test_a_new_vm_does_what_its_kind_does_and_a_lost_one_is_unknown(self):
        demand = self.demand(a=1.0, b=3.0, lost=math.nan)
        found = self.build(server('a'), server('b'), server('new'), server('lost'),
                           demand=demand)
        at = found.resident_index
        np.testing.assert_array_equal([2.0] * 4, found.profiles[at['new']])
        self.assertTrue(np.isnan(found.profiles[at['lost']]).all())

    def test_a_new_vm_of_an_unheard_of_kind_is_unknown(self):
        found = self.build(server('new'))
        self.assertTrue(np.isnan(found.profiles).all())

    def test_the_limit_of_the_flavor_comes_before_the_aggregates_strictest(self):
        self.aggregates = [
            cloud.Aggregate('one', frozenset(['h1']), {limits.MAX_SLOWDOWN: '2.5'}),
            cloud.Aggregate('two', frozenset(['h1']), {limits.MAX_SLOWDOWN: '1.8'})]
        found = self.build(
            server('a', specs={limits.MAX_SLOWDOWN: '4'}), server('b'), server('c', 'h2'),
            defaults=state.Defaults('type', 'local', limits.Limits(9.0, 0.1)))
        self.assertEqual([4.0, 1.8, 9.0], found.max_slowdown.tolist())
        self.assertEqual([0.1, 0.1, 0.1], found.min_iops_ratio.tolist())

    def test_no_limit_holds_for_background_work(self):
        self.aggregates = [
            cloud.Aggregate('one', frozenset(['h1']), {limits.MAX_SLOWDOWN: '2.5'})]
        found = self.build(
            server('a', specs={limits.CLASS: 'background', limits.MAX_SLOWDOWN: '4'}),
            server('b'), server('c', specs={limits.CLASS: 'batch'}),
            defaults=state.Defaults('type', 'local', limits.Limits(9.0, 0.1)))
        self.assertEqual([True, False, False], found.background.tolist())
        self.assertEqual([math.inf, 2.5, 2.5], found.max_slowdown.tolist())
        self.assertEqual([0.0, 0.1, 0.1], found.min_iops_ratio.tolist())
        ((kind, text),) = self.reported
        self.assertEqual('limits', kind)
        self.assertIn("flavor m1: tracon:class='batch': expected background", text)
        self.assertIn('it counts as unset', text)

    def test_no_limit_holds_for_a_sensor(self):
        self.aggregates = [
            cloud.Aggregate('one', frozenset(['h1']), {limits.MAX_SLOWDOWN: '2.5'})]
        found = self.build(dataclasses.replace(server('a'), flavor=state.PROBE_FLAVOR),
                           server('b'), defaults=state.Defaults(
                               'type', 'local', limits.Limits(9.0, 0.1)))
        self.assertEqual([math.inf, 2.5], found.max_slowdown.tolist())
        self.assertEqual([0.0, 0.1], found.min_iops_ratio.tolist())

    def test_a_limit_that_is_none_counts_as_unset_and_is_told(self):
        found = self.build(server('a', specs={limits.MAX_SLOWDOWN: 'fast'}))
        self.assertEqual([math.inf], found.max_slowdown.tolist())
        self.assertEqual('limits', self.reported[0][0])
        self.assertIn("flavor m1: tracon:max_slowdown='fast'", self.reported[0][1])

    def test_aggregates_state_host_types_and_storage(self):
        self.aggregates = [cloud.Aggregate('ssd', frozenset(['h1']), {
            state.HOST_TYPE: 'fast', state.STORAGE: 'pool'})]
        found = self.build(server('a'), server('b', 'h2'))
        self.assertEqual(('fast', 'type'), found.host_type)
        self.assertEqual({'pool', 'local:h2'}, set(found.io_domains))

    def test_aggregates_that_contradict_each_other_are_told(self):
        self.aggregates = [
            cloud.Aggregate(name, frozenset(['h1']), {state.HOST_TYPE: name})
            for name in ('slow', 'fast')]
        found = self.build()
        self.assertEqual('fast', found.host_type[0])
        self.assertIn('host h1: tracon:host_type is fast, slow', self.reported[0][1])

    def test_a_vm_on_a_volume_is_on_the_volumes_backend(self):
        self.backends = {'v1': 'ceph', 'v2': 'ceph', 'v3': 'other'}
        found = self.build(
            server('both', image='', volumes=('v1', 'v2')),
            server('differ', image='', volumes=('v1', 'v3')),
            server('no-pool', image='', volumes=('v4',)), server('untold', image=''),
            server('attached', volumes=('v1',)))
        names = [None if index < 0 else found.io_domains[index] for index in found.io_domain]
        self.assertEqual(['ceph', None, None, None, 'local:h1'], names)

    def test_vms_that_are_not_there_yet_or_any_more_are_left_out(self):
        found = self.build(server('a', vm_state='error'), server('b', host=None),
                           server('c', vm_state='building'), server('d', host='nowhere'))
        self.assertEqual((), found.uuids)

    def test_one_that_its_host_counts_runs_whatever_has_failed(self):
        found = self.build(server('a', vm_state='error'), demand=self.demand(a=3.0))
        self.assertEqual(('a',), found.uuids)
        np.testing.assert_array_equal([[3.0] * 4], found.profiles)
