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

"""What each idea of the production model bought: errors with one idea more from row to row.

No row is chosen by its errors on pairs; they are there to be read. Everything a row chooses, it
chooses by leaving out programs among the points that are fitted.
"""

from __future__ import annotations

import dataclasses
from typing import Any
from typing import Callable
from typing import Iterable

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import RESPONSES
from tracon_watcher.models import baseline
from tracon_watcher.models import dataset
from tracon_watcher.models import naming
from tracon_watcher.models import pairwise
from tracon_watcher.models import points as measured
from tracon_watcher.models import pooled
from tracon_watcher.models import validation

# No ridge to speak of, yet a solution where terms cannot be told apart.
_NONE = (1e-9,)
_UNCOMPRESSED = pairwise.COMPRESSIONS[:1]
_ALIKE = pairwise.WEIGHTS[:1]


@dataclasses.dataclass(frozen=True)
class Idea:
    """One row: how responses are formed, and what is fitted to them.

    :param steady: whether responses are against a steady baseline
    :param maker: gives an unfitted regressor for a capacity
    :param quick: whether leaving out programs, a hundred fits, takes no longer than one waits
    """

    name: str
    steady: bool
    maker: Callable[[FloatArray], Any]
    quick: bool = True


def _quadratic(capacity: FloatArray) -> pairwise.PairwiseRegressor:
    return pairwise.PairwiseRegressor(capacity, compressions=_UNCOMPRESSED, degree=2,
                                      weights=_ALIKE)


IDEAS = (
    Idea('quadratic, least squares', False,
         lambda capacity: _quadratic(capacity).set_params(alphas=_NONE)),
    Idea('+ a ridge chosen by leaving programs out', False, _quadratic),
    Idea('+ responses against a steady baseline', True, _quadratic),
    Idea('+ terms of the third degree', True,
         lambda capacity: pairwise.PairwiseRegressor(capacity, compressions=_UNCOMPRESSED,
                                                     weights=_ALIKE)),
    Idea('+ compressed rates', True,
         lambda capacity: pairwise.PairwiseRegressor(capacity, weights=_ALIKE)),
    Idea('+ less weight of settings as targets (in production)', True,
         pairwise.PairwiseRegressor),
    Idea('instead: kinks, never falling in a characteristic', True, pooled.PooledRegressor,
         quick=False),
)


@dataclasses.dataclass(frozen=True)
class Row:
    """Mean errors of one idea; the noise floor is that of its own responses.

    NaN for new programs where that would take minutes.

    :param file: of points of other files that were given, NaN without any
    """

    host_type: str
    response: str
    idea: str
    cross_validation: float
    new_program: float
    pairs: float
    file: float
    noise_floor: float


def ablation(datasets: Iterable[dataset.Dataset],
             tests: Iterable[dataset.Dataset] = ()) -> list[Row]:
    """Return a row for each host type, response and idea.

    :param tests: files that nothing is fitted to
    """
    asked = _by_host_type(tests)
    rows = []
    for host_type, forms in _by_host_type(datasets).items():
        for response in RESPONSES:
            for idea in IDEAS:
                row = _row(host_type, forms[idea.steady], response, idea,
                           asked.get(host_type, {}).get(idea.steady))
                if row is not None:
                    rows.append(row)
    return rows


def _by_host_type(datasets: Iterable[dataset.Dataset]) -> dict[str, dict[bool, measured.Points]]:
    """Return the points of each host type, as they are and against steady baselines."""
    found: dict[str, list[dataset.Dataset]] = {}
    for one in datasets:
        found.setdefault(one.host_type, []).append(one)
    return {host_type: {False: measured.join([part.points for part in parts]),
                        True: measured.join([baseline.steady(part) for part in parts])}
            for host_type, parts in found.items()}


def _row(host_type: str, points: measured.Points, response: str, idea: Idea,
         test: measured.Points | None) -> Row | None:
    fitted = points.defined(response, measured.FITTED)
    if len(fitted) < measured.LEAST_POINTS:
        return None
    pairs = points.defined(response, ('pair',))
    capacity = measured.capacity(points)
    model = idea.maker(capacity)
    helping = ({'helping': validation.helping(fitted)}
               if isinstance(model, pairwise.PairwiseRegressor) else {})
    whole = model.fit(measured.design(fitted), fitted.exponent(response),
                      validation.program_folds(fitted), **helping)

    def factory() -> Any:
        # The ridge is not chosen anew in each fold.
        chosen = {'alphas': (whole.alpha_,)}
        if hasattr(whole, 'stiffness_'):
            chosen |= {'stiffnesses': (whole.stiffness_,), 'compressions': (whole.compression_,),
                       'weights': (whole.weight_,)}
        return idea.maker(capacity).set_params(**chosen)
    named = ~naming.generated(fitted.target)

    def error(points: measured.Points, exponent: FloatArray, chosen: Any) -> float:
        known = np.isfinite(exponent) & chosen
        return validation.Errors.of(
            measured.from_exponent(exponent[known], response),
            points.response(response)[known]).mean
    of_file = float('nan')
    if test is not None:
        asked = test.defined(response, measured.BESIDE)
        of_file = error(asked, whole.predict(measured.design(asked)),
                        ~naming.generated(asked.target))
    return Row(host_type, response, idea.name,
               error(fitted, validation.by_background(fitted, response, factory), named),
               error(fitted, validation.by_target(fitted, response, factory), named)
               if idea.quick else float('nan'),
               error(pairs, whole.predict(measured.design(pairs)), np.ones(len(pairs), bool))
               if len(pairs) else float('nan'),
               of_file, validation.noise_floor(points, response))
