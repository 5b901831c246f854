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

"""What a request is told of hosts that differ from the snapshot (synthetic)."""

import unittest

import hypothesis
from hypothesis import strategies
import numpy as np

from nova_filters import instance_changes
from nova_filters import reassessment
from tests import synthetic
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import queues

VM = np.array([300.0, 50.0, 0.3, 0.1])
IDLE = np.zeros(4)
#: One pool, which such a VM keeps busy for much of the time.
SETTINGS = assessment.Settings(pools={'pool': queues.Pool(0.002, 1.0)})
#: What is solved again is so to this.
SOLVED = 1e-3


def arrived(uuid, profile, tolerated=limits.NONE):
    return instance_changes.HostChange(arrived={
        uuid: instance_changes.Arrival(uuid, newcomer_profiles.own(profile), tolerated)})


def waiting(profile):
    """Return a newcomer of which it is told as well."""
    return newcomer_profiles.own(profile, storage_wait=0.2)


class TestOverlay(unittest.TestCase):

    def pool(self, *residents, storage='pool'):
        """Three hosts on one pool, a, b and c; residents on a."""
        return assessment.Assessor(cluster.build([
            cluster.Host('a', residents, synthetic.HOST_TYPE, storage, cores=1),
            cluster.Host('b', (), synthetic.HOST_TYPE, 'pool', cores=1),
            cluster.Host('c', (), synthetic.HOST_TYPE, 'pool', cores=1)]), SETTINGS)

    def assert_same(self, one, other):
        np.testing.assert_allclose(one.score, other.score, rtol=SOLVED, atol=SOLVED)
        np.testing.assert_allclose(one.overshoot, other.overshoot, rtol=SOLVED, atol=SOLVED)
        for place in np.flatnonzero(one.refused & other.refused):
            np.testing.assert_allclose(one.breach(place).bound, other.breach(place).bound,
                                       rtol=10 * SOLVED)

    def assess(self, assessor, uuid='new', changes=None, expected=None):
        return reassessment.reassess(assessor, uuid, newcomer_profiles.own(VM), limits.NONE,
                                     changes or {},
                                     expected or {}, 0.0)[:2]

    @hypothesis.given(synthetic.hosts(), synthetic.profiles(), synthetic.profiles())
    @hypothesis.settings(deadline=None)
    def test_one_that_has_come_counts_like_a_resident(self, hosts, early, vm):
        state = synthetic.state(hosts)
        told, _foreseen, _part = reassessment.reassess(
            assessment.Assessor(state), 'new', waiting(vm), limits.NONE,
            {0: arrived('early', early, limits.Limits(1.2))}, {}, 1000.0)
        shown = assessment.Assessor(
            state.with_resident(0, 'early', early, limits.Limits(1.2))).assess(waiting(vm))
        self.assert_same(shown, told)

    def test_a_host_that_changed_is_still_felt_on_the_pool(self):
        assessor = self.pool(cluster.Resident('victim', VM, limits.Limits(1.2), storage_wait=0.5))
        plain, _ = self.assess(assessor)
        changed, _ = self.assess(assessor, changes={1: arrived('idle', IDLE)})
        self.assertEqual([True, True, True], plain.refused.tolist())
        self.assertEqual([True, True, True], changed.refused.tolist())
        self.assertAlmostEqual(plain.remote[1], changed.remote[1])
        self.assertGreaterEqual(changed.score[1], changed.remote[1])
        self.assertEqual('victim', changed.breach(1).vm)
        self.assertEqual({'resident slowdown': 3}, changed.reasons(np.arange(3)))

    def test_one_that_comes_waits_for_its_own_limits_there(self):
        loop = np.array([0.0, 0.0, 0.5, 0.1])
        assessor = self.pool()
        for own_wait, refused in ((0.0, True), (0.95, False)):
            came = instance_changes.HostChange(frozenset(), {'early': instance_changes.Arrival(
                'early', newcomer_profiles.own(loop, own_wait), limits.Limits(1.05))})
            found, *_ = reassessment.reassess(assessor, 'vm', newcomer_profiles.own(loop),
                                              limits.NONE, {1: came},
                                              {}, 0.0)
            self.assertEqual(refused, bool(found.refused[1]))

    def test_what_is_foreseen_leaves_a_moving_vm_out_as_well(self):
        assessor = self.pool(cluster.Resident('moving', VM))
        found, foreseen = self.assess(
            assessor, 'moving', expected={1: arrived('idle', IDLE).arrived})
        self.assertAlmostEqual(0.0, found.log_response[0, 1])
        self.assertAlmostEqual(0.0, foreseen.log_response[0, 1])

    def test_a_moving_vm_keeps_its_pool_whatever_its_hosts_storage(self):
        assessor = self.pool(cluster.Resident('moving', VM, io_domain='pool'),
                             storage=cluster.LOCAL)
        found, _ = self.assess(assessor, 'moving')
        self.assertAlmostEqual(0.0, found.score[1])

    @hypothesis.given(synthetic.hosts(storage=(cluster.LOCAL, 'pool', 'other')),
                      synthetic.profiles(), synthetic.profiles(), strategies.data())
    @hypothesis.settings(deadline=None)
    def test_a_moving_vm_is_judged_as_it_will_be_where_it_comes(self, hosts, early, vm, data):
        home, changed = (data.draw(strategies.integers(0, len(hosts) - 1)) for _ in 'ab')
        state = synthetic.state(hosts).with_residents(
            [(home, 'moving', newcomer_profiles.own(vm, storage_wait=0.2), limits.NONE)],
            {'moving': 'pool'})
        settings = assessment.Settings(pools={'pool': queues.Pool(0.0002, 1.0)})
        found, *_ = reassessment.reassess(assessment.Assessor(state, settings), 'moving',
                                          waiting(vm),
                                          limits.NONE, {changed: arrived('early', early)}, {},
                                          1000.0)
        for host in range(len(hosts)):
            after = state.moved({'moving': state.hosts[host]})
            if host in (home, changed):
                after = after.with_resident(changed, 'early', early)
            both = assessment.Assessor(after, settings).log_responses()
            # What a newcomer suffers is found in one step from what is solved without it.
            np.testing.assert_allclose(
                found.log_response[:, host], both[:, after.resident_index['moving']], atol=0.1)

    def test_one_that_came_is_on_the_pool_it_was_on(self):
        assessor = self.pool(cluster.Resident('came', VM, io_domain='ceph'))
        told, _ = self.assess(assessor, changes={1: arrived('came', VM)})
        moved = assessment.Assessor(assessor.cluster.moved({'came': 'b'}), SETTINGS).assess(
            newcomer_profiles.own(VM))
        np.testing.assert_allclose(moved.log_response[:, 1], told.log_response[:, 1])
        np.testing.assert_allclose(moved.score[1], told.score[1])
        own_disk, _ = self.assess(assessor, changes={1: arrived('new', VM)})
        self.assertGreater(own_disk.log_response[0, 1], told.log_response[0, 1])

    def test_one_that_came_on_unknown_storage_makes_its_host_unknown(self):
        assessor = self.pool(cluster.Resident('came', VM, io_domain=cluster.UNKNOWN))
        told, _ = self.assess(assessor, changes={1: arrived('came', VM)})
        self.assertEqual([assessment.Status.UNKNOWN_STORAGE, assessment.Status.KNOWN],
                         told.status[1:].tolist())

    def test_volumes_that_came_share_the_cpu_alone(self):
        assessor = self.pool()
        volumes = {name: instance_changes.Arrival(
            name, newcomer_profiles.own(VM).set_apart()) for name in 'xy'}
        told, _ = self.assess(assessor, changes={1: instance_changes.HostChange(arrived=volumes)})
        shown = assessment.Assessor(cluster.build([cluster.Host('b', (
            cluster.Resident('x', VM, io_domain='ceph'),
            cluster.Resident('y', VM, io_domain='another')), synthetic.HOST_TYPE, 'pool',
            cores=1)]), SETTINGS).assess(newcomer_profiles.own(VM))
        np.testing.assert_allclose(shown.log_response[:, 0], told.log_response[:, 1])
        np.testing.assert_allclose(shown.score[0], told.score[1])

    def test_one_that_came_from_elsewhere_counts_once(self):
        assessor = self.pool(cluster.Resident('came', VM))
        told, _ = self.assess(assessor, changes={1: arrived('came', VM)})
        moved = assessment.Assessor(assessor.cluster.moved({'came': 'b'}), SETTINGS).assess(
            newcomer_profiles.own(VM))
        self.assertAlmostEqual(moved.log_response[0, 1], told.log_response[0, 1])

    def test_one_that_is_only_intended_for_a_host_stays_where_it_runs(self):
        assessor = assessment.Assessor(cluster.build([
            cluster.Host('a', (cluster.Resident('moving', VM, limits.Limits(1.1)),),
                         synthetic.HOST_TYPE, cores=1),
            cluster.Host('b', (), synthetic.HOST_TYPE, cores=1)]))
        vm = instance_changes.Arrival('moving', newcomer_profiles.own(VM), limits.Limits(1.1),
                                      intended=True)
        told, _ = self.assess(assessor,
                              changes={1: instance_changes.HostChange(arrived={'moving': vm})})
        self.assertEqual([True, True], told.refused.tolist())
        # So it is where the host differs from the snapshot in another way as well.
        told, _ = self.assess(assessor, changes={0: arrived('idle', IDLE),
                                                 1: instance_changes.HostChange(
                                                     arrived={'moving': vm})})
        self.assertEqual([True, True], told.refused.tolist())

    @hypothesis.given(synthetic.hosts(storage=(cluster.LOCAL, 'pool')), synthetic.profiles(),
                      strategies.data())
    @hypothesis.settings(deadline=None)
    def test_a_change_that_is_none_changes_nothing(self, hosts, vm, data):
        assessor = assessment.Assessor(synthetic.state(hosts), SETTINGS)
        host = data.draw(strategies.integers(0, len(hosts) - 1))
        plain, *_ = reassessment.reassess(assessor, 'new', waiting(vm), limits.Limits(1.5), {}, {},
                                          0)
        told, *_ = reassessment.reassess(assessor, 'new', waiting(vm), limits.Limits(1.5),
                                         {host: instance_changes.HostChange(gone={'missing'})}, {},
                                         0)
        self.assert_same(plain, told)
