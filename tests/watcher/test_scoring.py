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

"""The scoring engines: predictions on request."""

import json
import os
import tempfile
import unittest
from unittest import mock

import numpy as np
from oslo_config import cfg

from tests import synthetic
from tracon_watcher.conf import decision_engine as options
from tracon_watcher.decision_engine import scoring
from tracon_watcher.decision_engine import source
from tracon_watcher import errors
from tracon_watcher.placement import cluster
from tracon_watcher.placement import snapshot


class ScoringTestCase(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = os.path.join(directory.name, 'snapshot')
        snapshot.write(path, cluster.build([]), synthetic.models())
        options.register_opts(cfg.CONF)
        cfg.CONF.set_override('snapshot_file', path, options.GROUP.name)
        self.addCleanup(cfg.CONF.clear_override, 'snapshot_file', options.GROUP.name)
        self.engines = scoring.InterferenceScoringContainer.get_scoring_engine_list()

    def ask(self, engine, **features):
        return json.loads(engine.calculate_score(json.dumps({
            'host_type': synthetic.HOST_TYPE, 'target': [100, 50, 0.5, 0.1],
            'background': [0, 0, 0, 0], **features})))

    def test_it_says_what_the_model_says(self):
        background = [200.0, 100.0, 0.5, 0.2]
        for engine in self.engines:
            self.assertEqual({'score': 1.0, 'clamped': False, 'trust': 1.0}, self.ask(engine))
            model = synthetic.model(json.loads(engine.get_metainfo())['response'])
            expected = model.predict(np.array([[100, 50, 0.5, 0.1]]), np.array([background]))[0]
            self.assertAlmostEqual(expected, self.ask(engine, background=background)['score'])
            self.assertTrue(self.ask(engine, background=[1e9, 0, 0, 0])['clamped'])

    def test_from_the_engine(self):
        cfg.CONF.set_override('snapshot_source', 'engine', options.GROUP.name)
        self.addCleanup(cfg.CONF.clear_override, 'snapshot_source', options.GROUP.name)
        told = snapshot.Snapshot(cluster.build([]), synthetic.models(), 60.0, 1,
                                 {synthetic.HOST_TYPE: 0.4})
        listening = mock.Mock(current=told)
        with mock.patch.object(source, 'listening', autospec=True, return_value=listening):
            self.assertEqual({'score': 1.0, 'clamped': False, 'trust': 0.4},
                             self.ask(self.engines[0]))

    def test_bad_features_are_named(self):
        engine = self.engines[0]
        for features, words in (({'target': [1, 2]}, 'target.*4 columns'),
                                ({'background': [-1, 0, 0, 0]}, 'background.*negative'),
                                ({'background': [None, 0, 0, 0]}, 'background.*four numbers'),
                                ({'host_type': 'other'}, 'host_type.*synthetic'),
                                ({'more': 1}, 'features')):
            with self.assertRaisesRegex(errors.InvalidOption, words):
                self.ask(engine, **features)
        with self.assertRaisesRegex(errors.InvalidOption, 'expected JSON'):
            engine.calculate_score('banana')
