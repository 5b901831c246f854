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

"""Alarms, trust and what is kept to learn from, in synthetic clouds."""

import dataclasses
import unittest

import numpy as np

from tests import synthetic
from tests.unit.engine import drifting
from tracon_watcher.engine import fading
from tracon_watcher.engine import freshness
from tracon_watcher.engine import watching
from tracon_watcher.placement import assessment

LOGGER = 'tracon_watcher.engine.freshness'
TYPE = synthetic.HOST_TYPE


def times(factor):
    """Return the synthetic model with its exponents times a factor."""
    model = synthetic.model()
    return dataclasses.replace(model, coefficients=factor * model.coefficients)


class FreshnessCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.models = synthetic.models()
        self.watched = freshness.Freshness(drifting.POLLING)

    def trust(self):
        return self.watched.trust(self.models).get(TYPE, 1.0)


class TestNoDrift(FreshnessCase):
    """tests/long has thousands of cycles."""

    cycles = 300

    def test_without_drift_there_is_no_alarm(self):
        world = drifting.World()
        with self.assertNoLogs(LOGGER):
            seen = sum(world.cycle(self.watched, self.models) for _cycle in range(self.cycles))
        self.assertGreater(seen, 20 * self.cycles)
        self.assertEqual((1.0, []), (self.trust(), self.watched.due()))


