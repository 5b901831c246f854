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

"""GET /v1/ledger."""

from tests.unit.api import base


class Ledger(base.ApiCase):

    def record(self, number, age, **more):
        made = base.move(self.now, number, **more)
        for one in made['changes']:
            one['limit'] = 1.5
        made.update(ended_at=self.now - age, decided_at=self.now - age - 60)
        self.decisions.recommended.append(made)

    def test_sums_by_week_and_each_move(self):
        self.record(1, 2 * 3600.0)
        found = self.get('/v1/ledger')['ledger']
        (week,) = found['weeks']
        self.assertEqual((1, 1, 0, 0), tuple(
            week[name] for name in ('moves', 'helped', 'did_not_help', 'unknown')))
        self.assertEqual({'predicted': 0.48, 'measured': 0.4}, week['gain'])
        # The prediction before is above the limit with both bounds, what was measured below.
        self.assertEqual({'lower': 2.0, 'hours': 2.0, 'upper': 2.0}, week['avoided'])
        self.assertNotIn('moves', found)
        (move,) = self.get('/v1/ledger', moves='true')['ledger']['moves']
        self.assertEqual(('batch', 'helped'), (move['vm']['name'], move['verdict']))
        self.assertEqual([('web', 1.62, 1.0, [1.07, None])], [
            (one['vm']['name'], one['before'], one['after'], one['measured'])
            for one in move['slowdowns']])

    def test_moves_that_were_not_made_and_older_ones_do_not_count(self):
        self.record(1, 3600.0)
        self.record(2, 3600.0, state='failed')
        self.record(3, 15 * 86400.0)
        self.assertEqual([1], [one['moves'] for one in self.get('/v1/ledger', weeks=2)[
            'ledger']['weeks']])
        self.assertEqual(2, sum(one['moves'] for one in self.get('/v1/ledger')[
            'ledger']['weeks']))

    def test_of_all_pages(self):
        for number in range(1203):
            self.record(number, 3600.0 + number)
        self.assertEqual(1203, sum(one['moves'] for one in self.get('/v1/ledger')[
            'ledger']['weeks']))

    def test_remedies_for_one_vm(self):
        self.record(1, 300.0)
        self.decisions.kept = [base.refusal(self.now - 500), base.refusal(self.now, 'db')]
        audit = base.audit(self.now - 400)
        self.decisions.audits = [{**audit, 'removals': [base.removal(), base.removal('db')],
                                  'past': [{**base.removal(), 'at': self.now - 450}]}]
        found = self.get('/v1/ledger', vm=base.identity('web'))['ledger']
        self.assertEqual([
            ('refuse', 'batch', 'alpha', None, 1.2, 1.9, []),
            ('remove', 'cron', 'alpha', None, 1.7, 1.3, []),
            ('remove', 'cron', 'alpha', None, 1.7, 1.3, []),
            ('migrate', 'batch', 'alpha', 'delta', 1.62, 1.0, [1.07, None])], [
                (one['remedy'], one['vm']['name'], one['host'], one['destination'], one['before'],
                 one['after'], one['measured']) for one in found['remedies']])
        self.assertLess(found['remedies'][0]['at'], found['remedies'][1]['at'])
        self.assertEqual({'remedies': []}, self.get(
            '/v1/ledger', vm=base.identity('gone'))['ledger'])
        audit = self.get(f'/v1/audits/{base.AUDIT}')['audit']
        self.assertEqual([['web'], ['db']], [
            [each['vm']['name'] for each in one['effects']] for one in audit['removals']])
        self.assertEqual(1, len(audit['past']))

    def test_what_was_throttled_for_one_vm(self):
        web = base.identity('web')
        self.decisions.throttled = [
            base.episode(self.now - 400), base.episode(self.now - 300, 'db'),
            base.episode(self.now - 200, resource='pause', vm=None, ended_at=None, before=None,
                         least=None, slowdowns_before={web: None}, slowdowns_after={}),
            base.episode(self.now - 100 * 86400.0)]
        found = self.get('/v1/ledger', vm=web)['ledger']
        first, second = found['remedies']
        self.assertEqual(('throttle', 'web', 'alpha', None, 1.42, 1.08, []), (
            first['remedy'], first['vm']['name'], *(first[name] for name in (
                'host', 'destination', 'before', 'after', 'measured'))))
        self.assertRegex(first['episode'].pop('until'), r'^\d{4}-\d\d-\d\dT[\d:]{8}Z$')
        self.assertEqual({'resource': 'processor', 'before': 2.4, 'least': 0.3, 'unit': 'cores',
                          'reason': None}, first['episode'])
        self.assertEqual({'resource': 'pause', 'until': None, 'before': None, 'least': None,
                          'unit': None, 'reason': 'before: no counters of it from just before; '
                          'after: no counters of it there'}, second['episode'])

    def test_remedies_of_earlier_weeks_do_not_count(self):
        self.decisions.kept = [base.refusal(self.now - 8 * 86400.0)]
        for weeks, count in ((1, 0), (2, 1)):
            self.assertEqual(count, len(self.get(
                '/v1/ledger', vm=base.identity('web'), weeks=weeks)['ledger']['remedies']))

    def test_errors(self):
        self.assertIn('weeks', self.refused(400, '/v1/ledger', weeks=521)['detail'])
        self.refused(400, '/v1/ledger', weeks=0)
        self.assertIn('interference:moves:list',
                      self.refused(403, '/v1/ledger', base.MEMBER)['detail'])
        self.assertEqual([], self.get('/v1/ledger', base.READER)['ledger']['weeks'])
