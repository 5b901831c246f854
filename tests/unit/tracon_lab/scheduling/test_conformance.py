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

"""One suite over all schedulers: what each of them keeps to, whatever it prefers."""

import collections
import unittest

import hypothesis
from hypothesis import strategies
import numpy as np

from tests.unit.tracon_lab.scheduling import synthetic
from tracon_lab.scheduling import catalogue
from tracon_lab.scheduling import objective
from tracon_lab.scheduling import pool as pools

NAMES = (*catalogue.USUAL, 'MIBS', 'MIBS_2', 'MIBS_8-paired', 'MIBS_8-paired-partial', 'MIX_2',
         'MIX_8-paired', 'MIX_8-eager', 'MINMIN_2:wait=5', 'PRICED_32', 'PRICED_8:threshold=-inf',
         'MIOS-residents', 'matching', 'matching-spread')
_SLOTS = (2, 3)
_PERFORMANCE = synthetic.harmful(_SLOTS)


def settings():
    return hypothesis.settings(max_examples=15, deadline=None, derandomize=True)


def drawn():
    """Strategy: hosts of two sizes, some occupied, and a queue."""
    return strategies.tuples(
        strategies.lists(strategies.tuples(
            strategies.integers(0, 1), strategies.lists(strategies.integers(0, 2), max_size=3)),
            min_size=1, max_size=6),
        strategies.lists(strategies.integers(0, 2), max_size=20))


def filled(scheduler, hosts):
    """Return a pool with residents, as many of those asked for as fit."""
    pool = pools.Pool(_PERFORMANCE.configurations, [kind for kind, _tasks in hosts],
                      scheduler.order)
    for host, (kind, tasks) in enumerate(hosts):
        for task in tasks[:_SLOTS[kind]]:
            pool.add(host, task)
    return pool


def build(name, of=objective.RT):
    return catalogue.build(name, _PERFORMANCE, of)


class TestEverySchedulerConforms(unittest.TestCase):

    def each(self):
        for name in NAMES:
            for of in objective.ALL:
                with self.subTest(scheduler=name, objective=of):
                    yield name, of

    def run_on(self, name, of, hosts, queue):
        scheduler = build(name, of)
        pool = filled(scheduler, hosts)
        before, free = list(pool.of), pool.free
        placed = scheduler.schedule(queue, pool)
        return scheduler, pool, before, free, placed

    @settings()
    @hypothesis.given(drawn())
    def test_tasks_and_slots_are_used_once_and_the_pool_tells_so(self, given):
        hosts, queue = given
        for name, of in self.each():
            _scheduler, pool, before, free, placed = self.run_on(name, of, hosts, queue)
            positions = [position for position, _host in placed]
            self.assertEqual(len(set(positions)), len(positions), 'a task was placed twice')
            self.assertEqual(free - len(placed), pool.free)
            came = collections.defaultdict(list)
            for position, host in placed:
                came[host].append(queue[position])
            space = _PERFORMANCE.configurations
            for host, index in enumerate(before):
                expected = sorted([*space.members[index], *came[host]])
                self.assertLessEqual(len(expected), _SLOTS[hosts[host][0]], 'too many on a host')
                self.assertEqual(expected, sorted(space.members[pool.of[host]]))

    @settings()
    @hypothesis.given(drawn())
    def test_all_are_placed_where_slots_suffice_and_else_all_slots_are_filled(self, given):
        hosts, queue = given
        for name, of in self.each():
            scheduler, pool, _before, free, placed = self.run_on(name, of, hosts, queue)
            if not scheduler.patient:
                self.assertEqual(min(free, len(queue)), len(placed))
            elif queue and any(not _PERFORMANCE.configurations.size[index] for index in _before):
                self.assertGreater(len(placed), 0, 'an empty host was left empty')

    @settings()
    @hypothesis.given(drawn())
    def test_the_same_question_has_the_same_answer(self, given):
        hosts, queue = given
        for name, of in self.each():
            first, second = (self.run_on(name, of, hosts, queue) for _again in range(2))
            self.assertEqual(first[-1], second[-1])

    def test_an_empty_queue_places_nothing(self):
        for name, of in self.each():
            self.assertEqual([], self.run_on(name, of, [(0, [])], [])[-1])

    def test_without_a_free_slot_nothing_is_placed(self):
        for name, of in self.each():
            self.assertEqual([], self.run_on(name, of, [(0, [0, 1]), (1, [1, 1, 2])], [0, 1])[-1])

    def test_one_task_on_one_empty_host(self):
        for name, of in self.each():
            self.assertEqual([(0, 0)], self.run_on(name, of, [(0, [])], [1])[-1])

    def test_no_interference_no_choice_is_wrong(self):
        harmless = synthetic.harmless()
        tasks = np.random.default_rng(1).integers(0, 3, 16).tolist()
        for name, of in self.each():
            if name == 'FIFO-single':
                continue
            scheduler = catalogue.build(name, harmless, of)
            pool = pools.Pool(harmless.configurations, [0] * 8, scheduler.order)
            self.assertEqual(16, len(scheduler.schedule(tasks, pool)))
            cost = objective.host_cost(harmless, objective.RT)
            self.assertAlmostEqual(1600.0, cost[pool.of].sum())


