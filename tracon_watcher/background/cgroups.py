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

"""Control groups, versions 1 and 2, and the kernel's traffic control: limits as files.

Each file is read before it is written, so that nothing is written that stands there already, and
what somebody else has loosened is tightened again. A group of which a limit cannot be written is
paused: limits are all in force, or none of its tasks runs.
"""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
from typing import Any, Callable, Mapping

from tracon_watcher.background import regulator
from tracon_watcher import errors

ROOT = pathlib.Path('/sys/fs/cgroup')
NET = pathlib.Path('/sys/class/net')
_PERIOD = 100_000
_LEAST = 1_000      # microseconds a period, the kernel's least quota
_PAGE = 4096
#: Groups of virtual machines; who names one would throttle what is to be protected.
_VMS = ('machine', 'machine.slice')
#: A control file and the line that it is to hold.
_File = tuple[pathlib.Path, str]


class ControlGroups:
    """The background's control groups.

    :param names: paths below the root of each hierarchy, such as ``background.slice``
    :param device: number of the block device that is limited, such as 8:0; None: none
    :param root: where control groups are mounted
    :raises InvalidOption: naming what is not allowed, the value and the remedy
    """

    def __init__(self, names: list[str], device: str | None = None,
                 root: pathlib.Path = ROOT, own: str = '') -> None:
        self.version = 2 if (root / 'cgroup.controllers').exists() else 1
        self.names, self._device, self._root = names, device, root
        for name in names:
            parts = pathlib.PurePosixPath(name).parts
            if not parts or name.startswith('/') or {'.', '..'} & set(name.split('/')) or any(
                    other != name and f'{name}/'.startswith(f'{other}/') for other in names):
                raise errors.InvalidOption('groups', name, 'expected paths of control groups '
                                           'below their mount, none of them within another')
            if parts[0] in _VMS or any(f'{path}/'.startswith(f'/{name}/') for path in (
                    line.split(':', 2)[-1] for line in own.splitlines())):
                raise errors.InvalidOption(
                    'groups', name, 'virtual machines or this program itself are in it; name '
                    'groups in which there is background work and nothing else')
        if not names or len(set(names)) < len(names):
            raise errors.InvalidOption('groups', ', '.join(names), 'name control groups of '
                                       'background work, each once')
        if self.version == 1 and not (root / 'freezer').is_dir():
            raise errors.InvalidOption('cgroup_root', str(root), 'neither version 2 of control '
                                       'groups nor the controllers of version 1 (freezer) are '
                                       'mounted there; mount them, or name where they are')

    def folder(self, name: str, controller: str) -> pathlib.Path:
        """Return where a group's files of a controller are."""
        return self._root / name if self.version == 2 else self._root / controller / name

    def uses(self) -> dict[str, int]:
        """Return the memory of each group that is there, bytes that cannot be reclaimed.

        A group whose memory cannot be read is not in it, and so gets the safest limits.
        """
        wanted = ('anon', 'shmem') if self.version == 2 else ('total_rss', 'total_shmem')
        found = {}
        for name in self.names:
            text = _read(self.folder(name, 'memory') / 'memory.stat')
            rows = dict(line.split(' ', 1) for line in text.splitlines() if ' ' in line)
            parts = [rows[one] for one in wanted if rows.get(one, '').isdecimal()]
            if wanted[0] in rows and parts:
                found[name] = sum(map(int, parts))
        return found

    def missing(self) -> list[str]:
        """Return control files that groups lack which are there; such groups stay paused."""
        every = regulator.GroupLimits(True, 1.0, frozenset({0}), _PAGE, {regulator.BYTES: 1.0})
        return [str(path) for name in self.names if self.there(name) for path, _text in (
            self._switch(name, True), *self._files(name, every)) if not path.exists()]

    def there(self, name: str) -> bool:
        """Return whether a group is there."""
        return any(self.folder(name, one).is_dir() for one in (
            'freezer', 'cpu', 'memory', 'cpuset', 'blkio'))

    def apply(self, name: str, limits: regulator.GroupLimits) -> list[str]:
        """Write the limits of one group; return what went wrong.

        It is paused before anything else, and goes on after everything else was written.
        """
        if not self.there(name):
            return []
        switch = self._switch(name, limits.paused)
        wrong = self._write(switch) if limits.paused else []
        for one in self._files(name, limits):
            wrong += self._write(one)
        if limits.paused:
            return wrong
        return wrong + self._write(self._switch(name, True) if wrong else switch)

    def kill(self, name: str) -> list[str]:
        """Kill the tasks of a group and of those below it; return what went wrong."""
        folder = self.folder(name, 'freezer')
        if self.version == 2:
            return self._write((folder / 'cgroup.kill', '1'))
        for inside, _folders, _files in os.walk(folder):
            for pid in _read(pathlib.Path(inside, 'cgroup.procs')).split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except (OSError, ValueError):
                    continue        # it has ended
        # What is frozen does not die.
        return self._write(self._switch(name, False))

    def _switch(self, name: str, paused: bool) -> _File:
        folder = self.folder(name, 'freezer')
        if self.version == 2:
            return (folder / 'cgroup.freeze', str(int(paused)))
        return (folder / 'freezer.state', 'FROZEN' if paused else 'THAWED')

    def _files(self, name: str, limits: regulator.GroupLimits) -> list[_File]:
        quota = max(round(limits.cores * _PERIOD), _LEAST)
        rates = {key: max(int(value), 1) for key, value in limits.rates.items()}
        memory = None if limits.memory is None else limits.memory // _PAGE * _PAGE
        two, folder = self.version == 2, self.folder(name, 'cpu')
        if two:
            weight, least, usual = 'cpu.weight', '1', '100'
            found = [(folder / 'cpu.max', f'{quota} {_PERIOD}')]
        else:
            weight, least, usual = 'cpu.shares', '2', '1024'
            found = [(folder / 'cpu.cfs_period_us', str(_PERIOD)),
                     (folder / 'cpu.cfs_quota_us', str(quota))]
        # Linux before 5.15 has weights alone.
        if (folder / 'cpu.idle').exists():
            found.append((folder / 'cpu.idle', str(int(limits.idle))))
        else:
            found.append((folder / weight, least if limits.idle else usual))
        if limits.cpus:
            found.append((self.folder(name, 'cpuset') / 'cpuset.cpus', spelled(limits.cpus)))
        if memory is not None:
            file = 'memory.max' if two else 'memory.limit_in_bytes'
            found.append((self.folder(name, 'memory') / file, str(memory)))
        if self._device and rates and two:
            size, count = (rates.get(key, 'max') for key in (regulator.BYTES, regulator.REQUESTS))
            found.append((self._root / name / 'io.max', (
                f'{self._device} rbps={size} wbps={size} riops={count} wiops={count}')))
        elif self._device:
            found += [(self.folder(name, 'blkio') / f'blkio.throttle.{way}_{unit}_device',
                       f'{self._device} {rates[key]}')
                      for key, unit in ((regulator.BYTES, 'bps'), (regulator.REQUESTS, 'iops'))
                      if key in rates for way in ('read', 'write')]
        return found

    def _write(self, one: _File) -> list[str]:
        path, text = one
        if text in _read(path).splitlines():
            return []
        try:
            # Without creating it: a file that the kernel does not have has no effect.
            descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
            try:
                os.write(descriptor, text.encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            return [f'{path}: "{text}" cannot be written: {error.strerror}']
        return []


class Shaper:
    """A token bucket on what the background sends, by tc.

    :param device: network interface
    :param parent: class of the device's queueing discipline that the background's traffic is in,
        such as 1:20; ``root``: the interface is the background's alone
    :raises InvalidOption: for an interface that is not there, or is not the background's alone
    """

    def __init__(self, device: str, parent: str = 'root', net: pathlib.Path = NET,
                 run: Callable[..., Any] = subprocess.run) -> None:
        self._net, self._run = net / device, run
        self._behind = ['dev', device, *([parent] if parent == 'root' else ['parent', parent])]
        self._written: tuple[str, int] | None = None
        if '/' in device or not self._net.is_dir():
            raise errors.InvalidOption('network_device', device, 'there is no such interface; '
                                       '"ip link" lists them')
        if parent == 'root' and any((self._net / one).exists() for one in (
                'device', 'tun_flags', 'bonding', 'brport')):
            raise errors.InvalidOption(
                'network_device', device, 'virtual machines may send through it: name an '
                'interface of the background\'s alone, or a class by network_parent')

    def apply(self, rate: float) -> list[str]:
        """Limit to bytes a second; return what went wrong."""
        bits = max(int(8 * rate), 8000)
        # A new interface of the same name has another number, and no limit.
        state = _read(self._net / 'ifindex').strip(), bits
        if state == self._written:
            return []
        # Enough for a tick of 4 ms, and for one packet of 64 KiB.
        burst = max(bits // 8 // 250, 65536)
        command = ['tc', 'qdisc', 'replace', *self._behind, 'tbf', 'rate', f'{bits}bit', 'burst',
                   str(burst), 'latency', '50ms']
        try:
            done = self._run(command, capture_output=True, text=True, timeout=5, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return [f'tc: {error}']
        if done.returncode:
            return [f'{" ".join(command)}: {done.stderr.strip()}']
        self._written = state
        return []


def spelled(cores: frozenset[int]) -> str:
    """Return cores as the kernel spells them, such as ``0-2,5``."""
    found: list[list[int]] = []
    for core in sorted(cores):
        if found and core == found[-1][1] + 1:
            found[-1][1] = core
        else:
            found.append([core, core])
    return ','.join(f'{first}-{last}' if first < last else str(first) for first, last in found)


def parsed(text: str) -> frozenset[int]:
    """Return cores that the kernel, or an operator, has spelled so.

    :raises ValueError: for anything else
    """
    found: set[int] = set()
    for part in text.strip().split(','):
        first, dash, last = part.strip().partition('-')
        if not (first.isdecimal() and (last.isdecimal() or not dash) and len(part) < 12):
            raise ValueError(f'{text!r} is no list of cores such as 0-2,5')
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def memory(root: pathlib.Path, groups: Mapping[str, int]) -> tuple[float, float]:
    """Return the host's memory and what all but these groups use of it, bytes.

    What is not available includes huge pages and the host's own services, which are in need of
    their memory, too, and tells nothing of the inside of any VM.

    :raises OSError: where /proc/meminfo cannot be read, or is not whole
    """
    rows = {}
    for line in (root / 'proc/meminfo').read_text(encoding='ascii').splitlines():
        name, _colon, rest = line.partition(':')
        words = rest.split()
        if name in ('MemTotal', 'MemAvailable') and words and words[0].isdecimal():
            rows[name] = int(words[0]) * 1024
    if len(rows) < 2:
        raise OSError('/proc/meminfo has no MemTotal or MemAvailable')
    used = rows['MemTotal'] - rows['MemAvailable'] - sum(groups.values())
    return float(rows['MemTotal']), float(max(used, 0))


def _read(path: pathlib.Path) -> str:
    try:
        return path.read_text(encoding='utf-8', errors='replace')
    except OSError:
        return ''