class TestFreshness(FreshnessCase):

    def test_without_measurements_there_is_no_alarm(self):
        world = drifting.World(truth=times(3))
        world.unknown = set(world.demand)
        for _cycle in range(20):
            self.assertEqual(0, world.cycle(self.watched, self.models))
        self.assertEqual(1.0, self.trust())

    def drift(self, world, cycles=50):
        """Have cycles until the alarm; return how many."""
        with self.assertLogs(LOGGER, 'WARNING') as logs:
            for cycle in range(cycles):
                world.cycle(self.watched, self.models)
                if self.trust() < 1:
                    break
        self.assertEqual(1, len(logs.output))
        self.assertRegex(logs.output[0],
                         f'host type {TYPE} has drifted.* on h0[,;] .*trusted 40 %')
        return cycle

    def test_drift_is_noticed_and_trust_falls(self):
        world = drifting.World()
        for _cycle in range(50):
            world.cycle(self.watched, self.models)
        world.truth = times(1.6)
        self.assertLess(self.drift(world), 10)
        self.assertLess(self.trust(), 0.5)
        self.assertEqual(1, self.watched.alarms[TYPE])
        # It is one alarm, however long it lasts.
        with self.assertNoLogs(LOGGER):
            for _cycle in range(30):
                world.cycle(self.watched, self.models)
        self.assertEqual((1, fading.LEAST), (self.watched.alarms[TYPE], self.trust()))

    def test_less_suffering_than_predicted_is_drift_as_well(self):
        self.drift(drifting.World(truth=times(0.3)))

    def test_trust_returns_when_errors_are_usual_again(self):
        world = drifting.World(truth=times(1.6))
        self.drift(world)
        world.truth = times(1.0)
        for _cycle in range(40):
            world.cycle(self.watched, self.models)
        self.assertEqual(1.0, self.trust())
        self.assertEqual([], self.watched.due())
        world.truth = times(1.6)
        self.drift(world)
        self.assertEqual(2, self.watched.alarms[TYPE])

    def test_what_is_learnt_from_is_of_the_new_world(self):
        world = drifting.World()
        for _cycle in range(60):
            world.cycle(self.watched, self.models)
        changed = world.now
        world.truth = times(1.6)
        self.drift(world)
        due, = self.watched.due() or [None]
        since = (world.now - changed) / (5 * drifting.POLLING)
        self.assertLessEqual(due.count, 24 * (since + 0.5))
        self.assertGreaterEqual(due.count, 20)
        self.assertEqual(len(due.labels), due.count)
        self.assertIs(self.models[TYPE], due.models)

    def test_it_is_tried_again_when_there_is_half_as_much_more(self):
        world = drifting.World(truth=times(1.6))
        self.drift(world)
        tries = []
        for _cycle in range(60):
            for due in self.watched.due():
                tries.append(due.count)
                self.watched.tried(due, None)
            world.cycle(self.watched, self.models)
        self.assertGreater(len(tries), 3)
        for before, after in zip(tries, tries[1:]):
            self.assertGreaterEqual(after, 1.5 * before)
        self.assertLessEqual(len(self.watched._types[TYPE]._kept), watching.MOST_KEPT)

    def refitted(self):
        """Have a world drift, and the right models for it; return it, and what is due."""
        world = drifting.World(truth=times(1.6))
        self.drift(world)
        due, = self.watched.due()
        self.models = {TYPE: assessment.Models(times(1.6), self.models[TYPE].iops_ratio)}
        return world, due

    def test_a_new_model_of_ours_is_trusted_and_learning_goes_on(self):
        world, due = self.refitted()
        self.watched.tried(due, self.models[TYPE])
        self.assertEqual([], self.watched.due())
        self.assertEqual({}, self.watched.trust(self.models))
        with self.assertNoLogs(LOGGER):
            for _cycle in range(200):
                world.cycle(self.watched, self.models)
        self.assertEqual(1.0, self.trust())
        self.assertEqual(1, self.watched.refits[TYPE])
        self.assertGreater(self.watched.due()[0].count, 1.5 * due.count)

    def test_a_new_model_of_ours_may_come_before_the_try_is_over(self):
        world, due = self.refitted()
        self.watched.announce(due, self.models[TYPE])
        self.assertEqual([], self.watched.due())
        world.cycle(self.watched, self.models)
        self.watched.tried(due, self.models[TYPE])
        self.assertEqual((1.0, 1), (self.trust(), self.watched.refits[TYPE]))
        # What was seen is kept, and learning goes on.
        for _cycle in range(20):
            world.cycle(self.watched, self.models)
        self.assertGreater(self.watched.due()[0].count, 1.5 * due.count + 1)

    def test_one_that_does_not_come_is_learnt_again(self):
        self.drift(drifting.World(truth=times(1.6)))
        due, = self.watched.due()
        self.watched.announce(due, assessment.Models(times(1.6), self.models[TYPE].iops_ratio))
        self.watched.announce(due, None)
        self.assertEqual([due.count], [one.count for one in self.watched.due()])

    def test_a_model_of_the_operator_begins_anew(self):
        world = drifting.World(truth=times(1.6))
        self.drift(world)
        self.models = {TYPE: assessment.Models(times(1.6), self.models[TYPE].iops_ratio)}
        for _cycle in range(20):
            world.cycle(self.watched, self.models)
        self.assertEqual((1.0, []), (self.trust(), self.watched.due()))

    def test_one_vm_or_one_host_is_no_drift_of_a_type(self):
        for hosts, residents, hurt, alarms in (
                (2, 2, ('vm-0-0',), 0), (3, 4, ('vm-0-',), 0), (1, 2, ('vm-0-',), 0),
                # One on each of two hosts, two on one: these are enough.
                (2, 2, ('vm-0-0', 'vm-1-'), 1)):
            world = drifting.World(hosts, residents)
            measured = world.measured

            def more(view, hurt=hurt, measured=measured):
                found = measured(view)
                factor = np.where([vm.startswith(hurt) for vm in found.vms], 3.0, 1.0)
                return dataclasses.replace(found, slowdown=found.slowdown * factor)
            world.measured = more
            self.watched = freshness.Freshness(drifting.POLLING)
            for _cycle in range(200):
                world.cycle(self.watched, self.models)
            self.assertEqual(alarms, self.watched.alarms[TYPE], hurt)

    def test_hosts_in_trouble_are_heard_again_and_many_are_the_type(self):
        world = drifting.World(hosts=5)
        measured, hurt = world.measured, []

        def more(view):
            found = measured(view)
            factor = np.where([vm.startswith(tuple(hurt)) for vm in found.vms], 4.0, 1.0)
            return dataclasses.replace(found, slowdown=found.slowdown * factor)
        world.measured = more

        def cycles(prefixes, count=40):
            hurt[:] = prefixes
            for _cycle in range(count):
                world.cycle(self.watched, self.models)
            return self.watched.alarms[TYPE]

        # One after the other, each over before the next begins.
        self.assertEqual([0] * 6, [cycles(one) for one in (
            ['vm-0-'], [], ['vm-1-'], [], ['vm-2-'], [])])
        self.assertEqual(0, cycles(['vm-3-']))
        self.assertEqual(1, cycles(['vm-3-', 'vm-4-']))

    def dense(self, hosts, residents, hurt, seed=1):
        """Return a cloud of hosts with many small VMs, some of which are hurt."""
        world = drifting.World(hosts, residents, seed=seed)
        world.demand = {vm: one * 4 / residents for vm, one in world.demand.items()}
        world.hurt = [f'vm-{host}-' for host in hurt]
        return world

    def test_where_part_of_a_type_changes_trust_falls_once_and_stays_low(self):
        world = self.dense(12, 20, range(5))
        world.times = 2.5
        with self.assertLogs(LOGGER, 'WARNING'):
            for cycle in range(100):
                world.cycle(self.watched, self.models, polls=1)
                if cycle > 20:
                    self.assertLess(self.trust(), 0.5)
        self.assertEqual(1, self.watched.alarms[TYPE])

    def test_trust_that_comes_and_goes_takes_longer_each_time(self):
        # Errors that are too large by just what is tolerated: chance decides.
        world = drifting.World(truth=times(1.14))
        with self.assertLogs(LOGGER, 'WARNING'):
            for _cycle in range(400):
                world.cycle(self.watched, self.models)
        self.assertLessEqual(1, self.watched.alarms[TYPE])
        self.assertLessEqual(self.watched.alarms[TYPE], 5)

    def test_a_first_refit_learns_from_all_hosts(self):
        world = self.dense(12, 20, range(5))
        world.times = 2.5
        with self.assertLogs(LOGGER, 'WARNING'):
            while not self.watched.due():
                world.cycle(self.watched, self.models, polls=1)
        labels = self.watched.due()[0].labels
        self.assertGreaterEqual(len(labels), 12 * 20)
        self.assertGreater(len(set(labels.vm.tolist())), 200)

    def test_a_host_that_went_away_in_trouble_does_not_count(self):
        for emptied in (False, True):
            self.watched = freshness.Freshness(drifting.POLLING)
            world = drifting.World(hosts=5)
            world.times = 4.0
            for host in range(3):
                world.hurt = [f'vm-{host}-']
                for _cycle in range(40):
                    world.cycle(self.watched, self.models)
                if emptied:
                    world.hosts[f'h{host}'] = []
                else:
                    del world.hosts[f'h{host}']
            self.assertEqual((0, 1.0), (self.watched.alarms[TYPE], self.trust()))

    def test_where_there_is_one_host_it_is_the_type(self):
        self.drift(drifting.World(hosts=1, residents=6, truth=times(2)), 100)

    def test_a_type_whose_model_is_gone_is_forgotten(self):
        world = drifting.World(truth=times(1.6))
        self.drift(world)
        models, self.models = self.models, {}
        world.cycle(self.watched, {})
        self.assertEqual(([], {}), (self.watched.due(), self.watched.trust(models)))
