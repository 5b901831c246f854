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

"""The tables of what the models attain; a command prints each, and the report holds all."""

from __future__ import annotations

import dataclasses
import functools
import typing

import numpy as np

from tracon_watcher.characteristics import RESPONSES
from tracon_watcher import errors
from tracon_watcher.models import ablation
from tracon_watcher.models import baseline
from tracon_watcher.models import crowd
from tracon_watcher.models import dataset
from tracon_watcher.models import evaluation
from tracon_watcher.models import fit
from tracon_watcher.models import naming
from tracon_watcher.models import partners
from tracon_watcher.models import points as measured
from tracon_watcher.models import replay
from tracon_watcher.models import subsets
from tracon_watcher.models import transfer
from tracon_watcher.models import unknown_programs
from tracon_watcher.models import validation
from tracon_watcher.models import work

#: From which host type to which the disk moves in Fig. 7: local, then remote.
MOVE = ('same-core-raw-disk', 'same-core-remote-volume')
#: Of programs, by the plan that measures them.
_COLLECTIONS = {'full': 'programs', 'small': 'programs', 'applications': 'applications',
                'reduced': 'applications'}
ADAPTATION = ('response', 'policy', 'alarm_after', 'changed_after', 'error_before',
              'error_1_to_40', 'error_41_to_160', 'error_161_on', 'settled_error',
              'false_alarms_a_week')


Rows = list[tuple[typing.Any, ...]]


@dataclasses.dataclass(frozen=True)
class Study:
    """Measurements, and what is worked out from them.

    :param datasets: files that models are fitted to
    :param tests: files that no model is fitted to
    :param others: further models for any program, see
        :func:`tracon_watcher.models.evaluation.evaluate`
    :param lenient: whether host types with too few points are left out; otherwise they are errors
    :param report: called with the name of a part and the share of it that is done, by tables that
        take minutes
    """

    datasets: typing.Sequence[dataset.Dataset]
    tests: typing.Sequence[dataset.Dataset] = ()
    others: typing.Mapping[str, typing.Callable[[typing.Any], validation.Factory]] | None = None
    lenient: bool = False
    report: typing.Callable[[str, float], None] = lambda _part, _share: None

    @functools.cached_property
    def points(self) -> dict[str, measured.Points]:
        """By host type, with responses against steady baselines."""
        return _by_host_type(self.datasets)

    @functools.cached_property
    def asked(self) -> dict[str, measured.Points]:
        """By host type, the points of the files that no model is fitted to."""
        return _by_host_type(self.tests)

    def each(self) -> typing.Iterator[tuple[measured.Points, str]]:
        """Yield each host type's points with each response that can be fitted."""
        for points in self.points.values():
            for response in RESPONSES:
                if len(points.defined(response, measured.FITTED)) >= measured.LEAST_POINTS:
                    yield points, response

    @functools.cached_property
    def errors(self) -> list[evaluation.Row]:
        """Errors of each model, host type after host type.

        :raises tracon_watcher.errors.NotEnoughData: unless ``lenient``
        :raises tracon_watcher.errors.InvalidDocument: for a response that is the same everywhere
        """
        rows: list[evaluation.Row] = []
        for name, points in self.points.items():
            try:
                rows += evaluation.evaluate(points, self.others, self.asked.get(name),
                                            self._collections(name))
            except errors.NotEnoughData:
                if not self.lenient:
                    raise
        return rows

    def _collections(self, host_type: str) -> dict[str, str]:
        """By the name of a program, what it belongs to: that of the plan it was measured by."""
        return {str(name): _COLLECTIONS.get(one.header.get('plan', ''), one.name)
                for one in self.datasets if one.host_type == host_type
                for name in np.unique(one.points.target[one.points.kind == 'background'])}

    @functools.cached_property
    def replays(self) -> dict[str, replay.Replay]:
        """By response, the move of the disk; none where the two host types were not measured."""
        old, new = (self.points.get(name) for name in MOVE)
        found: dict[str, replay.Replay] = {}
        if old is None or new is None:
            return found
        for response in RESPONSES:
            try:
                found[response] = replay.replay(old, new, response, 1)
            except errors.NotEnoughData:
                continue
        return found


