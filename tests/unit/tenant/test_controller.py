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

"""The controller on synthetic M/M/1 workers: what it calls contended, and whom it gives what."""

import unittest

import numpy as np

from tracon_watcher.tenant import controller as controllers
from tracon_watcher.tenant import load_balancing
from tracon_watcher.tenant import settings as dial_settings

NAMES = ('a', 'b', 'c')
#: Requests that a worker serves without contention, 1/s.
PEAK = 100.0


def settings(**others):
    return dial_settings.Settings('socket', 'log', 'web', NAMES, PEAK, **others)


class World:
    """Workers in their stationary state, and the controller that sees them (synthetic).

    :ivar background: load of others on each worker
    """

    def __init__(self, rate=120.0, **others):
        self.rng = np.random.default_rng(7)
        self.rate = rate
        self.background = dict.fromkeys(NAMES, 0.0)
        self.available = list(NAMES)
        self.controller = controllers.Controller(settings(**others))
        self.news = []

    def interval(self, times=1, **seen):
        for _ in range(times):
            shares = self.controller.shares
            arrivals = {name: self.rng.poisson(10 * self.rate * shares[name])
                        for name in self.available if name in shares}
            latencies = {name: self.rng.exponential(1e3 / max(
                PEAK * (1 - self.background[name]) - number / 10, 2.0), number).tolist()
                for name, number in arrivals.items()}
            self.news += self.controller.decide(controllers.Observation(**{
                'seconds': 10.0, 'available': self.available, 'latencies': latencies,
                'arrivals': arrivals, **seen}))
        return list(self.controller.shares.values())

    def contended(self):
        return [name for name, one in self.controller.workers.items() if one.contended]


class TestController(unittest.TestCase):

    def test_quiet_times(self):
        world = World()
        world.interval(9)
        self.assertTrue(world.controller.learning)
        shares = [world.interval() for _ in range(400)]
        self.assertFalse(world.controller.learning)
        unequal = sum(max(one) - min(one) > 1e-9 for one in shares)
        # Of 400 intervals of three workers.
        self.assertLess(unequal, 12)

    def test_contention_and_its_end(self):
        world = World()
        world.interval(30)
        world.background['b'] = 0.6
        before = world.interval()
        self.assertEqual([1 / 3] * 3, before)
        steps = [before] + [world.interval() for _ in range(4)]
        self.assertEqual(['b'], world.contended())
        self.assertLessEqual(np.abs(np.diff(steps, axis=0)).max(), 0.2 + 1e-9)
        shares = np.array([world.interval() for _ in range(20)]).mean(axis=0)
        worker = world.controller.workers['b']
        self.assertAlmostEqual(0.6, worker.background_load, delta=0.1)
        best = load_balancing.optimal_shares(np.array([100.0, 40.0, 100.0]), world.rate)
        np.testing.assert_allclose(shares, 0.02 + 0.94 * best, atol=0.05)
        # One line when it began.
        self.assertEqual(1, len(world.news))
        self.assertRegex(world.news[0], r'^b is contended: T90 \d+ ms, quiet up to \d+ ms; back')

        world.background['b'] = 0.0
        shares = world.interval(12)
        np.testing.assert_allclose(shares, [1 / 3] * 3)
        self.assertRegex(world.news[1], r'^b is contended no more: T90 \d+ ms$')
        self.assertEqual([], world.contended())

    def test_load_is_no_contention(self):
        world = World(rate=90.0)
        world.interval(30)
        world.rate = 240.0
        np.testing.assert_allclose(world.interval(10), [1 / 3] * 3)
        self.assertEqual([], world.news)

    def test_contention_from_the_start(self):
        world = World()
        world.background['c'] = 0.6
        world.interval(16)
        self.assertEqual(['c'], world.contended())

    def test_several_contended_or_all(self):
        world = World()
        world.interval(30)
        world.background.update(a=0.5, c=0.5)
        world.interval(10)
        self.assertEqual(['a', 'c'], world.contended())
        first, second, third = world.interval()
        self.assertLess(max(first, third) + 0.2, second)
        world.background.update(a=0.5, b=0.5, c=0.5)
        np.testing.assert_allclose(world.interval(25), [1 / 3] * 3, atol=0.08)

    def test_contention_that_comes_and_goes_changes_shares_rarely(self):
        # A state lasts two intervals at least: 200 have 100 changes of a worker at most.
        for period in (1, 2, 6, 30):
            world = World()
            world.interval(30)
            for turn in range(200):
                world.background['b'] = 0.6 if turn // period % 2 else 0.0
                world.interval()
            with self.subTest(period):
                self.assertLessEqual(len(world.news), min(100, 200 // period + 4))

    def test_no_more_than_the_objective_asks(self):
        world = World(objective_ms=1e4)
        world.interval(30)
        world.background['b'] = 0.5
        self.assertEqual([1 / 3] * 3, world.interval(10))

    def test_few_requests_make_longer_windows(self):
        world = World(rate=6.0)
        world.interval(2)
        self.assertTrue(np.isnan(world.controller.workers['a'].tail_ms))
        world.interval(2)
        self.assertGreater(world.controller.workers['a'].tail_ms, 0)

    def test_overload_shares_in_proportion(self):
        world = World()
        world.interval(30)
        world.background['b'] = 0.6
        world.interval(12)
        world.rate = 400.0
        world.interval(6)
        rest = np.array([1 - one.background_load for one in world.controller.workers.values()])
        np.testing.assert_allclose(list(world.controller.shares.values()),
                                   0.02 + 0.94 * rest / rest.sum(), atol=0.021)

    def test_blind(self):
        world = World()
        world.interval(30)
        world.background['b'] = 0.6
        held = world.interval(8)
        self.assertLess(held[1], 0.2)
        world.news.clear()
        self.assertEqual(held, world.interval(blind='why'))
        self.assertEqual([1 / 3] * 3, world.interval(blind='why'))
        world.interval(5, blind='another reason')
        self.assertEqual(['blind, so weights are equal: why'], world.news)
        world.interval()
        self.assertEqual('sees again', world.news[-1])
        self.assertLess(world.interval(6)[1], 0.2)
        self.assertEqual(3, len(world.news))

    def test_workers_come_and_go(self):
        world = World(rate=60.0)
        world.interval(30)
        world.background['b'] = 0.6
        before = world.interval(8)
        world.available.remove('c')
        self.assertAlmostEqual(1, sum(world.interval(times=1, seconds=10.0, arrivals={})))
        self.assertAlmostEqual(before[0] / before[1],
                               world.controller.shares['a'] / world.controller.shares['b'])
        world.available.append('c')
        world.interval(arrivals={})
        self.assertAlmostEqual(1 / 3, world.controller.shares['c'])
        world.available.clear()
        self.assertEqual([], world.interval())
        self.assertEqual(['c is not available', 'c is available', 'a is not available'],
                         world.news[1:4])


class TestWeights(unittest.TestCase):

    def test_equal_shares_have_the_configured_weight(self):
        for weight in (1, 100, 256):
            self.assertEqual({'a': weight, 'b': weight}, controllers.weights(
                {'a': 0.5, 'b': 0.5}, {'a': weight, 'b': weight}))
        self.assertEqual({}, controllers.weights({}, {'a': 1}))

    def test_shares(self):
        for shares, expected in (((0.02, 0.49, 0.49), (10, 256, 256)),
                                 ((0.001, 0.001, 0.998), (1, 1, 256))):
            with self.subTest(shares):
                self.assertEqual(expected, tuple(controllers.weights(
                    dict(zip(NAMES, shares)), dict.fromkeys(NAMES, 100)).values()))
