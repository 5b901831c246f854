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

"""Which path is answered by what: all that needs a token."""

from __future__ import annotations

from collections.abc import Callable, Iterable
import dataclasses
import json
import math
from typing import Any
from urllib import parse

from oslo_context import context as oslo_context
from oslo_middleware import request_id
from oslo_policy import policy
import webob
import webob.dec

from tracon_watcher.api import audits
from tracon_watcher.api import authority
from tracon_watcher.api import explanations
from tracon_watcher.api import faults
from tracon_watcher.api import gate as gates
from tracon_watcher.api import host_types
from tracon_watcher.api import hosts
from tracon_watcher.api import moves
from tracon_watcher.api import parameters
from tracon_watcher.api import state as states
from tracon_watcher.api import summary
from tracon_watcher.api import vms

Document = dict[str, Any]
Application = Callable[..., Iterable[bytes]]

_LONGEST_QUERY = 8192


@dataclasses.dataclass(frozen=True)
class Asked:
    """A request, and who asks it."""

    request: webob.Request
    caller: authority.Caller


class Routes:
    """Answers everything under /v1 that needs a token.

    :param largest: entries in one page of a list at most
    """

    def __init__(self, known: states.States, records: explanations.Records,
                 enforcer: policy.Enforcer, largest: int = 1000) -> None:
        self._enforcer = enforcer
        gate = gates.Gate()
        explained = explanations.Explanations(records, gate)
        self._all: dict[str, Callable[[Asked], Document]] = {
            'hosts': lambda asked: hosts.find(asked.request, asked.caller, known, largest),
            'host_types': lambda asked: host_types.find(asked.request, asked.caller, known,
                                                        largest),
            'moves': lambda asked: moves.find(asked.request, asked.caller, known, records,
                                              largest),
            'summary': lambda asked: summary.show(asked.caller, known),
            'vms': lambda asked: vms.find(asked.request, asked.caller, known, records,
                                          largest)}
        self._single: dict[str, tuple[str, Callable[[Asked, str], Document]]] = {
            'hosts': ('name', lambda asked, name: hosts.show(asked.caller, known, name)),
            'vms': ('uuid', lambda asked, name: vms.show(
                asked.caller, known, records, gate, name)),
            'audits': ('uuid', lambda asked, name: audits.show(
                asked.caller, known, records, name)),
            'explanations': ('request_or_vm', lambda asked, name: explained.show(
                asked.request, asked.caller, known, name))}

    @webob.dec.wsgify
    def __call__(self, request: webob.Request) -> webob.Response:
        asked = Asked(request, authority.Caller(_context(request), self._enforcer))
        return respond(self._answer(asked))

    def _answer(self, asked: Asked) -> Document:
        request = asked.request
        parts = request.path_info.strip('/').split('/', 2)[1:]
        if len(parts) == 1 and parts[0] in self._all:
            request.environ[faults.ROUTE] = f'/v1/{parts[0]}'
            return self._all[parts[0]](asked)
        if len(parts) == 2 and parts[0] in self._single and parts[1]:
            parameter, handler = self._single[parts[0]]
            request.environ[faults.ROUTE] = f'/v1/{parts[0]}/{{{parameter}}}'
            if not parameters.is_name(parts[1]):
                raise faults.NotFound('Nothing has such a name.')
            if parts[0] != 'explanations':
                parameters.Query(request.GET, ())
            return handler(asked, parts[1])
        raise faults.NotFound('There is nothing at this path.',
                              'GET /v1 tells what there is.')


def check(request: webob.Request) -> None:
    """Refuse whatever is no plain question.

    :raises tracon_watcher.api.faults.Fault: naming what is wrong
    """
    if request.method not in ('GET', 'HEAD'):
        raise faults.MethodNotAllowed(request.method)
    if request.headers.get('Content-Length', '0').strip() not in ('', '0') or (
            'Transfer-Encoding' in request.headers):
        raise faults.TooLarge('The request has a body.', 'None is expected here.')
    if len(request.query_string) > _LONGEST_QUERY:
        raise faults.TooLarge(f'The query has {len(request.query_string)} characters.',
                              f'No more than {_LONGEST_QUERY} are read.')
    try:
        request.path_info, request.GET     # both are decoded here
    except UnicodeDecodeError:
        raise faults.InvalidParameter('the URL', parse.quote(
            request.environ.get('PATH_INFO', ''), encoding='latin-1'), 'UTF-8') from None


def respond(content: Document, status: int = 200) -> webob.Response:
    """Return a response with a JSON document, in which null stands for what is not finite."""
    try:
        text = json.dumps(content, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(content), allow_nan=False)
    return webob.Response(status=status, body=text.encode(), content_type='application/json',
                          charset='UTF-8', cache_control='no-store')


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def _context(request: webob.Request) -> oslo_context.RequestContext:
    return oslo_context.RequestContext.from_environ(
        request.environ, request_id=request.environ.get(request_id.ENV_REQUEST_ID))
