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

"""Makes the process it runs in a machine of its own, as far as libvirt and Nova can tell.

It takes control groups and then namespaces of its own, a host name, and folders in the places
where libvirt keeps things. Then it writes into the file ``ready`` which mount namespace that is,
and sleeps. Processes that are to run on this host enter its namespaces.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import time

#: Folders that a host has for itself: under its own folder, and where they are seen.
FOLDERS = {'run': '/run/libvirt', 'lib': '/var/lib/libvirt', 'log': '/var/log/libvirt',
           'cache': '/var/cache/libvirt', 'etc': '/etc/libvirt'}
#: What nsenter and unshare call the namespaces.
NAMESPACES = ('--mount', '--uts', '--cgroup')
READY = 'ready'
MOUNTS = pathlib.Path('/proc/mounts')
_HOLDER = 'holder'
# Seconds between two attempts.
_PAUSE = 0.1


def command(folder: pathlib.Path, name: str, group: str, shares: int) -> tuple[str, ...]:
    """Return the command of the process that holds a host's namespaces.

    :param folder: the host's
    :param name: the host's
    :param group: name of its control groups
    :param shares: of the CPU, for all its guests together, where any other process has 1024
    """
    return (sys.executable, '-m', __name__, 'join', str(folder), name, group, str(shares))


def control_groups(mounts: str) -> list[pathlib.Path]:
    """Return where control groups are mounted, out of the lines of /proc/mounts."""
    lines = [line.split() for line in mounts.splitlines()]
    found = [pathlib.Path(line[1]) for line in lines if line[2] in ('cgroup', 'cgroup2')]
    return list(dict.fromkeys(found))


def join(group: str, shares: int) -> None:
    """Enter control groups of its own; a namespace made now takes them for the root."""
    # Groups that an earlier host of this name has left have others below them, and cannot be
    # entered.
    remove_groups(group)
    for place in _places():
        own = place / group
        own.mkdir(exist_ok=True)
        _hand_on(place)
        _allow_cores(place, own)
        for name, value in (('cpu.shares', shares),
                            ('cpu.weight', max(1, min(10000, shares * 100 // 1024)))):
            if (own / name).exists():
                (own / name).write_text(str(value), encoding='ascii')
        _move(own)


def enclose(folder: pathlib.Path, name: str, group: str) -> None:
    """Take a name, and folders and control groups that others do not see."""
    socket.sethostname(name)
    for place in _places():
        own = place / group
        leaf = own / _HOLDER
        leaf.mkdir(exist_ok=True)
        _allow_cores(own, leaf)
        # A group of version 2 that has others below it has no process.
        _move(leaf)
        _hand_on(own)
        _bind(own, str(place))
    for part, seen in FOLDERS.items():
        private = folder / part
        private.mkdir(parents=True, exist_ok=True)
        os.makedirs(seen, exist_ok=True)
        _bind(private, seen)
    _bind(folder / 'hosts', '/etc/hosts')


def remove_groups(group: str, patience: float = 0.0) -> None:
    """Remove a host's control groups, but for those in which there are processes.

    :param patience: seconds for which processes that were killed may take to be gone
    """
    deadline = time.monotonic() + patience
    while True:
        for place in _places():
            for folder, _folders, _files in os.walk(place / group, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
        if not any((place / group).exists() for place in _places()) or (
                time.monotonic() >= deadline):
            return
        time.sleep(_PAUSE)


def _places() -> list[pathlib.Path]:
    return control_groups(MOUNTS.read_text(encoding='utf-8'))


def _hand_on(group: pathlib.Path) -> None:
    """Let groups of version 2 below this one limit what this one may limit."""
    target = group / 'cgroup.subtree_control'
    if target.exists():
        for one in (group / 'cgroup.controllers').read_text(encoding='ascii').split():
            # Some cannot be handed on, and are not needed then.
            with contextlib.suppress(OSError):
                target.write_text(f'+{one}', encoding='ascii')


def _allow_cores(parent: pathlib.Path, group: pathlib.Path) -> None:
    """Let a group of version 1 use its parent's cores; a new one has none, and so no process."""
    if (group / 'cpuset.cpu_exclusive').exists():
        for name in ('cpuset.cpus', 'cpuset.mems'):
            (group / name).write_text((parent / name).read_text(encoding='ascii'),
                                      encoding='ascii')


def _move(group: pathlib.Path) -> None:
    (group / 'cgroup.procs').write_text(str(os.getpid()), encoding='ascii')


def _bind(source: pathlib.Path, place: str) -> None:
    subprocess.run(['mount', '--bind', str(source), place], check=True)


def main(stage: str, folder: str, name: str, group: str, shares: str) -> None:
    """Become the process that holds a host's namespaces.

    :param stage: ``join``, and when the namespaces have been made ``enclose``
    """
    if stage == 'join':
        join(group, int(shares))
        os.execvp('unshare', ['unshare', *NAMESPACES, sys.executable, '-m',
                              'tracon_lab.testcloud.enclosure', 'enclose', folder, name,
                              group, shares])
    enclose(pathlib.Path(folder), name, group)
    ready = pathlib.Path(folder) / READY
    part = ready.with_suffix('.part')
    part.write_text(os.readlink('/proc/self/ns/mnt'), encoding='ascii')
    part.replace(ready)
    os.execvp('sleep', ['sleep', 'infinity'])


if __name__ == '__main__':
    main(*sys.argv[1:])
