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

"""What it brings that a VM leaves is what is left when it is elsewhere."""

import unittest

import hypothesis
import numpy as np

from tests import synthetic
from tracon_watcher.placement import assessment
from tracon_watcher.placement import attribution
from tracon_watcher.placement import cluster
from tracon_watcher.placement import queues

SETTINGS = assessment.Settings(pools={'pool': queues.Pool(0.002, 4.0)})


def judge(state):
    return assessment.Assessor(state, SETTINGS)


class TestDepartures(unittest.TestCase):

    def check(self, hosts, target):
        state = cluster.build(hosts)
        before = judge(state)
        found = attribution.leave_one_out(before, 0)
        self.assertEqual(state.uuids[:len(found.uuids)], found.uuids)
        breached, log_responses = before.breaches_by_response(
            ), np.nan_to_num(before.log_responses())
        mine = np.flatnonzero(state.host == 0)
        for place, uuid in enumerate(found.uuids):
            state_after = state.moved({uuid: target})
            after = judge(state_after)
            rows = [state_after.uuids.index(state.uuids[row]) for row in mine]
            left = np.nan_to_num(after.log_responses()[:, rows])
            left[:, place] = 0.0
            expected = log_responses[:, mine].sum() - left.sum()
            # Who stays does what the linearizer says.
            self.assertAlmostEqual(expected, found.relief[place], delta=0.05 + 0.1 * expected)
            still = after.breaches_by_response()[:, rows]
            still[:, place] = False
            ended = breached[:, mine].any(axis=0) & ~still.any(axis=0)
            near = np.abs(after.law.bound(1 - after.settings.confidence) - after.law.limit)
            if np.nanmin(near) > 0.1:
                self.assertEqual(ended.sum(), found.ended[place])

    @hypothesis.given(synthetic.hosts(largest=2))
    @hypothesis.settings(deadline=None, max_examples=30)
    def test_from_disks_of_their_own(self, hosts):
        # What one waits for that is not told is guessed from those beside it.
        hosts = [cluster.Host(host.name, tuple(cluster.Resident(
            vm.uuid, vm.profile, vm.limits, vm.io_domain, vm.own_wait, vm.vcpus,
            0.2 if np.isnan(vm.storage_wait) else vm.storage_wait) for vm in host.residents),
            host.host_type, cores=host.cores) for host in hosts]
        self.check([*hosts, cluster.Host('far', (), synthetic.HOST_TYPE, cores=16)], 'far')

    @hypothesis.given(synthetic.hosts(largest=2, storage=('pool',)))
    @hypothesis.settings(deadline=None, max_examples=30)
    def test_who_stays_on_the_pool_is_felt_there(self, hosts):
        self.check([*hosts, cluster.Host('far', (), synthetic.HOST_TYPE, 'pool', cores=16)],
                   'far')

    def test_whose_disk_is_elsewhere_is_felt_by_its_cpu_alone(self):
        vm = np.array([300.0, 50.0, 0.5, 0.2])
        self.check([cluster.Host('a', tuple(
            cluster.Resident(uuid, vm, io_domain=backend, storage_wait=0.2)
            for uuid, backend in (('pooled', None), ('local', cluster.LOCAL), ('other', None))),
            synthetic.HOST_TYPE, 'pool', cores=1),
            cluster.Host('b', (), synthetic.HOST_TYPE, 'pool', cores=16)], 'b')

    def test_of_a_host_that_is_unknown_nothing_is_said(self):
        vm = np.array([300.0, 50.0, 0.5, 0.2])
        state = cluster.build([cluster.Host('a', (cluster.Resident('x', vm),
                                                  cluster.Resident('y', vm))),
                               cluster.Host('b')])
        found = attribution.leave_one_out(judge(state), 0)
        self.assertEqual((('x', 'y'), [0.0, 0.0], [0, 0]),
                         (found.uuids, found.relief.tolist(), found.ended.tolist()))
        self.assertEqual((), attribution.leave_one_out(judge(state), 1).uuids)