def _by_host_type(datasets: typing.Iterable[dataset.Dataset]) -> dict[str, measured.Points]:
    return {points.host_type: points for points in measured.by_host_type(
        baseline.steady(one) for one in datasets)}


def _names(row: typing.Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(row))


def _errors(study: Study) -> Rows:
    return [dataclasses.astuple(row) for row in evaluation.ordered(study.errors)]


def _ablation(study: Study) -> Rows:
    return [dataclasses.astuple(row) for row in ablation.ablation(study.datasets, study.tests)]


def _extremes(study: Study) -> Rows:
    return [row for points, response in study.each()
            for row in partners.partners(points, response, study.asked.get(points.host_type))]


def _design(study: Study) -> Rows:
    return [row for points, response in study.each()
            for row in subsets.subsets(points, response,
                                       test=study.asked.get(points.host_type))]


def _co_residents(study: Study) -> Rows:
    rows: Rows = []
    for points, response in study.each():
        test = study.asked.get(points.host_type)
        if any((part.kind == crowd.CO_RESIDENTS).any() for part in (points, test)
               if part is not None):
            model = fit.regressor(points.defined(response, measured.FITTED), response,
                                  measured.capacity(points))
            rows += [dataclasses.astuple(row)
                     for row in crowd.compare(points, response, model, test)]
    return rows


def _adaptation(study: Study) -> Rows:
    rows: Rows = []
    for response, found in study.replays.items():
        for policy, wrong in found.errors.items():
            after = wrong[found.before:]
            first = [_first_after(found.before, places[policy])
                     for places in (found.alarms, found.changes)]
            rows.append((response, policy, *first, float(wrong[:found.before].mean()),
                         *(float(np.mean(part)) for part in (after[:40], after[40:160],
                                                             after[160:])),
                         found.settled, found.false_alarms.get(policy, 0) / replay.WEEKS))
    return rows


def _refit(study: Study) -> Rows:
    return [dataclasses.astuple(row) for row in transfer.transfers(study.points)]


def _work(study: Study) -> Rows:
    return work.work([*study.datasets, *study.tests])


def _unknown_programs(study: Study) -> Rows:
    parts = list(study.each())
    rows: Rows = []
    for place, (points, response) in enumerate(parts):
        def report(share: float, place: int = place) -> None:
            study.report('fits', (place + share) / len(parts))

        rows += [dataclasses.astuple(row)
                 for row in unknown_programs.unknown_programs(
                     points, response, unknown_programs.Host(
                         naming.cores(points.host_type), dataset.storage_waits(
                             one for one in study.datasets
                             if one.host_type == points.host_type)), report)]
    return rows


def _first_after(before: int, places: typing.Sequence[int]) -> float:
    """Return after how many points of the new storage something first happened; NaN for never."""
    return float(min((place - before + 1 for place in places if place >= before), default=np.nan))


@dataclasses.dataclass(frozen=True)
class Table:
    """One of them.

    :param title: what it tells
    :param tests: whether it also tells of files that no model is fitted to
    """

    title: str
    columns: tuple[str, ...]
    rows: typing.Callable[[Study], Rows]
    tests: bool = True


#: By the name that commands take.
TABLES = {
    'errors': Table('errors of each model', _names(evaluation.Row), _errors),
    'unknown-programs': Table('errors where both programs are unknown, beside baselines',
                              _names(unknown_programs.Row), _unknown_programs, tests=False),
    'ablation': Table('what each idea bought', _names(ablation.Row), _ablation),
    'extremes': Table('best partners, predicted and measured', partners.COLUMNS,
                      _extremes),
    'design': Table('how many backgrounds are needed', subsets.COLUMNS, _design),
    'co-residents': Table('rules for several neighbours', _names(crowd.Row), _co_residents),
    'adaptation': Table('from a local to a remote disk', ADAPTATION, _adaptation,
                        tests=False),
    'refit': Table('a model of one host type, refitted to slowdowns of another',
                   _names(transfer.Row), _refit, tests=False),
    'work': Table('CPU time of a unit of work, beside over alone', work.COLUMNS, _work),
}
