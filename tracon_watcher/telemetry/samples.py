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

"""Samples of cumulative meters, as every reader returns them."""

from __future__ import annotations

import dataclasses
from typing import Iterable, Protocol, Sequence

import numpy as np

from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher import errors


class TelemetryUnavailable(errors.TraconError):
    """A source of telemetry does not answer, or not with what was asked for."""


@dataclasses.dataclass(frozen=True)
class Readings:
    """Samples of k meters of n resources.

    :param resources: n ids
    :param meters: k names, in the order of the columns
    :param row: (m,) index of each sample's resource
    :param at: (m,) seconds since the epoch, of the sample or of the bucket it was put in
    :param values: (m, k) cumulative, in the unit of the meter; NaN where it has no sample then
    :param asked: what was asked for, of whom, and what came beside samples; for an operator
    """

    resources: tuple[str, ...]
    meters: tuple[str, ...]
    row: IntArray
    at: FloatArray
    values: FloatArray
    asked: str = ''


class Reader(Protocol):
    """A source of telemetry.

    :param resolution: seconds by which a sample may have been taken before or after its time
    :param ahead: seconds by which samples may be of the future, since the clocks of their hosts
        give them their times; 0 where the source's own does
    """

    resolution: float
    ahead: float

    def read(self, since: float, until: float, meters: Sequence[str]) -> Readings:
        """Return all samples of these meters, of every resource that has any.

        :param since: seconds since the epoch; samples at ``since`` and before ``until``
        :raises TelemetryUnavailable: naming the source, what was asked and what came
        """
        ...


class Samples:
    """Values of k meters, of which those of one resource and time become one sample.

    Fill one for each part of a large answer: it holds lists, which are larger than arrays.
    """

    def __init__(self, meters: Sequence[str]) -> None:
        self.meters = tuple(meters)
        self._index: dict[str, int] = {}
        self._row: list[int] = []
        self._column: list[int] = []
        self._at: list[float] = []
        self._value: list[float] = []

    def add(self, resource: str, meter: int, at: Iterable[float], values: Iterable[float]) -> None:
        """Take the values of the meter with this index, at these seconds since the epoch."""
        before = len(self._at)
        self._at.extend(at)
        self._value.extend(values)
        added = len(self._at) - before
        self._row.extend([self._index.setdefault(resource, len(self._index))] * added)
        self._column.extend([meter] * added)

    def readings(self, since: float, until: float) -> Readings:
        """Return what there is from ``since`` to before ``until``.

        Of several values of one meter, resource and time the largest counts: a counter only rises.
        """
        row = np.array(self._row, dtype=np.intp)
        column = np.array(self._column, dtype=np.intp)
        at, value = np.array(self._at), np.array(self._value)
        keep = np.flatnonzero((at >= since) & (at < until) & ~np.isnan(value))
        keep = keep[np.lexsort((value[keep], at[keep], row[keep]))]
        row, column, at, value = row[keep], column[keep], at[keep], value[keep]
        begins = np.ones(len(row), dtype=np.bool_)
        begins[1:] = (row[1:] != row[:-1]) | (at[1:] != at[:-1])
        table = np.full((int(begins.sum()), len(self.meters)), np.nan)
        table[np.cumsum(begins) - 1, column] = value
        return _compact(tuple(self._index), self.meters, row[begins], at[begins], table)


def join(parts: Sequence[Readings], meters: Sequence[str]) -> Readings:
    """Return parts, each with resources or meters of its own, as one.

    :param parts: of these meters or some of them
    """
    width = len(meters)
    names: dict[str, int] = {}
    rows, times = [np.zeros(0, dtype=np.intp)], [np.zeros(0)]
    tables = [np.zeros((0, width))]
    for part in parts:
        place = np.array([names.setdefault(name, len(names)) for name in part.resources],
                         dtype=np.intp)
        rows.append(place[part.row])
        times.append(part.at)
        if part.meters == tuple(meters):
            tables.append(part.values)
            continue
        table = np.full((len(part.row), width), np.nan)
        table[:, [meters.index(name) for name in part.meters]] = part.values
        tables.append(table)
    return Readings(tuple(names), tuple(meters), np.concatenate(rows),
                    np.concatenate(times), np.concatenate(tables))


def _compact(resources: tuple[str, ...], meters: tuple[str, ...], row: IntArray, at: FloatArray,
             values: FloatArray) -> Readings:
    """Leave out the resources that have no sample."""
    present = np.unique(row)
    place = np.zeros(len(resources), dtype=np.intp)
    place[present] = np.arange(len(present))
    return Readings(tuple(resources[index] for index in present), meters, place[row], at,
                    values)
