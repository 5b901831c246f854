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

"""Models of a directory that changes, and those who watch them."""

import os
import pathlib
import tempfile
import unittest

from tests import synthetic
from tests.unit.engine import drifting
from tests.unit.engine.test_freshness import times
from tracon_watcher.engine import freshness
from tracon_watcher.engine import model_directory
from tracon_watcher.prediction import store

TYPE = synthetic.HOST_TYPE


class TestModelDirectory(unittest.TestCase):

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)
        self.put(synthetic.models()[TYPE])
        self.files = model_directory.ModelDirectory(self.path, lambda *_report: None)

    def put(self, models, name=''):
        for model in models:
            store.save(model, self.path / f'{name}{model.response}.json')

    def test_models_that_are_the_same_remain_the_same_objects(self):
        before = self.files()[TYPE]
        os.utime(self.path / 'slowdown.json', (1, 1))
        self.assertIs(before, self.files()[TYPE])
        self.put(synthetic.models('other')['other'], 'other-')
        self.assertEqual({TYPE, 'other'}, set(self.files()))
        self.assertIs(before, self.files()[TYPE])

    def test_and_others_do_not(self):
        before, other = self.files()[TYPE], synthetic.models(seed=4)[TYPE]
        # One of the two is enough.
        store.save(other.iops_ratio, self.path / 'iops_ratio.json')
        after = self.files()[TYPE]
        self.assertEqual(other.iops_ratio.to_document(), after.iops_ratio.to_document())
        self.assertEqual(before.slowdown.to_document(), after.slowdown.to_document())
        self.assertIsNot(before, after)
        os.remove(self.path / 'slowdown.json')
        self.assertEqual({}, self.files())

    def test_what_has_drifted_stays_so_when_a_file_is_touched(self):
        watched, world = freshness.Freshness(drifting.POLLING), drifting.World(truth=times(1.7))
        with self.assertLogs('tracon_watcher.engine.freshness', 'WARNING'):
            for _cycle in range(10):
                world.cycle(watched, self.files())
        trust = watched.trust(self.files())
        self.assertLess(trust[TYPE], 0.5)
        os.utime(self.path / 'slowdown.json', (1, 1))
        self.assertEqual(trust, watched.trust(self.files()))
        world.cycle(watched, self.files())
        self.assertGreater(watched.due()[0].count, 100)
