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

"""Arrivals and lifetimes from a file.

CSV with a line of names and a line a task, in the order of arrival::

    arrival_seconds,class,solo_seconds
    0,calc,180
    12.5,randread,

``arrival_seconds`` since the start of the trace; ``class`` one of the measured programs;
``solo_seconds`` how long it runs alone on the first host type, empty for as long as its class
does. Further columns are passed over.
"""

from __future__ import annotations

import csv
import math
import os
import pathlib
from typing import NoReturn, Sequence

from tracon_watcher.characteristics import FloatArray
from tracon_watcher import errors
from tracon_watcher.simulator import workload

COLUMNS = ('arrival_seconds', 'class', 'solo_seconds')


def read(path: str | os.PathLike[str], classes: Sequence[str],
         solo_seconds: FloatArray) -> tuple[workload.Listed, float]:
    """Read a trace; return its tasks and when the last of them comes, seconds.

    :param classes: c names that are known
    :param solo_seconds: (c,) of each class on the first host type
    :raises tracon_watcher.errors.InvalidDocument: naming file, line, column and value
    """
    source = os.fspath(path)
    try:
        text = pathlib.Path(source).read_text('utf-8-sig')
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InvalidDocument(source, 'the file', str(error),
                                     'cannot be read; expected a CSV file') from None
    if text and not text.endswith('\n'):
        raise errors.InvalidDocument(
            source, f'line {text.count(chr(10)) + 1}', text.rsplit('\n', 1)[-1],
            'the file ends within a line: truncated? copy or convert it again')
    try:
        lines = list(csv.reader(text.splitlines()))
    except csv.Error as error:
        raise errors.InvalidDocument(source, 'the file', str(error),
                                     'expected a CSV file') from None
    names = lines[0] if lines else []
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise errors.InvalidDocument(source, 'line 1, the columns', ','.join(names),
                                     f'{", ".join(missing)} is missing')
    arrival, kind, solo = (names.index(name) for name in COLUMNS)
    index = {name: place for place, name in enumerate(classes)}
    times: list[float] = []
    tasks: list[int] = []
    work: list[float] = []
    for number, fields in enumerate(lines[1:], 2):
        if len(fields) != len(names):
            _refuse(source, number, 'fields', ','.join(fields),
                    f'expected {len(names)}, found {len(fields)}: truncated or edited?')
        when = _number(source, number, COLUMNS[0], fields[arrival])
        if times and when < times[-1]:
            _refuse(source, number, COLUMNS[0], fields[arrival],
                    f'the line before has {times[-1]:g}: sort the file by arrival')
        if fields[kind] not in index:
            _refuse(source, number, COLUMNS[1], fields[kind],
                    f'expected one of {", ".join(classes)}')
        task = index[fields[kind]]
        seconds = solo_seconds[task]
        if fields[solo]:
            seconds = _number(source, number, COLUMNS[2], fields[solo])
            if seconds == 0:
                _refuse(source, number, COLUMNS[2], fields[solo], 'a task takes some time')
        times.append(when)
        tasks.append(task)
        work.append(float(seconds / solo_seconds[task]))
    if not times:
        raise errors.InvalidDocument(source, 'the tasks', 'none', 'the file holds no task')
    return workload.Listed(times, tasks, work), times[-1]


def _number(source: str, line: int, column: str, field: str) -> float:
    try:
        value = float(field)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        _refuse(source, line, column, field, 'expected a number of seconds, not negative')
    return value


def _refuse(source: str, line: int, column: str, value: str, remedy: str) -> NoReturn:
    raise errors.InvalidDocument(source, f'line {line}, {column}', value, remedy)
