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

"""``tracon bench gnocchi``: what it costs a real Gnocchi, and us, to read all VMs' meters."""

from __future__ import annotations

import argparse
import os
import pathlib
import tempfile
import time
from typing import Any

from cliff import lister

from tracon_lab.cmd import arguments as common
from tracon_lab.cmd import bench_child
from tracon_lab.cmd import bench_gnocchi_server
from tracon_watcher import numerals
from tracon_watcher import progress

_COLUMNS = ('what', 'VMs', 'requests', 'seconds', 'API CPU (s)', 'database CPU (s)',
            'own CPU (s)', 'own MiB', 'measured with VMs')


class Gnocchi(lister.Lister):
    """Read synthetic series of VMs from a real Gnocchi, in several ways.

    The benchmark fills a Gnocchi of its own (MariaDB, files, its API under uWSGI) and reads the
    last minutes of all series: one cycle of collection. Then it reads a sample of the VMs in other
    pages and in other ways, and scales the results up to all. Needs the extra "cloud", MariaDB's
    server and 50 KiB a VM in the folder of temporary files. It adds 15,000 VMs within two minutes
    if that folder is in memory (TMPDIR=/dev/shm), within half an hour on a slow disk.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('--vms', type=numerals.whole(1), default=15000, metavar='N',
            help='number of VMs (default: %(default)s)')
        add('--sample', type=numerals.whole(1), default=600, metavar='N',
            help='number of VMs with which the alternatives to our requests are measured '
                 '(default: %(default)s)')
        add('--window', type=numerals.whole(1), default=5, metavar='MINUTES',
            help='time span that a cycle reads (default: %(default)s)')
        add('--points', type=numerals.whole(1), default=360, metavar='N',
            help='points of each series, a minute apart (default: %(default)s)')
        add('--other-metrics', type=numerals.whole(0), default=11, metavar='N',
            help='other metrics of a VM, which Gnocchi has to leave out (default: %(default)s)')
        add('--page', type=numerals.whole(1), default=100, metavar='N',
            help='VMs in a request (default: %(default)s)')
        add('--pages', type=common.listed(numerals.whole(1)), default=[10, 50, 200, 600],
            metavar='N[,N…]',
            help='other page sizes for comparison (default: 10,50,200,600)')
        add('--at-once', type=numerals.whole(1), default=4, metavar='N',
            help='requests at the same time (default: %(default)s)')
        add('--processes', type=numerals.whole(1), default=2, metavar='N',
            help='processes of Gnocchi\'s API (default: %(default)s)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        with tempfile.TemporaryDirectory(prefix='tracon-bench-') as directory:
            with bench_gnocchi_server.running(pathlib.Path(directory),
                                              parsed_args.processes) as server:
                shown = progress.Progress(1.0, self.app.stderr)
                rows = measure(parsed_args, server, fill(parsed_args, server, shown), shown)
        return _COLUMNS, numerals.rows(rows, parsed_args)


def fill(arguments: argparse.Namespace, server: bench_gnocchi_server.Server,
         shown: progress.Progress) -> float:
    """Put the VMs in; return the time until which they have series, seconds since the epoch."""
    shown.say(f'Putting {arguments.vms} synthetic VMs into Gnocchi')
    begin = time.time()
    server.fill('--vms', str(arguments.vms), '--points', str(arguments.points),
                '--other-metrics', str(arguments.other_metrics))
    # The last bucket that is in is that before the minute in which it began.
    return begin // 60 * 60


def measure(arguments: argparse.Namespace, server: bench_gnocchi_server.Server, end: float,
            shown: progress.Progress) -> list[tuple[Any, ...]]:
    """Return the rows of the table."""
    # keystoneauth1 is only needed by those who read telemetry.
    from tracon_lab.cmd import bench_gnocchi_ways as ways
    window = (end - 60 * arguments.window, end)
    vms = sorted(ways.known(server.endpoint))
    sample = vms[::max(1, len(vms) // arguments.sample)][:arguments.sample]
    size, at_once = arguments.page, arguments.at_once
    rows = [_row('list all VMs', ways.listing(server.endpoint), server, len(vms), len(vms), shown),
            _row(f'one cycle, in pages of {size}',
                 ways.cycle(server.endpoint, size, at_once, window, vms), server, len(vms),
                 len(vms), shown)]

    def add(what: str, way: Any, *given: Any) -> None:
        rows.append(_row(what, way(server.endpoint, *given, at_once, window, sample), server,
                         len(sample), len(vms), shown))
    for other in sorted({size, *arguments.pages}):
        add(f'pages of {other}', ways.pages, other)
    add(f'pages of {size}, with groupby', ways.grouped, size)
    add(f'pages of {size}, by metric', ways.by_metric, size)
    add('a request for each VM', ways.pages, 1)
    add('a request for each VM and meter', ways.single)
    threads = os.cpu_count() or 1
    server.serve(threads)
    add(f'pages of {size}, parallel_operations = {threads}', ways.pages, size)
    return rows


def _row(what: str, work: bench_child.Work, server: bench_gnocchi_server.Server, read: int,
         everything: int, shown: progress.Progress) -> tuple[Any, ...]:
    """Measure one way; what is of a sample is scaled to all, but for memory."""
    shown.say(what)
    before = server.processor_seconds()
    done = bench_child.run(work, lambda share: None)
    assert done is not None
    after = server.processor_seconds()
    scale = everything / read
    return (what, everything, round(done['requests'] * scale), done['seconds'] * scale,
            *((after[name] - before[name]) * scale for name in ('api', 'database')),
            done['own'] * scale, done['mebibytes'], read)
