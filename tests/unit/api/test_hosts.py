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

import numpy as np

from tests.unit.api import base
from tracon_watcher.placement import assessment
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
        slow, ratio = (one[own] for one in self.view.assessor.exponents())
        self.assertAlmostEqual(slow.sum() + ratio.sum(), alpha['harm'], places=3)
        self.assertAlmostEqual(np.exp(slow.max()), alpha['slowdown']['predicted'], places=3)
        self.assertEqual(1.9, alpha['slowdown']['observed'])
        # The counters of the web server show less than what the batch job is predicted.
        self.assertEqual('batch', alpha['worst']['name'])
        self.assertEqual(0.0, found['delta']['harm'])
        self.assertIsNone(found['delta']['worst'])
        gamma = found['gamma']
        self.assertEqual('no_model', gamma['status'])
        self.assertEqual([None] * 3, list(gamma['slowdown'].values()))
        self.assertIsNone(gamma['harm'])

    def test_show_has_its_vms_the_most_harmful_first(self):
        found = self.get('/v1/hosts/alpha')['host']
        self.assertEqual(['batch', 'web'], [one['name'] for one in found['residents']])
        self.assertIn('no host nowhere', self.refused(404, '/v1/hosts/nowhere')['detail'])

    def test_one_whose_model_has_drifted(self):
        self.view = dataclasses.replace(self.view, trust={'synthetic': 0.4})
        found = {one['name']: one['status'] for one in self.get('/v1/hosts')['hosts']}
        self.assertEqual({'alpha': 'drifted', 'beta': 'drifted', 'delta': 'drifted',
                          'gamma': 'no_model'}, found)
        self.assertEqual(['gamma'], self.names(status='no_model'))
        self.assertEqual(['alpha', 'beta', 'delta'], sorted(self.names(status='drifted')))
        shown = self.get('/v1/hosts/alpha')['host']
        self.assertEqual('drifted', shown['status'])
        # What it predicts is shown nevertheless.
        self.assertIsNotNone(shown['slowdown']['predicted'])
        self.assertEqual({'drifted', 'no_model'},
                         {one['status'] for one in self.get('/v1/vms')['vms']})
        # Trusted by more than half it is believed.
        self.view = dataclasses.replace(self.view, trust={'synthetic': 0.6})
        self.assertEqual('known', self.get('/v1/hosts/alpha')['host']['status'])

    def test_stale(self):
        self.now += 601
        found = self.get('/v1/hosts/alpha')['host']
        self.assertEqual('stale', found['status'])
        self.assertIsNone(found['harm'])
        self.assertEqual(0, found['in_breach'])

    def test_filters_order_and_pages(self):
        self.assertEqual(['alpha', 'beta', 'delta', 'gamma'], self.names())
        self.assertEqual(['alpha', 'beta', 'delta'], self.names(type='synthetic'))
        self.assertEqual(['gamma'], self.names(status='no_model'))
        self.assertEqual(['alpha'], self.names(in_breach='yes'))
        self.assertEqual(['alpha'], self.names(min_slowdown=5))
        self.assertEqual(['delta'], self.names(name='elt'))
        self.assertEqual(['beta', 'alpha', 'gamma', 'delta'],
                         self.names(sort_key='vms', sort_dir='desc'))
        self.assertEqual('gamma', self.names(sort_key='harm')[-1])
        self.assertEqual(['alpha', 'beta', 'gamma', 'delta'][:2],
                         self.names(sort_key='slowdown', sort_dir='desc')[:2])
        first = self.get('/v1/hosts', limit=3)
        rest = self.get(first['links'][0]['href'].removeprefix('http://localhost'))
        self.assertEqual(self.names(), [one['name'] for one in first['hosts'] + rest['hosts']])
        self.assertIn('known, no_model', self.refused(400, '/v1/hosts', status='x')['detail'])
        for key in ('type', 'status', 'updated_at', 'in_breach'):
            self.assertEqual(4, len(self.names(sort_key=key)))


