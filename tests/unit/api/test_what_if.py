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

"""GET /v1/what_if."""

from tests.unit.api import base

BATCH, DB = (base.identity(name) for name in ('batch', 'db'))


class WhatIf(base.ApiCase):

    def ask_for(self, **query):
        return self.get('/v1/what_if', **query)['what_if']

    def test_a_host_that_is_down(self):
        found = self.ask_for(host_down='alpha')
        self.assertEqual(('alpha', 3), (found['host'], found['hosts']))
        # Of gamma no cores are known.
        self.assertEqual(2, found['assessed'])
        # The heavier one goes to the empty host. Of the other its limit is breached everywhere,
        # and it does least harm where it is beside the first again.
        self.assertEqual([('batch', 'delta', False), ('web', 'delta', True)], [
            (one['vm']['name'], one['destination'], one['refused']) for one in found['moves']])
        web = next(one for one in found['changes'] if one['vm']['name'] == 'web')
        self.assertEqual(('alpha', True, 1.5, True), (
            web['host'], web['moves'], web['limit'], web['before']['in_breach']))
        self.assertEqual(web['before'], web['after'])
        self.assertLess(web['before']['lower'], web['before']['upper'])

    def test_a_live_migration(self):
        found = self.ask_for(vm=BATCH, host='delta')
        self.assertEqual(('batch', 'alpha', 'delta', None), (
            found['vm']['name'], found['source'], found['destination'], found['against']))
        self.assertEqual([('batch', 'delta'), ('web', None)], [
            (one['vm']['name'], one['destination'])
            for one in sorted(found['changes'], key=lambda one: one['vm']['name'])])
        web = next(one for one in found['changes'] if one['vm']['name'] == 'web')
        self.assertEqual((True, False), (web['before']['in_breach'], web['after']['in_breach']))
        self.assertIn('would cross the limit 1.50 of web',
                      self.ask_for(vm=DB, host='alpha')['why'])
        # Of gamma no cores are known: nothing is predicted there.
        found = self.ask_for(vm=BATCH, host='gamma')
        self.assertEqual(('unknown', 'is unknown: unknown_cores'),
                         (found['against'], found['why']))
        batch = next(one for one in found['changes'] if one['vm']['name'] == 'batch')
        self.assertEqual({'predicted': None, 'lower': None, 'upper': None, 'in_breach': None},
                         batch['after'])

    def test_a_new_vm(self):
        found = self.ask_for(flavor=base.FLAVOR, image=base.IMAGE, project_id=base.OWN)
        self.assertEqual((4, 1, f'{base.OWN}|{base.FLAVOR}|{base.IMAGE}'), (
            found['considered'], found['unknown'], found['newcomer']['source']))
        ranks = [one['rank'] for one in found['hosts'] if one['rank'] is not None]
        self.assertEqual(sorted(ranks), ranks)
        self.assertEqual(('delta', True), (found['hosts'][0]['host'], found['hosts'][0]['chosen']))
        alpha = next(one for one in found['hosts'] if one['host'] == 'alpha')
        self.assertTrue(alpha['refused'])
        self.assertIn('web', alpha['why'])
        self.assertEqual({'web', 'batch'}, {one['name'] for one in alpha['residents']})
        # Of no project in particular, and booted from a volume.
        found = self.ask_for(flavor=base.FLAVOR, image='', project_id='')
        self.assertEqual(f'{base.FLAVOR}, CPU alone', found['newcomer']['source'])

    def test_limits_are_those_of_vms_of_the_flavor(self):
        found = self.ask_for(flavor=base.FLAVOR, image='', project_id='')
        first = min(self.view.vms)
        limit = self.view.assessor.cluster.resident_limits(
            self.view.assessor.cluster.resident_index[first]).max_slowdown
        self.assertEqual(limit if limit < 1e6 else None,
                         found['newcomer']['limits']['max_slowdown'])

    def test_names_that_do_not_exist(self):
        for query, said in (
                ({'host_down': 'omega'}, 'There is no host omega. The name is that'),
                ({'vm': 'omega', 'host': 'delta'}, 'There is no VM omega.'),
                ({'vm': BATCH, 'host': 'omega'}, 'There is no host omega.'),
                ({'flavor': 'x', 'image': '', 'project_id': ''},
                 "of the flavor 'x', so nothing is known of its VMs. Give the name of a flavor "
                 'that VMs have: m1.small.'),
                ({'flavor': '', 'image': '', 'project_id': ''}, "of the flavor ''"),
                ({'flavor': base.FLAVOR, 'image': 'x', 'project_id': ''}, "of the image 'x'"),
                ({'flavor': base.FLAVOR, 'image': '', 'project_id': 'x'}, "of the project 'x'")):
            self.assertIn(said, self.refused(404, '/v1/what_if', **query)['detail'])

    def test_exactly_one_question(self):
        for query in ({}, {'vm': BATCH}, {'host_down': 'alpha', 'host': 'beta'},
                      {'vm': BATCH, 'host': 'alpha'}, {'colour': 'red'}):
            self.refused(400, '/v1/what_if', **query)
        self.assertIn("host='alpha' is not allowed. Allowed: another host",
                      self.refused(400, '/v1/what_if', vm=BATCH, host='alpha')['detail'])

    def test_stale_hosts_take_no_vm(self):
        self.now += 601
        found = self.ask_for(host_down='alpha')
        self.assertEqual((0, {None}), (
            found['assessed'], {one['destination'] for one in found['moves']}))
        self.assertEqual({None}, {one['after']['predicted'] for one in found['changes']})

    def test_not_for_tenants(self):
        self.assertIn('interference:what_if:show', self.refused(
            403, '/v1/what_if', base.MEMBER, host_down='alpha')['detail'])
        self.assertEqual('alpha', self.get('/v1/what_if', base.READER, host_down='alpha')[
            'what_if']['host'])
