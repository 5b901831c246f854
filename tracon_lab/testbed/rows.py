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
"""Rows of the measurement file, and the file itself: appended, resumed, completed."""

import csv
import dataclasses
import io
import math
import os
import pathlib
import typing

from tracon_lab.models import dataset
from tracon_lab.models import naming
from tracon_lab.testbed import errors
from tracon_lab.testbed import observation
from tracon_lab.testbed import plan
from tracon_watcher.characteristics import NAMES
from tracon_watcher import csv_table
from tracon_watcher import files

MINIMUM_IOPS = 5.0      # below this, alone, an IOPS ratio is not defined


@dataclasses.dataclass(frozen=True)
class Side:
    """One program during one window."""

    name: str
    units: int
    time_per_unit: float
    seen: observation.Observation

    @property
    def iops(self) -> float:
        return (self.seen.read_requests_per_second + self.seen.write_requests_per_second)


def together(sides: typing.Sequence[Side]) -> Side:
    """Co-residents as the one background they are; its units count nothing."""
    if len(sides) == 1:
        return sides[0]
    return Side(naming.AND.join(side.name for side in sides), 0, math.nan,
                observation.together([side.seen for side in sides]))


@dataclasses.dataclass(frozen=True)
class Taken:
    """What is common to both directions of a window.

    :param started_at: seconds since the epoch
    """

    started_at: float
    seconds: float
    foreign: float
    foreign_other: float
    steal: float
    canary_before: float
    canary_during: float
    canary_after: float
    attempts: int


@dataclasses.dataclass(frozen=True)
class Solo:
    """A program alone, when last measured.

    :param canary: during that window
    """

    started_at: float
    side: Side
    canary: float = math.nan


def row(point: str, kind: str, repetition: int, target: Side, background: Side | None,
        taken: Taken, target_solo: Solo, background_alone: Side | None) -> dict[str, str]:
    """One row, ready to be written; what is undefined is an empty field."""
    alone = target_solo.side
    values: dict[str, typing.Any] = {
        'point': point, 'kind': kind, 'target': target.name,
        'background': background.name if background else '', 'repetition': repetition,
        'started_at': '%.3f' % taken.started_at, 'window_seconds': taken.seconds,
        'units': target.units, 'time_per_unit': target.time_per_unit,
        'operations': target.seen.operations, 'iops': target.iops,
        'target_vcpu_delay': target.seen.vcpu_delay,
        'target_read_latency': target.seen.read_latency,
        'target_write_latency': target.seen.write_latency,
        'foreign_cpu': taken.foreign, 'foreign_cpu_other': taken.foreign_other,
        'steal': taken.steal, 'canary_before': taken.canary_before,
        'canary_during': taken.canary_during,
        'canary_after': taken.canary_after, 'solo_canary': target_solo.canary,
        'attempts': taken.attempts,
    }
    values.update(_against(target.time_per_unit, target.iops, alone))
    _count(values, 'target_', target.seen)
    _count(values, 'target_alone_', alone.seen)
    _characterise(values, 'target_observed_', target.seen)
    if background is not None:
        values['background_vcpu_delay'] = background.seen.vcpu_delay
        values['background_read_latency'] = background.seen.read_latency
        values['background_write_latency'] = background.seen.write_latency
        _characterise(values, 'background_observed_', background.seen)
    if background_alone is not None:
        _characterise(values, 'background_alone_', background_alone.seen)
    return {name: _text(values.get(name, math.nan)) for name in dataset.COLUMNS}


def _against(time_per_unit: float, iops: float, alone: Side) -> dict[str, typing.Any]:
    values = {
        'solo_time_per_unit': alone.time_per_unit,
        'slowdown': time_per_unit / alone.time_per_unit,
        'solo_iops': alone.iops,
        'iops_ratio': iops / alone.iops if alone.iops >= MINIMUM_IOPS else math.nan,
        'target_alone_vcpu_delay': alone.seen.vcpu_delay,
        'target_alone_read_latency': alone.seen.read_latency,
        'target_alone_write_latency': alone.seen.write_latency,
    }
    _characterise(values, 'target_alone_', alone.seen)
    return values


def _characterise(values: dict[str, typing.Any], prefix: str,
                  seen: observation.Observation) -> None:
    for name, value in zip(NAMES, seen.characteristics, strict=True):
        values[prefix + name] = value


def _count(values: dict[str, typing.Any], prefix: str, seen: observation.Observation) -> None:
    for name, value in seen.events.items():
        values[prefix + name] = value


def _text(value: typing.Any) -> str:
    if isinstance(value, float):
        return '' if math.isnan(value) else '%.6g' % value
    return str(value)


