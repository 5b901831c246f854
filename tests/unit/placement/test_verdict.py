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

"""Which breach is the worst of a host."""

import unittest

import numpy as np

from tests import synthetic
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import newcomer_profiles


def found(response, row, overshoot):
    """A breach on the first host."""
    return assessment.BreachTable(response, np.array([0]), np.array([row]), np.array([overshoot]),
                                  np.array([1.0]), np.array([0.5]))


class TestWorst(unittest.TestCase):

    def setUp(self):
        super().setUp()
        state = cluster.build([cluster.Host('h', (cluster.Resident('a', np.ones(4)),
                                                  cluster.Resident('b', np.ones(4))),
                                            synthetic.HOST_TYPE)])
        self.judged = assessment.Assessment.unknown(state, np.zeros(1, dtype=np.intp),
                                                    newcomer_profiles.own(np.ones(4)))

    def test_of_equals_the_first_is_named_and_counted(self):
        for first, second in ((0.5, 0.5), (0.5, 0.5 + 1e-13), (0.5 + 1e-13, 0.5)):
            judged = self.judged.copy()
            judged.note(found(0, 1, first))
            judged.note(found(1, 0, second))
            breach = judged.breach(0)
            self.assertEqual(('b', 'slowdown'), (breach.vm, breach.response))
            self.assertEqual({'resident slowdown': 1}, judged.reasons(np.array([0])))

    def test_the_worse_one_is(self):
        self.judged.note(found(0, 1, 0.5))
        self.judged.note(found(1, 0, 0.5 + 1e-6))
        breach = self.judged.breach(0)
        self.assertEqual(('a', 'iops_ratio'), (breach.vm, breach.response))
        self.assertEqual({'resident iops_ratio': 1}, self.judged.reasons(np.array([0])))
