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

"""Tracker of the profiles of VMs from one poll to the next."""

from __future__ import annotations

import dataclasses
from typing import Container, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tracon_watcher.characteristics import BoolArray, COUNT, FloatArray, IntArray
from tracon_watcher.contention import baselines
from tracon_watcher.contention import calibration as documents
from tracon_watcher.contention import demand_estimator
from tracon_watcher.contention import own_limits
from tracon_watcher.contention import ring_buffer

#: Standard deviations from which on a demand is another one.
FAR = 3.0
# Clocks of two readers may differ by some of a second.
_OVERLAP = 1.0
# Columns of a slot: seconds, then usage.
_COLUMNS = 1 + len(dataclasses.fields(demand_estimator.Usage))
# Share of its time that a VM uses a resource, below which it says nothing of how that stretches.
_LEAST_SHARE = 0.02
# Share by which two slowdowns differ that count as one.
_SAME = 0.1
# VMs that are worked on at a time, for their temporary arrays.
_CHUNK = 10_000


@dataclasses.dataclass(frozen=True)
class Profiles:
    """What is known of n VMs at one time; NaN is unknown.

    :param vms: their n names
    :param mean: (n, 4) uncontended demand, in the order of
        :data:`tracon_watcher.characteristics.NAMES`
    :param deviation: (n, 4) standard deviation of what is not known of it, in its unit
    :param present: (n, 4) what it demands at this moment: ``mean``, unless the last interval lies
        far from it. Whether it goes on like that is not known yet, so nothing is placed by it;
        it tells who disturbs whom now
    :param observed: (n, 4) what was seen last
    :param slowdown: (n,) that the counters show now, as the calibration has it
    :param slowdown_deviation: (n,) its relative standard error
    :param stretch: (n,) the signal that the slowdown was taken from
    :param baseline: (n, 3) seconds that a read and a write take undisturbed, and how CPU time
        stretches then: (running + delay) / running
    :param slots: (n,) slots of the window that it rests on
    :param at: (n,) seconds since the epoch: the end of the last interval
    :param seconds: (n,) how long that was, by which the slowdown is told
    :param reached: (n, 7) share of the window in which the VM was at each of its own limits, by
        the columns of :class:`.own_limits.OwnLimits`; older intervals count less
    :param at_limit: (n, 2) whether it was at its CPU quota, and at a limit of its disks, in the
        last interval
    :param unsure: (n,) whether it is not known how much of its waiting then was the owner's
    :param own_wait: (n,) share of time that it waits for its own limits when no neighbour delays
        it, since its demand last changed; older intervals count less
    :param storage_wait: (n,) part of its time alone that each virtual CPU waits for storage
    :param stretches: (n, 2) how many times as long as undisturbed CPU time, and requests, took in
        the last interval; NaN where there were too few, or where it is not known how much of the
        waiting was the owner's
    """

    vms: tuple[str, ...]
    mean: FloatArray
    deviation: FloatArray
    present: FloatArray
    observed: FloatArray
    slowdown: FloatArray
    slowdown_deviation: FloatArray
    stretch: FloatArray
    baseline: FloatArray
    slots: IntArray
    at: FloatArray
    seconds: FloatArray
    reached: FloatArray
    at_limit: BoolArray
    unsure: BoolArray
    own_wait: FloatArray
    storage_wait: FloatArray
    stretches: FloatArray

    @property
    def limited(self) -> BoolArray:
        """(n,) whether limits of their own hold VMs back now, or may."""
        return np.asarray(self.at_limit.any(axis=1) | self.unsure)


