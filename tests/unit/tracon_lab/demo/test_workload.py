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

import collections
import unittest

import numpy as np

from tests.unit.tracon_lab.demo import synthetic
from tracon_lab.demo import workload


class TestWorkload(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.truth = synthetic.small_truth()

    def test_a_seed_gives_the_same_requests(self):
        one, other = (workload.draw(7, self.truth, 40) for _ in range(2))
        self.assertEqual([(vm.name, vm.project, vm.flavor, vm.program) for vm in one.requests],
                         [(vm.name, vm.project, vm.flavor, vm.program) for vm in other.requests])
        self.assertNotEqual([vm.program for vm in one.requests],
                            [vm.program for vm in workload.draw(8, self.truth, 40).requests])

    def test_history_does_not_change_the_requests(self):
        self.assertEqual(
            [vm.program for vm in workload.draw(7, self.truth, 40, history=10).requests],
            [vm.program for vm in workload.draw(7, self.truth, 40, history=500).requests])

    def test_a_profile_is_a_measurement_of_the_program(self):
        for vm in workload.draw(3, self.truth, 40).requests:
            self.assertIn(vm.profile.tolist(), self.truth.profiles[vm.program].tolist())

    def test_a_flavor_says_nothing_about_the_program(self):
        drawn = workload.draw(1, self.truth, 6000, projects=3, history=0).requests
        share = collections.Counter(vm.program for vm in drawn)
        for flavor in workload.FLAVORS:
            own = [vm.program for vm in drawn if vm.flavor == flavor]
            for program in self.truth.programs:
                self.assertAlmostEqual(share[program] / len(drawn),
                                       own.count(program) / len(own), delta=0.06)

    def test_history_has_the_mix_of_each_project(self):
        drawn = workload.draw(1, self.truth, 3000, projects=2, history=3000)
        for project in ('project1', 'project2'):
            before, ahead = ([vm.program for vm in vms if vm.project == project]
                             for vms in (drawn.history, drawn.requests))
            for program in self.truth.programs:
                self.assertAlmostEqual(before.count(program) / len(before),
                                       ahead.count(program) / len(ahead), delta=0.06)

    def test_flavors_differ_by_their_limits_alone(self):
        self.assertAlmostEqual(1.0, sum(one.share for one in workload.FLAVORS.values()))
        specs = [tuple(one.extra_specs.items()) for one in workload.FLAVORS.values()]
        self.assertEqual(len(specs), len(set(specs)))
        self.assertEqual({}, workload.FLAVORS['plain'].extra_specs)
        self.assertEqual({'tracon:max_slowdown': '1.5'}, workload.FLAVORS['swift'].extra_specs)
        self.assertEqual({'tracon:min_iops_ratio': '0.5'},
                         workload.FLAVORS['storage'].extra_specs)

    def test_alike_projects_have_the_overall_mix(self):
        drawn = workload.draw(1, self.truth, 6000, projects=2, history=0, concentration=1e5)
        counts = collections.Counter(vm.program for vm in drawn.requests)
        np.testing.assert_allclose(np.array(list(counts.values())) / 6000, 1 / 3, atol=0.03)
