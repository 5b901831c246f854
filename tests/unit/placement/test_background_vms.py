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

"""Background VMs: what they do to others counts, what they suffer does not."""

import dataclasses
import json
import unittest

import numpy as np

from tracon_watcher import errors
from tracon_watcher.placement import assessment
from tracon_watcher.placement import attribution
from tracon_watcher.placement import cluster
from tracon_watcher.placement import current_interference
from tracon_watcher.placement import delta
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement import plan
from tracon_watcher.placement import planner
from tracon_watcher.placement import preemption
from tracon_watcher.placement import snapshot
from tracon_watcher.placement import snapshot_lines

NOW = 1000.0
WORK = np.array([0.0, 0.0, 0.8, 0.0])
IO = np.array([300.0, 100.0, 0.3, 0.1])
PLAN = plan.Parameters(min_gain=0.02, migration_cost=0.0, explained=5)


def vm(uuid, tolerance=limits.NONE, profile=WORK, **more):
    return cluster.Resident(uuid, profile, tolerance, storage_wait=0.0, **more)


def hosts(*residents, cores=1):
    """Build a state of hosts h0, h1, …, a list of residents each."""
    return cluster.build([cluster.Host(f'h{place}', tuple(vms), 'type', updated_at=NOW,
                                       cores=cores) for place, vms in enumerate(residents)])


def judge(*residents, **more):
    return assessment.Assessor(hosts(*residents, **more))


class Newcomers(unittest.TestCase):

    def test_what_it_suffers_is_in_no_score_and_what_it_does_is(self):
        judged = judge([vm('a')], [])
        profile = newcomer_profiles.own(WORK)
        foreground = judged.assess(profile)
        background = judged.assess(profile, limits.BACKGROUND)
        np.testing.assert_allclose(foreground.log_response, background.log_response)
        np.testing.assert_allclose(foreground.score - np.nansum(foreground.log_response, axis=0),
                                   background.score)
        self.assertGreater(background.score[0], 0.1)
        self.assertEqual(0.0, background.score[1])
        each = judged.assess(profile, [limits.BACKGROUND] * 2)
        np.testing.assert_array_equal(background.score, each.score)

    def test_it_is_refused_for_others_and_not_for_itself(self):
        judged = judge([vm('a', limits.Limits(1.1))], [vm('b')])
        found = judged.assess(newcomer_profiles.own(WORK), limits.BACKGROUND)
        self.assertEqual([True, False], found.refused.tolist())
        self.assertEqual('a', found.breach(0).vm)

    def test_one_of_the_foreground_is_not_kept_away_by_background_work(self):
        profile = newcomer_profiles.own(WORK)
        found = judge([vm('a')], [vm('b', limits.BACKGROUND)]).assess(profile)
        self.assertAlmostEqual(found.log_response[0, 0], found.log_response[0, 1])
        # It suffers from it alike; only what it does to it does not count.
        self.assertAlmostEqual(found.log_response[0, 1], found.score[1])
        self.assertGreater(found.score[0], found.score[1] + 0.1)

    def test_on_a_pool_neither(self):
        scores = []
        for tolerance in (limits.NONE, limits.BACKGROUND):
            state = cluster.build([
                cluster.Host('h0', (), 'type', 'pool', NOW, 4),
                cluster.Host('h1', (cluster.Resident('a', IO, tolerance, storage_wait=0.3),),
                             'type', 'pool', NOW, 4)])
            known = assessment.Settings(pools={'pool': assessment.queues.Pool(0.01, 1.0)})
            scores.append(assessment.Assessor(state, known).assess(
                newcomer_profiles.own(IO, storage_wait=0.3)).remote[0])
        self.assertGreater(scores[0], 0.01)
        self.assertEqual(0.0, scores[1])


