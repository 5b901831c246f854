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

"""A stored model brought up to date by labels: what :mod:`.adaptation` does with points.

Its candidates are fitted to points that labels are shared out into, and judged by labels of VMs
that were kept out: a VM that goes on as before gives many labels, which are one and the same to a
model.

Production measures no IOPS ratio: how many requests a VM would have had is estimated from the same
waiting that its slowdown is. After a refit the IOPS ratio is therefore one over the slowdown. That
is what closed-loop work has; of moves from one lab host type to another, it is nearer to what was
measured than the old model as soon as there are some tens of labels (``tracon model evaluate
--table refit``). Work whose requests arrive by themselves loses less than that.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping

import numpy as np
import scipy.stats

from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher import errors
from tracon_watcher.models import adaptation
from tracon_watcher.models import labels as labels_module
from tracon_watcher.models import pairwise
from tracon_watcher.models import restored
from tracon_watcher.models import sharing
from tracon_watcher.models import validation
from tracon_watcher.prediction import interval as intervals
from tracon_watcher.prediction import pairwise as stored
from tracon_watcher import tie_breaking

#: Fewest labels, and VMs that they are of.
LEAST_LABELS, LEAST_VMS = 20, 3
#: Error of VMs kept out, as a share of the old model's, below which a new one is surely better.
#: Of moves between the lab's host types with 20 to 60 labels none that it allows made anything
#: worse; 0.9 would have allowed some with 20 or 30 that did.
CONVINCING = 0.8
#: Errors of one VM's labels go together, so that fewer VMs than these make a large difference in
#: the mean by chance. Of those, as many must be predicted better as are by chance with less than
#: this probability: five of five, eight of nine; of fewer than five it cannot be told.
ENOUGH_VMS, CHANCE = 10, 0.05
_FOLDS = 5


@dataclasses.dataclass(frozen=True)
class Refit:
    """What labels make of a model.

    :param how: kept, rescaled, corrected or refitted, whichever was best
    :param errors: of each candidate, the root mean square error of exponents of VMs kept out
    :param predicted: (n,) exponents of the best one for VMs kept out of its fit
    :param model: that one, fitted to all
    :param vms: how many VMs there are
    :param chance: how probable it is that so many of them are predicted better by chance
    """

    how: str
    errors: Mapping[str, float]
    predicted: FloatArray
    model: pairwise.PairwiseRegressor
    vms: int
    chance: float

    @property
    def ratio(self) -> float:
        """Error of the best candidate over that of the old model."""
        kept = self.errors[adaptation.KEPT]
        return self.errors[self.how] / kept if kept > 0 else 1.0

    @property
    def convincing(self) -> bool:
        """Whether the best candidate is another model than the old one, and surely better."""
        return (self.how != adaptation.KEPT and self.ratio < CONVINCING
                and (self.vms >= ENOUGH_VMS or self.chance <= CHANCE))


def refit(old: stored.PairwiseModel, labels: labels_module.Labels) -> Refit:
    """Return the model that suits labels best.

    :param old: of slowdown
    :raises tracon_watcher.errors.NotEnoughData: for fewer than :data:`LEAST_LABELS`, or of fewer
        VMs than :data:`LEAST_VMS`
    """
    names, vm = np.unique(labels.vm, return_inverse=True)
    if len(labels) < LEAST_LABELS:
        raise errors.NotEnoughData(f'a refit of {old.host_type}, labels', len(labels),
                                   LEAST_LABELS)
    if len(names) < LEAST_VMS:
        raise errors.NotEnoughData(f'a refit of {old.host_type}, VMs', len(names), LEAST_VMS)
    fold: IntArray = (vm % _FOLDS).astype(np.intp)
    before = restored.regressor(old)
    ways = adaptation.candidates(before, len(labels) - int(np.bincount(fold).max()))
    predicted = {name: _left_out(way, before, old.crowding, labels, fold)
                 for name, way in ways.items()}
    wrong = {name: _error(exponent, labels) for name, exponent in predicted.items()}
    # Of equals the one that changes least: they come in that order.
    how = list(wrong)[tie_breaking.argmin(list(wrong.values()), tie_breaking.FITTED)]
    return Refit(how, wrong, predicted[how],
                 ways[how](*sharing.shared_out(before, labels, old.crowding)),
                 len(names),
                 _chance(predicted[adaptation.KEPT], predicted[how], labels.exponent, vm))


def models(found: Refit, slowdown: stored.PairwiseModel, iops_ratio: stored.PairwiseModel,
           labels: labels_module.Labels, provenance: Mapping[str, Any],
           ) -> tuple[stored.PairwiseModel, stored.PairwiseModel]:
    """Return the models of slowdown and IOPS ratio to be stored.

    Their intervals are made of the errors of labels kept out; the noise of labels is in it, so
    that they are rather too wide.

    :param slowdown: the old one, and ``iops_ratio``
    :param provenance: what is to be known of the refit; it is stored
    """
    width = validation.interval(found.predicted, labels.exponent)
    relative = validation.Errors.of(np.exp(found.predicted), np.exp(labels.exponent))
    held_out = {'by_vm': {'mean': relative.mean, 'standard_deviation': relative.deviation,
                          'points': relative.points}}
    training = {'points': len(labels), 'ridge': found.model.alpha_,
                'stiffness': found.model.stiffness_, 'refit': dict(provenance)}
    made = found.model.to_model('slowdown', slowdown.host_type, width, training, held_out,
                                slowdown.crowding)
    # Nothing was measured of it, so it is at least as uncertain as it was.
    return made, dataclasses.replace(
        made, response='iops_ratio', interval=_wider(width, iops_ratio.interval), errors={},
        training={**training, 'as': 'one over the slowdown'})


def _wider(one: intervals.Interval, other: intervals.Interval) -> intervals.Interval:
    """Return an interval that no bound of the other lies outside of; its median is the first's."""
    levels = np.union1d(one.levels, other.levels)
    here, there = (np.interp(levels, each.levels, each.quantiles) for each in (one, other))
    quantiles = np.where(levels < 0.5, np.minimum(here, there), np.maximum(here, there))
    quantiles[levels == 0.5] = here[levels == 0.5]
    return intervals.Interval(max(one.offset, other.offset), max(one.slope, other.slope),
                              levels, quantiles)


def _left_out(way: adaptation.Way, before: pairwise.PairwiseRegressor, crowding: float,
              labels: labels_module.Labels, fold: IntArray) -> FloatArray:
    """Return the exponents (n,) of labels left out in turn."""
    found = np.zeros(len(labels))
    for name in np.unique(fold):
        out = fold == name
        model = way(*sharing.shared_out(before, labels.take(~out), crowding))
        found[out] = sharing.predict(model, labels.take(out), crowding)
    return found


def _chance(old: FloatArray, new: FloatArray, exponent: FloatArray, vm: IntArray) -> float:
    """Return how probable it is that at least so many VMs' errors fall as do (a sign test).

    :param old: (n,) predicted exponents, as well as ``new``
    :param vm: (n,) index of each label's VM
    """
    fall = np.bincount(vm, (old - exponent) ** 2 - (new - exponent) ** 2)
    return float(scipy.stats.binomtest(
        int(tie_breaking.less(0.0, fall).sum()), len(fall), alternative='greater').pvalue)


def _error(predicted: FloatArray, labels: labels_module.Labels) -> float:
    return float(np.sqrt(np.average((predicted - labels.exponent) ** 2, weights=labels.weight)))
