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

"""TRACON's adaptation (§4.6, Fig. 7): models follow their host to other storage.

The paper's NLM of each application is fitted on one host type. Then come points of the same host
type that it has not seen, and after them points of another one, as if the disk had moved. Without
adaptation the models stay. With that of the paper, all are fitted again whenever 160 new points
have come since drift was noticed; of each application new points replace the oldest.
"""

from __future__ import annotations

import collections
import dataclasses
import math

import numpy as np

from tracon_lab.models import per_application
from tracon_lab.models import points as measured
from tracon_watcher.characteristics import FloatArray
from tracon_watcher import errors

NOTHING, PAPER = 'no adaptation', 'as in TRACON'
REFIT_EVERY = 160
_MODEL = 'NLM'
_BEFORE = 0.3
_LEAST_DEVIATION = 1e-6


class Drift:
    """The paper's rule: the mean of the last errors has shifted, or their variance surged.

    How many errors, and how much is too much, is not published; these are ours.

    :param residuals: (n,) errors of points left out of the fit, which tell what is usual
    :param window: how many of the last errors are looked at
    :param shift: of their mean, in standard errors of a mean of so many
    :param surge: of their variance, as a factor
    :raises tracon_watcher.errors.InvalidOption: for a window of fewer than two
    """

    def __init__(self, residuals: FloatArray, window: int = 20, shift: float = 4.0,
                 surge: float = 4.0) -> None:
        if window < 2:
            raise errors.InvalidOption('window', window, 'expected at least 2')
        self._mean = float(residuals.mean())
        self._deviation = max(float(residuals.std()), _LEAST_DEVIATION)
        self._last: collections.deque[float] = collections.deque(maxlen=window)
        self._window, self._shift, self._surge = window, shift, surge

    def update(self, error: float) -> bool:
        """Take one error; say whether there is drift. After an alarm a new window starts."""
        self._last.append((error - self._mean) / self._deviation)
        if len(self._last) < self._window:
            return False
        mean, variance = float(np.mean(self._last)), float(np.var(self._last, ddof=1))
        if abs(mean) * math.sqrt(self._window) <= self._shift and variance <= self._surge:
            return False
        self._last.clear()
        return True


@dataclasses.dataclass(frozen=True)
class Replay:
    """What became of the errors.

    :param before: how many points came before the move
    :param errors: by policy, |predicted − actual| / actual of each point with the model of its
        moment, (n,)
    :param alarm: the point at which drift was noticed, None for never
    :param refits: the points after which all models were fitted again
    :param settled: mean error on the new host type of models fitted to its own points, on
        backgrounds kept out of them
    """

    before: int
    errors: dict[str, FloatArray]
    alarm: int | None
    refits: list[int]
    settled: float


def replay(old: measured.Points, new: measured.Points, response: str, seed: int) -> Replay:
    """Replay the move from one host type to another, with the applications that both have.

    :raises tracon_watcher.errors.NotEnoughData: for no more new points than a refit waits for
    """
    known, coming = (_by_application(points, response) for points in (old, new))
    names = [name for name in known if name in coming]
    count = sum(len(coming[name]) for name in names)
    if count <= REFIT_EVERY:
        raise errors.NotEnoughData('a replay of adaptation', count, REFIT_EVERY + 1)
    rng = np.random.default_rng(seed)
    fitted, still = {}, []
    for name in names:
        unseen = rng.random(len(known[name])) < _BEFORE
        fitted[name] = known[name].take(~unseen)
        still.append(known[name].take(unseen))
    stream = measured.join([_shuffled(measured.join(parts), rng) for parts in (
        still, [coming[name] for name in names])])
    before = len(stream) - count
    residuals = np.concatenate([_held_out(part, response) for part in fitted.values()])
    unadapted = {name: per_application.fit(part, response, _MODEL)
                 for name, part in fitted.items()}
    wrong = {NOTHING: np.array([_error(unadapted, stream.take(np.array([place])), response)
                                for place in range(len(stream))])}
    wrong[PAPER], alarm, refits = _adapted(unadapted, fitted, stream, response, Drift(residuals))
    settled = np.concatenate([_held_out(coming[name], response) for name in names])
    return Replay(before, {name: np.abs(values) for name, values in wrong.items()}, alarm,
                  refits, float(np.abs(settled).mean()))


def _adapted(models: dict[str, per_application.Fitted], fitted: dict[str, measured.Points],
             stream: measured.Points, response: str,
             drift: Drift) -> tuple[FloatArray, int | None, list[int]]:
    """Return errors (n,) of the paper's policy, and the places of its alarm and its refits."""
    wrong, alarm, refits = np.empty(len(stream)), None, []
    for place in range(len(stream)):
        point = stream.take(np.array([place]))
        wrong[place] = _error(models, point, response)
        if drift.update(wrong[place]) and alarm is None:
            alarm = place
        if alarm is None or (place - alarm + 1) % REFIT_EVERY:
            continue
        refits.append(place)
        since = stream.take(np.arange(alarm, place + 1))
        models = {}
        for name, part in fitted.items():
            both = measured.join([part, since.take(since.target == name)])
            newest = both.take(np.arange(len(both) - len(part), len(both)))
            models[name] = per_application.fit(newest, response, _MODEL)
    return wrong, alarm, refits


def _by_application(points: measured.Points, response: str) -> dict[str, measured.Points]:
    found = {name: per_application.of_application(points, response, name)
             for name in per_application.applications(points)}
    return {name: own for name, own in found.items() if per_application.enough(own)}


def _shuffled(points: measured.Points, rng: np.random.Generator) -> measured.Points:
    return points.take(rng.permutation(len(points)).astype(np.intp))


def _error(models: dict[str, per_application.Fitted], point: measured.Points,
           response: str) -> float:
    """Return (predicted − actual) / actual of one point."""
    predicted = models[str(point.target[0])].predict(point.target_alone, point.background_alone)
    return float(predicted[0] / point.response(response)[0] - 1.0)


def _held_out(points: measured.Points, response: str) -> FloatArray:
    """Return (predicted − actual) / actual, (n,), of backgrounds kept out of the fit."""
    predicted = per_application.by_background(points, response, _MODEL)
    wrong: FloatArray = predicted / points.response(response) - 1.0
    return wrong