class TestWhatEachPrefers(unittest.TestCase):

    def place(self, name, queue, residents, of=objective.RT):
        scheduler = build(name, of)
        pool = filled(scheduler, [(0, one) for one in residents])
        return scheduler.schedule(queue, pool)

    def test_fifo_fills_a_host_before_the_next_or_evenly(self):
        self.assertEqual([(0, 0), (1, 0), (2, 1)],
                         self.place('FIFO-packed', [0, 1, 2], [[], [], []]))
        self.assertEqual([(0, 0), (1, 1), (2, 2)],
                         self.place('FIFO-spread', [0, 1, 2], [[], [], []]))

    def test_mios_asks_what_the_newcomer_suffers_and_not_what_it_does(self):
        # loud suffers less beside touchy (1.3) than beside loud (2.0), and ruins it (6.0).
        self.assertEqual([(0, 1)], self.place('MIOS', [1], [[1], [2]]))

    def test_residents_are_counted_where_that_is_asked_for(self):
        # loud costs itself 2.0 and the other 2.0 beside loud; beside touchy 1.3 and 6.0.
        self.assertEqual([(0, 0)], self.place('MIOS-residents', [1], [[1], [2]]))

    def test_matching_spread_leaves_no_host_empty_first(self):
        # touchy and calm are best together, but each takes a host first; loud goes to calm.
        self.assertEqual([(0, 0), (1, 1), (2, 1)],
                         self.place('matching-spread', [2, 0, 1], [[], []]))

    def test_priced_counts_the_resident(self):
        self.assertEqual([(0, 0)], self.place('PRICED_8:threshold=-inf', [1], [[1], [2]]))

    def test_priced_lets_a_task_wait_that_does_more_harm_than_it_is_worth(self):
        self.assertEqual([], self.place('PRICED_8', [1], [[2]]))
        self.assertEqual([(0, 0)], self.place('PRICED_8', [0], [[0]]))

    def test_priced_does_not_wait_beside_an_empty_host(self):
        # On the second host type everything takes ten times as long: touchy's host is worth more,
        # and loud would ruin it.
        slow = synthetic.harmful((2, 2))
        slow.solo_seconds[1] = 1000.0
        scheduler = catalogue.build('PRICED_8', slow, objective.RT)
        pool = pools.Pool(slow.configurations, [0, 1])
        pool.add(0, 2)
        self.assertEqual([(0, 1)], scheduler.schedule([1], pool))

    def test_mibs_takes_the_first_then_the_one_that_suffers_least_beside_it(self):
        # Beside loud: calm 1.2, loud 2.0, touchy 6.0.
        placed = self.place('MIBS_8', [1, 2, 1, 0], [[], [], [], []])
        self.assertEqual([0, 3, 1, 2], [position for position, _host in placed])

    def test_mibs_of_equals_takes_the_longest_waiting_and_each_task_once(self):
        placed = self.place('MIBS', [1, 0, 0, 1, 2, 0], [[], [], []])
        self.assertEqual([0, 1, 2, 5, 3, 4], [position for position, _host in placed])

    def test_paired_places_candidate_2_beside_candidate_1(self):
        # Alone is best for each, so that MIOS spreads them.
        for plain, paired in (('MIBS_8', 'MIBS_8-paired'), ('MIX_8', 'MIX_8-paired')):
            hosts = [dict(self.place(name, [1, 0], [[], []])) for name in (plain, paired)]
            self.assertNotEqual(hosts[0][0], hosts[0][1], plain)
            self.assertEqual(hosts[1][0], hosts[1][1], paired)

    def test_paired_goes_elsewhere_where_candidate_1_has_taken_the_last_slot(self):
        self.assertEqual([(0, 0), (1, 1)],
                         sorted(self.place('MIBS_8-paired', [0, 1], [[0], [2]])))

    def test_minmin_takes_the_task_that_is_done_first(self):
        # One slot beside touchy: calm takes 1.05 times as long there, loud 1.3, touchy 1.6.
        self.assertEqual([(2, 0)], self.place('MINMIN_8', [2, 1, 0], [[2]]))
        self.assertEqual([2, 1], [position for position, _host in self.place(
            'MINMIN_8', [2, 1, 0], [[2], [2]])])

    def test_single_leaves_the_slot_beside_a_task_empty(self):
        self.assertEqual([(0, 1)], self.place('FIFO-single', [0, 1], [[2], []]))

    def test_equal_but_for_rounding_is_equal(self):
        noisy = synthetic.harmless()
        rng = np.random.default_rng(5)
        noisy.slowdown[:] *= 1 + 1e-13 * rng.standard_normal(noisy.slowdown.shape)
        noisy.iops_ratio[:] = 1 / noisy.slowdown
        queue = rng.integers(0, 3, 12).tolist()
        for name in NAMES:
            for of in objective.ALL:
                with self.subTest(scheduler=name, objective=of):
                    found = [scheduler.schedule(queue, pools.Pool(
                        one.configurations, [0] * 8, scheduler.order))
                        for one in (synthetic.harmless(), noisy)
                        for scheduler in (catalogue.build(name, one, of),)]
                    self.assertEqual(*found)

    def test_mix_gives_every_task_a_chance_to_be_first(self):
        # One slot beside touchy: MIBS puts the first there, MIX the one that loses least.
        self.assertEqual([(0, 0)], self.place('MIBS_8', [2, 1, 0], [[2]]))
        self.assertEqual([(2, 0)], self.place('MIX_8', [2, 1, 0], [[2]]))

    def test_mix_applies_what_it_has_tried(self):
        rng = np.random.default_rng(3)
        for _again in range(30):
            queue = rng.integers(0, 3, 6).tolist()
            residents = [rng.integers(0, 3, rng.integers(0, 3)).tolist() for _host in range(5)]
            plain = objective.lost(_PERFORMANCE, objective.RT)
            scheduler = build('MIX_8')
            pool = filled(scheduler, [(0, one) for one in residents])
            tried = [scheduler._attempt(queue, first, pool) for first in range(len(queue))]
            most = max(len(plan) for plan, _lost in tried)
            least = min(lost for plan, lost in tried if len(plan) == most)
            placed = scheduler.schedule(queue, pool)
            really = sum(plain[pool.of[host], queue[position]] for position, host in placed)
            self.assertEqual(most, len(placed))
            self.assertAlmostEqual(least, really)
