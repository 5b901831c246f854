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

"""``tracon bench engine``: what one cycle of the engine costs, telemetry in and snapshot out."""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc
from typing import Any, Iterator

from cliff import lister
import numpy as np

from tracon_lab.cmd import arguments as common
from tracon_watcher import errors
from tracon_watcher import numerals
from tracon_watcher import progress

_COLUMNS = ('what', 'seconds', 'peak_mib', 'compared_with', 'reference_seconds', 'ratio')
_MEBIBYTE = 2 ** 20
_POLLING = 60.0
_START = 1.8e9


class Engine(lister.Lister):
    """Time a cycle of the engine on a synthetic cloud, beside a plain loop over its samples.

    Telemetry is synthetic and comes from memory; "tracon bench gnocchi" measures Gnocchi. The loop
    does the minimum: it takes differences of counters, VM by VM and meter by meter, and divides
    them by seconds. Seconds are of CPU. The peak is the largest additional allocation of Python
    and numpy, in a cycle of its own.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        common.add_cloud_size(parser, least_vms=1)
        parser.add_argument('--cycles', type=numerals.whole(1), default=3, metavar='N',
                            help='number of cycles, whose median is shown (default: %(default)s)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        rows = list(_measure(parsed_args))
        if parsed_args.formatter == 'table':
            rows = [tuple(f'{value:.3g}' if isinstance(value, float) else value for value in row)
                    for row in rows]
        return _COLUMNS, rows


class Source:
    """Synthetic telemetry of n VMs, whose demand varies a little from poll to poll.

    :param profiles: (n, 4)
    """

    resolution = 1.0
    ahead = 0.0

    def __init__(self, uuids: tuple[str, ...], profiles: Any) -> None:
        self._uuids = uuids
        count = len(uuids)
        reads, writes, guest, host = np.nan_to_num(profiles).T
        self._rates = np.column_stack([
            np.full(count, 1e9), 1e9 * guest, 1e7 * guest, 1e9 * host, reads, writes,
            1e5 * reads, 2e5 * writes])
        self._generator = np.random.default_rng(1)
        self._counters = np.zeros((count, self._rates.shape[1]))
        self._polls: list[tuple[float, Any]] = []
        self.now = _START

    def poll(self) -> None:
        """Let a polling interval pass."""
        self.now += _POLLING
        factor = self._generator.normal(1.0, 0.02, size=(len(self._uuids), 1))
        step = self._rates * np.maximum(factor, 0.0)
        step[:, 0] = self._rates[:, 0]
        self._counters = self._counters + _POLLING * step
        self._polls = [*self._polls[-9:], (self.now, self._counters)]

    def read(self, since: float, until: float, meters: Any) -> Any:
        """Return the samples in between, as a reader does."""
        from tracon_watcher.telemetry import samples
        found = [one for one in self._polls if since <= one[0] < until]
        count = len(self._uuids)
        counted = np.concatenate([values for _at, values in found])
        # Of what own limits do, all of it counts nothing.
        none = np.zeros((len(counted), max(len(meters) - counted.shape[1], 0)))
        return samples.Readings(
            self._uuids, tuple(meters), np.tile(np.arange(count), len(found)),
            np.repeat([at for at, _values in found], count), np.hstack([counted, none]))


def _measure(arguments: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    from tracon_lab.cmd import bench_cluster
    from tracon_watcher.contention import calibration
    from tracon_watcher.contention import profile_tracker
    from tracon_watcher.engine import collector as collectors
    from tracon_watcher.engine import state
    from tracon_watcher.engine import view
    from tracon_watcher.inventory import cloud
    from tracon_watcher.placement import assessment

    shown = progress.Progress(1.0)
    cluster = bench_cluster.build(arguments.hosts, arguments.vms_per_host, 0.1)
    source = Source(cluster.uuids, cluster.profiles)
    inventory = cloud.Inventory(
        {uuid: cloud.Server(uuid, f'vm-{row}', f'project-{row % 97}',
                            cluster.hosts[cluster.host[row]], f'flavor-{row % 11}', {},
                            f'image-{row % 13}', 'active')
         for row, uuid in enumerate(cluster.uuids)},
        {name: cloud.Hypervisor(name, True, True, cores=bench_cluster.CORES)
         for name in cluster.hosts}, (), {},
        _START)
    collector = collectors.Collector(
        source, profile_tracker.ProfileTracker(calibration.packaged()), _POLLING, 5 * _POLLING)
    defaults = state.Defaults(bench_cluster.HOST_TYPE)
    told: Any = None
    spent: dict[str, list[float]] = {}

    def cycle() -> None:
        nonlocal told
        source.poll()
        with _Timed(spent, 'collect: read, rates, demand'):
            found = collector.collect(inventory, source.now)
        with _Timed(spent, 'state: who runs where, what is tolerated'):
            built = state.build(inventory, found.demand, defaults, 1, source.now, _ignore)
        with _Timed(spent, 'leave out what is too small to tell'):
            told = view.deadband(told, built)
        with _Timed(spent, 'prepare to judge'):
            assessment.Assessor(told)

    for _poll in range(5):
        source.poll()
    shown.say('the first cycle reads five polls')
    gc.collect()
    tracemalloc.start()
    cycle()
    peak = tracemalloc.get_traced_memory()[1] / _MEBIBYTE
    tracemalloc.stop()
    spent.clear()
    for number in range(arguments.cycles):
        shown.say(f'cycle {number + 1} of {arguments.cycles}')
        gc.collect()
        cycle()
    shown.say('the plain loop')
    reference = _loop(source)
    whole = float(np.median(np.sum(list(spent.values()), axis=0)))
    yield 'one cycle', whole, peak, 'plain loop', reference, whole / reference
    for name, seconds in spent.items():
        median = float(np.median(seconds))
        yield name, median, None, 'plain loop', reference, median / reference


class _Timed:
    def __init__(self, spent: dict[str, list[float]], name: str) -> None:
        self._list = spent.setdefault(name, [])

    def __enter__(self) -> None:
        self._began = time.process_time()

    def __exit__(self, *unused: object) -> None:
        self._list.append(time.process_time() - self._began)


def _loop(source: Source) -> float:
    """Return the seconds that rates of the last poll take, one after the other."""
    (_before, old), (_now, new) = source._polls[-2:]
    samples = [(dict(enumerate(first)), dict(enumerate(last)))
               for first, last in zip(old.tolist(), new.tolist())]
    began = time.process_time()
    rates: list[dict[int, float]] = []
    for first, last in samples:
        seconds = (last[0] - first[0]) * 1e-9
        rates.append({meter: (last[meter] - first[meter]) / seconds
                      for meter in last if last[meter] >= first[meter]})
    spent = time.process_time() - began
    if len(rates) != len(samples):
        raise errors.TraconError('the loop has lost VMs: report this as a bug')
    return spent


def _ignore(kind: str, text: str) -> None:
    """Take a report; a synthetic cloud has nothing to report."""
