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

import unittest

from tracon_lab.tenant_demo import replicas


def answers(rng, slow=1.0):
    """Return synthetic answers of 20 queries, of which the first worker's are slow."""
    return [(worker, rng.uniform(0.009, 0.011) * (slow if worker == 0 else 1.0))
            for worker in range(3) for _query in range(60)]


class SteeringTest(unittest.TestCase):

    def setUp(self):
        self.queries = replicas.Queries(1)
        self.steering = replicas.Steering(self.queries, 1.0)

    def step(self, slow, times):
        for _time in range(times):
            self.steering.step(answers(self.queries._chance, slow), 1.0)

    def test_a_contended_worker_gets_less_of_its_segments_until_the_end(self):
        self.step(1.0, 12)
        self.assertEqual([0.5] * 3, self.queries.shares)
        self.step(4.0, 3)
        first, between, last = self.queries.shares
        # Replicas of the first segment are on workers 0 and 1, of the last on 2 and 0.
        self.assertLess(first, 0.2)
        self.assertEqual((0.5, 1.0 - first), (between, last))
        self.step(1.0, 3)
        self.assertEqual([0.5] * 3, self.queries.shares)

    def test_silence_changes_nothing(self):
        self.step(1.0, 12)
        self.steering.step([], 1.0)
        self.assertEqual([0.5] * 3, self.queries.shares)


class TableTest(unittest.TestCase):

    def test_medians(self):
        kinds = ('none', 'cpu', 'memory', 'disk', 'network')
        equal, steered = ([replicas.Outcome(dict.fromkeys(kinds, value)) for value in values]
                          for values in ((100.0, 200.0, 900.0), (50.0, 100.0, 120.0)))
        rows = replicas.table(equal, steered)
        self.assertEqual(('none', 200.0, 100.0, -50.0), rows[0])
        self.assertEqual(list(kinds), [row[0] for row in rows])
        self.assertEqual(len(replicas.COLUMNS), len(rows[0]))
