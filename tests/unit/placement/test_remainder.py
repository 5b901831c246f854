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

"""Why nothing more moves: each kind of obstacle, told of the state that a plan leaves."""

import dataclasses
import unittest

import numpy as np

from tests import synthetic
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement.placement_constraints import Against
from tracon_watcher.placement import plan
from tracon_watcher.placement import planner

NOW = 1000.0
STRICT = limits.Limits(max_slowdown=1.3)


def resident(uuid, share, tolerance=limits.NONE):
    return cluster.Resident(uuid, share * synthetic.CAPACITY, tolerance, storage_wait=0.0)


def state(*residents, storage=('pool', 'pool', 'pool')):
    """Return hosts h0, h1, …; a VM ``victim`` beside a ``culprit`` on h0."""
    crowd = resident('victim', 0.1, STRICT), resident('culprit', 0.5)
    return cluster.build([
        cluster.Host(f'h{place}', tuple(vms), synthetic.HOST_TYPE, storage[place], NOW, 1)
        for place, vms in enumerate((crowd, *residents))])


def left(found, rules=placement_constraints.Constraints(), parameters=plan.Parameters(),
         **settings):
    made = planner.plan_moves(
        assessment.Assessor(found, assessment.Settings(**settings)), rules,
        dataclasses.replace(parameters, explained=20), NOW)
    return made, {one.host: one for one in made.remainders}


def obstacles(remainder, uuid='culprit'):
    """Return by kind the host that is named, of how many it is said, and why."""
    return {one.obstacle.against: (one.destination, one.hosts, one.obstacle.why)
            for one in remainder.options if one.uuid == uuid}


