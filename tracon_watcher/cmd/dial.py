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

"""``tracon dial``: a tenant's load balancer that shifts load away from contended workers."""

from __future__ import annotations

import argparse
import math
import pathlib
import signal
import time
from typing import Any, Callable, TYPE_CHECKING

from cliff import command
from cliff import lister

if TYPE_CHECKING:
    from tracon_watcher.tenant import classification
    from tracon_watcher.tenant import dial
    from tracon_watcher.tenant import settings


class Run(command.Command):
    """Shift load away from contended workers behind HAProxy, until SIGTERM.

    It measures the tail latency of each worker from HAProxy's log, and sets weights through its
    runtime API. With a model of ``tracon dial train`` it says which resource is contended. It
    needs nothing from the provider.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--config', required=True, type=pathlib.Path, metavar='FILE',
                            help='configuration of load balancer and workers (YAML)')
        parser.add_argument('--dry-run', action='store_true',
                            help='log the weights, but set none')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        import prometheus_client

        from tracon_watcher import errors
        from tracon_watcher.tenant import classification
        from tracon_watcher.tenant import settings

        # Blocked, a signal waits for the end of an interval's work; threads inherit that.
        ending = {signal.SIGTERM, signal.SIGINT}
        signal.pthread_sigmask(signal.SIG_BLOCK, ending)
        chosen = settings.load(parsed_args.config)
        service = _service(chosen, parsed_args.dry_run,
                           classification.read(chosen.model) if chosen.model else None)
        if chosen.metrics_port:
            registry = prometheus_client.CollectorRegistry()
            registry.register(service)
            try:
                prometheus_client.start_http_server(
                    chosen.metrics_port, chosen.metrics_address, registry)
            except OSError as error:
                raise errors.InvalidDocument(
                    str(parsed_args.config), 'metrics_port', chosen.metrics_port,
                    f'{error.strerror}; name an address and a port that are free') from None
        self.app.LOG.info('Learns quiet times of %s', chosen.backend)
        service.run(_waiter(ending, chosen.interval_seconds))


class Train(lister.Lister):
    """Learn to tell which resource is contended, from contention made on purpose.

    Runs the commands of the settings' ``stressors`` one after the other while the backend serves
    its usual load, and reads metrics from each worker's node_exporter. The table says how many
    runs of each kind a model names rightly that was trained on all other runs. Use it on workers
    whose users can wait.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--config', required=True, type=pathlib.Path, metavar='FILE',
                            help='load balancer, workers and stressors (YAML)')
        parser.add_argument('-o', '--output', required=True, type=pathlib.Path, metavar='MODEL',
                            help='file for the model (JSON)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_watcher import errors
        from tracon_watcher.tenant import classification
        from tracon_watcher.tenant import dial
        from tracon_watcher.tenant import settings

        chosen = settings.load(parsed_args.config)
        if not chosen.stressors:
            raise errors.InvalidDocument(str(parsed_args.config), 'stressors', None, 'name a '
                                         'command for each kind of contention and worker')
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        service = _service(chosen)
        try:
            runs = dial.train(chosen, service.api, service.observer,
                              _waiter(set(), chosen.interval_seconds))
        finally:
            service.restore()
        model = classification.fit(runs, chosen.peak_rate)
        classification.write(model, parsed_args.output)
        found = classification.validate(runs, chosen.peak_rate)
        told = [(run.kind, said) for run, (said, _error) in zip(runs, found)]

        def error(kind: str) -> str:
            known = [one for run, (_said, one) in zip(runs, found)
                     if run.kind == kind and not math.isnan(one)]
            return f'{100.0 * sum(known) / len(known):.0f} %' if known else ''

        return ('kind', 'runs', 'seen', 'right', 'taken_for', 'background_error',
                'coefficients'), [
            (kind, sum(one == kind for one, _said in told),
             sum(one == kind and said != '' for one, said in told), told.count((kind, kind)),
             ' '.join(sorted({said for one, said in told if one == kind != said})).strip(),
             error(kind), ' '.join(f'{one:.4g}' for one in model.coefficients.get(kind, ())))
            for kind in sorted({run.kind for run in runs})]


def _service(chosen: settings.Settings, dry_run: bool = False,
             model: classification.Model | None = None) -> dial.Dial:
    """Return the service, which has tried what will be needed."""
    from tracon_watcher.tenant import classification
    from tracon_watcher.tenant import dial
    from tracon_watcher.tenant import haproxy
    api = haproxy.RuntimeAPI(chosen.socket)
    exporters = classification.Exporters(chosen.exporters) if chosen.exporters else None
    service = dial.Dial(chosen, api, haproxy.Observer(
        chosen, api, haproxy.LogFollower(chosen.log), exporters=exporters), dry_run, model)
    service.start()
    return service


def _waiter(ending: set[signal.Signals], seconds: float) -> Callable[[], bool]:
    """Return what waits until the next interval has passed, or returns false at a signal."""
    deadline = time.monotonic()

    def wait() -> bool:
        nonlocal deadline
        # Intervals that were missed are not made up for.
        deadline = max(deadline + seconds, time.monotonic())
        return signal.sigtimedwait(ending, max(deadline - time.monotonic(), 0.0)) is None
    return wait
