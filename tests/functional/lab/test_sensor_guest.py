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
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

from tests.functional.telemetry import guests
from tracon_lab.testbed import errors
from tracon_lab.testbed import sensor_guest
from tracon_watcher.probe import images

INTEGERS = 5_000_000


def addresses():
    return subprocess.run(['ip', '-4', '-o', 'address'], check=True, capture_output=True,
                          text=True).stdout


class TestSensorGuest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        reason = guests.reason_to_skip()
        if not reason and not any(map(shutil.which, sensor_guest.ISO_TOOLS)):
            reason = 'needs genisoimage'
        if reason:
            self.skipTest(reason)
        from tracon_lab.testbed import sensor_guest
        self.sensor_guest = sensor_guest
        images.default_cache().mkdir(parents=True, exist_ok=True)
        self.cache = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(dir=images.default_cache(), prefix='test-')))
        self.cache.chmod(0o755)

    def booted(self):
        return self.sensor_guest.booted(self.cache, '0')

    def running(self):
        """Processes of guests whose files are in the cache."""
        found = []
        for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
            try:
                command = path.read_bytes()
            except OSError:     # a process that has just ended
                continue
            if command.startswith(b'/usr/bin/qemu') and os.fsencode(self.cache) in command:
                found.append(path.parent.name)
        return found

    def test_it_does_every_piece_of_work_in_80_mib(self):
        with self.booted() as sensor:
            self.assertEqual(1, len(self.running()))
            network, _dot, last = sensor.address.rpartition('.')
            host = f' {network}.{int(last) - 1}/30 '
            self.assertIn(host, addresses())
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
        self.assertEqual([], self.running())
        self.assertNotIn(host, addresses())
        self.assertEqual([], list(self.cache.glob('sensor-*/')))

    def test_what_it_boots_is_small(self):
        built = images.build(self.cache)
        sizes = [path.stat().st_size for path in (built.kernel, built.initramfs, built.disk)]
        self.assertLess(sizes[1], 2 << 20)
        self.assertLess(sum(sizes), 64 << 20)

    def test_one_that_does_not_answer_says_what_its_console_does(self):
        with mock.patch.object(self.sensor_guest, 'BOOT_TIMEOUT', 0.0):
            with self.assertRaisesRegex(errors.TestbedError, 'does not answer.*console ends'):
                with self.booted():
                    pass
        self.assertEqual([], self.running())
