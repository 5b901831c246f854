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

"""What limits a VM (made-up counters)."""

import unittest

import numpy as np

from tests.unit.tracon_lab.contention import test_calibration
from tracon_lab.contention import sizing


class TestSizing(unittest.TestCase):

    def limit(self, *args, vcpus=1.0, **kwargs):
        time = sizing.spent(test_calibration.counters(*args, **kwargs), vcpus)
        return sizing.limits(time)[0]

    def test_each_resource(self):
        self.assertEqual(sizing.CPU, self.limit(0.95))
        self.assertEqual(sizing.CORE, self.limit(0.4, delay=0.55))
        self.assertEqual(sizing.STORAGE, self.limit(0.2, reads=50, read_latency=0.014))
        self.assertEqual(sizing.NOTHING, self.limit(0.1, reads=5, read_latency=0.01))

    def test_many_virtual_cpus_share(self):
        self.assertEqual(sizing.NOTHING, self.limit(0.95, vcpus=4.0))

    def test_unknown_is_not_idle(self):
        self.assertIsNone(self.limit(np.nan))
        self.assertIsNone(self.limit(0.1, reads=50, read_latency=np.nan))
        self.assertIsNone(self.limit(0.1, reads=np.nan))

    def test_no_request_has_no_latency_to_know(self):
        self.assertEqual(sizing.NOTHING, self.limit(0.1, reads=0, read_latency=np.nan))

    def test_shares_add_up_even_with_overlapping_requests(self):
        time = sizing.spent(test_calibration.counters(0.5, delay=0.2, reads=900,
                                                      read_latency=0.01))
        np.testing.assert_allclose(
            time.running + time.delayed + time.storage + time.idle, [1.0])
        self.assertEqual(0.0, time.idle[0])

    def test_advice_for_every_limit(self):
        self.assertEqual({sizing.CPU, sizing.CORE, sizing.STORAGE, sizing.NOTHING},
                         set(sizing.ADVICE))
