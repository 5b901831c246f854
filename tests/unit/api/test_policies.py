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

"""Every path in every role, with the defaults and with what policy.yaml says."""

import os
import pathlib

from tests.unit.api import base
from tracon_watcher.api import policies

OWN_VM, OTHER_VM = base.identity('web'), base.identity('batch')

#: Administrators, a global reader, a member and a reader of the project, a member of another one,
#: people without a role that counts, tokens of a domain and one of nothing.
ROLES = (base.ADMIN, 'system admin', base.READER, base.MEMBER, 'auditor', base.STRANGER,
         base.UNRELATED, 'unrelated elsewhere', 'domain reader', 'domain admin', 'unscoped')
#: What each of them is answered.
ANSWERS = {
    '/v1/hosts':
        (200, 200, 200, 403, 403, 403, 403, 403, 403, 403, 403),
    '/v1/hosts/alpha':
        (200, 200, 200, 403, 403, 403, 403, 403, 403, 403, 403),
    '/v1/hosts/missing':
        (404, 404, 404, 403, 403, 403, 403, 403, 403, 403, 403),
    '/v1/vms':
        (200, 200, 200, 200, 200, 200, 403, 403, 403, 403, 403),
    f'/v1/vms/{OWN_VM}':
        (200, 200, 200, 200, 200, 404, 403, 403, 403, 403, 403),
    f'/v1/vms/{OTHER_VM}':
        (200, 200, 200, 404, 404, 404, 403, 403, 403, 403, 403),
    '/v1/vms/missing':
        (404, 404, 404, 404, 404, 404, 403, 403, 403, 403, 403),
    f'/v1/vms?project_id={base.OTHER}':
        (200, 200, 200, 403, 403, 403, 403, 403, 403, 403, 403),
    f'/v1/vms?project_id={base.OWN}':
        (200, 200, 200, 200, 200, 403, 403, 403, 403, 403, 403),
    '/v1/vms?host=alpha':
        (200, 200, 200, 403, 403, 403, 403, 403, 403, 403, 403),
    f'/v1/vms?culprit={OTHER_VM}':
        (200, 200, 200, 403, 403, 403, 403, 403, 403, 403, 403),
    '/v1/vms?sort_key=host':
        (200, 200, 200, 403, 403, 403, 403, 403, 403, 403, 403),
    '/v1/vms?sort_key=harm_to_others':
        (200, 200, 200, 403, 403, 403, 403, 403, 403, 403, 403),
    f'/v1/explanations/{OWN_VM}':
        (200, 200, 200, 200, 200, 404, 403, 403, 403, 403, 403),
    f'/v1/explanations/{OTHER_VM}':
        (200, 200, 200, 404, 404, 404, 403, 403, 403, 403, 403),
    '/v1/explanations/req-own':
        (200, 200, 200, 200, 200, 404, 403, 403, 403, 403, 403),
    '/v1/explanations/req-other':
        (200, 200, 200, 404, 404, 404, 403, 403, 403, 403, 403),
    '/v1/explanations/missing':
        (404, 404, 404, 404, 404, 404, 403, 403, 403, 403, 403),
    f'/v1/explanations/{OWN_VM}?now=true':
        (200, 200, 200, 403, 403, 403, 403, 403, 403, 403, 403),
    '/v1/host_types':
        (200, 200, 200, 403, 403, 403, 403, 403, 403, 403, 403),
    '/v1/capacity':
        (200, 200, 200, 403, 403, 403, 403, 403, 403, 403, 403),
    '/v1/summary':
        (200, 200, 200, 403, 403, 403, 403, 403, 403, 403, 403),
    '/v1/moves':
        (200, 200, 200, 403, 403, 403, 403, 403, 403, 403, 403),
    '/v1/audits/latest':
        (200, 200, 200, 403, 403, 403, 403, 403, 403, 403, 403),
    '/v1/audits/missing':
        (404, 404, 404, 403, 403, 403, 403, 403, 403, 403, 403),
    '/v1/nothing':
        (404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404),
}


