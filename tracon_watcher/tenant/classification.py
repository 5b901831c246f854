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
"""Which resource is contended: metrics of workers, and a decision tree over them (DIAL).

Javadi, Analytical Approaches for Dynamic Scheduling in Cloud Environments (PhD thesis, Stony Brook
2019), sections 4.2.2 and 4.5.3. A reading of a worker is usr, sys and wai (shares of its CPU
time), retransmitted segments a second, and the percentile of the time to connect to it. Where load
rises, so do usr and sys; so they are divided by what a linear regression predicts for the rate of
requests in quiet times. The tree is grown by scikit-learn, stored as JSON and evaluated by numpy.

Steal, the share of CPU time in which a VM waited for its host's CPU, is added here. The thesis
tells contention of the CPU by a drop of usr, since its clients wait for answers and then ask less.
Clients that do not wait cause the same usr, and none of its five values shows the contention.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import math
import os
import time
from typing import Callable, Mapping, Sequence
import urllib.request

import numpy as np
import numpy.typing as npt
from prometheus_client import parser

from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher.tenant import latency_model
from tracon_watcher.tenant.latency_model import FloatArray
from tracon_watcher.tenant import settings

#: The columns of a reading; the tree asks all but the last one.
FEATURES = ('usr', 'sys', 'wai', 'steal', 'retransmitted', 'connect_ms', 'rate')
SCHEMA = 'tracon-dial/1'
#: What node_exporter calls them.
CPU, SEGMENTS = 'node_cpu_seconds_total', 'node_netstat_Tcp_RetransSegs'
_MODES = {'user': 0, 'nice': 0, 'system': 1, 'irq': 1, 'softirq': 1, 'iowait': 2, 'steal': 3}
#: Seconds that an exporter may take, and bytes of its answer.
_DEADLINE, _LONGEST = 2.0, 1 << 24
#: Usage is never predicted to be less, a share of CPU time.
_LEAST_USAGE = 1e-3
#: The end of the middle 95 % of a normal distribution over its median deviation.
_SPREAD = 1.96 * 1.4826
#: From this load on, latency depends on how long it lasts.
_OVERLOAD = 0.95


def counters(text: str) -> FloatArray:
    """Return seconds of usr, sys, wai, steal and all modes, and retransmitted segments.

    :raises ValueError: when the text is not from node_exporter
    """
    found, segments = np.zeros(5), math.nan
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == CPU:
                found[4] += sample.value
                if sample.labels.get('mode') in _MODES:
                    found[_MODES[sample.labels['mode']]] += sample.value
            elif sample.name == SEGMENTS:
                segments = sample.value
    if not found[4] > 0 or math.isnan(segments):
        raise ValueError(f'neither {CPU} nor {SEGMENTS}')
    return np.append(found, segments)


class Exporters:
    """Asks each worker's node_exporter how much was used since it was asked last."""

    def __init__(self, urls: Mapping[str, str],
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._urls = urls
        self._clock = clock
        self._before: dict[str, tuple[float, FloatArray]] = {}
        # Without the proxy that the environment may name.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def sample(self) -> dict[str, list[float]]:
        """Return usr, sys, wai, steal, segments a second; silent workers are missing."""
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            samples = dict(zip(self._urls, pool.map(self._ask, self._urls.values())))
        found, before = {}, self._before
        self._before = {name: one for name, one in samples.items() if one}
        for name in self._before.keys() & before.keys():
            seconds = self._before[name][0] - before[name][0]
            used = self._before[name][1] - before[name][1]
            # After a restart counters begin at 0.
            if (used >= 0).all() and used[4] > 0 and seconds > 0:
                found[name] = [*(used[:4] / used[4]).tolist(), float(used[5]) / seconds]
        return found

    def _ask(self, url: str) -> tuple[float, FloatArray] | None:
        try:
            with self._opener.open(url, timeout=_DEADLINE) as answer:
                return self._clock(), counters(answer.read(_LONGEST).decode())
        except (OSError, ValueError):
            return None


@dataclasses.dataclass(frozen=True)
class Run:
    """What a worker did while a contention, or none, was made on purpose.

    :ivar number: the same of all workers that were read at the same time
    :ivar kind: of contention; ``load`` where there was none
    :ivar background: share of the resource that others used; NaN is unknown
    :ivar readings: shape (n, 7), columns :data:`FEATURES`; NaN is unknown
    :ivar tails: T_x of the same intervals, ms, shape (n,)
    """

    number: int
    kind: str
    background: float
    readings: FloatArray
    tails: FloatArray


@dataclasses.dataclass(frozen=True)
class Model:
    """A decision tree, and eq. 4.1 for each kind of contention.

    :ivar usage: intercept and slope of usr, then of sys, over the rate of requests, shape (2, 2)
    :ivar column: that each node of the tree asks; below 0 in a leaf, shape (nodes,)
    :ivar threshold: up to which the left child is next, shape (nodes,)
    :ivar children: left and right, shape (nodes, 2)
    :ivar shares: of training readings by kind, shape (nodes, kinds)
    :ivar coefficients: c0, c1, c2 in ms, of the kinds for which they are known; of ``load``, those
        of workers without contention
    """

    kinds: tuple[str, ...]
    usage: FloatArray
    column: npt.NDArray[np.intp]
    threshold: FloatArray
    children: npt.NDArray[np.intp]
    shares: FloatArray
    coefficients: Mapping[str, tuple[float, float, float]]

    def classify(self, readings: FloatArray) -> str:
        """Return the kind that successive readings of one worker tell, shape (n, 7)."""
        known = readings[~np.isnan(readings).any(axis=1)]
        if not len(known):
            return settings.UNKNOWN
        row, node = _normalised(known.mean(axis=0, keepdims=True), self.usage)[0], 0
        while self.column[node] >= 0:
            # scikit-learn compares single precision.
            right = np.float32(row[self.column[node]]) > self.threshold[node]
            node = self.children[node, int(right)]
        # Rounded, a tie is one on every CPU.
        return self.kinds[int(np.argmax(self.shares[node].round(9)))]


def _normalised(readings: FloatArray, usage: FloatArray) -> FloatArray:
    """Return the columns that the tree asks, usr and sys over what is predicted."""
    expected = np.maximum(usage[:, 0] + readings[:, -1:] * usage[:, 1], _LEAST_USAGE)
    return np.column_stack([readings[:, :2] / expected, readings[:, 2:-1]])


def fit(runs: Sequence[Run], peak_rate: float) -> Model:
    """Grow a tree from labelled runs, and fit eq. 4.1 for kinds whose background load is known.

    As later, the tree is asked of means of two successive readings. Contention that does not show
    in T_x is left out, since nothing is asked of it later.

    :param peak_rate: requests that one worker without contention serves, 1/s
    :raises tracon_watcher.errors.NotEnoughData: without readings of contention and of quiet times
    """
    from sklearn import tree
    pairs = [(run.readings[1:] + run.readings[:-1])[rows[1:] & rows[:-1]] / 2.0
             for run, rows in zip(runs, shows(runs))]
    known = [rows[~np.isnan(rows).any(axis=1)] for rows in pairs]
    labels = np.repeat([run.kind for run in runs], list(map(len, known)))
    kinds = tuple(np.unique(labels).tolist())
    if settings.LOAD not in kinds or len(kinds) < 2:
        raise errors.NotEnoughData('a tree of contention and quiet times', len(labels), 2)
    readings = np.vstack(known)
    quiet = readings[labels == settings.LOAD]
    usage = np.linalg.lstsq(np.column_stack([np.ones(len(quiet)), quiet[:, -1]]), quiet[:, :2],
                            rcond=None)[0].T
    grown = tree.DecisionTreeClassifier(
        min_samples_leaf=2, class_weight='balanced', random_state=0).fit(
            _normalised(readings, usage), labels).tree_
    shares = grown.value[:, 0] / grown.value[:, 0].sum(axis=1, keepdims=True)
    coefficients = {}
    for kind in {run.kind for run in runs if not math.isnan(run.background)}:
        loads, tails = (np.concatenate(parts) for parts in zip(*(
            (run.readings[:, -1] / peak_rate + run.background, run.tails)
            for run in runs if run.kind in (kind, settings.LOAD))))
        try:
            curve = latency_model.fit(loads[loads < _OVERLOAD], tails[loads < _OVERLOAD])
        except (errors.InvalidOption, errors.NotEnoughData):
            # Latency does not rise with it: the curve of the settings is used.
            continue
        # Likewise where it would be negative without load.
        if settings.rising_curve(curve):
            coefficients[kind] = curve
    return Model(kinds, usage, np.maximum(grown.feature, -1), grown.threshold, np.column_stack(
        [grown.children_left, grown.children_right]), shares, coefficients)


def shows(runs: Sequence[Run]) -> list[npt.NDArray[np.bool_]]:
    """Say for each interval of a run whether it is quiet, or has a T_x beyond quiet times."""
    tails = np.concatenate([
        np.empty(0), *(run.tails for run in runs if run.kind == settings.LOAD)])
    quiet, end = tails[~np.isnan(tails)], math.inf
    if len(quiet):
        end = np.median(quiet) + _SPREAD * np.median(np.abs(quiet - np.median(quiet)))
    return [(run.tails > end) | (run.kind == settings.LOAD) for run in runs]


def validate(runs: Sequence[Run], peak_rate: float) -> list[tuple[str, float]]:
    """Return for each run what a model says that was fitted to the runs of other numbers.

    :returns: the kind, empty where the contention does not show; and by which share the estimated
        background load is off, NaN where there is none or it is unknown
    """
    models = {number: fit([run for run in runs if run.number != number], peak_rate)
              for number in {run.number for run in runs}}
    return [
        (models[run.number].classify(run.readings[rows]),
         _error(models[run.number], run, rows, peak_rate)) if rows.any() else ('', math.nan)
        for run, rows in zip(runs, shows(runs))]


def _error(model: Model, run: Run, rows: npt.NDArray[np.bool_], peak_rate: float) -> float:
    if not run.background > 0 or run.kind not in model.coefficients:
        return math.nan
    estimated = latency_model.background_load(
        float(np.nanmean(run.tails[rows])), float(np.nanmean(run.readings[rows, -1])) / peak_rate,
        model.coefficients[run.kind])
    return abs(float(estimated) / run.background - 1.0)


def write(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model as JSON."""
    document.write(document.sealed({
        'schema': SCHEMA, 'features': list(FEATURES), 'kinds': list(model.kinds),
        **{name: getattr(model, name).tolist() for name in (
            'usage', 'column', 'threshold', 'children', 'shares')},
        'coefficients': {kind: list(one) for kind, one in model.coefficients.items()}}), path)


def read(path: str | os.PathLike[str]) -> Model:
    """Read a model.

    :raises tracon_watcher.errors.InvalidDocument: naming the field, its value and the remedy
    """
    fields = document.read(path, 'tracon dial train')
    fields.string('schema', (SCHEMA,))
    if fields.strings('features') != list(FEATURES):
        fields.refuse('features', fields.raw('features'), f'expected {", ".join(FEATURES)}')
    kinds, curves = tuple(fields.strings('kinds')), fields.section('coefficients')
    column = fields.array('column', (-1,), -1, len(FEATURES) - 2).astype(np.intp)
    children = fields.array('children', (len(column), 2), -1, len(column) - 1).astype(np.intp)
    inner = np.flatnonzero(column >= 0)
    # Children come after their node, so that every walk ends.
    if not len(column) or (children[inner] <= inner[:, np.newaxis]).any():
        fields.refuse('children', children.tolist(), 'expected nodes that come later')
    found = Model(kinds, fields.array('usage', (2, 2)), column,
                  fields.array('threshold', (len(column),)), children,
                  fields.array('shares', (len(column), len(kinds)), 0, 1),
                  {kind: settings.rising_curve(curves.raw(kind)) or curves.refuse(
                      kind, curves.raw(kind), 'expected [c0, c1, c2] of a curve that rises')
                   for kind in kinds if curves.has(kind)})
    fields.check_seal('train it again with `tracon dial train`')
    return found
