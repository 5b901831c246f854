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

import json
import unittest

import numpy as np

from tests.unit.cmd import test_model
from tests.unit import folder
from tests.unit.models import synthetic
from tracon_watcher.cmd import bench_models
from tracon_watcher.models import stepwise


class TestCommand(folder.FolderCase):

    def test_rows_and_what_they_are_compared_with(self):
        path = self.folder / 'synthetic.csv'
        synthetic.write(path, synthetic.build(names=('cpu', 'randread', 'mixed')))
        code, out, err = test_model.run('bench', 'models', str(path), '--points', '60',
                                        '--rounds', '1', '-f', 'json')
        self.assertEqual(0, code, err)
        search, refit = json.loads(out)
        for row in (search, refit):
            self.assertAlmostEqual(row['ratio'], row['seconds'] / row['reference seconds'],
                                   delta=0.01 * row['ratio'] + 1e-4)
        self.assertEqual(3600.0, refit['reference seconds'])

    def test_bad_options(self):
        for option, value in (('--points', '59'), ('--rounds', '0')):
            code, _out, err = test_model.run('bench', 'models', option, value)
            self.assertEqual(2, code)
            self.assertIn(f'{option}={value}', err)


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
