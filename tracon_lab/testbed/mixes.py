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

"""Mixes of guests that share all cores of this machine: what each suffers, told in advance.

Up to eight guests of one and two virtual CPUs run programs that differ in how much they compute,
read, write and think. Each is measured alone once; then so many at a time as fill the cores, a
little or far. A guest counts the time that its units of work take, without what lies between
them, so a slowdown is that of the time in which it works.

These predictions are compared with it, and a constant, by which each guest is as slow as all in
the geometric mean:

* what the law of queueing says of what each does alone;
* what it says of what each demands as estimated from the counters of the shared time;
* what these counters show by themselves.
"""

import contextlib
import csv
import dataclasses
import datetime
import math
import os
import pathlib
import random
import time
import typing

import numpy as np

from tracon_lab.testbed import host_types
from tracon_lab.testbed import programs
from tracon_lab.testbed import testbed
from tracon_lab.testbed import window
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.contention import calibration
from tracon_watcher.contention import demand_estimator
from tracon_watcher import csv_table
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.probe import images

#: Virtual CPUs of the guests.
VCPUS = (1, 1, 1, 1, 1, 2, 2, 2)
#: What runs in them. With two virtual CPUs only those that compute alone, once on each.
PROGRAMS = {
    'calc-10': programs.Unit(cpu_seconds=0.004, think=36_000),
    'calc-30': programs.Unit(cpu_seconds=0.012, think=28_000),
    'calc-50': programs.Unit(cpu_seconds=0.005, think=5_000),
    'calc-70': programs.Unit(cpu_seconds=0.035, think=15_000),
    'calc-90': programs.Unit(cpu_seconds=0.018, think=2_000),
    'calc': programs.Unit(cpu_seconds=0.010),
    'short': programs.Unit(cpu_seconds=0.001, think=2_000),
    'randread': programs.Unit(reads=4),
    'seqwrite': programs.Unit(writes=4, write_bytes=65536, sequential_writes=True),
    'mixed': programs.Unit(cpu_seconds=0.002, reads=2, writes=1),
    'shop': programs.Unit(cpu_seconds=0.004, reads=3, think=10_000),
    'log': programs.Unit(cpu_seconds=0.003, writes=1, think=20_000)}
_COMPUTING = tuple(name for name, one in PROGRAMS.items() if not one.reads and not one.writes)
#: What was measured on a machine of two cores.
PACKAGED = pathlib.Path(__file__).parent / 'data' / 'mixes' / 'two-cores.csv'
#: Guests of a mix.
SIZES = (2, 4, 6, 8)
COLUMNS = ('mix', 'guest', 'vcpus', 'program', 'seconds', 'units', 'service', 'running', 'delay',
           'host', 'reads', 'writes', 'read_time', 'write_time')
ALONE = 'alone'
_SETTLE = 1.0
#: A window counts in which every guest does some units: disks may stand still for seconds.
_LEAST_UNITS, _ATTEMPTS = 10, 4


@dataclasses.dataclass(frozen=True)
class Row:
    """What was counted of a guest in a window, per second, but for the first two.

    :param mix: its number, or :data:`ALONE`
    :param service: seconds in which units of work were under way
    """

    mix: str
    guest: str
    vcpus: int
    program: str
    seconds: float
    units: float
    service: float
    running: float
    delay: float
    host: float
    reads: float
    writes: float
    read_time: float
    write_time: float

    @property
    def unit(self) -> float:
        """Seconds that a unit of work takes."""
        return self.service / self.units if self.units else math.nan


def planned(mixes: int, seed: int) -> list[list[tuple[int, str]]]:
    """Draw mixes: (guest, program) each. Sizes take turns; programs are of one that differ."""
    rng = random.Random(seed)
    found = []
    for number in range(mixes):
        guests = sorted(rng.sample(range(len(VCPUS)), SIZES[number % len(SIZES)]))
        found.append([(guest, rng.choice(_COMPUTING if VCPUS[guest] > 1 else tuple(PROGRAMS)))
                      for guest in guests])
    return found


