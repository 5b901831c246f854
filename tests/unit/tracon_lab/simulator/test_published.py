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

"""TRACON's own numbers come out where the truth is TRACON's own."""

import unittest

import numpy as np

from tracon_lab.simulator import experiment
from tracon_lab.simulator import published
from tracon_lab.simulator import results
from tracon_watcher import errors

SETUP = experiment.Setup((), (published.NAME,), model='truth', truth=experiment.PUBLISHED)


def rows(schedulers, machines=64, runs=2, **more):
    """Return each scheduler's row, by name."""
    found = results.rows(experiment.run(experiment.Case(SETUP, name, machines, seed=seed, **more))
                         for name in (results.BASELINE, *schedulers)
                         for seed in range(1, runs + 1))
    return {row.scheduler: row for row in found}


class TestTruth(unittest.TestCase):

    def test_it_is_table_1(self):
        found = published.truth()
        self.assertEqual((1.96, 1.26, 1.03, 10.23), tuple(
            found.beside(own, other)[0] for own, other in (
                ('email', 'blastp'), ('web', 'video'), ('compile', 'email'), ('dedup', 'video'))))
        self.assertAlmostEqual(1 / 10.23, found.beside('dedup', 'video')[1])
        self.assertTrue(np.isnan(found.beside('email', 'video')[1]))

    def test_where_the_ranks_are_cut_is_a_choice(self):
        self.assertEqual(1.26, published.truth(4).beside('compile', 'video')[0])
        self.assertEqual(10.23, published.truth(3).beside('compile', 'video')[0])
        for number in (0, 8):
            with self.assertRaisesRegex(errors.InvalidOption, f'calc_ranks={number}'):
                published.truth(number)

    def test_classes_keep_the_order_of_their_ranks(self):
        self.assertEqual(published.APPLICATIONS, experiment.world_of(SETUP).classes)


class TestSpindle(unittest.TestCase):
    """The host of the paper, by the law of queueing."""

    SETUP = experiment.Setup((), (published.SPINDLE,), model='truth', truth=published.SPINDLE)

    def test_the_law(self):
        found = published.spindle()
        # Shares of 15/16 and 1/16: 1 + 15/256 · 9.23.
        for own, other in (('video', 'email'), ('email', 'video')):
            self.assertAlmostEqual(1.5408, found.beside(own, other)[0], 4)
        slowdown, ratio = found.beside('video', 'video')
        self.assertAlmostEqual(9.112, slowdown, 3)
        self.assertAlmostEqual(1.0, slowdown * ratio)

    def test_two_streams_by_events(self):
        # Exponential times; while both are at the disk each is served at 1 / W of its speed.
        rng = np.random.default_rng(1)
        share, other, slow = 0.8125, 0.4375, published.RUNTIME['SeqRead'][1]
        there, done, now = [False, False], 0, 0.0
        while done < 20000:
            both = 1.0 / slow if all(there) else 1.0
            rates = np.array([both / own if here else 1.0 / (1.0 - own)
                              for own, here in zip((share, other), there)])
            now += rng.exponential(1.0 / rates.sum())
            who = int(rng.uniform() < rates[1] / rates.sum())
            done += who == 0 and there[0]
            there[who] = not there[who]
        expected = 1.0 + share * other * (slow - 1.0)
        self.assertAlmostEqual(expected, now / done, delta=0.06 * expected)
        names = published.APPLICATIONS
        self.assertAlmostEqual(expected, published.spindle().beside(names[6], names[3])[0])

    def test_each_prefers_the_idle_neighbour_so_that_mibs_gains_nothing(self):
        cases = [experiment.Case(self.SETUP, name, 64, seed=1)
                 for name in (results.BASELINE, 'MIBS', 'optimum')]
        found = {row.scheduler: row.speedup
                 for row in results.rows(experiment.run(case) for case in cases)}
        self.assertAlmostEqual(1.0, found['MIBS'], delta=0.03)
        self.assertGreater(found['optimum'], 1.08)


class TestSchedulersOnIt(unittest.TestCase):
    """Medium mix; published are over 40 % static, and 40 % in the overloaded data centre."""

    def test_static_mibs_reaches_the_optimum(self):
        found = rows(('MIBS', 'MIBS_8', 'MINMIN_8', 'optimum'), 1024)
        self.assertAlmostEqual(1.36, found['optimum'].speedup, delta=0.03)
        for name in ('MIBS', 'MIBS_8', 'MINMIN_8'):
            self.assertAlmostEqual(0.0, found[name].distance, msg=name)

    def test_overloaded_the_longer_queue_is_better_and_mix_is_best(self):
        names = ('MIOS', 'MIBS_2', 'MIBS_4', 'MIBS_8', 'MIX_8')
        found = rows(names, rate=100.0, hours=10.0)
        gains = [found[name].throughput - 1 for name in names]
        for gain, expected in zip(gains, (0.01, 0.15, 0.30, 0.42, 0.44)):
            self.assertAlmostEqual(expected, gain, delta=0.04)
        for less, more in zip(gains[:3], gains[1:4]):
            self.assertLess(less + 0.05, more)
        self.assertLess(gains[3], gains[4])

    def test_decided_at_one_free_slot_mibs_is_fifo(self):
        found = rows(('MIBS_8-partial', 'MIBS_8-eager', 'MINMIN_8-eager'), rate=100.0, hours=10.0)
        self.assertAlmostEqual(1.0, found['MIBS_8-partial'].throughput, delta=0.03)
        self.assertAlmostEqual(1.0, found['MIBS_8-eager'].throughput, delta=0.03)
        self.assertGreater(found['MINMIN_8-eager'].throughput, 1.5)

    def test_one_vm_a_host_completes_more_than_any_of_them(self):
        found = rows(('FIFO-single', 'MIX_8'), rate=100.0, hours=5.0)
        self.assertGreater(found['FIFO-single'].throughput, found['MIX_8'].throughput + 0.5)
        self.assertAlmostEqual(0.5, found['FIFO-single'].occupied, delta=0.01)