class ProfileTracker:
    """Learns profiles from intervals.

    :param learnt: what estimates rest on
    :param window: seconds that a profile looks back
    :param count: slots of the window
    :param expiry: seconds after the last interval at which nothing is known any more
    :param doubling: seconds in which a latency baseline doubles that was not reached again
    """

    def __init__(self, learnt: documents.Calibrated, window: float = 3600.0, count: int = 12,
                 expiry: float = 900.0, doubling: float = 86400.0) -> None:
        self._learnt = learnt
        self._expiry = expiry
        self._span = window
        self._rows: dict[str, int] = {}
        self._free: list[int] = []
        self._slots = ring_buffer.RingBuffer(count, window / count, _COLUMNS)
        self._baselines = baselines.Baselines(doubling)
        self._state = np.zeros(0, dtype=_STATE)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays; the names of VMs come on top."""
        return self._slots.nbytes + self._baselines.nbytes + self._state.nbytes

    def update(self, vms: Sequence[str], row: IntArray, start: FloatArray, end: FloatArray,
               usage: demand_estimator.Usage, vcpus: FloatArray | None = None,
               pools: IntArray | None = None, limits: own_limits.OwnLimits | None = None,
               size: FloatArray | None = None) -> int:
        """Learn from m intervals of n VMs, in any order.

        An interval that has a characteristic unknown, has no length, or begins before one ended
        that was learnt from, is passed over.

        :param row: (m,) index of each interval's VM
        :param start: (m,) seconds since the epoch, and ``end``
        :param usage: of the m intervals; ``throttled`` is NaN where it is not counted, and
            ``limited`` is not looked at
        :param vcpus: (n,) virtual CPUs of each VM, one by default
        :param pools: (n,) a number for the sort of storage each VM is on, the same for VMs whose
            latencies are to be compared; -1 where unknown, as by default
        :param limits: that the owners of the n VMs state, by default none
        :param size: (m, 2) bytes a second that were read and written, NaN where not counted, as by
            default
        :returns: how many intervals were learnt from
        """
        usable = np.flatnonzero(np.isfinite(usage.characteristics).all(axis=1) & (end > start))
        usable = usable[np.lexsort((end[usable], row[usable]))]
        concerned = np.unique(row[usable])
        place = np.zeros(len(vms), dtype=np.intp)
        place[concerned] = self._places([vms[index] for index in concerned])
        vcpus = np.ones(len(vms)) if vcpus is None else vcpus
        self._state['vcpus'][place[concerned]] = vcpus[concerned]
        pools = np.full(len(vms), -1) if pools is None else pools
        limits = own_limits.nothing(len(vms)) if limits is None else limits
        size = np.full((len(row), 2), np.nan) if size is None else size
        count = 0
        for turn in _turns(row[usable]):
            chosen = usable[turn]
            before = self._state['end'][place[row[chosen]]]
            chosen = chosen[(start[chosen] > before - _OVERLAP) & (end[chosen] > before)]
            count += len(chosen)
            own = row[chosen]
            self._learn(place[own], start[chosen], end[chosen], own_limits.attribute(
                usage.take(chosen), size[chosen], limits.take(own), vcpus[own]), pools[own])
        return count

    def retain(self, vms: Container[str]) -> None:
        """Drop all VMs but these."""
        self.forget([name for name in self._rows if name not in vms])

    def forget(self, vms: Iterable[str]) -> None:
        """Drop VMs that are gone; names that are not known are passed over."""
        gone = [self._rows.pop(name) for name in vms if name in self._rows]
        self._free += gone
        rows = np.array(gone, dtype=np.intp)
        self._state[rows] = np.zeros(1, dtype=_STATE)
        self._slots.clear(rows)
        self._baselines.forget(rows)

    def moved(self, vms: Iterable[str]) -> None:
        """Forget the baselines of VMs that are on another host now; what they demand stays."""
        rows = np.array([self._rows[name] for name in vms if name in self._rows], dtype=np.intp)
        seconds, usage, baseline = self._window(rows, self._state['end'][rows])
        found = demand_estimator.uncontended(
            usage, baseline, self._learnt, np.repeat(self._state['vcpus'][rows], seconds.shape[1]),
            self._bounds(rows, seconds.shape[1]))
        reads, writes, running, host = found.demand.T
        # As if it had never waited: what it did is told by the old baseline, and no new one.
        never = np.zeros_like(running)
        settled = demand_estimator.Usage(running, never, host, reads, writes, never, never, never,
                                         never)
        length = seconds.reshape(-1, 1)
        self._slots.replace(rows, np.hstack([length, length * settled.columns]).reshape(
            *seconds.shape, _COLUMNS))
        self._baselines.forget(rows)
        self._state['far'][rows] = 0

    def put_back(self, latest: float, tolerance: float = 0.0) -> None:
        """Take what was learnt for as much earlier as the clock was put back.

        :param latest: seconds since the epoch, which no interval has ended after
        :param tolerance: by which one may have, all the same
        """
        rows = np.fromiter(self._rows.values(), dtype=np.intp, count=len(self._rows))
        rows = rows[self._state['end'][rows] > latest + tolerance]
        if len(rows):
            seconds = float(self._state['end'][rows].max()) - latest
            self._state['end'][rows] -= seconds
            self._slots.put_back(rows, seconds)

    def profiles(self, now: float) -> Profiles:
        """Return what is known of all VMs.

        :param now: seconds since the epoch
        """
        rows = np.fromiter(self._rows.values(), dtype=np.intp, count=len(self._rows))
        mean, deviation = np.full((2, len(rows), COUNT), np.nan)
        used = np.zeros(len(rows), dtype=np.intp)
        for chunk in _chunks(len(rows)):
            level = self._level(rows[chunk], np.full(len(rows[chunk]), now))
            mean[chunk], deviation[chunk], used[chunk] = level.mean, level.unknown(), level.slots
        last = self._state[rows]
        signal = last['signal'].astype(np.float64)
        expired = ~(last['end'] >= now - self._expiry)
        mean[expired] = deviation[expired] = signal[expired] = np.nan
        seen = demand_estimator.of_columns(last['usage'].astype(np.float64)).characteristics
        rose, fell = (np.any(last['far'] * sign > 0, axis=1, keepdims=True) for sign in (1, -1))
        present = np.where(rose, seen, np.where(fell, last['most'].astype(np.float64), mean))
        present[expired] = np.nan
        return Profiles(tuple(self._rows), mean, deviation, present, seen, signal[:, 0],
                        signal[:, 1], signal[:, 2], last['baseline'].astype(np.float64), used,
                        last['end'], last['seconds'].astype(np.float64),
                        np.where(expired[:, None], np.nan, last['reached'].astype(np.float64)
                                 / np.maximum(last['watched'], 1e-9)[:, None]),
                        last['at_limit'] & ~expired[:, None], last['unsure'] & ~expired,
                        np.where(expired, np.nan, _own_wait(last)),
                        storage_wait(mean, last['baseline'].astype(np.float64),
                                     last['vcpus'].astype(np.float64)),
                        np.where((expired | last['unsure'])[:, None], np.nan, _stretches(last)))

    def _learn(self, rows: IntArray, start: FloatArray, end: FloatArray,
               told: own_limits.OwnLimitShare, pools: IntArray) -> None:
        """Learn from one interval each of different VMs."""
        seconds, usage = end - start, told.usage
        self._state['bounds'][rows] = told.bounds.columns
        values = np.column_stack([seconds, usage.columns * seconds[:, None]])
        for chunk in _chunks(len(rows)):
            own, at = rows[chunk], end[chunk]
            before = self._state['end'][own]
            sums = np.concatenate([self._slots.sums(own, at), values[chunk, None]], axis=1)
            self._baselines.update(own, sums[:, :, 1:], self._learnt,
                                   np.minimum(seconds[chunk] / self._slots.length, 1.0),
                                   np.where(before > 0, at - before, 0.0), pools[chunk])
        self._baselines.compare()
        for chunk in _chunks(len(rows)):
            self._judge(rows[chunk], end[chunk], told.take(chunk), values[chunk])

    def _judge(self, rows: IntArray, end: FloatArray, told: own_limits.OwnLimitShare,
               values: FloatArray) -> None:
        """See whether demands are other ones than before, and take the interval down."""
        last, usage = self._state[rows], told.usage
        baseline = self._baselines.of(rows)
        found = demand_estimator.uncontended(usage, baseline, self._learnt, last['vcpus'],
                                             told.bounds)
        signal, unsure = self._signal(found, told, baseline, last['vcpus'])
        far, changed, agreed = self._compare(rows, last, end, found, usage)
        self._baselines.restart(rows[changed])
        self._slots.clear(rows[changed])
        # What was far waits for the next interval, which now tells whether it counts.
        waited = last['far'].any(axis=1) & (agreed | ~changed)
        self._slots.add(rows[waited], last['end'][waited], np.column_stack(
            [last['seconds'], last['usage'] * last['seconds'][:, None]])[waited])
        far[changed] = 0
        known = ~far.any(axis=1)
        self._slots.add(rows[known], end[known], values[known])
        expected = baseline.self_delay * demand_estimator.expected_delay(usage, self._learnt)
        with np.errstate(invalid='ignore', divide='ignore'):
            stretch = 1 + np.fmin(expected, usage.delay) / usage.running
        fade = np.exp((last['end'] - end) / self._span)
        last['watched'] = fade * last['watched'] + values[:, 0]
        last['reached'] = fade[:, None] * last['reached'] + values[:, :1] * told.each
        last['at_limit'], last['unsure'] = told.reached, unsure
        self._learn_own_wait(last, told, found, changed, fade, values[:, 0])
        last['end'], last['seconds'] = end, values[:, 0]
        last['usage'], last['most'] = usage.columns, found.most
        last['far'] = far
        last['signal'] = signal
        last['baseline'] = np.column_stack(
            [baseline.read_latency, baseline.write_latency, stretch])
        self._state[rows] = last

    @staticmethod
    def _learn_own_wait(last: npt.NDArray[np.void], told: own_limits.OwnLimitShare,
                        found: demand_estimator.Estimate, changed: BoolArray, fade: FloatArray,
                        seconds: FloatArray) -> None:
        """Add an interval to what is known of waiting for own limits, in ``last``.

        :param changed: (m,) VMs whose demand has changed: what was learnt before is dropped
        :param fade: (m,) weight of what was learnt before
        :param seconds: (m,) length of the interval
        """
        # While neighbours keep a VM below its limit, its counters do not show how long it would
        # wait there without them.
        telling = told.reached.any(axis=1) | ~(found.slowdown > 1 + _SAME)
        kept = np.where(changed, 0.0, np.where(telling, fade, 1.0))
        took = np.where(telling, seconds, 0.0)
        last['done_for'] = kept * last['done_for'] + took
        last['own_waited'] = kept * last['own_waited'] + took * told.wait(
            last['vcpus'], found.closed)

    def _signal(self, found: demand_estimator.Estimate, told: own_limits.OwnLimitShare,
                baseline: demand_estimator.Baseline,
                vcpus: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return slowdown, deviation and stretch, (m, 3), and where it is not sure, (m,), how much
        of the waiting is the owners'.

        A slowdown is at least what remains when owners account for all that they may. Where that
        is next to nothing, and what they need not account for is not, it is unknown.
        """
        signal = np.column_stack([found.slowdown, found.slowdown_deviation, found.stretch])
        waits = told.reached[:, own_limits.DISK]
        asked = np.flatnonzero(~told.sure | waits)
        unsure = np.zeros(len(signal), dtype=np.bool_)
        if not len(asked):
            return signal, unsure
        told, baseline, vcpus = told.take(asked), baseline.take(asked), vcpus[asked]
        low = demand_estimator.uncontended(told.most, baseline, self._learnt, vcpus, told.bounds)
        # A program that would be at the limit without neighbours is not slowed down beyond that:
        # what it waits for others, it need not wait there. Another one of the same VM is.
        stretch = np.minimum.reduce([low.stretch, *told.bounds.room(told.usage)])
        slowdown = self._learnt.curve.estimate(stretch)
        apart = np.log(found.slowdown[asked]) - np.log(slowdown)
        unsure[asked] = ~(apart <= np.log1p(_SAME))
        unknown = unsure[asked] & ~(slowdown > 1 + _SAME)
        signal[asked] = np.where(unknown[:, None], np.nan, np.column_stack(
            [slowdown, np.maximum(low.slowdown_deviation, apart), stretch]))
        return signal, unsure

    def _bounds(self, rows: IntArray, width: int) -> demand_estimator.Bounds:
        """Return what owners allow m VMs, for each of so many slots, (m × width)."""
        return demand_estimator.bounds_of_columns(
            np.repeat(self._state['bounds'][rows].astype(np.float64), width, axis=0))

    def _compare(self, rows: IntArray, last: npt.NDArray[np.void], end: FloatArray,
                 found: demand_estimator.Estimate, usage: demand_estimator.Usage,
                 ) -> tuple[npt.NDArray[np.int8], BoolArray, BoolArray]:
        """Return where demands lie far above (1) or below (−1) the window, (m, 4); which VMs do
        something else for the second time, (m,); and whether the first time agrees, (m,).
        """
        level = self._level(rows, end)
        distance, seen = FAR * level.scatter() + ring_buffer.LEAST, usage.characteristics
        below = FAR * np.hypot(level.scatter(), found.deviation * found.most) + ring_buffer.LEAST
        far = ((seen > level.mean + distance).astype(np.int8)
               - (found.most < level.mean - below).astype(np.int8))
        again = (far != 0) & (far == last['far'])
        now = np.where(far > 0, seen, found.most)
        before = np.where(far > 0, demand_estimator.of_columns(last['usage']).characteristics,
                          last['most'])
        agrees = np.abs(now - before) <= np.abs(now - level.mean) / 2
        return far, again.any(axis=1), (agrees | ~again).all(axis=1)

    def _level(self, rows: IntArray, at: FloatArray) -> ring_buffer.WindowEstimate:
        """Return what the windows of these VMs say."""
        seconds, usage, baseline = self._window(rows, at)
        return ring_buffer.window_estimate(seconds, usage, baseline, self._learnt,
                                           self._state['vcpus'][rows],
                                           self._bounds(rows, seconds.shape[1]))

    def _window(self, rows: IntArray, at: FloatArray,
                ) -> tuple[FloatArray, demand_estimator.Usage, demand_estimator.Baseline]:
        """Return the windows of m VMs, of s slots each: seconds that were seen, (m, s), and usage
        and baseline of the m × s slots.
        """
        sums = self._slots.sums(rows, at)
        seconds = sums[:, :, 0]
        rates = sums[:, :, 1:] / np.where(seconds > 0, seconds, 1.0)[:, :, None]
        return (seconds, demand_estimator.of_columns(rates.reshape(-1, _COLUMNS - 1)),
                self._baselines.of(rows).take(np.repeat(np.arange(len(rows)), seconds.shape[1])))

    def _places(self, names: Sequence[str]) -> list[int]:
        """Return the rows of VMs, new ones for those that are not known."""
        found = []
        for name in names:
            row = self._rows.get(name)
            if row is None:
                row = self._free.pop() if self._free else len(self._rows)
                self._rows[name] = row
            found.append(row)
        if len(self._rows) > len(self._state):
            count = max(2 * len(self._state), len(self._rows))
            self._slots.resize(count)
            self._baselines.resize(count)
            self._state = ring_buffer.resized(self._state, count, 0)
        return found


