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

Three tests, told apart in ``tested_on``: *cross-validation* (the point's background was never
seen), *new-program* (neither background nor target; only models for any program can be asked),
and *pairs* (two real programs side by side, which no model is ever fitted to).
"""

from __future__ import annotations

import dataclasses
from typing import Callable, Iterable, Mapping, Sequence

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.models import fit
from tracon_watcher.models import per_application
from tracon_watcher.models import points as measured
from tracon_watcher.models import pooled
from tracon_watcher.models import validation
from tracon_watcher.prediction import anchored

CROSS_VALIDATION, NEW_PROGRAM, PAIRS = 'cross-validation', 'new-program', 'pairs'
#: Name of the row that is over all applications, and of the generator as target.
ALL, GENERATOR = 'all', 'generator'
POOLED = 'pooled'
#: The paper's models, and its most accurate one without the fourth characteristic (TRACON, §4.3).
PAPER = {'WMM': ('WMM', True), 'LM': ('LM', True), 'NLM': ('NLM', True),
         'NLM without host CPU': ('NLM', False)}


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table; errors are |predicted − actual| / actual.

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
    noise_floor: float


def evaluate(points: measured.Points,
             others: Mapping[str, Callable[[FloatArray], validation.Factory]] | None = None,
             ) -> list[Row]:
    """Return the rows of one host type.

    :param others: further models for any program, by name; each gets the capacity (4,) and
        returns what makes unfitted ones
    """
    rows: list[Row] = []
    for response in anchored.RESPONSES:
        fitted = points.defined(response, measured.FITTED)
        if len(fitted) < pooled.LEAST_POINTS:
            continue
        table = _Table(points, response)
        _paper(table)
        capacity = measured.capacity(points)
        _any_program(table, fitted, POOLED,
                     fit.factory_like(fit.regressor(fitted, response, capacity)))
        for name, maker in (others or {}).items():
            # Seventy fits more for each of them, some of half a minute, would tell no more.
            _any_program(table, fitted, name, maker(capacity), (CROSS_VALIDATION,))
        rows += table.rows()
    return rows


class _Table:
    """Collects predictions of one response, and turns them into rows."""

    def __init__(self, points: measured.Points, response: str) -> None:
        self.points, self.response = points, response
        self.pairs = points.defined(response, ('pair',))
        self._entries: list[tuple[str, str, str, FloatArray, FloatArray]] = []
        self._noise = validation.noise(points, response)

    def add(self, application: str, model: str, tested_on: str, predicted: FloatArray,
            actual: FloatArray) -> None:
        known = np.isfinite(predicted) & np.isfinite(actual)
        if known.any():
            self._entries.append((application, model, tested_on, predicted[known],
                                  actual[known]))

    def add_each(self, points: measured.Points, model: str, tested_on: str,
                 predicted: FloatArray) -> None:
        """Add the points' predictions, application by application; NaN is left out."""
        names = np.where(np.isin(points.kind, ('generator', 'reverse')), GENERATOR,
                         points.target)
        actual = points.response(self.response)
        for name in np.unique(names):
            same = names == name
            self.add(str(name), model, tested_on, predicted[same], actual[same])

    def rows(self) -> list[Row]:
        rows = [self._row(*entry) for entry in self._entries]
        for tested_on in (CROSS_VALIDATION, NEW_PROGRAM, PAIRS):
            for model in dict.fromkeys(entry[1] for entry in self._entries):
                # The generator as target is left out, so that all models answer for the same.
                parts = [entry for entry in self._entries
                         if entry[1:3] == (model, tested_on) and entry[0] != GENERATOR]
                if parts:
                    rows.append(self._row(ALL, model, tested_on,
                                          np.concatenate([part[3] for part in parts]),
                                          np.concatenate([part[4] for part in parts])))
        return rows

    def _row(self, application: str, model: str, tested_on: str, predicted: FloatArray,
             actual: FloatArray) -> Row:
        errors = validation.Errors.of(predicted, actual)
        return Row(self.points.host_type, self.response, application, model, tested_on,
                   errors.mean, errors.deviation, errors.points, self._floor(application))

    def _floor(self, application: str) -> float:
        known = np.isfinite(self._noise)
        own = known & (self.points.target == application)
        chosen = self._noise[own if own.any() else known]
        return float(chosen.mean()) if len(chosen) else float('nan')


def _paper(table: _Table) -> None:
    for name in per_application.applications(table.points):
        points = per_application.of_application(table.points, table.response, name)
        if not per_application.enough(points):
            continue
        pairs = table.pairs.take(table.pairs.target == name)
        for label, (model, host_cpu) in PAPER.items():
            table.add(name, label, CROSS_VALIDATION,
                      per_application.by_background(points, table.response, model, host_cpu),
                      points.response(table.response))
            if len(pairs):
                fitted = per_application.fit(points, table.response, model, host_cpu)
                table.add(name, label, PAIRS,
                          fitted.predict(pairs.target_alone, pairs.background_alone),
                          pairs.response(table.response))


def _any_program(table: _Table, fitted: measured.Points, model: str,
                 factory: validation.Factory,
                 tests: Sequence[str] = (CROSS_VALIDATION, NEW_PROGRAM)) -> None:
    response = table.response
    for tested_on in tests:
        held_out = {CROSS_VALIDATION: validation.by_background,
                    NEW_PROGRAM: validation.by_target}[tested_on]
        table.add_each(fitted, model, tested_on, measured.from_exponent(
            held_out(fitted, response, factory), response))
    if len(table.pairs):
        whole = validation.fit_one(factory, fitted, response)
        table.add_each(table.pairs, model, PAIRS, measured.from_exponent(
            whole.predict(pooled.design(table.pairs)), response))


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Return rows by host type, response, test and application, the models in their order."""
    tests = (CROSS_VALIDATION, NEW_PROGRAM, PAIRS)
    return sorted(rows, key=lambda row: (row.host_type, anchored.RESPONSES.index(row.response),
                                         tests.index(row.tested_on), row.application == ALL,
                                         row.application == GENERATOR, row.application))