class Defaults(base.ApiCase):

    def setUp(self):
        super().setUp()
        self.decisions.kept = [
            {'request': 'req-own', 'vm': OWN_VM, 'hosts': []},
            {'request': 'req-other', 'vm': OTHER_VM, 'hosts': []}]
        self.decisions.audits = [base.audit(self.now)]
        self.decisions.recommended = [base.move(self.now)]

    def test_every_path_in_every_role(self):
        for path, answers in ANSWERS.items():
            for role, expected in zip(ROLES, answers, strict=True):
                response = self.ask(path, role)
                self.assertEqual(expected, response.status_int, f'{role}: {path}')

    def test_without_a_token_and_with_a_wrong_one(self):
        for path in ANSWERS:
            for token in (None, 'forged'):
                error = self.refused(401, path, token)
                self.assertIn('valid token', error['detail'])

    def test_headers_of_ones_own_make_no_administrator(self):
        forged = {'X-Roles': 'admin', 'X-Project-Id': base.OTHER, 'X-Identity-Status': 'Confirmed',
                  'X-User-Id': 'admin', 'Openstack-System-Scope': 'all',
                  'X-Is-Admin-Project': 'True'}
        self.assertEqual(401, self.ask('/v1/hosts', None, headers=forged.items()).status_int)
        self.assertEqual(403, self.ask('/v1/hosts', base.MEMBER,
                                       headers=forged.items()).status_int)

    def test_other_projects_vm_and_none_are_told_alike(self):
        for path in ('/v1/vms/%s', '/v1/explanations/%s'):
            missing = base.identity('missing')
            one = self.refused(404, path % OTHER_VM, base.MEMBER)['detail']
            other = self.refused(404, path % missing, base.MEMBER)['detail']
            self.assertEqual(one.replace(OTHER_VM, ''), other.replace(missing, ''))

    def test_vm_of_no_project_has_no_owner(self):
        vms = dict(self.view.vms)
        del vms[OWN_VM]
        object.__setattr__(self.view, 'vms', vms)
        for role in (base.MEMBER, 'unscoped', 'domain reader'):
            self.assertIn(self.ask(f'/v1/vms/{OWN_VM}', role).status_int, (403, 404))
        self.assertEqual(['cron', 'db'], sorted(
            one['name'] for one in self.get('/v1/vms', base.MEMBER)['vms']))
        self.assertEqual(200, self.ask(f'/v1/vms/{OWN_VM}').status_int)


class Overrides(base.ApiCase):

    def test_own_role_for_global_readers(self):
        self.api = self.build(policy={'global_reader': 'role:unrelated'})
        for path in ('/v1/hosts', '/v1/host_types', f'/v1/vms/{OTHER_VM}', '/v1/vms?host=alpha'):
            self.assertEqual(200, self.ask(path, base.UNRELATED).status_int, path)
            self.assertIn(self.ask(path, base.MEMBER).status_int, (403, 404), path)

    def test_one_rule_alone(self):
        self.api = self.build(policy={policies.HOST_TYPES_LIST: '@', policies.VMS_LIST: '!'})
        self.assertEqual(200, self.ask('/v1/host_types', base.UNRELATED).status_int)
        self.assertEqual(403, self.ask('/v1/vms', base.ADMIN).status_int)
        self.assertEqual(403, self.ask('/v1/hosts', base.UNRELATED).status_int)

    def test_a_changed_file_takes_effect_with_the_next_request(self):
        self.assertEqual(403, self.ask('/v1/host_types', base.MEMBER).status_int)
        path = self.conf.oslo_policy.policy_file
        with open(path, 'w', encoding='utf-8') as stream:
            stream.write(f'"{policies.HOST_TYPES_LIST}": "role:member"')
        # Written within the same tick of the clock it would look unchanged.
        os.utime(path, (self.now + 10, self.now + 10))
        self.assertEqual(200, self.ask('/v1/host_types', base.MEMBER).status_int)

    def test_all_projects_without_neighbours_shows_no_names_of_others(self):
        self.api = self.build(policy={
            policies.VMS_ALL_PROJECTS: 'rule:project_reader', 'project_reader': 'role:reader'})
        listed = self.get('/v1/vms', base.MEMBER)['vms']
        self.assertEqual(6, len(listed))
        self.assertNotIn('host', listed[0])


class Rules(base.ApiCase):

    def test_each_is_documented_and_of_a_scope(self):
        rules = {rule.name: rule for rule in policies.list_rules()}
        for name, rule in rules.items():
            self.assertTrue(rule.description, name)
            if name.startswith('interference:'):
                self.assertEqual(['system', 'project'], rule.scope_types)
                self.assertTrue(rule.operations)
        constants = {value for name, value in vars(policies).items()
                     if isinstance(value, str) and value.startswith('interference:')}
        self.assertEqual(constants, {name for name in rules if ':' in name})

    def test_enforcer_of_the_tools(self):
        self.assertTrue(callable(policies.get_enforcer))
        made = policies.enforcer(self.conf)
        self.assertIn(policies.VMS_LIST, made.registered_rules)

    def test_each_is_in_the_administrators_guide(self):
        guide = (pathlib.Path(__file__).parents[3] / 'doc' / 'source' / 'admin' / 'api.rst'
                 ).read_text(encoding='utf-8')
        for rule in policies.list_rules():
            if rule.name != 'admin_or_global_reader' and 'or_global' not in rule.name:
                self.assertIn(f'``{rule.name}``', guide)
            for operation in getattr(rule, 'operations', ()):
                self.assertIn(f'``{operation["path"]}``', guide)
