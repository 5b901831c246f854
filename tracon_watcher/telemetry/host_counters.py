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

"""Counters of a whole host, and throttled times of control groups."""

from __future__ import annotations

import os
import pathlib
import re
import time
from typing import Callable, Iterable, Iterator, Mapping

from tracon_watcher.telemetry import meters

#: Where version 2 of control groups is mounted, or the controller "cpu" of version 1.
_MOUNTS = ('sys/fs/cgroup', 'sys/fs/cgroup/cpu', 'sys/fs/cgroup/cpu,cpuacct',
           'sys/fs/cgroup/unified')
# Nanoseconds of a unit of each counter.
_COUNTERS = {b'throttled_time': 1, b'throttled_usec': 1000}
_PID_FILES = 'run/libvirt/qemu'
# Polls after which a domain is sought again that has no group that can be read.
_PAUSE = 10
# Groups that libvirt makes below a domain's own, and where systemd has one more in between.
_THREADS = re.compile(r'(vcpu\d+|emulator|iothread\d+)$')
_VCPU = re.compile(r'vcpu\d+$')


class ThrottledTimes:
    """The throttled time of each domain of a host, poll after poll.

    :param root: of the file system
    :param unthrottled_polls: polls until a domain that was never throttled is read again; who
        polls each second need not read each second that nothing is there
    """

    def __init__(self, root: pathlib.Path = pathlib.Path('/'), unthrottled_polls: int = 1) -> None:
        self._root = root
        self._unthrottled_polls = unthrottled_polls
        self._polls = 0
        self._zero: set[pathlib.Path] = set()
        self._within: tuple[object, set[str]] = None, set()
        #: By UUID and number of a domain, its group, or how often it is not to be sought.
        self._groups: dict[tuple[str, int], pathlib.Path | int] = {}

    def read(self, domains: Iterable[tuple[str, int, str]]) -> Mapping[str, int]:
        """Return the throttled time of domains by UUID, ns; what cannot be read is not there.

        :param domains: UUID, number (libvirt's id) and name of each that runs
        """
        groups: dict[tuple[str, int], pathlib.Path | int] = {}
        found = {}
        self._polls += 1
        if self._polls % self._unthrottled_polls == 0:
            self._zero.clear()
        for uuid, number, name in domains:
            known = self._groups.get((uuid, number), 0)
            if isinstance(known, int):
                known = self._group(uuid, number, name) or _PAUSE if known <= 1 else known - 1
            total = None if isinstance(known, int) else (
                0 if known in self._zero else _throttled(known))
            if total == 0 and not isinstance(known, int):
                self._zero.add(known)
            groups[uuid, number] = 1 if total is None and not isinstance(known, int) else known
            if total is not None:
                found[uuid] = total
        self._groups = groups
        return found

    def within(self, groups: Iterable[str]) -> set[str]:
        """Return those of these control groups, such as "a/b", that a domain was read in."""
        if self._within[0] != self._groups:
            self._within = self._groups, {
                name for name in groups for found in self._groups.values()
                if not isinstance(found, int) and any(
                    found.is_relative_to(self._root / mount / name) for mount in _MOUNTS)}
        return self._within[1]

    def _group(self, uuid: str, number: int, name: str) -> pathlib.Path | None:
        """Return the domain's own control group."""
        found = self._of_process(uuid, name)
        return self._by_number(number, name) if found is None else found

    def _of_process(self, uuid: str, name: str) -> pathlib.Path | None:
        """Return the group above those of the threads of QEMU."""
        pid = _text(self._root / _PID_FILES / f'{name}.pid')
        if pid is None or not pid.strip().isdigit():
            return None
        process = self._root / 'proc' / pid.strip()
        command, groups = _text(process / 'cmdline'), _text(process / 'cgroup')
        # In a container with processes of its own, that number is another process's.
        if command is None or groups is None or uuid not in command:
            return None
        for line in groups.splitlines():
            _number, _, rest = line.partition(':')
            controllers, _, path = rest.partition(':')
            if controllers and 'cpu' not in controllers.split(','):
                continue
            inside = pathlib.PurePosixPath(path.lstrip('/'))
            if _THREADS.match(inside.name):
                inside = inside.parent
            for mount in _MOUNTS:
                group = self._root / mount / inside
                if inside.parts and '..' not in inside.parts and _throttled(group) is not None:
                    return group
        return None

    def _by_number(self, number: int, name: str) -> pathlib.Path | None:
        """Return the group that libvirt names after the number of the domain.

        Long names are cut short in it, and what systemd does not like is escaped, so a group's
        name need only begin like the domain's. Where two libvirts share a kernel, there may be
        two such groups: neither is taken.
        """
        begin = re.match(r'[A-Za-z0-9]*', name)
        start = '' if begin is None else begin.group()[:8]
        found = set()
        for mount in _MOUNTS:
            top = self._root / mount
            for pattern in (f'machine.slice/machine-qemu\\x2d{number}\\x2d{start}*.scope',
                            f'machine/qemu-{number}-{start}*.libvirt-qemu'):
                for group in _glob(top, pattern):
                    below = group / 'libvirt'
                    chosen = below if below.is_dir() else group
                    if _throttled(chosen) is not None:
                        found.add(chosen)
        return found.pop() if len(found) == 1 else None


