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

"""What is said of hosts and their VMs."""

import dataclasses
import math

import numpy as np

from tests.unit.api import base
from tracon_watcher.engine import probes
from tracon_watcher.placement import queues


class Hosts(base.ApiCase):

    def names(self, **query):
        return [one['name'] for one in self.get('/v1/hosts', **query)['hosts']]

    def test_sums_and_worst(self):
        found = {one['name']: one for one in self.get('/v1/hosts')['hosts']}
        self.assertEqual(['alpha', 'beta', 'delta', 'gamma'], sorted(found))
        alpha = found['alpha']
        self.assertEqual((2, 1, 'known', 'synthetic', 'local'), tuple(
            alpha[name] for name in ('vms', 'in_breach', 'status', 'type', 'storage')))
        cluster = self.view.assessor.cluster
        own = slice(cluster.first[cluster.host_index['alpha']],
                    cluster.first[cluster.host_index['alpha'] + 1])
        slow, ratio = (one[own] for one in self.view.assessor.log_responses())
        self.assertAlmostEqual(slow.sum() + ratio.sum(), alpha['harm'], places=3)
        self.assertAlmostEqual(np.exp(slow.max()), alpha['slowdown']['predicted'], places=3)
        self.assertEqual(1.4, alpha['slowdown']['observed'])
        # The counters of the web server show less than what the batch job is predicted.
        self.assertEqual('batch', alpha['worst']['name'])
        self.assertEqual(0.0, found['delta']['harm'])
        self.assertIsNone(found['delta']['worst'])
        gamma = found['gamma']
        self.assertEqual('unknown_cores', gamma['status'])
        self.assertEqual([None] * 3, list(gamma['slowdown'].values()))
        self.assertIsNone(gamma['harm'])

    def test_show_has_its_vms_the_most_harmful_first(self):
        found = self.get('/v1/hosts/alpha')['host']
        self.assertEqual(['batch', 'web'], [one['name'] for one in found['residents']])
        self.assertIn('no host nowhere', self.refused(404, '/v1/hosts/nowhere')['detail'])

    def drift(self, coverage):
        self.view = base.cloud(self.now, learnt={'synthetic': queues.LearnedParameters(
            vm_hours=30.0, coverage=coverage)})

    def test_one_of_a_type_that_has_drifted(self):
        self.drift(0.32)
        found = {one['name']: one['status'] for one in self.get('/v1/hosts')['hosts']}
        self.assertEqual({'alpha': 'drifted', 'beta': 'drifted', 'delta': 'drifted',
                          'gamma': 'unknown_cores'}, found)
        self.assertEqual(['alpha', 'beta', 'delta'], sorted(self.names(status='drifted')))
        shown = self.get('/v1/hosts/alpha')['host']
        self.assertEqual('drifted', shown['status'])
        # What would be predicted is not said, what is observed is.
        self.assertEqual((None, 1.4), (shown['slowdown']['predicted'], shown['slowdown']['now']))
        self.assertEqual({'drifted', 'unknown_cores'},
                         {one['status'] for one in self.get('/v1/vms')['vms']})
        # Trusted by more than half it is believed.
        self.drift(0.48)
        self.assertEqual('known', self.get('/v1/hosts/alpha')['host']['status'])

    def test_stale(self):
        self.now += 601
        found = self.get('/v1/hosts/alpha')['host']
        self.assertEqual('stale', found['status'])
        self.assertIsNone(found['harm'])
        self.assertEqual(0, found['in_breach'])

    def test_contention_that_a_probe_feels(self):
        def felt(state, ratio, low, age=0.0):
            return probes.RelativeReading(state, self.now - age, ratio, low)
        quiet = felt(probes.QUIET, 1.01, 1.0)
        for of, expected in (
                ({}, 'unknown'),
                ({'connection': quiet, 'memory': quiet, 'storage': quiet}, 'quiet'),
                ({'connection': quiet, 'memory': felt(probes.CONTENDED, 1.8, 1.5)}, 'contended'),
                ({'connection': quiet, 'memory': quiet}, 'unknown'),
                ({'connection': quiet, 'memory': quiet,
                  'storage': felt(probes.QUIET, 1.01, 1.0, age=601)}, 'unknown')):
            self.view = dataclasses.replace(self.view, felt={
                'alpha': {**probes.SILENT, **of}} if of else {})
            found = self.get('/v1/hosts/alpha')['host']['contention']
            self.assertEqual(expected, found['state'])
            self.assertEqual(['connection', 'memory', 'storage'], list(found['phases']))
            self.assertEqual(1.0, found['slowdown'])
            if expected == 'contended':
                self.assertEqual((1.8, 1.5), (found['phases']['memory']['ratio'],
                                              found['phases']['memory']['low']))
        self.assertEqual('unknown', self.get('/v1/hosts/beta')['host']['contention']['state'])

    def test_what_contention_costs_each_vm(self):
        self.feel('alpha', probes.RelativeReading(probes.CONTENDED, self.now, 1.8, 1.5), 0.1)
        self.assertAlmostEqual(
            math.exp(0.1), self.get('/v1/hosts/alpha')['host']['contention']['slowdown'])
        self.assertEqual(1.0, self.get('/v1/hosts/beta')['host']['contention']['slowdown'])

    def test_filters_order_and_pages(self):
        self.assertEqual(['alpha', 'beta', 'delta', 'gamma'], self.names())
        self.assertEqual(['alpha', 'beta', 'delta'], self.names(type='synthetic'))
        self.assertEqual(['gamma'], self.names(status='unknown_cores'))
        self.assertEqual(['alpha'], self.names(in_breach='yes'))
        self.assertEqual(['alpha'], self.names(min_slowdown=1.6))
        self.assertEqual(['delta'], self.names(name='elt'))
        self.assertEqual(['beta', 'alpha', 'gamma', 'delta'],
                         self.names(sort_key='vms', sort_dir='desc'))
        self.assertEqual('gamma', self.names(sort_key='harm')[-1])
        self.assertEqual(['alpha', 'beta', 'gamma', 'delta'][:2],
                         self.names(sort_key='slowdown', sort_dir='desc')[:2])
        first = self.get('/v1/hosts', limit=3)
        rest = self.get(first['links'][0]['href'].removeprefix('http://localhost'))
        self.assertEqual(self.names(), [one['name'] for one in first['hosts'] + rest['hosts']])
        self.assertIn('known, unknown_cores', self.refused(400, '/v1/hosts', status='x')['detail'])
        for key in ('type', 'status', 'updated_at', 'in_breach'):
            self.assertEqual(4, len(self.names(sort_key=key)))