def storage_wait(mean: FloatArray, baseline: FloatArray, vcpus: FloatArray) -> FloatArray:
    """Return the part of its time alone that each virtual CPU waits for storage, (n,).

    :param mean: (n, 4) uncontended demand
    :param baseline: (n, 2 or more) seconds that a read and a write take undisturbed; NaN where
        unknown
    :returns: NaN where unknown
    """
    # A VM that does not use storage does not wait for it, however long a request takes.
    waited = np.where(mean[:, :2] == 0, 0.0, mean[:, :2] * baseline[:, :2]).sum(axis=1)
    found: FloatArray = np.clip(waited / np.maximum(vcpus, 1.0), 0.0, 1.0)
    return found


# Of each VM: its size, and the last interval: when it ended and how long it was, what was counted,
# what is demanded at most, and where that was far from the window; slowdown, its deviation and
# stretch; the baseline that it was judged by. What its owner allows; seconds that were watched,
# and of these at each own limit; whether the last interval was at one, and whether that is
# unsure. Seconds since its demand changed, and how many of these it waited for its own limits.
_STATE = np.dtype([
    ('end', np.float64), ('vcpus', np.float32), ('seconds', np.float32),
    ('usage', np.float32, _COLUMNS - 1), ('most', np.float32, COUNT), ('far', np.int8, COUNT),
    ('signal', np.float32, 3), ('baseline', np.float32, 3), ('bounds', np.float32, 4),
    ('watched', np.float32), ('reached', np.float32, own_limits.COUNT),
    ('at_limit', np.bool_, 2), ('unsure', np.bool_), ('done_for', np.float32),
    ('own_waited', np.float32)])


