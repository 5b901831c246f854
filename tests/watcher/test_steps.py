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

"""Whatever the cloud, no step of a plan is one that Nova or Placement would refuse.

Plans are made by the whole strategy, on Watcher's own model and on answers as services give them,
and carried out by a simulation of Nova that knows nothing of the planner (:mod:`.clouds`), in the
order and as parallel as the action plan's dependencies allow.
"""

import unittest

import hypothesis
from hypothesis import strategies
import numpy as np

from tests.watcher import audits
from tests.watcher import clouds
from tracon_watcher.placement import assessment
from tracon_watcher.placement import limits

SETTINGS = hypothesis.settings(max_examples=75, deadline=None, suppress_health_check=list(
    hypothesis.HealthCheck))
SOFT = ('soft-affinity', 'soft-anti-affinity')


def settled(world, where):
    """Return the hosts of all VMs when those in flight before the audit have come."""
    return {**where, **world.arriving}


def judged(world, where):
    """Return who breaches a limit with the VMs at these hosts, and what all suffer together."""
    state = clouds.state_of(world, where)
    found = assessment.Assessor(state)
    return ({uuid for uuid, bad in zip(state.uuids, found.breaches()) if bad},
            float(found.harm().sum()))


class StepsTestCase(audits.AuditCase):

    lengths: list[int] = []
    stops: list[int] = []
    served: list[int] = []

    def plan(self, world, **given):
        audit = self.audit(world, **given)
        solution = audit.execute()
        moves = {}
        for action in solution.actions:
            self.assertEqual('migrate', action['action_type'])
            given = action['input_parameters']
            self.assertEqual('live', given['migration_type'])
            self.assertNotIn(given['resource_id'], moves, 'moved twice')
            moves[given['resource_id']] = given['source_node'], given['destination_node']
        return audit, moves, audits.parents_of(audit, solution)

    @SETTINGS
    @hypothesis.given(clouds.worlds())
    def test_in_a_blackout_window_nothing_moves(self, world):
        audit, moves, _parents = self.plan(world, blackout_windows=['00:00-24:00'])
        self.assertEqual({}, moves)
        self.assertRegex(audit._plan.reason, '^no migration: blackout window "00:00-24:00"')

    @SETTINGS
    @hypothesis.given(clouds.worlds(), strategies.randoms(use_true_random=False))
    def test_nova_and_placement_refuse_no_step(self, world, chance):
        audit, moves, parents = self.plan(world)
        self.lengths.append(len(moves))
        hypothesis.event(f'{len(moves)} moves')
        self.check_who_moves(world, moves)
        self.check_states(world, [
            where for _again in range(6)
            for where in clouds.carry_out(world, moves, parents, chance)])
        self.check_soft_groups(world, audit._plan.moves)

    def check_who_moves(self, world, moves):
        """No VM that must stay is moved, and no VM comes to where none may."""
        for uuid, (source, destination) in moves.items():
            vm, host = world.vms[uuid], world.hosts[destination]
            self.assertEqual(vm.host, source)
            self.assertEqual(('active', None), (vm.state, vm.task))
            self.assertFalse(vm.locked or vm.opted_out or vm.pinned or vm.port or vm.excluded)
            self.assertIn(vm.seen_on, (None, vm.host))
            self.assertTrue(vm.moved is None or vm.moved >= clouds.COOLDOWN, 'cools down')
            self.assertTrue(world.hosts[source].up and world.hosts[source].in_scope)
            self.assertTrue(host.up and host.enabled and host.in_scope)
            self.assertNotIn(destination, world.arriving.values())

    def check_states(self, world, states):
        """In no state between is anybody newly in breach, or suffers all together more."""
        old, harm = judged(world, settled(
            world, {uuid: vm.host for uuid, vm in world.vms.items()}))
        # Some orders go through the same states.
        for where in {tuple(where.items()) for where in states}:
            breached, left = judged(world, settled(world, dict(where)))
            self.assertLessEqual(breached, old)
            self.assertLess(left, harm)

    def check_soft_groups(self, world, moves):
        """What a soft group asks for is given up only where a breach ends that way."""
        where = settled(world, {uuid: vm.host for uuid, vm in world.vms.items()})
        for move in moves:
            there = {**where, move.uuid: move.destination}
            for group in world.groups:
                others = [where[one] for one in group.members
                          if one in where and one != move.uuid]
                together = others.count(move.destination) - others.count(move.source)
                if group.policy in SOFT and move.uuid in group.members and (
                        together < 0 if group.policy == 'soft-affinity' else together > 0):
                    self.assertLess(judged(world, there)[0], judged(world, where)[0])
            where = there

    @SETTINGS
    @hypothesis.given(clouds.worlds())
    def test_what_is_stopped_is_background_work_that_may_be(self, world):
        where = {uuid: vm.host for uuid, vm in world.vms.items()}
        audit = self.audit(world, background_action='stop')
        solution = audit.execute()
        stopped = {action['input_parameters']['resource_id']: action['input_parameters']
                   for action in solution.actions if action['action_type'] == 'stop'}
        self.stops.append(len(stopped))
        hypothesis.event(f'{len(stopped)} stopped')
        moved = {one.uuid: one.destination for one in audit._plan.moves}
        self.assertFalse(stopped.keys() & moved.keys())
        before = judged(world, settled(world, {**where, **moved}))[0]
        for uuid in stopped:
            self.assertTrue(world.vms[uuid].limits.background)
            self.check_who_moves(world, {uuid: (world.vms[uuid].host, world.vms[uuid].host)})
        for removal in audit._plan.removals:
            self.assertLessEqual(set(removal.ends), before)

    @SETTINGS
    @hypothesis.given(clouds.worlds(), strategies.tuples(
        strategies.integers(1, 4), strategies.integers(1, 3), strategies.integers(0, 2)))
    def test_placement_has_room_for_a_request_where_background_work_leaves(self, world, size):
        world.unplaced.append(clouds.Vm('new', None, size, None, limits.NONE, 'error', age=9.0))
        audit = self.audit(world, background_action='delete')
        audit.execute()
        removals = [one for one in audit._plan.removals if one.request]
        self.served.append(len(removals))
        hypothesis.event(f'{len(removals)} removed')
        cloud = clouds.Cloud(world)
        for move in audit._plan.moves:
            cloud.move(move.uuid, move.destination)
        for one in set(audit._plan.removals) - set(removals):
            cloud.remove(one.uuid)
        for one in removals:
            self.assertTrue(world.vms[one.uuid].limits.background)
            self.assertEqual(('new', ()), (one.request, one.ends))
            self.check_who_moves(world, {one.uuid: (one.host, one.host)})
            with self.assertRaises(clouds.Refused):
                cloud.allocate('new', size, one.host)
            cloud.remove(one.uuid)
        for host in {one.host for one in removals}:
            cloud.allocate('new', size, host)

    def test_nothing_is_done_against_harm_that_ends_by_itself(self):
        world = clouds.world('abcd', [
            clouds.Vm('noisy', 'a', (2, 4, 4), np.array([900.0, 400.0, 0.9, 0.3]), limits.NONE),
            *(clouds.Vm(name, 'a', (2, 4, 4), np.array([3.0, 1.0, 0.005, 0.001]),
                        limits.Limits(1.5)) for name in ('q0', 'q1', 'q2'))], (16, 64, 100))
        vms = world.vms
        vms['noisy'].pinned = True
        self.assertEqual({'q0', 'q1', 'q2'}, self.plan(world)[1].keys())
        vms['noisy'].task, world.arriving = 'migrating', {'noisy': 'b'}
        self.assertEqual({}, self.plan(world)[1])
        vms['noisy'].task, world.arriving = 'deleting', {}
        self.assertEqual({}, self.plan(world)[1])
        # It may come to where it harms others.
        vms['q2'].host = 'b'
        vms['noisy'].task, world.arriving = 'migrating', {'noisy': 'b'}
        self.assertEqual({'q2': 'b'}, {uuid: source for uuid, (source, _destination)
                                       in self.plan(world)[1].items()})

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        # Otherwise nothing would have been looked at.
        assert sum(length > 1 for length in cls.lengths) >= 5, cls.lengths
        assert any(cls.stops), cls.stops
        assert any(cls.served), cls.served


if __name__ == '__main__':
    unittest.main()
