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

"""What-if analyses, against states in which the change is made; all demands are synthetic."""

import math
import unittest
from unittest import mock

import hypothesis
import numpy as np

from tests import synthetic
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import current_interference
from tracon_watcher.placement import limits
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement import storage_backends
from tracon_watcher.placement import what_if

VM = np.array([300.0, 50.0, 0.5, 0.2])
#: Rounds of the law end where the hosts solved together move no more, each by less than 1e-4.
ROUNDING = 0.01
NOW = 1000.0


def judged(hosts, age=math.inf, pools=()):
    """Return the assessor of hosts: by name, pairs of uuid and (demand, limit)."""
    return assessment.Assessor(cluster.build([
        cluster.Host(name, tuple(
            cluster.Resident(uuid, demand, limits.Limits(limit))
            for uuid, (demand, limit) in vms.items()), None,
            'pool' if name in pools else cluster.LOCAL, NOW, 1)
        for name, vms in hosts.items()]), assessment.Settings(maximum_age=age))


def slowdowns(assessor):
    """Return predicted slowdowns by uuid."""
    found = current_interference.current_interference(assessor)
    return dict(zip(assessor.cluster.uuids, np.exp(found.log_response[0]).tolist()))


class Evacuate(unittest.TestCase):

    @hypothesis.given(synthetic.hosts(largest=5))
    @hypothesis.settings(deadline=None, max_examples=10)
    def test_each_vm_goes_where_it_does_least_harm_at_its_turn(self, hosts):
        state = cluster.build(hosts)
        hypothesis.assume(len(state.hosts) > 2 and state.first[1] > 0)
        found = what_if.evacuate(assessment.Assessor(state), 0, NOW)
        self.assertEqual(set(state.uuids[:state.first[1]]), set(found.destinations))
        for uuid, name in found.destinations.items():
            row = state.resident_index[uuid]
            verdict = assessment.Assessor(state).assess(
                state.resident_profile(row), state.resident_limits(row))
            open_to_it = storage_backends.reachable(state, row) & verdict.known
            open_to_it[0] = False
            if name is None:
                self.assertFalse(open_to_it.any())
                continue
            if (open_to_it & ~verdict.refused).any():
                open_to_it &= ~verdict.refused
                self.assertNotIn(uuid, found.refused)
            self.assertLessEqual(verdict.score[state.host_index[name]],
                                 verdict.score[open_to_it].min() + ROUNDING)
            state = state.moved({uuid: name})

    def test_effects_are_those_of_a_state_in_which_it_is_so(self):
        before = judged({'down': {'a': (VM, 9.0), 'b': (VM * .5, 9.0)}, 'two': {'c': (VM, 9.0)},
                         'three': {'d': (VM * 3, 9.0)}})
        found = what_if.evacuate(before, 0, NOW)
        # The heavier one is first.
        self.assertEqual(['a', 'b'], list(found.destinations))
        after = slowdowns(assessment.Assessor(before.cluster.moved(found.destinations)))
        old = slowdowns(before)
        concerned = {one.uuid: one for one in found.effects}
        self.assertLessEqual({'a', 'b'}, set(concerned))
        for uuid, one in concerned.items():
            self.assertAlmostEqual(old[uuid], one.slowdown_before, places=3)
            self.assertAlmostEqual(after[uuid], one.slowdown_after, places=3)
        self.assertEqual(2, found.assessed)

    def test_where_each_host_would_breach_a_limit_the_least_harm_counts(self):
        found = what_if.evacuate(judged({
            'down': {'a': (VM, 1.01)}, 'two': {'b': (VM, 9.0)}, 'three': {'c': (VM * 3, 9.0)}}),
            0, NOW)
        self.assertEqual(({'a': 'two'}, frozenset('a')), (found.destinations, found.refused))
        (own,) = [one for one in found.effects if one.uuid == 'a']
        self.assertEqual((False, True), (own.breach_before, own.breach_after))
        # Where one host would not, it is taken, and no limit is breached.
        found = what_if.evacuate(judged({
            'down': {'a': (VM, 1.01)}, 'two': {'b': (VM, 9.0)}, 'three': {}}), 0, NOW)
        self.assertEqual(({'a': 'three'}, frozenset()), (found.destinations, found.refused))

    def test_what_is_unknown_stays_unknown(self):
        found = what_if.evacuate(judged({
            'down': {'a': (None, 9.0), 'b': (VM, 9.0)}, 'two': {'c': (VM, 9.0)}}), 0, NOW)
        self.assertEqual({'b': 'two', 'a': None}, found.destinations)
        effects = {one.uuid: one for one in found.effects}
        self.assertTrue(math.isnan(effects['a'].slowdown_after))
        self.assertFalse(math.isnan(effects['c'].slowdown_after))
        # Beside one of which nothing is known, nothing is known.
        self.assertTrue(math.isnan(effects['b'].slowdown_before))
        # Hosts whose data is stale take none.
        assessor = judged({'down': {'b': (VM, 9.0)}, 'two': {}}, age=60.0)
        self.assertEqual({'b': 'two'}, what_if.evacuate(assessor, 0, NOW + 60).destinations)
        self.assertEqual({'b': None}, what_if.evacuate(assessor, 0, NOW + 61).destinations)

    def test_storage_stays_what_it_is(self):
        found = what_if.evacuate(judged({
            'down': {'a': (VM, 9.0)}, 'idle': {}, 'two': {'b': (VM, 9.0)}},
            pools=('down', 'two')), 0, NOW)
        self.assertEqual({'a': 'two'}, found.destinations)

    def test_the_least_loaded_hosts_are_assessed(self):
        assessor = judged({'down': {'a': (VM, 9.0)}, **{
            f'h{place}': {f'b{place}': (VM * place, 9.0)} for place in range(9, 0, -1)}})
        with mock.patch.object(what_if, '_SHORTLIST', 3):
            found = what_if.evacuate(assessor, 0, NOW)
        self.assertEqual((3, {'a': 'h1'}), (found.assessed, found.destinations))
        self.assertEqual({'a': 'h1'}, what_if.evacuate(assessor, 0, NOW).destinations)

    def test_of_equal_hosts_the_first_by_name(self):
        for names in (('x', 'y'), ('y', 'x')):
            found = what_if.evacuate(judged({
                'down': {'a': (VM, 9.0)}, **{name: {} for name in names}}), 0, NOW)
            self.assertEqual({'a': 'x'}, found.destinations)

    def test_a_host_without_vms(self):
        found = what_if.evacuate(judged({'down': {}, 'two': {'b': (VM, 9.0)}}), 0, NOW)
        self.assertEqual(({}, ()), (found.destinations, found.effects))


