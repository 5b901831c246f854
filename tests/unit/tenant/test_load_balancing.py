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

"""Lemma 1 against scipy's optima, counted replica groups, and simulated M/M/1 queues."""

import itertools
import unittest

import numpy as np
from scipy import optimize
from scipy.optimize import elementwise

from tracon_watcher import errors
from tracon_watcher.tenant import load_balancing


def clusters(number):
    """Yield throughputs and rates of random clusters; in some, workers should get nothing."""
    rng = np.random.default_rng(43)
    for _ in range(number):
        throughputs = 10 ** rng.uniform(0, 3, rng.integers(1, 9))
        yield throughputs, throughputs.sum() * rng.uniform(0.01, 0.99)


def by_multiplier(throughputs, rates):
    """Return the optima of many clusters by scipy's roots of the multiplier of sum p_i = 1.

    :param throughputs: shape (clusters, workers), 0 where a cluster has fewer workers
    """
    # The derivative of p / (r - a p) is r / (r - a p)^2; where it exceeds the multiplier at p = 0,
    # the worker gets nothing.
    def share(logarithm, rate, throughput):
        return np.maximum(throughput - np.sqrt(throughput / np.exp(logarithm)), 0) / rate

    def surplus(logarithm, rate, *workers):
        return sum(share(logarithm, rate, one) for one in workers) - 1
    found = elementwise.find_root(surplus, (-20.0, 60.0), args=(rates, *throughputs.T))
    return share(found.x[:, np.newaxis], rates[:, np.newaxis], throughputs)


def by_descent(throughputs, rate):
    """Return the optimum by scipy's sequential quadratic programming on eq. 4.2 itself."""
    proportional, scale = throughputs / throughputs.sum(), throughputs.mean()
    bounds = [(0, min(1, 0.99999 * r / rate)) for r in throughputs]
    return optimize.minimize(
        lambda p: load_balancing.tail_latency(p, throughputs, rate, 90) * scale,
        proportional, method='SLSQP', bounds=bounds, options={'ftol': 1e-13, 'maxiter': 500},
        jac=lambda p: np.log(10) * throughputs / (throughputs - rate * p) ** 2 * scale,
        constraints={'type': 'eq', 'fun': lambda p: p.sum() - 1, 'jac': np.ones_like}).x


def percentile_of_all(shares, throughputs, rate, percentile):
    """Return the percentile of the requests of all M/M/1 queues together."""
    def beyond(time):
        later = (shares * np.exp(-(throughputs - rate * shares) * time)).sum()
        return later - (1 - percentile / 100)
    high = 1e-3
    while beyond(high) > 0:
        high *= 2
    return optimize.brentq(beyond, 0, high, rtol=1e-12)


def response_times(rng, rate, throughput, number):
    """Return response times of a simulated M/M/1 queue that starts empty (Lindley's recursion)."""
    services = rng.exponential(1 / throughput, number)
    steps = services - rng.exponential(1 / rate, number)
    walk = np.concatenate([[0.0], np.cumsum(steps)[:-1]])
    return walk - np.minimum.accumulate(walk) + services


class TestOptimalShares(unittest.TestCase):

    def test_equal_the_numeric_optimum(self):
        throughputs, rates, found = np.zeros((10000, 8)), np.zeros(10000), np.zeros((10000, 8))
        for row, (these, rate) in enumerate(clusters(10000)):
            throughputs[row, :len(these)], rates[row] = these, rate
            found[row, :len(these)] = load_balancing.optimal_shares(these, rate)
        np.testing.assert_allclose(found, by_multiplier(throughputs, rates), atol=1e-9)
        # Both cases of the Lemma, not one alone.
        left_out = ((found == 0) & (throughputs > 0)).any(axis=1).sum()
        self.assertTrue(3000 < left_out < 9000, left_out)

    def test_no_descent_finds_less(self):
        for throughputs, rate in itertools.islice(clusters(10000), 100):
            found = load_balancing.optimal_shares(throughputs, rate)
            least = load_balancing.tail_latency(found, throughputs, rate, 90)
            descended = by_descent(throughputs, rate)
            np.testing.assert_allclose(found, descended, atol=2e-3)
            self.assertLessEqual(least, (1 + 1e-9) * load_balancing.tail_latency(
                descended / descended.sum(), throughputs, rate, 90))

    def test_example(self):
        # The printed formula by hand for two workers: (4 * 5 - 2 * 13 + 6) / 30 and the rest.
        np.testing.assert_allclose(load_balancing.optimal_shares(np.array([4.0, 9.0]), 6.0),
                                   [(4 * 5 - 2 * 13 + 6 * 2) / 30, (9 * 5 - 3 * 13 + 6 * 3) / 30])

    def test_equal_workers_share_equally_and_none_is_nothing(self):
        np.testing.assert_allclose(
            load_balancing.optimal_shares(np.array([7.0, 0.0, 7.0]), 1e-6), [0.5, 0.0, 0.5])

    def test_percentile_of_all_is_nearly_least_too(self):
        rng = np.random.default_rng(44)
        missed = {90: [], 99: []}
        for _ in range(100):
            throughputs = rng.uniform(0.2, 1, 2)
            rate = throughputs.sum() * rng.uniform(0.2, 0.9)
            found = load_balancing.optimal_shares(throughputs, rate)
            low, high = max(0, 1 - throughputs[1] / rate), min(1, throughputs[0] / rate)
            for percentile, ratios in missed.items():
                def of_all(share):
                    return percentile_of_all(np.array([share, 1 - share]), throughputs, rate,
                                             percentile)
                edge = 1e-6 * (high - low)
                best = optimize.minimize_scalar(of_all, bounds=(low + edge, high - edge),
                                                method='bounded').fun
                ratios.append(percentile_of_all(found, throughputs, rate, percentile) / best - 1)
        self.assertLess(max(missed[90]), 0.003)
        self.assertLess(max(missed[99]), 0.08)

    def test_what_cannot_be_shared(self):
        for throughputs, rate, words in (
                ([3.0, 4.0], 7.0, 'rate of 7, and the workers serve 7 together: add workers'),
                ([3.0, np.nan], 1.0, r'throughputs=\[3.0, nan\]: expected'),
                ([3.0, -1.0], 1.0, r'throughputs=\[3.0, -1.0\]: expected'),
                ([3.0, 4.0], 0.0, 'rate=0.0: expected a number above 0')):
            with self.subTest(words), self.assertRaisesRegex(errors.TraconError, words):
                load_balancing.optimal_shares(np.array(throughputs), rate)


