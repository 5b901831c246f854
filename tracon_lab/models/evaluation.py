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
seen), *pairs* (two programs side by side, which no model is ever fitted to), and *file* (another
file of measurements, whatever it holds).
"""

from __future__ import annotations

import dataclasses
from typing import Iterable, Mapping

import numpy as np

from tracon_lab.models import per_application
from tracon_lab.models import points as measured
from tracon_lab.models import validation
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import RESPONSES

CROSS_VALIDATION, PAIRS, FILE = 'cross-validation', 'pairs', 'file'
TESTS = (CROSS_VALIDATION, PAIRS, FILE)
#: Name of the row that is over all applications.
ALL = 'all'
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


def evaluate(points: measured.Points, test: measured.Points | None = None,
             collections: Mapping[str, str] | None = None) -> list[Row]:
    """Return the rows of one host type.

    :param test: points of another file; those with one neighbour are predicted
    :param collections: which collection of programs each belongs to, by name; where there are
        several, each has a row of its own beside the one of all programs
    :raises tracon_watcher.errors.NotEnoughData: when no application has points enough for a model
    """
    rows: list[Row] = []
    for response in RESPONSES:
        entries = _entries(points, response, test)
        rows += _rows(points, response, entries, collections or {})
    if not rows:
        raise per_application.too_few(points)
    return rows


@dataclasses.dataclass(frozen=True)
class _Entry:
    """Predictions of one model for one application; arrays are (n,)."""

    application: str
    model: str
    tested_on: str
    predicted: FloatArray
    actual: FloatArray


def _entries(points: measured.Points, response: str,
             test: measured.Points | None) -> list[_Entry]:
    held_out = {PAIRS: points.defined(response, ('pair',))}
    if test is not None:
        held_out[FILE] = test.defined(response, measured.BESIDE)
    found = []
    for name in per_application.applications(points):
        own = per_application.of_application(points, response, name)
        if not per_application.enough(own):
            continue
        for label, (model, host_cpu) in PAPER.items():
            found.append(_Entry(
                name, label, CROSS_VALIDATION,
                per_application.by_background(own, response, model, host_cpu),
                own.response(response)))
            fitted = per_application.fit(own, response, model, host_cpu)
            for tested_on, others in held_out.items():
                asked = others.take(others.target == name)
                if len(asked):
                    found.append(_Entry(
                        name, label, tested_on,
                        fitted.predict(asked.target_alone, asked.background_alone),
                        asked.response(response)))
    return found


def _rows(points: measured.Points, response: str, entries: list[_Entry],
          collections: Mapping[str, str]) -> list[Row]:
    """Return a row of each entry, and of all applications and of each collection together."""
    wholes: dict[tuple[str, str, str], list[_Entry]] = {}
    for entry in entries:
        wholes.setdefault((ALL, entry.model, entry.tested_on), []).append(entry)
        if len(set(collections.values())) > 1 and entry.application in collections:
            wholes.setdefault((f'{ALL} of {collections[entry.application]}', entry.model,
                               entry.tested_on), []).append(entry)
    together = [_Entry(*key, *(np.concatenate([getattr(part, name) for part in parts])
                               for name in ('predicted', 'actual')))
                for key, parts in wholes.items()]
    rows = []
    for entry in (*entries, *together):
        wrong = validation.Errors.of(entry.predicted, entry.actual)
        members = [name for name, collection in collections.items()
                   if entry.application == f'{ALL} of {collection}']
        rows.append(Row(
            points.host_type, response, entry.application, entry.model, entry.tested_on,
            wrong.mean, wrong.deviation, wrong.points,
            validation.noise_floor(points, response, members or [entry.application])))
    return rows


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Return rows by host type, response, test and application, the models in their order."""
    return sorted(rows, key=lambda row: (
        row.host_type, RESPONSES.index(row.response), TESTS.index(row.tested_on),
        row.application == ALL or row.application.startswith(f'{ALL} of '), row.application))
