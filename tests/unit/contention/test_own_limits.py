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

"""What is the owner's of what VMs wait for; figures of real guests are named so."""

import dataclasses
import unittest

import numpy as np

from tests.unit.contention import synthetic
from tracon_watcher.contention import calibration
from tracon_watcher.contention import demand_estimator
from tracon_watcher.contention import own_limits
from tracon_watcher.contention import profile_tracker

NOW, MINUTE = 1.8e9, 60.0
NAN = float('nan')


def usage(running=0.3, delay=0.0, throttled=NAN, reads=0.0, read_time=0.0, writes=0.0,
          write_time=0.0, host=0.01):
    return demand_estimator.of_columns(np.array(
        [[running, delay, host, reads, writes, read_time, write_time, throttled, 0.0]]))


def limits(light=False, smallest=None, unknown=False, **stated):
    """The limits of one VM; ``smallest`` where not all disks have the same."""
    total = np.full((1, own_limits.COUNT), np.inf)
    for name, value in stated.items():
        total[0, getattr(own_limits, name.upper())] = value
    least = total.copy()
    for name, value in (smallest or {}).items():
        least[0, getattr(own_limits, name.upper())] = value
    return own_limits.OwnLimits(total, least, np.array([light]), np.array([unknown]))


def attribute(seen, stated, read=NAN, written=NAN, vcpus=1.0):
    return own_limits.attribute(seen, np.array([[read, written]]), stated, np.array([vcpus]))


class TestQuota(unittest.TestCase):

    def test_what_is_counted_is_subtracted(self):
        found = attribute(usage(0.3, 0.7, 0.69), limits(cores=0.3))
        np.testing.assert_allclose([0.69], found.usage.throttled)
        self.assertTrue(found.sure.all())
        np.testing.assert_array_equal([[True, False]], found.reached)

    def test_also_where_nothing_is_stated(self):
        found = attribute(usage(0.3, 0.7, 0.69), limits())
        np.testing.assert_allclose([0.69], found.usage.throttled)
        np.testing.assert_array_equal([[True, False]], found.reached)

    def test_never_more_than_the_delay(self):
        found = attribute(usage(0.3, 0.2, 0.5), limits(cores=0.3))
        np.testing.assert_allclose([0.2], found.usage.throttled)

    def test_without_the_counter_a_quota_that_is_used_up_accounts_for_all(self):
        found = attribute(usage(0.295, 0.7), limits(cores=0.3))
        np.testing.assert_allclose([0.7], found.usage.throttled)
        self.assertTrue(found.reached[0, own_limits.CPU])

    def test_without_it_one_that_is_used_in_part_may_account_for_a_part(self):
        found = attribute(usage(0.15, 0.7), limits(cores=0.3))
        self.assertFalse(found.sure.any())
        np.testing.assert_allclose([0.0], found.usage.throttled)
        # Half of the time the quota may be used up, and then 0.7 of the time is waited.
        np.testing.assert_allclose([0.35], found.most.throttled)

    def test_no_limit_accounts_for_nothing(self):
        for throttled in (0.0, NAN):
            with self.subTest(throttled=throttled):
                found = attribute(usage(0.5, 0.4, throttled, 100, 0.1), limits())
                np.testing.assert_array_equal([[0.0, 0.0]], found.usage.columns[:, -2:])
                self.assertTrue(found.sure.all())
                self.assertFalse(found.reached.any())


