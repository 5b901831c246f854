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

"""Errors where both programs are unknown: what a cloud meets, beside the simplest baselines.

The law of queueing is asked of each two programs that were measured side by side: as it judges a
host type on the first day, with nothing fitted, and with the two numbers that the engine learns of
a host type, which are chosen by points that hold neither of the two. NLM, TRACON's own model, is
fitted to what that law leaves of the same points, as it would learn in production.
"""

from __future__ import annotations

import dataclasses
from typing import Callable, Mapping

import numpy as np

from tracon_lab.models import nonlinear
from tracon_lab.models import points as measured
from tracon_watcher.characteristics import BoolArray, COUNT, CPU, FloatArray, RESPONSES
from tracon_watcher.queueing import capacity
from tracon_watcher.queueing import network
from tracon_watcher import tie_breaking

#: What counts as a breach: a slowdown above, an IOPS ratio below.
LIMITS = {'slowdown': 2.0, 'iops_ratio': 0.5}
LAW, LEARNT, RESIDUAL, CONSTANT, NONE = (
    'law of queueing', 'law, learnt', 'law, learnt, and NLM', 'constant', 'no interference')
#: What NLM may add to a log slowdown: beyond what it was fitted to, a quadratic goes anywhere.
_MOST_ADDED = 1.0
#: Fewer teach it nothing.
_LEAST_POINTS = 15


_Residual = Callable[[measured.Points], FloatArray | float]


