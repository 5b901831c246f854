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

"""The whole application, from the outermost layer to the innermost.

Where the proxy says the request came from; a request id; a log line and metrics; faults as JSON;
what needs no token; keystonemiddleware; the routes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import dataclasses
import logging
import time
from urllib import parse

from keystonemiddleware import auth_token
from oslo_config import cfg
from oslo_middleware import http_proxy_to_wsgi
from oslo_middleware import request_id
from oslo_policy import policy
import prometheus_client
import webob
import webob.dec

from tracon_watcher.api import authority
from tracon_watcher.api import explanations
from tracon_watcher.api import faults
from tracon_watcher.api import metrics
from tracon_watcher.api import public
from tracon_watcher.api import routes
from tracon_watcher.api import state as states

LOG = logging.getLogger(__name__)
#: Seconds that Keystone has to answer; keystonemiddleware would wait for good, with every thread.
_KEYSTONE_TIMEOUT = 10

Application = Callable[..., Iterable[bytes]]


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
          checks: Mapping[str, public.Check] | None = None,
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
    answered: Application = routes.Routes(
        state, records, authority.enforcer(conf) if enforcer is None else enforcer, largest)
    _register_opts(conf)
    answered = auth_token.AuthProtocol(answered, {'oslo_config_config': conf})
    answered = _Doors(public.Public(state, {} if checks is None else checks), answered)
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

    def __init__(self, without: public.Public, behind: Application) -> None:
        self._without = without
        self._behind = behind

    @webob.dec.wsgify
    def __call__(self, request: webob.Request) -> webob.Response:
        routes.check(request)
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
