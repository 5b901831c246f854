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

"""Controllers of Scavenger (Javadi, PhD thesis 2019, section 5.3): state and value in, state out.

Each has a band μ ± cσ of a metric of the foreground, learnt over w samples, one a second. Memory,
network and block I/O are *reserved*: the foreground has μ + cσ, the background what is left.
Processor time is *adapted*: the background's quota grows while the foreground's metric stays
within its band and is cut when it falls out of it (AIMD).

The source leaves open, and here is stated:

* how little may count as a change. Where a metric hardly moves, σ is about 0 and any sample is a
  violation, so σ has a floor; the sensitivity study has none;
* how a sample between μ + cσ and μ + 2cσ changes the quota. It does not: the foreground is not
  worse off, but is not in the state either that its band was learnt in;
* samples that are not known. They change nothing, and a band needs half of its window known. A
  quota whose metric stays unknown for w samples falls to its minimum and learns again;
* how memory is released. Pausing alone releases nothing (the kernel can only swap it out), so
  where the groups do not fit, all are paused, or the least important are killed until the others
  fit. Where all fit after a violation, only the limit falls and none is stopped.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Iterable, Mapping, NamedTuple

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray


@dataclasses.dataclass(frozen=True)
class Setting:
    """How a band is learnt.

    :param factor: c, "std-factor"
    :param window: w, "window-size", samples; at least 2
    :param floor: least σ, in the unit of the metric
    """

    factor: float
    window: int
    floor: float = 0.0


#: As section 5.5.1 chooses them, but for c of the CPU quota, which is 1 there: noise alone would
#: keep the quota near its least. Floors are the caller's.
MEMORY, NETWORK, PROCESSOR = Setting(2.0, 60), Setting(2.0, 30), Setting(2.0, 15)


class Reserve(NamedTuple):
    """Reservations for n foregrounds, after some samples.

    :param recent: (up to w, n) latest samples, the oldest first
    :param mean: (n,) μ, NaN until the first band is learnt
    :param deviation: (n,) σ
    :param below: (n,) how many samples in a row were below the band
    :param violated: (n,) whether the latest sample was above the band
    :param relearnt: (n,) whether the band was learnt with the latest sample
    """

    recent: FloatArray
    mean: FloatArray
    deviation: FloatArray
    below: IntArray
    violated: np.ndarray
    relearnt: np.ndarray

    @classmethod
    def of(cls, count: int = 1) -> Reserve:
        """Return what is known before the first sample."""
        unknown, never = np.full(count, np.nan), np.zeros(count, dtype=bool)
        return cls(np.empty((0, count)), unknown, unknown, np.zeros(count, dtype=int), never,
                   never)

    def upper(self, setting: Setting) -> FloatArray:
        """Return μ + cσ, (n,), which is reserved; NaN while the band is being learnt."""
        return self.mean + setting.factor * self.deviation

    def left(self, capacity: float, setting: Setting) -> FloatArray:
        """Return what the background may have, (n,): nothing while the band is being learnt."""
        return np.nan_to_num(np.maximum(capacity - self.upper(setting), 0.0))


def reserve(state: Reserve, values: FloatArray, setting: Setting) -> Reserve:
    """Return the reservations after one more sample (sections 5.3.1 to 5.3.3).

    Above μ + cσ is a violation: μ becomes that sample, at once, σ stays. Below μ − cσ for w
    samples in a row is a change of phase: both are learnt again from the last w samples. In
    between nothing changes.

    :param values: (n,), NaN where unknown
    """
    recent = np.concatenate([state.recent, values[np.newaxis]])[-setting.window:]
    known = np.isfinite(values)
    violated = known & (values > state.upper(setting))
    low = known & (values < state.mean - setting.factor * state.deviation)
    below = np.where(known, np.where(low, state.below + 1, 0), state.below)
    mean, deviation = np.where(violated, values, state.mean), state.deviation
    relearnt = np.isnan(mean) | (below >= setting.window)
    if len(recent) < setting.window or not relearnt.any():
        return Reserve(recent, mean, deviation, below, violated, np.zeros_like(relearnt))
    found, spread = band(recent, setting.floor)
    relearnt &= np.isfinite(found)
    return Reserve(recent, np.where(relearnt, found, mean),
                   np.where(relearnt, spread, deviation), np.where(relearnt, 0, below), violated,
                   relearnt)


def band(recent: FloatArray, floor: float) -> tuple[FloatArray, FloatArray]:
    """Return μ and σ of samples (w, n), (n,) each; NaN where less than half of them are known.

    σ is that of a sample, divided by w − 1 (section 5.3.1).
    """
    known = np.isfinite(recent)
    count = known.sum(axis=0)
    count = np.where(count >= max(2.0, len(recent) / 2), count, np.nan)
    mean = np.where(known, recent, 0.0).sum(axis=0) / count
    squares = (np.where(known, recent - mean, 0.0)**2).sum(axis=0)
    return mean, np.maximum(np.sqrt(squares / (count - 1)), floor)


def replay(load: FloatArray, capacity: float,
           setting: Setting) -> tuple[IntArray, FloatArray]:
    """Reserve for n recorded loads; return violations and the mean share left, (n,) each.

    What is left is averaged over the samples after the first window, of each with the reservation
    that was in force when it came (the study of Fig. 5.4).

    :param load: (n, t), in the unit of ``capacity``
    """
    state = Reserve.of(len(load))
    violations, left = np.zeros(len(load), dtype=int), np.zeros(len(load))
    for values in load.T:
        left += state.left(capacity, setting)
        state = reserve(state, values, setting)
        violations += state.violated
    return violations, left / (capacity * max(load.shape[1] - setting.window, 1))


@dataclasses.dataclass(frozen=True)
class Aimd:
    """How a quota is adapted (section 5.5.1), cores.

    :param minimum: what it falls to when the phase changes
    :param increase: "quota-increase", added while the metric is within its band
    :param decrease: "quota-decrease", which it is divided by when the metric falls
    """

    minimum: float = 0.01
    increase: float = 0.1
    decrease: float = 2.0


class Quota(NamedTuple):
    """The background's CPU quota after some samples.

    :param cores: the quota
    :param recent: (up to w,) samples that the band is learnt from, empty once it is
    :param mean: μ, NaN while the band is being learnt
    :param deviation: σ
    :param unknown: how many samples in a row were unknown
    :param event: of the latest sample: "learning", "inside", "above", "below", "phase change" or
        "unknown"
    """

    cores: float
    recent: tuple[float, ...] = ()
    mean: float = math.nan
    deviation: float = math.nan
    unknown: int = 0
    event: str = 'learning'


def adapt(state: Quota, value: float, most: float, setting: Setting, rule: Aimd,
          held: bool = False) -> Quota:
    """Return the quota after one more sample (section 5.3.4).

    Beyond μ ± 2cσ the phase has changed: the quota falls to its minimum while the band is learnt
    again. Below μ − cσ it is divided, within the band it grows, above it stays.

    :param value: the foreground's metric, which falls when the foreground is harmed: instructions
        per cycle, or the share of the time wanted on cores that it had; NaN where unknown
    :param most: cores that there are for the background
    :param held: whether the quota must not grow, as while the background is paused
    """
    state = state._replace(cores=min(state.cores, max(most, rule.minimum)))
    missing = 0 if math.isfinite(value) else state.unknown + 1
    if missing >= setting.window:
        return Quota(rule.minimum, event='unknown', unknown=missing)
    if math.isnan(state.mean):
        recent = (*state.recent, value)
        if len(recent) < setting.window:
            return Quota(rule.minimum, recent, unknown=missing)
        found, spread = band(np.array(recent)[:, np.newaxis], setting.floor)
        if math.isnan(found[0]):
            return Quota(rule.minimum, recent[1:], unknown=missing)
        return Quota(rule.minimum, (), float(found[0]), float(spread[0]), missing)
    if missing:
        return state._replace(unknown=missing, event='unknown')
    away = (value - state.mean) / setting.factor
    if abs(away) > 2 * state.deviation:
        return Quota(rule.minimum, event='phase change')
    if away < -state.deviation:
        return state._replace(cores=max(state.cores / rule.decrease, rule.minimum), unknown=0,
                              event='below')
    if away > state.deviation:
        return state._replace(unknown=0, event='above')
    grown = state.cores if held else min(state.cores + rule.increase, max(most, rule.minimum))
    return state._replace(cores=grown, unknown=0, event='inside')


def memory_shares(uses: Mapping[str, int], budget: float,
                  kill: bool) -> tuple[dict[str, int], tuple[str, ...]]:
    """Divide memory among background groups (section 5.3.2); return limits and who is stopped.

    Those that go on get what they use and an equal part of the rest, so that no limit is below
    what a group uses. The groups that are stopped have no limit here.

    :param uses: bytes of each group that cannot be reclaimed, the most important first
    :param budget: bytes of all
    :param kill: whether stopping a group releases what it uses; otherwise it keeps it
    """
    running = list(uses)
    if sum(uses.values()) >= budget:
        while running and sum(uses[name] for name in running) >= budget:
            running.pop()
        running = running if kill else []
    rest = budget - sum(uses[name] for name in running)
    limits = {name: int(uses[name] + rest / len(running)) for name in running}
    return limits, tuple(name for name in uses if name not in limits)


def free_cores(online: frozenset[int], pinned: Iterable[frozenset[int]]) -> frozenset[int]:
    """Return the cores that no VM is pinned to (section 5.3.5).

    A VM that may run on all of them is not pinned; the quota is what guards it.

    :param pinned: cores that each VM may run on
    """
    return online.difference(*(cores for cores in pinned if not online <= cores))
