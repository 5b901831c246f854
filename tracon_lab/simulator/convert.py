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

"""Public traces brought into the form of :mod:`tracon_lab.simulator.trace`.

They tell when something came, how long it stayed and how much CPU it used or asked for; what it
did to disks they do not. So the classes are dealt out by CPU alone: the lines in the order of
their CPU, cut into as many equal parts as there are classes, the class that uses the least CPU
alone for the first part. Who wants other classes edits the column.

Azure's VM traces of 2017 and 2019, ``vmtable.csv``, and Alibaba's cluster trace of 2018,
``batch_task.csv``, come without a line of names; the columns are those of their schemas.
"""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import math
import os
from typing import BinaryIO, cast, Iterator, Sequence, TextIO

import numpy as np

from tracon_lab.simulator import trace
from tracon_watcher.characteristics import FloatArray
from tracon_watcher import csv_table
from tracon_watcher import errors
from tracon_watcher import files
from tracon_watcher import numerals
from tracon_watcher import tie_breaking


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where to find what in a public trace.

    :param columns: their names, in their order
    :param begin: when it came, seconds
    :param end: when it went, seconds
    :param cpu: how much CPU it used or asked for, whatever the unit
    """

    columns: tuple[str, ...]
    begin: str
    end: str
    cpu: str


LAYOUTS = {
    'azure': Layout(('vmid', 'subscriptionid', 'deploymentid', 'vmcreated', 'vmdeleted', 'maxcpu',
                     'avgcpu', 'p95maxcpu', 'vmcategory', 'vmcorecount', 'vmmemory'),
                    'vmcreated', 'vmdeleted', 'avgcpu'),
    'alibaba': Layout(('task_name', 'instance_num', 'job_name', 'task_type', 'status',
                       'start_time', 'end_time', 'plan_cpu', 'plan_mem'),
                      'start_time', 'end_time', 'plan_cpu'),
}


def convert(path: str | os.PathLike[str], layout: str, classes: Sequence[str],
            guest_cpu: FloatArray, output: TextIO) -> tuple[int, int]:
    """Write a trace; return how many tasks it has and how many lines were passed over.

    Those without a beginning, an end after it, or CPU are passed over, such as tasks that never
    ran. VMs that were there before the trace come at its beginning.

    :param path: CSV as it is or compressed (``.gz``)
    :param classes: c names
    :param guest_cpu: (c,) cores that each class uses alone
    :raises tracon_watcher.errors.InvalidDocument: naming file, line and value
    """
    if layout not in LAYOUTS:
        raise errors.InvalidOption('layout', layout, f'expected one of {", ".join(LAYOUTS)}')
    source, wanted = os.fspath(path), LAYOUTS[layout]
    places = [wanted.columns.index(name) for name in (wanted.begin, wanted.end, wanted.cpu)]
    rows, passed = [], 0
    for number, fields in _lines(source):
        if number == 1 and fields[0] == wanted.columns[0]:
            continue
        if len(fields) != len(wanted.columns):
            raise errors.InvalidDocument(
                source, f'line {number}', ','.join(fields),
                f'expected {len(wanted.columns)} fields ({", ".join(wanted.columns)}), found '
                f'{len(fields)}: truncated, or another table?')
        begin, end, cpu = (_number(fields[place]) for place in places)
        if begin >= 0 and end > begin and cpu >= 0:
            rows.append((begin, end - begin, cpu))
        else:
            passed += 1
    if not rows:
        raise errors.InvalidDocument(source, 'the lines', f'{passed} of no use',
                                     'none has a beginning, an end and CPU')
    table = np.array(rows)
    table = table[np.argsort(table[:, 0], kind='stable')]
    rank = np.empty(len(table), dtype=np.intp)
    rank[np.argsort(table[:, 2], kind='stable')] = np.arange(len(table))
    by_cpu = tie_breaking.argsort(guest_cpu)
    kinds = by_cpu[rank * len(classes) // len(table)]
    writer = csv.writer(output, lineterminator='\n')
    writer.writerow(trace.COLUMNS)
    for (begin, seconds, _cpu), kind in zip(table.tolist(), kinds.tolist()):
        writer.writerow((f'{begin - table[0, 0]:.12g}', classes[kind], f'{seconds:.12g}'))
    return len(table), passed


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield number and fields of each line; such files are too large to be held in memory."""
    source = os.fspath(path)
    with files.readable(path, 'expected a CSV file'), (
            gzip.open(source, 'rb') if source.endswith('.gz') else open(source, 'rb')) as raw:
        yield from csv_table.rows(
            io.TextIOWrapper(cast(BinaryIO, raw), 'utf-8-sig', newline=''), source)


def _number(field: str) -> float:
    """Return a number, NaN for anything else: public traces have holes."""
    try:
        return numerals.parse(field)
    except numerals.InvalidNumber:
        return math.nan
