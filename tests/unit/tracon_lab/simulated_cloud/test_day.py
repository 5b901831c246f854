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

import io
import json
import unittest
from unittest import mock

import numpy as np

from tracon_lab.simulated_cloud import day
from tracon_lab.simulated_cloud import demand
from tracon_lab.simulated_cloud import nova_scheduler
from tracon_lab.simulated_cloud import shared_cores
from tracon_watcher.cmd import replay

SETTINGS = day.Settings(hosts=4, cores=4, hidden=0.0, audit_steps=3, seed=1)


def constant_demand(vcpus, used, arrives=-1):
    """Return VMs that are there all day, and always use the same."""
    count = len(vcpus)
    return demand.Demand(
        np.full(count, arrives), np.full(count, demand.STEPS + 1), np.array(vcpus),
        np.arange(count) % 3, np.tile(np.array(used)[:, np.newaxis], (1, demand.STEPS)))


class DayTest(unittest.TestCase):

    def setUp(self):
        self.enterContext(mock.patch.object(demand, 'STEPS', 12))

    def run_day(self, vms, name, settings=SETTINGS):
        return day.Day(vms, settings, nova_scheduler.ARMS[name]).run()

    def test_stock_nova_spreads_by_vcpus(self):
        outcome = self.run_day(constant_demand([2] * 8, [0.1] * 8), 'stock Nova')
        self.assertEqual((8.0, 0, 0, 0), (outcome.running, outcome.refused, outcome.migrations,
                                          outcome.seconds))
        self.assertEqual(8 * 12, len(outcome.slowdown))
        self.assertEqual(1.0, outcome.slowdown.max())

    def test_nova_has_no_weigher_that_decides_otherwise(self):
        vms = demand.draw(demand.synthetic(50, 1), 120.0, 1, most=4)
        for name in ('stock Nova', 'packing', 'least CPU use', 'weigh'):
            found = self.run_day(vms, name)
            with mock.patch.object(nova_scheduler, 'WEIGHERS',
                                   ['nova.scheduler.weights.all_weighers']):
                again = self.run_day(vms, name)
            np.testing.assert_array_equal(found.slowdown, again.slowdown, name)

    def test_packing_slows_vms_down(self):
        vms = constant_demand([2] * 8, [0.6] * 8)
        spread, packed = (self.run_day(vms, name).slowdown.mean()
                          for name in ('stock Nova', 'packing'))
        self.assertLess(spread, 1.15)
        self.assertGreater(packed, 2.0)

    def test_an_oracle_puts_vms_apart_that_are_busy_together(self):
        vms = constant_demand([4] * 4, [0.1] * 4)
        vms.used[:2, :6] = vms.used[2:, 6:] = 0.9
        settings = day.Settings(hosts=2, cores=4, hidden=0.0, seed=1)
        outcome = self.run_day(vms, 'oracle', settings)
        self.assertLess(outcome.slowdown.max(), 1.15)
        self.assertEqual(0, outcome.refused)

    def test_who_is_there_leaves_and_room_is_free_again(self):
        vms = constant_demand([4] * 3, [0.1] * 3, arrives=2)
        vms.leaves[:] = 5
        outcome = self.run_day(vms, 'weigh and refuse')
        self.assertEqual(3 * 3, len(outcome.slowdown))

    def test_audits_end_what_placement_began(self):
        vms = constant_demand([4, 4, 1, 1, 1, 1, 1, 1], [0.8, 0.8] + [0.05] * 6)
        settings = day.Settings(hosts=2, cores=4, hidden=0.0, audit_steps=3, seed=1)
        arms = {'packing': nova_scheduler.Arm(multipliers=-1.0),
                'audits': nova_scheduler.Arm(multipliers=-1.0, audits=nova_scheduler.OWN)}
        found = {name: day.Day(vms, settings, arm).run() for name, arm in arms.items()}
        self.assertGreater(found['audits'].migrations, 0)
        self.assertLess(day.in_breach(found['audits'], 1.2),
                        0.5 * day.in_breach(found['packing'], 1.2))

    def test_judgement_knows_counters_alone(self):
        # Of another truth, in which no VM ever waits, counters show no contention.
        vms = constant_demand([4, 4, 1, 1, 1, 1, 1, 1], [0.3] * 8)

        class Contended(shared_cores.SharedCores):
            def slowdowns(self, host, vcpus, used, ready=None):
                return np.full(len(host), 1.0 + 2.0 * used), used

        class Idle(shared_cores.SharedCores):
            def slowdowns(self, host, vcpus, used, ready=None):
                return np.ones(len(host)), used

        demanded = {}
        for truth in (Contended, Idle):
            with mock.patch.object(shared_cores, 'SharedCores', truth):
                one = day.Day(vms, SETTINGS, nova_scheduler.ARMS['weigh'])
                one.run()
                demanded[truth] = one._content.cluster.profiles[:, 2].sum()
        # Who waits uses less than it would; what was demanded is estimated from its waiting.
        self.assertAlmostEqual(14 * 0.3, demanded[Idle], delta=0.3)
        self.assertNotAlmostEqual(demanded[Contended], demanded[Idle], delta=0.05)

    def test_a_day_is_the_same_again(self):
        vms = demand.draw(demand.synthetic(50, 1), 60.0, 1, most=4)
        first, again = (self.run_day(vms, 'all') for _turn in range(2))
        np.testing.assert_array_equal(first.slowdown, again.slowdown)
        self.assertEqual((first.placed, first.refused, first.migrations),
                         (again.placed, again.refused, again.migrations))

    def test_decisions_are_written_and_can_be_made_again(self):
        vms = demand.draw(demand.synthetic(50, 1), 60.0, 1, most=4)
        stream = io.StringIO()
        for name in ('weigh', 'weigh and refuse'):
            outcome = day.Day(vms, SETTINGS, nova_scheduler.ARMS[name]).run(decisions=stream)
            documents = [json.loads(line) for line in stream.getvalue().splitlines()]
            self.assertEqual(outcome.placed + outcome.refused, len(documents))
            self.assertGreater(outcome.placed, 0)
            for one in documents:
                found = replay.DecisionRecord(one)
                self.assertEqual((found.choice, False), found.decide(replay.Setting()))
            stream = io.StringIO()

    def test_all_is_refused_where_nothing_is_tolerated(self):
        vms = constant_demand([4] * 30, [0.9] * 30)
        vms.arrives[8:] = 3
        outcome = self.run_day(vms, 'weigh and refuse')
        self.assertGreater(outcome.refused, 5)
        self.assertEqual(0, outcome.in_error)
