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

import itertools
import unittest

import numpy as np

from tests.unit.tracon_lab.demo import synthetic
from tracon_lab.demo import oracle
from tracon_lab.demo import outcome


class TestOracle(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.truth = synthetic.small_truth()

    def test_a_breach_is_ended_with_one_migration(self):
        # Beside calm, touchy has 1.2 and an IOPS ratio of 0.8, calm 1.1: harm 0.50. Loud beside
        # calm would be 1.1, 1.4 and 0.9: 0.54.
        vms = [synthetic.vm('a', 'touchy', 'host01', 'swift'),
               synthetic.vm('b', 'loud', 'host01'), synthetic.vm('c', 'calm', 'host02')]
        found, migrations = oracle.best(vms, ['host01', 'host02'], self.truth)
        self.assertEqual([1.2, 1.0, 1.1], [vm['slowdown'] for vm in found])
        self.assertEqual(1, migrations)
        self.assertAlmostEqual(np.log(1.2 * 1.1 / 0.8), oracle.harm(found))

    def test_with_enough_hosts_each_vm_has_its_own(self):
        vms = [synthetic.vm(name, 'loud', 'host02') for name in 'ab']
        found, migrations = oracle.best(vms, ['host01', 'host02'], self.truth)
        self.assertEqual(([1.0, 1.0], 1), ([vm['slowdown'] for vm in found], migrations))

    def test_nothing_migrates_out_of_the_best(self):
        vms = [synthetic.vm('a', 'calm', 'host02'), synthetic.vm('b', 'touchy', 'host01')]
        found, migrations = oracle.best(vms, ['host01', 'host02'], self.truth)
        self.assertEqual((['host02', 'host01'], 0), ([vm['host'] for vm in found], migrations))

    def test_it_is_the_optimum_of_all_assignments(self):
        rng = np.random.default_rng(1)
        hosts = ['host01', 'host02', 'host03']
        for _case in range(5):
            vms = [synthetic.vm(f'vm{number}', str(rng.choice(synthetic.PROGRAMS)),
                                hosts[number // 2], str(rng.choice(['plain', 'swift', 'steady'])))
                   for number in range(5)]
            every = [outcome.judged([{**vm, 'host': host} for vm, host in zip(vms, chosen)],
                                    self.truth)
                     for chosen in itertools.product(hosts, repeat=5)
                     if max(map(chosen.count, hosts)) <= 2]
            least = min((sum(vm['in_breach'] for vm in state), round(oracle.harm(state), 9))
                        for state in every)
            found, _migrations = oracle.best(vms, hosts, self.truth)
            self.assertEqual(least, (sum(vm['in_breach'] for vm in found),
                                     round(oracle.harm(found), 9)))
