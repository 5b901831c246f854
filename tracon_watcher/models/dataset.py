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

"""Measurements as they lie in a CSV file: columns, their meaning, and what is no measurement.

A file begins with lines ``# key: value`` (``schema`` and ``host_type`` at least), then come the
names of the columns and a line a point. An empty field is *undefined*; a number is finite and
not negative.
"""

from __future__ import annotations

import csv
import dataclasses
import gzip
import hashlib
import math
import os
import pathlib
from typing import Iterable, Mapping, NoReturn
import zlib

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import NAMES
from tracon_watcher import errors
from tracon_watcher.models import points as measured

SCHEMA = 'tracon-measurements/2'
#: What else can be read: version 1 has no perf events, and two guests at a time.
READABLE = ('tracon-measurements/1', SCHEMA)
#: What a point may be: a program alone; a named target beside a setting of the generator; the
#: generator as target beside itself; two programs side by side; a point measured again, for the
#: noise; the generator as target beside a named program, the other direction of a `background`
#: point; several beside the target.
KINDS = ('solo', 'background', 'generator', 'pair', 'repeat', 'reverse',
         'co-residents')

_CHARACTERISTICS = {
    f'{whose}_{when}': tuple(f'{whose}_{when}_{name}' for name in NAMES)
    for when in ('alone', 'observed') for whose in ('target', 'background')}
_TEXT = ('point', 'kind', 'target', 'background', 'started_at')
#: Hardware and software events, as libvirt names them.
EVENTS = ('cpu_cycles', 'instructions', 'cache_references', 'cache_misses',
          'context_switches', 'cpu_migrations')
#: The columns, in the order in which they are written.
COLUMNS = (
    'point', 'kind', 'target', 'background', 'repetition', 'started_at', 'window_seconds',
    'units', 'time_per_unit', 'solo_time_per_unit', 'slowdown', 'operations', 'iops',
    'solo_iops', 'iops_ratio', *_CHARACTERISTICS['target_alone'],
    *_CHARACTERISTICS['background_alone'], *_CHARACTERISTICS['target_observed'],
    *_CHARACTERISTICS['background_observed'], 'target_vcpu_delay', 'target_read_latency',
    'target_write_latency', 'background_vcpu_delay', 'background_read_latency',
    'background_write_latency', 'target_alone_vcpu_delay', 'target_alone_read_latency',
    'target_alone_write_latency', *(f'target_{name}' for name in EVENTS),
    *(f'target_alone_{name}' for name in EVENTS), 'foreign_cpu', 'foreign_cpu_other', 'steal',
    'canary_before', 'canary_during', 'canary_after', 'solo_canary', 'attempts')
#: Columns that a file must have to be learnt from; the others are for people.
NEEDED = ('point', 'kind', 'target', 'background', 'repetition', 'slowdown', 'iops_ratio',
          *(name for names in _CHARACTERISTICS.values() for name in names))
_POSITIVE = ('slowdown', 'iops_ratio', 'time_per_unit', 'solo_time_per_unit')


@dataclasses.dataclass(frozen=True)
class Dataset:
    """One file of measurements of one host type.

    :param name: file name without folders
    :param sha256: of the file
    :param header: what its first lines say
    :param text: (n,) strings of the columns that hold text
    :param numbers: (n,) numbers of the others, NaN where undefined
    """

    name: str
    sha256: str
    header: Mapping[str, str]
    text: Mapping[str, measured.StringArray]
    numbers: Mapping[str, FloatArray]

    @property
    def host_type(self) -> str:
        """Type of host that was measured."""
        return self.header['host_type']

    @property
    def points(self) -> measured.Points:
        """What models learn from and are tested on."""
        def four(which: str) -> FloatArray:
            return np.column_stack([self.numbers[name] for name in _CHARACTERISTICS[which]])
        alone = np.where((self.text['kind'] == 'solo')[:, None], 0.0, four('background_alone'))
        observed = four('target_observed') + four('background_observed')
        return measured.Points(
            self.host_type, self.text['kind'], self.text['target'], self.text['background'],
            four('target_alone'), alone, self.numbers['slowdown'], self.numbers['iops_ratio'],
            observed)


