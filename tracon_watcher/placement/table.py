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

import dataclasses
import datetime
import math
import os

import numpy as np

from tracon_watcher.characteristics import COUNT, LARGEST, NAMES
from tracon_watcher import csv_table
from tracon_watcher import errors
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import snapshot_lines

REQUIRED = ('host', 'uuid') + NAMES
OPTIONAL = ('host_type', 'storage', 'updated_at', 'cores', 'vcpus', 'storage_wait', 'project',
            'flavor', 'image', 'max_slowdown', 'min_iops_ratio', 'class')


def read(path: str | os.PathLike[str], now: float,
         host_type: str | None = None) -> cluster.ClusterState:
    """Build a cluster from a CSV table.

    :param now: seconds since the epoch, for rows without ``updated_at``; the version is of it
    :param host_type: of rows without one
    :raises tracon_watcher.errors.InvalidDocument: naming file, line, column and value
    """
    return build(csv_table.read(path, 'name a CSV table', REQUIRED, REQUIRED + OPTIONAL), now,
                 host_type)


def build(found: csv_table.Table, now: float,
          host_type: str | None = None) -> cluster.ClusterState:
    """Build a cluster from a table, as :func:`read` does."""
    hosts: dict[str, cluster.Host] = {}
    residents: dict[str, list[cluster.Resident]] = {}
    kinds, profiles = [], []
    spelt: dict[str, str] = {}
    for row in found.rows:
        name = row.text('host')
        if not name:
            row.refuse('host', 'state the host of each row')
        if spelt.setdefault(name.casefold(), name) != name:
            row.refuse('host', f'an earlier row spells it {spelt[name.casefold()]}; write it as '
                       'Nova does')
        facts = cluster.Host(name, (), row.text('host_type') or host_type,
                             row.text('storage') or cluster.LOCAL, _time(row, 'updated_at', now),
                             _whole(row, 'cores'))
        if hosts.setdefault(name, facts) != facts:
            row.refuse('host', 'its type, storage, time and cores differ from an earlier row of '
                       'this host')
        vm = _resident(row)
        residents.setdefault(name, [])
        if vm is not None:
            residents[name].append(vm)
            kinds.append((row.text('project'), row.text('flavor'), row.text('image')))
            profiles.append(np.full(COUNT, np.nan) if vm.profile is None else vm.profile)
    history = newcomer_profiles.learn(np.array(profiles).reshape(-1, COUNT), kinds)
    try:
        return cluster.build(
            [dataclasses.replace(host, residents=tuple(residents[name]))
             for name, host in hosts.items()], history, int(now), now)
    except ValueError as error:
        raise errors.InvalidDocument(found.source, 'the table', str(error),
                                     'name every VM once') from None


def _whole(row: csv_table.Row, name: str) -> int | None:
    return row.whole(name, 1, snapshot_lines.MOST) if row.text(name) else None


def _time(row: csv_table.Row, name: str, default: float) -> float:
    text = row.text(name)
    if not text:
        return default
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        row.refuse(name, 'expected an ISO 8601 time such as 2026-01-31T12:00:00+00:00')
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.timezone.utc)
    return moment.timestamp()


def _resident(row: csv_table.Row) -> cluster.Resident | None:
    uuid = row.text('uuid')
    given = [name for name in NAMES if row.text(name)]
    if not uuid:
        if given:
            row.refuse('uuid', 'state the VM of each row with a profile')
        return None
    profile = None
    if given:
        profile = np.array([row.number(name, 0.0, LARGEST) for name in NAMES])
    values = {key: row.number(key, *limits.RANGES[f'tracon:{key}'])
              for key in ('max_slowdown', 'min_iops_ratio') if row.text(key)}
    if row.text('class') not in ('', limits.BACKGROUND_CLASS):
        row.refuse('class', f'expected {limits.BACKGROUND_CLASS}, or nothing for the foreground')
    stated = limits.BACKGROUND if row.text('class') else limits.Limits(
        values.get('max_slowdown', math.inf), values.get('min_iops_ratio', 0.0))
    return cluster.Resident(uuid, profile, stated,
                            vcpus=_whole(row, 'vcpus') or 1,
                            storage_wait=row.optional('storage_wait', 0.0, 1.0))
