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

import functools
import itertools
import unittest

import numpy as np

from tests.unit.tracon_lab.scheduling import synthetic
from tracon_lab.scheduling import matching
from tracon_lab.scheduling import objective
from tracon_watcher import errors

try:
    import networkx
except ImportError:
    networkx = None


def solve(performance, hosts, tasks, of=objective.RT):
    """Solve with hosts of the first type, given by their residents."""
    space = performance.configurations
    count = np.zeros(len(space), dtype=int)
    for residents in hosts:
        count[functools.reduce(lambda index, task: space.added[index][task], residents,
                               space.empty[0])] += 1
    return matching.solve(space, count, np.bincount(tasks, minlength=len(space.classes)),
                          objective.host_cost(performance, of))


def by_hand(performance, hosts, tasks, of=objective.RT):
    """Return the least cost by trying every way to deal the tasks out."""
    space, cost = performance.configurations, objective.host_cost(performance, of)
    start = [functools.reduce(lambda index, task: space.added[index][task], residents,
                              space.empty[0]) for residents in hosts]
    best = np.inf
    for choice in itertools.product(range(len(hosts)), repeat=len(tasks)):
        after = list(start)
        for task, host in zip(tasks, choice):
            after[host] = space.added[after[host]][task] if after[host] >= 0 else -1
        if min(after) >= 0:
            best = min(best, cost[after].sum() - cost[start].sum())
    return best


class TestSolve(unittest.TestCase):

    def test_against_every_way_to_do_it(self):
        for seed in range(6):
            rng = np.random.default_rng(seed)
            performance = synthetic.harmful((3,)) if seed % 2 else synthetic.random_pairs(seed, 4)
            classes = len(performance.configurations.classes)
            hosts = [rng.integers(0, classes, rng.integers(0, 2)).tolist() for _host in range(4)]
            tasks = rng.integers(0, classes, 4).tolist()
            for of in objective.ALL:
                with self.subTest(seed=seed, objective=of):
                    self.assertAlmostEqual(by_hand(performance, hosts, tasks, of),
                                           solve(performance, hosts, tasks, of).cost)

    @unittest.skipIf(networkx is None, 'networkx is not installed, it comes with Watcher')
    def test_against_minimum_weight_matching(self):
        performance = synthetic.random_pairs(7, 20)
        space, cost = performance.configurations, objective.host_cost(performance, objective.RT)
        tasks = list(range(20))
        graph = networkx.Graph()
        for one, other in itertools.combinations(tasks, 2):
            pair = space.added[space.added[space.empty[0]][one]][other]
            graph.add_edge(one, other, weight=cost[pair])
        edges = networkx.min_weight_matching(graph)
        least = sum(graph.edges[edge]['weight'] for edge in edges)
        self.assertAlmostEqual(least, solve(performance, [[]] * 10, tasks).cost)

    def test_its_bound_tells_that_nothing_is_better(self):
        plan = solve(synthetic.random_pairs(1, 8), [[]] * 500,
                     np.random.default_rng(0).integers(0, 8, 1000).tolist())
        self.assertAlmostEqual(1.0, plan.bound / plan.cost, places=6)
        self.assertEqual(500, sum(plan.hosts))

    def test_of_too_many_tasks_those_are_placed_that_lose_least(self):
        performance = synthetic.harmful()
        space = performance.configurations
        count = np.zeros(len(space), dtype=int)
        count[space.added[space.empty[0]][2]] = 1          # beside touchy
        lost = objective.lost(performance, objective.RT)
        cost = (space.residents * np.nan_to_num(lost)).sum(axis=1)
        plan = matching.solve(space, count, np.array([1, 1, 1]), cost)
        self.assertEqual([(0,)], [column.tasks for column in plan.columns])

    def test_no_time_to_solve_is_said(self):
        performance = synthetic.random_pairs(1, 30)
        space = performance.configurations
        count = np.zeros(len(space), dtype=int)
        count[space.empty[0]] = 300
        with self.assertRaisesRegex(errors.InvalidOption, 'found no plan'):
            matching.solve(space, count, np.full(30, 20), objective.host_cost(
                performance, objective.RT), seconds=0.0)
