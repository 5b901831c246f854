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

"""Time that virtual CPUs are kept waiting by their VM's own CPU quota, from control groups.

The kernel counts what a quota does to a group in the group's ``cpu.stat``: ``throttled_time`` (ns)
in version 1 of control groups, ``throttled_usec`` in version 2, each added up over the cores on
which the group had something to run. libvirt gives each virtual CPU a group of its own below the
domain's, and Nova's ``quota:cpu_quota`` is the quota of each of these, so that their sum is part
of the sum of the delays of virtual CPUs. A quota of the domain as a whole stands at its own group.
Groups of emulator and I/O threads do not count: nor do the delays of these.
"""

from __future__ import annotations

import os
import pathlib
import re
from typing import Iterable, Iterator, Mapping

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
