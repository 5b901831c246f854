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

"""Models of one neighbour, fitted to and judged by slowdowns beside several.

A VM in production has as many neighbours as its host has room for, and what is measured is what
all of them do together. So the excess that is measured is shared out among them as a model
predicts their shares (the expectation step of Dempster, Laird & Rubin, J. R. Stat. Soc. B 1977),
which makes a point of each; and whether a model is right is judged by the whole.
"""

from __future__ import annotations

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.models import labels as labels_module
from tracon_watcher.models import pairwise
from tracon_watcher.prediction import pairwise as stored

# Excess that every neighbour is taken to have at least when measured excess is shared out: a model
# that expects nothing of anybody does not tell who it is.
_LEAST_EXCESS = 1e-3


def columns(labels: labels_module.Labels) -> FloatArray:
    """Return the columns of models, (m, 8): each neighbour's target, and the neighbour."""
    return np.hstack([labels.target[labels.owner], labels.neighbour])


def predict(model: pairwise.PairwiseRegressor, labels: labels_module.Labels,
            crowding: float) -> FloatArray:
    """Return the exponents (n,) of all neighbours together.

    :param crowding: κ, see :mod:`tracon_watcher.prediction.pairwise`
    """
    found: FloatArray = np.log1p(_whole(_excess(model, labels), labels, crowding) / labels.share)
    return found


def shared_out(model: pairwise.PairwiseRegressor, labels: labels_module.Labels,
               crowding: float) -> tuple[FloatArray, FloatArray]:
    """Return points of one neighbour each: columns (m, 8) and exponents (m,).

    Neighbours whose demand is nothing are left out: they have no part in it.

    :param model: by whose predictions the measured excess is shared out
    """
    each = _excess(model, labels) + _LEAST_EXCESS
    pressing = labels.neighbour.any(axis=1)
    each[~pressing] = 0.0
    whole = _whole(each, labels, crowding)
    measured = np.expm1(np.maximum(labels.exponent, 0.0)) * labels.share
    factor = measured / np.where(whole > 0, whole, 1.0)
    exponents: FloatArray = np.log1p(each * factor[labels.owner])
    return columns(labels)[pressing], exponents[pressing]


def _excess(model: pairwise.PairwiseRegressor, labels: labels_module.Labels) -> FloatArray:
    found: FloatArray = np.expm1(model.predict(columns(labels)))
    return found


def _whole(each: FloatArray, labels: labels_module.Labels, crowding: float) -> FloatArray:
    """Return the excess (n,) of all listed neighbours together, of (m,) those of each."""
    single, cross = (np.bincount(labels.owner, part, minlength=len(labels)).astype(np.float64)
                     for part in stored.parts(each, crowding))
    found: FloatArray = np.expm1(stored.combined(single, cross, crowding))
    return found
