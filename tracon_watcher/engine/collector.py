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

"""Reads telemetry and learns what VMs demand: from samples to intervals to profiles."""

from __future__ import annotations

import dataclasses
import logging
from typing import Mapping, Sequence

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.contention import demand_estimator
from tracon_watcher.contention import intervals
from tracon_watcher.contention import own_limits as limits_module
from tracon_watcher.contention import profile_tracker
from tracon_watcher.engine import own_limits
from tracon_watcher.engine import state
from tracon_watcher.engine import telemetry_health
from tracon_watcher.inventory import cloud
from tracon_watcher.placement import assessment
from tracon_watcher.telemetry import meters
from tracon_watcher.telemetry import samples

LOG = logging.getLogger(__name__)

#: Required meters of a sample: the clock, then the first fields of
#: :class:`.demand_estimator.Usage`, in order.
METERS = (meters.CLOCK, meters.CPU_GUEST, meters.CPU_DELAY, meters.CPU_HOST,
          meters.READ_REQUESTS, meters.WRITE_REQUESTS, meters.READ_TIME, meters.WRITE_TIME)
_CHARACTERISTICS = [METERS.index(one) for one in (
    meters.CPU_GUEST, meters.CPU_HOST, meters.READ_REQUESTS, meters.WRITE_REQUESTS)]
#: What it may have: a host may not count the first, and agents of earlier releases none of them.
OWN_LIMITS = (meters.CPU_THROTTLED, meters.READ_BYTES, meters.WRITE_BYTES)
#: Polls by which a sample may be late and is read nevertheless.
LATE = 4
#: Polls that are read at least, which hold two samples of each VM.
LEAST = 3
#: Polls after which a sample that lacks meters is taken as it is.
PATIENCE = 2
# Libvirt reads the times of a VM's threads one after the other; the difference of two sums may
# fall by as much as runs meanwhile.
_SLACK = {meters.CPU_HOST: 20e6}


@dataclasses.dataclass(frozen=True)
class Collection:
    """What a collection brought.

    :param demand: of all VMs that anything is known of
    :param profiles: the same with what belongs to it
    :param samples: that were read
    :param learnt: intervals that were learnt from
    :param lost: intervals without rates, by why
    :param limits: what the owners of these VMs state, in the order of ``profiles``
    :param silence: what telemetry lacks
    :param skews: by host, seconds by which its clock is ahead, negative where it is behind; of
        hosts whose clocks are right nothing
    :param clocks: what is not as it should be with clocks
    """

    demand: state.Demand
    profiles: profile_tracker.Profiles
    samples: int
    learnt: int
    lost: Mapping[str, int]
    limits: limits_module.OwnLimits
    silence: telemetry_health.TelemetryGaps = telemetry_health.TelemetryGaps()
    skews: Mapping[str, float] = dataclasses.field(default_factory=dict)
    clocks: tuple[str, ...] = ()


