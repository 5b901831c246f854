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

"""Rates from cumulative counters, whatever happens to the samples on their way (made up)."""

import unittest

import hypothesis
from hypothesis import strategies as st
import numpy as np

from tracon_watcher.contention import intervals
from tracon_watcher.contention.intervals import IntervalStatus

NAN = np.nan
EPOCH = 1.7e9
BOOT = 3e15
SECOND = 1e9
FIELDS = ('row', 'start', 'end', 'elapsed_seconds', 'error', 'rates', 'outcome')


def between(samples, clock=0, **arguments):
    """Intervals of samples (row, at, counter, …)."""
    table = np.array(samples, dtype=float) if samples else np.empty((0, 4))
    return intervals.between(table[:, 0].astype(np.intp), EPOCH + table[:, 1], table[:, 2:],
                             clock, **arguments)


def polled(seconds, counter, row=0, boot=BOOT, late=0.0):
    """A sample ``seconds`` after the start, whose time is a little ``late``."""
    return (row, seconds + late, boot + seconds * SECOND, counter)


def outcomes(result):
    return [IntervalStatus(value) for value in result.outcome]


class TestIntervals(unittest.TestCase):

    def test_a_rate_is_over_the_hosts_clock_not_over_the_times_of_samples(self):
        result = between([polled(0, 100, late=4), polled(60, 220), polled(120, 520, late=5)])
        np.testing.assert_allclose([2.0, 5.0], result.rates[:, 1], rtol=1e-12)
        np.testing.assert_allclose([60, 60], result.elapsed_seconds)
        np.testing.assert_array_equal([EPOCH + 4, EPOCH + 60], result.start)
        np.testing.assert_array_equal([EPOCH + 60, EPOCH + 125], result.end)
        self.assertEqual([IntervalStatus.CLOCKED] * 2, outcomes(result))
        self.assertEqual((2, 0, 0), (len(result), result.refused, result.garbage))

    def test_resources_are_apart_and_one_sample_is_no_interval(self):
        result = between([polled(0, 5, row=2), polled(60, 65, row=2), polled(60, 1, row=7)])
        np.testing.assert_array_equal([2], result.row)
        np.testing.assert_allclose([1.0], result.rates[:, 1])

    def test_without_samples_there_are_no_intervals(self):
        for clock in (0, None):
            result = between([], clock)
            self.assertEqual(0, len(result))
            self.assertEqual((0, 2), result.rates.shape)

    def test_an_idle_counter_is_zero_not_unknown(self):
        np.testing.assert_array_equal([0.0], between([polled(0, 7), polled(60, 7)]).rates[:, 1])

    def test_a_counter_that_fell_makes_its_vms_interval_unknown_and_no_other(self):
        samples = [polled(0, 900) + (100,), polled(60, 960) + (160,), polled(120, 30) + (220,),
                   polled(180, 90) + (280,)]
        result = between(samples)
        self.assertEqual([IntervalStatus.CLOCKED, IntervalStatus.RESET, IntervalStatus.CLOCKED],
                         outcomes(result))
        np.testing.assert_allclose([[1, 1], [NAN, NAN], [1, 1]], result.rates[:, 1:])

    def test_a_host_that_was_booted_again_has_a_clock_that_fell(self):
        result = between([polled(0, 5), polled(60, 8, boot=-59e9), polled(120, 68, boot=-59e9)])
        self.assertEqual([IntervalStatus.RESET, IntervalStatus.CLOCKED], outcomes(result))

    def test_a_difference_of_counters_may_fall_a_little(self):
        samples = [polled(0, 50), polled(60, 45), polled(120, 105)]
        self.assertEqual(IntervalStatus.RESET, outcomes(between(samples))[0])
        result = between(samples, slack=[0, 5])
        np.testing.assert_allclose([0.0, 1.0], result.rates[:, 1])
        self.assertEqual(IntervalStatus.RESET, outcomes(between(samples, slack=[0, 4.9]))[0])
        # A clock never does.
        fallen = between([polled(0, 5), polled(60, 65, boot=BOOT - 61e9)], slack=1e12)
        self.assertEqual([IntervalStatus.RESET], outcomes(fallen))

    def test_another_hosts_clock_is_not_this_ones(self):
        for there in (BOOT + 1e12, BOOT - 1e12, BOOT + 20e9, BOOT - 20e9):
            result = between([polled(0, 5), polled(60, 65, boot=there),
                              polled(120, 125, boot=there)])
            self.assertEqual([NAN, 1.0], [NAN, result.rates[1, 1]])
            self.assertTrue(np.isnan(result.rates[0]).all(), there)
            self.assertIn(outcomes(result)[0], (IntervalStatus.MIGRATED, IntervalStatus.RESET))

    def test_buckets_are_as_rough_as_they_are_wide(self):
        # Two samples 65 seconds apart, in the first and the third bucket of a minute.
        samples = [(0, 0, BOOT + 59e9, 0), (0, 120, BOOT + 124e9, 65)]
        self.assertEqual([IntervalStatus.MIGRATED], outcomes(between(samples)))
        result = between(samples, rules=intervals.Rules(resolution=60))
        np.testing.assert_allclose([1.0], result.rates[:, 1])

    def test_a_clock_wrong_by_hours_matters_no_more_than_one_that_is_right(self):
        samples = [polled(0, 0, late=-7200), polled(60, 60, late=-7200)]
        np.testing.assert_allclose([1.0], between(samples, now=EPOCH).rates[:, 1])

    def test_the_far_future_is_refused_and_counted(self):
        samples = [polled(0, 0), polled(60, 60), polled(9e9, 9e9)]
        result = between(samples, now=EPOCH + 60)
        self.assertEqual((1, 1), (len(result), result.refused))
        nowhen = between(samples[:2] + [(0, NAN, BOOT, 3), (0, np.inf, BOOT, 3)])
        self.assertEqual((1, 2), (len(nowhen), nowhen.refused))

    def test_a_few_missed_polls_are_bridged_a_long_gap_is_not(self):
        result = between([polled(0, 0), polled(600, 600), polled(1501, 1501)])
        self.assertEqual([IntervalStatus.CLOCKED, IntervalStatus.GAP], outcomes(result))
        np.testing.assert_allclose([1.0, NAN], result.rates[:, 1])
        np.testing.assert_allclose([600, 901], result.elapsed_seconds)

    def test_a_moment_is_no_interval(self):
        result = between([polled(0, 0), polled(0.5, 40), polled(60, 60)])
        self.assertEqual([IntervalStatus.VAGUE, IntervalStatus.CLOCKED], outcomes(result))

    def test_a_missing_meter_makes_only_its_own_rate_unknown(self):
        result = between([polled(0, NAN) + (0,), polled(60, 60) + (120,),
                          polled(120, 120) + (NAN,), polled(180, 180) + (360,)])
        np.testing.assert_allclose([[NAN, 2], [1, NAN], [1, NAN]], result.rates[:, 1:])
        self.assertEqual([IntervalStatus.CLOCKED] * 3, outcomes(result))

    def test_the_clock_bridges_a_sample_that_lacks_it(self):
        result = between([polled(0, 0), (0, 57, NAN, 60), polled(120, 120)])
        np.testing.assert_allclose([120], result.elapsed_seconds)
        np.testing.assert_allclose([1.0], result.rates[:, 1])

    def test_without_a_clock_times_measure_and_the_error_is_said(self):
        for samples, clock in (([(0, 0, 0.0), (0, 60, 120.0)], None),
                               ([(0, 0, NAN, 0.0), (0, 60, NAN, 120.0)], 0),
                               ([(0, 0, BOOT, 0.0), (0, 60, NAN, 120.0)], 0)):
            result = between(samples, clock)
            self.assertEqual([IntervalStatus.TIMED], outcomes(result))
            np.testing.assert_allclose([2.0], result.rates[:, -1])
            np.testing.assert_allclose([1 / 60], result.error)
            rough = between(samples, clock, rules=intervals.Rules(resolution=30))
            self.assertEqual([IntervalStatus.VAGUE], outcomes(rough))
            self.assertTrue(np.isnan(rough.rates).all())

    def test_what_no_counter_can_be_is_unknown_and_counted(self):
        for garbage in (-1.0, np.inf, -np.inf, 2.0**64 - 1, 1e300):
            result = between([polled(0, 5), polled(60, garbage), polled(120, 125)])
            self.assertTrue(np.isnan(result.rates[:, 1]).all(), garbage)
            self.assertEqual(1, result.garbage)
            self.assertEqual([IntervalStatus.CLOCKED] * 2, outcomes(result))

    def test_a_poll_that_is_scraped_again_and_again_is_one_sample(self):
        samples = [(0, at, BOOT + poll * 60e9, poll * 60) for poll in range(3)
                   for at in range(poll * 60 + 3, poll * 60 + 60, 15)]
        result = between(samples, rules=intervals.Rules(resolution=15))
        np.testing.assert_allclose([1.0, 1.0], result.rates[:, 1])
        np.testing.assert_array_equal([EPOCH + 3, EPOCH + 63], result.start)

    def test_a_scrape_in_the_middle_of_an_exporters_work_does_not_count(self):
        for clock_first in (True, False):
            samples = []
            for poll in range(1, 5):
                old, new = (poll - 1) * 60.0, poll * 60.0
                torn = (new, (poll - 1)**2) if clock_first else (old, poll**2)
                if poll > 1:
                    samples.append((0, new, BOOT + torn[0] * SECOND, torn[1]))
                samples += [(0, new + late, BOOT + new * SECOND, poll**2) for late in (15, 30, 45)]
            result = between(samples, rules=intervals.Rules(resolution=15))
            np.testing.assert_allclose([3 / 60, 5 / 60, 7 / 60], result.rates[:, 1])

    def test_a_host_that_shows_a_vm_which_has_left_costs_one_interval(self):
        left = [(0, at, BOOT, 500) for at in range(4, 300, 15)]
        here = [polled(at, at, boot=2 * BOOT) for at in range(0, 300, 60)]
        result = between(left + here)
        np.testing.assert_allclose(1.0, result.rates[result.known(), 1])
        self.assertEqual(3, result.known().sum())


