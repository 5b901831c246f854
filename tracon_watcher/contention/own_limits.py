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

"""What limits that owners state for their VMs account for, of the time that is counted of these.

Flavors and volume types limit VMs: CPU quotas, weights of CPU time, requests and bytes a second of
each disk. A VM at such a limit waits like one that neighbours disturb, though none does. How much
of its waiting is its owner's is known for two kinds:

* of a CPU quota, where the host counts it: the time that the quota kept virtual CPUs waiting;
* of a limit of disks, from the share u of it that is used. A limit holds in every moment, so that
  for at most u of the time the VM can have been at it. At :data:`REACHED` and above all waiting
  for requests of that kind is the owner's: without neighbours hardly more could have been done.
  Below, anything from nothing to u of the time is. A quota that is not counted is judged likewise.

Where a VM has several disks with a limit each, u is the share of all limits together; but for what
is possible it is the share of the smallest, as one disk may have all the requests.

A disk whose limits are not known may be at one of them all the time.

A VM of less weight than others on its host waits because of both: its owner may account for all of
its delay, or for nothing.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.contention import demand_estimator

#: Share of a limit from which on it is reached.
REACHED = 0.95
#: Share of its time below which a VM counts as one that does not wait for limits at all.
LEAST_WAIT = 0.02
#: What may be limited, columns of :class:`OwnLimits`.
CORES, READS, WRITES, REQUESTS, READ_BYTES, WRITE_BYTES, BYTES = range(7)
COUNT = 7
#: Columns of what is limited by the kind of resource.
CPU, DISK = 0, 1
_OF_READS = (READS, REQUESTS, READ_BYTES, BYTES)
_OF_WRITES = (WRITES, REQUESTS, WRITE_BYTES, BYTES)
_LEAST = 1e-9


@dataclasses.dataclass(frozen=True)
class OwnLimits:
    """What owners of n VMs state, per second; infinite where they state nothing.

    :param total: (n, 7) of each VM: cores; reads, writes, and both; bytes read, written, and both
    :param smallest: (n, 7) of the disk, or all virtual CPUs, with the smallest limit
    :param light: (n,) whether the VM has less weight than others on its host
    :param unknown: (n,) whether a disk may have limits that are not known
    """

    total: FloatArray
    smallest: FloatArray
    light: BoolArray
    unknown: BoolArray

    def take(self, index: BoolArray | IntArray) -> OwnLimits:
        """Return the VMs that ``index`` selects."""
        return OwnLimits(self.total[index], self.smallest[index], self.light[index],
                         self.unknown[index])


def nothing(count: int) -> OwnLimits:
    """Return the limits of so many VMs whose owners state none."""
    none, nowhere = np.full((count, COUNT), np.inf), np.zeros(count, dtype=np.bool_)
    return OwnLimits(none, none, nowhere, nowhere)


@dataclasses.dataclass(frozen=True)
class OwnLimitShare:
    """What own limits account for in an interval each of n VMs.

    :param usage: with the time that is surely the owners', to be learnt from
    :param most: with as much time put down to owners as there may be
    :param reached: (n, 2) whether CPU quota and limits of disks were reached
    :param each: (n, 7) whether each limit was, by the columns of :class:`OwnLimits`
    :param bounds: what owners allow at most, with requests of the size that they had
    """

    usage: demand_estimator.Usage
    most: demand_estimator.Usage
    reached: BoolArray
    each: BoolArray
    bounds: demand_estimator.Bounds

    def take(self, index: BoolArray | IntArray | slice) -> OwnLimitShare:
        """Return the VMs that ``index`` selects."""
        return OwnLimitShare(self.usage.take(index), self.most.take(index),
                             self.reached[index], self.each[index], self.bounds.take(index))

    def wait(self, vcpus: FloatArray, closed: FloatArray) -> FloatArray:
        """Return the share of time that each VM would wait for its own limits without
        neighbours, (n,) from 0 to 1; 0 for a VM that is at none.

        At its limit, a closed loop would wait for that limit as long as it now waits for
        neighbours; a VM with idle time left would be idle instead. Of requests that wait at the
        same time one counts.

        :param closed: (n,) 1 for a closed loop, towards 0 the more idle time there is
        """
        throttled, delay, limited = (np.nan_to_num(one) for one in (
            self.usage.throttled, self.usage.delay, self.usage.limited))
        waited = throttled + closed * (delay - throttled) + np.minimum(limited, 1.0)
        cpus = np.maximum(vcpus, _LEAST)
        idle = 1 - np.minimum(np.nan_to_num(self.usage.running) / cpus, 1.0)
        return np.where(self.reached.any(axis=1), np.minimum(waited / cpus, idle), 0.0)

    @property
    def sure(self) -> BoolArray:
        """(n,) whether it is known how much time is the owners'."""
        return np.asarray((self.usage.throttled == self.most.throttled)
                          & (self.usage.limited == self.most.limited))


