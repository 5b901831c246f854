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

import concurrent.futures
import multiprocessing
import unittest

import numpy as np

from tracon_lab.simulated_cloud import watcher_audit

NAMES = ('host-0', 'host-1', 'host-2')


class AuditTest(unittest.TestCase):

    def audit(self, host, used):
        # Watcher's options and Nova's, which other tests know, have the same names.
        with concurrent.futures.ProcessPoolExecutor(
                1, multiprocessing.get_context('spawn')) as pool:
            return pool.submit(
                watcher_audit.audit, NAMES, 4, 64.0, np.array(host), np.arange(len(host)),
                np.full(len(host), 2), np.array(used), 1).result()

    def test_busy_vms_leave_the_busy_host(self):
        moves = self.audit([0, 0, 0, 1, 2], [0.9, 0.8, 0.7, 0.1, 0.1])
        self.assertTrue(moves)
        for number, destination in moves:
            self.assertIn(number, (0, 1, 2))
            self.assertIn(destination, (1, 2))

    def test_below_the_threshold_nothing_moves(self):
        self.assertEqual([], self.audit([0, 1, 2], [0.3, 0.3, 0.4]))
