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

"""Profiles from one poll to the next (synthetic)."""

import dataclasses
import unittest

import numpy as np

from tests.unit.contention import synthetic
from tracon_watcher.contention import demand_estimator
from tracon_watcher.contention import profile_tracker

NOW, MINUTE = 1.8e9, 60.0
WORK = synthetic.Work
QUIET = WORK(cpu=0.001, requests=1, latency=0.001, period=0.05)            # 20 reads a second
HAMMER = WORK(cpu=0.0002, requests=1, latency=0.001)                       # 800 reads a second
CLOSED = WORK(cpu=0.01, requests=2)


class Watched:
    """Some VMs, polled once a minute."""

    def __init__(self, **given):
        self.state = profile_tracker.ProfileTracker(synthetic.PLAIN, **given)
        self.now = NOW

    def poll(self, *usages, names=None, seconds=MINUTE, pools=None):
        names = names or [f'vm{index}' for index in range(len(usages))]
        count = len(usages)
        learnt = self.state.update(
            names, np.arange(count), np.full(count, self.now),
            np.full(count, self.now + seconds), synthetic.stack(usages), pools=pools)
        self.now += seconds
        return learnt

    def polls(self, times, *usages, **given):
        for _ in range(times):
            self.poll(*usages, **given)

    def profiles(self):
        return self.state.profiles(self.now)


class TestSteady(unittest.TestCase):

    def test_it_is_what_is_demanded(self):
        watched = Watched()
        watched.polls(30, QUIET.usage(), CLOSED.usage())
        found = watched.profiles()
        self.assertEqual(('vm0', 'vm1'), found.vms)
        np.testing.assert_allclose(found.mean, [QUIET.demand, CLOSED.demand], rtol=0.02)
        np.testing.assert_allclose(found.observed, [QUIET.demand, CLOSED.demand], rtol=1e-5)
        np.testing.assert_allclose(found.slowdown, 1.0, rtol=0.05)
        np.testing.assert_allclose(found.baseline[:, 0], [0.001, 0.005], rtol=1e-5)

    def test_a_new_vm_is_known_at_once_and_little(self):
        watched = Watched()
        watched.poll(CLOSED.usage())
        first = watched.profiles()
        np.testing.assert_allclose(first.mean[0], CLOSED.demand, rtol=0.05)
        self.assertTrue((first.deviation[0] >= 0.99 * CLOSED.demand).all())
        watched.polls(30, CLOSED.usage())
        self.assertTrue((watched.profiles().deviation[0] < 0.2 * first.deviation[0]).all())

    def test_when_the_last_interval_was(self):
        watched = Watched()
        watched.polls(3, CLOSED.usage(), QUIET.usage())
        watched.poll(CLOSED.usage(), seconds=5 * MINUTE)
        found = watched.profiles()
        np.testing.assert_array_equal([NOW + 8 * MINUTE, NOW + 3 * MINUTE], found.at)
        np.testing.assert_array_equal([5 * MINUTE, MINUTE], found.seconds)

    def test_jitter_is_averaged(self):
        rng = np.random.default_rng(4)
        watched = Watched()
        for _ in range(60):
            rate = CLOSED.rate() * rng.uniform(0.7, 1.0)
            watched.poll(CLOSED.usage(rate=rate))
        found = watched.profiles()
        np.testing.assert_allclose(found.mean[0], 0.85 * CLOSED.demand, rtol=0.1)
        self.assertLess(found.deviation[0, 2], 0.2 * CLOSED.demand[2])


