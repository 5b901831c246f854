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
from tracon_watcher.decision_engine import snapshot_source
from tracon_watcher import errors
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import queues
from tracon_watcher.placement import snapshot

HEAVY = {'profile': [400, 100, 0.8, 0.1], 'vcpus': 1, 'storage_wait': 0.05}
QUIET = {'profile': [1, 0, 0.3, 0.1], 'vcpus': 2, 'storage_wait': None}
STATE = cluster.build([cluster.Host('h', (), synthetic.HOST_TYPE, cores=2)])


class ScoringTestCase(unittest.TestCase):

    def setUp(self):
        path = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), 'snapshot')
        snapshot.write(path, STATE)
        options.register_opts(cfg.CONF)
        cfg.CONF.set_override('snapshot_file', path, options.GROUP.name)
        self.addCleanup(cfg.CONF.clear_override, 'snapshot_file', options.GROUP.name)
        self.engines = scoring.InterferenceScoringContainer.get_scoring_engine_list()

    def ask(self, engine, *vms, **features):
        return json.loads(engine.calculate_score(json.dumps({
            'cores': 1, 'vms': vms or [HEAVY, HEAVY], 'host_type': None, **features})))

    def test_it_says_what_hosts_are_judged_by(self):
        law = assessment.Assessor(cluster.build([cluster.Host('h', tuple(
            cluster.Resident(str(place), one['profile'], vcpus=one['vcpus'], storage_wait=wait)
            for place, (one, wait) in enumerate(((HEAVY, 0.05), (QUIET, np.nan)))), cores=1)])).law
        for engine, index, sign in zip(self.engines, (0, 1), (1, -1), strict=True):
            response = json.loads(engine.get_metainfo())['response']
            self.assertEqual(f'tracon_{response}', engine.get_name())
            found = self.ask(engine, HEAVY, QUIET)
            bounds = sorted(np.exp(sign * law.bound(level)[index, 0]) for level in (0.2, 0.8))
            for name, expected in (('score', np.exp(sign * law.log_response[index, 0])),
                                   ('lower', bounds[0]), ('upper', bounds[1])):
                self.assertAlmostEqual(expected, found[name], msg=f'{response} {name}')
            self.assertLess(found['lower'], found['score'])
            self.assertLess(found['score'], found['upper'])

    def test_a_vm_with_cores_enough_or_without_neighbours_suffers_nothing(self):
        alone = {'score': 1.0, 'lower': 1.0, 'upper': 1.0}
        for engine in self.engines:
            self.assertEqual(alone, self.ask(engine, HEAVY))
            self.assertAlmostEqual(1.0, self.ask(engine, HEAVY, QUIET, cores=64)['score'], 2)

    def test_who_does_no_io_has_no_ratio_of_it(self):
        slowdown, ratio = self.engines
        self.assertGreater(self.ask(slowdown, QUIET, HEAVY)['score'], 1.2)
        self.assertEqual({'score': None, 'lower': None, 'upper': None},
                         self.ask(ratio, QUIET, HEAVY))

    def told(self, learnt):
        """Have the engine tell what was learnt."""
        cfg.CONF.set_override('snapshot_source', 'engine', options.GROUP.name)
        self.addCleanup(cfg.CONF.clear_override, 'snapshot_source', options.GROUP.name)
        listening = mock.Mock(current=snapshot.Snapshot(
            STATE, 60.0, 1, {synthetic.HOST_TYPE: learnt}))
        return mock.patch.object(snapshot_source, 'listening', autospec=True,
                                 return_value=listening)

    def test_what_the_engine_has_learnt_counts_for_hosts_of_the_type(self):
        with self.told(queues.LearnedParameters(gain=2.0)):
            plain = self.ask(self.engines[0])
            taught = self.ask(self.engines[0], host_type=synthetic.HOST_TYPE)
        self.assertGreater(taught['score'], plain['score'] + 0.1)

    def test_nothing_is_said_of_hosts_of_a_type_that_has_drifted(self):
        with self.told(queues.LearnedParameters(vm_hours=30.0, coverage=0.3)):
            with self.assertRaisesRegex(errors.InvalidOption, 'host_type=.synthetic.*differ too'):
                self.ask(self.engines[0], host_type=synthetic.HOST_TYPE)
            self.assertGreater(self.ask(self.engines[0])['score'], 1.5)

    def test_bad_features_are_named(self):
        engine = self.engines[0]
        for features, words in (
                ({'vms': [{**HEAVY, 'profile': [1, 2]}]}, r'vms\[0\].profile.*4 entries'),
                ({'vms': [HEAVY, {**HEAVY, 'profile': [1, 2, -3, 4]}]},
                 r'vms\[1\].profile\[2\] is -3.*at least 0'),
                ({'vms': [{**HEAVY, 'vcpus': 1.5}]}, r'vms\[0\].vcpus is 1.5.*whole number'),
                ({'vms': [{**HEAVY, 'storage_wait': 2}]}, 'storage_wait is 2.*from 0 to 1'),
                ({'vms': [{**HEAVY, 'vcpu': 2}]}, r'vms\[0\].vcpu is 2: unknown field'),
                ({'vms': []}, 'vms is .*expected the VM that is scored'),
                ({'vms': HEAVY}, 'expected a list of objects'),
                ({'cores': 0}, 'cores is 0'), ({'cores': None}, 'cores is None'),
                ({'host_type': 'other'}, 'host_type=.other.*synthetic'),
                ({'more': 1}, 'more is 1: unknown field')):
            with self.assertRaisesRegex(errors.TraconError, words):
                self.ask(engine, **features)
        with self.assertRaisesRegex(errors.InvalidDocument, 'features.*no valid JSON'):
            engine.calculate_score('banana')
