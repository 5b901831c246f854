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

from tracon_lab.models import adaptation
from tracon_lab.models import baseline
from tracon_lab.models import dataset
from tracon_lab.models import evaluation
from tracon_lab.models import naming
from tracon_lab.models import points as measured
from tracon_lab.models import unknown_programs
from tracon_watcher.characteristics import RESPONSES
from tracon_watcher import errors

#: From which host type to which VMs move in Fig. 7. In the paper their disk moves from local to
#: remote; of these two there are points enough for refits.
MOVE = ('same-core-raw-disk', 'shared-slow-device')
#: Of programs, by the plan that measures them.
_COLLECTIONS = {'full': 'programs', 'small': 'programs', 'applications': 'applications',
                'reduced': 'applications'}
#: The alarm and the first refit of the paper's policy come after so many points of the new disk.
ADAPTATION = ('response', 'policy', 'points', 'alarm_after', 'refit_after', 'error_before',
              'error_until_refit', 'error_after_refit', 'settled_error')


Rows = list[tuple[typing.Any, ...]]


@dataclasses.dataclass(frozen=True)
class Study:
    """Measurements, and what is worked out from them.

    :param datasets: files that models are fitted to
    :param tests: files that no model is fitted to
    :param lenient: whether host types with too few points are left out; otherwise they are errors
    """

    datasets: typing.Sequence[dataset.Dataset]
    tests: typing.Sequence[dataset.Dataset] = ()
    lenient: bool = False

    @functools.cached_property
    def points(self) -> dict[str, measured.Points]:
        """By host type, with responses against steady baselines."""
        return _by_host_type(self.datasets)

    @functools.cached_property
    def errors(self) -> list[evaluation.Row]:
        """Errors of each model, host type after host type.

        :raises tracon_watcher.errors.NotEnoughData: unless ``lenient``
        """
        asked = _by_host_type(self.tests)
        rows: list[evaluation.Row] = []
        for name, points in self.points.items():
            try:
                rows += evaluation.evaluate(points, asked.get(name), self._collections(name))
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
    def replays(self) -> dict[str, adaptation.Replay]:
        """By response, the move of the disk; none where the two host types were not measured."""
        old, new = (self.points.get(name) for name in MOVE)
        found: dict[str, adaptation.Replay] = {}
        if old is None or new is None:
            return found
        for response in RESPONSES:
            try:
                found[response] = adaptation.replay(old, new, response, 1)
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


def _adaptation(study: Study) -> Rows:
    rows: Rows = []
    for response, found in study.replays.items():
        first = [place - found.before + 1 if place is not None else float('nan')
                 for place in (found.alarm, next(iter(found.refits), None))]
        refit = next(iter(found.refits), len(found.errors[adaptation.PAPER]) - 1) + 1
        for policy, wrong in found.errors.items():
            parts = np.split(wrong, [found.before, max(refit, found.before)])
            rows.append((response, policy, len(wrong) - found.before, *first, *(
                float(part.mean()) if len(part) else float('nan') for part in parts),
                found.settled))
    return rows


def _unknown_programs(study: Study) -> Rows:
    return [dataclasses.astuple(row)
            for host_type, points in study.points.items()
            for row in unknown_programs.unknown_programs(
                points, unknown_programs.Host(
                    naming.cores(host_type), dataset.storage_waits(
                        one for one in study.datasets if one.host_type == host_type)))]


@dataclasses.dataclass(frozen=True)
class Table:
    """One of them.

    :param title: what it tells
    :param tests: whether it also tells of files that no model is fitted to
    """

    title: str
    columns: tuple[str, ...]
    rows: typing.Callable[[Study], Rows]
    tests: bool = False


#: By the name that commands take.
TABLES = {
    'errors': Table('errors of each model', _names(evaluation.Row), _errors, tests=True),
    'unknown-programs': Table('errors where both programs are unknown, beside baselines',
                              _names(unknown_programs.Row), _unknown_programs),
    'adaptation': Table('from one disk to another', ADAPTATION, _adaptation),
}
