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

"""The controller beside simulated sensors (synthetic)."""

import asyncio
import json
import pathlib
import tempfile
import unittest
from unittest import mock

from tests.unit.probe import test_generator
from tracon_lab import simulated_sensor as simulated
from tracon_watcher import errors
from tracon_watcher.probe import controller
from tracon_watcher.probe import detection
from tracon_watcher.probe import generator
from tracon_watcher.probe import phases

SECRET = test_generator.SECRET
MEMORY = phases.Setting(100.0, 0.1, 20_000)
#: A traversal takes two milliseconds.
BASELINES = {('small', 'memory'): detection.SensorBaseline(
    'small', 'memory', MEMORY, 0.002, 0.0001, 0.0, 5, 0.0)}


class ControllerTest(unittest.IsolatedAsyncioTestCase):

    def setUp(self):
        self.enterContext(mock.patch.object(generator, '_LAG_LEAST', 60.0))

    async def asyncSetUp(self):
        self.sensor = simulated.Sensor(SECRET, spread=0.01)
        address = await self.sensor.start()
        self.sensors = {'compute-1': controller.Sensor('compute-1', 'small', address)}
        self.client = await self.enterAsyncContext(generator.session())
        self.addCleanup(self.sensor.stop)

    def controller(self, interval=100.0, **more):
        one = controller.ManagementController(self.client, SECRET, lambda: self.sensors, BASELINES,
                                              interval,
                                              deadline=0.5, seed=1, **more)
        one.follow()
        # Here the tests read, at times of theirs.
        for task in one._tasks.values():
            task.cancel()
        return one

    async def read(self, one, phase=phases.MEMORY):
        await one.take(self.sensors['compute-1'], phase)
        return self.state(one, phase.name)

    def state(self, one, phase='memory'):
        found, = json.loads(json.dumps(one.states(), allow_nan=False))['sensors']
        self.assertEqual(('compute-1', 'small'), (found['host'], found['host_type']))
        return found['phases'][phase]

    async def test_quiet_contended_and_quiet_again(self):
        one = self.controller()
        self.assertEqual('unknown', self.state(one)['state'])
        self.assertEqual('unknown', (await self.read(one))['state'])
        found = await self.read(one)
        self.assertEqual('quiet', found['state'])
        self.assertAlmostEqual(1.0, found['ratio'], delta=0.03)
        self.sensor.slower['/memory'] = 1.8
        self.assertEqual('quiet', (await self.read(one))['state'])
        with self.assertLogs(controller.LOG, 'INFO') as logs:
            found = await self.read(one)
        self.assertIn('compute-1, memory: contended instead of quiet', logs.output[0])
        self.assertAlmostEqual(1.8, found['ratio'], delta=0.06)
        self.assertTrue(1.5 < found['low'] < found['ratio'] < found['high'])
        del self.sensor.slower['/memory']
        self.assertEqual('contended', (await self.read(one))['state'])
        self.assertEqual('quiet', (await self.read(one))['state'])

    async def test_a_sensor_that_stops_is_unknown_at_once(self):
        one = self.controller()
        for _ in range(2):
            await self.read(one)
        self.sensor.stop()
        found = await self.read(one)
        self.assertEqual(('unknown', None), (found['state'], found['ratio']))
        self.assertIn('unreachable', found['reason'])

    async def test_a_controller_that_stands_still_knows_nothing(self):
        one = self.controller(interval=0.05)
        for _ in range(2):
            await self.read(one)
        self.assertEqual('quiet', self.state(one)['state'])
        await asyncio.sleep(0.2)
        self.assertIn('no reading for', self.state(one)['reason'])
        self.assertEqual('unknown', self.state(one)['state'])

    async def test_the_wall_clock_does_not_matter(self):
        one = self.controller()
        with mock.patch('time.time', autospec=True, return_value=5.0):
            await self.read(one)
        with mock.patch('time.time', autospec=True, return_value=1e10):
            self.assertEqual('quiet', (await self.read(one))['state'])

    async def test_a_type_without_a_baseline(self):
        found = await self.read(self.controller(), phases.STORAGE)
        self.assertEqual('unknown', found['state'])
        self.assertIn('tracon probe baseline', found['reason'])

    async def test_all_phases_are_read_again_and_again(self):
        one = controller.ManagementController(self.client, SECRET, lambda: self.sensors, BASELINES,
                                              0.3,
                                              seed=1)
        task = asyncio.create_task(one.run())
        try:
            for _ in range(200):
                await asyncio.sleep(0.05)
                if self.sensors and one.states()['sensors'] and \
                        self.state(one)['state'] == 'quiet':
                    break
            else:
                self.fail('it is never quiet')
            # Sensors that are gone are read no more.
            self.sensors = {}
            one.follow()
            self.assertEqual([], one.states()['sensors'])
        finally:
            task.cancel()

    async def test_so_many_phases_at_once_and_no_more(self):
        running, most = 0, 0

        async def take(self, sensor, phase):
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1
        self.sensors = {str(index): controller.Sensor(str(index), 'small', f'127.0.0.1:{index}')
                        for index in range(20)}
        with mock.patch.object(controller.ManagementController, 'take', take):
            one = controller.ManagementController(self.client, SECRET, lambda: self.sensors,
                                                  BASELINES,
                                                  0.05, seed=1, at_once=3)
            task = asyncio.create_task(one.run())
            await asyncio.sleep(0.5)
            task.cancel()
        self.assertEqual(3, most)

    async def test_readings_do_not_keep_step(self):
        starts = {}

        async def take(self, sensor, phase):
            starts.setdefault(sensor.host, []).append(
                (asyncio.get_running_loop().time(), phase.name))
        self.sensors = {str(index): controller.Sensor(str(index), 'small', f'127.0.0.1:{index}')
                        for index in range(10)}
        with mock.patch.object(controller.ManagementController, 'take', take):
            one = controller.ManagementController(self.client, SECRET, lambda: self.sensors,
                                                  BASELINES,
                                                  0.2, seed=1)
            task = asyncio.create_task(one.run())
            await asyncio.sleep(1.5)
            task.cancel()
        firsts = [times[0][0] for times in starts.values()]
        self.assertGreater(max(firsts) - min(firsts), 0.05)
        orders = {tuple(name for _, name in times[:3]) for times in starts.values()}
        self.assertGreater(len(orders), 1)
        gaps = {round(times[3][0] - times[0][0], 2) for times in starts.values()
                if len(times) > 3}
        self.assertGreater(len(gaps), 2)