class Migrate(unittest.TestCase):

    def test_effects_are_those_of_a_state_in_which_it_is_so(self):
        before = judged({'one': {'a': (VM, 1.05), 'b': (VM, 9.0)}, 'two': {'c': (VM, 9.0)},
                         'three': {'d': (VM, 9.0)}})
        obstacle, effects = what_if.migrate(before, 'b', 1, NOW)
        self.assertIsNone(obstacle)
        self.assertEqual(['a', 'b', 'c'], sorted(one.uuid for one in effects))
        after = slowdowns(assessment.Assessor(before.cluster.moved({'b': 'two'})))
        for one in effects:
            self.assertAlmostEqual(after[one.uuid], one.slowdown_after, places=6)
        (own,) = [one for one in effects if one.uuid == 'a']
        self.assertEqual((True, False), (own.breach_before, own.breach_after))

    def test_what_is_against_it(self):
        against = placement_constraints.Against
        for hosts, pools, now, expected in (
                ({'two': {'c': (VM, 1.01)}}, (), NOW, against.LIMIT),
                ({'two': {'c': (None, 9.0)}}, (), NOW, against.UNKNOWN),
                ({'two': {}}, (), NOW + 61, against.UNKNOWN),
                ({'two': {}}, ('two',), NOW, against.STORAGE)):
            assessor = judged({'one': {'a': (VM, 9.0)}, **hosts}, 60.0, pools)
            obstacle, effects = what_if.migrate(assessor, 'a', 1, now)
            self.assertEqual(expected, obstacle.against)
            if expected is against.UNKNOWN:
                self.assertTrue(math.isnan(effects[0].slowdown_after))
        obstacle, effects = what_if.migrate(
            judged({'one': {'a': (VM, 9.0)}, 'two': {'c': (VM, 1.01)}}), 'a', 1, NOW)
        # It is predicted nevertheless.
        self.assertEqual([('a', False), ('c', True)],
                         [(one.uuid, one.breach_after) for one in effects])


class Affected(unittest.TestCase):

    def test_who_is_and_in_which_order(self):
        before = judged({'one': {'a': (VM, 9.0), 'b': (VM, 9.0)}, 'two': {
            'c': (VM, 9.0), 'd': (VM, 1.8), 'idle': (VM * 0, 9.0)}, 'three': {}})
        effects = what_if.migrate(before, 'b', 1, NOW)[1]
        found = [one.uuid for one in what_if.affected(effects, ['b'])]
        self.assertEqual('d', found[0])
        self.assertEqual('a', found[-1])
        self.assertEqual({'a', 'b', 'c', 'd'}, set(found))