class TestSimulatedQueues(unittest.TestCase):
    """Three M/M/1 queues, one with 60 % of its throughput taken (synthetic)."""

    RATE, THROUGHPUTS = 1.3, np.array([0.4, 1.0, 1.0])

    def simulate(self, shares):
        """Return T90 by eq. 4.2 from the queues' own percentiles, and T90 of all requests."""
        rng = np.random.default_rng(45)
        queues = [response_times(rng, self.RATE * share, throughput, round(8e5 * share))
                  for share, throughput in zip(shares, self.THROUGHPUTS)]
        return (sum(share * np.percentile(times, 90) for share, times in zip(shares, queues)),
                np.percentile(np.concatenate(queues), 90))

    def test_latency_is_what_the_formula_says(self):
        for shares in ([0.2, 0.3, 0.5], [1 / 6, 5 / 12, 5 / 12]):
            found, of_all = self.simulate(shares)
            expected = load_balancing.tail_latency(
                np.array(shares), self.THROUGHPUTS, self.RATE, 90)
            self.assertAlmostEqual(1, found / expected, delta=0.02)
            self.assertAlmostEqual(1, of_all / percentile_of_all(
                np.array(shares), self.THROUGHPUTS, self.RATE, 90), delta=0.02)

    def test_the_lemma_has_the_lowest_tail(self):
        best = load_balancing.optimal_shares(self.THROUGHPUTS, self.RATE)
        tail, of_all = self.simulate(best)
        for others in (self.THROUGHPUTS / self.THROUGHPUTS.sum(), best + [0.08, -0.04, -0.04],
                       best + [-0.05, 0.025, 0.025], best + [0.0, 0.1, -0.1],
                       np.array([0.28, 0.36, 0.36])):
            with self.subTest(others):
                worse, worse_of_all = self.simulate(others)
                self.assertLess(1.005 * tail, worse)
                self.assertLess(1.005 * of_all, worse_of_all)


class TestReplicaShares(unittest.TestCase):

    def test_least_by_scipy_and_groups_counted(self):
        rng = np.random.default_rng(46)
        for _ in range(25):
            workers = int(rng.integers(3, 7))
            replicas = int(rng.integers(2, workers + 1))
            throughputs = np.ones(workers)
            throughputs[0] = rng.uniform(0.05, 1)
            rate = throughputs.sum() * rng.uniform(0.1, 0.9)
            groups = list(itertools.combinations(range(workers), replicas))

            def tail(share):
                """Eq. 4.2 of what each worker gets when all groups of replicas split so."""
                shares = np.zeros(workers)
                for group in groups:
                    if group[0]:
                        shares[list(group)] += 1 / replicas
                    else:
                        shares[0] += share
                        shares[list(group[1:])] += (1 - share) / (replicas - 1)
                return load_balancing.tail_latency(shares / len(groups), throughputs, rate, 95)

            found, other = load_balancing.replica_shares(1.0, throughputs[0], workers, replicas,
                                                         rate)
            self.assertAlmostEqual(1, found + (replicas - 1) * other)
            self.assertLessEqual(tail(found), 1e-9 + min(map(tail, np.linspace(0, 1, 200))))

    def test_all_workers_are_replicas(self):
        self.assertAlmostEqual(
            load_balancing.optimal_shares(np.array([0.5, 1.0, 1.0]), 1.5)[0],
            load_balancing.replica_shares(1.0, 0.5, 3, 3, 1.5)[0])

    def test_number_of_replicas(self):
        for replicas in (1, 4):
            with self.assertRaisesRegex(errors.InvalidOption, f'replicas={replicas}: expected 2'):
                load_balancing.replica_shares(1.0, 0.5, 3, replicas, 1.5)
