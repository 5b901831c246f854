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

"""What a flavor says of how its VMs share cores."""

import unittest

from tracon_watcher.placement import limits


class TestWeight(unittest.TestCase):

    def test_extra_specs(self):
        for specs, expected in (
                ({}, 1.0), ({'quota:cpu_shares': '50'}, 0.5), ({'quota:cpu_shares': '100'}, 1.0),
                ({'quota:cpu_shares': '1024'}, 10.24), ({'quota:cpu_shares': '999999'}, 100.0),
                ({'hw:cpu_policy': 'dedicated'}, 0.0), ({'resources:PCPU': '4'}, 0.0),
                ({'hw:cpu_policy': 'shared'}, 1.0),
                ({'hw:cpu_policy': 'mixed', 'quota:cpu_shares': '200'}, 2.0)):
            self.assertEqual(expected, limits.cpu_weight(specs), specs)

    def test_what_is_no_number_is_not_stated(self):
        for text in ('', 'many', 'nan', 'inf', '0', '-5', None):
            self.assertEqual(1.0, limits.cpu_weight({'quota:cpu_shares': text}), text)
