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

from tracon_lab.models import naming
from tracon_lab.testbed import errors
from tracon_lab.testbed import programs


class TestPrograms(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.catalogue = programs.programs(500, 300)

    def test_generator_name_and_setting_agree(self):
        name = programs.generator(50, 200, 100)
        self.assertEqual('gen-c050-r200-w100', name)
        self.assertTrue(naming.is_generator(name))
        unit = programs.unit(name, self.catalogue)
        self.assertAlmostEqual(0.010, unit.cpu_seconds)
        self.assertAlmostEqual(4, unit.reads)
        self.assertAlmostEqual(2, unit.writes)
        self.assertEqual(20_000, unit.period)

    def test_open_loop_rates(self):
        unit = self.catalogue['openread']
        self.assertAlmostEqual(500, unit.reads / (unit.period * 1e-6))

    def test_command(self):
        command = self.catalogue['seqread'].command(1e9, seed=3)
        self.assertEqual('run cpu=0 reads=4.000000 writes=0.000000 rsize=65536 wsize=4096 '
                         'rseq=1 wseq=0 period=0 think=0 loops=1 queries=0 walk=0 '
                         'seed=3', command)

    def test_cpu_time_becomes_iterations(self):
        self.assertIn(' cpu=5000000 ', self.catalogue['calc'].command(1e9, seed=1))

    def test_unknown_program(self):
        with self.assertRaisesRegex(errors.TestbedError, "'blast'.*calc.*gen-c050-r200-w100"):
            programs.unit('blast', self.catalogue)
