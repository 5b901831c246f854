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

"""Slowdown from outside: signals by hand, and their calibration (synthetic data)."""

import unittest

import numpy as np

from tracon_lab.contention import calibration
from tracon_watcher import errors


def counters(running, delay=0.0, reads=0.0, read_latency=np.nan, writes=0.0,
             write_latency=np.nan, **counted):
    running = np.atleast_1d(np.asarray(running, dtype=float))

    def full(value):
        return np.broadcast_to(np.asarray(value, dtype=float), running.shape)
    return calibration.Counters(
        running, full(delay), full(reads), full(writes), full(read_latency), full(write_latency),
        full(counted.get('instructions', np.nan)), full(counted.get('cycles', np.nan)),
        full(counted.get('switches', np.nan)))


class TestSignals(unittest.TestCase):

    def test_half_a_core_is_twice_the_time(self):
        stretch = calibration.cpu_stretch(counters(0.5, delay=0.5), counters(1.0))
        np.testing.assert_allclose(stretch, [2.0])

    def test_waiting_that_was_there_alone_does_not_count(self):
        stretch = calibration.cpu_stretch(counters(0.5, delay=0.25), counters(0.8, delay=0.4))
        np.testing.assert_allclose(stretch, [1.0])

    def test_a_vm_that_does_not_run_has_no_cpu_signal(self):
        self.assertTrue(np.isnan(calibration.cpu_stretch(counters(0.0), counters(1.0))[0]))

    def test_requests_weigh_as_alone(self):
        # alone 10 ms a second of reads, 30 ms of writes; now reads take 5 times, writes twice
        alone = counters(0.1, reads=10, read_latency=0.001, writes=10, write_latency=0.003)
        now = counters(0.1, reads=2, read_latency=0.005, writes=5, write_latency=0.006)
        np.testing.assert_allclose(calibration.io_stretch(now, alone), [0.25 * 5 + 0.75 * 2])

    def test_without_requests_block_latency_is_unknown_not_one(self):
        found = calibration.io_stretch(counters(0.5), counters(0.5, reads=5, read_latency=0.01))
        self.assertTrue(np.isnan(found[0]))

    def test_time_is_cpu_and_requests_each_with_its_share(self):
        alone = counters(0.5, reads=50, read_latency=0.01)       # half CPU, half waiting
        now = counters(0.25, delay=0.25, reads=10, read_latency=0.04)
        np.testing.assert_allclose(calibration.time_stretch(now, alone), [0.5 * 2 + 0.5 * 4])

    def test_undisturbed_every_signal_is_one(self):
        alone = counters(0.5, delay=0.01, reads=20, read_latency=0.01, writes=3,
                         write_latency=0.002, instructions=1e9, cycles=2e9, switches=100)
        for name, signal in calibration.SIGNALS.items():
            np.testing.assert_allclose(signal(alone, alone), [1.0], err_msg=name)


class TestCalibration(unittest.TestCase):

    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(1)
        self.slowdown = np.exp(rng.uniform(0, 1.5, 200))
        self.signal = self.slowdown ** 0.5
        self.programs = np.array(['a', 'b', 'c', 'd'])[rng.integers(0, 4, 200)]

    def test_it_finds_a_monotone_relation(self):
        found = calibration.calibrate(self.signal, self.slowdown, self.programs)
        self.assertLess(found.error, 0.02)
        np.testing.assert_allclose(found.estimate(np.array([1.5])), [2.25], rtol=0.03)

    def test_it_never_falls_and_never_says_less_than_one(self):
        noise = np.exp(np.random.default_rng(2).normal(0, 0.3, 200))
        found = calibration.calibrate(self.signal * noise, self.slowdown)
        estimated = found.estimate(np.linspace(0.1, 10, 300))
        self.assertTrue((np.diff(estimated) >= 0).all())
        self.assertTrue((estimated >= 1).all())

    def test_unknown_stays_unknown(self):
        found = calibration.calibrate(self.signal, self.slowdown)
        self.assertTrue(np.isnan(found.estimate(np.array([np.nan]))[0]))

    def test_too_few(self):
        with self.assertRaisesRegex(errors.NotEnoughData, '20 points.*19'):
            calibration.calibrate(self.signal[:19], self.slowdown[:19])

    def test_the_error_is_that_of_other_programs(self):
        # One program's signal means something else: only its own points would tell.
        signal = np.where(self.programs == 'a', self.slowdown ** 0.1, self.signal)
        found = calibration.calibrate(signal, self.slowdown, self.programs)
        self.assertGreater(found.error, 0.1)


class TestTracking(unittest.TestCase):

    def test_what_is_not_counted_has_no_points(self):
        rng = np.random.default_rng(3)
        slowdown = np.exp(rng.uniform(0, 1, 100))
        now = counters(1 / slowdown, delay=1 - 1 / slowdown)
        alone = counters(np.ones(100))
        rows = {row.signal: row for row in calibration.tracking(
            now, alone, slowdown, np.repeat(['a', 'b'], 50))}
        self.assertEqual(0, rows['cycles per instruction'].points)
        self.assertEqual(0, rows['block latency'].points)
        self.assertGreater(rows['vCPU delay'].correlation, 0.999)
        self.assertLess(rows['vCPU delay'].raw_error, 1e-6)
