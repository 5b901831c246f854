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

"""Own limits from flavors, volume types and counters to audits. All VMs here are SYNTHETIC."""

import dataclasses
import unittest

import numpy as np

from tests import synthetic
from tests.unit.engine import counting
from tracon_watcher.contention import calibration
from tracon_watcher.contention import own_limits as columns
from tracon_watcher.contention import profile_tracker
from tracon_watcher.engine import collector
from tracon_watcher.engine import own_limits
from tracon_watcher.engine import state
from tracon_watcher.inventory import cloud
from tracon_watcher.placement import assessment
from tracon_watcher.placement import plan
from tracon_watcher.placement import planner

POLLING = 60.0
QUOTA = {'quota:cpu_quota': '30000', 'quota:cpu_period': '100000'}
INFINITE = float('inf')


def server(uuid, host='h1', specs=None, **named):
    return cloud.Server(uuid, uuid, 'p', host, 'm1', specs or {}, 'image', 'active', **named)


def inventory(*servers, volume_limits=None):
    hosts = {one.host for one in servers} | {'h1'}
    return cloud.Inventory(
        {one.uuid: one for one in servers},
        {name: cloud.Hypervisor(name, True, True, cores=1) for name in hosts}, (), {}, 0.0,
        volume_limits)


def limits(*servers, volume_limits=None):
    return own_limits.limits([one.uuid for one in servers],
                             inventory(*servers, volume_limits=volume_limits))


class StatedTestCase(unittest.TestCase):

    def test_a_quota_is_that_of_each_virtual_cpu(self):
        found = limits(server('a', specs=QUOTA, vcpus=4), server('b'))
        self.assertEqual([1.2, INFINITE], found.total[:, columns.CORES].tolist())

    def test_the_period_has_a_default(self):
        found = limits(server('a', specs={'quota:cpu_quota': '50000'}))
        self.assertEqual([0.5], found.total[:, columns.CORES].tolist())

    def test_what_is_no_limit(self):
        for value in ('-1', '0', 'much', ''):
            found = limits(server('a', specs={
                'quota:cpu_quota': value, 'quota:disk_read_iops_sec': value}))
            self.assertTrue(np.isinf(found.total).all(), value)
            self.assertTrue(np.isinf(found.smallest).all(), value)

    def test_each_local_disk_has_the_flavors_limit(self):
        specs = {'quota:disk_read_iops_sec': '100', 'quota:disk_total_bytes_sec': '5000000'}
        found = limits(server('a', specs=specs, local_disks=2))
        self.assertEqual(200.0, found.total[0, columns.READS])
        self.assertEqual(100.0, found.smallest[0, columns.READS])
        self.assertEqual(1e7, found.total[0, columns.BYTES])

    def test_volumes_have_their_own_and_those_without_are_free(self):
        of_volumes = {'v1': {'read_iops_sec': 50.0}, 'v2': {'read_iops_sec': 70.0}}
        booted = server('a', local_disks=0, volumes=('v1', 'v2'))
        found = limits(booted, volume_limits=of_volumes)
        self.assertEqual(120.0, found.total[0, columns.READS])
        self.assertEqual(50.0, found.smallest[0, columns.READS])
        found = limits(server('a', volumes=('v1',)), volume_limits=of_volumes)
        self.assertEqual([INFINITE, 50.0],
                         [found.total[0, columns.READS], found.smallest[0, columns.READS]])

    def test_a_volume_that_was_not_listed_has_limits_that_are_unknown(self):
        of_volumes = {'v1': {'read_iops_sec': 50.0}, 'v2': {}}
        booted = {'image': '', 'local_disks': 0}
        found = limits(
            server('known', volumes=('v1', 'v2')), server('without'),
            server('attached', volumes=('v1', 'v3')),
            dataclasses.replace(server('booting'), **booted), volume_limits=of_volumes)
        self.assertEqual([False, False, True, True], found.unknown.tolist())
        self.assertEqual([50.0, INFINITE], [found.smallest[2, columns.READS],
                                            found.total[2, columns.READS]])
        # Nothing is limited, or Cinder does not tell.
        self.assertEqual([False], limits(server('a', volumes=('v3',))).unknown.tolist())

    def test_who_has_less_weight_than_others_on_its_host(self):
        def light(*weights):
            servers = [server(f'vm{number}', specs={} if weight is None else {
                'quota:cpu_shares': str(weight)}) for number, weight in enumerate(weights)]
            return limits(*servers).light.tolist()
        self.assertEqual([False, False], light(None, None))
        self.assertEqual([True, False], light(100, 200))
        self.assertEqual([False, False], light(100, 100))
        # What is not stated is the host's default, which is not known.
        self.assertEqual([True, False], light(2000, None))
        self.assertEqual([False], light(100))


class CollectedTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.source = counting.Source(POLLING)
        self.collector = collector.Collector(self.source, profile_tracker.ProfileTracker(
            calibration.packaged(), 1800.0), POLLING, 1800.0)

    def profiles(self, polls, known):
        self.source.run(polls)
        return self.collector.collect(known, self.source.now).profiles

    def test_a_loop_under_a_quota(self):
        self.source.vm('a', guest=0.302, delay=0.698, throttled=0.686)
        found = self.profiles(10, inventory(server('a', specs=QUOTA)))
        self.assertLess(found.slowdown[0], 1.1)
        np.testing.assert_allclose(found.mean[0, 2], 0.302, rtol=0.05)
        np.testing.assert_allclose(found.reached, [[1.0] + 6 * [0.0]], atol=1e-6)
        np.testing.assert_allclose(found.own_wait, [0.698], atol=1e-3)

    def test_agents_that_do_not_count_it(self):
        self.source.vm('a', guest=0.299, delay=0.698)
        found = self.profiles(10, inventory(server('a', specs=QUOTA)))
        self.assertLess(found.slowdown[0], 1.1)
        np.testing.assert_allclose(found.mean[0, 2], 0.3, rtol=0.05)

    def test_a_sample_whose_counter_is_stored_later_waits_for_it(self):
        self.source.vm('a', guest=0.3, delay=0.69, throttled=0.68)
        self.source.late = ('tracon.cpu.throttled',)
        self.source.run(5)
        self.assertEqual(3, self.collector.collect(
            inventory(server('a', specs=QUOTA)), self.source.now).learnt)

    def test_a_disk_at_its_limit_of_bytes(self):
        specs = {'quota:disk_read_bytes_sec': '5000000'}
        self.source.vm('a', reads=76.0, guest=0.1, host=0.02, latency=0.012, size=65790)
        found = self.profiles(10, inventory(server('a', specs=specs)))
        np.testing.assert_allclose(found.reached, np.eye(7)[[columns.READ_BYTES]], atol=1e-6)
        np.testing.assert_allclose(found.mean[0, 0], 76.0, rtol=0.05)
        # Of each second 76 × 12 ms, but what it computes.
        np.testing.assert_allclose(found.own_wait, [0.9], atol=0.02)

    def test_what_a_vm_waits_for_storage(self):
        self.source.vm('a', reads=50.0, guest=0.1, host=0.02, latency=0.004)
        self.source.vm('b', guest=0.1)
        seen = inventory(server('a'), server('b'))
        found = self.profiles(10, seen)
        np.testing.assert_allclose(found.storage_wait, [0.2, 0.0], atol=0.02)

    def test_who_is_at_no_limit_waits_for_none(self):
        self.source.vm('a', guest=0.2, delay=0.6, throttled=0.0)
        found = self.profiles(5, inventory(server('a', specs=QUOTA)))
        self.assertEqual([0.0], found.own_wait.tolist())

    def test_what_it_waits_for_others_at_its_limit_it_would_wait_there(self):
        self.source.vm('a', guest=0.25, delay=0.74, throttled=0.05)
        found = self.profiles(5, inventory(server('a', specs=QUOTA)))
        np.testing.assert_allclose(found.own_wait, [0.7], atol=0.05)

    def test_one_with_idle_time_left_would_not(self):
        self.source.vm('a', guest=0.2, delay=0.5, throttled=0.012)
        found = self.profiles(10, inventory(server('a', specs=QUOTA)))
        self.assertTrue(found.at_limit[0, 0])
        self.assertLess(found.own_wait[0], 0.1)
        self.assertGreater(found.slowdown[0], 1.3)

    def test_whom_others_keep_from_its_limit(self):
        known = inventory(server('a', specs=QUOTA))
        self.source.vm('a', guest=0.302, delay=0.698, throttled=0.69)
        alone = self.profiles(10, known)
        self.source.vm('a', guest=0.25, delay=0.745, throttled=0.0)
        for _hour in range(3):
            beside = self.profiles(60, known)
            np.testing.assert_allclose(beside.own_wait, alone.own_wait, rtol=0.01)
            # Without them it would do 1.2 times as much, and no more.
            np.testing.assert_allclose(beside.slowdown, [1.2], rtol=0.1)

    def test_several_requests_that_wait_are_one(self):
        self.source.vm('a', guest=1.0, reads=100.0, latency=0.32, throttled=0.0)
        found = self.profiles(5, inventory(server(
            'a', specs={'quota:disk_read_iops_sec': '100'}, vcpus=4)))
        np.testing.assert_allclose(found.own_wait, [0.25], atol=0.01)

    def test_what_is_next_to_nothing_is_nothing(self):
        known = inventory(server('a', specs={'quota:disk_read_iops_sec': '100'}))
        self.source.vm('a', guest=0.1, reads=60.0, latency=0.001, throttled=0.0)
        self.profiles(30, known)
        self.source.vm('a', guest=0.1, reads=99.0, latency=0.002, throttled=0.0)
        self.profiles(1, known)
        self.source.vm('a', guest=0.1, reads=60.0, latency=0.001, throttled=0.0)
        self.assertEqual([0.0], self.profiles(1, known).own_wait.tolist())

    def test_another_program_waits_as_long_as_it_does_itself(self):
        known = inventory(server('a', specs=QUOTA))
        self.source.vm('a', guest=0.302, delay=0.698, throttled=0.686)
        self.profiles(10, known)
        self.source.vm('a', guest=0.05, delay=0.001, throttled=0.0)
        np.testing.assert_allclose(self.profiles(1, known).own_wait, [0.64], atol=0.06)
        self.assertEqual([0.0], self.profiles(2, known).own_wait.tolist())

    def test_it_is_part_of_the_state_and_of_the_history(self):
        self.source.vm('a', guest=0.302, delay=0.698, throttled=0.686)
        self.source.vm('b', guest=0.2)
        known = inventory(server('a', specs=QUOTA), server('b'), server('new'))
        self.source.run(5)
        found = self.collector.collect(known, self.source.now)
        cluster = state.build(known, found.demand, state.Defaults(synthetic.HOST_TYPE), 1,
                              self.source.now, lambda kind, text: None)
        place = cluster.resident_index
        np.testing.assert_allclose([0.698, 0.0, 0.349], cluster.own_wait[
            [place['a'], place['b'], place['new']]], atol=1e-3)
        np.testing.assert_allclose(0.349, cluster.history['m1'].own_wait, atol=1e-3)
        # Nor does a VM of another flavor have its limits.
        self.assertEqual(0.0, cluster.history[''].own_wait)

    def test_while_the_limit_of_a_volume_is_unknown_so_is_the_slowdown(self):
        listed = {'v': {'read_iops_sec': 100.0}}
        one = server('a', volumes=('v',), local_disks=0)
        self.source.vm('a', reads=20.0, guest=0.05, host=0.01, latency=0.002, throttled=0.0)
        found = self.profiles(10, inventory(one, volume_limits=listed))
        np.testing.assert_allclose(found.slowdown, [1.0], atol=0.05)
        # Below any limit nothing is waited for.
        found = self.profiles(1, inventory(one, volume_limits={}))
        np.testing.assert_allclose(found.slowdown, [1.0], atol=0.05)
        self.source.vm('a', reads=99.5, guest=0.05, host=0.01, latency=0.0095, throttled=0.0)
        found = self.profiles(2, inventory(one, volume_limits=listed))
        np.testing.assert_allclose(found.slowdown, [1.0], atol=0.05)
        found = self.profiles(1, inventory(one, volume_limits={}))
        self.assertTrue(np.isnan(found.slowdown[0]))
        self.assertEqual([True], found.limited.tolist())

    def test_bytes_are_read_only_where_they_are_limited(self):
        asked = []
        read = self.source.read
        self.source.read = lambda since, until, names: asked.append(names) or read(
            since, until, names)
        self.source.vm('a', guest=0.3, size=1.0)
        for specs in ({}, {'quota:disk_read_bytes_sec': '5'}):
            self.profiles(2, inventory(server('a', specs=specs)))
        self.assertEqual([False, True], ['tracon.disk.read.bytes' in names for names in asked])

    def test_what_operators_are_shown(self):
        self.source.vm('a', guest=0.302, delay=0.698, throttled=0.686, reads=30.0)
        specs = {**QUOTA, 'quota:disk_read_iops_sec': '100'}
        self.assertEqual(
            [('CPU quota', 30.0, '%', 1.0), ('disk reads', 100.0, '1/s', 0.0)],
            self.shown(10, inventory(server('a', specs=specs))))

    def test_each_limit_shows_how_often_it_was_reached(self):
        specs = {'quota:disk_read_iops_sec': '100', 'quota:disk_write_iops_sec': '100'}
        known = inventory(server('a', specs=specs))
        self.source.vm('a', reads=99.5, writes=99.5, guest=0.05, host=0.01, latency=0.0045)
        self.assertEqual([('disk reads', 100.0, '1/s', 1.0), ('disk writes', 100.0, '1/s', 1.0)],
                         self.shown(10, known))
        # Whichever is used most at last.
        self.source.vm('a', reads=1.0, writes=5.0, guest=0.05, host=0.01, latency=0.002)
        reads, writes = self.shown(1, known)
        self.assertEqual(reads[3], writes[3])
        self.assertTrue(0.5 < reads[3] < 1.0)

    def test_how_often_the_limit_of_one_of_several_disks_was_reached_is_unknown(self):
        known = inventory(server('a', volumes=('v',)), volume_limits={'v': {'read_iops_sec': 9.0}})
        self.source.vm('a', reads=8.9, guest=0.05, latency=0.01)
        self.assertEqual([('disk reads', None, '1/s', None)], self.shown(5, known))

    def shown(self, polls, known):
        self.source.run(polls)
        found = self.collector.collect(known, self.source.now)
        return [(one.name, one.value, one.unit,
                 None if one.reached is None else round(one.reached, 6))
                for one in own_limits.stated(found.limits, 0, found.profiles.reached[0])]


