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

"""GET /v1/moves."""

from tests.unit.api import base


class Moves(base.ApiCase):

    def setUp(self):
        super().setUp()
        self.decisions.recommended = [base.move(self.now, 1), base.move(
            self.now, 2, state='recommended', vm=base.identity('gone'), outcomes=[], changes=[],
            started_at=float('nan'), ended_at=float('nan'))]

    def test_whom_it_concerns_and_what_came_of_it(self):
        one, waiting = self.get('/v1/moves')['moves']
        self.assertEqual({'uuid': base.identity('batch'), 'name': 'batch'}, one['vm'])
        self.assertEqual(('alpha', 'delta', 'succeeded'),
                         (one['source'], one['destination'], one['state']))
        (change,) = one['changes']
        self.assertEqual(('web', True), (change['vm']['name'], change['relieved']))
        self.assertEqual({'predicted': 1.0, 'lower': None, 'upper': None, 'in_breach': False},
                         change['after'])
        soon, later = one['outcomes']
        self.assertEqual(('helped', 0.48, 0.4),
                         (soon['verdict'], soon['predicted'], soon['measured']))
        self.assertEqual([('web', 1.07), ('batch', None)], [
            (each['vm']['name'], each['observed']) for each in soon['slowdowns']])
        self.assertEqual((None, None, None),
                         (later['verdict'], later['measured_at'], later['measured']))
        self.assertIsNotNone(later['due_at'])
        self.assertEqual((None, None, None),
                         (waiting['vm']['name'], waiting['started_at'], waiting['ended_at']))

    def test_filters_and_pages(self):
        def listed(**query):
            return [one['id'] for one in self.get('/v1/moves', **query)['moves']]

        self.assertEqual(['move-1', 'move-2'], listed(audit=base.AUDIT))
        self.assertEqual([], listed(audit='another'))
        self.assertEqual(['move-2'], listed(state='recommended'))
        self.assertEqual(['move-1'], listed(vm=base.identity('batch')))
        first = self.get('/v1/moves', limit=1)
        self.assertEqual(['move-1'], [one['id'] for one in first['moves']])
        self.assertIn('marker=move-1', first['links'][0]['href'])
        self.assertEqual(['move-2'], listed(limit=1, marker='move-1'))
        self.assertEqual([], self.get('/v1/moves', limit=2)['links'])

    def test_what_is_wrong_is_named(self):
        for query, said in (({'state': 'done'}, 'recommended'), ({'marker': 'x'}, 'begin again'),
                            ({'limit': '0'}, 'limit'), ({'host': 'x'}, 'host')):
            self.assertIn(said, self.refused(400, '/v1/moves', **query)['detail'])

    def test_while_nothing_is_known_of_the_cloud(self):
        self.view = None
        found = self.get('/v1/moves')
        self.assertIsNone(found['state'])
        self.assertIsNone(found['moves'][0]['vm']['name'])
