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

"""The demonstration in small: Nova, the filter and weigher, and Watcher, all real."""

import os
import pathlib
import tempfile
import unittest
from unittest import mock

from tests.unit.tracon_lab.models import synthetic
from tracon_lab.demo import crew
from tracon_lab.demo import oracle
from tracon_lab.demo import settings


class TestDemo(unittest.TestCase):

    def test_two_arms_and_an_audit(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        # A limit for one test, which an environment for tests may set, ends no demonstration.
        self.enterContext(mock.patch.dict(os.environ, OS_TEST_TIMEOUT='2'))
        measurements = os.path.join(folder, 'synthetic.csv')
        synthetic.write(measurements, synthetic.build(generator=16, backgrounds=12))
        small = settings.Settings((measurements,), 'synthetic', hosts=4, vms=6)
        shares = []
        found = dict(crew.run(
            [crew.Task(1, 'enforce, history', audit=True), crew.Task(1, 'stock')], small, folder,
            1, lambda task, share: shares.append(share)))
        self.assertEqual({'enforce, history', 'stock'}, {task.arm for task in found})
        for task, result in found.items():
            with self.subTest(arm=task.arm):
                self.assertEqual([], result['warnings'])
                hosts = [vm['host'] for vm in result['vms']]
                self.assertEqual(6, len(hosts))
                self.assertLessEqual(max(map(hosts.count, hosts)), 2)
                for vm in result['vms']:
                    if vm['neighbour'] is None:
                        self.assertEqual(1.0, vm['slowdown'])
                        self.assertEqual(1.0, vm['predicted_slowdown'])
        self.assertTrue(all(0 <= share <= 1 for share in shares))
        audit = found[crew.Task(1, 'enforce, history', audit=True)]['audit']
        self.assertTrue(audit['quiet'])
        self.assertEqual(0, audit['audits'][-1]['migrations'])
        self.assertEqual(len(audit['moves']), sum(one['efficacy']['live_migrations_count']
                                                  for one in audit['audits']))
        self.assertEqual(6 - len(audit['ended']), len(audit['after']))
        for move in audit['moves']:
            self.assertGreater(move['predicted_gain'], 0)
        hosts = {vm['name']: vm['host'] for vm in audit['during']}
        for move in audit['moves']:
            self.assertEqual(move['source'], hosts[move['vm']])
            hosts[move['vm']] = move['destination']
        self.assertEqual(hosts, {vm['name']: vm['host'] for vm in audit['after']})
        self.assertGreaterEqual(oracle.harm(audit['after']) + 1e-9, oracle.harm(audit['oracle']))

    def test_a_seed_has_one_result(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        measurements = os.path.join(folder, 'synthetic.csv')
        synthetic.write(measurements, synthetic.build(generator=16, backgrounds=12))
        small = settings.Settings((measurements,), 'synthetic', hosts=4, vms=7)
        audited = crew.Task(2, 'enforce, history', audit=True)
        tasks = [audited, crew.Task(2, 'stock')]

        def results(listed, processes, **environment):
            with mock.patch.dict(os.environ, environment):
                return {task: {**result, 'seconds': None} for task, result in crew.run(
                    listed, small, folder, processes, lambda task, share: None)}

        first = results(tasks, 1)
        # In another order, spread over other processes, and with another CPU's linear algebra.
        again = results(tasks[::-1], 2, PYTHONHASHSEED='7', OPENBLAS_CORETYPE='Haswell')
        for task in tasks:
            with self.subTest(task=task):
                self.assertEqual(_rounded(first[task]), _rounded(again[task]))


def _rounded(value):
    """Return a result in which numbers that differ by rounding alone are the same."""
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f'{value:.8g}') if isinstance(value, float) else value
