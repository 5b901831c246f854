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

"""``tracon bench placement``: what the filter and the weigher cost inside Nova's own handlers."""

from __future__ import annotations

import argparse
import os
import pathlib
import resource
import statistics
import tempfile
import time
from typing import Any, Callable

from cliff import lister

from tracon_lab.cmd import arguments as common
from tracon_watcher import numerals

_COLUMNS = ('what', 'milliseconds', 'share of Nova\'s weighing', 'above no-op (ms)', 'MiB')


class Placement(lister.Lister):
    """Time the filter and the weigher on a synthetic cluster, beside Nova's own weighers.

    All run in turn on the same HostStates, in Nova's own handlers. The medians of the rounds are
    shown, in CPU time of the request's thread. The no-op passes the same hosts as ours. Needs nova
    (the extra "nova").
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        common.add_cloud_size(parser, 'hosts of the request', least_hosts=2)
        parser.add_argument('--limited', type=numerals.number(0, 1), default=0.1, metavar='SHARE',
                            help='share of VMs with limits (default: %(default)s)')
        parser.add_argument('--pending', type=numerals.whole(0), default=0, metavar='N',
                            help='number of placements that the snapshot does not show yet '
                                 '(default: none)')
        parser.add_argument('--storage', choices=('local', 'pool'), default='local',
                            help='kind of storage: a disk for each host, or one pool for all '
                                 '(default: %(default)s)')
        parser.add_argument('--cores', type=numerals.whole(1), default=16, metavar='N',
                            help='cores of each host; its VMs use half of them on average '
                                 '(default: %(default)s)')
        parser.add_argument('--rounds', type=numerals.whole(1), default=15, metavar='N',
                            help='number of rounds, whose median is shown (default: %(default)s)')
        return parser

    def take_action(self, arguments: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')
        with tempfile.TemporaryDirectory(prefix='tracon-bench-') as directory:
            return _COLUMNS, measure(arguments, pathlib.Path(directory))


def measure(arguments: argparse.Namespace, directory: pathlib.Path) -> list[tuple[Any, ...]]:
    """Return the rows of the table."""
    # Nova is heavy, and only this command needs it here. It comes first: the plugins decide how
    # numpy is to run in a scheduler, before that is imported.
    from tracon_lab.cmd import bench_nova
    from tracon_lab.cmd import bench_cluster  # noqa: H306
    from tracon_watcher.placement import queues
    from tracon_watcher.placement import snapshot

    cluster = bench_cluster.build(arguments.hosts, arguments.vms_per_host, arguments.limited,
                                  arguments.storage, arguments.cores)
    path = directory / 'snapshot.jsonl'
    snapshot.write(path, cluster, pools={arguments.storage: queues.Pool(0.0005)})
    bench_nova.configure(path)
    states = bench_nova.host_states(cluster)
    before = _resident_mebibytes()
    start = time.perf_counter()
    ours = bench_nova.Ours(states, cluster, arguments.pending)
    load_ms = (time.perf_counter() - start) * 1000
    memory = _resident_mebibytes() - before
    stock = bench_nova.Stock(states)
    passing = ours.both()
    bare = bench_nova.NoOp(states, passing)
    times = _interleaved(
        {'stock': stock.weigh, 'no-op': bare.both, 'ours': ours.both},
        arguments.rounds, lambda: bench_nova.renew(states))
    first = _interleaved({'first': ours.both}, min(arguments.rounds, 5), ours.forget)['first']
    ours.close()
    weighing, none, own = (times[name] for name in ('stock', 'no-op', 'ours'))
    # The difference is taken round by round: the machine's own drift falls out of it.
    above = _median(ours_ms - none_ms for (ours_ms, _), (none_ms, _) in zip(own, none))
    base, no_op = _median(one for one, _ in weighing), _median(one for one, _ in none)
    new = _median(one for one, _ in first) - no_op
    rows = [
        (f'Nova\'s {stock.count} stock weighers', base, 1.0, None, None),
        ('no-op filter and weigher', no_op, no_op / base, 0.0, None),
        ('interference filter and weigher', _median(one for one, _ in own),
         _median(one for one, _ in own) / base, above, None),
        ('own time above the no-op', above, above / base, above, None),
        ('the same, of a kind that is rare and was not asked for yet', new, new / base, new, None),
        ('meanwhile in the background', _median(other for _, other in own), None, None, None),
        ('snapshot read and prepared, in the background', load_ms, None, None, memory)]
    return [tuple(round(value, 4) if isinstance(value, float) else value for value in row)
            for row in rows]


def _interleaved(work: dict[str, Callable[[], Any]], rounds: int,
                 before: Callable[[], None]) -> dict[str, list[tuple[float, float]]]:
    """Return milliseconds of CPU of each, round by round, after a round that does not count.

    All of it is computing, so on a machine that does nothing else it is the time that passes.

    :param before: is called before each, and not measured
    :returns: of the request itself, and of other threads meanwhile
    """
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for index in range(rounds + 1):
        for name, function in work.items():
            before()
            start, everything = time.thread_time(), time.process_time()
            function()
            taken = (time.thread_time() - start) * 1000
            other = (time.process_time() - everything) * 1000 - taken
            if index:
                times[name].append((taken, max(other, 0.0)))
    return times


def _median(values: Any) -> float:
    return float(statistics.median(values))


def _resident_mebibytes() -> float:
    pages = int(pathlib.Path('/proc/self/statm').read_text().split()[1])
    return pages * resource.getpagesize() / 2**20
