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

"""Programs of background work, processes of this machine: four stressors and a batch sort."""

from __future__ import annotations

import collections.abc
import dataclasses
import fcntl
import hashlib
import mmap
import multiprocessing
import os
import pathlib
import random
import signal
import socket
import subprocess
import typing

import numpy as np

from tracon_lab.background import web_service
from tracon_lab.testbed import daemons
from tracon_lab.testbed import image

_MIB = 1 << 20
# Many times what caches hold, in bytes; of a file; lines of 64 digits that are sorted at a time.
_COPIED, _FILE, _LINES = 256 * _MIB, 256 * _MIB, 65536


def _cpu(folder: pathlib.Path) -> collections.abc.Iterator[float]:
    block = bytes(_MIB)
    while True:
        hashlib.sha256(block).digest()
        yield 1.0


def _memory(folder: pathlib.Path) -> collections.abc.Iterator[float]:
    source, target = np.ones((2, _COPIED // 8))
    while True:
        for begin in range(0, len(source), _MIB):
            target[begin:begin + _MIB] = source[begin:begin + _MIB]
            yield 8.0


def _disk(folder: pathlib.Path) -> collections.abc.Iterator[float]:
    """Reads and writes in turn, at random places past the page cache."""
    rng, block = random.Random(1), mmap.mmap(-1, _MIB)
    with open(folder / 'background.img', 'r+b', buffering=0) as file:
        fcntl.fcntl(file, fcntl.F_SETFL, os.O_DIRECT)
        while True:
            for transfer in (os.preadv, os.pwritev):
                transfer(file.fileno(), [block], rng.randrange(_FILE // _MIB) * _MIB)
                yield 1.0


def _network(folder: pathlib.Path) -> collections.abc.Iterator[float]:
    with socket.create_connection(web_service.SINK, source_address=(web_service.ADDRESS, 0),
                                  timeout=60.0) as sink:
        sink.settimeout(None)
        while True:
            sink.sendall(bytes(_MIB // 16))
            yield 1 / 16


def _sort(folder: pathlib.Path) -> collections.abc.Iterator[float]:
    sorted_lines = folder / 'background.sorted'
    while True:
        subprocess.run(['sort', '--parallel=1', '-o', sorted_lines, folder / 'background.lines'],
                       check=True, env={**os.environ, 'LC_ALL': 'C'})
        with open(sorted_lines, 'rb') as file:
            os.fsync(file.fileno())
        yield _LINES / 1000


#: What each does, and the unit of its work.
PROGRAMS: dict[str, tuple[typing.Callable[[pathlib.Path], collections.abc.Iterator[float]],
                          str]] = {
    'cpu': (_cpu, 'MiB hashed'), 'memory': (_memory, 'MiB copied'),
    'disk': (_disk, 'MiB read or written'), 'network': (_network, 'MiB sent'),
    'sort': (_sort, '1000 lines sorted')}


def prepare(folder: pathlib.Path) -> None:
    """Make the files that programs use, unless they are there."""
    image.written_file(folder / 'background.img', _FILE)
    digits = random.Random(1).randbytes(32 * _LINES).hex()
    (folder / 'background.lines').write_text(''.join(
        digits[begin:begin + 64] + '\n' for begin in range(0, len(digits), 64)))


@dataclasses.dataclass
class Program:
    """One that runs until its control group is killed."""

    process: multiprocessing.Process
    _done: typing.Any

    @property
    def done(self) -> float:
        """Units of work so far."""
        return float(self._done.value)


def start(name: str, folder: pathlib.Path,
          groups: collections.abc.Sequence[pathlib.Path]) -> Program:
    """Start one.

    :param folder: with the files of :func:`prepare`
    :param groups: folders of its control group, one for each hierarchy
    """
    done = multiprocessing.Value('d', 0.0, lock=False)
    process = multiprocessing.Process(target=_run, args=(name, folder, list(groups), done),
                                      daemon=True)
    process.start()
    return Program(process, done)


def _run(name: str, folder: pathlib.Path, groups: list[pathlib.Path], done: typing.Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    daemons.die_with_parent()
    for group in groups:
        (group / 'cgroup.procs').write_text(str(os.getpid()))
    for amount in PROGRAMS[name][0](folder):
        done.value += amount
