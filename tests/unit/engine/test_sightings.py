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

"""Who is asked whether a model still holds, in a synthetic cloud."""

import dataclasses
import unittest

import numpy as np

from tests import synthetic
from tests.unit.engine import drifting
from tracon_watcher.engine import sightings


class TestSightings(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.world = drifting.World()
        self.models = synthetic.models()
        self.asked = sightings.Sightings(drifting.POLLING)

    def take(self, seconds=60.0, change=lambda profiles: profiles):
        self.world.now += seconds
        view = self.world.view(self.models)
        found = self.asked.take(view, change(self.world.measured(view)))
        self.assertLessEqual(set(found), {synthetic.HOST_TYPE})
        return found.get(synthetic.HOST_TYPE, [])

    def test_a_vm_is_asked_once_in_five_minutes(self):
        # Who was beside whom in the first interval is not known.
        self.assertEqual([0, 24, 0, 0, 0, 0, 24], [len(self.take()) for _poll in range(7)])

    def test_and_anew_when_its_neighbours_have_changed_for_an_interval(self):
        self.take()
        self.take()
        self.world.hosts['h0'], self.world.hosts['h1'] = (
            ['vm-1-0', *self.world.hosts['h0']], self.world.hosts['h1'][1:])
        self.assertEqual([], self.take())
        self.assertEqual({'h0', 'h1'}, {one.host for one in self.take()})

    def test_who_is_at_a_limit_of_its_own_is_not_asked(self):
        self.world.limited = {'vm-1-0', 'vm-2-1'}
        self.take()
        found = {one.vm for one in self.take()}
        self.assertEqual(22, len(found))
        self.assertFalse(self.world.limited & found)

    def test_nor_is_who_waits_for_one_at_times(self):
        self.world.own_wait = {'vm-1-0': 0.1}
        self.take()
        found = {one.vm for one in self.take()}
        self.assertEqual(23, len(found))
        self.assertNotIn('vm-1-0', found)

    def test_where_polls_were_lost_all_of_the_interval_counts(self):
        def lost(polls):
            return lambda profiles: dataclasses.replace(
                profiles, seconds=np.full(24, polls * drifting.POLLING))

        self.take()
        # The interval began before anybody knew who was beside whom.
        self.assertEqual([], self.take(300.0, lost(6)))
        self.assertEqual(24, len(self.take(60.0, lost(6))))
        self.assertEqual([], self.take(300.0, lost(np.nan)))

    def test_what_it_says(self):
        self.world.demand['vm-2-3'] = np.zeros(4)
        self.take()
        found = {one.vm: one for one in self.take()}
        view = self.world.view(self.models)
        expected = dict(zip(view.assessor.cluster.uuids,
                            synthetic.exponents(view.assessor.cluster, synthetic.model())))
        for vm, one in found.items():
            self.assertAlmostEqual(expected[vm], one.predicted, 9)
            self.assertEqual(1.0, one.share)
            np.testing.assert_array_equal(self.world.demand[vm], one.target)
            self.assertEqual(3, len(one.neighbours))
            self.assertLess(abs(one.exponent - one.predicted), 1.0)
            self.assertEqual(0.05, one.deviation)
        self.assertIn('vm-2-3', found)

    def test_who_is_alone_or_beside_the_idle_tells_nothing(self):
        self.world.hosts['h0'] = ['vm-0-0']
        for vm in self.world.hosts['h1'][1:]:
            self.world.demand[vm] = 0.01 * synthetic.CAPACITY
        self.take()
        found = {one.vm for one in self.take()}
        self.assertFalse(found & {'vm-0-0', 'vm-1-0'})
        self.assertIn('vm-1-1', found)

    def test_what_is_unknown_is_left_out(self):
        self.world.unknown = {'vm-0-0'}
        self.world.demand['vm-1-0'] = np.full(4, np.nan)
        self.take()
        found = self.take()
        # Of its neighbours nobody can say what they should suffer.
        self.assertEqual({'h0', 'h2', 'h3', 'h4', 'h5'}, {one.host for one in found})
        self.assertNotIn('vm-0-0', {one.vm for one in found})
        self.assertEqual([], self.take(300.0, lambda profiles: dataclasses.replace(
            profiles, slowdown_deviation=np.full(24, np.nan))))

    def test_a_vm_that_telemetry_does_not_tell_of_is_left_out(self):
        self.take()
        found = self.take(60.0, lambda profiles: dataclasses.replace(
            profiles, vms=tuple(f'not {vm}' for vm in profiles.vms)))
        self.assertEqual([], found)

    def test_stale_data_is_left_out(self):
        self.take()
        view = self.world.view(self.models)
        late = dataclasses.replace(view, updated_at=view.updated_at + 2000)
        self.assertEqual({}, self.asked.take(late, self.world.measured(view)))

    def test_outside_the_hull_there_is_no_prediction_but_something_to_learn(self):
        self.world.demand['vm-0-0'] = 6 * synthetic.CAPACITY
        self.take()
        by_host = {}
        for one in self.take():
            by_host.setdefault(one.host, []).append(one.predicted)
        self.assertTrue(np.isnan(by_host['h0']).all())
        self.assertEqual(4, len(by_host['h0']))
        self.assertFalse(np.isnan(by_host['h1']).any())

    def test_on_a_shared_pool_part_comes_from_elsewhere(self):
        self.world = drifting.World(other_pools=True)
        self.take()
        found = self.take()
        self.assertEqual(24, len(found))
        self.assertTrue(all(0 < one.share < 1 for one in found))

    def test_with_a_neighbour_on_other_storage_one_shares_only_the_cpu(self):
        self.world.storage['vm-0-1'] = 'volumes'
        self.take()
        found = {one.vm: one for one in self.take()}
        for vm, reads in (('vm-0-0', [False, True, True]), ('vm-0-1', [False] * 3)):
            np.testing.assert_array_equal(reads, found[vm].neighbours[:, 0] > 0)
            self.assertTrue((found[vm].neighbours[:, 2:] > 0).all())
            self.assertEqual(1.0, found[vm].share)

    def test_no_more_than_so_many_at_once_and_all_in_turn(self):
        self.world = drifting.World(hosts=80)
        self.take()
        first, second = self.take(), self.take()
        self.assertEqual((200, 120), (len(first), len(second)))
        self.assertFalse({one.vm for one in first} & {one.vm for one in second})

    def test_they_are_told_in_no_order_of_hosts(self):
        self.world = drifting.World(hosts=80)
        self.take()
        for _turn in range(2):
            found = [one.host for one in self.take()]
            # Of 80 hosts, 200 sightings of 50 at most would be in the order of hosts.
            self.assertGreater(len(set(found)), 60 if len(found) == 200 else 40)
            self.assertGreater(len(set(found[:40])), 20)
        self.assertEqual(120, len(found))

    def test_hosts_of_which_nothing_can_be_heard(self):
        self.world = drifting.World(hosts=4)
        self.world.hosts['h1'] = ['vm-1-0']
        self.world.hosts['h2'] = []
        view = self.world.view(self.models)
        self.assertEqual({synthetic.HOST_TYPE: {'h0', 'h3'}}, self.asked.crowded(view))
        self.world.pool = 'ceph'
        view = self.world.view(self.models)
        self.assertEqual({synthetic.HOST_TYPE: {'h0', 'h1', 'h3'}}, self.asked.crowded(view))

    def test_many_neighbours_are_listed_by_what_they_do(self):
        self.world = drifting.World(hosts=1, residents=30)
        for vm in self.world.demand:
            self.world.demand[vm] /= 10
        self.take()
        for one in self.take():
            self.assertEqual(sightings.MOST_NEIGHBOURS, len(one.neighbours))
            self.assertTrue(0.5 < one.share < 1)
