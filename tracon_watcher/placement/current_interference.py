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

"""Current interference: the slowdown of every resident, predicted and observed."""

from __future__ import annotations

import dataclasses
import enum

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.placement import assessment


def beyond_own_wait(log_response: FloatArray, own_wait: FloatArray | float | None) -> FloatArray:
    """Return what is left of log responses, log S or −log R, in the shape of ``log_response``.

    NaN stays NaN. Where w is 0 the log responses stay as they are, to the last bit.

    :param own_wait: the shares w, from 0 to 1, in a shape that fits; None where all are 0
    """
    if own_wait is None:
        return log_response
    with np.errstate(over='ignore'):
        left = np.log(np.maximum(np.exp(log_response) - own_wait, 1.0))
    return np.asarray(np.where(np.asarray(own_wait) > 0, left, log_response))


def efficiency(slowdown: FloatArray) -> FloatArray:
    """Return the shares of their speed alone at which VMs run, min(1, 1 / S).

    A slowdown below 1 is noise of the counters. The shape is that of ``slowdown``.

    :param slowdown: S, NaN where unknown, as is the efficiency then
    """
    return np.asarray(1.0 / np.maximum(slowdown, 1.0))


class Agreement(enum.IntEnum):
    """Whether a slowdown that is observed and one that is predicted can be the same."""

    UNKNOWN = 0
    AGREE = 1
    #: It suffers more than its neighbours explain: something acts that the law does not know.
    MORE = 2
    #: It suffers less than predicted: the law or the demand it was given is off.
    LESS = 3


@dataclasses.dataclass(frozen=True)
class CurrentInterference:
    """Arrays over the n residents and h hosts of a cluster.

    In log responses, the first row log slowdown and the second −log IOPS ratio; NaN where unknown,
    and in the second where a VM does too little I/O to have a ratio.

    :param log_response: (2, n) expected
    :param lower: (2, n) one-sided lower confidence bounds
    :param upper: (2, n) one-sided upper confidence bounds
    :param breached: (2, n) limits of which the lower bound is beyond
    :param status: (h,) :class:`~tracon_watcher.placement.assessment.Status`, staleness included
    """

    log_response: FloatArray
    lower: FloatArray
    upper: FloatArray
    breached: BoolArray
    status: IntArray

    @property
    def known(self) -> BoolArray:
        """(n,) residents whose slowdown is known."""
        return np.asarray(~np.isnan(self.log_response[0]))


def current_interference(assessor: assessment.Assessor,
                         now: float | None = None) -> CurrentInterference:
    """Say what every resident suffers.

    On hosts that are unknown no VM's slowdown is known.

    :param now: seconds since the epoch, for staleness; None: nothing is stale
    """
    law, confidence = assessor.law, assessor.settings.confidence
    status = assessor.status.copy()
    if now is not None:
        status[assessor.stale(now) & (status == assessment.Status.KNOWN)] = (
            assessment.Status.STALE)
    log_response, lower, upper = np.full((3, 2, len(assessor.cluster.uuids)), np.nan)
    for found, values in ((log_response, law.log_response), (lower, law.bound(1 - confidence)),
                          (upper, law.bound(confidence))):
        found[:, law.residents] = values
        found[:, status[assessor.cluster.host] != assessment.Status.KNOWN] = np.nan
    return CurrentInterference(log_response, lower, upper,
                               assessor.breaches_by_response() & ~np.isnan(log_response),
                               status)


def agreement(present: CurrentInterference, observed: FloatArray, error: float) -> IntArray:
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
    found[measured + width < present.lower[0]] = Agreement.LESS
    found[np.isnan(measured) | ~present.known] = Agreement.UNKNOWN
    return found