@dataclasses.dataclass(frozen=True)
class Host:
    """What the law of queueing knows of a host, and of programs there.

    :param cores: that the two share
    :param waits: by the name of a program, which part of its time alone it waits for storage
    :param gain: of :data:`tracon_watcher.queueing.capacity.GAINS`
    :param disk: of :data:`tracon_watcher.queueing.capacity.DISKS`
    """

    cores: int = 1
    waits: Mapping[str, float] = dataclasses.field(default_factory=dict)
    gain: float = 1.0
    disk: float = 8.0


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table; errors are |predicted − measured| / measured.

    :param model: ``law of queueing`` is that of :mod:`tracon_watcher.queueing`, whose IOPS ratio
        is one over its slowdown, ``law, learnt`` the same with those of its ``GAINS`` and
        ``DISKS`` that suit slowdowns best; to it ``NLM`` adds what it learns of log slowdowns that
        are left, from CPU time and waits for storage of both; ``constant`` answers the geometric
        mean of all pairs that hold neither program, and ``no interference`` answers 1
    :param bias: mean of (predicted − measured) / measured
    :param limit: of :data:`LIMITS`
    :param breaches: measured ones
    :param precision: share of the predicted breaches that were measured; NaN where none was
        predicted
    :param recall: share of the measured breaches that were predicted
    """

    host_type: str
    response: str
    model: str
    points: int
    mean_error: float
    median_error: float
    error_95: float
    bias: float
    limit: float
    breaches: int
    precision: float
    recall: float


def unknown_programs(points: measured.Points, host: Host = Host()) -> list[Row]:
    """Return a row of each response for the law, as it is and learnt, and for each baseline.

    :param points: of one host type
    :param host: what the law of queueing knows of it
    :returns: none without pairs, or points that the law may learn from
    """
    slowed = points.defined('slowdown', measured.FITTED)
    if not len(slowed):
        return []
    answers = [dataclasses.replace(host, gain=gain, disk=disk)
               for gain in capacity.GAINS for disk in capacity.DISKS]
    wrong = np.stack([np.abs(np.log(by_law(slowed, one)) - slowed.log_response('slowdown'))
                      for one in answers])

    def learnt(couple: tuple[str, ...]) -> tuple[Host, _Residual]:
        known = ~_any_of(slowed, couple)
        if not known.any():
            return host, lambda _points: 0.0
        best = answers[tie_breaking.argmin(wrong[:, known].mean(axis=1).tolist())]
        seen = slowed.take(known)
        if len(seen) < _LEAST_POINTS:
            return best, lambda _points: 0.0
        model = nonlinear.StepwiseQuadratic().fit(
            _features(seen, host), seen.log_response('slowdown') - np.log(by_law(seen, best)))
        return best, lambda points: np.clip(model.predict(_features(points, host)),
                                            -_MOST_ADDED, _MOST_ADDED)
    return [row for response in RESPONSES for row in _of_response(points, response, host, learnt)]


def _of_response(points: measured.Points, response: str, host: Host,
                 learnt: Callable[[tuple[str, ...]], tuple[Host, _Residual]]) -> list[Row]:
    pairs = points.defined(response, ('pair',))
    if not len(pairs):
        return []
    predicted = {name: np.full(len(pairs), np.nan)
                 for name in (LAW, LEARNT, RESIDUAL, CONSTANT, NONE)}
    predicted[NONE][:] = 1.0

    def as_response(slowdown: FloatArray) -> FloatArray:
        return slowdown if response == 'slowdown' else 1.0 / slowdown
    predicted[LAW] = as_response(by_law(pairs, host))
    couples = sorted({tuple(sorted(names)) for names in zip(pairs.target.tolist(),
                                                            pairs.background.tolist())})
    for couple in couples:
        tested = _both_of(pairs, couple)
        best, residual = learnt(couple)
        slowdown = by_law(pairs.take(tested), best)
        predicted[LEARNT][tested] = as_response(slowdown)
        predicted[RESIDUAL][tested] = as_response(np.maximum(
            slowdown * np.exp(residual(pairs.take(tested))), 1.0))
        others = pairs.take(~_any_of(pairs, couple)).log_response(response)
        if len(others):
            predicted[CONSTANT][tested] = measured.from_log_response(
                np.full(int(tested.sum()), others.mean()), response)
    actual = pairs.response(response)
    return [_row(points.host_type, response, name, values, actual)
            for name, values in predicted.items()]


def by_law(points: measured.Points, host: Host) -> FloatArray:
    """Return the slowdowns of targets, (n,), by the law of queueing."""
    count = len(points)
    busy, waits = _features(points, host).reshape(-1, 2).T
    place = np.repeat(np.arange(count), 2)
    found: FloatArray = network.effects(
        network.Hosts(np.full(count, float(host.cores)), gain=np.full(count, host.gain)),
        network.VMs(place, np.ones(2 * count, dtype=np.intp), busy),
        network.Usage(np.arange(2 * count), place, np.asarray(waits),
                      *capacity.disks(np.full(count, host.disk)))).slowdown[::2]
    return found


def _features(points: measured.Points, host: Host) -> FloatArray:
    """Return part of their time alone on the CPU, and waiting for storage, of both, (n, 4)."""
    alone = np.stack([points.target_alone, points.background_alone], axis=1).reshape(-1, COUNT)
    names = np.stack([points.target, points.background], axis=1).ravel()
    busy = np.clip(alone[:, CPU].sum(axis=1), 0.0, 1.0)
    waits = np.minimum([host.waits.get(str(name), 0.0) for name in names], 1.0 - busy)
    return np.column_stack([busy, waits]).reshape(-1, 4)


def _any_of(points: measured.Points, names: tuple[str, ...]) -> BoolArray:
    return np.isin(points.target, names) | np.isin(points.background, names)


def _both_of(points: measured.Points, couple: tuple[str, ...]) -> BoolArray:
    one, other = couple
    return np.asarray(((points.target == one) & (points.background == other))
                      | ((points.target == other) & (points.background == one)))


def _row(host_type: str, response: str, name: str, predicted: FloatArray,
         actual: FloatArray) -> Row:
    wrong = np.abs(predicted - actual) / actual
    limit = LIMITS[response]
    measured_breach, predicted_breach = (
        values > limit if response == 'slowdown' else values < limit
        for values in (actual, predicted))
    right = int((measured_breach & predicted_breach).sum())
    return Row(host_type, response, name, len(actual), float(wrong.mean()),
               float(np.median(wrong)), float(np.quantile(wrong, 0.95)),
               float(np.mean((predicted - actual) / actual)), limit, int(measured_breach.sum()),
               _share(right, int(predicted_breach.sum())),
               _share(right, int(measured_breach.sum())))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float('nan')
