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

"""DIAL's service: every interval it observes, decides, and tells HAProxy weights."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import shlex
import signal
import subprocess
from typing import Any, Callable, Iterator, Mapping

import numpy as np
from prometheus_client import core

from tracon_watcher import errors
from tracon_watcher.tenant import classification
from tracon_watcher.tenant import controller as controllers
from tracon_watcher.tenant import haproxy
from tracon_watcher.tenant import settings as dial_settings

LOG = logging.getLogger(__name__)


#: Per cent of a resource that stressors take, one after the other.
_LEVELS = (40, 60, 90)
#: Seconds that a stressor may take to end.
_PATIENCE = 10.0


class Dial:
    """Holds the weights of a backend's servers, and tells Prometheus of them.

    :param dry_run: leave HAProxy as it is, and log what would be done
    """

    def __init__(self, settings: dial_settings.Settings, api: haproxy.RuntimeAPI,
                 observer: haproxy.Observer, dry_run: bool = False,
                 model: classification.Model | None = None) -> None:
        self._settings = settings
        self.api = api
        self.observer = observer
        self._dry_run = dry_run
        self._wanted: dict[str, int] = {}
        self._failure = ''
        self._changes = 0
        self.controller = controllers.Controller(settings, model)

    def start(self) -> None:
        """Try what will be needed: the backend, its servers, and the right to set weights.

        :raises tracon_watcher.errors.TraconError: where one of them is missing
        """
        servers = self.api.servers(self._settings.backend)
        for name in self._settings.workers:
            if name not in servers:
                raise errors.InvalidOption(
                    'workers', name, f'backend {self._settings.backend} has no such server; it '
                    f'has {", ".join(servers)}')
        if not self._dry_run:
            self.api.set_weights(self._settings.backend, {
                name: servers[name].weight for name in self._settings.workers})

    def step(self) -> None:
        """Observe an interval and act on it; at most one line is logged, for what is new."""
        seen, servers = self.observer.observe()
        news = self.controller.decide(seen)
        shares = {name: share for name, share in self.controller.shares.items() if name in servers}
        wanted = controllers.weights(
            shares, {name: server.configured for name, server in servers.items()})
        in_use = {name: server.weight for name, server in servers.items()}
        if self._dry_run:
            # As if what was wanted last had been set.
            in_use = {**wanted, **self._wanted}
        differ = {name: weight for name, weight in wanted.items() if in_use[name] != weight}
        if differ:
            if not self._failure and any(in_use.get(name, weight) != weight
                                         for name, weight in self._wanted.items()):
                news.append('HAProxy had other weights')
            news += self._set(differ, wanted)
        self._wanted = wanted or self._wanted
        if news:
            LOG.info('%s: %s', self._settings.backend, '; '.join(news))

    def _set(self, differ: Mapping[str, int], wanted: Mapping[str, int]) -> list[str]:
        listed = ', '.join(f'{name} {weight}' for name, weight in wanted.items())
        if self._dry_run:
            return [f'weights would be {listed}']
        try:
            self.api.set_weights(self._settings.backend, differ)
        except haproxy.HAProxyFailed as error:
            new, self._failure = str(error) != self._failure, str(error)
            return [f'weights are not set: {error}'] if new else []
        self._failure = ''
        self._changes += 1
        return [f'weights are {listed}']

    def run(self, wait: Callable[[], bool]) -> None:
        """Do steps until the end, and restore equal weights then.

        :param wait: until an interval has passed; false when it is the end
        """
        try:
            while wait():
                self.step()
        finally:
            if not self._dry_run:
                self.restore()

    def restore(self) -> None:
        """Give all workers equal weights, also those that are not available now."""
        try:
            # A weight of 0 is an operator's.
            configured = {name: server.configured for name, server in self.api.servers(
                self._settings.backend).items()
                if name in self._settings.workers and server.weight}
            if configured:
                self.api.set_weights(self._settings.backend, controllers.weights(
                    dict.fromkeys(configured, 1.0), configured))
            LOG.info('%s: ends; weights are equal', self._settings.backend)
        except haproxy.HAProxyFailed as error:
            LOG.error('%s: ends; weights are left as they were: %s', self._settings.backend, error)

    def collect(self) -> Iterator[Any]:
        """Yield metrics for Prometheus; what is unknown is left out."""
        controller = self.controller
        yield core.GaugeMetricFamily(
            'tracon_dial_blind', 'Successive intervals of which nothing is known.',
            float(controller.blind))
        yield core.GaugeMetricFamily(
            'tracon_dial_learning', 'Whether quiet times are still learnt.',
            float(controller.learning))
        yield core.CounterMetricFamily(
            'tracon_dial_weight_changes', 'How many times weights were set.', self._changes)
        yield core.CounterMetricFamily(
            'tracon_dial_refused_lines', 'Lines of the log whose figures cannot be true.',
            self.observer.refused)
        gauges = {name: core.GaugeMetricFamily(f'tracon_dial_{name}', text, labels=['worker'])
                  for name, text in (
                      ('share', 'Share of requests that a worker is to get.'),
                      ('weight', 'Weight of a worker in HAProxy.'),
                      ('tail_seconds', 'Percentile of latency of a worker.'),
                      ('background_load', 'Estimated load of others on a worker, of 1.'),
                      ('contended', 'Whether a worker is contended.'))}
        shares, weights = controller.shares, self._wanted
        for name, worker in controller.workers.items():
            for gauge, value in (('share', shares.get(name, math.nan)),
                                 ('weight', weights.get(name, math.nan)),
                                 ('tail_seconds', worker.tail_ms / 1e3),
                                 ('background_load', worker.background_load),
                                 ('contended', float(worker.contended))):
                if not math.isnan(value):
                    gauges[gauge].add_metric([name], value)
        kinds = core.GaugeMetricFamily('tracon_dial_kind', 'The kind of contention of a worker.',
                                       labels=['worker', 'kind'])
        for name, worker in controller.workers.items():
            if worker.kind:
                kinds.add_metric([name, worker.kind], 1.0)
        yield from (*gauges.values(), kinds)


def train(settings: dial_settings.Settings, api: haproxy.RuntimeAPI, observer: haproxy.Observer,
          wait: Callable[[], object]) -> list[classification.Run]:
    """Make contention of each kind beside each worker, and none, and return what was seen.

    Each round has one run of each command, and one in which each worker gets twice the requests
    of another, since usage is predicted from their rate.

    :param wait: until an interval has passed
    :raises tracon_watcher.errors.TraconError: when a command or HAProxy fails
    """
    found: list[classification.Run] = []
    plan = [*((kind, name) for kind in settings.stressors for name in settings.stressors[kind]),
            *((dial_settings.LOAD, name) for name in settings.workers)]
    for number in range(settings.runs * len(plan)):
        turn, place = divmod(number, len(plan))
        # Rotated, so that what drifts meanwhile is no sign of a kind.
        kind, name = plan[(place + turn) % len(plan)]
        quiet, level = kind == dial_settings.LOAD, _LEVELS[turn % len(_LEVELS)]
        command = '' if quiet else settings.stressors[kind][name]
        LOG.info('Run %d of %d: %s of %s', number + 1, settings.runs * len(plan), kind, name)
        api.set_weights(settings.backend, {
            one: 2 if quiet and one == name else 1 for one in settings.workers})
        seen = _observed(settings, observer, wait, command.replace('{percent}', str(level)))
        for one in settings.workers if quiet else (name,):
            found.append(classification.Run(
                number, kind, 0.0 if quiet else level / 100.0 if '{percent}' in command
                else math.nan, *(np.array(column, dtype=np.float64) for column in zip(*(
                    (interval.readings.get(one, controllers.NO_READING), np.percentile(
                        interval.latencies.get(one) or [math.nan], settings.percentile))
                    for interval in seen)))))
    return found


def _observed(settings: dial_settings.Settings, observer: haproxy.Observer,
              wait: Callable[[], object], command: str) -> list[controllers.Observation]:
    """Return the intervals of a run, without those in which the last one fades."""
    seen: list[controllers.Observation] = []
    with contextlib.ExitStack() as stack:
        for place in range(settings.run_intervals + 2):
            if place == 1 and command:
                poll = stack.enter_context(_running(command))
            wait()
            found = observer.observe()[0]
            if found.blind:
                LOG.warning('%s; the interval does not count', found.blind)
                found = controllers.Observation()
            seen.append(found)
            if place and command and poll() is not None:
                raise errors.InvalidOption('stressors', command, f'ended by itself with status '
                                           f'{poll()}; it has to run until SIGTERM')
    return seen[2:]


@contextlib.contextmanager
def _running(command: str) -> Iterator[Callable[[], int | None]]:
    """Run a command and all that it starts, and yield what tells its exit status."""
    try:
        process = subprocess.Popen(shlex.split(command), stdin=subprocess.DEVNULL,
                                   start_new_session=True)
    except (OSError, ValueError) as error:
        raise errors.InvalidOption('stressors', command, f'{error}; name a command') from None
    try:
        yield process.poll
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, number)
                process.wait(_PATIENCE)
