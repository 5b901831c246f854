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

"""TRACON's Fig. 7 again: a model follows its host to other storage, point by point.

A model is fitted on one host type. Then come points of the same that it has not seen, and after
them points of another host type, as if the disk had moved. Three policies answer: nothing; the
paper's (its rule for drift, then a fit every 160 new points, which replace old ones); ours (every
few points, the model that suits the last ones best, and the Page–Hinkley test).
"""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np
import sklearn.base

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray
from tracon_watcher import errors
from tracon_watcher.models import adaptation
from tracon_watcher.models import drift
from tracon_watcher.models import fit
from tracon_watcher.models import pairwise
from tracon_watcher.models import points as measured
from tracon_watcher.models import validation

NOTHING, PAPER, OURS = 'no adaptation', 'as in TRACON', 'ours'
REFIT_EVERY = 160
STEP = 5
_BEFORE = 0.3
# In steps since the first change.
_OCCASIONS = (2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
MINUTES_OF_A_WEEK = 7 * 24 * 60
#: Points that tell whether another model is better; fewer do after an alarm.
RECENT, ALARMED = 40, 20
#: Share of the present model's error that another one's must not exceed to take its place.
CONVINCING = 0.7
#: In which false alarms are counted.
WEEKS = 4


@dataclasses.dataclass(frozen=True)
class Replay:
    """What became of the errors.

    :param before: how many points came before the move
    :param errors: by policy, |predicted − actual| / actual of each point with the model of its
        moment, (n,)
    :param alarms: by policy, the points at which drift was noticed
    :param changes: by policy, the points at which another model was taken
    :param settled: mean error on the new host type of models fitted to its own points, on
        backgrounds kept out of them
    :param false_alarms: by policy, alarms in :data:`WEEKS` weeks of unchanged telemetry, which is
        simulated
    """

    before: int
    errors: dict[str, FloatArray]
    alarms: dict[str, list[int]]
    changes: dict[str, list[int]]
    settled: float
    false_alarms: dict[str, int]


class Policy(Protocol):
    """Decides after each point which model is used next."""

    model: pairwise.PairwiseRegressor
    alarms: list[int]
    changes: list[int]

    def take(self, place: int, column: FloatArray, exponent: float) -> None:
        """Learn of one point."""


class Nothing:
    """The model of the first day, for ever."""

    def __init__(self, model: pairwise.PairwiseRegressor) -> None:
        self.model = model
        self.alarms: list[int] = []
        self.changes: list[int] = []

    def take(self, place: int, column: FloatArray, exponent: float) -> None:
        """Learn nothing."""


class _Watching:
    """What both adaptive policies have: a detector of errors, and the points since its alarm."""

    def __init__(self, model: pairwise.PairwiseRegressor, watch: drift.Watch) -> None:
        self.model = model
        self.alarms: list[int] = []
        self.changes: list[int] = []
        self._watch = watch
        self._columns: list[FloatArray] = []
        self._exponents: list[float] = []

    def _drifting(self, column: FloatArray, exponent: float) -> bool:
        return self._watch.update(exponent - float(self.model.predict(column[None])[0]))

    @property
    def _recent(self) -> tuple[FloatArray, FloatArray]:
        return np.array(self._columns), np.array(self._exponents)


class Paper(_Watching):
    """Refits when 160 new points have come since the alarm, and again every 160."""

    def __init__(self, model: pairwise.PairwiseRegressor, X: FloatArray, y: FloatArray,
                 residuals: FloatArray) -> None:
        super().__init__(model, drift.paper(residuals))
        self._old = (X, y)

    def take(self, place: int, column: FloatArray, exponent: float) -> None:
        """Learn of one point."""
        if self._drifting(column, exponent) and not self.alarms:
            self.alarms.append(place)
        if not self.alarms:
            return
        self._columns.append(column)
        self._exponents.append(exponent)
        if len(self._exponents) % REFIT_EVERY == 0:
            X, y = self._recent
            kept = max(len(self._old[1]) - len(y), 0)       # the newest of the old stay
            self.changes.append(place)
            self.model = sklearn.base.clone(self.model).fit(
                np.vstack([self._old[0][len(self._old[1]) - kept:], X]),
                np.concatenate([self._old[1][len(self._old[1]) - kept:], y]))


class Ours(_Watching):
    """Asks of the last points, every few of them, whether another model suits them far better.

    That is as soon as so few points can tell. The detector's alarm, which needs more to be sure,
    is for people; it has the question asked of fewer points. From the first change on all points
    since then count, and are looked at ever more seldom.
    """

    def __init__(self, model: pairwise.PairwiseRegressor, residuals: FloatArray) -> None:
        super().__init__(model, drift.ours(residuals))
        self._first = model
        self._steps = 0         # since the change; 0 while there was none

    def take(self, place: int, column: FloatArray, exponent: float) -> None:
        """Learn of one point."""
        if self._drifting(column, exponent):
            self.alarms.append(place)
        self._columns.append(column)
        self._exponents.append(exponent)
        count = len(self._exponents)
        if not self._steps and count > RECENT:
            del self._columns[0], self._exponents[0]
            count = RECENT
        if (place + 1) % STEP or count < (ALARMED if self.alarms else RECENT):
            return
        if self._steps:
            self._steps += 1
            if self._steps not in _OCCASIONS:
                return
        found = adaptation.adapt(self._first, *self._recent)
        if self._steps or found.errors[found.how] < CONVINCING * found.errors[adaptation.KEPT]:
            self.model = found.model
            self.changes.append(place)
            self._steps = max(self._steps, 1)


def replay(old: measured.Points, new: measured.Points, response: str, seed: int) -> Replay:
    """Replay the move from one host type to another.

    :raises tracon_watcher.errors.NotEnoughData: for fewer new points than two refits of the paper
    """
    known, coming = (points.defined(response, measured.FITTED) for points in (old, new))
    if len(coming) < 2 * REFIT_EVERY:
        raise errors.NotEnoughData('a replay of adaptation', len(coming), 2 * REFIT_EVERY)
    rng = np.random.default_rng(seed)
    # A window gives both its directions; they share its noise, so they stay together.
    windows = _shuffled(_windows(known), rng)
    unseen = windows < _BEFORE * (windows.max() + 1)
    still, fitted = known.take(unseen), known.take(~unseen)
    still = still.take(rng.permutation(len(still)))
    coming = coming.take(np.lexsort((np.arange(len(coming)), _shuffled(_windows(coming), rng))))
    # On the first day nobody knows what the new storage can do.
    model = fit.regressor(fitted, response, measured.capacity(fitted))
    X, y = measured.design(fitted), fitted.exponent(response)
    residuals = y - validation.by_background(fitted, response, fit.factory_like(model))
    residuals = residuals[np.isfinite(residuals)]
    policies: dict[str, Policy] = {
        NOTHING: Nothing(model), PAPER: Paper(model, X, y, residuals),
        OURS: Ours(model, residuals)}
    stream = measured.join([still, dataclasses.replace(coming, host_type=still.host_type)])
    wrong = {name: _errors(policy, stream, response) for name, policy in policies.items()}
    return Replay(len(still), wrong, {name: policy.alarms for name, policy in policies.items()},
                  {name: policy.changes for name, policy in policies.items()},
                  _settled(coming, response), false_alarms(residuals, WEEKS, seed))


def _windows(points: measured.Points) -> IntArray:
    """Return a number for each point, (n,), which both directions of a window share."""
    names = np.sort(np.column_stack([points.target, points.background]), axis=1)
    found: IntArray = np.unique(np.char.add(np.char.add(names[:, 0], '|'), names[:, 1]),
                                return_inverse=True)[1].astype(np.intp)
    return found


def _shuffled(windows: IntArray, rng: np.random.Generator) -> IntArray:
    order: IntArray = rng.permutation(int(windows.max(initial=0)) + 1)[windows]
    return order


def _errors(policy: Policy, stream: measured.Points, response: str) -> FloatArray:
    columns, exponents = measured.design(stream), stream.exponent(response)
    actual = stream.response(response)
    found = np.empty(len(stream))
    for place, (column, exponent) in enumerate(zip(columns, exponents)):
        predicted = measured.from_exponent(policy.model.predict(column[None]), response)[0]
        found[place] = abs(predicted - actual[place]) / actual[place]
        policy.take(place, column, float(exponent))
    return found


def _settled(coming: measured.Points, response: str) -> float:
    capacity = measured.capacity(coming)
    factory = fit.factory_like(fit.regressor(coming, response, capacity))
    predicted = measured.from_exponent(
        validation.by_background(coming, response, factory), response)
    known = np.isfinite(predicted)
    return validation.Errors.of(predicted[known], coming.response(response)[known]).mean


def false_alarms(residuals: FloatArray, weeks: int, seed: int) -> dict[str, int]:
    """Count alarms in weeks of unchanged telemetry, an error a minute. The errors are simulated.

    They are drawn from the model's own; every other one repeats the one before, since the
    machine's moods last for minutes.

    :param residuals: (n,) exponents of points left out, measured minus predicted
    """
    rng = np.random.default_rng(seed)
    counts = {PAPER: 0, OURS: 0}
    for _ in range(weeks):
        drawn = rng.choice(residuals, MINUTES_OF_A_WEEK)
        follow = rng.random(MINUTES_OF_A_WEEK) < 0.5
        for place in np.flatnonzero(follow[1:]) + 1:
            drawn[place] = drawn[place - 1]
        for name, watch in ((PAPER, drift.paper(residuals)), (OURS, drift.ours(residuals))):
            counts[name] += sum(watch.update(float(one)) for one in drawn)
    return counts