class TestDisk(unittest.TestCase):

    def test_at_the_limit_all_waiting_is_the_owners(self):
        found = attribute(usage(0.05, reads=49.9, read_time=0.94), limits(reads=50))
        np.testing.assert_allclose([0.94], found.usage.limited)
        np.testing.assert_array_equal([[False, True]], found.reached)
        self.assertEqual([own_limits.READS], np.flatnonzero(found.each[0]).tolist())

    def test_each_limit_that_is_reached_is_told(self):
        seen = usage(0.05, reads=99, read_time=0.5, writes=99, write_time=0.4)
        found = attribute(seen, limits(reads=100, writes=100, requests=1000, write_bytes=5e6),
                          4e5, 4.9e6)
        self.assertEqual([own_limits.READS, own_limits.WRITES, own_limits.WRITE_BYTES],
                         np.flatnonzero(found.each[0]).tolist())
        np.testing.assert_array_equal([[False, True]], found.reached)

    def test_a_limit_of_reads_says_nothing_of_writes(self):
        found = attribute(usage(0.05, reads=49.9, read_time=0.3, writes=100, write_time=0.5),
                          limits(reads=50))
        np.testing.assert_allclose([0.3], found.usage.limited)

    def test_of_both_together(self):
        found = attribute(usage(0.2, reads=100, read_time=0.5, writes=50, write_time=0.3),
                          limits(requests=150))
        np.testing.assert_allclose([0.8], found.usage.limited)

    def test_of_bytes(self):
        seen = usage(0.09, reads=76, read_time=0.91)
        found = attribute(seen, limits(read_bytes=5e6), 5.0e6, 0.0)
        np.testing.assert_allclose([0.91], found.usage.limited)
        np.testing.assert_allclose([76], found.bounds.reads)
        # Bytes that are not counted may have reached their limit, or may not.
        self.assertFalse(attribute(seen, limits(read_bytes=5e6)).sure.any())

    def test_a_limit_that_is_unknown_may_account_for_all_and_surely_for_nothing(self):
        for stated in ({}, {'reads': 400}):
            found = attribute(usage(0.05, reads=1, read_time=0.8), limits(unknown=True, **stated))
            self.assertFalse(found.sure.any())
            np.testing.assert_allclose([0.0], found.usage.limited)
            np.testing.assert_allclose([0.8], found.most.limited)
        self.assertTrue(attribute(usage(0.3, 0.7), limits(unknown=True)).sure.all())

    def test_below_it_may_be_as_much_as_the_share_of_the_limit(self):
        found = attribute(usage(0.05, reads=100, read_time=0.8), limits(reads=400))
        self.assertFalse(found.sure.any())
        np.testing.assert_allclose([0.0], found.usage.limited)
        np.testing.assert_allclose([0.25], found.most.limited)
        self.assertFalse(found.reached.any())

    def test_of_several_disks_one_may_have_all_requests(self):
        found = attribute(usage(0.05, reads=200, read_time=0.8),
                          limits(reads=400, smallest={'reads': 200}))
        self.assertFalse(found.reached.any())
        np.testing.assert_allclose([0.8], found.most.limited)
        np.testing.assert_allclose([0.0], found.usage.limited)

    def test_beside_a_disk_without_a_limit_nothing_is_sure(self):
        found = attribute(usage(0.05, reads=200, read_time=0.8),
                          limits(smallest={'reads': 200}))
        self.assertFalse(found.reached.any() or found.sure.any())
        self.assertEqual([np.inf], found.bounds.reads.tolist())


class TestDemand(unittest.TestCase):
    """What a VM at its own limit demands, and how much neighbours disturb it."""

    def estimate(self, seen, stated, **given):
        told = attribute(seen, stated, **given)
        baseline = synthetic.known(NAN)
        return demand_estimator.uncontended(told.usage, baseline, synthetic.PLAIN, 1.0,
                                            told.bounds)

    def test_a_loop_under_a_quota_is_neither_slow_nor_large(self):
        # A guest on one core, quota 30 %: 1.51 s of running, 3.565 s of delay, 3.506 s throttled.
        seen = usage(0.302, 0.698, 0.686)
        found = self.estimate(seen, limits(cores=0.3))
        np.testing.assert_allclose(found.slowdown, [1.0], atol=0.02)
        np.testing.assert_allclose(found.demand[0, 2], 0.302, rtol=0.02)
        np.testing.assert_allclose(found.most[0, 2], 0.302, rtol=0.02)

    def test_its_demand_is_bounded_also_where_the_quota_is_not_stated(self):
        found = self.estimate(usage(0.302, 0.698, 0.686), limits())
        self.assertLess(found.most[0, 2], 0.32)

    def test_a_neighbour_beside_a_quota_that_is_used_up_takes_nothing(self):
        # The same beside a loop on the core: 1.52 s of running, 3.499 of delay, 3.02 throttled.
        found = self.estimate(usage(0.303, 0.697, 0.603), limits(cores=0.3))
        self.assertLess(found.slowdown[0], 1.02)

    def test_a_neighbour_is_seen_where_the_quota_is_not_used_up(self):
        found = self.estimate(usage(0.5, 0.5, 0.0), limits(cores=0.9))
        # Alone it would have had 0.9 of the core, not all of it.
        np.testing.assert_allclose(found.slowdown, [1.8], rtol=0.02)
        np.testing.assert_allclose(found.most[0, 2], 0.9, rtol=0.02)

    def test_a_quota_and_a_neighbour_each_have_their_part(self):
        # Half of the time the quota of 0.8 holds it back, half of the time it gets a third.
        found = self.estimate(usage(0.565, 0.435, 0.1), limits(cores=0.8))
        np.testing.assert_allclose(found.slowdown, [0.8 / 0.565], rtol=0.02)

    def test_at_the_limit_of_its_disk_it_demands_that(self):
        # A guest that reads, limited to 50 a second: 18.81 ms a read, undisturbed 0.01.
        told = attribute(usage(0.057, 0.019, 0.0, 49.9, 0.939), limits(reads=50))
        found = demand_estimator.uncontended(told.usage, synthetic.known(1e-5), synthetic.PLAIN,
                                             1.0,
                                             told.bounds)
        np.testing.assert_allclose(found.demand[0, 0], 49.9, rtol=0.01)
        self.assertLess(found.most[0, 0], 50.01)