class TestStretches(unittest.TestCase):

    def seen(self, quiet, then, polls=30):
        watched = Watched()
        watched.polls(polls, quiet)
        watched.poll(then)
        return watched.profiles().stretches[0]

    def test_nothing_stretches_undisturbed(self):
        np.testing.assert_allclose(self.seen(CLOSED.usage(), CLOSED.usage()), 1.0, atol=0.02)

    def test_requests_by_how_long_they_take(self):
        usage = CLOSED.usage()
        slower = dataclasses.replace(usage, read_time=2.5 * usage.read_time)
        cores, disk = self.seen(usage, slower)
        self.assertAlmostEqual(2.5, disk, delta=0.05)
        self.assertAlmostEqual(1.0, cores, delta=0.02)
        # What its own limit makes requests wait is no stretch.
        limited = dataclasses.replace(slower, limited=1.5 * usage.read_time)
        stretch = profile_tracker._stretches(self.state(limited))
        self.assertAlmostEqual(1.0, stretch[0, 1], places=5)

    def test_cpu_time_by_how_long_it_waits_for_a_core(self):
        usage = CLOSED.usage()
        for delay in (0.0, 0.5, 2.0):
            late = dataclasses.replace(usage, delay=delay * usage.running)
            self.assertAlmostEqual(1 + delay, profile_tracker._stretches(self.state(late))[0, 0],
                                   places=4)
        held = dataclasses.replace(usage, delay=usage.running, throttled=usage.running)
        self.assertAlmostEqual(1.0, profile_tracker._stretches(self.state(held))[0, 0], places=4)

    def test_too_little_says_nothing(self):
        usage = CLOSED.usage()
        idle = dataclasses.replace(usage, running=0.001 * usage.running,
                                   reads=0.001 * usage.reads, read_time=0.001 * usage.read_time)
        self.assertTrue(np.isnan(profile_tracker._stretches(self.state(idle))).all())

    @staticmethod
    def state(usage):
        """Return the state of a VM whose requests take 5 ms undisturbed, and that never waits."""
        found = np.zeros(1, dtype=profile_tracker._STATE)
        found['usage'], found['vcpus'], found['baseline'] = usage.columns, 1.0, (
            0.005, 0.005, 1.0)
        return found


class TestChange(unittest.TestCase):

    def test_a_hammer_is_seen_within_two_polls(self):
        for before in (1, 2, 7, 60):
            with self.subTest(polls_before=before):
                watched = Watched()
                watched.polls(before, QUIET.usage())
                watched.polls(2, HAMMER.usage())
                np.testing.assert_allclose(watched.profiles().mean[0, 0], HAMMER.demand[0],
                                           rtol=0.1)

    def test_also_one_that_began_between_polls(self):
        for share in (0.1, 0.5, 0.9):
            with self.subTest(share_of_first=share):
                watched = Watched()
                watched.polls(30, QUIET.usage())
                mixed = demand_estimator.of_columns((1 - share) * QUIET.usage().columns
                                                    + share * HAMMER.usage().columns)
                watched.poll(mixed)
                watched.poll(HAMMER.usage())
                self.assertGreater(watched.profiles().mean[0, 0], 0.7 * HAMMER.demand[0])

    def test_also_one_that_is_throttled_as_it_begins(self):
        watched = Watched()
        watched.polls(30, QUIET.usage())
        watched.polls(2, HAMMER.usage(0.5, 3.0))
        self.assertGreater(watched.profiles().mean[0, 0], 0.7 * HAMMER.demand[0])

    def test_a_single_burst_changes_nothing(self):
        watched = Watched()
        watched.polls(30, QUIET.usage())
        before = watched.profiles()
        watched.poll(HAMMER.usage())
        watched.polls(3, QUIET.usage())
        found = watched.profiles()
        np.testing.assert_allclose(found.mean, before.mean, rtol=0.05)

    def test_who_stops_is_believed_likewise(self):
        watched = Watched()
        watched.polls(30, HAMMER.usage())
        watched.polls(2, QUIET.usage())
        np.testing.assert_allclose(watched.profiles().mean[0], QUIET.demand, rtol=0.1)

    def test_who_ends_altogether_too(self):
        watched = Watched()
        watched.polls(30, HAMMER.usage())
        watched.polls(2, demand_estimator.of_columns(np.zeros((1, 7))))
        np.testing.assert_allclose(watched.profiles().mean[0], 0.0, atol=1e-6)


