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

import argparse
import unittest

import numpy as np

from tracon_lab.cmd import bench_engine


class BenchEngineTest(unittest.TestCase):

    def arguments(self, **given):
        return argparse.Namespace(**{'hosts': 3, 'vms_per_host': 2, 'cycles': 2,
                                     'formatter': 'json', **given})

    def test_a_cycle_is_the_sum_of_its_parts(self):
        columns, rows = bench_engine.Engine(None, None).take_action(self.arguments())
        self.assertEqual(len(columns), len(rows[0]))
        self.assertEqual('one cycle', rows[0][0])
        self.assertEqual(5, len(rows))
        for _what, seconds, _peak, _name, reference, ratio in rows:
            self.assertGreater(reference, 0.0)
            self.assertAlmostEqual(seconds / reference, ratio)
        self.assertGreaterEqual(rows[0][1], max(row[1] for row in rows[1:]))

    def test_telemetry_has_the_demand_that_it_was_made_of(self):
        source = bench_engine.Source(('a', 'b'), np.array([[100.0, 50.0, 0.5, 0.1]] * 2))
        source.poll()
        source.poll()
        found = source.read(0.0, source.now + 1, ('clock', 'guest'))
        first, last = found.values[found.row == 1]
        rates = (last - first) / (last[0] - first[0]) * 1e9
        np.testing.assert_allclose([100.0, 50.0], rates[4:6], rtol=0.1)
        self.assertEqual(60.0, found.at[2] - found.at[0])
