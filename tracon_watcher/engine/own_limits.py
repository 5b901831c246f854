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

"""What owners of VMs state in flavors and volume types, as the limits that telemetry is read by.

Nova gives the limits of a flavor to each disk of a VM that is no volume, and Cinder's front-end
QoS to each volume; a flavor's CPU quota goes to each virtual CPU.
"""

from __future__ import annotations

import dataclasses
from typing import Iterable, Mapping, Sequence

import numpy as np

from tracon_watcher.contention import own_limits
from tracon_watcher.inventory import cloud

#: libvirt's default, microseconds.
_PERIOD = 100_000.0
_SHARES = 'quota:cpu_shares'
#: Names of limits of a disk, as flavors (after ``quota:disk_``) and QoS have them.
_OF_DISKS = {
    'read_iops_sec': own_limits.READS, 'write_iops_sec': own_limits.WRITES,
    'total_iops_sec': own_limits.REQUESTS, 'read_bytes_sec': own_limits.READ_BYTES,
    'write_bytes_sec': own_limits.WRITE_BYTES, 'total_bytes_sec': own_limits.BYTES}
#: What operators call limits, by column.
TITLES = {own_limits.CORES: 'CPU quota', own_limits.READS: 'disk reads',
          own_limits.WRITES: 'disk writes', own_limits.REQUESTS: 'disk requests',
          own_limits.READ_BYTES: 'disk read bytes', own_limits.WRITE_BYTES: 'disk write bytes',
          own_limits.BYTES: 'disk bytes'}
_UNITS = {own_limits.CORES: '%', own_limits.READ_BYTES: 'B/s', own_limits.WRITE_BYTES: 'B/s',
          own_limits.BYTES: 'B/s'}
_REQUESTS = '1/s'


@dataclasses.dataclass(frozen=True)
class OwnLimit:
    """A limit of a VM that its owner stated, or that its host shows.

    :param name: what is limited, one of :data:`TITLES`
    :param value: of all its disks or virtual CPUs together, in ``unit``: of CPU quotas per cent of
        one core; None where nothing is stated for all of them
    :param reached: share of the window in which the VM was at it; None where that is not known
    """

    name: str
    value: float | None
    unit: str
    reached: float | None


def limits(uuids: Sequence[str], inventory: cloud.Inventory) -> own_limits.OwnLimits:
    """Return the limits of n VMs; of those that the inventory does not know there are none."""
    found = own_limits.nothing(len(uuids))
    total, smallest = found.total.copy(), found.total.copy()
    unknown = found.unknown.copy()
    volumes = inventory.volume_limits
    flavors: dict[tuple[tuple[str, str], ...], Mapping[int, float]] = {}
    for row, uuid in enumerate(uuids):
        server = inventory.servers.get(uuid)
        if server is None:
            continue
        unknown[row] = volumes is not None and _unknown(server, volumes)
        quotas = server.quotas
        if quotas:
            quota = cores(server)
            if quota is not None:
                total[row, own_limits.CORES] = smallest[row, own_limits.CORES] = quota
        elif not (volumes and any(volumes.get(one) for one in server.volumes)):
            continue
        key = tuple(sorted(quotas.items()))
        if key not in flavors:
            flavors[key] = _of_flavor(quotas)
        _add_disks(total[row], smallest[row], flavors[key], server, volumes or {})
    light = _light(inventory)
    return own_limits.OwnLimits(total, smallest, np.array(
        [uuid in light for uuid in uuids], dtype=np.bool_), unknown)


def cores(server: cloud.Server) -> float | None:
    """Return how many cores' time the quota of a server's flavor allows, None without one."""
    quota = _number(server.quotas.get('quota:cpu_quota'))
    period = _number(server.quotas.get('quota:cpu_period')) or _PERIOD
    return None if quota is None else quota / period * max(server.vcpus, 1)


def stated(limit: own_limits.OwnLimits, row: int, reached: np.ndarray) -> tuple[OwnLimit, ...]:
    """Return the limits of one VM.

    :param reached: (7,) share of the window at each limit; NaN is unknown
    """
    found = []
    for column, title in TITLES.items():
        here = limit.smallest[row, column]
        share = float(reached[column])
        if column != own_limits.CORES and not np.isfinite(limit.total[row, column]):
            # Of several disks each has its own, and nothing is counted of each.
            share = np.nan
        # A quota that was set on the host is unknown to Nova.
        seen = column == own_limits.CORES and share > 0
        if np.isfinite(here) or seen:
            whole = float(limit.total[row, column]) * (
                100.0 if column == own_limits.CORES else 1.0)
            found.append(OwnLimit(title, whole if np.isfinite(whole) else None,
                                  _UNITS.get(column, _REQUESTS),
                                  share if np.isfinite(share) else None))
    if limit.light[row]:
        found.append(OwnLimit('CPU shares', None, '', None))
    return tuple(found)


def _of_flavor(extra_specs: Mapping[str, str]) -> dict[int, float]:
    values = {column: _number(extra_specs.get(f'quota:disk_{name}'))
              for name, column in _OF_DISKS.items()}
    return {column: value for column, value in values.items() if value is not None}


def _add_disks(total: np.ndarray, smallest: np.ndarray, flavor: Mapping[int, float],
               server: cloud.Server, volumes: Mapping[str, Mapping[str, float]]) -> None:
    """Put the limits of a server's disks into its rows, (7,) each."""
    disks: list[Mapping[int, float]] = [flavor] * server.local_disks
    for volume in server.volumes:
        named = volumes.get(volume, {})
        disks.append({_OF_DISKS[name]: value for name, value in named.items()})
    for column in _OF_DISKS.values():
        values = [one[column] for one in disks if column in one]
        if values:
            smallest[column] = min(values)
            # A disk without a limit has as many requests as it likes.
            total[column] = sum(values) if len(values) == len(disks) else np.inf


def _unknown(server: cloud.Server, volumes: Mapping[str, Mapping[str, float]]) -> bool:
    """Return whether a server has, or may have, a volume whose limits are unknown."""
    # One without an image has a volume to boot from, which is asked for only after it was told of.
    return (not all(volume in volumes for volume in server.volumes) if server.volumes
            else not server.image)


def _light(inventory: cloud.Inventory) -> set[str]:
    """Return the VMs whose owner gave them less weight for each virtual CPU than others have.

    Of a VM for which nothing is stated the weight is the host's default, which differs from one
    version of control groups to the other: beside it any weight may be less.
    """
    if not any(_SHARES in server.quotas for server in inventory.servers.values()):
        return set()
    weights: dict[str, dict[str, float]] = {}
    for uuid, server in inventory.servers.items():
        if server.host is not None and server.vm_state == 'active':
            weight = _number(server.quotas.get(_SHARES))
            weights.setdefault(server.host, {})[uuid] = (
                np.nan if weight is None else weight / max(server.vcpus, 1))
    return {uuid for found in weights.values() for uuid in _lighter(found)}


def _lighter(weights: Mapping[str, float]) -> Iterable[str]:
    values = np.array(list(weights.values()))
    unstated = np.isnan(values).any()
    heaviest = np.nan if np.isnan(values).all() else np.nanmax(values)
    return [uuid for uuid, weight in weights.items()
            if np.isfinite(weight) and (unstated or weight < heaviest)]


def _number(text: object) -> float | None:
    """Return a limit; None for what is no number, or no limit: 0, and −1 for a quota."""
    try:
        value = float(str(text))
    except ValueError:
        return None
    return value if 0 < value < np.inf else None
