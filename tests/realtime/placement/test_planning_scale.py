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

"""A cloud as large as one that Watcher was reported to take over an hour for."""

import time
import unittest

import numpy as np

from tests import synthetic
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement import planner

HOSTS, VMS = 113, 15769


class ScaleTestCase(unittest.TestCase):
    """Launchpad bug 2141939 names 113 hosts with 15,769 VMs."""

    def test_plan_within_twenty_seconds_of_processor_time(self):
        rng = np.random.default_rng(1)
        tolerant = limits.Limits(max_slowdown=40.0)
        state = cluster.build(cluster.Host(f'h{host}', tuple(
            cluster.Resident(f'vm-{host}-{place}', synthetic.CAPACITY * rng.exponential(
                0.008 if host % 10 == 7 else 0.004, 4), tolerant if place % 10 == 0
                else limits.NONE) for place in range(host, VMS, HOSTS)),
            synthetic.HOST_TYPE, cores=2) for host in range(HOSTS))
        self.assertEqual(VMS, len(state.uuids))
        rules = placement_constraints.Constraints(needs={uuid: (1, 1, 1) for uuid in state.uuids},
                                                  free={name: (9, 9, 9) for name in state.hosts})
        start = time.process_time()
        made = planner.plan_moves(assessment.Assessor(state), rules)
        self.assertLess(time.process_time() - start, 20)
        self.assertEqual(5, len(made.moves))
