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

"""A Watcher in a box: runs audits against a cloud that is served over HTTP."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from typing import Any, Mapping, Sequence

from tracon_watcher import errors

_CONFIGURATION = """\
[DEFAULT]
transport_url = fake://
host = watcher
enable_authentication = false
log_file = {directory}/watcher.log
state_path = {directory}

[database]
connection = sqlite:///{directory}/watcher.sqlite?timeout=120

[oslo_concurrency]
lock_path = {directory}

[watcher_clients_auth]
auth_type = password
auth_url = {url}/identity/v3
username = admin
password = admin
project_name = admin
user_domain_id = default
project_domain_id = default

[nova]
http_retries = 1
migration_interval = 0.2
migration_max_retries = 100

[watcher_workflow_engines.taskflow]
# SQLite has one writer: of two actions that begin at once, one would find the database locked.
max_workers = 1

[collector]
collector_plugins = compute
api_query_max_retries = 1

[tracon]
{tracon}
"""


class AuditImpossible(errors.TraconError):
    """Watcher's process does not answer; the text says what its log ends with."""


@dataclasses.dataclass(frozen=True)
class Action:
    """One action of an action plan."""

    uuid: str
    kind: str
    state: str
    parents: tuple[str, ...]
    parameters: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of an audit.

    :param state: SUCCEEDED, FAILED, CANCELLED, or REJECTED: the API refused the audit itself
    :param plan_state: of its action plan: RECOMMENDED, SUCCEEDED (also of an empty one), FAILED;
        None without a plan
    :param actions: the plan's, in an order that their parents allow
    :param efficacy: indicators by name
    :param message: the audit's status message: why it failed, or why its plan ends where it does
    :param log: what the decision engine logged: warnings, and what this product says
    """

    state: str
    plan_state: str | None = None
    actions: tuple[Action, ...] = ()
    efficacy: Mapping[str, float] = dataclasses.field(default_factory=dict)
    global_efficacy: Any = None
    message: str | None = None
    log: tuple[str, ...] = ()


class WatcherBox:
    """Watcher's own services in a process of their own, on a database of their own.

    :param url: where the cloud's identity, compute, placement and network APIs are, see
        :class:`tracon_lab.demo.door.Door`
    :param directory: for its database, configuration and log
    :param snapshot_file: option ``[tracon] snapshot_file``; None: audits must name one
    """

    def __init__(self, url: str, directory: str, snapshot_file: str | None = None) -> None:
        self.directory = directory
        self._configuration = os.path.join(directory, 'watcher.conf')
        tracon = '' if snapshot_file is None else f'snapshot_file = {snapshot_file}'
        with open(self._configuration, 'w', encoding='utf-8') as file:
            file.write(_CONFIGURATION.format(directory=directory, url=url, tracon=tracon))
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> WatcherBox:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start Watcher and wait until it is ready.

        :raises AuditImpossible: when it does not come up
        """
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(('OS_', 'http_proxy', 'https_proxy'))}
        with open(os.path.join(self.directory, 'watcher.err'), 'w', encoding='utf-8') as stderr:
            self._process = subprocess.Popen(
                [sys.executable, '-m', 'tracon_lab.demo.watcher_worker', self._configuration],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True,
                env=environment)
        self._answer()

    def stop(self) -> None:
        """Stop Watcher."""
        if self._process is not None:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.close()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process.stdout.close()
            self._process = None

    def audit(self, parameters: Mapping[str, Any] | None = None, execute: bool = False,
              goal: str = 'interference', strategy: str | None = 'tracon_interference',
              scope: Sequence[Mapping[str, Any]] | None = None,
              timeout: float = 120.0) -> Outcome:
        """Create a one-shot audit through Watcher's API and wait for its action plan.

        :param parameters: audit parameters; those left out have their defaults
        :param execute: start the action plan as well and wait for its end
        :raises AuditImpossible: when Watcher does not answer
        """
        answer = self._ask({
            'goal': goal, 'strategy': strategy, 'scope': scope, 'execute': execute,
            'parameters': dict(parameters or {}), 'timeout': timeout})
        return Outcome(
            answer['state'], answer.get('plan_state'),
            _ordered([Action(one['uuid'], one['action_type'], one['state'],
                             tuple(one['parents'] or ()), one['input_parameters'])
                      for one in answer.get('actions', ())]),
            answer.get('efficacy', {}), answer.get('global_efficacy'), answer.get('message'),
            tuple(answer['log']))

    def get(self, path: str) -> Any:
        """Return what Watcher's API shows, such as ``/v1/goals``.

        :raises AuditImpossible: when it shows nothing there
        """
        return self._ask({'get': path})['body']

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + '\n')
        self._process.stdin.flush()
        answer = self._answer()
        if answer['state'] == 'ERROR':
            raise AuditImpossible('; '.join(answer['log'][-3:]))
        return answer

    def _answer(self) -> dict[str, Any]:
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            with open(os.path.join(self.directory, 'watcher.err'), encoding='utf-8') as file:
                last = file.read()[-1500:]
            raise AuditImpossible(f'Watcher stopped; see {self.directory}/watcher.err: {last}')
        answer: dict[str, Any] = json.loads(line)
        return answer


def _ordered(actions: list[Action]) -> tuple[Action, ...]:
    """Sort actions so that none comes before its parents."""
    done: dict[str, Action] = {}
    while len(done) < len(actions):
        ready = [action for action in actions
                 if action.uuid not in done and all(one in done for one in action.parents)]
        if not ready:
            raise ValueError('the actions wait for each other in a circle')
        done.update((action.uuid, action) for action in ready)
    return tuple(done.values())
