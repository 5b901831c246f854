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

"""Who is each application's best partner: predicted, and as it was measured (Fig. 5 and 6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracon_watcher.models import evaluation
from tracon_watcher.models import fit
from tracon_watcher.models import pairwise
from tracon_watcher.models import per_application
from tracon_watcher.models import points as measured
from tracon_watcher import tie_breaking

COLUMNS = ('host_type', 'response', 'tested_on', 'application', 'model', 'predicted_best',
           'measured_best', 'measured_mean', 'measured_worst', 'predicted_partner',
           'measured_with_it', 'best_partner')
NLM = 'NLM'


def partners(points: measured.Points, response: str,
             test: measured.Points | None = None) -> list[tuple[Any, ...]]:
    """Return a row of :data:`COLUMNS` for each application and model.

    For the slowdown the best is the least, for the IOPS ratio the most. No model was fitted to the
    pairs that are predicted.

    :param test: points of other files, whose pairs follow
    :returns: nothing without pairs, or with too few points to fit a model to
    """
    fitted = points.defined(response, measured.FITTED)
    if len(fitted) < measured.LEAST_POINTS:
        return []
    asked = {evaluation.PAIRS: points.defined(response, ('pair',))}
    if test is not None:
        asked[evaluation.FILE] = test.defined(response, ('pair',))
    if not any(map(len, asked.values())):
        return []
    whole = fit.regressor(fitted, response, measured.capacity(points))
    return [row for tested_on, pairs in asked.items() if len(pairs)
            for row in _rows(points, whole, response, tested_on, pairs)]


def _rows(points: measured.Points, whole: pairwise.PairwiseRegressor, response: str,
          tested_on: str, pairs: measured.Points) -> list[tuple[Any, ...]]:
    predicted = {evaluation.PAIRWISE: measured.from_exponent(
        whole.predict(measured.design(pairs)), response), NLM: np.full(len(pairs), np.nan)}
    for name in np.unique(pairs.target):
        own = per_application.of_application(points, response, str(name))
        if per_application.enough(own):
            chosen = pairs.target == name
            predicted[NLM][chosen] = per_application.fit(own, response, NLM).predict(
                pairs.target_alone[chosen], pairs.background_alone[chosen])
    rows: list[tuple[Any, ...]] = []
    for name in np.unique(pairs.target):
        chosen = pairs.target == name
        actual, names = pairs.response(response)[chosen], pairs.background[chosen]
        sign = 1 if response == 'slowdown' else -1
        for model, values in predicted.items():
            own_values = values[chosen]
            if not np.isfinite(own_values).all():
                continue
            best, true, worst = (tie_breaking.argmin(one) for one in (
                sign * own_values, sign * actual, -sign * actual))
            rows.append((points.host_type, response, tested_on, str(name), model,
                         float(own_values[best]), float(actual[true]), float(actual.mean()),
                         float(actual[worst]), str(names[best]),
                         float(actual[best]), str(names[true])))
    return rows