class Residents(unittest.TestCase):

    def test_none_of_them_is_in_breach(self):
        slow = [vm('a', limits.Limits(1.1)), vm('b', limits.Limits(1.1))]
        self.assertTrue(judge(slow).breaches().all())
        # As an engine would take it from a flavor that states both.
        stated = limits.of_flavor({'tracon:class': 'background', 'tracon:max_slowdown': '1.1'})
        judged = judge([slow[0], vm('b', stated)])
        self.assertEqual([True, False], judged.breaches().tolist())
        now = current_interference.current_interference(judged)
        self.assertEqual([True, False], now.breached.any(axis=0).tolist())
        # What it suffers is told all the same.
        self.assertAlmostEqual(now.log_response[0, 0], now.log_response[0, 1])
        self.assertFalse(judged.harm()[:, 1].any())

    def test_harm_is_what_they_do_to_the_foreground(self):
        both = attribution.find_culprits(judge([vm('a'), vm('b')]))
        np.testing.assert_allclose(both.harm[0], both.harm[1])
        found = attribution.find_culprits(judge([vm('a'), vm('b', limits.BACKGROUND)]))
        self.assertEqual(0.0, found.harm[0])
        self.assertAlmostEqual(both.harm[1], found.harm[1])
        self.assertEqual(1, found.culprit[0])

    def test_leaving_one_out_counts_the_foreground(self):
        relief = {}
        for name, tolerance in (('foreground', limits.NONE), ('background', limits.BACKGROUND)):
            relief[name] = attribution.leave_one_out(
                judge([vm('a'), vm('b', tolerance)]), 0).relief
        np.testing.assert_allclose(relief['foreground'][0], relief['foreground'][1])
        # Whichever of the two leaves, only what the one of the foreground suffers ends.
        np.testing.assert_allclose(relief['foreground'] / 2, relief['background'], rtol=1e-6)

    def test_the_sums_of_a_plan(self):
        judged = judge([vm('a'), vm('b', limits.BACKGROUND)])
        known = np.array([True])
        made = planner.plan_moves(judged, parameters=PLAN, now=NOW)
        for found in (plan.outlook(judged, known), made.before):
            self.assertAlmostEqual(judged.log_responses()[0, 0], found.harm)
            self.assertEqual((2, 0), (found.vms, found.in_breach))


class Plans(unittest.TestCase):

    def plan(self, *residents):
        return planner.plan_moves(judge(*residents), parameters=PLAN, now=NOW)

    def test_none_moves_for_background_work_alone(self):
        crowd = [vm(name) for name in 'abc']
        self.assertTrue(self.plan(crowd, []).moves)
        found = self.plan([dataclasses.replace(one, limits=limits.BACKGROUND) for one in crowd],
                          [])
        self.assertEqual((), found.moves)
        self.assertEqual((0.0, ()), (found.before.harm, found.remainders))

    def test_a_background_vm_moves_to_end_a_breach(self):
        found = self.plan([vm('a', limits.Limits(1.1)), vm('b', limits.BACKGROUND)], [])
        (move,) = found.moves
        self.assertEqual((1, ('a',)), (move.ended, move.relieves))
        self.assertEqual(0, found.after.in_breach)

    def test_one_helped_most_is_of_the_foreground(self):
        found = self.plan([vm('a'), vm('b', limits.BACKGROUND), vm('c', limits.BACKGROUND)], [])
        for move in found.moves:
            self.assertEqual(('a',), move.relieves)
        self.assertTrue(found.moves)


class Removals(unittest.TestCase):
    """Background VMs that leave where no migration helps."""

    VICTIM = vm('a', limits.Limits(1.3))

    def plan(self, residents, removable='bcd', parameters=PLAN, closed=True, **rules):
        """Plan for one host, with an empty one beside it that takes no VM unless it is open."""
        return planner.plan_moves(
            judge(residents, []), placement_constraints.Constraints(
                closed={'h1': 'for the test'} if closed else {}, removable=frozenset(removable),
                **rules), parameters, NOW)

    @staticmethod
    def background(uuid, share=1.0):
        return vm(uuid, limits.BACKGROUND, WORK * share)

    def removed(self, *given, **named):
        return [(one.uuid, one.ends) for one in self.plan(*given, **named).removals]

    def test_one_leaves_where_no_migration_helps(self):
        crowd = [self.VICTIM, self.background('b')]
        self.assertEqual([], self.removed(crowd, removable=''))
        found = self.plan(crowd)
        (removal,) = found.removals
        self.assertEqual(('b', 'h0', ('a',)), (removal.uuid, removal.host, removal.ends))
        self.assertEqual((1, 0), (found.before.in_breach, found.after.in_breach))
        self.assertTrue(found.reason.endswith(
            '; VMs in breach: 1; removals of background VMs: 1, which end breaches: 1'),
            found.reason)
        self.assertEqual((), found.remainders)

    def test_a_migration_comes_first(self):
        found = self.plan([self.VICTIM, self.background('b')], closed=False)
        self.assertEqual((1, ()), (len(found.moves), found.removals))

    def test_the_least_that_helps(self):
        # Without the large one the small ones are borne; without a small one the large one is not.
        self.assertEqual([('c', ('a',))], self.removed(
            [self.VICTIM, self.background('b', 0.1), self.background('c'),
             self.background('d', 0.1)]))

    def test_several_where_one_is_not_enough(self):
        found = self.removed([vm('a', limits.Limits(1.05)), self.background('b'),
                              self.background('c')])
        self.assertEqual([('b', ('a',)), ('c', ('a',))], found)

    def test_none_where_the_foreground_alone_is_too_much(self):
        self.assertEqual([], self.removed([self.VICTIM, vm('e', profile=WORK * 1.2),
                                           self.background('b', 0.05)]))

    def test_who_must_stay_is_not_removed(self):
        self.assertEqual([], self.removed([self.VICTIM, self.background('b')],
                                          immovable={'b': 'is locked'}))

    def test_only_background_work_is_removed(self):
        # Nova says that it is background work; the snapshot does not yet.
        self.assertEqual([], self.removed([self.VICTIM, vm('b')], removable='b'))

    def test_none_while_more_migrations_are_possible_or_nothing_may_be_done(self):
        crowd = [self.VICTIM, self.background('b')]
        self.assertEqual([], self.removed(crowd, parameters=dataclasses.replace(
            PLAN, standstill='blackout window')))
        two = planner.plan_moves(
            judge(crowd, [], [vm('f', limits.Limits(1.3)), self.background('g')], cores=1),
            placement_constraints.Constraints(removable=frozenset('bg')),
            dataclasses.replace(PLAN, max_migrations=1), NOW)
        self.assertEqual((1, (), 1), (len(two.moves), two.removals, two.after.in_breach))

    def test_the_document_of_an_audit(self):
        made = self.plan([self.VICTIM, self.background('b')])
        document = json.loads(json.dumps(plan.audit_document(made, 'audit', NOW)))
        (found,) = plan.read_audit(document)['removals']
        (effect,) = found.pop('effects')
        self.assertEqual({'vm': 'b', 'host': 'h0', 'ends': ['a']}, found)
        self.assertEqual('a', effect['vm'])
        self.assertGreater(effect['before'], 1.3)
        self.assertAlmostEqual(1.0, effect['after'])
        del document['removals'][0]['effects']
        self.assertEqual([], plan.read_audit(document)['removals'][0]['effects'])
        del document['removals']
        self.assertEqual([], plan.read_audit(document)['removals'])


