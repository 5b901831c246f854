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
"""Which VMs a simulated cloud has in a day, and how much CPU each would use alone.

CPU use is that of real VMs, from a file of traces; :func:`synthetic` makes traces where there is
none. Sizes and lifetimes follow what is published of Azure: shares of lifetimes by Cortez et al.
(Resource Central, SOSP'17, table 4), and by its data set of 2017 2.28 core hours and one arrival
for 51.8 VM hours.
"""

from __future__ import annotations

import csv
import dataclasses
import lzma
import math
import os
from typing import Iterator, Sequence
import uuid

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray
from tracon_watcher import errors

#: Intervals of a day, and seconds of one.
STEPS, SECONDS = 288, 300.0
#: Virtual CPUs of VMs, and the share of VMs that have so many.
SIZES = {1: 0.48, 2: 0.31, 4: 0.14, 8: 0.06, 16: 0.01}
#: Lifetimes in hours, from and to, and the share of VMs that live so long. Within each, its
#: logarithm is uniform; the last ends where a VM lives for 51.8 hours in the mean.
LIFETIMES = {(1 / 12, 0.25): 0.29, (0.25, 1.0): 0.32, (1.0, 24.0): 0.32, (24.0, 3500.0): 0.07}
#: All VMs have it.
IMAGE = str(uuid.UUID(int=0, version=4))
#: A vCPU is never busy for more than this share of its time.
_MOST = 0.98
#: Nor is any VM idle for all of it.
_LEAST = 0.002


@dataclasses.dataclass(frozen=True)
class Demand:
    """The n VMs of a day, in the order of their arrival.

    :ivar arrives: (n,) interval in which each comes, -1 for those that are there before
    :ivar leaves: (n,) interval before which it leaves
    :ivar vcpus: (n,)
    :ivar project: (n,) number of its project
    :ivar used: (n, STEPS) share of its time alone in which each vCPU is on the CPU, 0 … 1
    """

    arrives: IntArray
    leaves: IntArray
    vcpus: IntArray
    project: IntArray
    used: FloatArray

    def there(self, step: int) -> np.ndarray:
        """Return which VMs would run in an interval, (n,)."""
        return np.asarray((self.arrives <= step) & (self.leaves > step))

    def running(self) -> float:
        """Return how many vCPUs run at a time, in the mean."""
        return float(np.mean([self.vcpus[self.there(step)].sum() for step in range(STEPS)]))


def read(path: str | os.PathLike[str]) -> FloatArray:
    """Read traces: CSV (also .xz) with a line of names and a line for each VM and day.

    :returns: (days, STEPS) shares of CPU; columns that are no ``m`` and minutes are passed over
    :raises tracon_watcher.errors.InvalidDocument: naming file, line, column and value
    """
    return np.array([used for used, _cells in _lines(path)], dtype=np.float32)


def recorded(path: str | os.PathLike[str], day: int) -> Demand:
    """Return the VMs of a day of a cloud, of a file by ``tracon export``.

    A VM is there from its first to its last interval with a value; between them, missing values
    are interpolated.

    :param day: number of the day, from 0
    :raises tracon_watcher.errors.InvalidDocument: naming file, line, column and value; also where
        there is no such day
    """
    source = os.fspath(path)
    lines = [(used, *cells) for used, cells in _lines(path, ('begins', 'project', 'vcpus'))]
    days = sorted({begins for _used, begins, *_rest in lines})
    if day >= len(days):
        raise errors.InvalidDocument(source, 'days', len(days), f'expected {day + 1} or more')
    lines = [one for one in lines if one[1] == days[day] and not np.isnan(one[0]).all()]
    if not lines:
        raise errors.InvalidDocument(source, f'day {days[day]}', 'empty',
                                     'expected a VM with CPU use')
    first, last = (np.array([np.flatnonzero(~np.isnan(used))[place] for used, *_rest in lines])
                   for place in (0, -1))
    arrives = np.where(first > 0, first, -1)
    order = np.argsort(arrives, kind='stable')
    try:
        vcpus = np.array([int(one[3]) for one in lines])
    except ValueError as error:
        raise errors.InvalidDocument(source, 'column vcpus', str(error),
                                     'expected whole numbers') from None
    if (vcpus < 1).any():
        raise errors.InvalidDocument(source, 'column vcpus', int(vcpus.min()),
                                     'expected 1 or more')
    filled = np.array([np.interp(np.arange(STEPS), np.flatnonzero(~np.isnan(used)),
                                 used[~np.isnan(used)]) for used, *_rest in lines])
    project = np.unique([one[2] for one in lines], return_inverse=True)[1]
    return Demand(arrives[order], np.where(last < STEPS - 1, last + 1, STEPS + 1)[order],
                  vcpus[order], project[order], np.clip(filled[order], _LEAST, _MOST))


