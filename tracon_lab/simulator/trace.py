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

import math
import os
from typing import Sequence

from tracon_lab.simulator import workload
from tracon_watcher.characteristics import FloatArray
from tracon_watcher import csv_table

COLUMNS = ('arrival_seconds', 'class', 'solo_seconds')


def read(path: str | os.PathLike[str], classes: Sequence[str],
         solo_seconds: FloatArray) -> tuple[workload.Listed, float]:
    """Read a trace; return its tasks and when the last of them comes, seconds.

    :param classes: c names that are known
    :param solo_seconds: (c,) of each class on the first host type
    :raises tracon_watcher.errors.InvalidDocument: naming file, line, column and value
    """
    found = csv_table.read(path, 'expected a CSV file', COLUMNS, ended='copy or convert it again')
    index = {name: place for place, name in enumerate(classes)}
    times: list[float] = []
    tasks: list[int] = []
    work: list[float] = []
    for row in found.rows:
        when = row.number(COLUMNS[0])
        if times and when < times[-1]:
            row.refuse(COLUMNS[0], f'the line before has {times[-1]:g}: sort the file by arrival')
        kind = row.fields[COLUMNS[1]]
        if kind not in index:
            row.refuse(COLUMNS[1], f'expected one of {", ".join(classes)}')
        task = index[kind]
        seconds = row.optional(COLUMNS[2])
        if seconds == 0:
            row.refuse(COLUMNS[2], 'a task takes some time')
        times.append(when)
        tasks.append(task)
        work.append(1.0 if math.isnan(seconds) else float(seconds / solo_seconds[task]))
    return workload.Listed(times, tasks, work), times[-1]
