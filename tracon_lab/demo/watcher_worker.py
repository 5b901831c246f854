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

"""Watcher's services in a process of their own: API, decision engine and applier, the real ones.

Reads one request a line (JSON) from standard input and answers each with one line. Started by
:class:`tracon_lab.demo.watcher_box.WatcherBox`.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from typing import Any, Mapping

FINAL = ('SUCCEEDED', 'FAILED', 'CANCELLED')


class _Records(logging.Handler):
    """Keeps what an operator would read in the decision engine's log."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING or record.name.startswith('tracon_watcher'):
            self.lines.append(f'{record.levelname} {record.name}: {record.getMessage()}')
            if record.exc_info and record.exc_info[1] is not None:
                self.lines[-1] += f' [{type(record.exc_info[1]).__name__}: {record.exc_info[1]}]'


class Worker:
    """One Watcher, on a database of its own."""

    def __init__(self, configuration: str) -> None:
        from watcher.api import app
        from watcher.applier import manager as applier
        from watcher.common import service
        from watcher.db.sqlalchemy import migration
        from watcher.decision_engine import manager as decision_engine
        from watcher.decision_engine import sync
        service.prepare_service(['watcher', '--config-file', configuration])
        self.records = _Records()
        logging.getLogger().addHandler(self.records)
        migration.create_schema()
        sync.Syncer().sync()
        self._services = [service.Service(decision_engine.DecisionEngineManager),
                          service.Service(applier.ApplierManager)]
        for each in self._services:
            each.start()
        self._api = app.VersionSelectorApplication()

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send one request to Watcher's REST API."""
        import webob
        request = webob.Request.blank(path, method=method, headers={
            'OpenStack-API-Version': 'infra-optim latest', 'X-User-Id': 'admin',
            'X-Project-Id': 'admin', 'X-Roles': 'admin', 'X-Auth-Token': 'admin',
            'Accept': 'application/json'})
        if body is not None:
            request.content_type = 'application/json'
            request.body = json.dumps(body).encode()
        response = request.get_response(self._api)
        return response.status_code, json.loads(response.body or b'null')

    def get(self, path: str) -> Any:
        """Return what the API shows at ``path``."""
        status, body = self.call('GET', path)
        if status != 200:
            raise RuntimeError(f'GET {path}: {status} {body}')
        return body

    def audit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Run one audit; see :meth:`tracon_lab.demo.watcher_box.WatcherBox.audit`."""
        self._refresh()
        self.records.lines.clear()
        wanted = {key: request[key] for key in ('goal', 'strategy', 'parameters', 'scope', 'name')
                  if request.get(key) is not None}
        status, body = self.call('POST', '/v1/audits', {'audit_type': 'ONESHOT', **wanted})
        if status != 201:
            return {'state': 'REJECTED', 'log': [_fault(body)]}
        deadline = time.monotonic() + request['timeout']
        audit = self._wait(f'/v1/audits/{body["uuid"]}', deadline)
        result: dict[str, Any] = {'state': audit['state'], 'message': audit['status_message']}
        plans = self.get(f'/v1/action_plans?audit_uuid={audit["uuid"]}')['action_plans']
        if plans:
            path = f'/v1/action_plans/{plans[0]["uuid"]}'
            if request.get('execute') and plans[0]['state'] == 'RECOMMENDED':
                self.call('POST', path + '/start')
                self._wait(path, deadline)
            plan = self.get(path)
            shown = self.get(f'/v1/actions/detail?action_plan_uuid={plan["uuid"]}')['actions']
            result.update(
                plan_state=plan['state'], global_efficacy=plan['global_efficacy'],
                efficacy={one['name']: one['value'] for one in plan['efficacy_indicators']},
                actions=[{key: action[key] for key in
                          ('uuid', 'action_type', 'state', 'parents', 'input_parameters')}
                         for action in shown])
        result['log'] = list(self.records.lines)
        return result

    def _refresh(self) -> None:
        """Have the model of the cluster collected again, as the periodic job does."""
        from watcher.decision_engine.model.collector import manager
        collector = manager.CollectorManager().get_cluster_model_collector('compute')
        if collector._audit_scope_handler is not None:
            collector.synchronize()

    def _wait(self, path: str, deadline: float) -> Any:
        while True:
            shown = self.get(path)
            if shown['state'] in FINAL:
                return shown
            if time.monotonic() > deadline:
                raise TimeoutError(f'{path} is still {shown["state"]}')
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop the services."""
        for each in self._services:
            each.stop()


def _fault(body: Any) -> str:
    """Return the text of an API's error."""
    try:
        message = body['errors'][0]['detail'] if 'errors' in body else body['error_message']
        if isinstance(message, str) and message.startswith('{'):
            message = json.loads(message)
        return str(message['faultstring'] if isinstance(message, dict) else message)
    except (KeyError, IndexError, TypeError, ValueError):
        return str(body)


def main() -> None:
    """Serve requests until standard input ends."""
    answers = os.fdopen(os.dup(1), 'w', buffering=1)
    os.dup2(2, 1)
    worker = Worker(sys.argv[1])
    answers.write(json.dumps({'ready': True}) + '\n')
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {'state': 'SHOWN', 'body': worker.get(request['get'])} if (
                'get' in request) else worker.audit(request)
        except Exception as error:
            answer = {'state': 'ERROR', 'log': [*worker.records.lines,
                                                f'{type(error).__name__}: {error}']}
        answers.write(json.dumps(answer) + '\n')
    worker.stop()
    # Watcher's thread pools would wait for their idle threads.
    os._exit(0)


if __name__ == '__main__':
    main()
