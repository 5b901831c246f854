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

"""What the kernel says of a whole host: /proc/stat, /proc/diskstats, /sys/block."""

from __future__ import annotations

import os
import pathlib
import time
from typing import Callable, Iterator

from tracon_watcher.telemetry import meters

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
    return {meters.HOST_CLOCK.name: monotonic(), **_cpu(root, ticks), **_disks(root)}


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
    reads, read_ms, writes, write_ms = map(sum, zip(*rows))
    return {meters.HOST_READ_REQUESTS.name: reads,
            meters.HOST_READ_TIME.name: read_ms * 10**6,
            meters.HOST_WRITE_REQUESTS.name: writes,
            meters.HOST_WRITE_TIME.name: write_ms * 10**6}


def _whole_disks(root: pathlib.Path) -> Iterator[tuple[int, int, int, int]]:
    """Reads, their time, writes, their time (ms) of each device that is nothing but itself.

    A partition has no entry in /sys/block. A device with slaves (device mapper, md) passes
    requests on to them, where they are counted. A hidden one is a path to an NVMe namespace,
    whose requests the namespace counts (from Linux 6.1 on).
    """
    for line in _lines(root / 'proc/diskstats'):
        fields = line.split()
        if len(fields) < 11:
            continue
        name, reads, read_ms, writes, write_ms = (fields[index] for index in (2, 3, 6, 7, 10))
        entry = root / 'sys/block' / name.replace('/', '!')
        if name.rstrip('0123456789') in _NOT_DISKS or not entry.is_dir():
            continue
        slaves = entry / 'slaves'
        if slaves.is_dir() and any(slaves.iterdir()) or _lines(entry / 'hidden') == ['1']:
            continue
        yield int(reads), int(read_ms), int(writes), int(write_ms)


def _lines(path: pathlib.Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