def _throttled(group: pathlib.Path) -> int | None:
    """Return the throttled time of a domain, ns; None where it is not counted."""
    try:
        names = os.listdir(group)
    except OSError:
        return None
    parts = [_counter(group), *(_counter(group / name) for name in names if _VCPU.match(name))]
    known = [part for part in parts if part is not None]
    # In version 2 a group has the counter only where the controller is on.
    return sum(known) if known else None


def _counter(group: pathlib.Path) -> int | None:
    try:
        with open(os.path.join(group, 'cpu.stat'), 'rb') as file:
            text = file.read()
    except OSError:
        return None
    for line in text.splitlines():
        name, _, value = line.partition(b' ')
        if name in _COUNTERS and value.isdigit():
            return _COUNTERS[name] * int(value)
    return None


def _text(path: pathlib.Path) -> str | None:
    try:
        return path.read_text(encoding='utf-8', errors='replace')
    except OSError:
        return None


def _glob(folder: pathlib.Path, pattern: str) -> Iterator[pathlib.Path]:
    try:
        yield from sorted(folder.glob(pattern))
    except OSError:
        return


_NS = 10**9
# Requests to these are requests to what they lie on, which is counted, or to memory; or they are
# no place for a VM's disk.
_NOT_DISKS = ('bcache', 'drbd', 'loop', 'ram', 'zram', 'sr', 'fd')


def read(root: pathlib.Path = pathlib.Path('/'), ticks_per_second: int | None = None,
         monotonic: Callable[[], int] = time.monotonic_ns) -> dict[str, int]:
    """Return the host's counters by the name of their meter; what is unknown is not there.

    The kernel's idle and iowait may fall a little; the times of a disk's requests start again from
    zero after 2³² ms.

    :param root: of the filesystem that has /proc and /sys
    :param ticks_per_second: of /proc/stat (default: this system's)
    :param monotonic: the clock, in ns
    """
    ticks = ticks_per_second or os.sysconf('SC_CLK_TCK')
    return {meters.HOST_CLOCK.name: monotonic(), **_cpu(root, ticks), **_disks(root),
            **_memory(root)}


def _cpu(root: pathlib.Path, ticks: int) -> dict[str, int]:
    """Busy is all but idle, waiting for I/O and steal; user contains the time of guests."""
    lines = _lines(root / 'proc/stat')
    if not lines or not lines[0].startswith('cpu '):
        return {}
    fields = [int(field) * (_NS // ticks) for field in lines[0].split()[1:9]]
    if len(fields) < 8:
        return {}
    user, nice, system, idle, iowait, irq, softirq, steal = fields
    return {meters.HOST_BUSY.name: user + nice + system + irq + softirq,
            meters.HOST_IDLE.name: idle, meters.HOST_IOWAIT.name: iowait,
            meters.HOST_STEAL.name: steal}


def _disks(root: pathlib.Path) -> dict[str, int]:
    """Sums over the disks; a host without any (or without /sys) has none to report."""
    rows = list(_whole_disks(root))
    if not rows:
        return {}
    reads, read_ms, writes, write_ms, busy_ms = map(sum, zip(*rows))
    return {meters.HOST_READ_REQUESTS.name: reads,
            meters.HOST_READ_TIME.name: read_ms * 10**6,
            meters.HOST_WRITE_REQUESTS.name: writes,
            meters.HOST_WRITE_TIME.name: write_ms * 10**6,
            meters.HOST_DISK_BUSY.name: busy_ms * 10**6, meters.HOST_DISKS.name: len(rows)}


def _memory(root: pathlib.Path) -> dict[str, int]:
    """Memory that VMs have touched is not available, whether they still use it or not."""
    fields = dict(line.split(':', 1) for line in _lines(root / 'proc/meminfo') if ':' in line)
    wanted = {meters.HOST_MEMORY.name: 'MemTotal',
              meters.HOST_MEMORY_AVAILABLE.name: 'MemAvailable'}
    return {name: int(fields[field].split()[0]) * 1024 for name, field in wanted.items()
            if field in fields}


def _whole_disks(root: pathlib.Path) -> Iterator[tuple[int, int, int, int, int]]:
    """Reads, their time, writes, their time, busy time (ms) of each device that is nothing but
    itself.

    A partition has no entry in /sys/block. A device with slaves (device mapper, md) passes
    requests on to them, where they are counted. A hidden one is a path to an NVMe namespace,
    whose requests the namespace counts (from Linux 6.1 on).
    """
    for line in _lines(root / 'proc/diskstats'):
        fields = line.split()
        if len(fields) < 13:
            continue
        name, reads, read_ms, writes, write_ms, busy_ms = (
            fields[index] for index in (2, 3, 6, 7, 10, 12))
        entry = root / 'sys/block' / name.replace('/', '!')
        if name.rstrip('0123456789') in _NOT_DISKS or not entry.is_dir():
            continue
        slaves = entry / 'slaves'
        if slaves.is_dir() and any(slaves.iterdir()) or _lines(entry / 'hidden') == ['1']:
            continue
        yield int(reads), int(read_ms), int(writes), int(write_ms), int(busy_ms)


def _lines(path: pathlib.Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
