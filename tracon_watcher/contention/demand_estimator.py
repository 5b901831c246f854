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

"""Estimator of demand without contention, from the counters of a VM under contention."""

from __future__ import annotations

import dataclasses

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.contention import calibration as documents

_TINY = 1e-9
# A VM that is idle but for this share of its time is too idle for a slowdown.
_LEAST_BUSY = 0.01
#: Share of the time that a VM runs, or would but for its quota, from which on the quota counts as
#: what holds it back.
THROTTLED = 0.05
#: c where it is asked whether a VM would be at its own limit without its neighbours. With idle
#: time left it may not be, and then what it suffers is not put down to its owner.
OWN_SLACK = 0.15


@dataclasses.dataclass(frozen=True)
class Usage:
    """What is counted of n VMs over an interval each, per second; NaN where it is not.

    :param running: (n,) seconds that virtual CPUs ran, summed over them
    :param delay: (n,) seconds that they were ready and waited for a core
    :param host: (n,) seconds of CPU that the host spent on the VM's behalf
    :param reads: (n,) requests, and ``writes``
    :param read_time: (n,) seconds that requests took, summed over them, and ``write_time``
    :param throttled: (n,) seconds of ``delay`` in which the VM's own quota was used up
    :param limited: (n,) seconds of ``read_time`` and ``write_time`` that are put down to limits of
        the VM's own disks
    """

    running: FloatArray
    delay: FloatArray
    host: FloatArray
    reads: FloatArray
    writes: FloatArray
    read_time: FloatArray
    write_time: FloatArray
    throttled: FloatArray
    limited: FloatArray

    def __len__(self) -> int:
        return len(self.running)

    def take(self, index: BoolArray | IntArray | slice) -> Usage:
        """Return the VMs that ``index`` selects."""
        return Usage(*(getattr(self, field.name)[index] for field in dataclasses.fields(self)))

    @property
    def columns(self) -> FloatArray:
        """(n, 9) everything, in the order above."""
        return np.column_stack([getattr(self, field.name) for field in dataclasses.fields(self)])

    @property
    def characteristics(self) -> FloatArray:
        """(n, 4) as seen, in the order of :data:`tracon_watcher.characteristics.NAMES`."""
        return np.column_stack([self.reads, self.writes, self.running, self.host])

    @property
    def read_latency(self) -> FloatArray:
        """(n,) seconds a request; NaN without requests."""
        return _over(self.read_time, self.reads)

    @property
    def write_latency(self) -> FloatArray:
        """(n,) seconds a request; NaN without requests."""
        return _over(self.write_time, self.writes)


def of_columns(columns: FloatArray, unit: float = 1.0) -> Usage:
    """Return the usage of (n, 9) columns, which stand in the order of :class:`Usage`.

    Of (n, 7) columns there is no time that own limits account for.

    :param unit: seconds that times count in: 1e-9 for rates of counters in nanoseconds
    """
    running, delay, host, reads, writes, read_time, write_time, *own = columns.T
    throttled, limited = own if own else np.zeros((2, len(columns)))
    return Usage(unit * running, unit * delay, unit * host, reads, writes, unit * read_time,
                 unit * write_time, unit * throttled, unit * limited)


@dataclasses.dataclass(frozen=True)
class Baseline:
    """How long n VMs wait though no other disturbs them.

    :param read_latency: (n,) seconds a request, and ``write_latency``; NaN where unknown, which
        is taken for as long as it takes now
    :param self_delay: (n,) waiting for a core, in multiples of what the calibration expects
    :param read_deviation: (n,) relative standard error of the latency, and ``write_deviation``
    """

    read_latency: FloatArray
    write_latency: FloatArray
    self_delay: FloatArray
    read_deviation: FloatArray
    write_deviation: FloatArray

    def take(self, index: BoolArray | IntArray) -> Baseline:
        """Return the VMs that ``index`` selects."""
        return Baseline(*(getattr(self, field.name)[index]
                          for field in dataclasses.fields(self)))


def undisturbed(count: int) -> Baseline:
    """Return the baseline of so many VMs of which nothing is known but what they do now."""
    unknown, nothing = np.full(count, np.nan), np.zeros(count)
    return Baseline(unknown, unknown, np.ones(count), nothing, nothing)