class Cloud:
    """A drawn cloud: quiet VMs on some hosts, and others at the limit of a quota or of a disk.

    :param hurt: instead of limits, VMs that take as much of cores and disks as they can, without
        limits, so that the others wait just as long
    :param crowded: two or three VMs at the limit of a quota on each of three hosts, whose cores
        suffice for all of them, and others on the fourth host alone
    """

    def __init__(self, seed, hurt=False, crowded=False):
        rng = np.random.default_rng(seed)
        self.source = counting.Source(POLLING)
        self.servers = []
        if crowded:
            for host in range(3):
                count = rng.integers(2, 4)
                for number, share in enumerate(rng.uniform(0.2, 0.95 / count, count)):
                    self.quota(f'quota-{host}-{number}', host, share)
        for host in [3] if crowded else range(4):
            for number in range(rng.integers(1, 3)):
                self.add(f'quiet-{host}-{number}', host, {}, reads=rng.uniform(1, 5),
                         guest=rng.uniform(0.005, 0.02), host=0.002, delay=0.0005, throttled=0.0)
        # Not two of them on one host: by what they do these would disturb each other.
        for host in [] if crowded else rng.permutation(4)[:3].tolist():
            number, share = host, rng.uniform(0.05, 0.1)
            if hurt:
                self.add(f'hammer-{number}', host, {}, reads=400.0, guest=0.45, host=0.2,
                         delay=0.5, throttled=0.0)
            elif rng.random() < 0.5:
                self.quota(f'quota-{number}', host, share)
            else:
                self.add(f'disk-{number}', host, {
                    'quota:disk_read_iops_sec': f'{100 * share:.0f}'}, reads=99 * share,
                    guest=0.02, host=0.005, latency=0.9 / (99 * share), throttled=0.0)

    def quota(self, uuid, place, share):
        self.add(uuid, place, {'quota:cpu_quota': f'{1e5 * share:.0f}'}, guest=share,
                 delay=0.99 - share, throttled=0.985 - share)

    def add(self, uuid, place, specs, **rates):
        self.source.vm(uuid, **rates)
        self.servers.append(server(uuid, f'h{place}', {'tracon:max_slowdown': '1.5', **specs}))

    def plan(self, blind=False, free=False):
        """Audit it.

        :param blind: as if neither quotas were counted nor limits known
        :param free: as if VMs at their limits suffered what others do
        """
        known = inventory(*self.servers)
        if blind:
            known = inventory(*(server(one.uuid, one.host, {'tracon:max_slowdown': '1.5'})
                                for one in self.servers))
            self.source.missing = 'tracon.cpu.throttled'
        self.source.run(20)
        learnt = profile_tracker.ProfileTracker(calibration.packaged(), 1800.0)
        found = collector.Collector(self.source, learnt, POLLING, 1800.0).collect(
            known, self.source.now)
        cluster = state.build(known, found.demand, state.Defaults(synthetic.HOST_TYPE), 1,
                              self.source.now, lambda kind, text: None)
        if free:
            cluster = dataclasses.replace(cluster, own_wait=np.zeros(len(cluster.uuids)))
        return planner.plan_moves(assessment.Assessor(cluster),
                                  parameters=plan.Parameters(noise=0.1), now=self.source.now)


class AuditTestCase(unittest.TestCase):
    """Audits of 100 clouds in which nothing but own limits makes VMs wait."""

    CLOUDS = 100

    def moves(self, count, **given):
        drawn = {name: given.pop(name) for name in ('hurt', 'crowded') if name in given}
        return [len(Cloud(seed, **drawn).plan(**given).moves) for seed in range(count)]

    def test_own_limits_move_no_vm(self):
        self.assertEqual([0] * self.CLOUDS, self.moves(self.CLOUDS))

    def test_nor_do_limits_of_several_on_one_host(self):
        self.assertEqual([0] * self.CLOUDS, self.moves(self.CLOUDS, crowded=True))

    def test_who_would_not_wait_anyway_is_moved(self):
        self.assertGreater(np.count_nonzero(self.moves(20, crowded=True, free=True)), 10)

    def test_real_neighbours_do(self):
        self.assertGreater(np.count_nonzero(self.moves(20, hurt=True)), 17)

    def test_without_knowing_of_limits_vms_would_be_moved_for_nothing(self):
        self.assertGreater(np.count_nonzero(self.moves(20, blind=True)), 10)
