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

"""The synthetic OLAP system: queues step by step, and what is learnt of its curves."""

import unittest

import numpy as np

from tracon_lab import segment_cluster as cluster


class TestQueries(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.scenario = cluster.SCENARIOS['three tables']
        rng = np.random.default_rng(67)
        self.segments = cluster.draw_segments(self.scenario, rng)
        self.queries = cluster.draw_queries(self.scenario, self.segments, 3000, rng)

    def test_each_reads_the_last_days_of_one_table(self):
        part = self.queries.rows / self.segments.rows
        self.assertTrue(((part >= 0) & (part <= 1)).all())
        for query in part:
            own = np.unique(self.segments.table[query > 0])
            self.assertEqual(1, len(own))
            days = query[self.segments.table == own[0]][::-1]
            self.assertTrue((np.diff(days) <= 0).all())
            self.assertLessEqual(((days > 0) & (days < 1)).sum(), 1)

    def test_old_segments_are_read_less(self):
        scans = (self.queries.rows / self.segments.rows).sum(axis=0)
        for table in range(3):
            own = scans[self.segments.table == table]
            self.assertTrue((np.diff(own) >= 0).all())
            self.assertGreater(own[-1], 4 * own[-15])


class TestLatencies(unittest.TestCase):

    def test_queues_step_by_step(self):
        rng = np.random.default_rng(68)
        work = rng.exponential(1.0, (400, 3)) * (rng.random((400, 3)) < 0.6)
        work[:, 0] += 0.01
        queries = cluster.Queries(np.cumsum(rng.exponential(1.0, 400)), work, work)
        held = np.array([[True, False, True], [False, True, False]])
        found, busy = cluster.latencies(queries, held, 0.7, 4.0)
        each = np.stack([work[:, 0] + work[:, 2], work[:, 1]], axis=1) / 4.0
        arrivals = queries.arrivals * each.sum() / (0.7 * 2 * 400)
        free, expected = np.zeros(2), []
        for came, own in zip(arrivals, each):
            latest = 0.0
            for worker in range(2):
                if own[worker]:
                    free[worker] = max(free[worker], came) + own[worker]
                    latest = max(latest, free[worker] - came)
            expected.append(latest)
        np.testing.assert_allclose(expected, found, atol=1e-9)
        self.assertAlmostEqual(0.7 * 400 / queries.arrivals[-1], busy.mean())


class TestPlace(unittest.TestCase):

    def test_each_segment_is_held_once_and_a_late_worker_has_new_ones_alone(self):
        scenario = cluster.SCENARIOS['unequal tables, worker added']
        segments = cluster.draw_segments(scenario, np.random.default_rng(69))
        models = cluster.learn(scenario, 2000, np.random.default_rng(70))
        for strategy in cluster.STRATEGIES:
            with self.subTest(strategy):
                held = cluster.place(scenario, segments, strategy, models)
                self.assertTrue((held.sum(axis=0) == 1).all())
                self.assertGreaterEqual(segments.begin[held[1]].min(), 45)

    def test_pinot_takes_the_first_of_equal_workers_for_every_table(self):
        scenario = cluster.SCENARIOS['three tables']
        segments = cluster.draw_segments(scenario, np.random.default_rng(71))
        newest = segments.begin == 27
        for strategy, workers in (('count', 1), ('even', 3)):
            held = cluster.place(scenario, segments, strategy, [])
            self.assertEqual(workers, held[:, newest].any(axis=1).sum())


class TestLearn(unittest.TestCase):

    def test_curves_are_near_the_true_ones(self):
        scenario = cluster.SCENARIOS['one table, sizes ± 5K']
        model, = cluster.learn(scenario, 20000, np.random.default_rng(72))
        ages = np.arange(1.0, 91.0)
        # Eq. 6.1 gives all segments of a query the same CPU time per row, which flattens g.
        wrong = model.cpu_per_row(ages) / scenario.tables[0].cpu(ages) - 1.0
        self.assertLess(np.abs(wrong).max(), 0.2)
        self.assertLess(wrong[0], 0.0)
        self.assertGreater(wrong[-1], 0.0)
        # All 20,000 queries of the hour read the newest day, in part or in whole.
        self.assertGreater(float(model.scans(1.0)), 0.5 * 20000 * 24)
        self.assertLess(float(model.scans(1.0)), 20000 * 24)