@dataclasses.dataclass(frozen=True)
class Bounds:
    """What owners of n VMs allow at most, per second; infinite where nothing is stated.

    :param cores: (n,) by CPU quotas
    :param reads: (n,) requests, by limits of disks, ``writes``, and both together, ``requests``
    """

    cores: FloatArray
    reads: FloatArray
    writes: FloatArray
    requests: FloatArray

    def take(self, index: BoolArray | IntArray | slice) -> Bounds:
        """Return the VMs that ``index`` selects."""
        return Bounds(*(getattr(self, field.name)[index] for field in dataclasses.fields(self)))

    @property
    def columns(self) -> FloatArray:
        """(n, 4) everything, in the order above."""
        return np.column_stack([self.cores, self.reads, self.writes, self.requests])

    def room(self, seen: Usage) -> tuple[FloatArray, FloatArray]:
        """Return how many times as much CPU time, and as many requests, may be had, (n,) each.

        Never less than once: what is seen is possible.
        """
        with np.errstate(invalid='ignore', divide='ignore'):
            cores = np.where(seen.running > 0, self.cores / seen.running, np.inf)
            requests = np.fmin.reduce([
                np.where(rate > 0, bound / rate, np.inf) for bound, rate in (
                    (self.reads, seen.reads), (self.writes, seen.writes),
                    (self.requests, seen.reads + seen.writes))])
        return np.maximum(cores, 1.0), np.maximum(requests, 1.0)


def bounds_of_columns(columns: FloatArray) -> Bounds:
    """Return the bounds of (n, 4) columns, which stand in the order of :class:`Bounds`."""
    return Bounds(*columns.T)


def unbounded(count: int) -> Bounds:
    """Return the bounds of so many VMs whose owners state nothing."""
    return bounds_of_columns(np.full((count, 4), np.inf))


