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

"""From samples of cumulative counters to rates between successive samples of one resource.

A rate is the difference of a counter over that of the host's own clock, which is read with it:
when a sample is polled, stored or scraped, and what the wall clock of its host shows, does not
matter. Where counters did not go on counting, which is after a restart of a VM or after it moved
to another host, the rate is *unknown*, not zero. A counter that has passed its old value by the
next sample gives a restart away no longer; the other counters of the VM do, as all belong to one
process, and the shorter the interval, the more surely.
"""

from __future__ import annotations

import dataclasses
import enum

import numpy as np
import numpy.typing as npt

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray

#: Ticks of the clock in a second.
CLOCK = 1e9
# Counters have 64 bits; at half of that and above stand "unknown" (-1) and negative numbers.
_LEAST_GARBAGE = 2.0**63


class IntervalStatus(enum.IntEnum):
    """What is known of an interval; rates are NaN for all but the first two."""

    #: The host's clock has measured it.
    CLOCKED = 0
    #: The resource has no clock, so the samples' times measure it, with an error that is stated.
    TIMED = 1
    #: A counter or the clock fell: the VM or its host was started again.
    RESET = 2
    #: Clock and times of the samples disagree: it is another host's clock.
    MIGRATED = 3
    #: So long that a restart in it might not show.
    GAP = 4
    #: So short, or timed so roughly, that a rate would be noise.
    VAGUE = 5


@dataclasses.dataclass(frozen=True)
class Rules:
    """What counts as an interval.

    The mean over a long gap is right if nothing was restarted meanwhile, which is the less certain
    the longer it is, and it is no sample of the same kind: it hides peaks. So a few missed polls
    are bridged, and what is longer is unknown.

    :param resolution: seconds that the time of a sample may be before or after it was taken: the
        width of buckets, or the interval of scrapes
    :param longest: seconds, of an interval with rates
    :param shortest: likewise
    :param disagreement: share of an interval by which the times of its samples may disagree with
        the clock beside their resolution; what is more is another host's clock, or a wall clock
        that was set
    :param vagueness: largest error, as a share, of an interval that only times of samples measure
    :param future: seconds after now that a sample may claim to be of
    """

    resolution: float = 1.0
    longest: float = 900.0
    shortest: float = 1.0
    disagreement: float = 0.1
    vagueness: float = 0.1
    future: float = 120.0


@dataclasses.dataclass(frozen=True)
class Intervals:
    """Rates of k counters in m intervals, each between two successive samples of a resource.

    They are sorted by resource, then by time.

    :param row: (m,) index of the resource
    :param start: (m,) seconds since the epoch, and ``end``, as the samples say
    :param elapsed_seconds: (m,) as the clock says, where there is one
    :param error: (m,) of ``elapsed_seconds``, as a share; 0 for the clock
    :param rates: (m, k) in the counter's unit a second; NaN is unknown
    :param outcome: (m,) :class:`IntervalStatus`
    :param refused: samples that claim to be of the future, or of no time
    :param garbage: values that no counter can have
    """

    row: IntArray
    start: FloatArray
    end: FloatArray
    elapsed_seconds: FloatArray
    error: FloatArray
    rates: FloatArray
    outcome: npt.NDArray[np.int8]
    refused: int
    garbage: int

    def __len__(self) -> int:
        return len(self.row)

    def known(self) -> BoolArray:
        """Say which intervals have rates, (m,); single ones may be NaN still."""
        return np.asarray(self.outcome <= IntervalStatus.TIMED)

    def count(self, outcome: IntervalStatus) -> int:
        """Return how many intervals ended so."""
        return int(np.count_nonzero(self.outcome == outcome))


def between(row: IntArray, at: FloatArray, values: FloatArray, clock: int | None,
            rules: Rules = Rules(), slack: npt.ArrayLike = 0.0,
            now: float | None = None) -> Intervals:
    """Return the intervals between m samples in any order, some of which may be there twice.

    :param row: (m,) index of the resource
    :param at: (m,) seconds since the epoch
    :param values: (m, k) counters; NaN where a sample has none
    :param clock: column of the host's clock, in :data:`CLOCK` ticks a second; None without
    :param slack: (k,) or one for all: by how much a counter may fall without having been started
        again, as a difference of two that are not read at the same instant may; it counts as 0
    :param now: seconds since the epoch; None lets any time pass
    """
    clean = np.where((values >= 0) & (values < _LEAST_GARBAGE), values, np.nan)
    garbage = int(np.count_nonzero(np.isnan(clean)) - np.count_nonzero(np.isnan(values)))
    in_time = np.isfinite(at)
    if now is not None:
        in_time &= at <= now + rules.future
    refused = int(len(at) - np.count_nonzero(in_time))
    if refused:
        row, at, clean = row[in_time], at[in_time], clean[in_time]
    row, at, clean = _merge_same_time(row, at, clean)
    if clock is not None:
        row, at, clean = _keep_clocked(row, at, clean, clock)
        row, at, clean = _merge_same_clock(row, at, clean, clock)
    first = np.flatnonzero(row[1:] == row[:-1])
    return _rates(row, at, clean, clock, first, rules, np.asarray(slack), refused, garbage)


