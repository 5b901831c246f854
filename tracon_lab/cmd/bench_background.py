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

"""``tracon bench background``: what tracon-background itself costs a compute host."""

from __future__ import annotations

import argparse
import pathlib
import statistics
import tempfile
import time
from typing import Any, Iterator
import uuid

from cliff import lister

from tracon_lab.cmd import arguments
from tracon_watcher import numerals

_COLUMNS = ('source', 'vms', 'what', 'cpu_milliseconds', 'percent_of_a_core')


class Background(lister.Lister):
    """Measure the CPU time of one sample of tracon-background, which takes one a second.

    "libvirt alone" is the reference, in the same run: only the one call for the statistics of all
    VMs. "tracon-background" is the whole work: the call, rates, the decision, and reading and
    writing limits of two control groups. The VMs are not real: "recorded" is a fake connection
    with recorded statistics, "test driver" is libvirt's own in this process, and in libvirtd where
    one runs. Control groups and /proc are files in a temporary folder. The CPU time of QEMU and
    libvirtd for an answer is not measured. Needs the extra "background".
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--domains', type=arguments.listed(numerals.whole(1, 10000)),
                            default=[5, 50], metavar='N,…', help='numbers of VMs (default: 5,50)')
        parser.add_argument('--looks', type=numerals.whole(1), default=30, metavar='N',
                            help='number of samples to measure (default: %(default)s)')
        parser.add_argument('--pause', type=numerals.number(0, 60), default=1.0,
                            metavar='SECONDS',
                            help='time between two samples, in which caches cool (default: '
                                 '%(default)g)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        rows: list[Any] = []
        for count in parsed_args.domains:
            with tempfile.TemporaryDirectory(prefix='tracon-bench-') as folder:
                rows += _measure(parsed_args, pathlib.Path(folder), count)
        return _COLUMNS, rows


def _measure(parsed_args: argparse.Namespace, folder: pathlib.Path,
             count: int) -> Iterator[tuple[Any, ...]]:
    from tracon_lab.cmd import bench_polling_sources as sources
    from tracon_watcher.background import cgroups
    from tracon_watcher.background import daemon
    from tracon_watcher.background import regulator
    from tracon_watcher.telemetry import libvirt
    names = ['background.slice/a', 'background.slice/b']
    capacities = {regulator.BYTES: 1e9, regulator.REQUESTS: 1e5}
    _host(folder, names, count)
    uuids = [str(uuid.UUID(int=number + 1)) for number in range(count)]
    for source, connection in sources.connections(uuids, folder).items():
        tree = cgroups.ControlGroups(names, '8:0', folder / 'sys/fs/cgroup')
        throttled = daemon.throttled_times(folder)
        one = daemon.Daemon(
            daemon.Observer(daemon.source('', capacities, throttled, lambda _uri: connection),
                            tree, capacities, folder),
            regulator.Regulator(regulator.Settings(capacities=capacities)), tree, None, throttled)
        groups = libvirt.VCPUS | libvirt.DISKS
        spent: dict[str, list[float]] = {'libvirt alone': [], 'tracon-background': []}
        for look in range(-5, parsed_args.looks):       # the first of them are not counted
            time.sleep(parsed_args.pause if look >= 0 else 0)
            for what, work in (('libvirt alone', lambda: connection.getAllDomainStats(
                    groups, libvirt.FLAGS)), ('tracon-background', one.step)):
                before = time.process_time()
                work()
                if look >= 0:
                    spent[what].append(time.process_time() - before)
        if one.vms != count or one.wrong:
            raise RuntimeError(f'{one.vms} VMs were seen; {one.wrong}')
        for what, seconds in spent.items():
            mean = statistics.mean(seconds)
            yield (source, count, what, round(1e3 * mean, 3),
                   round(100 * mean / daemon.INTERVAL, 3))


def _host(root: pathlib.Path, names: list[str], count: int) -> None:
    """Write the files of a host with this many VMs, each with a group as libvirt makes it."""
    group = root / 'sys/fs/cgroup'
    files = {'proc/meminfo': 'MemTotal: 65536000 kB\nMemAvailable: 32768000 kB\n',
             'sys/devices/system/cpu/online': '0-63\n', 'sys/fs/cgroup/cgroup.controllers': ''}
    for name in names:
        files.update({f'sys/fs/cgroup/{name}/{one}': '' for one in (
            'cgroup.freeze', 'cpu.max', 'cpu.idle', 'cpuset.cpus', 'memory.max', 'io.max')})
        files[f'sys/fs/cgroup/{name}/memory.stat'] = 'anon 1048576\n' + ''.join(
            f'other{place} 0\n' for place in range(40)) + 'shmem 0\n'
    for number in range(1, count + 1):
        scope = group / f'machine.slice/machine-qemu\\x2d{number}\\x2d00000000.scope/libvirt'
        for inside in (scope, scope / 'vcpu0'):
            files[str((inside / 'cpu.stat').relative_to(root))] = 'throttled_usec 0\n'
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
