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

"""How long it takes to find the rates of a whole data centre."""

import time
import unittest

import numpy as np

from tracon_watcher.contention import intervals

EPOCH = 1.7e9


class TestIntervals(unittest.TestCase):

    def test_a_data_centre_takes_less_than_a_few_seconds(self):
        vms, polls = 200000, 5
        at = np.repeat(np.arange(polls) * 60.0, vms) + EPOCH
        values = np.repeat(np.arange(polls) * 60e9, vms)[:, None] * np.ones(11)
        start = time.process_time()
        result = intervals.between(np.tile(np.arange(vms), polls), at, values, 0)
        self.assertLess(time.process_time() - start, 10.0)
        self.assertEqual(vms * (polls - 1), result.known().sum())
        np.testing.assert_array_equal(1e9, result.rates)
