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

"""What an assessment says of every host, and why a host is refused."""

from __future__ import annotations

import dataclasses

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import newcomer as newcomers

NEWCOMER = 'newcomer'
RESPONSES = ('slowdown', 'iops_ratio')


@dataclasses.dataclass(frozen=True)
class Breach:
    """The worst breach on one host.

    :param vm: uuid of the resident, or ``newcomer``
    :param response: ``slowdown`` or ``iops_ratio``
    :param bound: the confidence bound, on the VM's favourable side, that crosses the limit
    :param limit: the limit
    """

    host: str
    vm: str
    response: str
    bound: float
    limit: float


@dataclasses.dataclass
class Assessment:
    """Arrays over the h hosts of a cluster.

    :param cluster: the state that was judged
    :param newcomer: the profile that was judged
    :param status: (h,) :class:`~tracon_watcher.placement.assessment.Status`
    :param exponent: (2, h) the newcomer's log slowdown and −log IOPS ratio; NaN where unknown,
        and in the second where it does too little I/O to have a ratio
    :param lower: (2, h) lower confidence bounds of these
    :param upper: (2, h) upper confidence bounds of these
    :param score: (h,) expected harm: the newcomer's exponents plus what it adds to residents';
        NaN where unknown
    :param excess: (h,) by how much the worst bound crosses its limit; > 0 is a breach
    :param worst: (h,) index of that resident, -1 for the newcomer
    :param worst_response: (h,) 0 for slowdown, 1 for IOPS ratio
    :param flagged: (h,) predictions clamped to the hull: the harm is at least what is predicted
    """

    cluster: cluster_module.ClusterState
    newcomer: newcomers.Profile
    status: IntArray
    exponent: FloatArray
    lower: FloatArray
    upper: FloatArray
    score: FloatArray
    excess: FloatArray
    worst: IntArray
    worst_response: IntArray
    flagged: BoolArray
    _pending: dict[int, Breach] = dataclasses.field(default_factory=dict)

    @classmethod
    def unknown(cls, cluster: cluster_module.ClusterState, status: IntArray,
                newcomer: newcomers.Profile) -> Assessment:
        """Return an assessment into which nothing has been reckoned yet."""
        count = len(cluster.hosts)
        return cls(cluster, newcomer, status.copy(), np.full((2, count), np.nan),
                   np.full((2, count), np.nan), np.full((2, count), np.nan), np.zeros(count),
                   np.full(count, -np.inf), np.full(count, -1, dtype=np.intp),
                   np.zeros(count, dtype=np.intp), np.zeros(count, dtype=bool))

    @property
    def known(self) -> BoolArray:
        """(h,) hosts of which something is known."""
        return np.asarray(self.status == 0)

    @property
    def refused(self) -> BoolArray:
        """(h,) hosts on which somebody's limit would be breached."""
        return np.asarray(self.excess > 0)

    @property
    def slowdown(self) -> FloatArray:
        """(h,) the newcomer's predicted slowdown; NaN where unknown."""
        return np.asarray(np.exp(self.exponent[0]))

    @property
    def iops_ratio(self) -> FloatArray:
        """(h,) the newcomer's predicted IOPS ratio; NaN where unknown or undefined."""
        return np.asarray(np.exp(-self.exponent[1]))

    def ranked(self, among: IntArray | None = None) -> FloatArray:
        """Return the scores with each unknown one replaced by the median of the known.

        A flagged host's clamped score is a lower bound only, so it never ranks better than the
        median either: an overloaded host must not look harmless.

        :param among: indices of a request's hosts; None for all
        :returns: (len(among),) scores; all 0 when none is known
        """
        chosen = slice(None) if among is None else among
        score, flagged = self.score[chosen], self.flagged[chosen]
        known = ~np.isnan(score)
        if not known.any():
            return np.zeros(len(score))
        sound = known & ~flagged
        median = np.median(score[sound if sound.any() else known])
        return np.where(known, np.where(flagged, np.maximum(score, median), score), median)

    def breach(self, host: int) -> Breach:
        """Return the worst breach on a refused host.

        :raises ValueError: when the host is not refused
        """
        if not self.excess[host] > 0:
            raise ValueError(f'host {self.cluster.hosts[host]} is not refused')
        if host in self._pending:
            return self._pending[host]
        row, response = int(self.worst[host]), int(self.worst_response[host])
        if row < 0:
            vm = NEWCOMER
            bound = float(self.lower[response, host])
            limit = bound - float(self.excess[host])
        else:
            vm = self.cluster.uuids[row]
            limits = self.cluster.resident_limits(row)
            limit = float(np.log(limits.max_slowdown) if response == 0
                          else -np.log(limits.min_iops_ratio))
            bound = limit + float(self.excess[host])
        sign = 1 if response == 0 else -1
        return Breach(self.cluster.hosts[host], vm, RESPONSES[response],
                      float(np.exp(sign * bound)), float(np.exp(sign * limit)))

    def note(self, hosts: IntArray, excess: FloatArray, response: int, rows: IntArray) -> None:
        """Remember on each host the worst of these excesses.

        :param hosts: (m,) indices, which may repeat
        :param excess: (m,)
        :param rows: (m,) indices of the residents concerned, -1 for the newcomer
        """
        relevant = np.flatnonzero(excess > 0)
        largest_first = relevant[np.argsort(-excess[relevant], kind='stable')]
        found, place = np.unique(hosts[largest_first], return_index=True)
        entries = largest_first[place]
        worse = excess[entries] > self.excess[found]
        found, entries = found[worse], entries[worse]
        self.excess[found] = excess[entries]
        self.worst[found] = rows[entries]
        self.worst_response[found] = response

    def forget(self, hosts: BoolArray, reason: int | None = None) -> None:
        """Make these hosts unknown: no score, no refusal."""
        if reason is not None:
            self.status[hosts] = reason
        self.score[hosts] = np.nan
        self.excess[hosts] = -np.inf
        self.exponent[:, hosts] = self.lower[:, hosts] = self.upper[:, hosts] = np.nan

    def replace(self, hosts: IntArray, other: Assessment) -> None:
        """Put in another assessment's hosts, in their order, for these."""
        self.status[hosts] = other.status
        for name in ('exponent', 'lower', 'upper'):
            getattr(self, name)[:, hosts] = getattr(other, name)
        self.score[hosts] = other.score
        self.excess[hosts] = other.excess
        self.flagged[hosts] = other.flagged
        for place in np.flatnonzero(other.refused):
            self._pending[int(hosts[place])] = other.breach(int(place))