def measure(output: pathlib.Path, mixes: int, seconds: float, seed: int, command: str,
            report: typing.Callable[[str], None], accelerator: str = 'auto',
            cache: pathlib.Path | None = None) -> None:
    """Measure each program alone, and mixes of them, into a file.

    :param seconds: of a window
    :raises tracon_lab.testbed.errors.TestbedError: when the testbed cannot be set up here
    """
    plan = planned(mixes, seed)
    alone = [[(VCPUS.index(vcpus), name)] for vcpus in sorted(set(VCPUS))
             for name in PROGRAMS if vcpus == 1 or name in _COMPUTING]
    with contextlib.ExitStack() as stack:
        bed = stack.enter_context(testbed.Testbed(
            host_types.named('same-core-raw-disk'),
            (cache or images.default_cache()).absolute(),
            max(os.sched_getaffinity(0)), accelerator, len(VCPUS), database=False, spread=VCPUS))
        report('guests are up (%s)' % bed.accelerator)
        iterations = window.calibrate(bed)
        stream = stack.enter_context(output.open('w', newline=''))
        for name, value in {
                **{key: value for key, value in bed.facts().items()
                   if key not in ('host_type', 'database_program')}, 'cores': str(os.cpu_count()),
                'date': datetime.datetime.now(datetime.UTC).date().isoformat(),
                'window_seconds': '%g' % seconds, 'seed': str(seed),
                'iterations_per_second': '%.0f' % iterations, 'command': command}.items():
            stream.write('# %s: %s\n' % (name, value))
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        todo = [(ALONE, one) for one in alone] + [(str(n), one) for n, one in enumerate(plan)]
        begin = time.monotonic()
        for number, (mix, members) in enumerate(todo, 1):
            for _attempt in range(_ATTEMPTS):
                rows = _window(bed, members, mix, seconds, iterations, seed * 1000 + number)
                least = min(row.units * row.seconds for row in rows)
                if least >= _LEAST_UNITS:
                    break
                report('a guest did %d units only: the window is taken again' % least)
            for row in rows:
                writer.writerow([one if isinstance(one, str) else '%.6g' % one
                                 for one in dataclasses.astuple(row)])
            stream.flush()
            passed = time.monotonic() - begin
            report('%d/%d windows, %d min left' % (
                number, len(todo), round(passed / number * (len(todo) - number) / 60)))


def _window(bed: testbed.Testbed, members: list[tuple[int, str]], mix: str, seconds: float,
            iterations: float, seed: int) -> list[Row]:
    names = {bed.sides[guest]: name for guest, name in members}
    for number, (side, name) in enumerate(names.items()):
        unit = dataclasses.replace(PROGRAMS[name], loops=VCPUS[bed.sides.index(side)])
        bed.guests[side].channel.ask(unit.command(iterations, seed + number))
    time.sleep(_SETTLE)
    before = {side: bed.guests[side].channel.read() for side in names}
    start, first = bed.sample()
    time.sleep(seconds)
    end, last = bed.sample()
    after = {side: bed.guests[side].channel.read() for side in names}
    for side in names:
        bed.guests[side].channel.ask('stop')
    rows = []
    for side, name in names.items():
        done = after[side].since(before[side])
        one, two, passed = first[side], last[side], end - start
        running, cpu = two.vcpu - one.vcpu, two.cpu - one.cpu
        rows.append(Row(
            mix, side, VCPUS[bed.sides.index(side)], name, passed, done.units / done.clock,
            done.service / done.clock, running / passed,
            (two.vcpu_delay - one.vcpu_delay) / passed, max(cpu - running, 0.0) / passed, *(
                (getattr(two, field) - getattr(one, field)) / passed for field in (
                    'read_requests', 'write_requests', 'read_time', 'write_time'))))
    return rows


def read(path: pathlib.Path | str) -> tuple[int, list[Row]]:
    """Read a file of mixes: the number of cores of its host, and its rows.

    :raises tracon_watcher.errors.InvalidDocument: naming file, line, column and value
    """
    found = csv_table.read(path, 'name a CSV of `tracon lab mixes measure`', COLUMNS)
    cores = int(found.fact('cores', 1, 1e6))
    rows = [Row(**{name: (row.text(name) if name in ('mix', 'guest', 'program') else
                          row.whole(name, 1) if name == 'vcpus' else row.number(name))
                   for name in COLUMNS}) for row in found.rows]
    return cores, rows


@dataclasses.dataclass(frozen=True)
class Judged:
    """Guests of mixes, (n,) each.

    :param rows: what was counted of them
    :param measured: slowdowns
    :param waits: slowdowns by waits alone, as if a unit of work took no more CPU time than alone
    :param predicted: by each judge, likewise
    :param lower: of what the law says of the time alone, the 80 % interval's ends
    :param load: what all of the mix would use alone, over the cores
    """

    rows: list[Row]
    measured: FloatArray
    waits: FloatArray
    predicted: dict[str, FloatArray]
    lower: FloatArray
    upper: FloatArray
    load: FloatArray


LAW, ESTIMATED, COUNTERS, CONSTANT = (
    'law (time alone)', 'law (shared time)', 'counters', 'constant')