class TestHurt(unittest.TestCase):

    def test_a_closed_loop_that_is_throttled_keeps_its_profile(self):
        watched = Watched()
        watched.polls(20, CLOSED.usage())
        watched.polls(30, CLOSED.usage(1.0, 4.0))
        found = watched.profiles()
        np.testing.assert_allclose(found.mean[0], CLOSED.demand, rtol=0.05)
        slower = CLOSED.takes(1.0, 4.0) / CLOSED.takes()
        np.testing.assert_allclose(found.slowdown, [slower], rtol=0.1)
        self.assertLess(found.observed[0, 0], CLOSED.demand[0] / 2)

    def test_an_open_loop_without_time_left_is_remembered(self):
        work = WORK(cpu=0.004, requests=2, latency=0.002, period=0.012)
        watched = Watched()
        watched.polls(20, work.usage())
        watched.polls(20, work.usage(2.0, 3.0))
        np.testing.assert_allclose(watched.profiles().mean[0], work.demand, rtol=0.1)

    def test_a_loop_that_thinks_is_remembered_though_it_does_less_now(self):
        work = WORK(cpu=0.01, requests=2, think=0.02)
        watched = Watched()
        watched.polls(20, work.usage())
        watched.polls(20, work.usage(3.0, 4.0))
        np.testing.assert_allclose(watched.profiles().mean[0], work.demand, rtol=0.1)

    def test_one_that_was_never_alone_learns_from_better_moments(self):
        watched = Watched(window=720.0)
        for turn in range(12):
            watched.poll(CLOSED.usage(1.0, (8.0, 3.0, 1.1)[turn % 3]))
        watched.poll(CLOSED.usage(1.0, 8.0))
        found = watched.profiles()
        np.testing.assert_allclose(found.mean[0], CLOSED.demand, rtol=0.15)
        self.assertGreater(found.slowdown[0], 3.0)

    def test_a_new_one_is_compared_with_others_on_its_storage(self):
        watched = Watched()
        others = [CLOSED.usage() for _ in range(6)]
        watched.polls(5, *others, pools=np.zeros(6, dtype=int))
        usages = [*others, CLOSED.usage(0.0, 6.0)]
        watched.poll(*usages, pools=np.zeros(7, dtype=int))
        found = watched.profiles()
        self.assertGreater(found.slowdown[6], 2.5)
        self.assertGreater(found.mean[6, 0], 0.8 * CLOSED.demand[0])
        # Nothing to compare with: it seems undisturbed, and how doubtful that is is said.
        alone = Watched()
        alone.poll(CLOSED.usage(0.0, 6.0))
        lonely = alone.profiles()
        np.testing.assert_allclose(lonely.slowdown, [1.0], rtol=0.05)
        self.assertGreater(lonely.slowdown_deviation[0], 0.5)


