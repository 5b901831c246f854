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

"""What Prometheus scrapes, on an address of its own: it tells of the whole cloud without a token.
"""

from __future__ import annotations

import math
import time
from typing import Any, Callable, Iterable, Iterator

import numpy as np
import prometheus_client
from prometheus_client import core
from prometheus_client import registry as registries
import webob
import webob.dec

from tracon_watcher.api import application
from tracon_watcher.api import faults
from tracon_watcher.api import state as states
from tracon_watcher.placement import assessment
from tracon_watcher.placement import current_interference

_OTHER = 'other'


class StateCollector(registries.Collector):
    """Numbers of the present view, worked out when they are scraped."""

    def __init__(self, state: states.States) -> None:
        self._state = state

    def describe(self) -> Iterable[core.Metric]:
        """Return nothing: what is registered must not depend on there being a view yet."""
        return ()

    def collect(self) -> Iterator[core.Metric]:
        """Yield the metrics; without a view, only that there is none."""
        state = self._state.present()
        yield core.GaugeMetricFamily('tracon_view_known', 'Whether the engine has a view at all.',
                                     value=float(state is not None))
        if state is None:
            return
        for name, text, value in (
                ('tracon_snapshot_epoch', 'Epoch of the snapshot, which rises with each change '
                 'of the leading engine.', state.view.epoch),
                ('tracon_snapshot_version', 'Version of the snapshot.', state.cluster.version),
                ('tracon_telemetry_timestamp_seconds', 'When the latest telemetry was taken.',
                 state.view.updated_at),
                ('tracon_vms', 'VMs on all hosts.', len(state.cluster.uuids)),
                ('tracon_observed_error_ratio', 'Mean relative error of observed slowdowns.',
                 state.view.observed_error)):
            yield core.GaugeMetricFamily(name, text, value=float(value))
        now = state.present()
        hosts = core.GaugeMetricFamily('tracon_hosts', 'Hosts by what is known of them.',
                                       labels=('status',))
        counts = np.bincount(state.statuses(), minlength=len(assessment.Status))
        for status in assessment.Status:
            hosts.add_metric((status.name.lower(),), float(counts[status]))
        yield hosts
        yield from _learnt(state)
        yield from _suffering(state, now)

    def __hash__(self) -> int:
        return id(self)


def _learnt(state: states.State) -> Iterator[core.Metric]:
    for name, text, value_of in (
            ('tracon_host_type_trust', 'How far predictions for hosts of a type are trusted, 0 to '
             '1; below 0.5 they are left alone.', lambda learnt: learnt.trust),
            ('tracon_host_type_error_ratio', 'Mean relative error of the slowdowns predicted for '
             'hosts of a type.', lambda learnt: learnt.error),
            ('tracon_host_type_vm_hours', 'Hours of VMs that this rests on; the older, the less '
             'an hour counts.', lambda learnt: learnt.vm_hours)):
        family = core.GaugeMetricFamily(name, text, labels=('host_type',))
        for host_type, learnt in sorted(state.assessor.settings.learnt.items()):
            # The error is unknown until something was observed.
            if not math.isnan(value_of(learnt)):
                family.add_metric((host_type,), value_of(learnt))
        yield family


def _suffering(state: states.State,
               now: current_interference.CurrentInterference) -> Iterator[core.Metric]:
    known = now.known
    yield core.GaugeMetricFamily('tracon_vms_in_breach', 'VMs that breach a limit, as predicted.',
                                 value=float(now.breached.any(axis=0).sum()))
    yield core.GaugeMetricFamily('tracon_vms_unknown', 'VMs whose slowdown cannot be predicted.',
                                 value=float((~known).sum()))
    yield core.GaugeMetricFamily(
        'tracon_harm', 'Sum over all VMs but those of background work of log slowdown and -log '
        'IOPS ratio, as predicted.',
        value=float(np.nansum(now.log_response[:, ~state.cluster.background])))
    slowest = core.GaugeMetricFamily('tracon_slowdown_worst', 'Largest slowdown of any VM.',
                                     labels=('source',))
    mean = core.GaugeMetricFamily('tracon_slowdown_mean', 'Mean slowdown of the VMs of which it '
                                  'is known.', labels=('source',))
    for source, values in (('predicted', np.exp(now.log_response[0][known])),
                           ('observed', state.view.observed[~np.isnan(state.view.observed)])):
        if len(values):
            slowest.add_metric((source,), float(values.max()))
            mean.add_metric((source,), float(values.mean()))
    yield slowest
    yield mean
    agreement = core.GaugeMetricFamily(
        'tracon_agreement', 'VMs by whether their observed slowdown agrees with the predicted.',
        labels=('agreement',))
    counts = np.bincount(state.agreement(), minlength=len(current_interference.Agreement))
    for one in current_interference.Agreement:
        agreement.add_metric((one.name.lower(),), float(counts[one]))
    yield agreement


class RequestMetrics:
    """Counts the requests of the API and times them."""

    def __init__(self, registry: prometheus_client.CollectorRegistry,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._requests = prometheus_client.Counter(
            'tracon_api_requests', 'Requests by path and status.', ('route', 'status'),
            registry=registry)
        self._seconds = prometheus_client.Histogram(
            'tracon_api_request_seconds', 'Time that requests took.', ('route',),
            registry=registry, buckets=(.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10))

    def around(self, request: webob.Request,
               application: Callable[..., Any]) -> tuple[webob.Response, float]:
        """Let the application answer; return what it says and the seconds it took."""
        begin = self._clock()
        response = request.get_response(application)
        took = self._clock() - begin
        route = request.environ.get(faults.ROUTE, _OTHER)
        self._requests.labels(route, str(response.status_int)).inc()
        self._seconds.labels(route).observe(took)
        return response, took


class MetricsApplication:
    """Answers GET /metrics with the text format, and nothing else."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._registry = registry

    @webob.dec.wsgify
    def __call__(self, request: webob.Request) -> webob.Response:
        try:
            application.check(request)
            if request.path_info.rstrip('/') != '/metrics':
                raise faults.NotFound('There is nothing at this path.', 'GET /metrics.')
        except faults.Fault as fault:
            return faults.respond(fault, None)
        return webob.Response(
            body=prometheus_client.generate_latest(self._registry),
            headerlist=[('Content-Type', prometheus_client.CONTENT_TYPE_LATEST)])
