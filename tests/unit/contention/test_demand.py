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

"""Demand without others: closed and open loops whose truth is known (synthetic)."""

import unittest

import hypothesis
from hypothesis.extra import numpy as arrays
from hypothesis import strategies
import numpy as np

from tests.unit.contention import synthetic
from tests.unit.tracon_lab.contention import test_calibration
from tracon_lab.contention import signals
from tracon_watcher.contention import demand_estimator

WORK = synthetic.Work
BUSY = {'CPU': WORK(), 'storage': WORK(cpu=0.0005, requests=2),
        'both': WORK(cpu=0.01, requests=2)}
DISTURBED = ((0.0, 1.0), (1.0, 1.0), (0.0, 4.0), (0.5, 2.0), (3.0, 6.0))


def estimate(usage, baseline, vcpus=1.0):
    return demand_estimator.uncontended(usage, baseline, synthetic.PLAIN, vcpus)


class TestClosedLoops(unittest.TestCase):

    def test_what_is_lost_by_waiting_is_given_back(self):
        for name, work in BUSY.items():
            for wait, slower in DISTURBED:
                with self.subTest(name, wait=wait, slower=slower):
                    found = estimate(work.usage(wait, slower), work.baseline())
                    np.testing.assert_allclose(found.demand[0], work.demand, rtol=1e-6)
                    np.testing.assert_allclose(
                        found.slowdown, work.takes(wait, slower) / work.takes(), rtol=1e-6)

    def test_the_signal_is_that_of_time_against_the_same_alone(self):
        for wait, slower in DISTURBED:
            work = BUSY['both']
            alone, now = work.usage(), work.usage(wait, slower)
            counters = [test_calibration.counters(
                usage.running, delay=usage.delay, reads=usage.reads,
                read_latency=usage.read_latency) for usage in (now, alone)]
            np.testing.assert_allclose(estimate(now, work.baseline()).stretch,
                                       signals.time_stretch(*counters), rtol=1e-6)

    def test_chance_blurs_it_little(self):
        rng = np.random.default_rng(1)
        for name, work in BUSY.items():
            with self.subTest(name):
                found = estimate(synthetic.queue(work, rng, 1.0, 3.0), work.baseline())
                np.testing.assert_allclose(found.demand[0], work.demand, rtol=0.1)

    def test_requests_that_overlap_count_no_more_than_the_time_there_is(self):
        # Eight requests at a time, 1 ms each alone and 4 ms now.
        usage = synthetic.stack([WORK(cpu=1e-5, requests=1).usage(rate=2000)])
        usage.read_time[:] = 8.0
        found = estimate(usage, synthetic.known(0.001))
        # Four times less waiting for the time that is not running.
        np.testing.assert_allclose(found.stretch, 1 / (0.02 + 0.98 / 4), rtol=1e-6)
        np.testing.assert_allclose(found.demand[0, 0], 2000 / (0.02 + 0.98 / 4), rtol=1e-6)

    def test_a_loop_that_thinks_is_not_told_from_an_open_one(self):
        work = WORK(cpu=0.01, requests=2, think=0.02)
        found = estimate(work.usage(1.0, 3.0), work.baseline())
        self.assertTrue((found.demand[0] >= work.usage(1.0, 3.0).characteristics[0]).all())
        self.assertLess(found.demand[0, 2], 0.9 * work.demand[2])
        # That it is hurt shows all the same.
        np.testing.assert_allclose(found.slowdown, work.takes(1.0, 3.0) / work.takes(), rtol=1e-6)


class TestOpenLoops(unittest.TestCase):

    def test_with_idle_time_left_they_lose_nothing(self):
        work = WORK(cpu=0.002, requests=2, latency=0.002, period=0.04)
        for wait, slower in DISTURBED[:4]:
            with self.subTest(wait=wait, slower=slower):
                found = estimate(work.usage(wait, slower), work.baseline())
                np.testing.assert_allclose(found.demand[0], work.demand, rtol=0.05)
                np.testing.assert_allclose(
                    found.slowdown, work.takes(wait, slower) / work.takes(), rtol=1e-6)

    def test_arrivals_by_chance(self):
        work = WORK(cpu=0.002, requests=2, latency=0.002, period=0.04)
        found = estimate(synthetic.queue(work, np.random.default_rng(2), 1.0, 3.0),
                         work.baseline())
        np.testing.assert_allclose(found.demand[0], work.demand, rtol=0.15)

    def test_without_idle_time_they_are_taken_for_what_the_time_would_hold(self):
        work = WORK(cpu=0.004, requests=2, latency=0.002, period=0.012)     # 2/3 busy alone
        found = estimate(work.usage(2.0, 3.0), work.baseline())
        self.assertTrue((found.demand[0] >= work.demand).all())
        np.testing.assert_allclose(found.demand[0], work.demand * 1.5, rtol=1e-6)