class FileTest(unittest.TestCase):

    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.path = pathlib.Path(folder) / 'sensors.json'

    def write(self, *hosts, **more):
        self.path.write_text(json.dumps({'schema': controller.SENSORS, 'sensors': [
            {'host': host, 'host_type': 'small', 'address': '192.0.2.1:8640'} for host in hosts],
            **more}))

    def test_it_is_read_again_when_it_changes(self):
        self.write('a')
        found = controller.File(self.path)
        self.assertEqual({'a'}, set(found()))
        self.write('a', 'b')
        self.assertEqual({'a', 'b'}, set(found()))

    def test_a_broken_list_changes_nothing(self):
        self.write('a')
        found = controller.File(self.path)
        self.path.write_text('{')
        with self.assertLogs(controller.LOG, 'ERROR') as logs:
            self.assertEqual({'a'}, set(found()))
            found()
        self.assertEqual(1, len(logs.output))
        self.path.unlink()
        self.assertEqual({'a'}, set(found()))
        self.write('c')
        self.assertEqual({'c'}, set(found()))

    def test_what_is_wrong_is_named(self):
        with self.assertRaisesRegex(errors.InvalidDocument, 'cannot be read'):
            controller.File(self.path)
        self.write('a', 'a\0')
        with self.assertRaisesRegex(errors.InvalidDocument, 'without control characters'):
            controller.File(self.path)
        self.write('a', 'A')
        with self.assertRaisesRegex(errors.InvalidDocument, 'two sensors'):
            controller.File(self.path)
        self.write('a', 'a')
        with self.assertRaisesRegex(errors.InvalidDocument, 'two sensors'):
            controller.File(self.path)
        self.write('a', other=1)
        with self.assertRaisesRegex(errors.InvalidDocument, 'other'):
            controller.File(self.path)


class StateTest(unittest.TestCase):

    def test_states_are_words(self):
        self.assertEqual(['quiet', 'contended', 'unknown'],
                         [one.value for one in detection.State])