def _stretches(last: npt.NDArray[np.void]) -> FloatArray:
    usage = demand_estimator.of_columns(last['usage'].astype(np.float64))
    read_latency, write_latency, ready = last['baseline'].astype(np.float64).T
    with np.errstate(invalid='ignore', divide='ignore'):
        running = np.where(usage.running >= _LEAST_SHARE * last['vcpus'], usage.running, np.nan)
        cores = (1 + (usage.delay - usage.throttled) / running) / ready
        alone = (np.where(usage.reads > 0, usage.reads * read_latency, 0.0)
                 + np.where(usage.writes > 0, usage.writes * write_latency, 0.0))
        disk = (usage.read_time + usage.write_time - usage.limited) / np.where(
            alone >= _LEAST_SHARE * last['vcpus'], alone, np.nan)
    found: FloatArray = np.maximum(np.column_stack([cores, disk]), 1.0)
    return found


def _own_wait(last: npt.NDArray[np.void]) -> FloatArray:
    share = last['own_waited'].astype(np.float64) / np.maximum(last['done_for'], 1e-9)
    return np.where(share < own_limits.LEAST_WAIT, 0.0, share)


def _turns(row: IntArray) -> Iterator[IntArray]:
    """Yield indices of the first of each VM, then of the second, of rows that are sorted."""
    if not len(row):
        return
    begins = np.flatnonzero(np.concatenate(([True], row[1:] != row[:-1])))
    turn = np.arange(len(row)) - np.repeat(begins, np.diff(np.append(begins, len(row))))
    for number in range(int(turn.max()) + 1):
        yield np.flatnonzero(turn == number)


def _chunks(count: int) -> Iterator[slice]:
    for first in range(0, count, _CHUNK):
        yield slice(first, first + _CHUNK)
