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

"""What it brings that a VM leaves is what is left when it is elsewhere (synthetic models)."""

import unittest

import hypothesis
import numpy as np

from tests import synthetic
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import departure

MODELS = synthetic.models()


class TestDepartures(unittest.TestCase):

    def check(self, hosts, target):
        state = cluster.build(hosts)
        before = assessment.Assessor(state, MODELS)
        found = departure.departures(before, 0)
        self.assertEqual(state.uuids[:len(found.uuids)], found.uuids)
        breached, exponents = before.breaches_by_response(), np.nan_to_num(before.exponents())
        mine = np.flatnonzero(state.host == 0)
        for place, uuid in enumerate(found.uuids):
            state_after = state.moved({uuid: target})
            after = assessment.Assessor(state_after, MODELS)
            rows = [state_after.uuids.index(state.uuids[row]) for row in mine]
            left = np.nan_to_num(np.array(after.exponents())[:, rows])
            left[:, place] = 0.0
            self.assertAlmostEqual(exponents[:, mine].sum() - left.sum(), found.relief[place],
                                   delta=1e-5)
            still = after.breaches_by_response()[:, rows]
            still[:, place] = False
            ended = breached[:, mine].any(axis=0) & ~still.any(axis=0)
            self.assertEqual(ended.sum(), found.ended[place])

    @hypothesis.given(synthetic.hosts(largest=2))
    @hypothesis.settings(deadline=None, max_examples=60)
    def test_from_disks_of_their_own(self, hosts):
        self.check([*hosts, cluster.Host('far', (), synthetic.HOST_TYPE)], 'far')

    @hypothesis.given(synthetic.hosts(largest=2, storage=('pool',)))
    @hypothesis.settings(deadline=None, max_examples=60)
    def test_who_stays_on_the_pool_is_felt_there(self, hosts):
        self.check([*hosts, cluster.Host('far', (), synthetic.HOST_TYPE, 'pool')], 'far')

    def test_whose_disk_is_elsewhere_is_felt_by_its_cpu_alone(self):
        vm = np.array([300.0, 50.0, 0.5, 0.2])
        self.check([cluster.Host('a', (cluster.Resident('pooled', vm),
                                       cluster.Resident('local', vm, io_domain=cluster.LOCAL),
                                       cluster.Resident('other', vm)),
                                 synthetic.HOST_TYPE, 'pool'),
                    cluster.Host('b', (), synthetic.HOST_TYPE, 'pool')], 'b')
