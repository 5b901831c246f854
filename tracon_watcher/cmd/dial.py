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
import pathlib
import signal
import time
from typing import Callable

from cliff import command


class Run(command.Command):
    """Shift load away from contended workers behind HAProxy, until SIGTERM.

    It measures the tail latency of each worker from HAProxy's log, and sets weights through its
    runtime API. It needs nothing from the provider.
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
        from tracon_watcher.tenant import dial
        from tracon_watcher.tenant import haproxy
        from tracon_watcher.tenant import settings

        # Blocked, a signal waits for the end of an interval's work; threads inherit that.
        ending = {signal.SIGTERM, signal.SIGINT}
        signal.pthread_sigmask(signal.SIG_BLOCK, ending)
        chosen = settings.load(parsed_args.config)
        api = haproxy.RuntimeAPI(chosen.socket)
        observer = haproxy.Observer(chosen, api, haproxy.LogFollower(chosen.log))
        service = dial.Dial(chosen, api, observer, parsed_args.dry_run)
        service.start()
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


def _waiter(ending: set[signal.Signals], seconds: float) -> Callable[[], bool]:
    """Return what waits until the next interval has passed, or returns false at a signal."""
    deadline = time.monotonic()

    def wait() -> bool:
        nonlocal deadline
        # Intervals that were missed are not made up for.
        deadline = max(deadline + seconds, time.monotonic())
        return signal.sigtimedwait(ending, max(deadline - time.monotonic(), 0.0)) is None
    return wait
