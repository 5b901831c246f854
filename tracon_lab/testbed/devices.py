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

"""The guests' disks: the images behind them, and the storage that serves those."""

import abc
import dataclasses
import os
import pathlib
import shutil
import subprocess
import typing

from tracon_lab.testbed import application_image
from tracon_lab.testbed import daemons
from tracon_lab.testbed import domain
from tracon_lab.testbed import errors
from tracon_lab.testbed import image
from tracon_lab.testbed import interruption
from tracon_watcher.probe import images

HERE = pathlib.Path(__file__).parent
APPLICATIONS, DATABASE, SCRATCH, WORK = 'applications', 'database', 'scratch', 'work'


@dataclasses.dataclass(frozen=True)
class Contents:
    """Images in a cache: a scratch disk for each guest, and what the programs of a run need.

    :param database: the disk of the database program, read by all; None without it
    :param applications: the disk of the applications, read by all; with it each guest gets a
        work disk
    """

    cache: pathlib.Path
    sides: typing.Sequence[str]
    database: pathlib.Path | None = None
    applications: pathlib.Path | None = None

    def make(self) -> None:
        for side in self.sides:
            image.written_file(self._own(side, SCRATCH), image.SCRATCH_BYTES)
            if self.applications is not None:
                application_image.write_work_disk(self._own(side, WORK))

    def disks(self, side: str) -> list[domain.Disk]:
        found = [domain.Disk(SCRATCH, self._own(side, SCRATCH))]
        if self.database is not None:
            found.append(domain.Disk(DATABASE, self.database, read_only=True))
        if self.applications is not None:
            found += [domain.Disk(APPLICATIONS, self.applications, read_only=True),
                      domain.Disk(WORK, self._own(side, WORK))]
        return found

    def _own(self, side: str, label: str) -> pathlib.Path:
        return self.cache / ('%s-%s.img' % (label, side))


class Device(typing.Protocol):
    """The storage of one run."""

    def start(self) -> None: ...

    def disks(self, side: str) -> list[domain.Disk]: ...

    def processes(self) -> list[int]: ...

    def close(self) -> None: ...


class RawFiles:
    """A raw image file a disk, opened past the host's page cache."""

    def __init__(self, directory: pathlib.Path, contents: Contents) -> None:
        self._contents = contents

    def start(self) -> None:
        self._contents.make()

    def disks(self, side: str) -> list[domain.Disk]:
        return self._contents.disks(side)

    def processes(self) -> list[int]:
        return []

    def close(self) -> None:
        pass


class Served(abc.ABC):
    """All disks of all guests behind one NBD server, nbdkit."""

    def __init__(self, directory: pathlib.Path, contents: Contents) -> None:
        self._directory = directory
        self._contents = contents
        self._socket = directory / 'storage.sock'
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if not shutil.which('nbdkit'):
            raise errors.TestbedError('nbdkit is not installed; it serves the emulated device')
        self._contents.make()
        exports = self._directory / 'exports'
        exports.mkdir()
        for side in self._contents.sides:
            for disk in self._contents.disks(side):
                os.link(disk.path, exports / self._export(side, disk.label))
        with interruption.signals.held():
            self._child = daemons.start(
                ['nbdkit', '--foreground', '--unix', str(self._socket), '--threads', '4',
                 *self._plugin(exports)], self._socket, self._directory / 'nbdkit.log')
        os.chmod(self._socket, 0o666)

    @abc.abstractmethod
    def _plugin(self, exports: pathlib.Path) -> list[str]:
        """What nbdkit is to serve, and how, as arguments."""

    def _export(self, side: str, label: str) -> str:
        return '%s-%s' % (side, label)

    def disks(self, side: str) -> list[domain.Disk]:
        return [dataclasses.replace(disk, path=self._socket,
                                    export=self._export(side, disk.label))
                for disk in self._contents.disks(side)]

    def processes(self) -> list[int]:
        return [self._child.pid] if self._child is not None else []

    def close(self) -> None:
        if self._child is not None:
            daemons.stop(self._child)


class Spindle(Served):
    """One head serves all, a request at a time."""

    RATE = 80_000_000
    TURN = 8333
    SEEK = 8000

    def _plugin(self, exports: pathlib.Path) -> list[str]:
        plugin = self._directory / 'spindle.so'
        images.compile_c(HERE / 'host/spindle.c', plugin, '-shared', '-fPIC', '-lm')
        return [str(plugin), 'dir=%s' % exports, 'rate=%d' % self.RATE, 'turn=%d' % self.TURN,
                'seek=%d' % self.SEEK]


class RemoteVolume(Served):
    """Storage at the far end of a network: each request waits, several may wait at a time."""

    DELAY_MS = 2

    def _plugin(self, exports: pathlib.Path) -> list[str]:
        return ['--filter=delay', 'file', 'dir=%s' % exports, 'rdelay=%dms' % self.DELAY_MS,
                'wdelay=%dms' % self.DELAY_MS]
