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

"""What changes on hosts, as Nova tells of it: in two parts, at different times (synthetic)."""

import types
import unittest
from unittest import mock

import hypothesis
from hypothesis import strategies
import numpy as np

from nova_filters import assumed_placements
from nova_filters import instance_changes
from nova_filters import request
from tests import synthetic
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles

VM = np.array([300.0, 50.0, 0.3, 0.1])
PATIENCE, MAXIMUM_AGE = 300.0, 900.0


class Cloud:
    """Hosts a and b, a scheduler's worker, and what the snapshot has of them.

    :param running: names of VMs that the snapshot shows, by host
    """

    def __init__(self, running, storage=cluster.LOCAL):
        self.states = [types.SimpleNamespace(
            host=name, nodename=name, aggregates=[], num_instances=len(vms),
            instances=dict.fromkeys(vms)) for name, vms in running.items()]
        self.show(running, storage)
        self.superseded = []
        self.residency = instance_changes.InstanceChanges(PATIENCE, self.superseded.extend)
        self.pending = assumed_placements.AssumedPlacements(PATIENCE)
        self.look()

    def show(self, running, storage=cluster.LOCAL):
        """Let the snapshot show these VMs, by host."""
        self.assessor = assessment.Assessor(cluster.build(
            [cluster.Host(name, tuple(cluster.Resident(vm, VM) for vm in vms),
                          synthetic.HOST_TYPE, storage, 0.0) for name, vms in running.items()],
            {newcomer_profiles.ALL: newcomer_profiles.Profile(VM, np.zeros(4), 3, 'all VMs')}),
            assessment.Settings(maximum_age=MAXIMUM_AGE))

    def counts(self, place, number):
        """Let a host's resource tracker count more instances, or fewer."""
        self.states[place].num_instances += number

    def lists(self, place, vm, there):
        """Let the scheduler's list of a host have an instance, or not."""
        if there:
            self.states[place].instances[vm] = None
        else:
            del self.states[place].instances[vm]

    def place(self, vm, host):
        """Have Nova give a VM a host."""
        self.pending.add([assumed_placements.Placement(
            vm, host, host, newcomer_profiles.own(VM), limits.NONE, 0.0)])

    def look(self, now=0.0, most=None):
        """Have a request look at all hosts, or the first; return the changes by host index."""
        found = request.HostStates(self.states[:most])
        return self.residency.changes(
            self.assessor, found, found.rows(self.assessor.cluster), self.pending, 'newcomer',
            now, np.zeros(len(self.assessor.cluster.hosts), dtype=bool))

    def unknown(self, now=0.0):
        """Return the VMs of which only the count of a host tells."""
        return [vm for change in self.look(now).values() for vm in change.arrived
                if '/unknown-' in vm]

    def events(self):
        return len(self.residency._arrived) + len(self.residency._gone)


@strategies.composite
def histories(draw):
    """VMs that are deleted or built on a and b: both updates of each, and looks in between."""
    running = {name: [f'{name}{index}' for index in range(draw(strategies.integers(0, 3)))]
               for name in 'ab'}
    steps = [None] * draw(strategies.integers(0, 5))
    for place, name in enumerate('ab'):
        changed = [(vm, False) for vm in running[name] if draw(strategies.booleans())]
        changed += [(f'new-{name}{index}', True)
                    for index in range(draw(strategies.integers(0, 3)))]
        for vm, there in changed:
            steps += [('counts', place, 1 if there else -1), ('lists', place, vm, there)]
    return running, draw(strategies.permutations(steps))


