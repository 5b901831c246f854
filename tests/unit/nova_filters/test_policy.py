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

"""Modes and limits of aggregates."""

import logging

from nova import objects
import testtools

from nova_filters import log_once
from nova_filters import policy
from nova_filters import request
from tests.unit.nova_filters import base
from tracon_watcher.placement import limits


class PolicyTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.faults = log_once.FaultLog(logging.getLogger('test'))

    @staticmethod
    def aggregates(*metadata):
        return [objects.Aggregate(name=f'a{place}', metadata=one)
                for place, one in enumerate(metadata)]

    def of(self, *metadata, default=policy.Mode.ADVISE):
        states = [base.host_state('in', aggregates=self.aggregates(*metadata)),
                  base.host_state('out')]
        return policy.of_hosts(request.HostStates(states), default, self.faults)

    def modes(self, *modes, default=policy.Mode.ADVISE):
        return self.of(*({policy.MODE_KEY: mode} for mode in modes),
                       default=default).modes().tolist()

    def test_modes(self):
        for stated, expected in ((('enforce',), 3), (('weigh', 'enforce'), 3), (('off',), 0),
                                 (('enforce', 'off'), 0), (('Weigh ',), 2), (('banana',), 1),
                                 ((), 1)):
            self.assertEqual([expected, 1], self.modes(*stated), stated)

    def test_off_everywhere_is_not_active(self):
        self.assertFalse(self.of(default=policy.Mode.OFF).active)
        self.assertFalse(self.of({policy.MODE_KEY: 'off'}, default=policy.Mode.OFF).active)
        self.assertTrue(self.of({policy.MODE_KEY: 'weigh'}, default=policy.Mode.OFF).active)

    def test_a_flavor_without_its_extra_specs_is_told_of_once(self):
        spec = base.request_spec()
        spec.flavor = objects.Flavor(name='m1')
        with self.assertLogs('test', 'WARNING') as logs:
            for _request in range(3):
                self.assertEqual(limits.NONE, policy.of_flavor(spec, self.faults))
        self.assertEqual(1, len(logs.output))
        self.assertIn('flavor m1: Nova gives no extra specs', logs.output[0])

    def test_the_class_of_a_flavor(self):
        for stated, expected in (({limits.CLASS: 'background'}, limits.BACKGROUND),
                                 ({}, limits.NONE)):
            self.assertEqual(expected, policy.of_flavor(base.request_spec(stated), self.faults))
        with self.assertLogs('test', 'WARNING') as logs:
            for _request in range(3):
                self.assertEqual(limits.Limits(2.0), policy.of_flavor(base.request_spec(
                    {limits.CLASS: 'batch', limits.MAX_SLOWDOWN: '2'}), self.faults))
        (said,) = logs.output
        self.assertIn("flavor synthetic: tracon:class='batch': expected background", said)
        self.assertIn('it counts as unset', said)

    def test_aggregates_that_state_the_mode(self):
        for stated, mode, expected in (
                (('enforce', 'weigh', ' Enforce'), policy.Mode.ENFORCE, ['a0', 'a2']),
                (('enforce', 'off'), policy.Mode.OFF, ['a1']),
                (('banana',), policy.Mode.ADVISE, []), ((), policy.Mode.ADVISE, [])):
            aggregates = self.aggregates(*({policy.MODE_KEY: one} for one in stated), {})
            self.assertEqual(expected, policy.mode_aggregates(aggregates, mode), stated)

    def test_aggregates_that_state_the_limit(self):
        aggregates = self.aggregates(
            {limits.MAX_SLOWDOWN: '3'}, {limits.MAX_SLOWDOWN: '2', limits.MIN_IOPS_RATIO: '0.5'},
            {limits.MAX_SLOWDOWN: '2.0'}, {limits.MAX_SLOWDOWN: 'banana'}, {})
        for of, flavor, response, expected in (
                (aggregates, limits.NONE, 'slowdown', ['a1', 'a2']),
                (aggregates, limits.NONE, 'iops_ratio', ['a1']),
                (aggregates, limits.Limits(2.0), 'slowdown', []),
                (aggregates, limits.Limits(2.0), 'iops_ratio', ['a1']),
                (aggregates[:1], limits.NONE, 'iops_ratio', []),
                ([], limits.NONE, 'slowdown', [])):
            self.assertEqual(expected, policy.limit_aggregates(of, response, flavor),
                             (flavor, response))

    def test_the_strictest_limit(self):
        found = self.of({limits.MAX_SLOWDOWN: '3'}, {limits.MAX_SLOWDOWN: '2'},
                        {limits.MIN_IOPS_RATIO: '0.5'}, {'other': 'key'})
        self.assertEqual(limits.Limits(2.0, 0.5), found.special[0].limits)
        self.assertNotIn(1, found.special)
