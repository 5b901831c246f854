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

"""What is kept from move to move is what is predicted again (synthetic)."""

import unittest

import hypothesis
from hypothesis import strategies
import numpy as np

from tests import synthetic
from tracon_watcher.placement import assessment
from tracon_watcher.placement import attribution
from tracon_watcher.placement import cluster
from tracon_watcher.placement import plan
from tracon_watcher.placement import plan_state
from tracon_watcher.placement import storage_backends

PARAMETERS = plan.Parameters()
#: Rounds of the law end where the hosts solved together move no more, each by less than 1e-4.
ROUNDING = 0.01
CLUSTERS = synthetic.hosts(largest=5) | synthetic.hosts(
    largest=5, storage=(cluster.LOCAL, 'pool', 'other'))


@strategies.composite
def journeys(draw):
    """A cluster and moves within it that storage allows, each VM at most once."""
    state = cluster.build(draw(CLUSTERS))
    hypothesis.assume(state.uuids and len(state.hosts) > 1)
    moves = []
    for uuid in draw(strategies.permutations(state.uuids))[:6]:
        row = state.resident_index[uuid]
        reachable = np.flatnonzero(storage_backends.reachable(state, row))
        open_to_it = [int(host) for host in reachable if host != state.host[row]]
        if open_to_it:
            moves.append((uuid, draw(strategies.sampled_from(open_to_it))))
    return state, moves


class ProspectTestCase(unittest.TestCase):

    @hypothesis.given(journeys())
    @hypothesis.settings(deadline=None, max_examples=6)
    def test_after_every_move_it_is_as_if_predicted_again(self, journey):
        self.check_journey(journey)

    def check_journey(self, journey):
        state, moves = journey
        found = plan_state.PlanState(assessment.Assessor(state), PARAMETERS, 0.0)
        everywhere = np.ones(len(state.hosts), dtype=bool)
        for uuid, destination in [(None, None), *moves]:
            if uuid is not None:
                source = found.host(uuid)
                self.assertEqual({source, destination}, found.move(uuid, destination))
                state = state.moved({uuid: state.hosts[destination]})
            fresh = assessment.Assessor(state)
            self.check_sums(found, fresh, everywhere)
            self.check_hosts(found, fresh)
            self.check_vms(found, fresh)

    def check_sums(self, found, fresh, everywhere):
        expected, shown = plan.outlook(fresh, everywhere), found.outlook(everywhere)
        self.assertEqual((expected.vms, expected.in_breach), (shown.vms, shown.in_breach))
        for name in ('mean_slowdown', 'worst_slowdown', 'harm'):
            self.assertAlmostEqual(getattr(expected, name), getattr(shown, name), delta=ROUNDING)

    def check_hosts(self, found, fresh):
        for host in range(len(fresh.cluster.hosts)):
            expected, shown = attribution.leave_one_out(fresh, host), found.departures(host)
            place = {uuid: index for index, uuid in enumerate(shown.uuids)}
            order = [place[uuid] for uuid in expected.uuids]
            self.assertEqual(len(shown.uuids), len(order))
            np.testing.assert_allclose(shown.relief[order], expected.relief, atol=ROUNDING)
            np.testing.assert_array_equal(shown.ended[order], expected.ended)

    def check_vms(self, found, fresh):
        state = fresh.cluster
        for row, uuid in enumerate(state.uuids):
            own = int(state.host[row])
            self.assertEqual(own, found.host(uuid))
            reachable = storage_backends.reachable(state, row)
            reachable[own] = False
            np.testing.assert_allclose(
                found.arrivals(uuid, also_refused=True)[reachable],
                plan_state.arrivals(fresh, state, row, 0.0)[0][reachable], atol=ROUNDING)
            for destination in np.flatnonzero(reachable)[:1]:
                expected = plan_state.evaluate(assessment.Assessor(
                    state.restricted([own, int(destination)])), uuid,
                    PARAMETERS.migration_cost)
                shown = found.attempt(uuid, int(destination))
                self.assertEqual(isinstance(expected, plan_state.MoveEvaluation),
                                 isinstance(shown, plan_state.MoveEvaluation))
                if isinstance(shown, plan_state.MoveEvaluation):
                    self.assertAlmostEqual(expected.cautious_gain, shown.cautious_gain,
                                           delta=ROUNDING)
                    self.assertEqual(expected.move.ended, shown.move.ended)

    def test_only_the_hosts_of_moves_are_predicted_again(self):
        state = cluster.build([cluster.Host(f'h{host}', tuple(
            cluster.Resident(f'vm-{host}-{row}', 0.2 * synthetic.CAPACITY) for row in range(3)),
            synthetic.HOST_TYPE, cores=1) for host in range(30)])
        found = plan_state.PlanState(assessment.Assessor(state), PARAMETERS, 0.0)
        kept = found.departures(7)
        asked = found.arrivals('vm-7-0').copy()
        found.move('vm-3-0', 4)
        self.assertIs(kept, found.departures(7))
        changed = np.flatnonzero(found.arrivals('vm-7-0') != asked)
        self.assertEqual([3, 4], sorted(set(changed.tolist()) - {7}))
        self.assertLessEqual(len(found._parts), 2)
