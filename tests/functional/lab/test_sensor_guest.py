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

"""A sensor that boots on this machine, answers, and leaves nothing behind."""

import dataclasses
import pathlib
import shutil
import tempfile
import unittest
from unittest import mock

from tests.functional.telemetry import guests
from tracon_watcher.lab import errors
from tracon_watcher.lab import image
from tracon_watcher.lab import sensor_image

INTEGERS = 5_000_000


def left_behind():
    """Sensors that run, their network interfaces, and their folders."""
    running = [path.parent for path in pathlib.Path('/proc').glob('[0-9]*/cmdline')
               if b'guest=tracon-sensor-' in contents(path)]
    return [*running, *pathlib.Path('/sys/class/net').glob('sensor-*'),
            *image.default_cache().glob('sensor-*/')]


def contents(path):
    try:
        return path.read_bytes()
    except OSError:         # a process that has just ended
        return b''


class TestSensorGuest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        reason = guests.reason_to_skip()
        if not reason and not any(map(shutil.which, sensor_image.ISO_TOOLS)):
            reason = 'needs genisoimage'
        if reason:
            self.skipTest(reason)
        from tracon_watcher.lab import sensor_guest
        self.sensor_guest = sensor_guest
        self.before = left_behind()
        self.addCleanup(lambda: self.assertEqual(self.before, left_behind()))

    def booted(self):
        return self.sensor_guest.booted(image.default_cache(), '0')

    def test_it_does_every_piece_of_work_in_80_mib(self):
        with self.booted() as sensor:
            self.assertEqual(len(self.before) + 3, len(left_behind()))
            for kind, counts in (('about', {}), ('connection', {'work': 20_000}),
                                 ('memory', {'integers': INTEGERS}), ('read', {'blocks': 50}),
                                 ('write', {'blocks': 50})):
                # That the result is right is looked at with the signature.
                self.assertGreater(sensor.ask(kind, **counts), 0.0 if kind != 'about' else -1.0)
            with self.assertRaisesRegex(errors.TestbedError, '409.*do not fit its memory'):
                sensor.ask('memory', integers=20_000_000)
            stranger = dataclasses.replace(sensor, secret=sensor.secret[::-1])
            with self.assertRaisesRegex(errors.TestbedError, 'not signed by the sensor'):
                stranger.ask('about')

    def test_what_it_boots_is_small(self):
        with tempfile.TemporaryDirectory() as cache:
            built = sensor_image.build(pathlib.Path(cache))
            sizes = [path.stat().st_size
                     for path in (built.kernel, built.initramfs, built.disk)]
        self.assertLess(sizes[1], 2 << 20)
        self.assertLess(sum(sizes), 64 << 20)

    def test_one_that_does_not_answer_says_what_its_console_does(self):
        with mock.patch.object(self.sensor_guest, 'BOOT_TIMEOUT', 0.0):
            with self.assertRaisesRegex(errors.TestbedError, 'does not answer.*console ends'):
                with self.booted():
                    pass
