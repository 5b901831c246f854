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

"""Trials of settings of a probe beside guests of this machine."""

from __future__ import annotations

import asyncio
import dataclasses
import time

from tracon_lab.testbed import probe_scene
from tracon_watcher.probe import detection
from tracon_watcher.probe import generator
from tracon_watcher.probe import phases
from tracon_watcher.probe import readings
from tracon_watcher.probe import tuning

#: Of each phase: which field is its intensity, and what is tried of it.
INTENSITIES: dict[str, tuple[str, tuple[float, ...]]] = {
    'connection': ('rate', (150.0, 100.0, 60.0, 24.0, 12.0, 6.0)),
    'memory': ('amount', (5_000_000, 2_500_000, 1_000_000, 500_000, 250_000)),
    'storage': ('rate', (32.0, 16.0, 8.0, 4.0, 2.0))}
STARTS = {'connection': phases.Setting(150.0, 10.0, 20_000),
          'memory': phases.Setting(5.0, 10.0, 5_000_000),
          'storage': phases.Setting(32.0, 10.0, 4)}
DURATIONS = (5.0, 3.0, 2.0, 1.0)
# Neighbours without trouble: they share with the sensor what its phase feels, and have plenty.
_CALM = {'connection': probe_scene.Load(True, (('connection', 'work', 20_000),), 20.0),
         'memory': probe_scene.Load(False, (('memory', 'integers', 1_000_000),)),
         'storage': probe_scene.Load(False, (('write', 'blocks', 4), ('read', 'blocks', 4)), 10.0)}
_TIMES, _TROUBLED = 6, 3
_HOST_TYPE = 'this'


class Trials(tuning.Scene):
    """Readings beside a neighbour, and what that neighbour does with and without them."""

    def __init__(self, scene: probe_scene.Scene, phase: phases.Phase) -> None:
        self._scene = scene
        self._phase = phase

    def trial(self, setting: phases.Setting, troubled: bool) -> tuning.Trial:
        """Run the probe beside one kind of neighbours.

        :raises tracon_watcher.probe.readings.NoReading: when the sensor alone gives none
        """
        return self._detects(setting) if troubled else self._harms(setting)

    def _harms(self, setting: phases.Setting) -> tuning.Trial:
        """Compare what one request of the neighbour takes with and without the probe."""
        times: tuple[list[float], list[float]] = ([], [])
        with self._scene.loaded(_CALM[self._phase.name]) as done:
            for _ in range(_TIMES):
                for probed, found in zip((False, True), times):
                    begun, requests, seconds = time.monotonic(), done.requests, done.seconds
                    if probed:
                        asyncio.run(self._read(setting))
                    time.sleep(max(setting.seconds - (time.monotonic() - begun), 0.0))
                    found.append((done.seconds - seconds) / max(done.requests - requests, 1.0))
        (alone, half), (beside, reach) = map(readings.interval, times)
        return tuning.Trial(
            beside - reach > alone + half, False,
            f'a request of the neighbour takes {beside * 1e3:.3g} ± {reach * 1e3:.2g} ms instead '
            f'of {alone * 1e3:.3g} ± {half * 1e3:.2g} ms')

    def _detects(self, setting: phases.Setting) -> tuning.Trial:
        quiet = [asyncio.run(self._read(setting)) for _ in range(phases.LEAST_READINGS)]
        baseline = detection.learn(_HOST_TYPE, quiet)
        felt = []
        with self._scene.loaded(probe_scene.LOADS[self._phase.name][probe_scene.CONTENDED]):
            for _ in range(_TROUBLED):
                try:
                    felt.append(detection.ratio(asyncio.run(self._read(setting)), baseline))
                except readings.NoReading:
                    # A sensor that hardly answers is no proof.
                    continue
        return tuning.Trial(
            False, len(felt) == _TROUBLED and all(one.flagged for one in felt),
            'the sensor takes ' + (', '.join(f'{one.ratio:.2f} (from {one.low:.2f})'
                                             for one in felt) or 'no') + ' times as long')

    async def _read(self, setting: phases.Setting) -> readings.Reading:
        async with generator.session() as client:
            return await self._scene.read(client, self._phase, setting)


def document(phase: str, found: phases.Setting, steps: list[tuning.Step]) -> dict[str, object]:
    """Return a tuning as JSON has it: the setting, and each step with its evidence."""
    return {'schema': tuning.SCHEMA, 'phase': phase, **dataclasses.asdict(found), 'steps': [
        {**dataclasses.asdict(step.setting), 'troubled': step.troubled, 'kept': step.kept,
         **dataclasses.asdict(step.trial)} for step in steps]}