class Preemptions(unittest.TestCase):
    """Requests that found no host, on full hosts of background VMs b0, b1, … of one vCPU each."""

    def plan(self, *residents, needs=None, requests=1, need=1.0, free=0.0, closed=(), full=(),
             profile=newcomer_profiles.UNKNOWN, limit=limits.NONE, **more):
        names = [one.uuid for host in residents for one in host]
        return planner.plan_moves(
            judge(*residents, **more), placement_constraints.Constraints(
                closed=dict.fromkeys((*closed, *full), 'for the test'), full=frozenset(full),
                needs={name: (vcpus, 1.0, 0.0) for name, vcpus in (
                    needs or dict.fromkeys(names, 1.0)).items()},
                free={f'h{place}': (free, 9.0, 9.0) for place in range(len(residents))},
                removable=frozenset(name for name in names if name.startswith('b'))),
            PLAN, NOW, requests=[preemption.Request(f'r{number}', (need, 1.0, 0.0), profile, limit)
                                 for number in range(requests)])

    def removed(self, *given, **named):
        return [(one.uuid, one.host, one.request) for one in self.plan(*given, **named).removals]

    @staticmethod
    def crowd(*names):
        return [vm(name, limits.BACKGROUND, WORK * 0.1) for name in names]

    def test_one_host_gives_room_with_the_fewest(self):
        self.assertEqual([('b2', 'h1', 'r0')], self.removed(
            self.crowd('b0', 'b1'), self.crowd('b2'), need=2.0,
            needs={'b0': 1.0, 'b1': 1.0, 'b2': 2.0}))
        # Two of one host, and not one each of two.
        self.assertEqual([('b0', 'h0', 'r0'), ('b1', 'h0', 'r0')], self.removed(
            self.crowd('b0', 'b1'), self.crowd('b2'), need=2.0))

    def test_and_the_smallest(self):
        needs = {'b0': 4.0, 'b1': 2.0, 'b2': 3.0}
        self.assertEqual([('b1', 'h0', 'r0')], self.removed(
            self.crowd('b0', 'b1'), self.crowd('b2'), need=2.0, needs=needs))
        self.assertEqual([('b2', 'h1', 'r0')], self.removed(
            self.crowd('b0', 'b1'), self.crowd('b2'), need=3.0, needs=needs))

    def test_more_leave_where_the_newcomer_would_be_in_breach(self):
        busy = [vm(name, limits.BACKGROUND) for name in ('b0', 'b1')]
        named = {'profile': newcomer_profiles.own(WORK)}
        self.assertEqual([('b0', 'h0', 'r0')], self.removed(busy, **named))
        self.assertEqual([('b0', 'h0', 'r0'), ('b1', 'h0', 'r0')], self.removed(
            busy, limit=limits.Limits(1.1), **named))
        # Though there is room.
        self.assertEqual([('b0', 'h0', 'r0'), ('b1', 'h0', 'r0')], self.removed(
            busy, limit=limits.Limits(1.1), free=1.0, **named))

    def test_none_where_a_resident_would_be_in_breach(self):
        found = self.plan([vm('a', limits.Limits(1.3)), *self.crowd('b0')],
                          profile=newcomer_profiles.own(WORK))
        self.assertEqual((), found.removals)
        self.assertIn('0 fit already, 1 nowhere', found.reason)

    def test_newcomers_count_for_those_after_them(self):
        named = {'profile': newcomer_profiles.own(WORK), 'limit': limits.Limits(1.3)}
        found = self.plan(self.crowd('b0', 'b1', 'b2'), requests=2, **named)
        self.assertEqual(['r0'], [one.request for one in found.removals])
        self.assertIn('1 fit without 1 background VMs, 0 fit already, 1 nowhere', found.reason)
        found = self.plan(self.crowd('b0', 'b1', 'b2'), requests=2, cores=4, **named)
        self.assertEqual(['r0', 'r1'], [one.request for one in found.removals])

    def test_room_that_removals_against_breaches_leave_is_used(self):
        found = self.plan([vm('a', limits.Limits(1.3)), vm('b0', limits.BACKGROUND)])
        self.assertEqual([('b0', '', ('a',))],
                         [(one.uuid, one.request, one.ends) for one in found.removals])
        self.assertIn('0 fit without 0 background VMs, 1 fit already', found.reason)

    def test_a_full_host_and_a_closed_one(self):
        self.assertEqual([('b0', 'h0', 'r0')], self.removed(self.crowd('b0'), full=['h0']))
        self.assertEqual([], self.removed(self.crowd('b0'), closed=['h0']))

    def test_of_an_unknown_host_only_the_room_counts(self):
        unknown = [*self.crowd('b0'), vm('a', profile=[np.nan] * 4)]
        self.assertEqual([], self.removed(unknown))
        self.assertIn('1 fit already', self.plan(unknown, free=1.0).reason)

    def test_the_document_of_an_audit(self):
        made = self.plan(self.crowd('b0'))
        document = json.loads(json.dumps(plan.audit_document(made, 'audit', NOW)))
        self.assertEqual([{'vm': 'b0', 'host': 'h0', 'ends': [], 'effects': [], 'request': 'r0'}],
                         plan.read_audit(document)['removals'])