class Summary(base.ApiCase):

    def test_how_many_suffer_how_much(self):
        found = self.get('/v1/summary')['summary']
        vms = self.get('/v1/vms')['vms']
        slow = [one['slowdown']['now'] for one in vms]
        told = [one for one in slow if one is not None]
        self.assertEqual((6, 1, 1, 4), tuple(
            found[name] for name in ('vms', 'in_breach', 'unknown', 'hosts')))
        self.assertEqual((3, 1, 0), tuple(found['hosts_by_status'][name] for name in (
            'known', 'unknown_cores', 'stale')))
        self.assertAlmostEqual(max(told), found['slowdown']['worst'])
        self.assertAlmostEqual(np.mean(told), found['slowdown']['mean'])
        # The unknown VM is in no mean, and is counted.
        self.assertAlmostEqual(np.mean([1 / one for one in told]), found['efficiency']['mean'],
                               places=4)
        self.assertEqual([None if one is None else round(1 / one, 3) for one in slow],
                         [None if one['efficiency'] is None else round(one['efficiency'], 3)
                          for one in vms])
        bars = found['slowdown']['distribution']
        for bar in bars:
            self.assertEqual(bar['vms'], sum(
                bar['from'] <= one < (bar['to'] or math.inf) for one in told), bar)
        self.assertEqual(5, sum(bar['vms'] for bar in bars))

    def test_what_counters_show_below_one_counts_as_one(self):
        self.view.observed[:] = 0.97
        self.assertEqual(6, self.get('/v1/summary')['summary']['slowdown']['distribution'][0][
            'vms'])

    def test_of_nothing(self):
        self.now += 10000
        found = self.get('/v1/summary')['summary']
        self.assertEqual((6, 4), (found['unknown'] + sum(
            bar['vms'] for bar in found['slowdown']['distribution']),
            found['hosts_by_status']['stale'] + found['hosts_by_status']['unknown_cores']))


class HostTypes(base.ApiCase):

    def setUp(self):
        super().setUp()
        self.view = base.cloud(self.now, learnt={'synthetic': queues.LearnedParameters(
            1.4, 2.0, 0.2, 30.0, 0.05, 0.2, 0.6)})

    def types(self, **query):
        return {one['host_type']: one
                for one in self.get('/v1/host_types', **query)['host_types']}

    def test_what_was_learnt_and_how_far_it_is_trusted(self):
        found = self.types()
        self.assertEqual(['old', 'synthetic'], list(found))
        one = found['synthetic']
        self.assertEqual(('known', True, [1], 3, 5), tuple(
            one[name] for name in ('status', 'checked', 'cores', 'hosts', 'vms')))
        self.assertAlmostEqual(0.75, one['trust'])
        self.assertEqual((1.4, 2.0, 0.2, 30.0, 0.05, 0.2, 0.6), tuple(
            one[name] for name in ('gain', 'disk', 'spread', 'vm_hours', 'error',
                                   'constant_error', 'coverage')))

    def test_what_was_not_checked_says_so(self):
        one = self.types(sort_key='error')['old']
        self.assertEqual(('unknown_cores', False, 1.0, 1.0, 0.0, None), tuple(
            one[name] for name in ('status', 'checked', 'trust', 'gain', 'vm_hours', 'error')))

    def test_one_that_has_drifted(self):
        self.view = base.cloud(self.now, learnt={'synthetic': queues.LearnedParameters(
            vm_hours=30.0, coverage=0.32)})
        one = self.types()['synthetic']
        self.assertEqual('drifted', one['status'])
        self.assertAlmostEqual(0.4, one['trust'])

    def test_order_and_pages(self):
        self.assertEqual(['synthetic', 'old'], list(self.types(sort_key='trust')))
        first = self.get('/v1/host_types', limit=1, sort_key='host_type', sort_dir='desc')
        self.assertEqual('synthetic', first['host_types'][0]['host_type'])
        rest = self.get(first['links'][0]['href'].removeprefix('http://localhost'))
        self.assertEqual(['old'], [one['host_type'] for one in rest['host_types']])

    def test_of_a_cloud_of_which_nothing_is_known(self):
        self.now += 601
        self.view = dataclasses.replace(self.view, observed=np.full(6, np.nan))
        found = self.get('/v1/summary')['summary']
        self.assertEqual((6, None, None), (
            found['unknown'], found['efficiency']['mean'], found['slowdown']['mean']))
