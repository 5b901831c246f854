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

"""A cluster's state from a CSV table: a row for each VM, and one for each empty host.

It is how a cloud is described until telemetry does it: by hand, by a script, by an export from
whatever monitoring there is. An empty profile (all four fields) is an unknown VM; one with a gap
is an error, since a gap is no measurement of zero.
"""

from __future__ import annotations

import csv
import dataclasses
import datetime
import math
from typing import Iterable, Mapping

import numpy as np

from tracon_watcher import errors
from tracon_watcher.characteristics import COUNT, NAMES
from tracon_watcher.placement import cluster
from tracon_watcher.placement import columns as columns_module
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer

REQUIRED = ('host', 'uuid') + NAMES
OPTIONAL = ('host_type', 'storage', 'updated_at', 'cores', 'vcpus', 'storage_wait', 'project',
            'flavor', 'image', 'max_slowdown', 'min_iops_ratio')


def read(lines: Iterable[str], source: str, now: float, host_type: str | None = None,
         version: int = 0) -> cluster.ClusterState:
    """Build a cluster from the lines of a CSV table.

    :param source: the file's name, for the errors
    :param now: seconds since the epoch, for rows without ``updated_at``
    :param host_type: of rows without one
    :raises tracon_watcher.errors.InvalidDocument: naming file, line, column and value
    """
    rows = csv.DictReader(lines)
    columns = rows.fieldnames or []
    for name in REQUIRED:
        if name not in columns:
            raise errors.InvalidDocument(source, 'the columns', ','.join(columns),
                                         f'column {name} is missing')
    for name in columns:
        if name not in REQUIRED + OPTIONAL:
            raise errors.InvalidDocument(source, 'the columns', name, 'unknown column; known are '
                                         + ', '.join(REQUIRED + OPTIONAL))
    hosts: dict[str, cluster.Host] = {}
    residents: dict[str, list[cluster.Resident]] = {}
    kinds, profiles = [], []
    for row in rows:
        line = _Line(f'{source}: line {rows.line_num}', row)
        name = line.text('host')
        if not name:
            line.refuse('host', 'a row names its host')
        facts = cluster.Host(name, (), line.text('host_type') or host_type,
                             line.text('storage') or cluster.LOCAL, line.time('updated_at', now),
                             line.whole('cores'))
        if hosts.setdefault(name, facts) != facts:
            line.refuse('host', 'its type, storage, time and cores differ from an earlier row of '
                        'this host')
        vm = line.resident()
        residents.setdefault(name, [])
        if vm is not None:
            residents[name].append(vm)
            kinds.append((line.text('project'), line.text('flavor'), line.text('image')))
            profiles.append(np.full(COUNT, np.nan) if vm.profile is None else vm.profile)
    if not hosts:
        raise errors.InvalidDocument(source, 'the table', '', 'there is not one row')
    history = newcomer.learn(np.array(profiles).reshape(-1, COUNT), kinds)
    try:
        return cluster.build(
            [dataclasses.replace(host, residents=tuple(residents[name]))
             for name, host in hosts.items()], history, version, now)
    except ValueError as error:
        raise errors.InvalidDocument(source, 'the table', str(error),
                                     'name every VM once') from None


class _Line:
    """One row of the table, whose fields are checked as they are read."""

    def __init__(self, source: str, row: Mapping[str | None, object]) -> None:
        self._source = source
        self._row = row
        if None in row or None in row.values():
            raise errors.InvalidDocument(source, 'the row', list(row.values()),
                                         'it has another number of fields than the heading; '
                                         'is the file truncated?')

    def refuse(self, name: str, remedy: str) -> None:
        raise errors.InvalidDocument(self._source, name, self.text(name), remedy)

    def text(self, name: str) -> str:
        return str(self._row.get(name, '')).strip()

    def number(self, name: str, low: float, high: float) -> float:
        try:
            value = float(self.text(name))
        except ValueError:
            value = math.nan
        if not low <= value <= high or math.isinf(value):
            until = f' to {high:g}' if math.isfinite(high) else ' upward'
            self.refuse(name, f'expected a finite number from {low:g}{until}')
        return value

    def whole(self, name: str) -> int | None:
        if not self.text(name):
            return None
        value = self.number(name, 1, columns_module.MOST)
        if value != int(value):
            self.refuse(name, 'expected a whole number')
        return int(value)

    def time(self, name: str, default: float) -> float:
        text = self.text(name)
        if not text:
            return default
        try:
            moment = datetime.datetime.fromisoformat(text)
        except ValueError:
            self.refuse(name, 'expected an ISO 8601 time such as 2026-01-31T12:00:00+00:00')
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.timezone.utc)
        return moment.timestamp()

    def resident(self) -> cluster.Resident | None:
        uuid = self.text('uuid')
        given = [name for name in NAMES if self.text(name)]
        if not uuid:
            if given:
                self.refuse('uuid', 'a row with a profile names its VM')
            return None
        profile = None
        if given:
            profile = np.array([self.number(name, 0, math.inf) for name in NAMES])
        values = {key: self.number(key, *limits.RANGES[f'tracon:{key}'])
                  for key in ('max_slowdown', 'min_iops_ratio') if self.text(key)}
        return cluster.Resident(uuid, profile, limits.Limits(**values),
                                vcpus=self.whole('vcpus') or 1,
                                storage_wait=self.number('storage_wait', 0.0, 1.0)
                                if self.text('storage_wait') else math.nan)
