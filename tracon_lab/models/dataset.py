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

import dataclasses
import hashlib
import os
import pathlib
from typing import Iterable, Mapping

import numpy as np

from tracon_lab.models import points as measured
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import LARGEST, NAMES
from tracon_watcher import csv_table
from tracon_watcher import errors
from tracon_watcher import files

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
#: Columns that hold text; the others hold numbers.
TEXT = ('point', 'kind', 'target', 'background', 'started_at')
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
_DEMANDS = frozenset(name for names in _CHARACTERISTICS.values() for name in names)
_POSITIVE = ('slowdown', 'iops_ratio', 'time_per_unit', 'solo_time_per_unit')


@dataclasses.dataclass(frozen=True)
class Dataset:
    """One file of measurements of one host type.

    :param name: file name without folders
    :param sha256: of its text
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
    text = files.text(path, 'name a CSV of `tracon lab measure`')
    found = csv_table.parse(text, source, NEEDED, ended='copy it again, or measure on to resume')
    header = _header(found)
    _check_rows(found.rows)
    return Dataset(
        pathlib.Path(source).name, hashlib.sha256(text.encode()).hexdigest(), header,
        {name: np.array([row.fields[name] for row in found.rows], dtype=np.str_)
         for name in found.columns if name in TEXT},
        {name: np.array([_number(row, name) for row in found.rows])
         for name in found.columns if name not in TEXT})


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


def _header(found: csv_table.Table) -> Mapping[str, str]:
    header = found.header
    if header.get('schema') not in READABLE:
        raise errors.InvalidDocument(found.source, 'header schema', header.get('schema'),
                                     'this version reads ' + ' and '.join(READABLE))
    if not header.get('host_type'):
        raise errors.InvalidDocument(found.source, 'header host_type', header.get('host_type'),
                                     'expected a line "# host_type: NAME"')
    return header


def _check_rows(rows: Iterable[csv_table.Row]) -> None:
    seen: dict[tuple[str, str], int] = {}
    for row in rows:
        kind = row.fields['kind']
        if kind not in KINDS:
            row.refuse('kind', f'expected one of {", ".join(KINDS)}')
        key = (row.fields['point'], row.fields['repetition'])
        if key in seen:
            row.refuse('point', f'stands already in line {seen[key]}; remove one of the two')
        seen[key] = row.line
        if not row.fields['target']:
            row.refuse('target', 'every point has a target')
        needed = list(_CHARACTERISTICS['target_alone'])
        if kind != 'solo':
            needed += _CHARACTERISTICS['background_alone']
            if not row.fields['background']:
                row.refuse('background', f'a {kind} point has one')
        for name in needed:
            if not row.fields[name]:
                row.refuse(name, f'a {kind} point needs it')


def _number(row: csv_table.Row, name: str) -> float:
    value = row.optional(name, high=LARGEST) if name in _DEMANDS else row.optional(name)
    if value == 0 and name in _POSITIVE:
        row.refuse(name, 'expected a number above 0')
    return value
