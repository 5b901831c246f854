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
another. A driver is a process on the other core, so that the generator of the readings has its
core for itself and the sensor.
"""

from __future__ import annotations

import collections.abc
import contextlib
import ctypes
import dataclasses
import multiprocessing
import os
import pathlib
import time
from typing import Any

import aiohttp

from tracon_watcher.lab import errors
from tracon_watcher.lab import sensor_guest
from tracon_watcher.probe import generator
from tracon_watcher.probe import phases
from tracon_watcher.probe import readings

QUIET, CONTENDED, CONTROL = 'quiet', 'contended', 'control'
_SETTLE = 0.5


@dataclasses.dataclass(frozen=True)
class Load:
    """What a neighbour does.

    :param beside: whether it shares the sensor's core; otherwise it has one of its own
    :param work: path, parameter and amount of requests, which take turns
    :param rate: requests a second; 0 for one after the other
    """

    beside: bool
    work: tuple[tuple[str, str, int], ...]
    rate: float = 0.0


#: A neighbour that computes in its first cache and needs nothing but a core.
BURNER = Load(False, (('connection', 'work', 500_000),))
#: By phase: the neighbour that contends for what the phase feels, and the control, which uses as
#: much of a core without contending.
LOADS: dict[str, dict[str, Load]] = {
    'connection': {CONTENDED: Load(True, (('connection', 'work', 20_000),), 200.0),
                   CONTROL: BURNER},
    'memory': {CONTENDED: Load(False, (('memory', 'integers', 5_000_000),)), CONTROL: BURNER},
    'storage': {CONTENDED: Load(False, (('write', 'blocks', 64), ('read', 'blocks', 256))),
                CONTROL: BURNER},
}


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

    @contextlib.contextmanager
    def loaded(self, load: Load | None) -> collections.abc.Iterator[Any]:
        """Keep a neighbour busy; yields what counts its requests, or None without a load."""
        if load is None:
            time.sleep(_SETTLE)
            yield None
            return
        neighbour = self.beside if load.beside else self.away
        done = multiprocessing.Value(ctypes.c_ulonglong, 0)
        driver = multiprocessing.Process(
            target=_drive, args=(neighbour, load, self.other, done), daemon=True)
        driver.start()
        try:
            time.sleep(_SETTLE)
            if not driver.is_alive():
                raise errors.TestbedError('the driver of a neighbour has ended: see its message')
            yield done
        finally:
            driver.kill()
            driver.join()
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

    :raises tracon_watcher.lab.errors.TestbedError: on a machine of one core
    """
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        raise errors.TestbedError('one core: a sensor and its control need two')
    core, other = sorted(before)[:2]
    with contextlib.ExitStack() as stack:
        sensor, beside, away = (stack.enter_context(sensor_guest.booted(cache, str(cpu)))
                                for cpu in (core, core, other))
        # After the guests, whose threads would inherit it.
        os.sched_setaffinity(0, {core})
        stack.callback(os.sched_setaffinity, 0, before)
        yield Scene(sensor, beside, away, core, other)


def _drive(neighbour: sensor_guest.Sensor, load: Load, core: int, done: Any) -> None:
    os.sched_setaffinity(0, {core})
    due = time.monotonic()
    while True:
        for kind, parameter, amount in load.work:
            if load.rate:
                due += 1 / load.rate
                time.sleep(max(due - time.monotonic(), 0.0))
            # A neighbour that is starved may lose a connection.
            with contextlib.suppress(OSError):
                neighbour.ask(kind, **{parameter: amount})
                done.value += 1
