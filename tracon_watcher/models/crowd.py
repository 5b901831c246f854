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

"""Several co-residents: by which rule does what each does alone tell what they do together?

TRACON has two VMs a host, and for more its background would be the sum of the characteristics.
Here every rule is asked about the same points, a target beside two or three others, from what was
measured of the target beside each of them alone. The sum of characteristics needs a model, and so
does what production makes of points that were not measured.
"""

from __future__ import annotations

import dataclasses
from typing import Any
from typing import Callable
from typing import Sequence

import numpy as np

import scipy.optimize

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.models import naming
from tracon_watcher.models import points as measured
from tracon_watcher.prediction import pairwise

CO_RESIDENTS, FILE = 'co-residents', 'file'
CHARACTERISTICS = 'sum of characteristics'
#: From the exponents of each neighbour alone, (n,), to that of all of them.
RULES: dict[str, Callable[[FloatArray], float]] = {
    'largest': lambda each: float(each.max()),
    'sum of exponents': lambda each: float(each.sum()),
    'sum of excess': lambda each: float(pairwise.together(each)),
}
CROWDING = 'sum of excess, and of each two'
#: The same from what a model predicts of each neighbour: what production does.
PREDICTED = 'the same, of predicted excess'


@dataclasses.dataclass(frozen=True)
class Row:
    """How one rule does.

    :param tested_on: ``co-residents``, or ``file`` for those of other files
    :param neighbours: how many are beside the target
    :param bias: mean of predicted minus measured exponents: above 0 it sees too much harm
    :param measured: mean response
    """

    host_type: str
    response: str
    tested_on: str
    neighbours: int
    rule: str
    mean_error: float
    bias: float
    measured: float
    points: int


def compare(points: measured.Points, response: str, model: Any,
            test: measured.Points | None = None) -> list[Row]:
    """Return a row for each number of neighbours and rule.

    :param model: fitted to points of one neighbour; predicts exponents of (n, 8)
    :param test: points of other files, whose rows follow. What they say of single neighbours is
        taken as well, since rules start from it; κ is that of ``points``
    :returns: none where nothing was measured beside several
    """
    crowding = fitted_crowding(points, response)
    rows = _rows(points, points, response, model, crowding, CO_RESIDENTS)
    if test is not None:
        rows += _rows(measured.join([points, test]), test, response, model, crowding, FILE)
    return rows


def _rows(points: measured.Points, asked: measured.Points, response: str, model: Any,
          crowding: float, tested_on: str) -> list[Row]:
    crowds = asked.defined(response, (CO_RESIDENTS,))
    # What the crowding was learnt from judges no rule.
    crowds = crowds.take(~np.array(
        [naming.all_generated(name) for name in crowds.background], dtype=bool))
    alone = _alone(points, response, (*measured.FITTED, 'pair', 'repeat'))
    profiles = _profiles(points)
    counts = np.array([name.count(naming.AND) + 1 for name in crowds.background])
    rows = []
    for count in np.unique(counts):
        own = crowds.take(counts == count)
        each = [[alone.get((target, name)) for name in background.split(naming.AND)]
                for target, background in zip(own.target, own.background)]
        known = np.array([None not in one for one in each], dtype=bool)
        if not known.any():
            continue
        own = own.take(known)
        exponents = [np.array(one) for one, is_known in zip(each, known) if is_known]
        predicted = {name: np.array([rule(one) for one in exponents])
                     for name, rule in RULES.items()}
        predicted[CROWDING] = np.array([float(pairwise.together(one, crowding))
                                        for one in exponents])
        predicted[PREDICTED] = pairwise.together(np.column_stack([model.predict(np.hstack(
            [own.target_alone, [profiles[background.split(naming.AND)[place]]
                                for background in own.background]]))
            for place in range(count)]), crowding)
        predicted[CHARACTERISTICS] = model.predict(measured.design(own))
        actual = own.response(response)
        for name, exponent in predicted.items():
            value = measured.from_exponent(exponent, response)
            rows.append(Row(points.host_type, response, tested_on, int(count), name,
                            float(np.mean(np.abs(value - actual) / actual)),
                            float(np.mean(exponent - own.exponent(response))),
                            float(actual.mean()), len(own)))
    return rows


def fitted_crowding(points: measured.Points, response: str) -> float:
    """Return κ (:mod:`tracon_watcher.prediction.pairwise`), from the generator's settings alone.

    By least squares of exponents: the least absolute deviations are nearly the same over a wide
    range of κ, so that a few more points throw their minimum about. Points whose neighbours are
    programs are what the rule is judged by. Without any point of several settings it is 0.

    :param response: ``slowdown`` or ``iops_ratio``
    :returns: 0 to 1
    """
    crowds = points.defined(response, (CO_RESIDENTS,))
    alone = _alone(points, response, measured.FITTED)
    each, actual = [], []
    for target, background, exponent in zip(crowds.target, crowds.background,
                                            crowds.exponent(response)):
        names = background.split(naming.AND)
        found = [alone.get((target, name)) for name in names]
        if None not in found and naming.all_generated(background):
            each.append(np.array(found, dtype=np.float64))
            actual.append(exponent)
    if not each:
        return 0.0

    def wrong(crowding: float) -> float:
        together = [float(pairwise.together(one, crowding)) for one in each]
        return float(np.mean((np.array(together) - np.array(actual)) ** 2))
    return float(scipy.optimize.minimize_scalar(wrong, bounds=(0.0, 1.0), method='bounded').x)


def _alone(points: measured.Points, response: str,
           kinds: Sequence[str]) -> dict[tuple[str, str], float]:
    """Return the mean exponent of each target beside each single neighbour."""
    single = points.defined(response, kinds)
    found: dict[tuple[str, str], list[float]] = {}
    for target, name, exponent in zip(single.target, single.background,
                                      single.exponent(response)):
        found.setdefault((str(target), str(name)), []).append(float(exponent))
    return {key: float(np.mean(values)) for key, values in found.items()}


def _profiles(points: measured.Points) -> dict[str, FloatArray]:
    """Return the (4,) characteristics of each single neighbour alone."""
    single = points.take(np.isin(points.kind, (*measured.FITTED, 'pair', 'repeat')))
    return {str(name): np.median(single.background_alone[single.background == name], axis=0)
            for name in np.unique(single.background)}
