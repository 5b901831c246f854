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

"""Benchmark of the probes' load generator: how many sensors one core reads."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import time
from typing import Any

from cliff import lister

from tracon_watcher import numerals

_SECRET = b'b' * 32
_HOST_TYPE = 'simulated'
# Simulated sensors do no work: a request takes two milliseconds, a traversal forty.
_STEPS = {'/connection': 1e-7, '/memory': 8e-9, '/read': 5e-4, '/write': 5e-4}


class Probe(lister.Lister):
    """Read many simulated sensors from one core, as tracon-probe does.

    The sensors are in one process on another core and do no work. "asked" is the number of
    requests a second that all sensors need at this interval, "answered" the number of answers;
    "late" is the delay of a request's start in milliseconds. Phases without a reading have their
    reason.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--sensors', type=numerals.whole(1), default=400, metavar='N',
                            help='number of sensors (default: %(default)s)')
        parser.add_argument('--interval', type=numerals.number(60, 86400), default=300.0,
                            metavar='SECONDS',
                            help='time between two readings of a phase (default: %(default)g)')
        parser.add_argument('--seconds', type=numerals.number(60, 86400), default=120.0,
                            metavar='N',
                            help='duration of the measurement (default: %(default)g)')
        return parser

    def take_action(self, arguments: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        import asyncio

        cores = sorted(os.sched_getaffinity(0))
        context = multiprocessing.get_context('spawn')
        ours, theirs = context.Pipe()
        child = context.Process(target=_simulate, args=(arguments.sensors, cores[0], theirs),
                                daemon=True)
        child.start()
        try:
            os.sched_setaffinity(0, {cores[-1]})
            return (('sensors', 'asked', 'answered', 'core', 'late_mean', 'late_99', 'readings',
                     'no_reading', 'reasons', 'MiB'),
                    [asyncio.run(_read(ours.recv(), arguments))])
        finally:
            os.sched_setaffinity(0, cores)
            child.kill()
            child.join()


def _simulate(count: int, core: int, pipe: Any) -> None:
    import asyncio

    from tracon_lab import simulated_sensor as simulated

    os.sched_setaffinity(0, {core})

    async def serve() -> None:
        pipe.send([await simulated.Sensor(_SECRET, _STEPS, seed=index).start()
                   for index in range(count)])
        await asyncio.Event().wait()
    asyncio.run(serve())


async def _read(addresses: list[str], arguments: argparse.Namespace) -> tuple[Any, ...]:
    import asyncio
    import collections

    import numpy as np

    from tracon_watcher.probe import controller
    from tracon_watcher.probe import detection
    from tracon_watcher.probe import generator
    from tracon_watcher.probe import phases
    from tracon_watcher.probe import readings

    lags: list[float] = []
    answered = 0
    reasons: collections.Counter[str] = collections.Counter()
    began = time.monotonic() + arguments.interval / 10

    async def take(*given: Any) -> readings.Reading:
        nonlocal answered
        try:
            found = await original(*given)
        except readings.NoReading as error:
            reasons[error.reason] += 1
            raise
        if time.monotonic() > began:
            lags.append(found.lag)
            answered += found.answers * len(phases.PHASES[found.phase].work)
        return found
    original, generator.take = generator.take, take
    known = {(_HOST_TYPE, name): detection.SensorBaseline(
        _HOST_TYPE, name, setting, 1.0, 10.0, 0.0, 5, 0.0)
        for name, setting in phases.DEFAULT.items()}
    sensors = {str(index): controller.Sensor(str(index), _HOST_TYPE, address)
               for index, address in enumerate(addresses)}
    async with generator.session() as client:
        one = controller.ManagementController(client, _SECRET, lambda: sensors, known,
                                              arguments.interval,
                                              seed=1)
        task = asyncio.create_task(one.run())
        await asyncio.sleep(arguments.interval / 10)
        cpu = time.process_time()
        await asyncio.sleep(arguments.seconds)
        cpu = time.process_time() - cpu
        task.cancel()
    generator.take = original
    requests = sum(setting.requests * len(phases.PHASES[name].work)
                   for name, setting in phases.DEFAULT.items())
    late = np.array(lags or [float('nan')]) * 1e3
    return (len(addresses), round(len(addresses) * requests / arguments.interval),
            round(answered / arguments.seconds), round(cpu / arguments.seconds, 2),
            round(float(late.mean()), 2), round(float(np.percentile(late, 99)), 2), len(lags),
            reasons.total(), ', '.join(f'{name} {count}' for name, count in reasons.items()),
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
