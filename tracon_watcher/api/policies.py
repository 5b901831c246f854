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

"""Who may ask what: the defaults, which policy.yaml overrides rule by rule.

An administrator is a user with the role admin, as in the other services. A *global reader* is
somebody with the role reader on the system as a whole: reader on a project is what every tenant's
auditor has, and must not open the view on other tenants. A cloud that gives its operators another
role overrides ``global_reader`` alone.
"""

from __future__ import annotations

from oslo_policy import policy

ADMIN = 'rule:context_is_admin'
GLOBAL = 'rule:admin_or_global_reader'
PROJECT = 'rule:project_reader_or_global'

PREFIX = 'interference'
HOSTS_LIST = f'{PREFIX}:hosts:list'
HOSTS_SHOW = f'{PREFIX}:hosts:show'
VMS_LIST = f'{PREFIX}:vms:list'
VMS_SHOW = f'{PREFIX}:vms:show'
VMS_ALL_PROJECTS = f'{PREFIX}:vms:all_projects'
VMS_NEIGHBOURS = f'{PREFIX}:vms:neighbours'
EXPLANATIONS_SHOW = f'{PREFIX}:explanations:show'
EXPLANATIONS_NEIGHBOURS = f'{PREFIX}:explanations:neighbours'
SUMMARY_SHOW = f'{PREFIX}:summary:show'
AUDITS_SHOW = f'{PREFIX}:audits:show'
MOVES_LIST = f'{PREFIX}:moves:list'
HOST_TYPES_LIST = f'{PREFIX}:host_types:list'

_SCOPES = ['system', 'project']

_BASE = [
    policy.RuleDefault(
        'context_is_admin', 'role:admin',
        description='Who administers the cloud.'),
    policy.RuleDefault(
        'global_reader', 'role:reader and system_scope:all',
        description='Who may see everything and change nothing. A role of your own may stand '
                    'here instead; a reader of one project must not.'),
    policy.RuleDefault(
        'admin_or_global_reader', f'{ADMIN} or rule:global_reader',
        description='Default of what shows VMs, hosts and names of several projects.'),
    policy.RuleDefault(
        'project_reader', '(role:reader or role:member) and project_id:%(project_id)s',
        description='Who may see what belongs to a project.'),
    policy.RuleDefault(
        'project_reader_or_global', f'rule:project_reader or {GLOBAL}',
        description='Default of what shows something of one project to it.'),
]


def _rule(name: str, check: str, description: str, *paths: str) -> policy.DocumentedRuleDefault:
    return policy.DocumentedRuleDefault(
        name, check, description,
        [{'method': 'GET', 'path': path} for path in paths], scope_types=list(_SCOPES))


_API = [
    _rule(SUMMARY_SHOW, GLOBAL, 'See how many VMs of the cloud suffer how much.',
          '/v1/summary'),
    _rule(HOSTS_LIST, GLOBAL, 'List compute hosts and what their VMs suffer.', '/v1/hosts'),
    _rule(HOSTS_SHOW, GLOBAL, 'Show a compute host with its VMs.', '/v1/hosts/{name}'),
    _rule(VMS_LIST, PROJECT, 'List the VMs of one\'s own project and how slow they are.',
          '/v1/vms'),
    _rule(VMS_SHOW, PROJECT, 'Show how slow a VM is; a VM of another project is not found.',
          '/v1/vms/{uuid}'),
    _rule(VMS_ALL_PROJECTS, GLOBAL, 'List the VMs of all projects.', '/v1/vms'),
    _rule(VMS_NEIGHBOURS, GLOBAL,
          'See which VM of another project slows a VM down, on which host it is, and what harm it '
          'does to others. Without it those are only called another VM.',
          '/v1/vms', '/v1/vms/{uuid}'),
    _rule(EXPLANATIONS_SHOW, PROJECT,
          'See why a VM was placed as it was; of a VM of another project nothing is found.',
          '/v1/explanations/{request_or_vm}'),
    _rule(EXPLANATIONS_NEIGHBOURS, GLOBAL,
          'See in an explanation the hosts, the VMs on them and what would have had to differ, '
          'and have a VM judged now. Without it only what concerns the VM itself is shown.',
          '/v1/explanations/{request_or_vm}'),
    _rule(AUDITS_SHOW, GLOBAL,
          'See what an audit has left undone: each VM in breach, each move that was considered, '
          'and what stood against it.', '/v1/audits/{uuid}'),
    _rule(MOVES_LIST, GLOBAL,
          'List the moves that audits recommended, what each does to every VM that it concerns, '
          'and what came of it.', '/v1/moves'),
    _rule(HOST_TYPES_LIST, GLOBAL,
          'List host types, what was learnt of each, and how far it is trusted.',
          '/v1/host_types'),
]


def list_rules() -> list[policy.RuleDefault]:
    """Return all rules with their defaults, for the enforcer and for oslopolicy-sample-generator.
    """
    return [*_BASE, *_API]