def judge(rows: typing.Sequence[Row], cores: int) -> Judged:
    """Predict what guests of mixes suffer.

    :param cores: of the machine
    """
    alone = {(row.vcpus, row.program): row for row in rows if row.mix == ALONE}
    shared = [row for row in rows if row.mix != ALONE]
    quiet = [alone[row.vcpus, row.program] for row in shared]
    measured = np.array([row.unit / one.unit for row, one in zip(shared, quiet)])
    vcpus = np.array([row.vcpus for row in shared])
    seen = _usage(shared)
    estimate = demand_estimator.uncontended(seen, demand_estimator.undisturbed(len(seen)),
                                            calibration.packaged(), vcpus.astype(float))
    profiles = _usage(quiet).characteristics
    judged = _assessor(shared, profiles, np.array([_waits(one) for one in quiet]), cores)
    requests = estimate.demand[:, :2].sum(axis=1)
    latency = np.array([(row.read_time + row.write_time) / max(row.reads + row.writes, 1e-9)
                        for row in shared])
    estimated = _assessor(shared, estimate.demand, requests * latency / vcpus, cores)
    law = np.exp(judged.log_responses()[0])
    lower, upper = (np.exp(judged.law.bound(level)[0]) for level in (0.1, 0.9))
    used = profiles[:, 2] + profiles[:, 3]
    mixes = np.unique([row.mix for row in shared], return_inverse=True)[1]
    return Judged(shared, measured, _waits_alone(shared, quiet), {
        LAW: law, ESTIMATED: np.exp(estimated.log_responses()[0]), COUNTERS: estimate.slowdown,
        CONSTANT: np.full(len(shared), np.exp(np.nanmean(np.log(measured))))}, lower, upper,
        np.bincount(mixes, used)[mixes] / cores)


def thinking() -> tuple[demand_estimator.Usage, FloatArray, FloatArray]:
    """Return loops that think between their units of work, n of them, as they were measured.

    :returns: what is counted of the shared time, the guest CPU of their time alone, (n,), and
        their virtual CPUs, (n,)
    """
    _header, rows = read(PACKAGED)
    alone = {(row.vcpus, row.program): row for row in rows if row.mix == ALONE}
    shared = [row for row in rows if row.mix != ALONE and PROGRAMS[row.program].think
              and row.program in _COMPUTING]
    return (_usage(shared), np.array([alone[row.vcpus, row.program].running for row in shared]),
            np.array([float(row.vcpus) for row in shared]))


def _usage(rows: typing.Sequence[Row]) -> demand_estimator.Usage:
    nothing = np.zeros(len(rows))
    return demand_estimator.Usage(*(np.array([getattr(row, name) for row in rows]) for name in (
        'running', 'delay', 'host', 'reads', 'writes', 'read_time', 'write_time')),
        nothing, nothing)


def _waits_alone(shared: typing.Sequence[Row], quiet: typing.Sequence[Row]) -> FloatArray:
    """Return slowdowns, (n,), without the time that more CPU time for a unit takes.

    Threads of a core, caches and other work on the machine make it more; virtual CPUs that
    no longer run at the same time may make it less. While it runs, a guest waits for cores as
    before.
    """
    return np.array([(row.unit - (row.running / row.units - one.running / one.units)
                      * (1 + row.delay / row.running)) / one.unit if row.units else math.nan
                     for row, one in zip(shared, quiet)])


def _waits(row: Row) -> float:
    """Return which part of its time a virtual CPU waits for storage."""
    return (row.read_time + row.write_time) / row.vcpus


def _assessor(rows: typing.Sequence[Row], profiles: FloatArray, waits: FloatArray,
              cores: int) -> assessment.Assessor:
    """Return mixes as hosts of so many cores; residents stand in the order of the rows."""
    hosts: dict[str, list[cluster.Resident]] = {}
    for number, (row, profile, wait) in enumerate(zip(rows, profiles, waits)):
        hosts.setdefault(row.mix, []).append(cluster.Resident(
            '%s-%d' % (row.mix, number), profile, vcpus=row.vcpus,
            storage_wait=min(float(wait), 1.0)))
    return assessment.Assessor(cluster.build(
        cluster.Host(mix, tuple(residents), cores=cores) for mix, residents in hosts.items()))


TABLE = ('judged_by', 'guests', 'vms', 'mean_slowdown', 'error', 'bias', 'coverage',
         'waits_error', 'waits_bias', 'waits_coverage')


def table(judged: Judged) -> list[tuple[typing.Any, ...]]:
    """Compare predictions with what was measured: of all, by size of the mix, by kind of guest.

    The last three columns are of slowdowns by waits alone (:attr:`Judged.waits`).
    """
    size = np.array([sum(other.mix == row.mix for other in judged.rows) for row in judged.rows])
    computing = np.array([row.program in _COMPUTING for row in judged.rows])
    vcpus = np.array([row.vcpus for row in judged.rows])
    groups = {'all': size > 0, **{f'{guests} guests': size == guests for guests in SIZES},
              'computing, 1 vCPU': computing & (vcpus == 1),
              'computing, 2 vCPUs': computing & (vcpus > 1), 'with a disk': ~computing}
    found = []
    for judge_name, predicted in judged.predicted.items():
        for group, chosen in groups.items():
            some = chosen & np.isfinite(predicted) & np.isfinite(judged.measured)
            if not some.any():
                continue
            columns: list[float | None] = []
            for measured in (judged.measured, judged.waits):
                ratio = predicted[some] / measured[some] - 1.0
                inside = ((measured >= judged.lower) & (measured <= judged.upper))[some]
                columns += [float(np.abs(ratio).mean()), float(ratio.mean()),
                            float(inside.mean()) if judge_name == LAW else None]
            found.append((judge_name, group, int(some.sum()),
                          float(judged.measured[some].mean()), *columns))
    return found
