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
"""Three small hosts on this machine: control groups and a network link for each.

A host is not a guest: two guests on two cores would contend with each other, and under emulation
all of them are slow. A control group has exactly the share of CPU and disk that it is given, which
its worker and a neighbour then compete for.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess

from tracon_watcher import errors

NAME = 'tracon-tenant'
ROOT = pathlib.Path('/sys/fs/cgroup')
#: CPU time of a period that a host has, in microseconds, reads of its disk, and its link.
QUOTA_US, PERIOD_US, READS, LINK_MBIT = 1500, 5000, 400, 20
#: Ports of a worker and of its exporter.
PORT, METRICS = 8080, 9100


@dataclasses.dataclass(frozen=True)
class Host:
    """A host by its number, from 1; contention comes to the first one."""

    number: int

    @property
    def name(self) -> str:
        """Return the name of its network namespace and control groups."""
        return f'{NAME}-{self.number}'

    @property
    def address(self) -> str:
        """Return its address, in the range for benchmarks (RFC 2544)."""
        return f'198.18.{self.number}.2'

    def command(self, *command: str) -> list[str]:
        """Return a command line that runs a command on its core and its network."""
        core = CORES[-1] if self.number == 1 else CORES[(self.number - 1) % (len(CORES) - 1 or 1)]
        return ['nsenter', f'--net=/run/netns/{self.name}', 'taskset', '-c', str(core), *command]


#: Of this machine. The first host has the last one for itself, where there are two or more.
CORES = sorted(os.sched_getaffinity(0))
HOSTS = tuple(map(Host, (1, 2, 3)))


def enter(host: Host, leaf: str) -> None:
    """Put this process into the groups of a host, as its ``worker`` or ``neighbour``."""
    for folder in _folders(host, leaf):
        (folder / 'cgroup.procs').write_text(str(os.getpid()))


def create(file: pathlib.Path) -> None:
    """Make the hosts, whose disk is that of a file.

    :raises tracon_watcher.errors.TraconError: where this machine does not let them be made
    """
    for path in (one for top in _tops() for one in top.rglob('cgroup.procs')):
        if pids := path.read_text().split():
            raise errors.TraconError(f'{path.parent} has processes ({", ".join(pids)}): another '
                                     'demonstration runs; let it end, or end them')
    remove()
    whole = _disk(file)
    try:
        for host in HOSTS:
            # Both have one weight, so each gets half of the CPU when both want it.
            for folder in (*_folders(host, 'worker'), *_folders(host, 'neighbour')):
                folder.mkdir(parents=True, exist_ok=True)
            if _version() == 2:
                for above in (ROOT, ROOT / NAME, ROOT / NAME / host.name):
                    (above / 'cgroup.subtree_control').write_text('+cpu +io')
                (ROOT / NAME / host.name / 'cpu.max').write_text(f'{QUOTA_US} {PERIOD_US}')
                (ROOT / NAME / host.name / 'io.max').write_text(f'{whole} riops={READS}')
            else:
                cpu, disk = (ROOT / one / NAME / host.name for one in ('cpu', 'blkio'))
                (cpu / 'cpu.cfs_period_us').write_text(str(PERIOD_US))
                (cpu / 'cpu.cfs_quota_us').write_text(str(QUOTA_US))
                (disk / 'blkio.throttle.read_iops_device').write_text(f'{whole} {READS}')
            outer, inner = f'tt{host.number}', f'ip -n {host.name}'
            for command in (
                    f'ip netns add {host.name}',
                    f'ip link add {outer} type veth peer name eth0 netns {host.name}',
                    f'ip address add 198.18.{host.number}.1/30 dev {outer}',
                    f'ip link set {outer} up', f'{inner} link set lo up',
                    f'{inner} address add {host.address}/30 dev eth0',
                    f'{inner} link set eth0 up',
                    # What a worker sends waits behind what its neighbour sends.
                    f'tc -n {host.name} qdisc add dev eth0 root tbf rate {LINK_MBIT}mbit '
                    f'burst 5kb limit 80kb'):
                subprocess.run(command.split(), check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        remove()
        raise errors.TraconError(
            f'{getattr(error, "stderr", b"").decode().strip() or error}: the demonstration needs '
            'root, the controllers cpu and blkio (io) of control groups, network namespaces, and '
            'a file system on a disk') from None


def remove() -> None:
    """Remove what :func:`create` made; its processes have ended."""
    for host in HOSTS:
        subprocess.run(['ip', 'netns', 'delete', host.name], check=False, capture_output=True)
        subprocess.run(['ip', 'link', 'delete', f'tt{host.number}'], check=False,
                       capture_output=True)
    for top in _tops():
        for path, _folders_in, _files in os.walk(top, topdown=False):
            os.rmdir(path)


def _version() -> int:
    return 2 if (ROOT / 'cgroup.controllers').exists() else 1


def _tops() -> list[pathlib.Path]:
    return [ROOT / one / NAME for one in ([''] if _version() == 2 else ['cpu', 'blkio'])]


def _folders(host: Host, leaf: str) -> list[pathlib.Path]:
    if _version() == 2:
        return [ROOT / NAME / host.name / leaf]
    # Limits of blkio are those of one group alone in version 1, so worker and neighbour share it.
    return [ROOT / 'cpu' / NAME / host.name / leaf, ROOT / 'blkio' / NAME / host.name]


def _disk(file: pathlib.Path) -> str:
    """Return the numbers of the disk that a file is on; limits are those of whole disks."""
    device = os.stat(file).st_dev
    path = pathlib.Path(f'/sys/dev/block/{os.major(device)}:{os.minor(device)}')
    if (path / 'partition').exists():
        path = path.resolve().parent
    return (path / 'dev').read_text().strip() if path.exists() else str(file)
