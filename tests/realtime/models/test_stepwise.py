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

"""How long a search takes."""

import time
import unittest

import numpy as np

from tracon_lab.models import nonlinear


class TestSearch(unittest.TestCase):

    def test_a_thousand_points_take_well_under_a_second(self):
        rng = np.random.default_rng(12)
        features = rng.random((1000, 8))
        response = features.sum(axis=1) + rng.normal(size=1000)
        # Process time: another process's load is not ours.
        start = time.process_time()
        model = nonlinear.StepwiseQuadratic('full').fit(features, response)
        self.assertLess(time.process_time() - start, 1.0)
        self.assertEqual(45, model.rank_)