class TestEdges(unittest.TestCase):

    def test_an_idle_vm_demands_nothing(self):
        nothing = demand_estimator.of_columns(np.zeros((1, 7)))
        found = estimate(nothing, synthetic.known(0.01))
        np.testing.assert_array_equal(found.demand, np.zeros((1, 4)))
        # Nor can it be slowed down.
        self.assertTrue(np.isnan(found.slowdown).all())

    def test_without_a_count_of_waiting_demand_is_what_is_seen_and_doubtful(self):
        for lacking in ('delay', 'read_time'):
            usage = BUSY['both'].usage(1.0, 3.0)
            getattr(usage, lacking)[:] = np.nan
            found = estimate(usage, BUSY['both'].baseline())
            np.testing.assert_array_equal(found.demand, usage.characteristics)
            self.assertTrue((found.deviation == 1.0).all())
            self.assertTrue(np.isnan(found.slowdown).all())

    def test_time_of_requests_there_were_none_of_is_not_missed(self):
        usage = BUSY['CPU'].usage(1.0)
        usage.read_time[:] = usage.write_time[:] = np.nan
        np.testing.assert_allclose(estimate(usage, synthetic.known(np.nan)).slowdown, [2.0])

    def test_an_unknown_latency_alone_is_that_of_now(self):
        found = estimate(BUSY['storage'].usage(0.0, 5.0), synthetic.known(np.nan))
        np.testing.assert_allclose(found.stretch, [1.0])

    def test_each_virtual_cpu_has_its_time(self):
        usage = synthetic.stack([WORK().usage(1.0)])
        for values in (usage.running, usage.delay):
            values *= 4
        found = estimate(usage, synthetic.known(0.005), 4.0)
        np.testing.assert_allclose(found.demand[0, 2], 4.0)
        # One busy one of four hides behind the idle ones.
        hidden = estimate(WORK().usage(1.0), synthetic.known(0.005), 4.0)
        self.assertLess(hidden.demand[0, 2], 0.55)
        np.testing.assert_allclose(hidden.slowdown, [2.0])

    def test_waiting_behind_its_own_threads_is_no_neighbours_fault(self):
        learnt = demand_estimator.dataclasses.replace(synthetic.PLAIN,
                                                      self_delay=np.array([0.1, 0.5]))
        usage = demand_estimator.of_columns(np.array([[0.5, 0.2, 0.3, 0.0, 0.0, 0.0, 0.0]]))
        np.testing.assert_allclose(
            demand_estimator.uncontended(usage, synthetic.known(1.0), learnt).stretch, [1.0])

    def test_host_cpu_of_a_vm_that_does_nothing_does_not_grow(self):
        learnt = demand_estimator.dataclasses.replace(synthetic.PLAIN, standing_host_cpu=0.02)
        usage = BUSY['storage'].usage(0.0, 4.0)
        usage.host[:] = 0.05
        found = demand_estimator.uncontended(usage, BUSY['storage'].baseline(), learnt)
        np.testing.assert_allclose(found.demand[0, 3],
                                   0.02 + 0.03 * found.demand[0, 0] / usage.reads[0])

    def test_doubt_about_the_baseline_is_doubt_about_the_result(self):
        usage, sure = BUSY['storage'].usage(0.0, 2.0), BUSY['storage'].baseline()
        unsure = demand_estimator.dataclasses.replace(sure, read_deviation=np.array([0.5]))
        first, second = estimate(usage, sure), estimate(usage, unsure)
        self.assertGreater(second.slowdown_deviation[0], first.slowdown_deviation[0] + 0.3)
        self.assertTrue((second.deviation > first.deviation).all())

    def test_nanoseconds(self):
        rates = np.array([[5e8, 1e8, 1e7, 100.0, 0.0, 2e8, 0.0]])
        usage = demand_estimator.of_columns(rates, 1e-9)
        np.testing.assert_allclose(usage.columns, [[0.5, 0.1, 0.01, 100, 0, 0.2, 0, 0, 0]])
        np.testing.assert_allclose(usage.read_latency, [0.002])
        np.testing.assert_array_equal(usage.write_latency, [np.nan])