class Watched:
    """One VM, polled once a minute."""

    def __init__(self, stated, learnt=synthetic.PLAIN, vcpus=1.0):
        self.demands = profile_tracker.ProfileTracker(learnt)
        self.stated = stated
        self.vcpus = np.array([vcpus])
        self.now = NOW

    def polls(self, times, seen, size=None, stated=None):
        for _ in range(times):
            self.demands.update(
                ['vm'], np.zeros(1, dtype=np.intp), np.array([self.now]),
                np.array([self.now + MINUTE]), seen, self.vcpus, None,
                self.stated if stated is None else stated, size)
            self.now += MINUTE
        return self.demands.profiles(self.now)


class TestProfiles(unittest.TestCase):

    def test_a_quota_that_is_reached(self):
        watched = Watched(limits(cores=0.3))
        found = watched.polls(20, usage(0.302, 0.698, 0.686))
        np.testing.assert_allclose(found.reached, [[1.0] + 6 * [0.0]], atol=1e-6)
        self.assertEqual([True], found.limited.tolist())
        np.testing.assert_allclose(found.slowdown, [1.0], atol=0.02)
        np.testing.assert_allclose(found.mean[0, 2], 0.302, rtol=0.02)
        found = watched.polls(20, usage(0.1, 0.0, 0.0))
        self.assertTrue(0.2 < found.reached[0, 0] < 0.6)
        self.assertEqual([False], found.limited.tolist())

    def test_the_share_is_that_of_the_intervals(self):
        watched = Watched(limits(cores=0.3))
        for _ in range(40):
            watched.polls(4, usage(0.302, 0.698, 0.686))
            found = watched.polls(1, usage(0.1, 0.0, 0.0))
        np.testing.assert_allclose(found.reached[0, 0], 0.8, atol=0.02)

    def test_a_window_of_own_limits_is_no_baseline(self):
        watched = Watched(limits(reads=50), calibration.packaged())
        limited = usage(0.06, 0.01, 0.0, 49.9, 0.93)
        found = watched.polls(30, limited)
        self.assertTrue(np.isnan(found.baseline[0, 0]))
        found = watched.polls(30, usage(0.06, 0.01, 0.0, 49.9, 0.05), stated=limits())
        np.testing.assert_allclose(found.baseline[0, 0], 0.001, rtol=0.05)

    def test_whether_owner_or_neighbours_hold_it_back_may_be_unknown(self):
        watched = Watched(limits(reads=400))
        found = watched.polls(30, usage(0.1, 0.0, 0.0, 200, 0.02))
        np.testing.assert_allclose(found.slowdown, [1.0], atol=0.05)
        self.assertEqual([False], found.limited.tolist())
        # Bursts at the limit, or storage that has become slow: half of the time it may be either.
        found = watched.polls(1, usage(0.1, 0.0, 0.0, 200, 0.4))
        self.assertTrue(np.isnan(found.slowdown[0]))
        self.assertEqual([True], found.limited.tolist())

    def test_what_no_limit_explains_is_the_neighbours(self):
        watched = Watched(limits(reads=4000))
        watched.polls(30, usage(0.1, 0.0, 0.0, 200, 0.1))
        found = watched.polls(2, usage(0.1, 0.0, 0.0, 200, 0.8))
        self.assertGreater(found.slowdown[0], 2.0)

    def test_a_vm_that_waits_at_its_disk_and_for_a_core_is_unknown(self):
        # A guest limited to 150 requests a second beside a loop: it does as much as without.
        watched = Watched(limits(requests=150))
        watched.polls(20, usage(0.23, 0.03, 0.0, 100, 0.46, 50, 0.31))
        found = watched.polls(2, usage(0.204, 0.201, 0.0, 100.1, 0.38, 50, 0.2))
        self.assertTrue(np.isnan(found.slowdown[0]))
        np.testing.assert_allclose(found.mean[0, 0], 100, rtol=0.1)

    def test_a_vm_of_less_weight_is_unknown_as_long_as_it_waits(self):
        watched = Watched(limits(light=True))
        found = watched.polls(20, usage(0.3, 0.01, 0.0))
        np.testing.assert_allclose(found.slowdown, [1.0], atol=0.05)
        found = watched.polls(1, usage(0.2, 0.6, 0.0))
        self.assertTrue(np.isnan(found.slowdown[0]))
        self.assertEqual([True], found.limited.tolist())

    def test_without_limits_all_is_as_before(self):
        seen = synthetic.Work(cpu=0.01, requests=2).usage(1.0, 4.0)
        plain, named = Watched(None), Watched(limits(cores=8.0, reads=1e9))
        for watched in (plain, named):
            watched.polls(10, synthetic.Work(cpu=0.01, requests=2).usage())
        first, second = (watched.polls(5, seen) for watched in (plain, named))
        for field in dataclasses.fields(first):
            if field.name != 'vms':
                np.testing.assert_allclose(getattr(first, field.name),
                                           getattr(second, field.name), rtol=1e-3)
