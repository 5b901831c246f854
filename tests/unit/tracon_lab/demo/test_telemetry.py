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

import dataclasses
import os
import tempfile
import unittest

import numpy as np

from tests.unit.tracon_lab.demo import synthetic
from tracon_lab.demo import arms
from tracon_lab.demo import telemetry
from tracon_lab.demo import workload
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import snapshot


class TestTelemetry(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.path = os.path.join(
            self.enterContext(tempfile.TemporaryDirectory()), 'snapshot.jsonl')
        self.truth = dataclasses.replace(synthetic.small_truth(), storage_waits={'loud': 0.3})
        self.drawn = workload.draw(1, self.truth, 4, history=20)
        self.telemetry = telemetry.Telemetry(
            self.path, ['host01', 'host02'], self.truth, 'image', self.drawn.history)

    def start(self, request, host):
        self.telemetry.running[request.name] = telemetry.Running(
            request, f'uuid-{request.name}', host, request.profile, request.program)

    def request(self, name, program):
        return workload.Request(name, 'project1', 'plain', program,
                                self.truth.profiles[program][0])

    def expected(self, request):
        history = snapshot.read(self.path).cluster.history
        return newcomer_profiles.expected(history, *self.telemetry.kind(request))

    def test_what_runs_is_written_with_its_own_profile_and_limits(self):
        request = self.drawn.requests[0]
        self.start(request, 'host02')
        self.assertEqual(1, self.telemetry.write())
        state = snapshot.read(self.path).cluster
        self.assertEqual((f'uuid-{request.name}',), state.uuids)
        self.assertEqual(1, state.host[0])
        np.testing.assert_array_equal([request.profile], state.profiles)
        self.assertEqual(request.limits, state.resident_limits(0))
        np.testing.assert_array_equal([1, 1], state.cores)

    def test_how_long_a_program_waits_for_storage_is_told_where_it_is_known(self):
        for name, program in (('a', 'loud'), ('b', 'touchy')):
            self.start(self.request(name, program), 'host01')
        foretold = self.request('c', 'loud')
        self.telemetry.write(foretold)
        np.testing.assert_array_equal([0.3, np.nan],
                                      snapshot.read(self.path).cluster.storage_wait)
        self.assertEqual(0.3, self.expected(foretold).storage_wait)

    def test_a_newcomer_is_expected_to_do_what_its_kind_did(self):
        request = self.drawn.requests[0]
        self.telemetry.write()
        kind = self.telemetry.kind(request)
        same = [vm.profile for vm in self.drawn.history if self.telemetry.kind(vm) == kind]
        alike = same or [vm.profile for vm in self.drawn.history if vm.flavor == request.flavor]
        np.testing.assert_allclose(np.mean(alike, axis=0), self.expected(request).mean)

    def test_an_oracle_foretells_one_request_exactly(self):
        foretold = self.drawn.requests[2]
        self.telemetry.write(foretold)
        found = self.expected(foretold)
        np.testing.assert_array_equal(foretold.profile, found.mean)
        np.testing.assert_array_equal(np.zeros(4), found.deviation)
        self.telemetry.write()
        self.assertNotEqual('oracle', self.expected(foretold).source)

    def test_versions_rise(self):
        self.assertEqual([1, 2, 3], [self.telemetry.write() for _ in range(3)])
        self.assertEqual(3, snapshot.read(self.path).version)

    def test_predictions_are_those_of_the_law(self):
        for name, program, host in (('a', 'calm', 'host01'), ('b', 'calm', 'host01'),
                                    ('c', 'calm', 'host02'), ('d', 'loud', 'host02'),
                                    ('e', 'calm', 'host03')):
            self.start(self.request(name, program), host)
        self.telemetry.hosts.append('host03')
        found = arms.predictions(self.telemetry)
        # Two that want nearly all of one core.
        self.assertAlmostEqual(1.8, found['a']['predicted_slowdown'], delta=0.15)
        self.assertEqual(found['a'], found['b'])
        self.assertGreater(found['d']['predicted_slowdown'], 1.1)
        self.assertLess(found['d']['predicted_iops_ratio'], 1.0)
        self.assertNotIn('predicted_iops_ratio', found['c'])
        self.assertEqual(1.0, found['e']['predicted_slowdown'])
        for vm in found.values():
            self.assertLessEqual(vm['predicted_low'], vm['predicted_slowdown'])
            self.assertLessEqual(vm['predicted_slowdown'], vm['predicted_high'])
