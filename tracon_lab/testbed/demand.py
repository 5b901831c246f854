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

"""How wrong estimates of demand are, on measured programs.

A VM is a *stream*: some windows of one program, drawn at random from a file, one after the other.
What it demands alone is known, so each way to estimate it from the stream can be judged.
"""

import dataclasses
import typing

import numpy as np

from tracon_lab.models import dataset
from tracon_lab.models import naming
from tracon_lab.testbed import demand_calibration as learning
from tracon_watcher.characteristics import COUNT, NAMES
from tracon_watcher.contention import calibration as documents
from tracon_watcher.contention import demand_estimator
from tracon_watcher.contention import profile_tracker
from tracon_watcher import tie_breaking

COLUMNS = ('file', 'host_type', 'kind', 'method', 'streams',
           *(f'{name}_error' for name in NAMES), 'covered', 'slowdown_error')
CLOSED, PACED = 'closed loop', 'paced'
#: Methods. What they learn from never has the program that they are asked for.
SEEN, LEAST, ONE, WINDOW, ELSEWHERE, EARLIER, ALONE = (
    'as seen', 'least disturbed', 'one interval', 'window', 'window, other host types',
    'window, alone before', 'seen alone')
#: Intervals of a stream, and streams of each named program.
INTERVALS, STREAMS = 12, 24
#: Stated standard deviations within which an estimate is *covered*.
COVER = 2.0
_LEAST_POINTS = 4
# Polled once a minute, in slots as long.
_MINUTE = 60.0


@dataclasses.dataclass(frozen=True)
class Estimates:
    """What a method says of s streams; NaN where it says nothing.

    :param mean: (s, 4)
    :param deviation: (s, 4)
    :param slowdown: (s,) during the last interval
    """

    mean: np.ndarray
    deviation: np.ndarray
    slowdown: np.ndarray

    @classmethod
    def nothing(cls, count: int) -> 'Estimates':
        """Estimates of `count` streams that say nothing."""
        return cls(*np.full((2, count, COUNT), np.nan), np.full(count, np.nan))

    def put(self, chosen: np.ndarray, others: 'Estimates') -> None:
        """Take over what others say of the streams that `chosen` (s,) selects."""
        for field in dataclasses.fields(self):
            getattr(self, field.name)[chosen] = getattr(others, field.name)[chosen]


@dataclasses.dataclass(frozen=True)
class Streams:
    """Streams of one file.

    :param beside: (s, i) rows of the file's cases, none of them alone
    :param alone: (s, i) rows of the same programs alone; -1 where there are none
    """

    beside: np.ndarray
    alone: np.ndarray

    @property
    def mixed(self) -> np.ndarray:
        """(s, i): the first half alone, the second beside others."""
        half = INTERVALS // 2
        found = np.hstack([self.alone[:, :half], self.beside[:, half:]])
        found[self.alone[:, 0] < 0] = -1
        return found


def evaluate(datasets: typing.Sequence[dataset.Dataset], seed: int = 1,
             report: typing.Callable[[str], None] = lambda line: None,
             ) -> list[tuple[typing.Any, ...]]:
    """Rows of :data:`COLUMNS`: a file, a kind of program and a method.

    Errors are means of |estimated − true| / true: of each characteristic, of programs that have
    any to speak of, and of the slowdown during the last interval. `covered` is the share of
    characteristics within :data:`COVER` stated deviations.
    """
    found = {data.name: learning.cases(data) for data in datasets}
    rows = []
    for data in datasets:
        report(data.name)
        cases = found[data.name]
        streams = draw(cases, np.random.default_rng(seed))
        if len(streams.beside):
            estimates = _estimates(cases, streams, [*found.values()], [
                found[other.name] for other in datasets if other.host_type != data.host_type])
            rows += _rows(data, cases, streams.beside[:, -1], estimates)
    return rows


def _estimates(cases: learning.Cases, streams: Streams, everything: list[learning.Cases],
               elsewhere: list[learning.Cases]) -> dict[str, Estimates]:
    """What each method says."""
    last = streams.beside[:, -1]
    seen, count = cases.usage.characteristics, len(last)
    found = {method: Estimates.nothing(count) for method in (
        SEEN, LEAST, ONE, WINDOW, ELSEWHERE, EARLIER, ALONE)}
    found[SEEN].mean[:] = seen[last]
    found[ALONE].mean[:] = np.where(streams.alone[:, :1] < 0, np.nan, seen[streams.alone[:, 0]])
    for group in np.unique(cases.group[last]):
        own = cases.group[last] == group
        learnt = _without(everything, group)
        found[LEAST].mean[own] = least_disturbed(cases, streams.beside[own], learnt)
        for method, rows in ((ONE, streams.beside[:, -1:]), (WINDOW, streams.beside),
                             (EARLIER, streams.mixed)):
            found[method].put(own, follow(cases, rows, learnt))
        if elsewhere:
            found[ELSEWHERE].put(own, follow(cases, streams.beside, _without(elsewhere, group)))
    return found


