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

"""Learns from measurements what estimates of demand and slowdown rest on.

Of measured points it is known how a program does alone, and what was counted of it beside others.
Everything is learnt from all host types together: on one that was never measured it is used as
well, and there it has to hold.
"""

import dataclasses
import typing
import zlib

import numpy as np
import scipy.optimize

from tracon_lab.contention import calibration
from tracon_lab.models import baseline as baselines
from tracon_lab.models import dataset
from tracon_lab.models import fit
from tracon_lab.models import naming
from tracon_lab.models import points as measured
from tracon_lab.testbed import mixes
from tracon_lab.testbed import programs
from tracon_watcher.characteristics import CPU
from tracon_watcher.characteristics import IO
from tracon_watcher.contention import calibration as documents
from tracon_watcher.contention import calibration as curves
from tracon_watcher.contention import demand_estimator
from tracon_watcher import errors
from tracon_watcher import tie_breaking

#: Groups that settings of the generator are dealt out to; a named program is one by itself.
GENERATOR_FOLDS = 5
#: Demands below this share of what the host type can do tell nothing of relative errors.
LEAST_SHARE = 0.02
_KNOTS = 24
_SLACKS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
# Of a normal distribution: standard deviation over mean absolute deviation.
_NORMAL = 1.2533


@dataclasses.dataclass(frozen=True)
class Cases:
    """n windows of programs, alone or beside others, of one file or several.

    :param usage: as counted
    :param alone: (n,) whether the program was alone
    :param program: (n,) its name
    :param group: (n,) name of what is left out together in cross-validation
    :param paced: (n,) whether its units arrive by a clock: an open loop
    :param host_type: (n,)
    :param demand: (n, 4) what it does alone, in the median
    :param slowdown: (n,) as measured inside; NaN where not
    :param baseline: latencies of the program alone, in the median
    :param capacity: (n, 4) what the host type can do
    """

    usage: demand_estimator.Usage
    alone: np.ndarray
    program: np.ndarray
    group: np.ndarray
    paced: np.ndarray
    host_type: np.ndarray
    demand: np.ndarray
    slowdown: np.ndarray
    baseline: demand_estimator.Baseline
    capacity: np.ndarray

    def __len__(self) -> int:
        return len(self.alone)

    def take(self, index: np.ndarray) -> 'Cases':
        """The cases that `index` selects."""
        return Cases(*(
            type(value)(*(getattr(value, one.name)[index] for one in dataclasses.fields(value)))
            if dataclasses.is_dataclass(value) else value[index]
            for value in (getattr(self, field.name) for field in dataclasses.fields(self))))


def join(parts: typing.Sequence[Cases]) -> Cases:
    """The cases of several files, one after the other."""
    def joined(values: list[typing.Any]) -> typing.Any:
        if dataclasses.is_dataclass(values[0]):
            return type(values[0])(*(joined([getattr(value, field.name) for value in values])
                                     for field in dataclasses.fields(values[0])))
        return np.concatenate(values)
    return Cases(*(joined([getattr(part, field.name) for part in parts])
                   for field in dataclasses.fields(Cases)))


def cases(data: dataset.Dataset) -> Cases:
    """The windows of a file whose time was counted."""
    points = baselines.steady(data)
    seen, usage = points.kind == 'solo', _usage(data)
    latency = {name: np.full(len(seen), np.nan) for name in ('read', 'write')}
    for name in np.unique(points.target):
        own = points.target == name
        for kind, values in (('read', usage.read_latency), ('write', usage.write_latency)):
            counted = values[own & seen]
            if np.isfinite(counted).any():
                latency[kind][own] = np.nanmedian(counted)
    known = (np.isfinite(usage.characteristics).all(axis=1) & np.isfinite(usage.delay)
             & np.isfinite(points.target_alone).all(axis=1))
    length = len(seen)
    return Cases(
        usage, seen, points.target, np.array([_group(str(name)) for name in points.target]),
        np.array([is_paced(str(name)) for name in points.target]),
        np.full(length, data.host_type), points.target_alone, points.slowdown,
        demand_estimator.Baseline(latency['read'], latency['write'], np.ones(length),
                                  *np.zeros((2, length))),
        np.tile(measured.capacity(points), (length, 1))).take(known)


