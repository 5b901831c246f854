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

"""VMs of which nothing is known, on storage that many hosts share; the cloud is synthetic."""

import dataclasses
import unittest

import numpy as np

from tests import synthetic
from tracon_watcher.characteristics import IO
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import queues

HOSTS, VMS = 1000, 20


class SilentTestCase(unittest.TestCase):

    def build(self, silent, hosts=HOSTS, storage='ceph'):
        """Return a pool's cluster in which these VMs, by number, are silent."""
        rng = np.random.default_rng(3)
        demands = rng.uniform(0.001, 0.01, (hosts * VMS, 4)) * synthetic.CAPACITY
        demands[:, IO] /= hosts
        silent = set(silent)
        profiles = [None if number in silent else demand for number, demand in enumerate(demands)]
        listed = [cluster.Host(f'h{host}', tuple(
            cluster.Resident(f'{host}-{vm}', profiles[host * VMS + vm]) for vm in range(VMS)),
            synthetic.HOST_TYPE, storage, 1.0, 16) for host in range(hosts)]
        return cluster.build(listed), demands

    def status(self, state):
        return assessment.Assessor(state).status

    def test_one_makes_its_own_host_unknown_and_no_other(self):
        state, demands = self.build([0])
        status = self.status(state)
        self.assertEqual(assessment.Status.UNKNOWN_PROFILE, status[0])
        self.assertTrue((status[1:] == assessment.Status.KNOWN).all())
        # It counts as the others do.
        rate = demands[:, IO].sum(axis=1)
        np.testing.assert_allclose([rate[1:].sum() + rate[1:].mean()], state.request_rate)
        found = assessment.Assessor(state).assess(
            newcomer_profiles.Profile(np.array(demands[5]), np.zeros(4), 3, 'a kind'))
        self.assertEqual(HOSTS - 1, found.known.sum())

    def test_a_tenth_is_borne_and_more_is_not(self):
        # All of a host's, host after host. Then nothing is said of the pool; of cores it is.
        for hosts, told in ((100, True), (101, False)):
            state, _demands = self.build(range(hosts * VMS))
            self.assertEqual(told, bool(np.isfinite(state.request_rate).all()))
            self.assertEqual(HOSTS - hosts,
                             (self.status(state) == assessment.Status.KNOWN).sum())

    def test_what_is_not_told_of_a_pool_is_not_judged(self):
        for hosts, felt in ((4, True), (5, False)):
            state, demands = self.build(range(hosts * VMS), 40)
            waits = np.where(np.isnan(state.profiles[:, 0]), np.nan, 0.3)
            judged = assessment.Assessor(
                dataclasses.replace(state, storage_wait=waits), assessment.Settings(
                    pools={'ceph': queues.Pool(2.0 / demands[:, IO].sum(), 1.0)}))
            suffered = judged.log_responses()[0]
            self.assertEqual(felt, bool((suffered[hosts * VMS:] > 0.1).all()))
            self.assertEqual(not felt, bool((suffered[hosts * VMS:] < 0.01).all()))

    def test_what_stands_still_says_nothing_of_what_runs(self):
        state, demands = self.build(range(HOSTS * VMS // 20))
        stopped = np.arange(HOSTS * VMS) % VMS < VMS // 2
        profiles = state.profiles.copy()
        profiles[stopped & ~np.isnan(profiles).any(axis=1)] = 0.0
        half = dataclasses.replace(state, profiles=profiles)
        running = (profiles != 0).any(axis=1) & ~np.isnan(profiles).any(axis=1)
        rate = demands[running][:, IO].sum(axis=1)
        silent = np.isnan(profiles).any(axis=1).sum()
        np.testing.assert_allclose(half.request_rate, [rate.sum() + silent * rate.mean()])
        # The silent are a twentieth of all, and a tenth of those that run; now more are.
        profiles[np.flatnonzero(running)[:60]] = np.nan
        more = dataclasses.replace(state, profiles=profiles)
        self.assertTrue(np.isnan(more.request_rate).all())

    def test_a_disk_of_its_own_is_no_pool(self):
        state, _demands = self.build([0], 5, cluster.LOCAL)
        self.assertEqual([assessment.Status.UNKNOWN_PROFILE] + 4 * [assessment.Status.KNOWN],
                         self.status(state).tolist())

    def test_parts_of_a_cluster_count_them_alike(self):
        state, _demands = self.build([0, VMS, 2 * VMS], 40)
        for chosen in ([0], [1, 2], [3], [0, 5, 9]):
            part = state.restricted(chosen)
            np.testing.assert_allclose(state.request_rate, part.request_rate)
            again = part.restricted(range(len(chosen)))
            np.testing.assert_allclose(part.request_rate, again.request_rate)

    def test_after_a_move_they_count_as_before(self):
        state, demands = self.build([0], 40)
        moved = state.moved({'0-0': 'h7', '1-1': 'h0'})
        self.assertEqual((assessment.Status.KNOWN, assessment.Status.UNKNOWN_PROFILE),
                         tuple(self.status(moved)[[0, 7]]))
        np.testing.assert_allclose(state.request_rate, moved.request_rate)
        self.assertGreater(state.request_rate[0], demands[1:, IO].sum())
