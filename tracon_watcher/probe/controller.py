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

"""Management controller of the probes: reads all sensors in turn and keeps what each felt.

Sensors are listed in a file, which is read again when it changes. Each is read once an interval,
at times of its own, its phases in an order that is drawn each time: sensors that worked at the
same time would be a load of their own, and a neighbour whose work recurs would always meet the
same phase, or none.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import random
import time
from typing import Any, Callable, Iterable, Iterator, Mapping

import aiohttp

from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher.probe import detection
from tracon_watcher.probe import generator
from tracon_watcher.probe import phases
from tracon_watcher.probe import readings

LOG = logging.getLogger(__name__)

SENSORS, STATES = 'tracon-sensors/1', 'tracon-probe-states/1'
# Phases at the same time, whose requests one core can send in time (tracon bench probe).
_AT_ONCE = 100
# Intervals differ from each other by this share.
_JITTER = 0.2
# Intervals after which a state is none any more.
_STALE = 3.0


@dataclasses.dataclass(frozen=True)
class Sensor:
    """Where a sensor is.

    :param host: the name of its compute service
    :param host_type: of that host, as its baselines are called
    :param address: host:port
    """

    host: str
    host_type: str
    address: str


def load(path: str | os.PathLike[str]) -> dict[str, Sensor]:
    """Read the list of sensors, by host.

    :raises tracon_watcher.errors.InvalidDocument: naming file, field and value
    """
    fields = document.read(path, 'tracon probe deploy')
    fields.only(('schema', 'sensors'))
    fields.string('schema', (SENSORS,))
    found: dict[str, Sensor] = {}
    spelt: set[str] = set()
    for one in fields.sections('sensors'):
        one.only(('host', 'host_type', 'address'))
        sensor = Sensor(one.name('host'), one.string('host_type'), one.string('address'))
        if sensor.host.casefold() in spelt:
            one.refuse('host', sensor.host, 'two sensors are on this host, whose names differ in '
                       'case at most; remove one')
        spelt.add(sensor.host.casefold())
        found[sensor.host] = sensor
    return found


def save(sensors: Iterable[Sensor], path: str | os.PathLike[str]) -> None:
    """Write the list of sensors, atomically."""
    document.write({'schema': SENSORS, 'sensors': [dataclasses.asdict(one) for one in sensors]},
                   path)


@dataclasses.dataclass
class PhaseState:
    """What is known of one phase of one sensor.

    :param at: seconds since the epoch, of the last reading; None before the first
    :param taken: the same by a clock that does not jump
    """

    detector: detection.Detector = dataclasses.field(default_factory=detection.Detector)
    reading: readings.Reading | None = None
    at: float | None = None
    taken: float = 0.0


class ManagementController:
    """Reads sensors for ever.

    :param sensors: returns those there are now, by host
    :param known: baselines
    :param interval: seconds between two readings of one phase of one sensor
    :param at_once: phases that run at the same time
    """

    def __init__(self, client: aiohttp.ClientSession, secret: bytes,
                 sensors: Callable[[], Mapping[str, Sensor]], known: detection.Baselines,
                 interval: float, deadline: float = 10.0, seed: int | None = None,
                 at_once: int = _AT_ONCE) -> None:
        self._client, self._secret, self._sensors = client, secret, sensors
        self._baselines, self._interval, self._deadline = known, interval, deadline
        self._random = random.Random(seed)
        self._turn = asyncio.Semaphore(at_once)
        self._states: dict[Sensor, dict[str, PhaseState]] = {}
        self._tasks: dict[Sensor, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Follow the list of sensors until cancelled."""
        try:
            while True:
                self.follow()
                await asyncio.sleep(min(self._interval / 10, 10.0))
        finally:
            for task in self._tasks.values():
                task.cancel()

    def follow(self) -> None:
        """Begin with new sensors, and forget those that are gone."""
        wanted = set(self._sensors().values())
        for gone in set(self._tasks) - wanted:
            self._tasks.pop(gone).cancel()
            del self._states[gone]
        for sensor in wanted:
            task = self._tasks.get(sensor)
            if task is not None and task.done() and not task.cancelled():
                LOG.error('Reading %s ended by %r; it begins again', sensor.host,
                          task.exception())
            if task is None or task.done():
                self._states.setdefault(sensor, {name: PhaseState() for name in phases.PHASES})
                self._tasks[sensor] = asyncio.create_task(self._watch(sensor))

    async def _watch(self, sensor: Sensor) -> None:
        await asyncio.sleep(self._random.uniform(0.0, self._interval))
        clock = asyncio.get_running_loop().time
        while True:
            begun = clock()
            order = list(phases.PHASES.values())
            self._random.shuffle(order)
            for phase in order:
                async with self._turn:
                    await self.take(sensor, phase)
            rest = self._interval * self._random.uniform(1 - _JITTER, 1 + _JITTER)
            await asyncio.sleep(max(begun + rest - clock(), 0.0))

    async def take(self, sensor: Sensor, phase: phases.Phase) -> None:
        """Read one phase of one sensor, and remember what that says."""
        found = self._states[sensor][phase.name]
        baseline = self._baselines.get((sensor.host_type, phase.name))
        if baseline is None:
            found.detector.lose(f'{sensor.host_type} has no baseline of the {phase.name} phase: '
                                f'run `tracon probe baseline`')
            return
        before = found.detector.state
        try:
            reading = await generator.take(self._client, sensor.address, self._secret, phase,
                                           baseline.setting, self._deadline)
            found.detector.update(detection.compare(reading, baseline))
            found.reading, found.at = reading, reading.at
            found.taken = asyncio.get_running_loop().time()
        except readings.NoReading as error:
            found.reading = found.at = None
            found.detector.lose(f'{error.reason}: {error}')
        if found.detector.state is not before:
            LOG.info('%s, %s: %s instead of %s%s', sensor.host, phase.name,
                     found.detector.state.value, before.value,
                     f' ({found.detector.reason})' if found.detector.reason else '')

    def states(self) -> dict[str, Any]:
        """Return what is known now, as JSON has it."""
        return {'schema': STATES, 'at': time.time(), 'sensors': [
            {'host': sensor.host, 'host_type': sensor.host_type, 'address': sensor.address,
             'phases': dict(self._phases(found))}
            for sensor, found in sorted(self._states.items(), key=lambda one: one[0].host)]}

    def _phases(self, found: Mapping[str, PhaseState]) -> Iterator[tuple[str, dict[str, Any]]]:
        now = asyncio.get_running_loop().time()
        for name, one in found.items():
            age = now - one.taken
            if one.reading is not None and age > _STALE * self._interval:
                one.detector.lose(f'no reading for {age:.0f} s')
                one.reading = one.at = None
            felt = one.detector.felt
            yield name, {
                'state': one.detector.state.value, 'reason': one.detector.reason, 'at': one.at,
                'age': None if one.reading is None else age,
                **({'ratio': None, 'low': None, 'high': None} if felt is None else {
                    'ratio': felt.ratio, 'low': felt.low,
                    'high': felt.high if felt.high < 1e300 else None})}


class File:
    """The list of sensors in a file; while that cannot be read, the one that could be."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._sensors = load(path)
        self._stamp = self._stat()
        self._failing = False

    def __call__(self) -> Mapping[str, Sensor]:
        """Return the sensors, by host."""
        stamp = self._stat()
        if stamp != self._stamp or self._failing:
            self._stamp = stamp
            try:
                self._sensors = load(self._path)
                self._failing = False
            except errors.InvalidDocument as error:
                if not self._failing:
                    LOG.error('Sensors stay as they were: %s', error)
                self._failing = True
        return self._sensors

    def _stat(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size
