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

"""An interactive service beside a second VM, on its core and on another one.

The kind of Zhang's Table 1 (big data in the background): percentiles of the response time beside
four second VMs. Programs of the testbed stand for Zhang's: PI is several tasks that compute,
WordCount reads text in sequence and computes, SysBench CPU computes, CacheBench writes to memory.
"""

from __future__ import annotations

import dataclasses
import functools
import time
import typing

import numpy as np

from tracon_lab.background import comparison
from tracon_lab.background import measurement
from tracon_lab.background import web_service
from tracon_lab.testbed import programs
from tracon_lab.testbed import window
from tracon_watcher.probe import readings

NONE, SHARED, SEPARATE = 'none', 'shared', 'separate'
SECOND = {'PI': programs.Unit(cpu_seconds=0.01, loops=4),
          'WordCount': programs.Unit(cpu_seconds=0.004, reads=2, read_bytes=65536,
                                     sequential_reads=True),
          'SysBench CPU': programs.Unit(cpu_seconds=0.01),
          'CacheBench': programs.Unit(walk=64 << 20)}
#: The second VM and whose core it has; without one it has none.
SETTINGS = {NONE: (NONE, ''), **{
    f'{name}, {cores}': (name, cores) for cores in (SHARED, SEPARATE) for name in SECOND}}
PERCENTILES = (50, 75, 95)
#: Zhang's Table 1, milliseconds.
PAPER = {NONE: '18 / 43 / 120',
         'PI, shared': '64 / 180 / 560', 'WordCount, shared': '140 / 320 / 1040',
         'SysBench CPU, shared': '110 / 250 / 770', 'CacheBench, shared': '140 / 330 / 1140',
         'PI, separate': '20 / 58 / 160', 'WordCount, separate': '23 / 71 / 190',
         'SysBench CPU, separate': '18 / 37 / 130', 'CacheBench, separate': '20 / 51 / 190'}
TABLE = ('second_vm', 'cores', 'runs', *(column for one in PERCENTILES for column in (
    f'P{one}, ms', f'± P{one}')), 'P95, ratio to none', '± ratio', 'Zhang, ms')
_SETTLE = 2.0
#: Requests a second: the service is busy for nearly half of the time alone.
RATE = 60.0


def table(windows: comparison.Windows) -> list[tuple[typing.Any, ...]]:
    """Return the rows of :data:`TABLE`: means over runs, with half of their 95 % intervals."""
    runs = sorted({run for run, _name in windows
                   if all((run, name) in windows for name in SETTINGS)})
    names = [f'P{one}' for one in PERCENTILES]
    return [(*parts, len(runs), *(value for name in names for value in readings.interval(
        [1000 * windows[run, setting][name] for run in runs])),
        *readings.interval([windows[run, setting][names[-1]] / windows[run, NONE][names[-1]]
                            for run in runs]), PAPER[setting])
        for setting, parts in SETTINGS.items()]


def measure(chosen: measurement.Measurement, report: typing.Callable[[str], None],
            keep: typing.Callable[[dict[str, str], comparison.Windows], None]) -> None:
    """Measure all runs; the service is on the last core, a second VM there or on the first one.

    :param keep: called with facts and all windows so far, after each of them
    :raises TestbedError: when it cannot be set up here
    """
    with measurement.booted(dataclasses.replace(chosen, shared=False), 1, report) as front:
        iterations = window.calibrate(front.bed)
        comparison.measure(
            tuple(SETTINGS), chosen.runs, chosen.seed, lambda setting, run: _window(
                front, setting, iterations, chosen.seconds, chosen.seed * 1000 + run),
            report, functools.partial(keep, front.facts))


def _window(front: measurement.Front, setting: str, iterations: float, seconds: float,
            seed: int) -> dict[str, float]:
    """Return percentiles in seconds; in each setting of a run requests come at the same times."""
    name, where = SETTINGS[setting]
    [guest] = front.bed.guests.values()
    if name != NONE:
        core = front.cores[-1] if where == SHARED else front.cores[0]
        pins = tuple(one == core for one in range(front.cores[-1] + 1))
        guest.domain.pinVcpu(0, pins)
        guest.domain.pinEmulator(pins)
        guest.channel.ask(SECOND[name].command(iterations, seed))
    time.sleep(_SETTLE)
    with web_service.clients(front.service, seconds, seed, RATE) as results:
        latencies = results()
    guest.channel.ask('stop')
    return {f'P{one}': float(np.percentile(latencies, one)) for one in PERCENTILES}
