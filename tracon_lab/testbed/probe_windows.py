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

"""Readings of a sensor in windows that are quiet, contended, or a control: how often it is right.

The control is a neighbour that uses as much of a core as the contending one, but contends for
nothing that the phase feels. The order of windows is drawn. Each window has a part without a
reading before the one with it, in which the neighbour's work is counted as well: the difference is
what the probe costs the neighbour.
"""

from __future__ import annotations

import asyncio
import csv
import dataclasses
import datetime
import math
import os
import pathlib
import random
import time
from typing import Any, Callable, Iterator, Sequence

import numpy as np
from scipy import stats

from tracon_lab.testbed import probe_scene
from tracon_watcher import csv_table
from tracon_watcher.probe import detection
from tracon_watcher.probe import generator
from tracon_watcher.probe import images
from tracon_watcher.probe import phases
from tracon_watcher.probe import readings

PACKAGED = pathlib.Path(__file__).parent / 'data' / 'probe'
#: Windows before all others, of a sensor that is alone.
BASELINE = 'baseline'
SCENES = (probe_scene.QUIET, probe_scene.CONTENDED, probe_scene.CONTROL)
#: For hosts whose processor is emulated, on which all is slower.
SETTINGS = {'connection': phases.Setting(24.0, 3.0, 20_000),
            'memory': phases.Setting(5.0, 3.0, 5_000_000),
            'storage': phases.Setting(8.0, 3.0, 4)}
_REST = 1.0
_HOST_TYPE = 'this'


@dataclasses.dataclass(frozen=True)
class Window:
    """One window.

    :param scene: one of :data:`SCENES`, or :data:`BASELINE`
    :param mean: of the reading, seconds, and ``half``; NaN without
    :param seconds: that the reading took
    :param cpu: seconds that the sensor ran meanwhile
    :param before: seconds that each request of the neighbour takes without the reading, and
        ``during`` with it
    :param reason: why there is no reading
    """

    phase: str
    scene: str
    mean: float
    half: float
    seconds: float
    cpu: float
    before: float
    during: float
    reason: str


COLUMNS = tuple(field.name for field in dataclasses.fields(Window))


def measure(output: pathlib.Path, wanted: Sequence[str], count: int, seed: int, command: str,
            cache: pathlib.Path | None, report: Callable[[str, float], None],
            settings: dict[str, phases.Setting] = SETTINGS) -> None:
    """Measure windows of phases, so many of each scene, into a CSV file.

    :param command: by which, for the head of the file
    :param report: called with a text and the share that is done
    :raises tracon_lab.testbed.errors.TestbedError: when guests do not boot
    """
    with open(output, 'w', encoding='utf-8', newline='') as out:
        out.write(f'# {command}\n')
        out.write(f'# {datetime.date.today()}, {len(os.sched_getaffinity(0))} cores\n')
        for name in wanted:
            one = settings[name]
            out.write(f'# {name}: rate {one.rate:g}, seconds {one.seconds:g}, '
                      f'amount {one.amount}\n')
        rows = csv.writer(out)
        rows.writerow(COLUMNS)
        with probe_scene.built(cache or images.default_cache()) as scene:
            for window in _windows(scene, wanted, count, random.Random(seed), settings, report):
                rows.writerow([value if isinstance(value, str) else
                               '' if math.isnan(value) else f'{value:.9g}'
                               for value in dataclasses.astuple(window)])
                out.flush()


def _windows(scene: probe_scene.Scene, wanted: Sequence[str], count: int, rng: random.Random,
             settings: dict[str, phases.Setting], report: Callable[[str, float], None]
             ) -> Iterator[Window]:
    for index, name in enumerate(wanted):
        order = [kind for kind in SCENES for _ in range(count)]
        rng.shuffle(order)
        order = [BASELINE] * 10 + order
        for place, kind in enumerate(order):
            report(f'{name}, {kind}', (index + place / len(order)) / len(wanted))
            yield _window(scene, phases.PHASES[name], kind, settings[name])


def _window(scene: probe_scene.Scene, phase: phases.Phase, kind: str,
            setting: phases.Setting) -> Window:
    with scene.loaded(probe_scene.LOADS[phase.name].get(kind)) as done:
        before = _each(done, lambda: time.sleep(_REST))
        begun, ran = time.monotonic(), scene.sensor.cpu_seconds()
        found: list[readings.Reading] = []
        reasons: list[str] = []

        def take() -> None:
            try:
                found.append(asyncio.run(_read(scene, phase, setting)))
            except readings.NoReading as error:
                reasons.append(error.reason)
        during = _each(done, take)
        seconds = time.monotonic() - begun
        return Window(phase.name, kind, *((found[0].mean, found[0].half) if found else
                                          (math.nan, math.nan)),
                      seconds, scene.sensor.cpu_seconds() - ran, before, during, *reasons or [''])