class TestBookkeeping(unittest.TestCase):

    def test_old_news_is_no_news(self):
        watched = Watched(expiry=600.0)
        watched.poll(CLOSED.usage())
        self.assertTrue(np.isfinite(watched.state.profiles(watched.now + 600).mean).all())
        found = watched.state.profiles(watched.now + 601)
        for values in (found.mean, found.deviation, found.slowdown, found.stretch):
            self.assertTrue(np.isnan(values).all())
        # It comes back with what is still within the window.
        watched.now += 900
        watched.poll(CLOSED.usage())
        np.testing.assert_allclose(watched.profiles().mean[0], CLOSED.demand, rtol=0.05)

    def test_what_was_learnt_goes_back_with_the_clock(self):
        watched = Watched(expiry=600.0)
        for _minute in range(10):
            watched.poll(CLOSED.usage())
        before = watched.profiles()
        watched.state.put_back(watched.now - MINUTE, 2 * MINUTE)
        np.testing.assert_array_equal(before.at, watched.profiles().at)
        watched.now -= 7200.0
        watched.state.put_back(watched.now - MINUTE, 2 * MINUTE)
        after = watched.profiles()
        np.testing.assert_array_equal([watched.now - MINUTE], after.at)
        np.testing.assert_allclose(before.mean, after.mean, rtol=1e-6)
        self.assertEqual(1, watched.poll(CLOSED.usage()))

    def test_intervals_may_come_twice_late_and_in_any_order(self):
        rng = np.random.default_rng(5)
        usages = [CLOSED.usage(rng.uniform(0, 1), rng.uniform(1, 3)) for _ in range(20)]
        start = NOW + MINUTE * np.arange(20)
        row, vms = np.zeros(20, dtype=int), ['vm']
        first, second = Watched().state, Watched().state
        for index, usage in enumerate(usages):
            first.update(vms, row[:1], start[index:index + 1], start[index:index + 1] + MINUTE,
                         usage)
        order = np.concatenate([rng.permutation(20), rng.permutation(20)])
        count = second.update(vms, np.zeros(40, dtype=int), start[order], start[order] + MINUTE,
                              synthetic.stack(usages).take(order))
        self.assertEqual(20, count)
        self.assertEqual(0, second.update(vms, row, start, start + MINUTE,
                                          synthetic.stack(usages)))
        one, other = (state.profiles(start[-1] + MINUTE) for state in (first, second))
        np.testing.assert_array_equal(one.mean, other.mean)
        np.testing.assert_array_equal(one.slowdown, other.slowdown)

    def test_an_interval_with_an_unknown_teaches_nothing(self):
        watched = Watched()
        usage = CLOSED.usage()
        usage.host[:] = np.nan
        self.assertEqual(0, watched.poll(usage))
        self.assertEqual((), watched.profiles().vms)

    def test_without_a_count_of_delay_there_is_a_profile_but_no_slowdown(self):
        watched = Watched()
        usage = CLOSED.usage(1.0)
        usage.delay[:] = np.nan
        watched.polls(20, usage)
        found = watched.profiles()
        np.testing.assert_allclose(found.mean[0], usage.characteristics[0], rtol=1e-5)
        self.assertTrue((found.deviation[0] >= 0.9 * found.mean[0]).all())
        self.assertTrue(np.isnan(found.slowdown[0]))

    def test_the_order_of_vms_does_not_matter(self):
        rng = np.random.default_rng(6)
        works = [WORK(cpu=rng.uniform(0.001, 0.01), requests=rng.uniform(0, 3),
                      latency=rng.uniform(0.001, 0.005)) for _ in range(30)]
        names = [f'vm{index:02}' for index in range(30)]
        order = rng.permutation(30)
        first, second = Watched(), Watched()
        pools = rng.integers(0, 2, 30)
        for _ in range(8):
            usages = [work.usage(rng.uniform(0, 2), rng.uniform(1, 5)) for work in works]
            first.poll(*usages, names=names, pools=pools)
            second.poll(*[usages[index] for index in order],
                        names=[names[index] for index in order], pools=pools[order])
        one, other = first.profiles(), second.profiles()
        place = [other.vms.index(name) for name in one.vms]
        np.testing.assert_array_equal(one.mean, other.mean[place])
        np.testing.assert_array_equal(one.slowdown, other.slowdown[place])

    def test_the_gone_leave_nothing_behind(self):
        watched = Watched()
        watched.polls(10, HAMMER.usage(), QUIET.usage(), names=['a', 'b'])
        watched.state.forget(['a', 'missing'])
        self.assertEqual(('b',), watched.profiles().vms)
        size = watched.state.nbytes
        # Another takes its place, and inherits neither demand nor baseline.
        watched.poll(QUIET.usage(), QUIET.usage(0.0, 2.0), names=['b', 'c'])
        found = watched.profiles()
        self.assertEqual(size, watched.state.nbytes)
        np.testing.assert_allclose(found.mean[found.vms.index('c')], QUIET.demand, rtol=0.05)
        np.testing.assert_allclose(found.baseline[found.vms.index('c'), 0], 0.002, rtol=1e-5)

    def test_who_moves_keeps_its_demand_and_leaves_its_baseline(self):
        watched = Watched()
        watched.polls(20, CLOSED.usage(1.0, 2.0))
        watched.polls(20, CLOSED.usage())
        before = watched.profiles()
        watched.state.moved(['vm0', 'missing'])
        np.testing.assert_allclose(watched.profiles().mean, before.mean, rtol=1e-5)
        # On slower storage it is not hurt for being there.
        slower = WORK(cpu=0.01, requests=2, latency=0.02)
        watched.poll(slower.usage())
        found = watched.profiles()
        np.testing.assert_allclose(found.slowdown, [1.0], rtol=0.05)
        np.testing.assert_allclose(found.baseline[0, 0], 0.02, rtol=1e-5)

    def test_a_vm_takes_less_than_a_kilobyte_however_often_it_is_polled(self):
        watched = Watched()
        usages = [QUIET.usage() for _ in range(64)]
        watched.poll(*usages)
        size = watched.state.nbytes
        watched.polls(100, *usages, seconds=10.0)
        self.assertEqual(size, watched.state.nbytes)
        self.assertLess(size / 64, 1000)

    def test_nothing_is_nothing(self):
        state = Watched().state
        empty = np.zeros(0)
        self.assertEqual(0, state.update([], np.zeros(0, dtype=int), empty, empty,
                                         demand_estimator.of_columns(np.zeros((0, 7)))))
        state.forget(['missing'])
        state.moved(['missing'])
        self.assertEqual(0, len(state.profiles(NOW).mean))
