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

"""The table behind TRACON's Fig. 3: how wrong each model is, for each application and response.

The tests are told apart in ``tested_on``: *cross-validation* (the point's background was never
seen), *new-program* (neither background nor target; only models for any program can be asked),
*pairs* (two real programs side by side, which no model is ever fitted to), and *file* (another
file of measurements, whatever it holds).
"""

from __future__ import annotations

import dataclasses
from typing import Callable, Iterable, Mapping, Sequence

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import RESPONSES
from tracon_watcher import errors
from tracon_watcher.models import fit
from tracon_watcher.models import per_application
from tracon_watcher.models import points as measured
from tracon_watcher.models import validation
from tracon_watcher.prediction import interval as intervals

CROSS_VALIDATION, NEW_PROGRAM, PAIRS, FILE = (
    'cross-validation', 'new-program', 'pairs', 'file')
TESTS = (CROSS_VALIDATION, NEW_PROGRAM, PAIRS, FILE)
#: Name of the row that is over all applications, and of the generator as target.
ALL, GENERATOR = 'all', 'generator'
PAIRWISE = 'pairwise'
#: The paper's models, and its most accurate one without the fourth characteristic (TRACON, §4.3).
PAPER = {'WMM': ('WMM', True), 'LM': ('LM', True), 'NLM': ('NLM', True),
         'NLM without host CPU': ('NLM', False)}


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table; errors are |predicted − actual| / actual.

    :param covered: share of the points that lay in their predicted 90 % interval, which was made
        of other points' residuals; NaN for models that have none
    :param noise_floor: mean error that a perfect prediction has, from repeated points of this
        application, or of all where none of its were repeated
    """

    host_type: str
    response: str
    application: str
    model: str
    tested_on: str
    mean_error: float
    standard_deviation: float
    points: int
    covered: float
    noise_floor: float


def evaluate(points: measured.Points,
             others: Mapping[str, Callable[[FloatArray], validation.Factory]] | None = None,
             test: measured.Points | None = None,
             collections: Mapping[str, str] | None = None) -> list[Row]:
    """Return the rows of one host type.

    :param others: further models for any program, by name; each gets the capacity (4,) and
        returns what makes unfitted ones
    :param test: points of another file; those with one neighbour are predicted (several are
        compared by :func:`tracon_watcher.models.crowd.compare`)
    :param collections: which collection of programs each belongs to, by name; where there are
        several, each has a row of its own beside the one of all programs
    :raises tracon_watcher.errors.NotEnoughData: when not even a slowdown can be fitted
    :raises tracon_watcher.errors.InvalidDocument: for a response that is the same everywhere
    """
    rows: list[Row] = []
    for response in RESPONSES:
        try:
            fitted = fit.learnable(points, response)
        except errors.NotEnoughData:
            if response == RESPONSES[0]:
                raise
            continue        # programs without I/O have no ratio
        table = _Table(points, response, test, collections or {})
        _paper(table)
        capacity = measured.capacity(points)
        _any_program(table, fitted, PAIRWISE,
                     fit.factory_like(fit.regressor(fitted, response, capacity)))
        for name, maker in (others or {}).items():
            # Seventy fits more for each of them, some of half a minute, would tell no more.
            _any_program(table, fitted, name, maker(capacity), (CROSS_VALIDATION,))
        rows += table.rows()
    return rows


@dataclasses.dataclass(frozen=True)
class _Entry:
    """Predictions of one model for one application; arrays are (n,)."""

    application: str
    model: str
    tested_on: str
    predicted: FloatArray
    actual: FloatArray
    covered: FloatArray


class _Table:
    """Collects predictions of one response, and turns them into rows."""

    def __init__(self, points: measured.Points, response: str,
                 test: measured.Points | None, collections: Mapping[str, str]) -> None:
        self.points, self.response = points, response
        self.collections = collections
        self.tests = {PAIRS: points.defined(response, ('pair',))}
        if test is not None:
            self.tests[FILE] = test.defined(response, measured.BESIDE)
        self._entries: list[_Entry] = []

    def add(self, application: str, model: str, tested_on: str, predicted: FloatArray,
            actual: FloatArray, covered: FloatArray | None = None) -> None:
        known = np.isfinite(predicted) & np.isfinite(actual)
        if covered is None:
            covered = np.full(len(predicted), np.nan)
        if known.any():
            self._entries.append(_Entry(application, model, tested_on, predicted[known],
                                        actual[known], covered[known]))

    def add_each(self, points: measured.Points, model: str, tested_on: str,
                 predicted: FloatArray, covered: FloatArray) -> None:
        """Add the points' predictions, application by application; NaN is left out."""
        names = np.where(np.isin(points.kind, ('generator', 'reverse')), GENERATOR,
                         points.target)
        actual = points.response(self.response)
        for name in np.unique(names):
            same = names == name
            self.add(str(name), model, tested_on, predicted[same], actual[same], covered[same])

    def rows(self) -> list[Row]:
        rows = [self._row(entry) for entry in self._entries]
        # The generator as target is left out, so that all models answer for the same.
        programs = [entry for entry in self._entries if entry.application != GENERATOR]
        several = len(set(self.collections.values())) > 1
        wholes: dict[tuple[str, str, str], list[_Entry]] = {}
        for entry in programs:
            wholes.setdefault((ALL, entry.model, entry.tested_on), []).append(entry)
            collection = self.collections.get(entry.application)
            if several and collection is not None:
                wholes.setdefault((f'{ALL} of {collection}', entry.model, entry.tested_on),
                                  []).append(entry)
        for key, parts in wholes.items():
            rows.append(self._row(_Entry(*key, *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in ('predicted', 'actual', 'covered')))))
        return rows

    def _row(self, entry: _Entry) -> Row:
        wrong = validation.Errors.of(entry.predicted, entry.actual)
        return Row(self.points.host_type, self.response, entry.application, entry.model,
                   entry.tested_on, wrong.mean, wrong.deviation, wrong.points,
                   float(entry.covered.mean()), self._floor(entry.application))

    def _floor(self, application: str) -> float:
        members = [name for name, collection in self.collections.items()
                   if application == f'{ALL} of {collection}']
        return validation.noise_floor(self.points, self.response, members or [application])


