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

"""Whose models are trusted enough."""

import unittest

import numpy as np

from tests import synthetic
from tracon_watcher.placement import trust


class TestTrust(unittest.TestCase):

    def test_less_than_half(self):
        np.testing.assert_array_equal(
            [True, True, False, False], trust.distrusted(np.array([0.0, 0.49, 0.5, 1.0])))

    def test_models_that_are_believed(self):
        models = {**synthetic.models('one'), **synthetic.models('two')}
        self.assertEqual({'one', 'two'}, set(trust.believed(models, {})))
        self.assertEqual({'two'}, set(trust.believed(models, {'one': 0.4, 'two': 0.6})))
