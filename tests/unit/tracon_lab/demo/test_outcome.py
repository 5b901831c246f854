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

import math
import unittest

from tests.unit.tracon_lab.demo import synthetic
from tracon_lab.demo import outcome


class TestOutcome(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.truth = synthetic.small_truth()

    def test_each_vm_suffers_what_its_pair_was_measured_at(self):
        vms = outcome.judged([synthetic.vm('a', 'touchy', 'host01'),
                              synthetic.vm('b', 'loud', 'host01'),
                              synthetic.vm('c', 'calm', 'host02')], self.truth)
        self.assertEqual([4.0, 1.3, 1.0], [vm['slowdown'] for vm in vms])
        self.assertEqual([0.2, 0.8, 1.0], [vm['iops_ratio'] for vm in vms])
        self.assertEqual(['b', 'a', None], [vm['neighbour'] for vm in vms])

    def test_a_limit_is_broken_by_measured_values(self):
        def breached(flavor, program, beside):
            return outcome.judged([synthetic.vm('a', program, 'host01', flavor),
                                   synthetic.vm('b', beside, 'host01')],
                                  self.truth)[0]['in_breach']

        self.assertFalse(breached('plain', 'touchy', 'loud'))
        self.assertTrue(breached('steady', 'touchy', 'loud'))
        self.assertFalse(breached('steady', 'touchy', 'touchy'))
        self.assertTrue(breached('swift', 'touchy', 'touchy'))
        self.assertTrue(breached('storage', 'touchy', 'loud'))
        self.assertFalse(breached('storage', 'touchy', 'touchy'))
        self.assertFalse(breached('storage', 'calm', 'loud'), 'without I/O there is no ratio')

    def test_a_refused_vm_is_left_out(self):
        vms = outcome.judged([synthetic.vm('a', 'touchy', None),
                              synthetic.vm('b', 'loud', 'host01')], self.truth)
        self.assertEqual(['b'], [vm['name'] for vm in vms])

    def test_three_on_a_host_were_never_measured(self):
        with self.assertRaisesRegex(ValueError, '3 VMs on host01'):
            outcome.judged([synthetic.vm(name, 'calm', 'host01') for name in 'abc'], self.truth)

    def test_score(self):
        vms = outcome.judged([synthetic.vm('a', 'touchy', 'host01', 'swift'),
                              synthetic.vm('b', 'loud', 'host01'),
                              synthetic.vm('c', 'calm', 'host02', 'steady')], self.truth)
        found = outcome.score(vms)
        self.assertEqual((3, 2, 1, 4.0), (found.vms, found.limited, found.in_breach,
                                          found.worst_slowdown))
        self.assertAlmostEqual((4.0 + 1.3 + 1.0) / 3, found.mean_slowdown)
        self.assertAlmostEqual((4.0 * 1.3) ** (1 / 3), found.geometric_mean)
        self.assertAlmostEqual(1.15, outcome.score(vms, {'b', 'c'}).mean_slowdown)
        self.assertTrue(math.isnan(outcome.score(vms, ()).mean_slowdown))