def _paper(table: _Table) -> None:
    for name in per_application.applications(table.points):
        points = per_application.of_application(table.points, table.response, name)
        if not per_application.enough(points):
            continue
        tests = {tested_on: held_out.take(held_out.target == name)
                 for tested_on, held_out in table.tests.items()}
        for label, (model, host_cpu) in PAPER.items():
            table.add(name, label, CROSS_VALIDATION,
                      per_application.by_background(points, table.response, model, host_cpu),
                      points.response(table.response))
            if any(map(len, tests.values())):
                fitted = per_application.fit(points, table.response, model, host_cpu)
                for tested_on, held_out in tests.items():
                    if not len(held_out):
                        continue
                    table.add(name, label, tested_on,
                              fitted.predict(held_out.target_alone, held_out.background_alone),
                              held_out.response(table.response))


def _any_program(table: _Table, fitted: measured.Points, model: str,
                 factory: validation.Factory,
                 tests: Sequence[str] = (CROSS_VALIDATION, NEW_PROGRAM)) -> None:
    response = table.response
    actual = fitted.exponent(response)
    held_out: dict[str, FloatArray] = {}
    for tested_on in tests:
        predict, groups = {
            CROSS_VALIDATION: (validation.by_background, validation.background_folds),
            NEW_PROGRAM: (validation.by_target, validation.program_folds)}[tested_on]
        held_out[tested_on] = predict(fitted, response, factory)
        table.add_each(fitted, model, tested_on,
                       measured.from_exponent(held_out[tested_on], response),
                       validation.inside_held_out(held_out[tested_on], actual, groups(fitted)))
    if not any(map(len, table.tests.values())):
        return
    whole = validation.fit_one(factory, fitted, response)
    # As in a stored model: of programs kept out, where there were any.
    width = _interval(held_out[tests[-1]], actual)
    for tested_on, points in table.tests.items():
        if len(points):
            exponent = whole.predict(measured.design(points))
            covered = np.full(len(points), np.nan) if width is None else np.asarray(
                validation.inside(width, exponent, points.exponent(response)), dtype=np.float64)
            table.add_each(points, model, tested_on, measured.from_exponent(exponent, response),
                           covered)


def _interval(predicted: FloatArray, actual: FloatArray) -> intervals.Interval | None:
    """Return the width of predictions; None where too few points were kept out to tell."""
    try:
        return validation.interval(predicted, actual)
    except errors.NotEnoughData:
        return None


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Return rows by host type, response, test and application, the models in their order."""
    return sorted(rows, key=lambda row: (row.host_type, RESPONSES.index(row.response),
                                         TESTS.index(row.tested_on), _is_whole(row.application),
                                         row.application == GENERATOR, row.application))


def _is_whole(application: str) -> bool:
    return application == ALL or application.startswith(f'{ALL} of ')