def storage_waits(datasets: Iterable[Dataset]) -> dict[str, float]:
    """Return which part of its time alone each program waits for storage, by its name.

    The median over all windows; a program is left out whose requests were not timed.
    """
    found: dict[str, list[FloatArray]] = {}
    for one in datasets:
        unknown = np.full(len(one.text['kind']), np.nan)
        timed = [one.numbers.get(f'target_alone_{name}_latency', unknown)
                 for name in ('read', 'write')]
        rates = one.points.target_alone[:, :2]
        # What does no requests waits for none, whatever they take.
        waits = np.where(rates > 0, rates * np.column_stack(timed), 0.0).sum(axis=1)
        for name in np.unique(one.text['target']):
            known = (one.text['target'] == name) & np.isfinite(waits)
            if known.any():
                found.setdefault(str(name), []).append(waits[known])
    return {name: float(np.median(np.concatenate(parts))) for name, parts in found.items()}


def read(path: str | os.PathLike[str]) -> Dataset:
    """Read and check one file, CSV as it is or compressed (``.gz``).

    :raises tracon_watcher.errors.InvalidDocument: naming file, line, column and value
    """
    source = os.fspath(path)
    try:
        content = pathlib.Path(source).read_bytes()
        if source.endswith('.gz'):
            content = gzip.decompress(content)
        text = content.decode('utf-8')
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise errors.InvalidDocument(source, 'the file', str(error),
                                     'cannot be read; name a CSV of `tracon lab measure`'
                                     ) from None
    if not text.endswith('\n'):
        raise errors.InvalidDocument(
            source, f'line {text.count(chr(10)) + 1}', text.rsplit('\n', 1)[-1],
            'the file ends within a line: truncated? copy it again, or measure on to resume')
    lines = text.splitlines()
    header = _header(source, lines)
    first = next((i for i, line in enumerate(lines) if not line.startswith('#')), len(lines))
    names = _names(source, lines[first] if first < len(lines) else '', first + 1)
    rows = _rows(source, lines[first + 1:], names, first + 2)
    _check_rows(source, rows)
    return Dataset(
        pathlib.Path(source).name, hashlib.sha256(content).hexdigest(), header,
        {name: np.array([row[name] for _, row in rows], dtype=np.str_)
         for name in names if name in _TEXT},
        {name: np.array([_number(source, number, name, row[name]) for number, row in rows])
         for name in names if name not in _TEXT})


def read_all(paths: Iterable[str | os.PathLike[str]]) -> list[Dataset]:
    """Read several files.

    :raises tracon_watcher.errors.InvalidDocument: naming file, line, column and value, also of a
        point that stands in two files
    """
    found = [read(path) for path in paths]
    seen: dict[tuple[str, ...], str] = {}
    for one in found:
        for mark in _marks(one):
            if mark in seen:
                raise errors.InvalidDocument(
                    one.name, *_told(one, mark),
                    f'stands in {seen[mark]} as well: name each measurement once')
        seen.update((mark, one.name) for mark in _marks(one))
    return found


def check_held_out(fitted: Iterable[Dataset], tests: Iterable[Dataset]) -> None:
    """See that what models are tested on is nothing that they learn from.

    :raises tracon_watcher.errors.InvalidDocument: naming the file and what is wrong with it
    """
    fitted = list(fitted)
    known = {one.host_type for one in fitted}
    seen = {mark: one.name for one in fitted for mark in _marks(one)}
    for test in tests:
        if test.host_type not in known:
            raise errors.InvalidDocument(
                test.name, 'header host_type', test.host_type,
                f'nothing is known of it; there are models of {", ".join(sorted(known))}')
        for mark in _marks(test):
            if mark in seen:
                raise errors.InvalidDocument(
                    test.name, *_told(test, mark),
                    f'stands in {seen[mark]} as well, which models are fitted to: no test of them')


