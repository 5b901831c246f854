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

"""What every resident suffers at present, as predicted, and whether its counters say the same."""

from __future__ import annotations

import dataclasses
import enum

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.placement import assessment


class Agreement(enum.IntEnum):
    """Whether a slowdown that is observed and one that is predicted can be the same."""

    UNKNOWN = 0
    AGREE = 1
    #: It suffers more than its neighbours explain: something acts that the model does not know.
    MORE = 2
    #: It suffers less than predicted: the model or the demand it was given is off.
    LESS = 3


@dataclasses.dataclass(frozen=True)
class Present:
    """Arrays over the n residents and h hosts of a cluster.

    In exponents, the first row log slowdown and the second −log IOPS ratio; NaN where unknown, and
    in the second where a VM does too little I/O to have a ratio.

    :param exponent: (2, n) expected
    :param lower: (2, n) one-sided lower confidence bounds
    :param upper: (2, n) one-sided upper confidence bounds
    :param breached: (2, n) limits of which the lower bound is beyond
    :param at_least: (n,) whether somebody is outside the hull, so that no less is expected
    :param status: (h,) :class:`~tracon_watcher.placement.assessment.Status`, staleness included
    """

    exponent: FloatArray
    lower: FloatArray
    upper: FloatArray
    breached: BoolArray
    at_least: BoolArray
    status: IntArray

    @property
    def known(self) -> BoolArray:
        """(n,) residents whose slowdown is known."""
        return np.asarray(~np.isnan(self.exponent[0]))


def look(assessor: assessment.Assessor, now: float | None = None) -> Present:
    """Say what every resident suffers.

    Beside a VM so far outside the hull that nothing is known of itself, its neighbours suffer what
    the largest measured would do to them, at least. On hosts that are unknown for another reason
    nobody's slowdown is known.

    :param now: seconds since the epoch, for staleness; None: nothing is stale
    """
    cluster = assessor.cluster
    status = assessor.status.copy()
    if now is not None:
        stale = now - cluster.updated_at > assessor.settings.maximum_age
        status[stale & np.isin(status, (assessment.Status.KNOWN, assessment.Status.OUTSIDE_HULL))
               ] = assessment.Status.STALE
    seen = np.isin(status, (assessment.Status.KNOWN, assessment.Status.OUTSIDE_HULL))[cluster.host]
    exponent = np.where(seen, np.stack(assessor.exponents()), np.nan)
    lower, upper = np.full_like(exponent, np.nan), np.full_like(exponent, np.nan)
    outside = status == assessment.Status.OUTSIDE_HULL
    # Beside nobody there is no interference, which needs no model.
    alone = (np.bincount(cluster.host, minlength=len(cluster.hosts))[cluster.host] == 1) & (
        cluster.io_beyond == 0).all(axis=1)
    for group in assessor.groups:
        rows = group.residents
        for index, response in enumerate(group.responses):
            outside[response.flagged] = True
            for bound, of in ((lower, assessor.lower), (upper, assessor.upper)):
                bound[index, rows] = np.where(
                    alone[rows], exponent[index, rows], of(response.model, exponent[index, rows]))
    if assessor.queues is not None:
        law, confidence = assessor.queues, assessor.settings.confidence
        for found, level in ((lower, 1 - confidence), (upper, confidence)):
            found[:, law.residents] = law.bound(level)
    return Present(exponent, lower, upper, assessor.breaches_by_response() & ~np.isnan(exponent),
                   np.asarray(outside[cluster.host] & ~alone), status)


def agreement(present: Present, observed: FloatArray, error: float) -> IntArray:
    """Compare slowdowns that counters show with those that are predicted, (n,).

    They agree when the range of the one, as far as its error goes, and the confidence bounds of
    the other have something in common.

    :param observed: (n,) slowdowns, NaN where unknown
    :param error: mean relative error of these
    :returns: (n,) :class:`Agreement`
    """
    with np.errstate(divide='ignore', invalid='ignore'):
        measured = np.log(observed)
    width = np.log1p(max(error, 0.0))
    found = np.full(len(observed), int(Agreement.AGREE), dtype=np.intp)
    found[measured - width > present.upper[0]] = Agreement.MORE
    # Who is clamped to the hull is predicted too little, never too much.
    found[measured + width < present.lower[0]] = Agreement.LESS
    found[np.isnan(measured) | ~present.known] = Agreement.UNKNOWN
    return found
