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

"""Policies: default rules, and the caller that they are applied to."""

from __future__ import annotations

import sys
from typing import Any

from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_policy import policy

from tracon_watcher.api import faults

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
WHAT_IF_SHOW = f'{PREFIX}:what_if:show'
HOST_TYPES_LIST = f'{PREFIX}:host_types:list'
CAPACITY_LIST = f'{PREFIX}:capacity:list'

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
          'and what came of it.', '/v1/moves', '/v1/ledger'),
    _rule(WHAT_IF_SHOW, GLOBAL,
          'See the predicted effects of a host that is down, of a new VM and of a live migration.',
          '/v1/what_if'),
    _rule(HOST_TYPES_LIST, GLOBAL,
          'List host types, what was learnt of each, and how far it is trusted.',
          '/v1/host_types'),
    _rule(CAPACITY_LIST, GLOBAL,
          'See how much of hosts is idle, and how much of it background work may have.',
          '/v1/capacity'),
]


def list_rules() -> list[policy.RuleDefault]:
    """Return all rules with their defaults, for the enforcer and for oslopolicy-sample-generator.
    """
    return [*_BASE, *_API]


#: Stands for the project of whatever has none, so that a caller without a project does not own it.
_NO_PROJECT = '-'


class Caller:
    """One who asks.

    :param context: as keystonemiddleware found it in the token
    """

    def __init__(self, context: oslo_context.RequestContext, enforcer: policy.Enforcer) -> None:
        self._context = context
        self._enforcer = enforcer

    @property
    def project(self) -> str | None:
        """The project that the token is for; None for a token of another scope."""
        return self._context.project_id or None

    def may(self, rule: str, project: str | None = None) -> bool:
        """Say whether the policy allows it.

        :param project: whose the thing is
        """
        target = {'project_id': project or _NO_PROJECT}
        try:
            return bool(self._enforcer.authorize(rule, target, self._context, do_raise=False))
        except policy.InvalidScope:
            return False

    def require(self, rule: str, what: str, project: str | None = None) -> None:
        """Raise unless the policy allows it.

        :param what: it is, in words
        :raises tracon_watcher.api.faults.Forbidden: when it does not
        """
        if not self.may(rule, project):
            raise faults.Forbidden(rule, what)


def enforcer(conf: cfg.ConfigOpts, **options: Any) -> policy.Enforcer:
    """Return an enforcer of our rules, with what policy.yaml overrides.

    :param conf: says where policy.yaml is, [oslo_policy]
    :param options: of :class:`oslo_policy.policy.Enforcer`
    """
    made = policy.Enforcer(conf, **options)
    made.register_defaults(list_rules())
    made.load_rules()
    return made


def get_enforcer() -> policy.Enforcer:
    """Return an enforcer for oslo.policy's own tools, such as oslopolicy-checker."""
    conf = cfg.CONF
    # The tools' own options come with the namespace, which is not ours to parse.
    arguments, options = [], iter(sys.argv[1:])
    for option in options:
        if option in ('--config-file', '--config-dir'):
            arguments += [option, next(options, '')]
        elif option.startswith(('--config-file=', '--config-dir=')):
            arguments.append(option)
    conf(arguments, project='tracon')
    return enforcer(conf)