class Texts(unittest.TestCase):

    STATE = hosts([vm('a', limits.Limits(1.5)), vm('b', limits.BACKGROUND)], [vm('c')])

    def lines(self):
        return list(snapshot.lines(snapshot.Snapshot(self.STATE, 900.0)))

    def test_snapshots_tell_the_class_of_background_work_alone(self):
        (line,) = [json.loads(one) for one in self.lines() if '"h0"' in one]
        self.assertEqual([None, 'background'], [one.get('class') for one in line['vms']])
        found = snapshot.decode(self.lines(), 'it').cluster
        self.assertEqual([False, True, False], found.background.tolist())
        self.assertEqual(limits.BACKGROUND, found.resident_limits(1))

    def test_limits_of_background_work_count_nothing(self):
        (content,) = [json.loads(one) for one in self.lines() if '"h0"' in one]
        content['vms'][1]['max_slowdown'] = 1.1
        text = ''.join(snapshot_lines.sealed([json.loads(self.lines()[0]), content]))
        found = snapshot.decode(text.splitlines(keepends=True), 'it').cluster
        self.assertEqual(limits.BACKGROUND, found.resident_limits(1))

    def test_another_class_is_refused(self):
        (content,) = [json.loads(one) for one in self.lines() if '"h0"' in one]
        content['vms'][1]['class'] = 'batch'
        text = ''.join(snapshot_lines.sealed([json.loads(self.lines()[0]), content]))
        with self.assertRaisesRegex(errors.InvalidDocument, r"class is 'batch': .*background"):
            snapshot.decode(text.splitlines(keepends=True), 'it')

    def test_a_change_of_class_is_in_a_delta(self):
        old = snapshot.Snapshot(self.STATE, 900.0)
        new = dataclasses.replace(old, cluster=dataclasses.replace(
            self.STATE, background=np.array([False, False, False]), version=1))
        found = delta.apply(old, delta.encode(old, new), 'it')
        self.assertFalse(found.cluster.background.any())

    def test_changes_of_a_state_keep_it(self):
        moved = self.STATE.moved({'b': 'h1'})
        self.assertTrue(moved.background[moved.resident_index['b']])
        part = self.STATE.restricted([0])
        self.assertEqual([False, True], part.background.tolist())
        more = part.with_residents([(0, 'd', newcomer_profiles.own(WORK), limits.BACKGROUND)])
        self.assertEqual([False, True, True], more.background.tolist())
        self.assertEqual([True, False], attribution.without_each(part).background.tolist())
