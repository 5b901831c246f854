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

"""A model of one host type, brought to another one by a few slowdowns that are measured there.

This is what the engine does when a model has drifted (:mod:`.refit`), on measurements of the lab.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Iterator, Mapping

import numpy as np

from tracon_watcher.characteristics import FloatArray, IntArray, RESPONSES
from tracon_watcher import errors
from tracon_watcher.models import adaptation
from tracon_watcher.models import fit
from tracon_watcher.models import labels as labels_module
from tracon_watcher.models import points as measured
from tracon_watcher.models import refit
from tracon_watcher.models import restored
from tracon_watcher.models import sharing
from tracon_watcher.prediction import pairwise

#: How many slowdowns are measured.
COUNTS = (20, 60, 200)
# Of production's labels, about as calibrated.
_DEVIATION = 0.07


@dataclasses.dataclass(frozen=True)
class Row:
    """What became of the errors, |predicted − actual| / actual in the mean.

    Of the slowdown on points that were not learnt from; of the IOPS ratio, of which nothing was
    learnt, on all.

    :param fitted_on: host type of the model
    :param used_on: host type of the measurements
    :param points: that were learnt from
    :param how: rescaled, corrected or refitted; kept where no other model was surely better
    """

    fitted_on: str
    used_on: str
    points: int
    how: str
    slowdown_before: float
    slowdown_after: float
    iops_ratio_before: float
    iops_ratio_after: float


def transfers(points: Mapping[str, measured.Points], seed: int = 0) -> Iterator[Row]:
    """Yield a row for each host type, each other one, and each number of slowdowns.

    :param points: by host type; those with too few for a model are left out
    """
    models = {}
    for name, own in points.items():
        try:
            models[name] = [fit.pairwise_model(own, response, {}) for response in RESPONSES]
        except errors.NotEnoughData:
            continue
    for (old, pair), new in itertools.product(models.items(), models):
        if old != new:
            yield from _transfer(pair, points[new], np.random.default_rng(seed))


def _transfer(models: list[pairwise.PairwiseModel], points: measured.Points,
              rng: np.random.Generator) -> Iterator[Row]:
    slow, ratio = (points.defined(response, measured.FITTED) for response in RESPONSES)
    order = rng.permutation(len(slow)).astype(np.intp)
    for count in COUNTS:
        if count >= len(slow):
            continue
        labels, rest = (of_points(slow, rows) for rows in (order[:count], order[count:]))
        found = refit.refit(models[0], labels)
        new = models
        if found.convincing:
            new = list(refit.models(found, models[0], models[1], labels, {}))
        wrong = [[_error(np.exp(sharing.predict(restored.regressor(one[0]), rest, 0.0)),
                         np.exp(rest.exponent)),
                  _error(one[1].predict(ratio.target_alone, ratio.background_alone),
                         ratio.iops_ratio)] for one in (models, new)]
        yield Row(models[0].host_type, points.host_type, count,
                  found.how if found.convincing else adaptation.KEPT,
                  wrong[0][0], wrong[1][0], wrong[0][1], wrong[1][1])


def of_points(points: measured.Points, rows: IntArray) -> labels_module.Labels:
    """Return points of one neighbour as labels."""
    part = points.take(rows)
    names = np.unique(part.target, return_inverse=True)[1].astype(np.intp)
    return labels_module.Labels(
        names, part.target_alone, part.background_alone, np.arange(len(part)), np.ones(len(part)),
        part.exponent('slowdown'), np.full(len(part), _DEVIATION))


def _error(predicted: FloatArray, actual: FloatArray) -> float:
    return float(np.mean(np.abs(predicted - actual) / actual))