def _without(parts: list[learning.Cases], group: str) -> documents.Calibrated:
    return learning.learn(learning.join([one.take(one.group != group) for one in parts]))


def _rows(data: dataset.Dataset, cases: learning.Cases, last: np.ndarray,
          estimates: typing.Mapping[str, Estimates]) -> list[tuple[typing.Any, ...]]:
    truth, slowdown = cases.demand[last], cases.slowdown[last]
    tells = truth > learning.LEAST_SHARE * cases.capacity[last]
    rows = []
    for kind, chosen in ((CLOSED, ~cases.paced[last]), (PACED, cases.paced[last])):
        for method, found in estimates.items():
            known = chosen & np.isfinite(found.mean).all(axis=1)
            if not known.any():
                continue
            wrong = np.where(tells, np.abs(found.mean - truth), np.nan)
            covered = np.where(np.isfinite(wrong + found.deviation),
                               wrong <= COVER * found.deviation, np.nan)
            rows.append((
                data.name, data.host_type, kind, method, int(known.sum()),
                *(_mean((wrong / np.where(tells, truth, 1.0))[known, column])
                  for column in range(COUNT)), _mean(covered[known]),
                _mean(np.abs(found.slowdown / slowdown - 1)[known])))
    return rows


def _mean(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float('nan')


def draw(cases: learning.Cases, rng: np.random.Generator) -> Streams:
    """Streams of every program that was measured beside others often enough.

    Of each setting of the generator there is one, of each named program :data:`STREAMS`.
    """
    beside, alone = [], []
    for name in np.unique(cases.program):
        own = np.flatnonzero(~cases.alone & (cases.program == name))
        if len(own) < _LEAST_POINTS:
            continue
        solo = np.flatnonzero(cases.alone & (cases.program == name))
        for _ in range(1 if naming.is_generator(str(name)) else STREAMS):
            beside.append(rng.choice(own, INTERVALS, replace=len(own) < INTERVALS))
            alone.append(rng.choice(solo, INTERVALS, replace=len(solo) < INTERVALS)
                         if len(solo) else np.full(INTERVALS, -1))
    return Streams(*(np.array(rows, dtype=np.intp).reshape(-1, INTERVALS)
                     for rows in (beside, alone)))


def follow(cases: learning.Cases, rows: np.ndarray,
           learnt: documents.Calibrated) -> Estimates:
    """Profiles after these cases, (s, i), one a minute; NaN for streams with a -1.

    All streams are VMs on storage of one sort, and start to be watched at the same time.
    """
    length = rows.shape[1]
    state = profile_tracker.ProfileTracker(learnt, window=length * _MINUTE, count=length)
    whole = np.flatnonzero((rows >= 0).all(axis=1))
    names = [f'stream {index:05}' for index in whole]
    for turn in range(length):
        begin = np.full(len(whole), (turn + 1) * _MINUTE)
        state.update(names, np.arange(len(whole)), begin, begin + _MINUTE,
                     cases.usage.take(rows[whole, turn]), pools=np.zeros(len(whole), np.intp))
    profiles, found = state.profiles((length + 1) * _MINUTE), Estimates.nothing(len(rows))
    found.mean[whole], found.deviation[whole] = profiles.mean, profiles.deviation
    found.slowdown[whole] = profiles.slowdown
    return found


def least_disturbed(cases: learning.Cases, rows: np.ndarray,
                    learnt: documents.Calibrated) -> np.ndarray:
    """What was seen, (s, 4), in the quarter of each stream's intervals that wait least.

    Waiting is that for a core beyond what is expected, since what requests take alone is unknown.
    """
    unknown = np.full(len(cases), np.nan)
    nothing = demand_estimator.Baseline(unknown, unknown, np.ones(len(cases)), unknown, unknown)
    stretch = demand_estimator.uncontended(cases.usage, nothing, learnt).stretch[rows]
    order = tie_breaking.argsort(stretch)[:, :max(rows.shape[1] // 4, 1)]
    return np.median(cases.usage.characteristics[np.take_along_axis(rows, order, axis=1)],
                     axis=1)