def same(test, one, other):
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field), field)
    test.assertEqual(one.garbage == 0, other.garbage == 0)


ANY = st.one_of(st.floats(), st.integers(0, 10**6).map(float))
ANY_SAMPLE = st.tuples(st.integers(0, 3), st.integers(0, 30).map(lambda n: n * 20.0),
                       st.one_of(st.just(NAN), st.integers(0, 60).map(lambda n: n * 1e10)),
                       ANY, ANY)


class TestProperties(unittest.TestCase):

    @hypothesis.given(st.lists(ANY_SAMPLE, max_size=30), st.randoms(use_true_random=False))
    def test_order_and_repetition_do_not_matter(self, samples, random):
        mixed = samples + [sample for sample in samples if random.random() < 0.4]
        random.shuffle(mixed)
        same(self, between(samples), between(mixed))

    @hypothesis.given(st.lists(ANY_SAMPLE, max_size=30), st.sampled_from([0, None]))
    def test_rates_are_finite_and_not_negative_or_unknown(self, samples, clock):
        result = between(samples, clock)
        known = result.rates[~np.isnan(result.rates)]
        self.assertTrue(np.isfinite(known).all())
        self.assertTrue((known >= 0).all())
        self.assertTrue(np.isnan(result.rates[~result.known()]).all())
        self.assertTrue((result.elapsed_seconds[result.known()] >= 1.0).all())

    @hypothesis.given(
        st.lists(st.tuples(st.integers(30, 300), st.floats(0, 4), st.booleans(),
                           st.integers(0, 2)), min_size=2, max_size=20),
        st.floats(0, 100), st.randoms(use_true_random=False))
    def test_late_missed_repeated_and_shuffled_samples_of_a_steady_vm_give_its_rate(
            self, polls, rate, random):
        samples, now = [], 0.0
        for wait, late, missed, again in polls:
            now += wait
            if not missed:
                samples += [polled(now, 1e6 + rate * now, late=late + 0.1 * copy)
                            for copy in range(again + 1)]
        random.shuffle(samples)
        result = between(samples, rules=intervals.Rules(resolution=5.0))
        known = result.known()
        self.assertEqual(len(known) - result.count(IntervalStatus.GAP), known.sum())
        np.testing.assert_allclose(result.rates[known, 1], rate, rtol=1e-9, atol=1e-9)

    @hypothesis.given(
        st.lists(st.tuples(st.integers(1, 6), st.integers(0, 2)), min_size=2, max_size=6),
        st.lists(st.floats(0, 50), min_size=2, max_size=2), st.randoms(use_true_random=False))
    def test_no_rate_is_across_a_restart_or_a_move(self, lives, rates, random):
        samples, life_at, now = [], {}, 0.0
        for life, (count, how) in enumerate(lives):
            # 0: restarted here; 1: moved to a host that has been up longer; 2: for less long.
            boot = BOOT + (0, life, -life)[how] * 1e13
            base = 1e5 if life == 0 else 0.0
            born = now
            for _poll in range(count):
                now += 60
                life_at[EPOCH + now] = life
                samples.append((0, now, boot + now * SECOND,
                                *(base + rate * (now - born) + 100 for rate in rates)))
        random.shuffle(samples)
        result = between(samples)
        order = np.array(sorted(samples, key=lambda sample: sample[1]))
        for index in range(len(result)):
            before, after = life_at[result.start[index]], life_at[result.end[index]]
            if before == after:
                self.assertTrue(result.known()[index])
                np.testing.assert_allclose(result.rates[index, 1:], rates, rtol=1e-9, atol=1e-9)
                continue
            # A restart shows unless every counter has passed its old value since.
            change = order[index + 1] - order[index]
            if (change[2:] < 0).any() or abs(change[2] - 60e9) > 1e11:
                self.assertTrue(np.isnan(result.rates[index]).all())
