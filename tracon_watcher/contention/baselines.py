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

"""What each VM waits for without disturbance, learnt while it may be disturbed.

Hardly any VM of a cloud is ever seen alone. But neighbours come and go, and a low quantile of
what requests took within the window comes near to what they take alone; it is remembered beyond
the window, and forgotten slowly, since storage changes. A VM that is new has no such history, or
was disturbed all the time. What it starts from, its *prior*, are the other VMs on storage of the
same sort, of whose own baselines it takes the median. The more it has been seen itself the less
that counts, and it only ever lowers a baseline: requests that are faster than others' are small
ones, or hit a cache, and those that are slower may be either large or disturbed.

Of the delay for a core alone likewise, in multiples of what the calibration expects; one
at most.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher.contention import calibration as documents
from tracon_watcher.contention import demand_estimator
from tracon_watcher.contention import ring_buffer

Singles = npt.NDArray[np.float32]

#: Of the slots of a window, by which a baseline is judged.
QUANTILE = 0.1
#: Slots of its own that a VM needs to count as much as its prior.
PRIOR_WORTH = 4.0
#: Fewest VMs on storage of one sort that make a prior for others.
LEAST_VMS = 5
#: What is waited for: reads, writes, a core.
KINDS = 3
_DELAY = 2
# Relative standard error of latencies of a VM that was never seen; of measured programs that were
# always beside others it is 0.7 after one slot, 0.45 after four and 0.25 after twelve.
_UNSEEN = 0.9
# Fewest requests, and seconds of expected delay, in a slot that say anything.
_LEAST = np.array([5.0, 5.0, 0.05])
# Share of the time of requests that limits of own disks may account for in a slot that says
# anything of storage.
_LIMITED = 0.05


class Baselines:
    """Baselines of n VMs, (n, 3): seconds a read, a write, multiples of the expected delay.

    :param doubling: seconds in which a baseline doubles that was not reached again
    """

    def __init__(self, doubling: float) -> None:
        self._doubling = doubling
        self._own: Singles = np.full((0, KINDS), np.nan, dtype=np.float32)
        self._prior: Singles = np.full((0, KINDS), np.nan, dtype=np.float32)
        self._seen: Singles = np.zeros((0, KINDS), dtype=np.float32)
        self._pool: npt.NDArray[np.int32] = np.full(0, -1, dtype=np.int32)
        self._of_pool: dict[int, FloatArray] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of all VMs."""
        return self._own.nbytes + self._prior.nbytes + self._seen.nbytes + self._pool.nbytes

    def resize(self, count: int) -> None:
        """Have baselines for so many VMs; those of new ones are unknown."""
        self._own = ring_buffer.resized(self._own, count, np.nan)
        self._prior = ring_buffer.resized(self._prior, count, np.nan)
        self._seen = ring_buffer.resized(self._seen, count, 0.0)
        self._pool = ring_buffer.resized(self._pool, count, -1)

    def forget(self, rows: IntArray) -> None:
        """Know nothing of these VMs any more, as when they have moved to another host."""
        self._own[rows], self._prior[rows], self._seen[rows] = np.nan, np.nan, 0.0

    def restart(self, rows: IntArray) -> None:
        """Take what is known of these VMs, who now do something else, for no more than a prior."""
        known = np.isfinite(self._own[rows])
        known[:, _DELAY] = False
        old = self._own[rows]
        self._prior[rows] = np.where(known, old, self._prior[rows])
        self._own[rows] = np.where(known, np.float32(np.nan), old)
        self._seen[rows] = 0.0

    def update(self, rows: IntArray, sums: FloatArray, learnt: documents.Calibrated,
               worth: FloatArray, passed: FloatArray, pool: IntArray) -> None:
        """Learn from an interval each of m different VMs, and the window before it.

        :param sums: (m, slots, 9) usage, times the seconds that it lasted; the interval stands
            last, like a slot of its own
        :param worth: (m,) length of the interval, in slots
        :param passed: (m,) seconds since the last time
        :param pool: (m,) a number for the sort of storage, the same for VMs to be compared; -1
            where unknown
        """
        seen = demand_estimator.of_columns(sums.reshape(-1, sums.shape[2]))
        shape = (*sums.shape[:2], KINDS)
        asked = np.column_stack([seen.reads, seen.writes,
                                 demand_estimator.expected_delay(seen, learnt)])
        took = np.column_stack([seen.read_time, seen.write_time, seen.delay - seen.throttled])
        told = (asked >= _LEAST) & (took > 0)
        # What requests take at the limit of an own disk says nothing of the storage.
        limited = seen.limited > _LIMITED * (np.nan_to_num(seen.read_time)
                                             + np.nan_to_num(seen.write_time))
        told[limited, :_DELAY] = False
        pace = np.where(told, took / np.where(told, asked, 1.0), np.inf).reshape(shape)
        told = told.reshape(shape)
        low = ring_buffer.Weighted(np.moveaxis(pace, 1, 2),
                                   np.moveaxis(told, 1, 2).astype(np.float64)).quantile(QUANTILE)
        faded = self._own[rows] * np.exp2(passed / self._doubling)[:, None]
        self._own[rows] = np.fmin(low, faded)
        self._seen[rows] += told[:, -1] * worth[:, None]
        self._pool[rows] = pool

    def compare(self) -> None:
        """Learn again what VMs on storage of each sort have in common."""
        order = np.argsort(self._pool, kind='stable')
        pools, first = np.unique(self._pool[order], return_index=True)
        self._of_pool = {}
        for pool, members in zip(pools.tolist(), np.split(order, first[1:])):
            if pool >= 0:
                own = self._own[members].astype(np.float64)
                counts = np.isfinite(own).sum(axis=0)
                own[:, counts < LEAST_VMS] = np.nan
                self._of_pool[pool] = _medians(own)

    def of(self, rows: IntArray) -> demand_estimator.Baseline:
        """Return the baselines of these VMs."""
        own = self._own[rows].astype(np.float64)
        prior = self._prior[rows].astype(np.float64)
        common = np.full(prior.shape, np.nan)
        for pool in np.unique(self._pool[rows]).tolist():
            if pool in self._of_pool:
                common[self._pool[rows] == pool] = self._of_pool[pool]
        prior = np.where(np.isfinite(prior), prior, common)
        doubt = PRIOR_WORTH / (self._seen[rows] + PRIOR_WORTH)
        # Waiting for a core may be less than expected, but never more.
        prior[:, _DELAY], doubt[:, _DELAY] = 1.0, 1.0
        own[:, _DELAY] = np.fmin(own[:, _DELAY], 1.0)
        # Who was not seen at it yet has only a prior.
        own = np.where(np.isfinite(own), own, prior)
        found = own * (np.fmin(prior, own) / own) ** doubt
        return demand_estimator.Baseline(*found.T, *(_UNSEEN * doubt[:, :_DELAY]).T)


def _medians(values: FloatArray) -> FloatArray:
    """Return the medians of columns, NaN left out."""
    ordered = np.sort(values, axis=0)
    counts = np.isfinite(values).sum(axis=0)
    columns = np.arange(values.shape[1])
    middle = (ordered[np.maximum((counts - 1) // 2, 0), columns]
              + ordered[counts // 2, columns]) / 2
    found: FloatArray = np.where(counts > 0, middle, np.nan)
    return found