@strategies.composite
def vms(draw):
    """Usage, baseline and virtual CPUs of some VMs, sensible or not."""
    count = draw(strategies.integers(1, 6))

    def column(low, high):
        return draw(arrays.arrays(np.float64, count, elements=strategies.floats(low, high)))
    usage = demand_estimator.Usage(*(column(0, 4) for _ in range(3)), column(0, 1e5),
                                   column(0, 1e5),
                                   column(0, 50), column(0, 50), column(0, 4), column(0, 100))
    baseline = demand_estimator.Baseline(column(0, 1), column(0, 1), column(0, 1), column(0, 1),
                                         column(0, 1))
    return usage, baseline, draw(strategies.sampled_from([1.0, 2.0, 8.0]))


def settled(count):
    return hypothesis.settings(max_examples=count, derandomize=True)


class TestInvariants(unittest.TestCase):

    @settled(60)
    @hypothesis.given(vms())
    def test_never_less_than_what_is_seen_and_never_more_than_there_is(self, drawn):
        usage, baseline, vcpus = drawn
        found = estimate(usage, baseline, vcpus)
        self.assertTrue((found.demand >= usage.characteristics * (1 - 1e-12)).all())
        self.assertTrue((found.most >= found.demand * (1 - 1e-12)).all())
        self.assertTrue(np.isfinite(found.most).all())
        budget = np.maximum(vcpus, usage.running)
        self.assertTrue((found.most[:, 2] <= budget * (1 + 1e-9)).all())
        self.assertFalse((found.slowdown < 1).any())
        self.assertTrue((found.deviation > 0).all() and np.isfinite(found.deviation).all())
        self.assertTrue((found.lost_share >= 0).all() and (found.lost_share <= 1 + 1e-12).all())

    def test_what_hardly_runs_and_always_waits_demands_no_more_than_there_is(self):
        nothing = np.zeros(3)
        # The share of the time that is not lost share is lost in rounding.
        usage = demand_estimator.Usage(np.array([1e-8, 1e-12, 0.0]), np.full(3, 2.0),
                                       *[nothing] * 7)
        found = estimate(usage, demand_estimator.Baseline(*[nothing] * 5), 2.0)
        self.assertTrue((found.most[:, 2] <= 2.0 * (1 + 1e-9)).all(), found.most[:, 2])
        self.assertGreater(found.most[0, 2], 1.9)

    @settled(25)
    @hypothesis.given(vms(), strategies.randoms(use_true_random=False))
    def test_each_vm_for_itself(self, drawn, random):
        usage, baseline, vcpus = drawn
        order = list(range(len(usage)))
        random.shuffle(order)
        order = np.array(order, dtype=np.intp)
        found = estimate(usage, baseline, vcpus)
        other = estimate(usage.take(order), baseline.take(order), vcpus)
        for name in ('demand', 'slowdown', 'deviation'):
            np.testing.assert_array_equal(getattr(found, name)[order], getattr(other, name))

    @settled(25)
    @hypothesis.given(vms(), strategies.integers(0, 6), strategies.integers(0, 5))
    def test_what_is_unknown_stays_unknown(self, drawn, column, row):
        usage, baseline, vcpus = drawn
        row %= len(usage)
        values = usage.columns
        values[row, column] = np.nan
        found = estimate(demand_estimator.of_columns(values), baseline, vcpus)
        unknown = np.isnan(demand_estimator.of_columns(values).characteristics)
        np.testing.assert_array_equal(np.isnan(found.demand), unknown)

    @settled(40)
    @hypothesis.given(vms(), strategies.floats(0, 2))
    def test_who_waits_longer_demands_no_less(self, drawn, more):
        usage, baseline, vcpus = drawn
        longer = demand_estimator.dataclasses.replace(usage, delay=usage.delay + more)
        first, second = (estimate(one, baseline, vcpus) for one in (usage, longer))
        # Waiting for a core takes the place of waiting for storage where there is no idle time.
        roomy = usage.running + longer.delay + usage.read_time + usage.write_time < vcpus
        self.assertTrue((second.demand >= first.demand * (1 - 1e-9))[roomy].all())
