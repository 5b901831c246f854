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

"""WSGI application: public paths, routes that need a token, middleware."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import dataclasses
import json
import logging
import math
import time
from typing import Any
from urllib import parse

from keystonemiddleware import auth_token
from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_middleware import http_proxy_to_wsgi
from oslo_middleware import request_id
from oslo_policy import policy
import prometheus_client
import webob
import webob.dec

from tracon_watcher.api import audits
from tracon_watcher.api import capacity
from tracon_watcher.api import explanations
from tracon_watcher.api import faults
from tracon_watcher.api import hosts
from tracon_watcher.api import ledger
from tracon_watcher.api import metrics
from tracon_watcher.api import parameters
from tracon_watcher.api import policies
from tracon_watcher.api import state as states
from tracon_watcher.api import vms
from tracon_watcher.api import what_if

LOG = logging.getLogger(__name__)

SERVICE_TYPE = 'interference'
_RESOURCES = ('summary', 'hosts', 'host_types', 'vms', 'explanations', 'audits', 'moves',
              'ledger', 'what_if', 'capacity')

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
        return respond({'versions': [_described(request)]})

    def _version(self, request: webob.Request) -> webob.Response:
        return respond({'version': _described(request), 'resources': [
            f'{request.application_url}/v1/{name}' for name in _RESOURCES]})

    def _health(self, request: webob.Request) -> webob.Response:
        """Answer as long as the process answers at all; supervisors that restart it look here."""
        return respond(self._details())

    def _ready(self, request: webob.Request) -> webob.Response:
        """Answer 503 until there is something to show; load balancers look here."""
        found = self._details()
        return respond(found, 200 if found['ready'] else faults.Unavailable.status)

    def _details(self) -> dict[str, Any]:
        checks = {}
        for name, check in self._checks.items():
            try:
                checks[name] = bool(check())
                self._failing.discard(name)
            except Exception:
                # Monitoring asks every few seconds, so a lasting failure is logged once.
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


Document = dict[str, Any]
Application = Callable[..., Iterable[bytes]]

_LONGEST_QUERY = 8192


@dataclasses.dataclass(frozen=True)
class Asked:
    """A request, and who asks it."""

    request: webob.Request
    caller: policies.Caller


class Routes:
    """Answers everything under /v1 that needs a token.

    :param largest: entries in one page of a list at most
    """

    def __init__(self, known: states.States, records: explanations.Records,
                 enforcer: policy.Enforcer, largest: int = 1000) -> None:
        self._enforcer = enforcer
        gate = explanations.ConcurrencyLimit()
        explained = explanations.Explanations(records, gate)
        self._all: dict[str, Callable[[Asked], Document]] = {
            'capacity': lambda asked: capacity.find(asked.request, asked.caller, known, largest),
            'hosts': lambda asked: hosts.find(asked.request, asked.caller, known, largest),
            'host_types': lambda asked: hosts.find_types(asked.request, asked.caller, known,
                                                         largest),
            'ledger': lambda asked: ledger.show(asked.request, asked.caller, known, records),
            'moves': lambda asked: audits.find(asked.request, asked.caller, known, records,
                                               largest),
            'summary': lambda asked: hosts.show_summary(asked.caller, known),
            'what_if': lambda asked: what_if.show(asked.request, asked.caller, known, gate),
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
        asked = Asked(request, policies.Caller(_context(request), self._enforcer))
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


#: Seconds that Keystone has to answer; keystonemiddleware would wait for good, with every thread.
_KEYSTONE_TIMEOUT = 10


@dataclasses.dataclass(frozen=True)
class Api:
    """What is served.

    :param application: of the API, for one address
    :param metrics: of the metrics, for another one that only Prometheus reaches
    :param state: of the views; its ``prepare`` is called after each new view
    """

    application: Application
    metrics: Application
    state: states.States


def build(view_of: states.ViewOf, records: explanations.Records, conf: cfg.ConfigOpts,
          checks: Mapping[str, Check] | None = None,
          registry: prometheus_client.CollectorRegistry | None = None, largest: int = 1000,
          clock: Callable[[], float] = time.time,
          enforcer: policy.Enforcer | None = None) -> Api:
    """Put the API together.

    :param view_of: returns what the engine knows now; None while it knows nothing
    :param records: where recorded decisions, and what audits told, are found
    :param conf: handed to keystonemiddleware, oslo.policy and oslo.middleware, which read groups
        of their own in it
    :param checks: parts of the engine whose health is told, by name
    :param registry: to which the engine's other metrics belong; None for one of its own
    :param largest: entries in one page of a list at most
    :param clock: seconds since the epoch
    :param enforcer: of the policy; None for one made from ``conf``
    """
    registry = prometheus_client.CollectorRegistry() if registry is None else registry
    state = states.States(view_of, clock)
    registry.register(metrics.StateCollector(state))
    answered: Application = Routes(
        state, records, policies.enforcer(conf) if enforcer is None else enforcer, largest)
    _register_opts(conf)
    answered = auth_token.AuthProtocol(answered, {'oslo_config_config': conf})
    answered = _Doors(Public(state, {} if checks is None else checks), answered)
    answered = faults.FaultWrapper(answered)
    answered = _Log(answered, metrics.RequestMetrics(registry))
    answered = request_id.RequestId(answered)
    return Api(http_proxy_to_wsgi.HTTPProxyToWSGI(answered, conf),
               metrics.MetricsApplication(registry), state)


def _register_opts(conf: cfg.ConfigOpts) -> None:
    """Register keystonemiddleware's options, with a default that it lacks."""
    for group, options in auth_token.list_opts():
        conf.register_opts(options, group=group)
        conf.set_default('http_connect_timeout', _KEYSTONE_TIMEOUT, group)


class _Doors:
    """Lets those in without a token who ask for what needs none."""

    def __init__(self, without: Public, behind: Application) -> None:
        self._without = without
        self._behind = behind

    @webob.dec.wsgify
    def __call__(self, request: webob.Request) -> webob.Response:
        check(request)
        response = self._without.answer(request)
        return request.get_response(self._behind) if response is None else response


class _Log:
    """Writes a line for each request: never a header, a token or a body."""

    def __init__(self, application: Application, measured: metrics.RequestMetrics) -> None:
        self._application = application
        self._measured = measured

    @webob.dec.wsgify
    def __call__(self, request: webob.Request) -> webob.Response:
        response, took = self._measured.around(request, self._application)
        # Quoted, so that no client writes lines of its own into the log.
        path = parse.quote(request.environ.get('PATH_INFO', ''), encoding='latin-1')
        query = parse.quote(request.query_string, safe='=&%:,+', encoding='latin-1')
        LOG.info('%s "%s %s%s" status: %s len: %s time: %.4f [%s]', request.remote_addr or '-',
                 parse.quote(request.method), path, f'?{query}' if query else '',
                 response.status_int, response.content_length, took,
                 request.environ.get(request_id.ENV_REQUEST_ID))
        return response
