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

"""The four characteristics of a VM."""

import unittest

import numpy as np

from tracon_watcher import characteristics


class AsCharacteristics(unittest.TestCase):

    def test_one_vm_is_one_row(self):
        self.assertEqual((1, 4), characteristics.as_characteristics([1, 2, 0.5, 0]).shape)

    def test_unknown_stays_unknown(self):
        self.assertTrue(np.isnan(characteristics.as_characteristics([np.nan, 0, 0, 0])[0, 0]))

    def test_faults_name_the_characteristic(self):
        with self.assertRaisesRegex(ValueError, r'guest_cpu of row 0 is -1.0'):
            characteristics.as_characteristics([1, 2, -1, 0])
        with self.assertRaisesRegex(ValueError, 'host_cpu of row 1 is inf'):
            characteristics.as_characteristics([[0, 0, 0, 0], [1, 2, 1, np.inf]])
        with self.assertRaisesRegex(ValueError, '4 columns'):
            characteristics.as_characteristics([1, 2, 3])

    def test_request_rate_and_known(self):
        profiles = np.array([[3.0, 4.0, 1, 1], [np.nan, 1, 1, 1]])
        self.assertEqual(7.0, characteristics.request_rate(profiles)[0])
        self.assertEqual([True, False], characteristics.is_known(profiles).tolist())