@dataclasses.dataclass(frozen=True)
class Time:
    """How n VMs spend the time of their virtual CPUs, in shares of it; NaN where not counted.

    :param lost_share: (n,) e, lost to others
    :param idle: (n,) I
    :param throttled: (n,) T, forbidden by quotas
    :param limited: (n,) L, waiting at the limits of own disks
    :param doubt: (n,) standard error of e that comes from that of latencies alone
    """

    lost_share: FloatArray
    idle: FloatArray
    throttled: FloatArray
    limited: FloatArray
    doubt: FloatArray


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What n VMs would do undisturbed, and how much they are disturbed.

    :param demand: (n, 4) never less than what is seen; NaN where that is unknown
    :param most: (n, 4) what it would be at most, as a closed loop
    :param deviation: (n, 4) relative standard error of the demand
    :param stretch: (n,) τ; NaN where waiting was not counted, and of VMs that hardly do anything
    :param slowdown: (n,) what the calibration makes of it
    :param slowdown_deviation: (n,) its relative standard error
    :param growth: (n,) f, how much more a closed loop would do; 1 where unknown
    :param closed: (n,) φ by :data:`OWN_SLACK`, 1 for a closed loop, towards 0 the more idle time
        there is
    :param lost_share: (n,) e, share of the time of its virtual CPUs that its owner leaves it
    """

    demand: FloatArray
    most: FloatArray
    deviation: FloatArray
    stretch: FloatArray
    slowdown: FloatArray
    slowdown_deviation: FloatArray
    growth: FloatArray
    closed: FloatArray
    lost_share: FloatArray


def uncontended(seen: Usage, baseline: Baseline, learnt: documents.Calibrated,
                vcpus: FloatArray | float = 1.0, bounds: Bounds | None = None) -> Estimate:
    """Return the uncontended demand of n VMs, each over an interval of its own.

    Of a VM whose waiting is not counted the demand is what is seen, which it is at least, with a
    deviation as large; its slowdown is unknown.

    :param vcpus: (n,) or one for all
    :param bounds: what owners allow; by default anything
    """
    time = spent(seen, baseline, learnt, vcpus)
    allowed = np.maximum(1 - time.throttled - time.limited, _TINY)
    lost_share, idle, doubt = (part / allowed for part in (time.lost_share, time.idle, time.doubt))
    cores, requests = (unbounded(len(seen)) if bounds is None else bounds).room(seen)
    needed = np.maximum(1 - idle - lost_share, _TINY)
    stretch = np.where((1 - idle) * allowed >= _LEAST_BUSY, (needed + lost_share) / needed, np.nan)
    counted = np.isfinite(lost_share)
    spare = idle + time.limited / allowed
    power = np.where(counted, closedness(lost_share, spare, learnt.slack), 0.0)
    closed = np.where(counted, closedness(lost_share, spare, OWN_SLACK), 0.0)
    # What is forbidden to a closed loop it does not lose to others, be it at its quota or below.
    held = seen.throttled >= THROTTLED * (seen.running + seen.throttled)
    part = np.where(np.isfinite(cores), np.where(held, 1.0, closed), 0.0)
    stretch = np.minimum(stretch, stretch ** (1 - part) * np.where(
        np.isfinite(cores), cores, 1.0) ** part)
    # There is no more time than there is, however the difference was rounded.
    room = np.maximum(vcpus, seen.running) / np.maximum(seen.running, _TINY)
    growth = np.where(counted, np.minimum.reduce(
        (1 / np.maximum(1 - lost_share, _TINY), cores, room)), 1.0)
    # A loop without idle time left has f = τ, hence the curve of τ.
    by_units = np.minimum(learnt.curve.estimate(growth), requests)
    demand, most = (_scaled(seen, growth ** each, by_units ** each, learnt)
                    for each in (power, 1.0))
    deviation = np.hypot(learnt.demand_width(growth),
                         np.nan_to_num(power * doubt * growth)[:, None])
    deviation[~counted] = 1.0
    slowdown = learnt.curve.estimate(stretch)
    return Estimate(demand, most, deviation, stretch, slowdown,
                    np.hypot(learnt.slowdown_width(slowdown), doubt / needed), growth, closed,
                    lost_share)


def _scaled(seen: Usage, by_time: FloatArray, by_units: FloatArray,
            learnt: documents.Calibrated) -> FloatArray:
    """Return (n, 4) characteristics if CPU time, and units of work, grew by such factors, (n,)."""
    standing = np.minimum(seen.host, learnt.standing_host_cpu)
    return np.column_stack([seen.reads * by_units, seen.writes * by_units,
                            seen.running * by_time,
                            standing + (seen.host - standing) * by_units])


def spent(seen: Usage, baseline: Baseline, learnt: documents.Calibrated,
          vcpus: FloatArray | float = 1.0) -> Time:
    """Return how the time is spent.

    NaN where running, delay or the time of requests that there were is not counted.
    """
    # More than all of the time is a matter of rounding, or of a VM that was resized.
    budget = np.maximum(vcpus, seen.running)
    running = seen.running / budget
    ready = np.minimum(seen.delay / budget, 1 - running)
    throttled = np.minimum(seen.throttled / budget, ready)
    delay = ready - throttled
    expected = np.minimum(delay, baseline.self_delay * expected_delay(seen, learnt) / budget)
    left = np.maximum(1 - running - ready, 0.0)
    requests = _time(seen.reads, seen.read_time) + _time(seen.writes, seen.write_time)
    reads = _alone(seen.reads, seen.read_time, baseline.read_latency)
    writes = _alone(seen.writes, seen.write_time, baseline.write_latency)
    # Requests overlap with each other and with running; at most the time that is left is theirs.
    waiting = np.minimum(requests / budget, left)
    some = np.where(requests > 0, requests, 1.0)
    limited = waiting * np.minimum(seen.limited / some, 1.0)
    share = (waiting - limited) / some
    lost_share = np.maximum(delay - expected + waiting - limited - share * (reads + writes), 0.0)
    doubt = share * (np.where(reads > 0, reads * baseline.read_deviation, 0.0)
                     + np.where(writes > 0, writes * baseline.write_deviation, 0.0))
    return Time(lost_share, left - waiting, throttled, limited, doubt)


def expected_delay(seen: Usage, learnt: documents.Calibrated) -> FloatArray:
    """Return the seconds a second, (n,), that VMs wait for a core behind their own host threads.

    These do the VM's I/O on the same cores. A host that keeps them elsewhere has less of it.
    """
    expected: FloatArray = (learnt.self_delay[0] * seen.running
                            + learnt.self_delay[1] * seen.host)
    return expected


def closedness(lost_share: FloatArray, idle: FloatArray, slack: float) -> FloatArray:
    """Return φ, (n,): 1 for a loop without idle time left, towards 0 the more there is of it."""
    found: FloatArray = np.exp(-idle / np.maximum(idle + lost_share, _TINY) / slack)
    return found


def _time(requests: FloatArray, seconds: FloatArray) -> FloatArray:
    return np.where(requests == 0, 0.0, seconds)


def _alone(requests: FloatArray, seconds: FloatArray, latency: FloatArray) -> FloatArray:
    """Return the seconds that the requests would take alone, never more than they do take."""
    return np.where(requests == 0, 0.0, np.fmin(seconds, requests * latency))


def _over(seconds: FloatArray, requests: FloatArray) -> FloatArray:
    with np.errstate(invalid='ignore', divide='ignore'):
        latency: FloatArray = np.where(requests > 0, seconds / requests, np.nan)
    return latency
