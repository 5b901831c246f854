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

"""What a request that waits looks at, and what it leaves to the background."""

import types
import unittest

import numpy as np

from nova_filters import assumed_placements
from nova_filters import selection_tracker
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles

PROFILE = newcomer_profiles.own(np.ones(4))


class Spec:
    """A RequestSpec, of which only matters that it is one."""


class TestSettle(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.placements = assumed_placements.AssumedPlacements(600.0)
        self.found, self.failed = [], []
        self.choices = selection_tracker.SelectionTracker(self.placements, self.settled)
        self.states = [types.SimpleNamespace(host=name, nodename=name, num_instances=0, updated=1)
                       for name in 'abc']
        self.spec = Spec()
        self.choices.watch(self.spec, 'vm', self.states, [0, 0, 0], PROFILE,
                           lambda position: limits.NONE, 0.0)
        self.choices.expect(self.spec, 0, 0.0)

    def settled(self, found, failed):
        self.found += [(one.uuid, one.host) for one in found]
        self.failed += failed

    def expected(self):
        return [one.uuid for one in self.placements.expected(1.0)]

    def test_a_request_looks_at_the_expected_host_alone(self):
        self.states[2].num_instances = 1
        self.choices.settle(1.0, Spec())
        self.assertEqual([], self.found)
        self.states[0].num_instances = 1
        self.choices.settle(1.0, Spec())
        self.assertEqual([('vm', 'a')], self.found)

    def test_where_none_is_expected_a_request_looks_at_a_few_others_or_at_none(self):
        specs = [Spec() for _request in range(5)]
        for spec in specs:
            self.choices.watch(spec, f'vm-{len(self.choices._open)}', self.states, [0, 0, 0],
                               PROFILE, lambda position: limits.NONE, 0.0)
        self.states[2].num_instances = 1
        self.choices.settle(1.0, Spec())
        self.assertEqual([], self.found)
        self.choices.settle(1.0, Spec(), 2)
        self.assertEqual([('vm-1', 'c'), ('vm-2', 'c')], self.found)
        self.choices.settle(1.0)
        self.assertEqual(6, len(self.found))

    def test_one_that_has_ended_is_expected_nowhere_and_looked_up_in_the_background(self):
        self.states[2].num_instances = 1
        self.spec = None
        self.choices.settle(1.0, Spec())
        self.assertEqual(([], [], True), (self.found, self.expected(), self.choices.waiting))
        self.choices.settle(1.0)
        self.assertEqual(([('vm', 'c')], False), (self.found, self.choices.waiting))

    def test_one_that_came_to_nothing_is_forgotten_in_the_background(self):
        self.spec = None
        self.choices.settle(1.0, Spec())
        self.choices.settle(1.0)
        self.assertEqual(([], [], False), (self.found, self.failed, self.choices.waiting))

    def test_few_of_those_that_have_ended_wait_for_a_background_that_does_not_work(self):
        ended = [Spec() for _request in range(200)]
        for number, spec in enumerate(ended):
            self.choices.watch(spec, f'vm-{number}', self.states, [0, 0, 0], PROFILE,
                               lambda position: limits.NONE, 1.0)
        ended.clear()
        del spec
        self.choices.settle(1.0, Spec())
        kept = [one.uuid for one in self.choices._open.values()]
        self.assertEqual(['vm', *(f'vm-{number}' for number in range(136, 200))], kept)
