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
from tracon_watcher.placement import bounds
from tracon_watcher.placement import cluster
from tracon_watcher.placement import departure
from tracon_watcher.placement import newcomer

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
            synthetic.HOST_TYPE, storage, 1.0) for host in range(hosts)]
        return cluster.build(listed), demands

    def status(self, state):
        return assessment.Assessor(state, synthetic.models()).status

    def test_one_makes_its_own_host_unknown_and_no_other(self):
        state, demands = self.build([0])
        status = self.status(state)
        self.assertEqual(assessment.Status.UNKNOWN_PROFILE, status[0])
        self.assertTrue((status[1:] == assessment.Status.KNOWN).all())
        # It counts as the others do.
        others = demands[1:, IO].mean(axis=0)
        np.testing.assert_allclose(
            demands[1:, IO].sum(axis=0) + others - demands[VMS:2 * VMS, IO].sum(axis=0),
            state.host_io_beyond[1], rtol=1e-9)
        found = assessment.Assessor(state, synthetic.models()).assess(
            newcomer.Profile(np.array(demands[5]), np.zeros(4), 3, 'a kind'))
        self.assertEqual(HOSTS - 1, found.known.sum())

    def test_a_tenth_is_borne_and_more_is_not(self):
        # All of a host's, host after host.
        for hosts, known in ((100, HOSTS - 100), (101, 0)):
            status = self.status(self.build(range(hosts * VMS))[0])
            self.assertEqual(known, (status == assessment.Status.KNOWN).sum())

    def test_what_stands_still_says_nothing_of_what_runs(self):
        state, demands = self.build(range(HOSTS * VMS // 20))
        stopped = np.arange(HOSTS * VMS) % VMS < VMS // 2
        profiles = state.profiles.copy()
        profiles[stopped & ~np.isnan(profiles).any(axis=1)] = 0.0
        half = dataclasses.replace(state, profiles=profiles)
        running = (profiles != 0).any(axis=1) & ~np.isnan(profiles).any(axis=1)
        np.testing.assert_allclose(half.stand_in[0], demands[running][:, IO].mean(axis=0))
        # The silent are a twentieth of all, and a tenth of those that run; now more are.
        self.assertTrue(np.isfinite(half.stand_in).all())
        profiles[np.flatnonzero(running)[:60]] = np.nan
        more = dataclasses.replace(state, profiles=profiles)
        self.assertTrue(np.isnan(more.stand_in).all())

    def test_a_disk_of_its_own_is_no_pool(self):
        state, _demands = self.build([0], 5, cluster.LOCAL)
        self.assertEqual([assessment.Status.UNKNOWN_PROFILE] + 4 * [assessment.Status.KNOWN],
                         self.status(state).tolist())

    def test_parts_of_a_cluster_count_them_alike(self):
        state, _demands = self.build([0, VMS, 2 * VMS], 40)
        for chosen in ([0], [1, 2], [3], [0, 5, 9]):
            part = state.restricted(chosen)
            np.testing.assert_allclose(state.host_io_beyond[chosen], part.host_io_beyond)
            again = part.restricted(range(len(chosen)))
            np.testing.assert_allclose(part.host_io_beyond, again.host_io_beyond)

    def test_after_a_move_they_count_as_before(self):
        state, demands = self.build([0], 40)
        moved = state.moved({'0-0': 'h7', '1-1': 'h0'})
        self.assertEqual((assessment.Status.KNOWN, assessment.Status.UNKNOWN_PROFILE),
                         tuple(self.status(moved)[[0, 7]]))
        total = state.io_residents[0]
        np.testing.assert_allclose(total, moved.io_residents[0])
        self.assertTrue(np.isfinite(moved.host_io_beyond).all())
        self.assertGreater(total[0, 0], demands[1:, 0].sum())

    def uneven(self, silent):
        """Return a cluster in which some do a lot on the pool, most hardly anything."""
        state, _demands = self.build((), 40)
        profiles = state.profiles.copy()
        profiles[:, IO] *= np.random.default_rng(5).exponential(1.0, (len(profiles), 1)) ** 4
        profiles[:silent] = np.nan
        return dataclasses.replace(state, profiles=profiles)

    def test_what_they_might_do_widens_bounds(self):
        kind = newcomer.Profile(np.array([0.5, 0.5, 0.3, 0.1]) * synthetic.CAPACITY, np.zeros(4),
                                3, 'a kind')
        for silent, widened in ((0, False), (2 * VMS, True)):
            state = self.uneven(silent)
            found, sure = (assessment.Assessor(one, synthetic.models()).assess(kind) for one in (
                state, dataclasses.replace(state, io_doubt=np.zeros((1, 2)))))
            known = found.known
            np.testing.assert_array_equal(sure.exponent[:, known], found.exponent[:, known])
            self.assertEqual(widened, bool((found.lower < sure.lower)[0, known].all()))
            self.assertEqual(widened, bool((found.upper > sure.upper)[0, known].all()))

    def test_what_is_in_no_breach_may_stay_as_it_is(self):
        state = self.uneven(2 * VMS)
        models = {synthetic.HOST_TYPE: assessment.Models(*(
            dataclasses.replace(one, interval=dataclasses.replace(one.interval, slope=0.2))
            for one in synthetic.models()[synthetic.HOST_TYPE]))}
        suffered = assessment.Assessor(state, models).exponents()[0]
        worst = int(np.nanargmax(suffered))
        looked_at = 0
        for limit in np.linspace(0.5, 1.0, 200) * suffered[worst]:
            limits = np.full(len(suffered), np.inf)
            limits[worst] = np.exp(limit)
            assessor = assessment.Assessor(dataclasses.replace(state, max_slowdown=limits), models,
                                           assessment.Settings(confidence=0.9))
            response = assessor.groups[0].responses[0]
            looked_at += int((~response.breached).sum())
            self.assertTrue((response.allowance[~response.breached] >= 0).all(), limit)
        self.assertGreater(looked_at, 10)

    def test_a_resident_is_in_breach_by_what_is_certain(self):
        unlimited = self.uneven(4 * VMS)
        suffered = assessment.Assessor(unlimited, synthetic.models()).exponents()[0]
        model = synthetic.models()[synthetic.HOST_TYPE].slowdown
        # Their limits are what their lower bounds would be if all I/O were known.
        certain = bounds.lower(model, suffered, 0.0, 0.8)
        limited = dataclasses.replace(unlimited, max_slowdown=np.where(
            np.isnan(certain), np.inf, np.maximum(np.exp(certain * 0.9999), 1.0)))
        known = dataclasses.replace(limited, io_doubt=np.zeros((1, 2)))
        doubted, sure = (assessment.Assessor(one, synthetic.models(), assessment.Settings(
            confidence=0.8)) for one in (limited, known))
        self.assertLess(doubted.breaches().sum(), sure.breaches().sum())
        # Who plans moves ends no breach that is none.
        for assessor in (doubted, sure):
            found = [departure.departures(assessor, host).ended.sum() > 0
                     for host in np.flatnonzero(assessor.status == assessment.Status.KNOWN)]
            self.assertEqual(bool(assessor.breaches().any()), any(found))