class HostTypes(base.ApiCase):

    def setUp(self):
        super().setUp()
        state = self.view.assessor.cluster
        self.view = dataclasses.replace(self.view, assessor=assessment.Assessor(
            dataclasses.replace(state, cores=np.where(
                [one == 'synthetic' for one in state.host_type], np.nan, 16.0)),
            self.view.assessor.models, dataclasses.replace(
                self.view.assessor.settings, learnt={'no model': queues.Learnt(
                    1.4, 2.0, 0.2, 30.0, 0.05, 0.2, 0.8)})))

    def test_what_judges_them_and_how_well(self):
        found = {one['host_type']: one for one in self.get('/v1/host_types')['host_types']}
        self.assertEqual(sorted({name or '' for name in self.view.assessor.cluster.host_type}),
                         sorted(found))
        self.assertEqual(('models', [], 3, False, None), tuple(
            found['synthetic'][name]
            for name in ('judged_by', 'cores', 'hosts', 'checked', 'gain')))
        other = found['no model']
        self.assertEqual(('law', [16], True, 1.4, 2.0, 0.2, 30.0, 0.05, 0.2, 0.8), tuple(
            other[name] for name in ('judged_by', 'cores', 'checked', 'gain', 'disk', 'spread',
                                     'vm_hours', 'error', 'constant_error', 'coverage')))

    def test_what_was_not_checked_says_so(self):
        self.view = dataclasses.replace(self.view, assessor=assessment.Assessor(
            self.view.assessor.cluster, {}, self.view.assessor.settings))
        for one in self.get('/v1/host_types', sort_key='error')['host_types']:
            if one['host_type'] != 'no model':
                self.assertEqual((False, 1.0, 0.0, None), tuple(
                    one[name] for name in ('checked', 'gain', 'vm_hours', 'error')))

    def test_order_and_pages(self):
        first = self.get('/v1/host_types', limit=1, sort_key='host_type', sort_dir='desc')
        self.assertEqual('synthetic', first['host_types'][0]['host_type'])
        rest = self.get(first['links'][0]['href'].removeprefix('http://localhost'))
        self.assertNotIn('synthetic', [one['host_type'] for one in rest['host_types']])


class Models(base.ApiCase):

    def test_list_and_show(self):
        listed = self.get('/v1/models')['models']
        self.assertEqual(['synthetic-iops_ratio', 'synthetic-slowdown'],
                         [one['id'] for one in listed])
        self.assertEqual((3, 5, {'synthetic': True}), tuple(
            listed[0][name] for name in ('hosts', 'vms', 'training')))
        found = self.get('/v1/models/synthetic-slowdown')['model']
        model = self.view.assessor.models['synthetic'].slowdown
        self.assertEqual(model.to_document(), found['document'])
        self.refused(404, '/v1/models/synthetic-colour')

    def test_where_it_comes_from_and_how_far_it_is_trusted(self):
        for one in self.get('/v1/models')['models']:
            self.assertEqual(({'kind': 'file', 'how': None, 'at': None}, 1.0, 0), (
                one['source'], one['trust'], one['drift_alarms']))
        models = self.view.assessor.models['synthetic']
        told = {'points': 40, 'refit': {'how': 'corrected', 'at': 1_800_000_000.0}}
        self.view = dataclasses.replace(
            self.view, trust={'synthetic': 0.4}, alarms={'synthetic': 2},
            assessor=assessment.Assessor(self.view.assessor.cluster, {
                'synthetic': assessment.Models(*(dataclasses.replace(one, training=told)
                                                 for one in models))}))
        for one in self.get('/v1/models')['models']:
            self.assertEqual(
                ({'kind': 'refit', 'how': 'corrected', 'at': '2027-01-15T08:00:00Z'}, 0.4, 2),
                (one['source'], one['trust'], one['drift_alarms']))

    def test_filters_order_and_pages(self):
        for query, expected in (({'response': 'slowdown'}, 1), ({'host_type': 'x'}, 0),
                                ({'sort_key': 'vms', 'sort_dir': 'desc'}, 2)):
            self.assertEqual(expected, len(self.get('/v1/models', **query)['models']))
        first = self.get('/v1/models', limit=1)
        rest = self.get(first['links'][0]['href'].removeprefix('http://localhost'))
        self.assertEqual('synthetic-slowdown', rest['models'][0]['id'])
        self.assertEqual([], rest['links'])