def _lines(path: str | os.PathLike[str], names: Sequence[str] = ()
           ) -> Iterator[tuple[FloatArray, list[str]]]:
    """Yield of each line the shares of CPU, (STEPS,), and what columns with these names have.

    :param names: with names, cells of intervals may be empty: NaN
    """
    source = os.fspath(path)
    opened = lzma.open if source.endswith('.xz') else open
    number = 1
    try:
        with opened(source, 'rt', encoding='utf-8', newline='') as stream:  # type: ignore
            lines = csv.reader(stream)
            there = next(lines, [])
            wanted = [*names, *(f'm{5 * step}' for step in range(STEPS))]
            if not set(wanted) <= set(there):
                raise errors.InvalidDocument(
                    source, 'the first line', ', '.join(there)[:60],
                    f'expected columns {"".join(f"{name}, " for name in names)}m0, m5 to '
                    f'm{5 * STEPS - 5}, per cent of CPU by minute')
            columns = [there.index(name) for name in wanted]
            for number, line in enumerate(lines, 2):
                if len(line) < len(there):
                    raise errors.InvalidDocument(source, f'line {number}', f'{len(line)} columns',
                                                 f'expected {len(there)}')
                cells = [line[column] for column in columns]
                yield (_shares(source, number, cells[len(names):], bool(names)),
                       cells[:len(names)])
    except (OSError, UnicodeDecodeError, lzma.LZMAError) as error:
        raise errors.InvalidDocument(source, 'the file', str(error),
                                     'name a CSV file, which may be compressed by xz') from None
    if number == 1:
        raise errors.InvalidDocument(source, 'lines', 0, 'expected one for each VM and day')


def _shares(source: str, number: int, cells: Sequence[str], gaps: bool) -> FloatArray:
    found = np.array([_number(text) for text in cells])
    wrong = ~((found >= 0.0) & (found <= 100.0))
    if gaps:
        wrong &= np.array([text != '' for text in cells])
    for place in np.flatnonzero(wrong).tolist():
        raise errors.InvalidDocument(source, f'line {number}, column m{5 * place}', cells[place],
                                     'expected a number from 0 to 100')
    return found / 100.0


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def synthetic(count: int, seed: int) -> FloatArray:
    """Return traces that no VM has left, (count, STEPS): for a try without data.

    A VM's mean is drawn, and varies by the hour of the day, and from one interval to the next.
    """
    rng = np.random.default_rng(seed)
    mean = rng.beta(0.6, 4.0, count)
    hour = 2.0 * np.pi * (np.arange(STEPS) / STEPS - rng.uniform(size=(count, 1)))
    noise = np.zeros((count, STEPS))
    for step in range(1, STEPS):
        noise[:, step] = 0.8 * noise[:, step - 1] + rng.normal(0.0, 0.3, count)
    found = mean[:, np.newaxis] * (1.0 + 0.4 * np.sin(hour)) * np.exp(noise)
    return np.clip(found, 0.0, 1.0).astype(np.float32)


def draw(traces: FloatArray, vcpus: float, seed: int, alike: float = 0.15,
         most: int = max(SIZES)) -> Demand:
    """Draw the VMs of a day.

    :param traces: (days, STEPS)
    :param vcpus: of all VMs that run at a time, in the mean
    :param alike: standard deviation of what the VMs of a project use in the mean, in ranks of all
        VMs; 0: all VMs of a project use the same, 1: projects say nothing
    :param most: vCPUs of the largest VM
    """
    rng = np.random.default_rng(seed)
    sizes = {size: share for size, share in SIZES.items() if size <= most}
    chances = np.array(list(sizes.values())) / sum(sizes.values())
    mean_size = float(np.array(list(sizes)) @ chances)
    running = max(round(vcpus / mean_size), 1)
    hours, weights = _lifetimes()
    mean_hours = float(hours @ weights)
    coming = rng.poisson(running * 24.0 / mean_hours)
    # Of those that are there, the long-lived are more, and some of their time is over.
    long = rng.choice(hours, running, p=hours * weights / mean_hours)
    life = np.concatenate([long * rng.uniform(size=running), rng.choice(hours, coming, p=weights)])
    arrives = np.concatenate([np.full(running, -1), np.sort(rng.integers(0, STEPS, coming))])
    leaves = np.maximum(arrives, 0) + np.maximum(np.ceil(life * 3600.0 / SECONDS), 1.0)
    count = running + coming
    # Traces by their means; a project has a place among them, and its VMs are near to it.
    order = np.argsort(traces.mean(axis=1), kind='stable')
    projects = max(running // 20, 1)
    project = rng.integers(0, projects, count)
    place = rng.uniform(size=projects)[project] + rng.normal(0.0, alike, count)
    # Beyond an end it is reflected, so that all traces are drawn alike.
    place = np.abs((place + 1.0) % 2.0 - 1.0)
    row = order[np.minimum((place * len(order)).astype(np.intp), len(order) - 1)]
    return Demand(arrives, np.minimum(leaves, STEPS + 1).astype(np.intp),
                  rng.choice(list(sizes), count, p=chances), project,
                  np.clip(traces[row], _LEAST, _MOST))


def _lifetimes() -> tuple[FloatArray, FloatArray]:
    """Return lifetimes in hours, and the share of VMs that live so long."""
    hours, weights = [], []
    for (least, most), share in LIFETIMES.items():
        some = np.exp(np.linspace(np.log(least), np.log(most), 41))
        hours.append(np.sqrt(some[1:] * some[:-1]))
        weights.append(np.full(40, share / 40))
    return np.concatenate(hours), np.concatenate(weights)


def vm_uuid(number: int) -> str:
    """Return the uuid of a VM."""
    return str(uuid.UUID(int=number + 1, version=4))


def flavor(vcpus: int) -> str:
    """Return the name of the flavor with so many vCPUs."""
    return f'cpu{vcpus}'