def _rates(row: IntArray, at: FloatArray, values: FloatArray, clock: int | None, first: IntArray,
           rules: Rules, slack: npt.NDArray[np.float64], refused: int, garbage: int) -> Intervals:
    """Return the intervals from the samples ``first`` to those after them."""
    start, end = at[first], at[first + 1]
    change = values[first + 1] - values[first]
    reset = (change < -slack).any(axis=1)
    timed = end - start
    elapsed, error = timed.copy(), rules.resolution / timed
    if clock is not None:
        clocked = np.isfinite(change[:, clock])
        reset |= change[:, clock] < 0
        elapsed[clocked] = change[clocked, clock] / CLOCK
        error[clocked] = 0.0
        outcome = np.where(clocked, IntervalStatus.CLOCKED, IntervalStatus.TIMED).astype(np.int8)
        tolerance = rules.resolution + rules.disagreement * np.maximum(elapsed, timed)
        moved = np.abs(elapsed - timed) > tolerance
    else:
        outcome = np.full(len(first), IntervalStatus.TIMED, dtype=np.int8)
        moved = np.zeros(len(first), dtype=np.bool_)
    # The strongest reason is written last.
    outcome[(elapsed < rules.shortest) | (error > rules.vagueness)] = IntervalStatus.VAGUE
    outcome[elapsed > rules.longest] = IntervalStatus.GAP
    outcome[moved] = IntervalStatus.MIGRATED
    outcome[reset] = IntervalStatus.RESET
    known = outcome <= IntervalStatus.TIMED
    rates = np.maximum(change, 0.0, out=change)
    rates[~known] = np.nan
    rates /= np.where(known, elapsed, np.nan)[:, None]
    return Intervals(row[first], start, end, elapsed, error, rates, outcome, refused, garbage)


def _merge_same_time(row: IntArray, at: FloatArray, values: FloatArray
                     ) -> tuple[IntArray, FloatArray, FloatArray]:
    """Sort by resource and time, and make one sample of those of the same time.

    What one of them lacks another may have; of two values the later one is larger.
    """
    order = np.lexsort((at, row))
    row, at, values = row[order], at[order], values[order]
    starts = _run_starts((row[1:] != row[:-1]) | (at[1:] != at[:-1]), len(row))
    if len(starts) == len(row):
        return row, at, values
    return row[starts], at[starts], np.fmax.reduceat(values, starts, axis=0)


def _keep_clocked(row: IntArray, at: FloatArray, values: FloatArray, clock: int
                  ) -> tuple[IntArray, FloatArray, FloatArray]:
    """Drop the samples without the clock of those resources that have it in two others at least.

    The clock measures better across such a sample than times measure to it and from it.
    """
    has_clock = np.isfinite(values[:, clock])
    if has_clock.all() or not len(row):
        return row, at, values
    with_clock = np.bincount(row[has_clock], minlength=int(row.max()) + 1)
    keep = has_clock | (with_clock[row] < 2)
    return row[keep], at[keep], values[keep]


def _merge_same_clock(row: IntArray, at: FloatArray, values: FloatArray, clock: int
                      ) -> tuple[IntArray, FloatArray, FloatArray]:
    """Make one of the samples that the same reading of the host's clock belongs to.

    They are one poll that was stored or scraped again and again, and it was the first time that
    was nearest to it. While an exporter takes over the next poll, counter by counter, a scrape
    may catch old and new ones together, at either end of the run; so the values are those in the
    middle.
    """
    same, ahead = row[1:] == row[:-1], values[1:, clock] > values[:-1, clock]
    if (ahead | ~same).all():
        return row, at, values
    order = np.lexsort((at, values[:, clock], row))
    ticks, of = values[order, clock], row[order]
    # NaN is not equal to itself: samples without a clock stay apart.
    starts = _run_starts((of[1:] != of[:-1]) | (ticks[1:] != ticks[:-1]), len(row))
    lengths = np.diff(np.append(starts, len(row)))
    first, middle = order[starts], order[starts + lengths // 2]
    again = np.lexsort((at[first], row[first]))
    return row[first][again], at[first][again], values[middle][again]


def _run_starts(changes: BoolArray, count: int) -> IntArray:
    """Return where runs of equal entries start, of ``count`` entries."""
    if not count:
        return np.zeros(0, dtype=np.intp)
    return np.concatenate(([0], np.flatnonzero(changes) + 1))
