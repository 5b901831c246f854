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
"""Host types: what two guests share, and the disks they are given for it."""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import typing

from tracon_watcher.lab import daemons
from tracon_watcher.lab import domain
from tracon_watcher.lab import errors
from tracon_watcher.lab import image
from tracon_watcher.lab import interruption

HERE = pathlib.Path(__file__).parent


class Device(typing.Protocol):
    """The storage of one run."""

    def start(self) -> None: ...

    def disks(self, side: str) -> list[domain.Disk]: ...

    def processes(self) -> list[int]: ...

    def close(self) -> None: ...


class RawFiles:
    """A raw image file a guest, opened past the host's page cache."""

    def __init__(self, directory: pathlib.Path, cache: pathlib.Path, built: image.Image,
                 sides: typing.Sequence[str]) -> None:
        self._cache = cache
        self._image = built
        self._sides = sides

    def start(self) -> None:
        for side in self._sides:
            written_file(self._cache / ('scratch-%s.img' % side), image.SCRATCH_BYTES)

    def disks(self, side: str) -> list[domain.Disk]:
        return [domain.Disk(self._cache / ('scratch-%s.img' % side)),
                domain.Disk(self._image.database, read_only=True)]

    def processes(self) -> list[int]:
        return []

    def close(self) -> None:
        pass


class Spindle:
    """All disks of both guests on one emulated spindle, an NBD server."""

    RATE = 80_000_000
    TURN = 8333
    SEEK = 8000

    def __init__(self, directory: pathlib.Path, cache: pathlib.Path, built: image.Image,
                 sides: typing.Sequence[str]) -> None:
        self._directory = directory
        self._cache = cache
        self._image = built
        self._sides = sides
        self._socket = directory / 'spindle.sock'
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        platter = self._directory / 'platter'
        platter.mkdir()
        for side in self._sides:
            scratch = self._cache / ('scratch-%s.img' % side)
            written_file(scratch, image.SCRATCH_BYTES)
            os.link(scratch, platter / ('%s-scratch' % side))
            os.link(self._image.database, platter / ('%s-database' % side))
        plugin = self._directory / 'spindle.so'
        image.compile_c(HERE / 'host/spindle.c', plugin, '-shared', '-fPIC', '-lm')
        if not shutil.which('nbdkit'):
            raise errors.TestbedError('nbdkit is not installed; it serves the emulated device')
        with interruption.signals.held():
            self._child = daemons.start(
                ['nbdkit', '--foreground', '--unix', str(self._socket), '--threads', '4',
                 str(plugin), 'dir=%s' % platter, 'rate=%d' % self.RATE, 'turn=%d' % self.TURN,
                 'seek=%d' % self.SEEK],
                self._socket, self._directory / 'nbdkit.log')
        os.chmod(self._socket, 0o666)

    def disks(self, side: str) -> list[domain.Disk]:
        return [domain.Disk(self._socket, side + '-scratch'),
                domain.Disk(self._socket, side + '-database', read_only=True)]

    def processes(self) -> list[int]:
        return [self._child.pid] if self._child is not None else []

    def close(self) -> None:
        if self._child is not None:
            daemons.stop(self._child)


@dataclasses.dataclass(frozen=True)
class HostType:
    """A kind of host.

    :param emulated: "no", or "yes: " and how; goes into the data's header
    :param open_reads: and open_writes: rates of the open-loop programs, a second
    :param queries: of the database program, a unit
    :param levels: of the generator: CPU percent, reads and writes a second
    :param costs: share of the scarcest resource that a percent of CPU, a read and a
        write a second take, roughly; only used to choose settings
    :param most_load: up to which combinations of levels are measured
    """

    name: str
    emulated: str
    device: typing.Callable[[pathlib.Path, pathlib.Path, image.Image, typing.Sequence[str]],
                            Device]
    open_reads: int
    open_writes: int
    queries: int
    levels: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    cpu_costs: tuple[float, float, float]
    device_costs: tuple[float, float]
    most_load: float

    def load(self, cpu: int, reads: int, writes: int) -> float:
        """What a generator setting asks of the core or of the device, whichever is fuller."""
        core = (cpu * self.cpu_costs[0] + reads * self.cpu_costs[1]
                + writes * self.cpu_costs[2])
        return max(core, reads * self.device_costs[0] + writes * self.device_costs[1])


HOST_TYPES = {kind.name: kind for kind in (
    HostType('same-core-raw-disk', 'no', RawFiles, 500, 300, 1,
             ((0, 30, 60, 100), (0, 250, 800), (0, 200, 600)),
             (0.01, 0.0005, 0.0005), (0.0, 0.0), 1.33),
    HostType('shared-slow-device',
             'yes: one spindle of %d MB/s, %.1f ms a turn, %.1f ms a full seek, served by nbdkit '
             'to both guests' % (Spindle.RATE // 10**6, Spindle.TURN / 1000, Spindle.SEEK / 1000),
             Spindle, 15, 15, 1,
             ((0, 40, 90), (0, 10, 30, 80), (0, 10, 40)),
             (0.01, 0.0006, 0.0006), (0.009, 0.009), 1.1),
)}


def named(name: str) -> HostType:
    if name not in HOST_TYPES:
        raise errors.TestbedError('unknown host type %r: it is one of %s'
                                  % (name, ', '.join(sorted(HOST_TYPES))))
    return HOST_TYPES[name]


def written_file(path: pathlib.Path, size: int) -> None:
    """A file whose blocks are all written: holes answer too fast and grow while measured."""
    if path.exists() and path.stat().st_size == size:
        return
    part = path.with_suffix('.part')
    block = bytes(range(1, 256)) * 4112
    with open(part, 'wb') as out:
        left = size
        while left > 0:
            left -= out.write(block[:left])
        out.flush()
        os.fsync(out.fileno())
    part.rename(path)
