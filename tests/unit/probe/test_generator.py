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

"""Readings of simulated sensors (synthetic), good ones and bad ones."""

import asyncio
import json
import math
import time
import unittest
from unittest import mock

import numpy as np

from tracon_lab import simulated_sensor as simulated
from tracon_watcher import errors
from tracon_watcher.probe import answers
from tracon_watcher.probe import generator
from tracon_watcher.probe import phases
from tracon_watcher.probe import readings

SECRET = b's' * 32
QUICK = phases.Setting(100.0, 0.2, 20_000)


def rewrite(**changes):
    """Return what changes fields of each answer and signs it again."""
    def spoil(status, body, _signature):
        body = json.dumps(json.loads(body) | changes).encode()
        return status, body, answers.sign(SECRET, body)
    return spoil


class TakeTest(unittest.IsolatedAsyncioTestCase):

    def setUp(self):
        # The machine that runs the tests may be slow; what comes too late is tested by itself.
        self.patient = mock.patch.object(generator, '_LAG_LEAST', 60.0)
        self.patient.start()
        self.addCleanup(mock.patch.stopall)

    async def take(self, phase=phases.CONNECTION, setting=QUICK, deadline=5.0, secret=SECRET,
                   **sensor):
        one = simulated.Sensor(SECRET, **sensor)
        address = await one.start()
        try:
            async with generator.session() as client:
                return await generator.take(client, address, secret, phase, setting, deadline)
        finally:
            one.stop()

    async def no_reading(self, reason, **more):
        with self.assertRaises(readings.NoReading) as raised:
            await self.take(**more)
        self.assertEqual(reason, raised.exception.reason, str(raised.exception))
        return str(raised.exception)

    async def test_the_connection_phase_counts_to_the_end_of_the_answer(self):
        found = await self.take()
        self.assertEqual(20, found.answers)
        # The work takes two milliseconds of it.
        self.assertGreater(found.mean, 0.0019)
        self.assertGreater(found.half, 0.0)
        self.assertEqual(sorted(found.percentiles), list(found.percentiles))

    async def test_the_other_phases_count_the_work(self):
        found = await self.take(phases.MEMORY, spread=0.0)
        self.assertAlmostEqual(0.002, found.mean, places=8)
        # A read of four blocks and a write of four.
        found = await self.take(phases.STORAGE, phases.Setting(100.0, 0.2, 4), spread=0.0)
        self.assertAlmostEqual(4 * (2e-4 + 1e-3), found.mean, places=8)

    async def test_contention_shows(self):
        found = await self.take(phases.MEMORY, spread=0.0, slower={'/memory': 3.0})
        self.assertAlmostEqual(0.006, found.mean, places=8)

    async def test_a_sensor_that_stands_still_delays_all_that_were_due_meanwhile(self):
        held = []

        def stand_still(*answer):
            if not held:
                held.append(True)
                # Its next answer is free half a second from now.
                sensor._free_at += 0.5
            return answer
        sensor = simulated.Sensor(SECRET, spoil=stand_still, spread=0.0)
        address = await sensor.start()
        async with generator.session() as client:
            found = await generator.take(client, address, SECRET, phases.CONNECTION,
                                         phases.Setting(100.0, 1.0, 1000))
        sensor.stop()
        # Fifty of a hundred requests are due in that time and wait for a quarter of a second each;
        # a generator that waits for answers would have seen one slow request.
        self.assertGreater(found.mean, 0.1)

    async def test_a_sensor_that_hangs(self):
        text = await self.no_reading('late', spoil=lambda *answer: None, deadline=0.2)
        self.assertIn('20 of 20', text)

    async def test_one_lost_answer_of_many_is_none(self):
        dropped = []

        def drop_one(*answer):
            dropped.append(answer)
            return answer if len(dropped) != 50 else None
        found = await self.take(setting=phases.Setting(100.0, 1.2, 100), spoil=drop_one,
                                deadline=1.0)
        self.assertEqual((119, 1), (found.answers, found.lost))

    async def test_a_sensor_that_is_not_there(self):
        async with generator.session() as client:
            with self.assertRaises(readings.NoReading) as raised:
                await generator.take(client, '127.0.0.1:1', SECRET, phases.CONNECTION, QUICK)
        self.assertEqual('unreachable', raised.exception.reason)

    async def test_what_is_no_http(self):
        async def answer(reader, writer):
            await reader.readuntil(b'\r\n\r\n')
            writer.write(b'220 mail.example.org ESMTP\r\n\r\n')
            writer.close()
        server = await asyncio.start_server(answer, '127.0.0.1', 0)
        port = server.sockets[0].getsockname()[1]
        async with generator.session() as client:
            with self.assertRaises(readings.NoReading) as raised:
                await generator.take(client, f'127.0.0.1:{port}', SECRET, phases.CONNECTION, QUICK)
        server.close()
        self.assertEqual('garbage', raised.exception.reason)

    async def test_an_endless_answer(self):
        await self.no_reading('garbage', spoil=lambda status, body, signature: (
            status, body * 1000, signature))

    async def test_forged_garbled_and_lying_answers(self):
        await self.no_reading('unsigned', spoil=lambda status, body, _: (status, body, '0' * 64))
        await self.no_reading('refused', secret=SECRET, spoil=lambda status, body, _: (
            403, b'no', answers.sign(SECRET, b'no')))
        await self.no_reading('garbage', spoil=rewrite(result='1'))
        await self.no_reading('lies', spoil=rewrite(seconds=1.0))
        await self.no_reading('too fast', spoil=rewrite(seconds=0.0))

    async def test_a_sensor_whose_clock_stands(self):
        await self.no_reading('lies', phase=phases.MEMORY, spoil=rewrite(seconds=0.001),
                              setting=phases.Setting(100.0, 1.5, 3_000_000))

    async def test_a_phase_ends_in_time_however_slow_the_sensor_is(self):
        # Each traversal takes a tenth of a second, and a hundred a second were due.
        found = await self.take(phases.MEMORY, phases.Setting(100.0, 0.5, 1_000_000), spread=0.0)
        self.assertIn(found.answers, (4, 5, 6))
        self.assertAlmostEqual(0.1, found.mean, places=8)
        # Three answers make a mean, however long they take.
        found = await self.take(phases.MEMORY, phases.Setting(100.0, 0.15, 2_000_000), spread=0.0)
        self.assertEqual(3, found.answers)
        self.assertAlmostEqual(0.2, found.mean, places=8)

    async def test_the_wall_clock_may_jump(self):
        jumps = iter(range(0, 10**9, 10**6))
        with mock.patch('time.time', lambda: float(next(jumps))):
            found = await self.take(phases.MEMORY, spread=0.0)
        self.assertAlmostEqual(0.002, found.mean, places=8)

    async def test_a_generator_without_a_core(self):
        self.patient.stop()

        async def occupy():
            while True:
                time.sleep(0.05)
                await asyncio.sleep(0)
        task = asyncio.create_task(occupy())
        await self.no_reading('overloaded')
        task.cancel()

    async def test_settings_out_of_range(self):
        for setting in (phases.Setting(math.nan, 1.0, 1), phases.Setting(1.0, 0.0, 1),
                        phases.Setting(100.0, 1.0, 0), phases.Setting(1.0, 1.0, 1)):
            with self.assertRaises(errors.InvalidOption):
                await self.take(setting=setting)


class SummariseTest(unittest.TestCase):

    def test_slow_changes_widen_the_interval(self):
        random = np.random.default_rng(1)
        noise = random.normal(1.0, 0.1, 1000)
        # The same values, in long waves.
        waves = np.sort(noise).reshape(2, -1).ravel()
        calm = readings.summarise(phases.MEMORY, QUICK, 0.0, noise)
        wavy = readings.summarise(phases.MEMORY, QUICK, 0.0, waves)
        self.assertAlmostEqual(calm.mean, wavy.mean)
        self.assertGreater(wavy.half, 3 * calm.half)

    def test_nine_of_ten_intervals_hold_the_mean(self):
        random = np.random.default_rng(1)
        hits = sum(abs(one.mean - 1.0) <= one.half for one in (
            readings.summarise(phases.MEMORY, QUICK, 0.0, random.exponential(1.0, 200))
            for _ in range(300)))
        self.assertGreater(hits, 270)
        self.assertLess(hits, 300)

    def test_one_value_has_no_interval(self):
        self.assertTrue(math.isnan(readings.interval([1.0])[1]))