class File:
    """A measurement file that grows by whole rows and survives being cut short."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self.header: dict[str, str] = {}
        self.rows: list[dict[str, str]] = []
        if path.exists():
            self._read()

    def _read(self) -> None:
        text = files.text(self._path, 'name a new file')
        if not text.endswith('\n'):
            text = text[:text.rfind('\n') + 1]      # a row that was being written
            self._path.write_text(text)
        found = csv_table.parse(text, str(self._path), least=0)
        self.header.update(found.header)
        if found.rows and found.columns != dataset.COLUMNS:
            raise errors.TestbedError('%s has other columns than this version writes: '
                                      'name a new file' % self._path)
        for row in found.rows:
            row.number('started_at')
            for name in found.columns:
                if name not in dataset.TEXT:
                    row.optional(name)
        self.rows = [row.fields for row in found.rows]

    def begin(self, header: dict[str, str]) -> None:
        """Write the header of a new file; check that an old one continues the same run."""
        if self.header:
            for key in ('schema', 'host_type', 'seed', 'plan', 'accelerator'):
                if self.header.get(key) != header[key]:
                    raise errors.TestbedError(
                        '%s was measured with %s %s, not %s: name a new file'
                        % (self._path, key, self.header.get(key), header[key]))
            return
        self.header = header
        self._path.write_text(self._head())

    def _head(self) -> str:
        lines = ''.join('# %s: %s\n' % item for item in self.header.items())
        return lines + ','.join(dataset.COLUMNS) + '\n'

    def append(self, *rows: dict[str, str]) -> None:
        """Add rows, at once and for good."""
        with open(self._path, 'a') as out:
            out.write(_lines(rows))
            out.flush()
            os.fsync(out.fileno())
        self.rows.extend(rows)

    def done(self) -> set[tuple[str, int]]:
        """Keys of the windows that need not be measured again."""
        return {(found['point'], int(found['repetition'])) for found in self.rows}

    def complete(self, given_up: typing.Sequence[str] = ()) -> None:
        """Compare every point with the solo window nearest in time.

        While measuring only earlier ones were known.

        :param given_up: points that found no undisturbed window, or whose guests hung each time;
            the header names them until a later run measures them
        """
        self.rows = nearest_solo(self.rows)
        self.header.pop('given_up', None)
        if given_up:
            self.header['given_up'] = '%d: %s' % (len(given_up), ', '.join(given_up))
        with files.replaced(self._path) as out:
            out.write(self._head() + _lines(self.rows))


def _lines(rows: typing.Iterable[dict[str, str]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, dataset.COLUMNS, lineterminator='\n')
    writer.writerows(rows)
    return out.getvalue()


BRACKET = 60.0          # seconds within which a later solo window counts as well
_OF_TARGET = {'target_alone_' + name: 'target_observed_' + name for name in NAMES}
_OF_TARGET.update({'solo_time_per_unit': 'time_per_unit', 'solo_iops': 'iops',
                   'solo_canary': 'canary_during',
                   'target_alone_vcpu_delay': 'target_vcpu_delay',
                   'target_alone_read_latency': 'target_read_latency',
                   'target_alone_write_latency': 'target_write_latency'})
_OF_TARGET.update({'target_alone_' + name: 'target_' + name for name in dataset.EVENTS})


def nearest_solo(rows: typing.Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The rows, each with what its target did alone in the nearest window in time.

    Where the last solo window before a point and the first one after it are both near, it is
    their mean: the machine drifts, and one window has the noise of one window.
    """
    solos: dict[str, list[dict[str, str]]] = {}
    for found in rows:
        if found['kind'] == plan.SOLO:
            solos.setdefault(found['target'], []).append(found)
    result = []
    for old in rows:
        new = dict(old)
        of_target = [old] if old['kind'] == plan.SOLO else _nearest(
            solos[old['target']], float(old['started_at']))
        for name, source in _OF_TARGET.items():
            new[name] = _mean(of_target, source)
        if old['background']:
            others = [_nearest(solos[name], float(old['started_at']))
                      for name in old['background'].split(naming.AND)]
            for name in NAMES:
                new['background_alone_' + name] = _text(sum(
                    float(_mean(other, 'target_observed_' + name)) for other in others))
        new['slowdown'] = _text(float(old['time_per_unit']) / float(new['solo_time_per_unit']))
        alone = float(new['solo_iops'])
        new['iops_ratio'] = _text(float(old['iops']) / alone) if alone >= MINIMUM_IOPS else ''
        result.append(new)
    return result


def _nearest(solos: typing.Sequence[dict[str, str]], at: float) -> list[dict[str, str]]:
    distances = [(float(solo['started_at']) - at, solo) for solo in solos]
    before = max((item for item in distances if item[0] <= 0), key=lambda item: item[0],
                 default=None)
    after = min((item for item in distances if item[0] > 0), key=lambda item: item[0],
                default=None)
    near = [item for item in (before, after) if item is not None]
    if len(near) == 2 and all(abs(distance) <= BRACKET for distance, _solo in near):
        return [solo for _distance, solo in near]
    return [min(near, key=lambda item: abs(item[0]))[1]]


def _mean(solos: typing.Sequence[dict[str, str]], name: str) -> str:
    values = [float(solo[name]) for solo in solos if solo[name]]
    return _text(sum(values) / len(values)) if values else ''
