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

"""A tenant is told nothing of others: no uuid, name, project or host, whatever it asks."""

import json

from tests.unit.api import base
from tracon_watcher.placement import explanation

FOREIGN = [base.identity(name) for name in ('batch', 'small', 'strange')] + [
    'batch', 'small', 'strange', base.OTHER, 'alpha', 'beta', 'gamma', 'delta']


class Tenant(base.ApiCase):

    def setUp(self):
        super().setUp()
        decision = explanation.of_now(self.view.assessor, base.identity('web'), self.now)
        self.decisions.kept = [
            {**decision, 'request': 'req-1', 'operation': 'create',
             'snapshot': [base.EPOCH, base.VERSION]},
            {**decision, 'request': 'req-2', 'vm': base.identity('batch')}]

    def paths(self):
        yield '/v1/vms'
        for key in ('uuid', 'name', 'slowdown', 'observed', 'predicted', 'iops_ratio', 'share'):
            yield f'/v1/vms?sort_key={key}&sort_dir=desc'
        for name in ('web', 'db', 'cron', 'batch', 'small', 'missing'):
            yield f'/v1/vms?name={name}'
            yield f'/v1/vms/{base.identity(name)}'
            yield f'/v1/explanations/{base.identity(name)}'
            yield f'/v1/vms?marker={base.identity(name)}'
        for path in ('req-1', 'req-2'):
            yield f'/v1/explanations/{path}'
        yield from ('/v1/hosts', '/v1/hosts/alpha', '/v1/host_types', '/v1/summary',
                    '/v1/capacity', '/v1/audits/latest', '/v1/moves', '/v1/what_if?host_down=x',
                    '/v1/ledger?moves=true',
                    '/healthz', '/healthz/ready',
                    '/v1', '/', '/v1/vms?culprit=x', '/v1/vms?host=x', '/v1/vms?sort_key=host',
                    f'/v1/vms?project_id={base.OTHER[:5]}', '/v1/vms?limit=x', '/metrics')

    def test_nothing_of_others_anywhere(self):
        for path in self.paths():
            response = self.ask(path, base.MEMBER)
            said = response.text + str(response.headers)
            asked = path + ' ' + path.replace('?', '/')
            for secret in FOREIGN:
                if secret not in asked:
                    self.assertNotIn(secret, said, path)
        # The same answers name them where they may be named.
        self.assertIn('batch', self.ask('/v1/vms').text)
        self.assertIn('alpha', self.ask('/v1/explanations/req-1').text)

    def test_what_it_is_told_of_its_own(self):
        found = self.get(f'/v1/vms/{base.identity("web")}', base.MEMBER)['vm']
        self.assertEqual(1.4, found['slowdown']['observed'])
        self.assertEqual({'uuid': None, 'name': 'another VM', 'share': 1.0}, found['culprit'])
        self.assertEqual(['other VMs'], [one['name'] for one in found['culprits']])
        self.assertEqual([], found['victims'])
        found = self.get(f'/v1/vms/{base.identity("db")}', base.MEMBER)['vm']
        self.assertEqual('cron', found['culprit']['name'])
        self.assertEqual(['cron', 'other VMs'], [one['name'] for one in found['culprits']])
        self.assertEqual(['cron'], [one['name'] for one in found['victims']])
        self.assertNotIn('harm_to_others', found)

    def test_its_explanation_is_of_itself(self):
        (found,) = self.get('/v1/explanations/req-1', base.MEMBER)['explanations']
        self.assertEqual({'own_limit': 2, 'limit_of_another_vm': 0}, found['refused_because_of'])
        self.assertEqual({'rank', 'slowdown', 'iops_ratio'}, set(found['chosen']))
        self.assertNotIn('hosts', json.dumps(found))
        self.assertNotIn('newcomer', json.dumps(found))
