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

"""What is answered without a token: which versions there are, and whether the engine is well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import logging
from typing import Any

import webob

from tracon_watcher.api import faults
from tracon_watcher.api import routes
from tracon_watcher.api import state as states

LOG = logging.getLogger(__name__)

SERVICE_TYPE = 'interference'
_RESOURCES = ('summary', 'hosts', 'host_types', 'vms', 'explanations', 'audits')

#: Says whether a part of the engine works; it must not take long.
Check = Callable[[], bool]


class Public:
    """Answers paths that need no token.

    :param checks: parts of the engine by name; names and whether they work are all that is told
    """

    def __init__(self, state: states.States, checks: Mapping[str, Check]) -> None:
        self._state = state
        self._checks = checks
        self._failing: set[str] = set()

    def answer(self, request: webob.Request) -> webob.Response | None:
        """Return the response, None where a token is needed."""
        path = request.path_info.rstrip('/')
        answers = {'': self._versions, '/v1': self._version, '/healthz': self._health,
                   '/healthz/ready': self._ready}
        if path not in answers:
            return None
        request.environ[faults.ROUTE] = path or '/'
        return answers[path](request)

    def _versions(self, request: webob.Request) -> webob.Response:
        return routes.respond({'versions': [_described(request)]})

    def _version(self, request: webob.Request) -> webob.Response:
        return routes.respond({'version': _described(request), 'resources': [
            f'{request.application_url}/v1/{name}' for name in _RESOURCES]})

    def _health(self, request: webob.Request) -> webob.Response:
        """Answer as long as the process answers at all; supervisors that restart it look here."""
        return routes.respond(self._details())

    def _ready(self, request: webob.Request) -> webob.Response:
        """Answer 503 until there is something to show; load balancers look here."""
        found = self._details()
        return routes.respond(found, 200 if found['ready'] else faults.Unavailable.status)

    def _details(self) -> dict[str, Any]:
        checks = {}
        for name, check in self._checks.items():
            try:
                checks[name] = bool(check())
                self._failing.discard(name)
            except Exception:
                # Who looks does so every few seconds; it is said once for as long as it lasts.
                if name not in self._failing:
                    LOG.exception('The check of %s failed', name)
                self._failing.add(name)
                checks[name] = False
        state = self._state.present()
        view = None
        if state is not None:
            view = {'epoch': state.view.epoch, 'version': state.cluster.version,
                    'age_seconds': states.number(max(state.now - state.view.updated_at, 0.0), 1)}
        return {'live': True, 'ready': state is not None and all(checks.values()),
                'checks': checks, 'view': view}


def _described(request: webob.Request) -> dict[str, Any]:
    return {'id': 'v1.0', 'status': 'CURRENT', 'min_version': '', 'max_version': '',
            'links': [{'rel': 'self', 'href': f'{request.application_url}/v1'}]}
