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

"""What is explained, of what is recorded and of what would be now."""

import json

from tests.unit.api import base
from tracon_watcher.placement import explanation


class Explanations(base.ApiCase):

    def setUp(self):
        super().setUp()
        self.decision = json.loads(json.dumps({
            **explanation.of_now(self.view.assessor, base.identity('db'), self.now),
            'id': 'some-id', 'request': 'req-1', 'operation': 'move', 'at': 1700000000.0,
            'snapshot': [base.EPOCH, base.VERSION]}))
        self.decisions.kept = [self.decision]

    def find(self, name, **query):
        return self.get(f'/v1/explanations/{name}', **query)['explanations']

    def test_recorded_and_judged_again(self):
        for name in ('req-1', base.identity('db')):
            (found,) = self.find(name)
            self.assertEqual('yes', found['judged_again'])
            self.assertEqual(('db', '2023-11-14T22:13:20Z', 'move'),
                             tuple(found[one] for one in ('name', 'at', 'operation')))
            hosts = {one['host']: one for one in found['hosts']}
            self.assertIn(f'web ({base.identity("web")})', hosts['alpha']['why'])
            self.assertTrue(hosts['alpha']['refused'])
            self.assertIn(f'without web ({base.identity("web")})',
                          hosts['alpha']['what_would_differ'])
            self.assertIn('chosen, rank', hosts['beta']['why'])

    def test_on_another_snapshot_as_recorded(self):
        self.view = base.cloud(self.now, version=base.VERSION + 1)
        (found,) = self.find('req-1')
        self.assertIn('snapshot 3.7', found['judged_again'])

    def test_without_a_view_as_recorded(self):
        self.view = None
        (found,) = self.find('req-1')
        self.assertIn('no state', found['judged_again'])
        self.assertIsNone(self.get('/v1/explanations/req-1')['state'])
        self.refused(503, '/v1/explanations/req-1', base.MEMBER)

    def test_now(self):
        self.assertEqual('now', self.find(base.identity('db'), now='true')[0]['operation'])
        # Of a VM of which no decision is recorded there is only that.
        (found,) = self.find(base.identity('web'))
        self.assertEqual('now', found['operation'])
        self.assertEqual('alpha', found['chosen'])
        self.refused(404, f'/v1/explanations/{base.identity("web")}?now=false')
        self.assertNotEqual('now', self.find(base.identity('db'), now='false')[0]['operation'])

    def test_latest_few(self):
        self.decisions.kept = [{**self.decision, 'id': str(place)} for place in range(20)]
        self.assertEqual([str(place) for place in range(10)],
                         [one['id'] for one in self.find('req-1')])
        self.assertEqual(['0', '1'], [one['id'] for one in self.find('req-1', limit=2)])

    def test_project_of_a_vm_that_is_gone(self):
        gone = {**self.decision, 'vm': 'gone', 'request': 'req-gone'}
        for project, status in ((None, 404), (base.OTHER, 404), (base.OWN, 200)):
            self.decisions.kept = [{**gone, 'project': project}]
            self.assertEqual(status, self.ask('/v1/explanations/req-gone',
                                              base.MEMBER).status_int, project)
        # What Nova says of a VM counts more than what was recorded.
        self.decisions.kept = [{**self.decision, 'vm': base.identity('batch'),
                                'project': base.OWN}]
        self.refused(404, '/v1/explanations/req-1', base.MEMBER)

    def test_multi_create_over_projects_shows_each_its_own(self):
        self.decisions.kept = [self.decision, {**self.decision, 'vm': base.identity('batch')}]
        self.assertEqual(2, len(self.find('req-1')))
        found = self.get('/v1/explanations/req-1', base.MEMBER)['explanations']
        self.assertEqual([base.identity('db')], [one['vm'] for one in found])

    def test_records_that_hold_no_numbers(self):
        self.decisions.kept = [{**self.decision, 'hosts': [{
            'host': 'alpha', 'score': float('nan'), 'status': 'known', 'refused': False,
            'slowdown': [1.0, float('inf'), 2.0]}]}]
        (found,) = self.find('req-1')
        self.assertEqual([1.0, None, 2.0], found['hosts'][0]['slowdown'])
        self.assertIsNone(found['hosts'][0]['score'])

    def test_nothing_found(self):
        error = self.refused(404, '/v1/explanations/req-2')
        self.assertIn('No decision on req-2 is recorded. Give a request id', error['detail'])
        self.refused(404, '/v1/explanations/' + 'x' * 300)
