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

"""Idle shares of hosts hour by hour: of CPU time, memory and disk time, from their counters.

Counters are cumulative, so two samples an hour apart give the exact mean of the hour. Only the
samples at the beginning of each hour are read; those between are not needed.
"""

from __future__ import annotations

import dataclasses
from typing import Mapping

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.telemetry import meters
from tracon_watcher.telemetry import samples

HOUR = 3600.0
RESOURCES = ('cpu', 'memory', 'disk')
#: Hours that are read of telemetry at the start, and that are kept.
FIRST, MOST = 24, 168
# Polls in which the sample of the beginning of an hour is sought, and by which it may be late.
_WINDOW, _LATE = 3, 4
# The clock of a host passes as time does, but for the distance of two samples from their hours.
_CLOCK = 0.15
_METERS = (meters.HOST_CLOCK, meters.HOST_BUSY, meters.HOST_IDLE, meters.HOST_IOWAIT,
           meters.HOST_STEAL, meters.HOST_DISK_BUSY, meters.HOST_DISKS, meters.HOST_MEMORY,
           meters.HOST_MEMORY_AVAILABLE)


@dataclasses.dataclass(frozen=True)
class IdleShares:
    """Idle shares of h hosts in t hours.

    :param hours: (t,) beginning of each, hours since the epoch
    :param hosts: h names
    :param values: (t, h, 3) idle share of :data:`RESOURCES`, 0 to 1; NaN where unknown
    """

    hours: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    values: FloatArray = dataclasses.field(
        default_factory=lambda: np.empty((0, 0, len(RESOURCES))))


class IdleShareHistory:
    """Reads the counters of hosts at the beginning of each hour, and keeps a week of idle shares.

    :param polling_interval: seconds between two samples of a host
    """

    def __init__(self, reader: samples.Reader, polling_interval: float) -> None:
        #: What is known; replaced as a whole.
        self.shares = IdleShares()
        self._reader = reader
        self._polling = polling_interval
        #: By hour, then by host, the time and the values of a sample.
        self._begins: dict[int, Mapping[str, FloatArray]] = {}

    def collect(self, now: float) -> None:
        """Read the hours that have begun since the last time.

        :param now: seconds since the epoch
        :raises tracon_watcher.telemetry.samples.TelemetryUnavailable: what was read before stays
        """
        last = int((now - (_WINDOW + _LATE) * self._polling) // HOUR)
        begin = max(self._begins, default=last - FIRST - 1)
        wanted = range(max(begin + 1, last - MOST), last + 1)
        for hour in wanted:
            self._begins[hour] = self._read(hour)
        if wanted:
            self._begins = {hour: found for hour, found in sorted(self._begins.items())
                            if last - MOST <= hour <= last}
            self.shares = _shares(self._begins)

    def _read(self, hour: int) -> Mapping[str, FloatArray]:
        """Return the first whole sample of each host after an hour's beginning, {host: (1 + k,)}.
        """
        since = hour * HOUR
        found = self._reader.read(since, since + _WINDOW * self._polling,
                                  [one.name for one in _METERS])
        first: dict[str, FloatArray] = {}
        for row in np.argsort(found.at, kind='stable'):
            # Without its clock a sample says nothing.
            if not np.isnan(found.values[row, 0]):
                first.setdefault(found.resources[found.row[row]],
                                 np.append(found.at[row], found.values[row]))
        return first


def _shares(begins: Mapping[int, Mapping[str, FloatArray]]) -> IdleShares:
    hosts = tuple(sorted({host for found in begins.values() for host in found}))
    hours = tuple(hour for hour in begins if hour + 1 in begins)
    unknown = np.full(1 + len(_METERS), np.nan)
    table = {hour: np.array([found.get(host, unknown) for host in hosts]).reshape(-1, len(unknown))
             for hour, found in begins.items()}
    return IdleShares(hours, hosts, np.array([
        _between(table[hour], table[hour + 1]) for hour in hours]).reshape(
            len(hours), len(hosts), len(RESOURCES)))


def _between(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the idle shares of h hosts between two samples of each, (h, 3).

    CPU: time in which cores had nothing to do or only waited for I/O, over all time of all cores.
    Memory: available over total, the mean of both samples. Disk: time in which a disk had no
    request, over all time of all disks.

    :param first: (h, 1 + k) seconds since the epoch, then :data:`_METERS`; NaN where unknown
    """
    passed, clock, busy, idle, waiting, stolen, disk_busy, _disks, _total, _free = (
        second - first).T
    disks, memory, available = (np.stack([one[:, -3:] for one in (first, second)])
                                .transpose(2, 0, 1))
    # The counters of a host that was booted in between have begun again.
    clock = clock * 1e-9
    steady = np.abs(clock - passed) <= _CLOCK * passed
    with np.errstate(divide='ignore', invalid='ignore'):
        cpu = (idle + waiting) / (busy + idle + waiting + stolen)
        cpu[~(busy >= 0.0)] = np.nan
        # One disk more or less, and the sum of their times says nothing.
        disk = np.where(disks[0] == disks[1], 1.0 - disk_busy * 1e-9 / (disks[0] * clock), np.nan)
        disk[~(disk_busy >= 0.0)] = np.nan
        found = np.stack([np.where(steady, cpu, np.nan), (available / memory).mean(axis=0),
                          np.where(steady, disk, np.nan)], axis=1)
    found[np.isinf(found)] = np.nan
    return np.clip(found, 0.0, 1.0)