class TestRemainders(unittest.TestCase):

    def test_where_the_plan_helps_nothing_is_left(self):
        made, found = left(state([]))
        self.assertEqual((1, {}), (len(made.moves), found))

    def test_what_is_in_breach_and_whose_leaving_would_end_it(self):
        made, found = left(state(), storage_rules())
        (breach,) = found['h0'].breaches
        self.assertEqual(('victim', 'slowdown', 1.3),
                         (breach.uuid, breach.response, breach.limit))
        self.assertGreater(breach.value, 1.3)
        self.assertAlmostEqual(made.after.harm, found['h0'].harm)
        self.assertEqual({'victim': ('victim',), 'culprit': ('victim',)},
                         {one.uuid: one.ends for one in found['h0'].options})

    def test_of_the_vm_itself(self):
        for rules, expected in (
                ({'immovable': {'culprit': 'is locked'}}, (Against.STAYS, 'is locked')),
                ({'cooldown_until': {'culprit': NOW + 60}}, (
                    Against.COOLDOWN, 'was migrated a short time ago, cools down for 60 s more')),
                ({'needs': {'victim': (1, 1, 1)}}, (Against.UNKNOWN, 'its flavor is not known')),
                ({'groups': (group('affinity'),)}, (
                    Against.GROUP, 'would leave its affinity group g'))):
            tied = {**rules, 'immovable': {'victim': 'is locked', **rules.get('immovable', {})}}
            with self.subTest(rules):
                _made, found = left(state([]), placement_constraints.Constraints(**tied))
                against, why = expected
                self.assertEqual({against: (None, 0, why)}, obstacles(found['h0']))

    def test_of_hosts_each_once(self):
        found = state([], [], [resident('other', 0.1)], [], [],
                      storage=('pool', 'pool', 'pool', 'pool', 'pool', 'another'))
        cores = found.cores.copy()
        cores[4] = np.nan
        rules = placement_constraints.Constraints(
            immovable={'victim': 'is locked'}, closed={'h1': 'it is disabled'},
            needs=dict.fromkeys(('victim', 'culprit', 'other'), (1, 1, 1)),
            free={f'h{place}': (0 if place == 2 else 9,) * 3 for place in range(6)},
            zones={f'h{place}': 'north' for place in range(6)},
            bound_to_zone={'culprit': 'north'},
            groups=(placement_constraints.Group('g',
                                                placement_constraints.GroupPolicy.ANTI_AFFINITY,
                                                frozenset(('culprit', 'other'))),))
        _made, remainders = left(dataclasses.replace(found, cores=cores), rules)
        self.assertEqual({
            Against.CLOSED: ('h1', 1, 'takes no VM: it is disabled'),
            Against.ROOM: ('h2', 1, 'has no room for it'),
            Against.GROUP: ('h3', 1, 'would break its server group'),
            Against.UNKNOWN: ('h4', 1, 'is unknown: unknown_cores'),
            Against.STORAGE: ('h5', 1, 'does not reach its storage')},
            obstacles(remainders['h0']))
        elsewhere = dataclasses.replace(rules, bound_to_zone={'culprit': 'south'}, closed={})
        _made, remainders = left(dataclasses.replace(found, cores=cores), elsewhere)
        self.assertEqual(('h1', 4, 'is in another availability zone'),
                         obstacles(remainders['h0'])[Against.ZONE])

    def test_a_limit_that_would_be_crossed_there(self):
        strict = [resident('strict', 0.5, limits.Limits(max_slowdown=1.05))]
        _made, found = left(state(strict, strict_again()), placement_constraints.Constraints(
            immovable={'victim': 'is locked', 'strict': 'is locked', 'strict-2': 'is locked'}))
        _destination, hosts, why = obstacles(found['h0'])[Against.LIMIT]
        self.assertEqual(2, hosts)
        self.assertRegex(why, r'slowdown .* would cross the limit 1\.05 of strict')

    def test_too_little_gain(self):
        dear = plan.Parameters(migration_cost=5.0)
        harmed = dataclasses.replace(dear, migration_cost=0.0, min_gain=9.0)
        for parameters in (dear, harmed):
            _made, found = left(state([]), parameters=parameters)
            _destination, _hosts, why = obstacles(found['h0'])[Against.GAIN]
            self.assertIn('not more than min_gain + migration_cost', why)

    def test_no_more_moves_than_the_plan_may_have(self):
        two = cluster.build([
            cluster.Host(f'h{place}', (resident(f'victim-{place}', 0.1, STRICT),
                                       resident(f'culprit-{place}', 0.5)),
                         synthetic.HOST_TYPE, 'pool', NOW, 1) for place in range(2)] + [
            cluster.Host(f'h{place}', (), synthetic.HOST_TYPE, 'pool', NOW, 1)
            for place in (2, 3)])
        made, found = left(two, parameters=plan.Parameters(max_migrations=1))
        self.assertEqual(1, len(made.moves))
        ((host, remainder),) = found.items()
        against = obstacles(remainder, f'culprit-{host[1:]}')
        self.assertEqual('max_migrations=1 is reached', against[Against.CAP][2])

    def test_while_nothing_may_move_it_is_told_what_else_would(self):
        crowd = state([])
        made, found = left(crowd,
                           placement_constraints.Constraints(immovable={'victim': 'is locked'}),
                           plan.Parameters(standstill='blackout window "x" until noon'))
        self.assertEqual(((), made.before, 'no migration: blackout window "x" until noon'),
                         (made.moves, made.after, made.reason))
        self.assertEqual({Against.BLACKOUT: ('h1', 1, 'blackout window "x" until noon')},
                         obstacles(found['h0']))
        # What stands against a move at any hour is told instead.
        self.assertEqual({Against.STAYS}, set(obstacles(found['h0'], 'victim')))

    def test_a_soft_group_that_would_be_crowded(self):
        crowd = [resident('culprit', 0.5), resident('quiet', 0.2)]
        harmed = cluster.build([
            cluster.Host('h0', tuple(crowd), synthetic.HOST_TYPE, 'pool', NOW, 1),
            cluster.Host('h1', (resident('other', 0.01),), synthetic.HOST_TYPE, 'pool', NOW, 1)])
        soft = placement_constraints.Group('g',
                                           placement_constraints.GroupPolicy.SOFT_ANTI_AFFINITY,
                                           frozenset(('culprit', 'other')))
        _made, found = left(harmed, placement_constraints.Constraints(
            immovable={'quiet': 'is locked'}, groups=(soft,)),
            plan.Parameters(min_gain=0.01, migration_cost=0.0))
        self.assertIn('soft server group', obstacles(found['h0'])[Against.GROUP][2])

    def test_a_host_whose_data_are_stale(self):
        stale = dataclasses.replace(state([]), updated_at=np.array([0.0, NOW]))
        _made, found = left(stale, maximum_age=60)
        self.assertEqual(('victim', ()), (found['h0'].breaches[0].uuid, found['h0'].options))

    def test_the_worst_hosts_come_first_and_not_all(self):
        many = cluster.build([
            cluster.Host(f'h{place:02}', tuple(
                [resident(f'v{place}', 0.1, STRICT if place == 29 else limits.NONE)]
                + [resident(f'c{place}-{one}', 0.5) for one in range(1 + place % 2)]),
                synthetic.HOST_TYPE, 'pool', NOW, 1) for place in range(30)])
        made, _found = left(many, placement_constraints.Constraints(
            immovable=dict.fromkeys(many.uuids, 'is locked')))
        self.assertEqual((20, 'h29', 'h01'), (
            len(made.remainders), made.remainders[0].host, made.remainders[1].host))


def storage_rules():
    return placement_constraints.Constraints(immovable={'victim': 'is locked',
                                                        'culprit': 'is locked'})


def strict_again():
    return [resident('strict-2', 0.5, limits.Limits(max_slowdown=1.05))]


def group(policy):
    return placement_constraints.Group('g', placement_constraints.GroupPolicy(policy),
                                       frozenset(('victim', 'culprit')))
