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

"""The benchmark of fitting: its reference finds what ours finds."""

import unittest

import numpy as np

from tracon_watcher.cmd import bench_models
from tracon_watcher.models import stepwise


class TestReference(unittest.TestCase):

    def test_both_searches_choose_the_same_terms(self):
        for seed in range(4):
            rng = np.random.default_rng(seed)
            columns = rng.uniform(size=(80, 12))
            response = 1 + columns @ (rng.uniform(size=12) * (rng.random(12) < 0.4))
            response += rng.normal(0, 0.1, 80)
            ours = stepwise.search(columns, response)
            self.assertEqual(set(np.flatnonzero(ours.chosen).tolist()),
                             bench_models.obvious(columns, response))