class TestOrder(unittest.TestCase):
    """Nova's count of a host's instances, and its list of them, change one after the other."""

    def test_two_are_deleted_together_and_a_request_looks_in_between(self):
        cloud = Cloud({'a': ['vm1', 'vm2', 'vm3'], 'b': []})
        cloud.counts(0, -2)
        self.assertEqual([], cloud.unknown())
        cloud.lists(0, 'vm1', False)
        cloud.lists(0, 'vm2', False)
        self.assertEqual([], cloud.unknown())
        self.assertEqual({'vm1', 'vm2'}, cloud.look()[0].gone)

    def test_what_is_listed_late_is_seen_with_the_next_request(self):
        with mock.patch.object(instance_changes, '_WINDOW', 0):
            cloud = Cloud({'a': ['vm1', 'vm2'], 'b': []})
            cloud.counts(0, -1)
            self.assertEqual({}, cloud.look())
            cloud.lists(0, 'vm1', False)
            self.assertEqual({'vm1'}, cloud.look()[0].gone)

    def test_one_that_came_as_another_went_is_seen_whatever_else_is_asked(self):
        for swapped in range(10):
            with mock.patch.object(instance_changes, '_WINDOW', 2):
                cloud = Cloud({f'host{number}': [f'vm{number}'] for number in range(10)})
                cloud.lists(swapped, f'vm{swapped}', False)
                cloud.lists(swapped, 'other', True)
                for _request in range(12):
                    cloud.look(most=1 + swapped % 4)
                    found = cloud.look()
            self.assertEqual([swapped], list(found))

    @hypothesis.given(histories(), strategies.sampled_from([0, 128]))
    @hypothesis.settings(deadline=None)
    def test_whatever_the_order_no_vm_is_left_over(self, history, window):
        running, steps = history
        with mock.patch.object(instance_changes, '_WINDOW', window):
            cloud = Cloud(running)
            for step in steps:
                if step is None:
                    cloud.look()
                else:
                    getattr(cloud, step[0])(*step[1:])
            self.assertEqual([], cloud.unknown())
        changes = cloud.look()
        for place, (name, vms) in enumerate(running.items()):
            found = changes.get(place, instance_changes.HostChange())
            listed = cloud.states[place].instances.keys()
            self.assertEqual(listed - set(vms), found.arrived.keys())
            # An empty list beside a count is one that Nova could not load.
            self.assertEqual(set(vms) - listed, found.gone)

    def test_one_that_is_built_is_counted_until_it_is_listed(self):
        cloud = Cloud({'a': ['vm1'], 'b': []})
        cloud.counts(0, 1)
        for now in (0.0, PATIENCE):
            self.assertEqual(['a/unknown-0'], cloud.unknown(now))
        cloud.lists(0, 'new', True)
        self.assertEqual(['new'], list(cloud.look(PATIENCE)[0].arrived))

    @hypothesis.given(histories())
    @hypothesis.settings(deadline=None)
    def test_what_never_agrees_is_believed_for_a_time_only(self, history):
        running, steps = history
        cloud = Cloud(running)
        for step in steps[:len(steps) // 2]:
            if step is not None:
                getattr(cloud, step[0])(*step[1:])
            cloud.look()
        cloud.look(1.0)
        self.assertEqual([], cloud.unknown(PATIENCE + 2.0))
        # The next one that is built is seen again.
        cloud.counts(1, 5)
        self.assertTrue(cloud.unknown(PATIENCE + 3.0))

    def test_a_host_that_builds_one_after_the_other_is_not_taken_for_one_that_builds_none(self):
        cloud = Cloud({'a': [], 'b': []})
        cloud.counts(0, 1)
        for number in range(1, 20):
            cloud.counts(0, 1)
            self.assertEqual(2, len(cloud.unknown(PATIENCE / 2 * number)))
            cloud.lists(0, f'new{number}', True)
            self.assertEqual(1, len(cloud.unknown(PATIENCE / 2 * number)))
        # What is built no more is forgotten.
        self.assertEqual([], cloud.unknown(PATIENCE / 2 * number + PATIENCE + 1.0))

    def test_a_clock_that_is_set_back_keeps_no_vm(self):
        cloud = Cloud({'a': [], 'b': []})
        cloud.counts(0, 1)
        self.assertEqual(1, len(cloud.unknown(1e9)))
        cloud.look(0.0)
        self.assertEqual([], cloud.unknown(PATIENCE + 1.0))

    def test_another_snapshot_with_other_hosts(self):
        cloud = Cloud({'a': ['vm1'], 'b': []})
        cloud.counts(0, 1)
        cloud.look()
        cloud.assessor = assessment.Assessor(
            cluster.build([cluster.Host(name, (), synthetic.HOST_TYPE, updated_at=0.0)
                           for name in ('c', 'b', 'a')], cloud.assessor.cluster.history))
        self.assertEqual(['a/unknown-0'], cloud.unknown(1.0))
        self.assertEqual([], cloud.unknown(PATIENCE + 2.0))


class TestBounds(unittest.TestCase):
    """With the engine away, no snapshot tells what came and went."""

    def test_the_oldest_are_forgotten_where_there_are_too_many(self):
        cloud = Cloud({'a': [], 'b': []})
        with mock.patch.object(instance_changes, 'MOST', 10):
            for index in range(50):
                cloud.counts(0, 1)
                cloud.lists(0, f'vm{index}', True)
                found = cloud.look()[0].arrived
                self.assertIn(f'vm{index}', found)
                self.assertLessEqual(cloud.events(), 10)
            self.assertEqual({f'vm{index}' for index in range(40, 50)}, found.keys())

    def test_they_are_forgotten_when_data_of_that_time_is_stale(self):
        cloud = Cloud({'a': ['vm1'], 'b': []})
        cloud.counts(0, -1)
        cloud.lists(0, 'vm1', False)
        cloud.counts(1, 1)
        cloud.lists(1, 'vm2', True)
        cloud.look(0.0)
        self.assertEqual(2, cloud.events())
        # Until then they may be newer than data that is not stale.
        cloud.look(MAXIMUM_AGE + instance_changes.KNOWN_AFTER)
        self.assertEqual(2, cloud.events())
        self.assertEqual({}, cloud.look(MAXIMUM_AGE + instance_changes.KNOWN_AFTER + 1.0))
        self.assertEqual(0, cloud.events())

    def test_each_vm_is_remembered_once(self):
        cloud = Cloud({'a': [], 'b': []})
        for _again in range(5):
            cloud.counts(0, 1)
            cloud.lists(0, 'vm', True)
            self.assertEqual(['vm'], list(cloud.look()[0].arrived))
            cloud.counts(0, -1)
            cloud.lists(0, 'vm', False)
            cloud.look()
            self.assertLessEqual(cloud.events(), 1)


class TestIntended(unittest.TestCase):
    """What Nova has given a host may fail there, and runs elsewhere until it is done."""

    def test_a_build_that_was_done_on_another_host_counts_there_alone(self):
        cloud = Cloud({'a': [], 'b': []})
        cloud.place('vm', 'a')
        self.assertEqual([0], list(cloud.look(1.0)))
        cloud.counts(1, 1)
        cloud.lists(1, 'vm', True)
        self.assertEqual([1], list(cloud.look(2.0)))
        self.assertEqual(['vm'], cloud.superseded)
        self.assertEqual([], cloud.pending.all())

    def test_one_that_the_snapshot_shows_may_be_on_its_way_from_there(self):
        cloud = Cloud({'a': [], 'b': ['vm']})
        cloud.lists(1, 'vm', False)
        cloud.look(0.0)
        cloud.place('vm', 'a')
        cloud.lists(1, 'vm', True)
        self.assertTrue(cloud.look(1.0)[0].arrived['vm'].intended)
        self.assertEqual([], cloud.superseded)

    def test_it_is_intended_until_nova_lists_it(self):
        cloud = Cloud({'a': [], 'b': ['vm']})
        cloud.place('vm', 'a')
        self.assertTrue(cloud.look(1.0)[0].arrived['vm'].intended)
        cloud.lists(0, 'vm', True)
        self.assertFalse(cloud.look(2.0)[0].arrived['vm'].intended)

    def test_its_io_on_a_pool_of_both_hosts_counts_once(self):
        for storage, io in (('pool', 0.0), (cluster.LOCAL, VM[0])):
            cloud = Cloud({'a': [], 'b': ['vm']}, storage)
            cloud.place('vm', 'a')
            self.assertEqual(io, cloud.look(1.0)[0].arrived['vm'].profile.mean[0])


class TestLiveMigration(unittest.TestCase):
    """The source sends the update; the destination none until its list is compared."""

    def setUp(self):
        super().setUp()
        self.cloud = Cloud({'a': ['x', 'vm'], 'b': ['y']})

    def count(self):
        self.cloud.counts(0, -1)
        self.cloud.counts(1, 1)
        self.cloud.look(1.0)
        self.cloud.show({'a': ['x'], 'b': ['y', 'vm']})

    def test_what_the_snapshot_shows_already_is_no_other_vm(self):
        self.count()
        self.assertEqual({}, self.cloud.look(2.0))
        # The source's list is compared first.
        self.cloud.lists(0, 'vm', False)
        self.assertEqual({}, self.cloud.look(3.0))
        self.cloud.lists(1, 'vm', True)
        self.assertEqual({}, self.cloud.look(4.0))

    def test_one_that_is_built_beside_it_is_seen(self):
        self.count()
        self.cloud.counts(1, 1)
        self.assertEqual(['b/unknown-0'], self.cloud.unknown(2.0))
        self.cloud.place('vm', 'b')
        self.assertEqual(['b/unknown-0'], self.cloud.unknown(2.0))

    def test_one_that_nova_never_lists_is_not_taken_for_what_is_built(self):
        cloud = Cloud({'a': ['x'], 'b': ['y', 'sensor']})
        cloud.lists(1, 'sensor', False)
        cloud.counts(1, -1)
        cloud.residency = instance_changes.InstanceChanges(PATIENCE)
        cloud.look()
        cloud.counts(1, 1)
        self.assertEqual(['b/unknown-0'], cloud.unknown(1.0))

    def test_the_late_word_of_the_source_brings_no_vm_back(self):
        self.cloud.lists(0, 'vm', False)
        self.count()
        self.cloud.lists(0, 'vm', True)
        self.assertEqual({}, self.cloud.look(5.0))

    def test_one_that_comes_back_later_is_there(self):
        self.cloud.lists(0, 'vm', False)
        self.count()
        later = 2.0 + instance_changes.KNOWN_AFTER
        self.cloud.lists(0, 'vm', True)
        self.assertEqual(['vm'], list(self.cloud.look(later)[0].arrived))

    def test_the_late_word_of_the_source_ends_no_placement(self):
        self.cloud.lists(0, 'vm', False)
        self.cloud.look(1.0)
        self.cloud.place('vm', 'b')
        self.cloud.show({'a': ['x'], 'b': ['y']})
        self.cloud.lists(0, 'vm', True)
        self.cloud.look(2.0)
        self.assertEqual(([], 1), (self.cloud.superseded, len(self.cloud.pending.all())))

    def test_departures_are_bounded(self):
        found = instance_changes.Departures()
        for index in range(2 * instance_changes.MOST):
            found.add(f'vm{index}', 'a', 0.0)
        self.assertEqual(instance_changes.MOST, len(found._left))
        self.assertEqual((None, 'a'), (found.host('vm0', 0.0), found.host(f'vm{index}', 0.0)))
