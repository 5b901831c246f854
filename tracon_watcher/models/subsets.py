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

"""How few of the generator's settings suffice: chosen by design, and by chance."""

from __future__ import annotations

from typing import Any
from typing import Iterable
from typing import Sequence

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.models import fit
from tracon_watcher.models import naming
from tracon_watcher.models import optimal_design
from tracon_watcher.models import pairwise
from tracon_watcher.models import points as measured
from tracon_watcher.models import validation

COLUMNS = ('host_type', 'response', 'backgrounds', 'chosen', 'held_out_error', 'pair_error',
           'file_error', 'noise_floor')
#: How many backgrounds a design has; all of them come last.
DESIGNS = (10, 15, 20, 25)
_DRAWN = 10             # random subsets of the same size, to see what choosing is worth


def subsets(points: measured.Points, response: str, seed: int = 1,
            test: measured.Points | None = None) -> list[tuple[Any, ...]]:
    """Return a row of :data:`COLUMNS` for each number of settings and way to choose them.

    The held-out error is that of programs beside settings that are not in the subset; for all of
    them it is that of cross-validation by background.

    :param test: points of other files; the error is that of named programs, NaN without any
    :returns: nothing for fewer settings than twice the largest of :data:`DESIGNS`
    """
    fitted = points.defined(response, measured.FITTED)
    beside = fitted.background[fitted.kind == 'background']
    names = sorted({str(name) for name in beside if naming.is_generator(str(name))})
    if len(names) < 2 * max(DESIGNS):
        return []
    intensities = np.array([naming.setting(name) for name in names], dtype=np.float64)
    intensities = intensities / intensities.max(axis=0)
    floor = validation.noise_floor(points, response)
    never = [points.defined(response, ('pair',))]
    if test is not None:
        asked = test.defined(response, measured.BESIDE)
        never.append(asked.take(~naming.generated(asked.target)))
    else:
        never.append(never[0].take(np.zeros(len(never[0]), dtype=bool)))
    capacity = measured.capacity(points)
    rng = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    for count in DESIGNS:
        kept, held = split(fitted, [names[n] for n in optimal_design.choose(intensities, count)])
        model = fit.regressor(kept, response, capacity)
        rows.append((points.host_type, response, count, 'by design',
                     *_errors(model, (held, *never), response), floor))
        drawn = []
        for _ in range(_DRAWN):
            kept, held = split(fitted, rng.choice(names, count, replace=False))
            # The same ridge for all: to choose one takes longer than all else together.
            drawn.append(_errors(validation.fit_one(fit.factory_like(model), kept, response),
                                 (held, *never), response))
        rows.append((points.host_type, response, count, f'by chance, mean of {_DRAWN}',
                     *map(float, np.mean(drawn, axis=0)), floor))
    rows.append((points.host_type, response, len(names), 'all',
                 *_errors_with_all(fitted, never, response, capacity), floor))
    return rows


def split(fitted: measured.Points, chosen: Iterable[str]) -> tuple[measured.Points,
                                                                   measured.Points]:
    """Return the points that can be measured with these settings, and programs beside others."""
    own = list(chosen)
    known = [~naming.generated(names) | np.isin(names, own)
             for names in (fitted.target, fitted.background)]
    return (fitted.take(known[0] & known[1]),
            fitted.take((fitted.kind == 'background') & ~known[1]))


def _errors(model: pairwise.PairwiseRegressor, parts: Sequence[measured.Points],
            response: str) -> tuple[float, ...]:
    return tuple(_error(model.predict(measured.design(part)), part, response) for part in parts)


def _errors_with_all(fitted: measured.Points, never: Sequence[measured.Points], response: str,
                     capacity: FloatArray) -> tuple[float, ...]:
    model = fit.regressor(fitted, response, capacity)
    exponents = validation.by_background(fitted, response, fit.factory_like(model))
    tested = np.isfinite(exponents) & (fitted.kind == 'background')
    return (_error(exponents[tested], fitted.take(tested), response),
            *_errors(model, never, response))


def _error(exponents: FloatArray, points: measured.Points, response: str) -> float:
    return validation.Errors.of(measured.from_exponent(exponents, response),
                                points.response(response)).mean
