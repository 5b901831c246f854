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

import unittest

from tracon_watcher import characteristics
from tracon_watcher.telemetry import meters


class TestMeters(unittest.TestCase):

    def test_every_characteristic_is_fed_by_one_meter_of_vms(self):
        feeding = [meter.feeds for meter in meters.VM_METERS
                   if meter.feeds in characteristics.NAMES]
        self.assertEqual(sorted(characteristics.NAMES), sorted(feeding))

    def test_each_scope_has_a_clock_of_its_own(self):
        for clock, scope in ((meters.CLOCK, meters.VM_METERS),
                             (meters.HOST_CLOCK, meters.HOST_METERS)):
            self.assertEqual([clock], [meter for meter in scope if meter.feeds == 'elapsed time'])
            self.assertEqual('ns', clock.unit)

    def test_names_are_unique_and_tell_the_scope(self):
        self.assertEqual(len(meters.METERS), len(meters.BY_NAME))
        for meter in meters.METERS:
            with self.subTest(meter=meter.name):
                self.assertTrue(meter.name.startswith('tracon.'))
                self.assertEqual(meter.scope == meters.HOST,
                                 meter.name.startswith('tracon.host.'))
                self.assertEqual(meter.scope == meters.PROBE,
                                 meter.name.startswith('tracon.probe.'))
                self.assertEqual(
                    'gauge' if meter.scope == meters.PROBE or meter in (
                        meters.HOST_DISKS, meters.HOST_MEMORY, meters.HOST_MEMORY_AVAILABLE)
                    else 'cumulative', meter.type)
                self.assertTrue(meter.description)

    def test_what_is_there_on_every_host_is_enough_for_the_characteristics(self):
        everywhere = {meter.feeds for meter in meters.VM_METERS if meter.everywhere}
        self.assertLessEqual({*characteristics.NAMES, 'elapsed time'}, everywhere)
