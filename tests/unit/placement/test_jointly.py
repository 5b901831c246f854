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

import numpy as np

from tests import synthetic
from tracon_watcher import assignment
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import joint_assignment
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement import queues


class TestJointly(unittest.TestCase):

    def test_the_host_that_both_want_goes_to_whom_the_other_one_costs_more(self):
        # h2 is empty, so that both had better go there.
        capacity = synthetic.CAPACITY
        cpu, disk = np.array([0, 0, 0.9, 0.1]) * capacity, np.array([0.6, 0.6, 0.05, 0]) * capacity
        state = cluster.build([
            cluster.Host('h0', (cluster.Resident('disk', disk, storage_wait=0.9),
                                cluster.Resident('d', disk, storage_wait=0.9)),
                         synthetic.HOST_TYPE, cores=1),
            cluster.Host('h1', (cluster.Resident('cpu', cpu), cluster.Resident('c', cpu)),
                         synthetic.HOST_TYPE, cores=1),
            cluster.Host('h2', (), synthetic.HOST_TYPE, cores=1),
            cluster.Host('h3', (cluster.Resident('busy', cpu / 2),), synthetic.HOST_TYPE,
                         cores=1)])
        judge = assessment.Assessor(state, assessment.Settings(
            learnt={synthetic.HOST_TYPE: queues.LearnedParameters(disk=1.0)}))
        room = placement_constraints.Occupancy(state, placement_constraints.Constraints(), 0.0)
        left = {(first, second): float(np.nansum(assessment.Assessor(
            state.moved({'cpu': first, 'disk': second}), judge.settings).log_responses()))
            for first, second in (('h2', 'h3'), ('h3', 'h2'))}
        first, second = min(left, key=left.get)
        self.assertGreater(max(left.values()), 1.05 * min(left.values()))
        for order in (('disk', 'cpu'), ('cpu', 'disk')):
            found = joint_assignment.destinations(judge, room, order, assignment.least_cost, 0.07,
                                                  0.0)
            self.assertEqual({'cpu': int(first[1]), 'disk': int(second[1])}, dict(found))

    def test_no_way_is_none(self):
        self.assertIsNone(assignment.least_cost(np.full((2, 2), np.inf)))
        self.assertEqual([1, 0], assignment.least_cost(
            np.array([[1.0, 1.1], [1.0, 5.0]])).tolist())
