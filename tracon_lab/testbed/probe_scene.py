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

"""A sensor and neighbours whose load is known, as guests of this machine.

The neighbours are sensors as well, which drivers keep busy: one on the sensor's own core, one on
another; or processes, where an emulated guest is too slow to contend. A driver is a process on
the other core, and so is the generator of the readings, before all others there.
"""

from __future__ import annotations

import collections.abc
import contextlib
import dataclasses
import fcntl
import mmap
import multiprocessing
import os
import pathlib
import tempfile
import time

import aiohttp
import numpy as np

from tracon_lab.testbed import errors
from tracon_lab.testbed import sensor_guest
from tracon_watcher.probe import generator
from tracon_watcher.probe import phases
from tracon_watcher.probe import readings

QUIET, CONTENDED, CONTROL = 'quiet', 'contended', 'control'
_SETTLE = 0.5
# Before all others, as priorities of processes go.
_FIRST = -20
# Bytes, many times what caches hold.
_COPIED = 256 << 20
# Bytes of a write, and of the file.
_BLOCK, _WRITTEN = 1 << 20, 256 << 20


@dataclasses.dataclass(frozen=True)
class Load:
    """What a neighbour does.

    :param beside: whether it shares the sensor's core; otherwise it has one of its own
    :param work: path, parameter and amount of requests, which take turns
    :param rate: requests a second; 0 for one after the other
    :param process: instead of a guest, what a process of this machine does: memory or disk
    """

    beside: bool
    work: tuple[tuple[str, str, int], ...] = ()
    rate: float = 0.0
    process: str = ''


#: A neighbour that computes in its first cache and needs nothing but a core.
BURNER = Load(False, (('connection', 'work', 500_000),))
#: By phase: the neighbour that contends for what the phase feels, and the control, which uses as
#: much of a core without contending.
LOADS: dict[str, dict[str, Load]] = {
    'connection': {CONTENDED: Load(True, (('connection', 'work', 20_000),), 200.0),
                   CONTROL: BURNER},
    # With an emulated processor a guest is too slow for memory or a disk to be its bottleneck.
    'memory': {CONTENDED: Load(False, process='memory'), CONTROL: BURNER},
    'storage': {CONTENDED: Load(False, process='disk'), CONTROL: BURNER},
}


class Done:
    """What a driver has done so far, in memory that it shares."""

    def __init__(self) -> None:
        self._numbers = multiprocessing.Array('d', 2, lock=False)

    @property
    def requests(self) -> float:
        """Return how many were answered."""
        return float(self._numbers[0])

    @property
    def seconds(self) -> float:
        """Return how long these took, from when they were due, where that is stated."""
        return float(self._numbers[1])

    def add(self, seconds: float) -> None:
        """Count one."""
        self._numbers[0] += 1
        self._numbers[1] += seconds


@dataclasses.dataclass
class Scene:
    """Guests that run.

    :param core: of the sensor
    """

    sensor: sensor_guest.Sensor
    beside: sensor_guest.Sensor
    away: sensor_guest.Sensor
    core: int
    other: int
    folder: pathlib.Path

    @contextlib.contextmanager
    def loaded(self, load: Load | None) -> collections.abc.Iterator[Done]:
        """Keep a neighbour busy; yields what it has done."""
        if load is None:
            time.sleep(_SETTLE)
            yield Done()
            return
        neighbour = self.beside if load.beside else self.away
        done = Done()
        driver = multiprocessing.Process(
            target=_drive, args=(neighbour, load, self.other, done, self.folder), daemon=True)
        driver.start()
        try:
            time.sleep(_SETTLE)
            if not driver.is_alive():
                raise errors.TestbedError('the driver of a neighbour has ended: see its message')
            yield done
        finally:
            driver.kill()
            driver.join()
            if not load.process:
                # What it asked for last is still under way.
                neighbour.ask('about')

    async def read(self, client: aiohttp.ClientSession, phase: phases.Phase,
                   setting: phases.Setting) -> readings.Reading:
        """Take a reading.

        :raises tracon_watcher.probe.readings.NoReading: when there is none
        """
        return await generator.take(client, f'{self.sensor.address}:{self.sensor.port}',
                                    self.sensor.secret, phase, setting)


@contextlib.contextmanager
def built(cache: pathlib.Path) -> collections.abc.Iterator[Scene]:
    """Boot the guests: the sensor on the first of this process's cores, with this process.

    :raises tracon_lab.testbed.errors.TestbedError: on a machine of one core
    """
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        raise errors.TestbedError('one core: a sensor and its control need two')
    core, other = sorted(before)[:2]
    with contextlib.ExitStack() as stack:
        sensor, beside, away = (stack.enter_context(sensor_guest.booted(cache, str(cpu)))
                                for cpu in (core, core, other))
        # After the guests, whose threads would inherit it. In a cloud the generator is on another
        # machine, where it waits for no neighbour.
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        os.sched_setaffinity(0, {other})
        stack.callback(os.sched_setaffinity, 0, before)
        os.setpriority(os.PRIO_PROCESS, 0, _FIRST)
        stack.callback(os.setpriority, os.PRIO_PROCESS, 0, nice)
        yield Scene(sensor, beside, away, core, other, cache)


def _drive(neighbour: sensor_guest.Sensor, load: Load, core: int, done: Done,
           folder: pathlib.Path) -> None:
    os.sched_setaffinity(0, {core})
    os.setpriority(os.PRIO_PROCESS, 0, 0)
    if load.process:
        for _ in {'memory': _copy, 'disk': lambda: _hammer(folder)}[load.process]():
            done.add(0.0)
    due = time.monotonic()
    while True:
        for kind, parameter, amount in load.work:
            due = due + 1 / load.rate if load.rate else time.monotonic()
            time.sleep(max(due - time.monotonic(), 0.0))
            # A neighbour that is starved may lose a connection.
            with contextlib.suppress(OSError):
                neighbour.ask(kind, **{parameter: amount})
                done.add(time.monotonic() - due)


def _copy() -> collections.abc.Iterator[None]:
    """Copy more memory than caches hold, again and again."""
    source, target = np.ones((2, _COPIED // 8))
    while True:
        np.copyto(target, source)
        yield


def _hammer(folder: pathlib.Path) -> collections.abc.Iterator[None]:
    """Write a file past the page cache, again and again; the file has no name."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        fcntl.fcntl(file, fcntl.F_SETFL, os.O_DIRECT)
        block = mmap.mmap(-1, _BLOCK)
        while True:
            for place in range(0, _WRITTEN, _BLOCK):
                os.pwrite(file.fileno(), block, place)
                yield
            os.fdatasync(file.fileno())
