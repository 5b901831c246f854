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
from typing import Callable

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray, RESPONSES
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import newcomer as newcomers
from tracon_watcher import tie_breaking

NEWCOMER = 'newcomer'

# What a copy of an assessment has for itself.
_CHANGING = ('status', 'exponent', 'score', 'excess', 'elsewhere', 'excess_elsewhere',
             '_found', '_postponed', '_replaced')

#: Fills in lower and upper confidence bounds, (2, h) each.
Filling = Callable[[FloatArray, FloatArray], None]


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


@dataclasses.dataclass(frozen=True)
class Found:
    """Breaches of one response, (m,) each; a host may occur several times.

    :param response: 0 for slowdown, 1 for IOPS ratio
    :param hosts: indices of hosts
    :param rows: indices of residents, -1 for the newcomer
    :param excess: > 0, by how much the exponent rises beyond what the limit allows
    :param bound: lower confidence bounds of the exponents
    :param limit: the limits, as exponents
    :param elsewhere: whether the residents are on other hosts, with which a pool is shared
    """

    response: int
    hosts: IntArray
    rows: IntArray
    excess: FloatArray
    bound: FloatArray
    limit: FloatArray
    elsewhere: bool = False


@dataclasses.dataclass
class Assessment:
    """Arrays over the h hosts of a cluster.

    :param cluster: the state that was judged
    :param newcomer: the profile that was judged
    :param status: (h,) :class:`~tracon_watcher.placement.assessment.Status`
    :param exponent: (2, h) the newcomer's log slowdown and −log IOPS ratio; NaN where unknown,
        and in the second where it does too little I/O to have a ratio
    :param score: (h,) expected harm: the newcomer's exponents plus what it adds to residents';
        NaN where unknown
    :param excess: (h,) by how much the worst VM's exponent rises beyond what its limit allows;
        > 0 is a breach
    :param elsewhere: (h,) the part of the score that residents of other hosts have in it
    :param excess_elsewhere: (h,) as ``excess``, of those residents alone
    """

    cluster: cluster_module.ClusterState
    newcomer: newcomers.Profile
    status: IntArray
    exponent: FloatArray
    score: FloatArray
    excess: FloatArray
    elsewhere: FloatArray
    excess_elsewhere: FloatArray
    _found: list[Found] = dataclasses.field(default_factory=list)
    _postponed: list[Filling] = dataclasses.field(default_factory=list)
    _bounds: tuple[FloatArray, FloatArray] | None = None
    _replaced: dict[int, Breach] = dataclasses.field(default_factory=dict)

    @classmethod
    def unknown(cls, cluster: cluster_module.ClusterState, status: IntArray,
                newcomer: newcomers.Profile) -> Assessment:
        """Return an assessment into which nothing has been reckoned yet."""
        count = len(cluster.hosts)
        return cls(cluster, newcomer, status.copy(), np.full((2, count), np.nan),
                   np.zeros(count), np.full(count, -np.inf), np.zeros(count),
                   np.full(count, -np.inf))

    def copy(self) -> Assessment:
        """Return an equal one that can be changed apart from this."""
        bounds = self._bounds
        return dataclasses.replace(
            self, **{name: getattr(self, name).copy() for name in _CHANGING},
            _bounds=None if bounds is None else (bounds[0].copy(), bounds[1].copy()))

    @property
    def known(self) -> BoolArray:
        """(h,) hosts of which something is known."""
        return np.asarray(self.status == 0)

    @property
    def refused(self) -> BoolArray:
        """(h,) hosts on which somebody's limit would be breached."""
        return np.asarray(self.excess > 0)

    @property
    def lower(self) -> FloatArray:
        """(2, h) lower confidence bounds of the newcomer's exponents, NaN where those are."""
        return self._filled()[0]

    @property
    def upper(self) -> FloatArray:
        """(2, h) upper confidence bounds of the newcomer's exponents, NaN where those are."""
        return self._filled()[1]

    @property
    def slowdown(self) -> FloatArray:
        """(h,) the newcomer's predicted slowdown; NaN where unknown."""
        return np.asarray(np.exp(self.exponent[0]))

    @property
    def iops_ratio(self) -> FloatArray:
        """(h,) the newcomer's predicted IOPS ratio; NaN where unknown or undefined."""
        return np.asarray(np.exp(-self.exponent[1]))

    def ranked(self, among: IntArray) -> FloatArray:
        """Return the scores with each unknown one replaced by the median of the known.

        :param among: (n,) indices of a request's hosts
        :returns: (n,) scores; all 0 when none is known
        """
        score = self.score[among]
        return np.where(np.isnan(score), self.typical(among), score)

    def typical(self, among: IntArray) -> float:
        """Return what an unknown host ranks by: the median of the known ones.

        :param among: (n,) indices of a request's hosts
        :returns: 0 when none is known
        """
        score = self.score[among]
        known = score[~np.isnan(score)]
        return float(np.median(known)) if len(known) else 0.0

    def breach(self, host: int) -> Breach:
        """Return the worst breach on a refused host.

        :raises ValueError: when the host is not refused
        """
        if not self.excess[host] > 0:
            raise ValueError(f'host {self.cluster.hosts[host]} is not refused')
        if host in self._replaced:
            return self._replaced[host]
        for found in self._found:
            for entry in np.flatnonzero(found.hosts == host):
                # The worst, or the first that is worse by rounding alone.
                if not tie_breaking.less(found.excess[entry], self.excess[host]):
                    return self._breach(found, int(entry))
        raise ValueError(f'the breach on host {self.cluster.hosts[host]} was not noted')

    def breaches(self, host: int) -> list[Breach]:
        """Return all breaches on a host: of the newcomer, of each resident, and the worst of those
        on other hosts of its pool. Where a host was judged apart, the worst alone.
        """
        if host in self._replaced:
            return [self._replaced[host]]
        return [self._breach(found, int(entry)) for found in self._found
                for entry in np.flatnonzero((found.hosts == host) & (found.excess > 0))]

    def reasons(self, hosts: IntArray) -> dict[str, int]:
        """Count refused hosts by what is breached worst on each, such as ``resident slowdown``.

        :param hosts: indices
        """
        names = [f'{who} {response}' for who in (NEWCOMER, 'resident') for response in RESPONSES]
        kind = np.full(len(self.excess), -1, dtype=np.intp)
        for found in reversed(self._found):     # of equals the first, as breach() says
            worst = ~tie_breaking.less(found.excess, self.excess[found.hosts])
            kind[found.hosts[worst]] = (2 * (found.rows >= 0) + found.response)[worst]
        for host, breach in self._replaced.items():
            kind[host] = 2 * (breach.vm != NEWCOMER) + RESPONSES.index(breach.response)
        counts = np.bincount(kind[hosts][kind[hosts] >= 0], minlength=len(names))
        return {name: int(count) for name, count in zip(names, counts) if count}

    def _breach(self, found: Found, entry: int) -> Breach:
        row = int(found.rows[entry])
        sign = 1 if found.response == 0 else -1
        return Breach(self.cluster.hosts[found.hosts[entry]],
                      NEWCOMER if row < 0 else self.cluster.uuids[row], RESPONSES[found.response],
                      float(np.exp(sign * found.bound[entry])),
                      float(np.exp(sign * found.limit[entry])))

    def note(self, found: Found) -> None:
        """Remember breaches; each host keeps the worst."""
        np.maximum.at(self.excess, found.hosts, found.excess)
        if found.elsewhere:
            np.maximum.at(self.excess_elsewhere, found.hosts, found.excess)
        self._found.append(found)

    def add_elsewhere(self, hosts: BoolArray, score: FloatArray) -> None:
        """Add harm to residents of other hosts, (m,), to the score of these hosts."""
        self.score[hosts] += score
        self.elsewhere[hosts] += score

    def forget(self, hosts: BoolArray, reason: int | None = None) -> None:
        """Make these hosts unknown: no score, no refusal."""
        if reason is not None:
            self.status[hosts] = reason
        self.score[hosts] = np.nan
        self.excess[hosts] = -np.inf
        self.exponent[:, hosts] = np.nan

    def replace(self, hosts: IntArray, other: Assessment) -> None:
        """Put in another assessment's first hosts, in their order, for these.

        The other one knows nothing of hosts elsewhere; what is known of those stays.
        """
        first = slice(0, len(hosts))
        self.status[hosts] = other.status[first]
        self.exponent[:, hosts] = other.exponent[:, first]

        def fill(lower: FloatArray, upper: FloatArray) -> None:
            lower[:, hosts], upper[:, hosts] = other.lower[:, first], other.upper[:, first]

        self.postpone(fill)
        self.score[hosts] = other.score[first] + self.elsewhere[hosts]
        known = other.known[first]
        self.excess[hosts] = np.where(
            known, np.maximum(other.excess[first], self.excess_elsewhere[hosts]), -np.inf)
        for place, host in enumerate(hosts):
            self._replaced.pop(int(host), None)
            if known[place] and other.refused[place] and not tie_breaking.less(
                    other.excess[place], self.excess_elsewhere[host]):
                self._replaced[int(host)] = other.breach(place)

    def postpone(self, filling: Filling) -> None:
        """Remember how confidence bounds are found: a request that breaks no limit asks for none.

        :param filling: of (2, h) lower and (2, h) upper bounds, which it fills in
        """
        self._postponed.append(filling)

    def _filled(self) -> tuple[FloatArray, FloatArray]:
        if self._bounds is None:
            self._bounds = (np.full(self.exponent.shape, np.nan),
                            np.full(self.exponent.shape, np.nan))
        for filling in self._postponed:
            filling(*self._bounds)
        self._postponed.clear()
        for bound in self._bounds:
            bound[np.isnan(self.exponent)] = np.nan
        return self._bounds