def _usage(data: dataset.Dataset) -> demand_estimator.Usage:
    """What was counted of targets, of all points of a file."""
    length = len(data.text['kind'])

    def column(name: str) -> np.ndarray:
        return data.numbers.get(name, np.full(length, np.nan))
    seen = 'target_observed_'
    reads, writes = (column(f'{seen}{name}_requests_per_second') for name in ('read', 'write'))
    return demand_estimator.Usage(
        column(seen + 'guest_cpu'), column('target_vcpu_delay'), column(seen + 'host_cpu'),
        reads, writes, np.where(reads == 0, 0.0, reads * column('target_read_latency')),
        np.where(writes == 0, 0.0, writes * column('target_write_latency')),
        *np.zeros((2, length)))


def is_paced(name: str) -> bool:
    """Whether a program waits for a clock between its units; one that is not known does not."""
    known = {**programs.programs(0, 0), **programs.real_applications()}
    return naming.is_generator(name) or (name in known and known[name].period > 0)


def _group(name: str) -> str:
    if not naming.is_generator(name):
        return name
    return 'generator %d' % (zlib.crc32(name.encode()) % GENERATOR_FOLDS)


def learn(found: Cases, training: typing.Mapping[str, typing.Any] | None = None,
          ) -> documents.Calibrated:
    """What the cases tell, with the errors that it has on them.

    :raises tracon_watcher.errors.NotEnoughData: for too few windows alone or beside others
    """
    for what, count in (('alone', int(found.alone.sum())), ('beside', int((~found.alone).sum()))):
        if count < calibration.LEAST_POINTS:
            raise errors.NotEnoughData(f'a calibration, of programs {what},', count,
                                       calibration.LEAST_POINTS)
    delay = scipy.optimize.nnls(
        np.column_stack([found.usage.running, found.usage.host])[found.alone],
        found.usage.delay[found.alone])[0]
    requests = found.usage.characteristics[:, IO] / 1000.0
    standing = scipy.optimize.nnls(
        np.column_stack([np.ones(len(found)), found.usage.running, requests])[found.alone],
        found.usage.host[found.alone])[0][0]
    learnt = documents.Calibrated(
        curves.Calibration(np.array([1.0, 2.0]), np.array([1.0, 2.0]), 0.0), np.zeros(2),
        np.zeros((2, 4)), 0.2, delay, float(standing), dict(training or {}), {})
    beside = found.take(~found.alone)
    signal = demand_estimator.uncontended(beside.usage, beside.baseline, learnt).stretch
    learnt = dataclasses.replace(learnt, curve=_thinned(
        calibration.calibrate(signal, beside.slowdown)))
    slack = _SLACKS[tie_breaking.argmin([
        _missed(beside, dataclasses.replace(learnt, slack=one)) for one in _SLACKS],
        tie_breaking.FITTED)]
    learnt = dataclasses.replace(learnt, slack=slack)
    return _widened(learnt, beside, *_estimated(beside, learnt))