class Collector:
    """Keeps the profiles up to date.

    :param polling_interval: seconds between two samples of a VM
    :param window: seconds that are read at the start, when nothing is known
    :param patience: seconds without a new sample after which something is wrong
    """

    def __init__(self, reader: samples.Reader, demands: profile_tracker.ProfileTracker,
                 polling_interval: float, window: float, patience: float = 900.0) -> None:
        self._reader = reader
        self._demands = demands
        self._polling = polling_interval
        self._window = window
        self._until: float | None = None
        #: Seconds that are read at most.
        self._reach = window
        self._failures = 0
        # No sample of two may be missed for being late.
        self._listener = telemetry_health.Listener(max(patience,
                                                       (LATE + LEAST) * polling_interval))
        self._hosts: dict[str, str] = {}
        self._rules = intervals.Rules(
            resolution=max(polling_interval, reader.resolution),
            longest=max(15 * polling_interval, 60.0), shortest=min(1.0, polling_interval / 4),
            future=assessment.AHEAD)
        self._clocks = telemetry_health.Clocks(LATE * polling_interval, window,
                                               self._rules.resolution)

    def collect(self, inventory: cloud.Inventory, now: float) -> Collection:
        """Read what is new, and return what is known then.

        :param now: seconds since the epoch
        :raises tracon_watcher.telemetry.samples.TelemetryUnavailable: and nothing is lost by it
        """
        # A sample that is new may begin an interval at one that was read before.
        since = now - self._reach
        depth = self._clocks.depth(self._listener.silent(LATE * self._polling, now), now)
        # Where this host's clock was put back, "before" means nothing, and all is read again.
        if self._until is not None and now >= self._until:
            since = max(since, self._until - depth)
        elif self._until is not None and now < self._until - assessment.AHEAD:
            LOG.warning('The clock of this host was put back by %.0f s or more: what was learnt '
                        'goes back with it', self._until - now)
        self._demands.put_back(now - self._polling, self._polling + assessment.AHEAD)
        self._follow(inventory)
        wanted = [*METERS, *_optional(inventory)]
        found, until = self._read(since, now, [one.name for one in wanted])
        at, in_order = self._clocks.take(found, found.values[:, 0], self._hosts, since, until, now)
        found = dataclasses.replace(found, at=at)
        # The last polls are read again, and so are VMs that were deleted since.
        alive = np.array([uuid in inventory.servers for uuid in found.resources], dtype=np.bool_)
        whole = self._whole(found, now) & alive[found.row] & in_order
        between = intervals.between(
            found.row[whole], found.at[whole], found.values[whole], 0, self._rules,
            np.array([_SLACK.get(one, 0.0) for one in wanted]), now)
        known = np.flatnonzero(between.known())
        rates = np.full((len(known), len(METERS) + len(OWN_LIMITS)), np.nan)
        rates[:, :len(wanted)] = between.rates[known]
        throttled, *sizes = rates[:, len(METERS):].T
        learnt = self._demands.update(
            found.resources, between.row[known], between.start[known], between.end[known],
            demand_estimator.of_columns(np.column_stack(
                [rates[:, 1:len(METERS)], throttled, np.zeros(len(known))]), 1e-9),
            *_kinds(found.resources, inventory),
            own_limits.limits(found.resources, inventory), np.column_stack(sizes))
        # Only what was read may be left out of the next reading: the store of samples may have
        # another clock than this host.
        self._until = now
        profiles = self._demands.profiles(now)
        lost = {outcome.name.lower(
            ): between.count(outcome) for outcome in intervals.IntervalStatus
            if outcome > intervals.IntervalStatus.TIMED and between.count(outcome)}
        LOG.debug('Read %d samples of %d VMs: %d new intervals; without rates: %s',
                  len(found.at), len(found.resources), learnt, lost or 'none')
        return Collection(
            state.Demand(profiles.mean, profiles.deviation, profiles.at,
                         {uuid: row for row, uuid in enumerate(profiles.vms)},
                         profiles.own_wait, profiles.storage_wait),
            profiles, len(found.at), learnt, lost, own_limits.limits(profiles.vms, inventory),
            self._listener.take(found, self._settled(found, now), _learnt(
                len(found.resources), between.row[known], between.end[known], rates), lost,
                inventory, now),
            dict(self._clocks.skews), tuple(self._clocks.troubles))

    def _read(self, since: float, now: float,
              names: Sequence[str]) -> tuple[samples.Readings, float]:
        """Read samples; return them, and until when.

        The longer there was no answer, the more there is to read. Where that is why there is none,
        less and less is asked for: counters tell what was done meanwhile without the samples that
        are passed over.
        """
        until = now + max(self._polling, self._reader.ahead)
        try:
            found = self._reader.read(since, until, names)
        except samples.TelemetryUnavailable:
            self._failures += 1
            if self._failures > 1:
                self._reach = max((now - since) / 2, LEAST * self._polling)
            raise
        self._reach, self._failures = self._window, 0
        return found, until

    def _whole(self, found: samples.Readings, now: float) -> BoolArray:
        """Return which samples may be used now, (m,).

        Who stores samples stores meter after meter, and one that is read meanwhile has some of
        them only. It is left for the next time, unless that does not help any more.
        """
        missing = np.isnan(found.values)
        # A meter that only some hosts count is waited for where it was there before.
        optional, columns = missing[:, len(METERS):], missing.shape[1] - len(METERS)
        counted = np.zeros((len(found.resources), columns), dtype=np.bool_)
        for column in range(columns):
            counted[found.row[~optional[:, column]], column] = True
        parts = missing[:, :len(METERS)].any(axis=1) | (optional & counted[found.row]).any(axis=1)
        return np.asarray(~parts | self._settled(found, now))

    def _settled(self, found: samples.Readings, now: float) -> BoolArray:
        """Return which samples will not be completed any more, (m,)."""
        return np.asarray(found.at <= now - PATIENCE * self._polling)

    def _follow(self, inventory: cloud.Inventory) -> None:
        """Forget VMs that are gone, and baselines of those that have moved."""
        hosts = {uuid: server.host for uuid, server in inventory.servers.items()
                 if server.host is not None}
        self._demands.retain(inventory.servers)
        self._demands.moved([uuid for uuid, host in hosts.items()
                             if self._hosts.get(uuid, host) != host])
        self._hosts = hosts


def _learnt(count: int, row: IntArray, end: FloatArray, rates: FloatArray) -> FloatArray:
    """Return the end of each resource's latest interval that is learnt from, (n,), or -inf."""
    latest = np.full(count, -np.inf)
    usable = np.isfinite(rates[:, _CHARACTERISTICS]).all(axis=1)
    np.maximum.at(latest, row[usable], end[usable])
    return latest


def _optional(inventory: cloud.Inventory) -> tuple[meters.Meter, ...]:
    """Return the meters of own limits that are read; those of bytes where these are limited."""
    bytes_matter = any('bytes_sec' in name for limits in (inventory.volume_limits or {}).values()
                       for name in limits) or any(
        name.startswith('quota:disk_') and name.endswith('_bytes_sec')
        for server in inventory.servers.values() for name in server.quotas)
    return OWN_LIMITS if bytes_matter else OWN_LIMITS[:1]


def _kinds(uuids: Sequence[str], inventory: cloud.Inventory) -> tuple[FloatArray, FloatArray]:
    """Return the number of virtual CPUs of VMs, and a number for the sort of storage they use.

    Disks of hosts of one type answer alike, and so does a pool.
    """
    stated = {host: (one.metadata.get(state.HOST_TYPE), one.metadata.get(state.STORAGE))
              for one in inventory.aggregates for host in one.hosts
              if one.metadata.get(state.HOST_TYPE) or one.metadata.get(state.STORAGE)}
    pools: dict[object, int] = {}
    vcpus = np.ones(len(uuids))
    pool = np.full(len(uuids), -1, dtype=np.intp)
    for index, uuid in enumerate(uuids):
        server = inventory.servers.get(uuid)
        if server is None:
            continue
        vcpus[index] = max(server.vcpus, 1)
        # Those on volumes are not compared with those on ephemeral disks.
        kind = (stated.get(server.host or ''), server.image == '')
        pool[index] = pools.setdefault(kind, len(pools))
    return vcpus, pool