def _marks(one: Dataset) -> Iterable[tuple[str, ...]]:
    """Return what tells a file, and each measured point of it, from all others.

    Points do where their time is given.
    """
    when = one.text.get('started_at')
    points = () if when is None else [
        (one.host_type, str(point), str(at)) for point, at in zip(one.text['point'], when) if at]
    return ((one.sha256,), *points)


def _told(one: Dataset, mark: tuple[str, ...]) -> tuple[str, str]:
    """Return field and value that an error names a mark by."""
    if len(mark) == 1:
        return 'the file', one.name
    return 'point', f'{mark[1]}, measured at {mark[2]}'


def _header(source: str, lines: list[str]) -> dict[str, str]:
    header: dict[str, str] = {}
    for line in lines:
        if not line.startswith('#'):
            break
        key, colon, value = line[1:].partition(':')
        if colon:
            header[key.strip()] = value.strip()
    if header.get('schema') not in READABLE:
        raise errors.InvalidDocument(source, 'header schema', header.get('schema'),
                                     'this version reads ' + ' and '.join(READABLE))
    if not header.get('host_type'):
        raise errors.InvalidDocument(source, 'header host_type', header.get('host_type'),
                                     'expected a line "# host_type: NAME"')
    return header


def _names(source: str, line: str, number: int) -> list[str]:
    names = next(csv.reader([line]), [])
    missing = [name for name in NEEDED if name not in names]
    if missing:
        raise errors.InvalidDocument(source, f'line {number}, the columns', ', '.join(missing),
                                     'missing; needed are ' + ', '.join(NEEDED))
    double = [name for name in names if names.count(name) > 1]
    if double:
        raise errors.InvalidDocument(source, f'line {number}, the columns', double[0],
                                     'stands there twice')
    return names


def _rows(source: str, lines: list[str], names: list[str],
          start: int) -> list[tuple[int, dict[str, str]]]:
    rows = []
    for number, fields in enumerate(csv.reader(lines), start):
        if len(fields) != len(names):
            raise errors.InvalidDocument(
                source, f'line {number}', ','.join(fields),
                f'expected {len(names)} fields, found {len(fields)}: truncated or edited?')
        rows.append((number, dict(zip(names, fields))))
    if not rows:
        raise errors.InvalidDocument(source, 'the points', 'none', 'the file holds no point')
    return rows


def _check_rows(source: str, rows: list[tuple[int, dict[str, str]]]) -> None:
    seen: dict[tuple[str, str], int] = {}
    for number, row in rows:
        if row['kind'] not in KINDS:
            _refuse(source, number, 'kind', row['kind'], f'expected one of {", ".join(KINDS)}')
        key = (row['point'], row['repetition'])
        if key in seen:
            _refuse(source, number, 'point', row['point'],
                    f'stands already in line {seen[key]}; remove one of the two')
        seen[key] = number
        if not row['target']:
            _refuse(source, number, 'target', '', 'every point has a target')
        needed = list(_CHARACTERISTICS['target_alone'])
        if row['kind'] != 'solo':
            needed += _CHARACTERISTICS['background_alone']
            if not row['background']:
                _refuse(source, number, 'background', '', f'a {row["kind"]} point has one')
        for name in needed:
            if not row[name]:
                _refuse(source, number, name, '', f'a {row["kind"]} point needs it')


def _number(source: str, line: int, name: str, field: str) -> float:
    if field == '':
        return math.nan
    try:
        value = float(field)
    except ValueError:
        _refuse(source, line, name, field, 'expected a number, or nothing where undefined')
    if not math.isfinite(value):
        _refuse(source, line, name, field, 'expected a finite number; leave the field empty '
                                           'where a value is undefined')
    if value < 0 or (value == 0 and name in _POSITIVE):
        _refuse(source, line, name, field,
                'expected a number above 0' if name in _POSITIVE else 'expected no negative one')
    return value


def _refuse(source: str, line: int, column: str, value: str, remedy: str) -> NoReturn:
    raise errors.InvalidDocument(source, f'line {line}, column {column}', value, remedy)