def attribute(usage: demand_estimator.Usage, size: FloatArray, limits: OwnLimits,
              vcpus: FloatArray) -> OwnLimitShare:
    """Tell the owners' part of what n VMs waited for.

    :param usage: ``throttled`` is NaN where it is not counted; ``limited`` is not looked at
    :param size: (n, 2) bytes a second that were read and written; NaN where not counted
    """
    share, possible = _used(usage, size, limits)
    delay = np.nan_to_num(usage.delay)
    sure, may = _throttled(usage, delay, limits, share[:, CORES], possible[:, CORES], vcpus)
    reads, writes = (_limited(time, usage, columns, share, possible, vcpus) for time, columns in (
        (usage.read_time, _OF_READS), (usage.write_time, _OF_WRITES)))
    # What is not sure is learnt from as if it were the neighbours': bounds hold nevertheless.
    learnt = dataclasses.replace(usage, throttled=sure, limited=reads.sure + writes.sure)
    most = dataclasses.replace(usage, throttled=np.where(limits.light, delay, may),
                               limited=reads.may + writes.may)
    waited = np.isfinite(usage.throttled) & (
        sure >= demand_estimator.THROTTLED * np.maximum(usage.running + sure, _LEAST))
    at_quota = waited | (~np.isfinite(usage.throttled) & (share[:, CORES] >= REACHED))
    each = np.zeros((len(delay), COUNT), dtype=np.bool_)
    each[:, CORES] = at_quota
    for one, columns in ((reads, _OF_READS), (writes, _OF_WRITES)):
        each[:, columns] |= one.reached
    reached = np.column_stack([at_quota, each[:, CORES + 1:].any(axis=1)])
    return OwnLimitShare(learnt, most, reached, each, _bounds(usage, size, limits))


def _used(usage: demand_estimator.Usage, size: FloatArray,
          limits: OwnLimits) -> tuple[FloatArray, FloatArray]:
    """Return what share of limits is used: of all, and of the smallest, (n, 7) each.

    Where bytes are limited and not counted, none of it is surely used, and all of it may be;
    so it is where limits are not known.
    """
    used = np.column_stack([
        usage.running, usage.reads, usage.writes, usage.reads + usage.writes,
        size[:, 0], size[:, 1], size[:, 0] + size[:, 1]])
    stated = np.isfinite(limits.total) | np.isfinite(limits.smallest)
    with np.errstate(invalid='ignore', divide='ignore'):
        share = np.where(stated, np.nan_to_num(used / limits.total, posinf=0.0), 0.0)
        possible = np.where(stated, np.where(np.isnan(used), 1.0, used / limits.smallest), 0.0)
    possible[limits.unknown, CORES + 1:] = 1.0
    return share, np.minimum(possible, 1.0)


def _throttled(usage: demand_estimator.Usage, delay: FloatArray, limits: OwnLimits,
               share: FloatArray,
               possible: FloatArray, vcpus: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the delay that quotas account for surely, and at most, (n,) each."""
    # A virtual CPU whose quota is used up waits for the rest of the period.
    quota = np.minimum(limits.total[:, CORES], vcpus)
    may = np.minimum(delay, possible * np.maximum(vcpus - quota, 0.0))
    reached = share >= REACHED
    counted = np.isfinite(usage.throttled)
    known = np.minimum(np.nan_to_num(usage.throttled), delay)
    return (np.where(counted, known, np.where(reached, delay, 0.0)),
            np.where(counted, known, np.where(reached, delay, may)))


@dataclasses.dataclass(frozen=True)
class _Limited:
    """Seconds that requests of one kind waited for limits: surely and at most, (n,) each.

    :param reached: (n, 4) which of their limits were reached
    """

    sure: FloatArray
    may: FloatArray
    reached: BoolArray


def _limited(time: FloatArray, usage: demand_estimator.Usage, columns: tuple[int, ...],
             share: FloatArray,
             possible: FloatArray, vcpus: FloatArray) -> _Limited:
    took = np.nan_to_num(time)
    both = np.nan_to_num(usage.read_time) + np.nan_to_num(usage.write_time)
    each = (share[:, columns] >= REACHED) & (took > 0)[:, None]
    reached = each.any(axis=1)
    # Share of the time of virtual CPUs that requests may have taken.
    waiting = np.minimum(both / np.maximum(vcpus, _LEAST), 1.0)
    part = np.minimum(possible[:, columns].max(axis=1) / np.maximum(waiting, _LEAST), 1.0)
    return _Limited(np.where(reached, took, 0.0), np.where(reached, took, part * took), each)


def _bounds(usage: demand_estimator.Usage, size: FloatArray,
            limits: OwnLimits) -> demand_estimator.Bounds:
    """Return what limits allow of requests as large as they were."""
    rates = (usage.reads, usage.writes, usage.reads + usage.writes)
    sizes = (size[:, 0], size[:, 1], size[:, 0] + size[:, 1])
    found = []
    for rate, amount, requests, volume in zip(
            rates, sizes, (READS, WRITES, REQUESTS), (READ_BYTES, WRITE_BYTES, BYTES)):
        with np.errstate(invalid='ignore', divide='ignore'):
            by_bytes = limits.total[:, volume] * (rate / amount)
        found.append(np.fmin(limits.total[:, requests],
                             np.where((rate > 0) & (amount > 0), by_bytes, np.inf)))
    return demand_estimator.Bounds(limits.total[:, CORES], *found)