def calibrate(datasets: typing.Sequence[dataset.Dataset]) -> documents.Calibrated:
    """What production uses: learnt from all, with the errors of programs that were left out.

    :raises tracon_watcher.errors.NotEnoughData: for measurements of fewer than two programs, or
        too few points beside others
    """
    found = join([cases(data) for data in datasets])
    groups = np.unique(found.group)
    if len(groups) < 2:
        raise errors.NotEnoughData('a calibration, which leaves each program out in turn,',
                                   len(groups), 2)
    learnt = learn(found, {**fit.provenance(datasets), 'points': int((~found.alone).sum())})
    beside = found.take(~found.alone)
    slowdown, estimate = np.full(len(beside), np.nan), np.full((len(beside), 4), np.nan)
    throttled = np.full(len(beside), np.nan)
    for group in groups:
        own = beside.group == group
        without = learn(found.take(found.group != group))
        slowdown[own], estimate[own], throttled[own] = _estimated(beside.take(own), without)
    learnt = _widened(learnt, beside, slowdown, estimate, throttled)
    known = np.isfinite(slowdown) & np.isfinite(beside.slowdown)
    wrong = np.abs(slowdown[known] / beside.slowdown[known] - 1)
    return dataclasses.replace(
        learnt, curve=dataclasses.replace(learnt.curve, error=float(wrong.mean())),
        errors={'slowdown_of_other_programs': {'mean': float(wrong.mean()),
                                               'standard_deviation': float(wrong.std()),
                                               'points': int(known.sum())}})


def _estimated(beside: Cases, learnt: documents.Calibrated,
               ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slowdown (n,), demand (n, 4) and throttling f (n,) as estimated."""
    found = demand_estimator.uncontended(beside.usage, beside.baseline, learnt)
    return found.slowdown, found.demand, found.growth


def residuals(beside: Cases, estimate: np.ndarray) -> np.ndarray:
    """log estimated − log true, (n, 4); NaN for next to no demand, or nothing seen."""
    tells = (beside.demand > LEAST_SHARE * beside.capacity) & (estimate > 0)
    with np.errstate(divide='ignore', invalid='ignore'):
        return np.where(tells, np.log(estimate / beside.demand), np.nan)


def _missed(beside: Cases, learnt: documents.Calibrated) -> float:
    """How wrong demands are; open loops count as much as closed ones, and as those that think."""
    wrong = np.abs(residuals(beside, _estimated(beside, learnt)[1]))
    kinds = [wrong[(beside.paced == paced)[:, None] & np.isfinite(wrong)]
             for paced in (False, True)]
    usage, cpu, vcpus = mixes.thinking()
    found = demand_estimator.uncontended(usage, demand_estimator.undisturbed(len(usage)), learnt,
                                         vcpus)
    kinds.append(np.abs(found.demand[:, CPU.start] / cpu - 1.0))
    return float(np.mean([values.mean() for values in kinds if len(values)]))


def _widened(learnt: documents.Calibrated, beside: Cases, slowdown: np.ndarray,
             estimate: np.ndarray, throttled: np.ndarray) -> documents.Calibrated:
    """The same with the widths that these estimates, (n,), (n, 4), show; f is (n,)."""
    of_slowdown = _width(np.log(slowdown / beside.slowdown), slowdown)
    wrong = residuals(beside, estimate)
    io = _width(wrong[:, IO].ravel(), np.repeat(throttled, 2))
    return dataclasses.replace(
        learnt, of_slowdown=of_slowdown, of_demand=np.column_stack([
            io, io, *(_width(wrong[:, column], throttled) for column in (2, 3))]))


def _width(residual: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """(2,) offset and slope over log ratio of the standard deviation of residuals."""
    known = np.isfinite(residual) & np.isfinite(ratio)
    if known.sum() < calibration.LEAST_POINTS:
        return np.array([1.0, 0.0])         # anything may be
    columns = np.column_stack([np.ones(known.sum()), np.log(ratio[known])])
    offset, slope = scipy.optimize.nnls(columns, _NORMAL * np.abs(residual[known]))[0]
    return np.array([max(offset, 0.01), slope])


def _thinned(curve: curves.Calibration) -> curves.Calibration:
    """A curve at a few signals, which undisturbed says undisturbed."""
    signal = np.geomspace(1.0, max(float(curve.signal[-1]), 2.0), _KNOTS)
    slowdown = curve.estimate(signal)
    slowdown[0] = 1.0
    return dataclasses.replace(curve, signal=signal, slowdown=slowdown, error=0.0)