def _each(done: probe_scene.Done, work: Callable[[], None]) -> float:
    """Return how long each request of a neighbour takes meanwhile; NaN without one."""
    requests, seconds = done.requests, done.seconds
    work()
    count = done.requests - requests
    return (done.seconds - seconds) / count if count else math.nan


async def _read(scene: probe_scene.Scene, phase: phases.Phase, setting: phases.Setting
                ) -> readings.Reading:
    async with generator.session() as client:
        return await scene.read(client, phase, setting)


def read(path: pathlib.Path) -> list[Window]:
    """Read such a file.

    :raises tracon_watcher.errors.InvalidDocument: naming file, line, column and value
    """
    found = csv_table.read(path, 'write it with `tracon lab probe measure`', COLUMNS)
    return [Window(*(row.text(name) if name in ('phase', 'scene', 'reason')
                     else row.optional(name)
                     for name in COLUMNS)) for row in found.rows]


TABLE = ('Phase', 'Scene', 'Windows', 'No reading', 'Times the baseline', 'Flagged', '95 % from',
         'to', 'Flagged by the mean\'s interval', 'Two in a row')


def table(windows: Sequence[Window]) -> list[tuple[Any, ...]]:
    """Return how often readings are flagged, by phase and scene.

    Two in a row are counted among the windows of one scene, in their order.
    """
    rows: list[tuple[Any, ...]] = []
    for phase in dict.fromkeys(one.phase for one in windows):
        wide = _baseline([one for one in windows if (one.phase, one.scene) == (phase, BASELINE)])
        # As published: the interval of the mean rather than that of the next reading.
        narrow = dataclasses.replace(wide, deviation=0.0)
        for scene in SCENES:
            found = [one for one in windows if (one.phase, one.scene) == (phase, scene)]
            known = [one for one in found if not one.reason]
            felt = [_felt(one, wide) for one in known]
            flags = [one.flagged for one in felt]
            times = [one.flagged for one in (_felt(one, narrow) for one in known)]
            low, high = share(sum(flags), len(flags))
            pairs = list(zip(flags, flags[1:]))
            rows.append((phase, scene, len(found), len(found) - len(known),
                         float(np.median([one.ratio for one in felt])), sum(flags), low, high,
                         sum(times), sum(a and b for a, b in pairs)))
    return rows


COSTS = ('Phase', 'Core meanwhile', 'Core on average', 'Neighbour', 'Slower meanwhile by',
         '95 % ±', 'Slower on average by')


def costs(windows: Sequence[Window], interval: float) -> list[tuple[Any, ...]]:
    """Return what readings cost: the sensor's share of a core, and what neighbours lose.

    Averages are those of the default settings: a request costs what it cost in the windows.

    :param interval: seconds between two readings of a phase, for the averages
    """
    rows: list[tuple[Any, ...]] = []
    for phase in dict.fromkeys(one.phase for one in windows):
        for scene in SCENES[1:]:
            found = [one for one in windows if (one.phase, one.scene) == (phase, scene)
                     and not one.reason]
            lost, half = readings.interval([one.during / one.before - 1 for one in found
                                            if one.before > 0 and one.during > 0])
            busy = float(np.mean([one.cpu / one.seconds for one in found]))
            each = float(np.mean([one.cpu for one in found])) / SETTINGS[phase].requests
            average = each * phases.DEFAULT[phase].requests / interval
            rows.append((phase, busy, average, scene, lost, half, lost * average / busy))
    return rows


def share(hits: int, count: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a share (Clopper and Pearson)."""
    if not count:
        return 0.0, 1.0
    found = stats.binomtest(hits, count).proportion_ci(readings.CONFIDENCE, 'exact')
    return float(found.low), float(found.high)


def _baseline(windows: Sequence[Window]) -> detection.SensorBaseline:
    setting = phases.Setting(1.0, 1.0, 1)
    return detection.learn(_HOST_TYPE, [
        readings.Reading(one.phase, setting, 0.0, one.mean, one.half, (), 0)
        for one in windows if not one.reason])


def _felt(one: Window, baseline: detection.SensorBaseline) -> detection.RelativeReading:
    return detection.ratio(readings.Reading(
        one.phase, baseline.setting, 0.0, one.mean, one.half, (), 0), baseline)
