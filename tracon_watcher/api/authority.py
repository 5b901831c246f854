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

"""Who asks, and whether the policy lets them."""

from __future__ import annotations

import sys
from typing import Any

from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_policy import policy

from tracon_watcher.api import faults
from tracon_watcher.api import policies

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
    made.register_defaults(policies.list_rules())
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
