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

"""Assessment of hosts: what a newcomer would suffer on each, and do to the VMs there."""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import Callable, Mapping, Sequence

import numpy as np

from tracon_watcher import characteristics
from tracon_watcher.characteristics import BoolArray, FloatArray, IO, IntArray, RESPONSES
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import queues
from tracon_watcher.queueing import network
from tracon_watcher import tie_breaking

NEWCOMER = 'newcomer'
SolvedHosts = network.SolvedHosts

# What a copy of an assessment has for itself.
_CHANGING = ('status', 'log_response', 'score', 'overshoot', 'remote', 'remote_overshoot',
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
class BreachTable:
    """Breaches of one response, (m,) each; a host may occur several times.

    :param response: 0 for slowdown, 1 for IOPS ratio
    :param hosts: indices of hosts
    :param rows: indices of residents, -1 for the newcomer
    :param overshoot: > 0, by how much the log response rises beyond what the limit allows
    :param bound: lower confidence bounds of the log responses
    :param limit: the limits, as log responses
    :param remote: whether the residents are on other hosts, with which a pool is shared
    """

    response: int
    hosts: IntArray
    rows: IntArray
    overshoot: FloatArray
    bound: FloatArray
    limit: FloatArray
    remote: bool = False


@dataclasses.dataclass
class Assessment:
    """Arrays over the h hosts of a cluster.

    :param cluster: the state that was judged
    :param newcomer: the profile that was judged
    :param status: (h,) :class:`~tracon_watcher.placement.assessment.Status`
    :param log_response: (2, h) the newcomer's log slowdown and −log IOPS ratio; NaN where unknown,
        and in the second where it does too little I/O to have a ratio
    :param score: (h,) expected harm: the newcomer's log responses plus what it adds to residents',
        without those of background work; NaN where unknown
    :param overshoot: (h,) by how much the worst VM's log response rises beyond what its limit
        allows; > 0 is a breach
    :param remote: (h,) the part of the score that residents of other hosts have in it
    :param remote_overshoot: (h,) as ``overshoot``, of those residents alone
    """

    cluster: cluster_module.ClusterState
    newcomer: newcomer_profiles.Profile
    status: IntArray
    log_response: FloatArray
    score: FloatArray
    overshoot: FloatArray
    remote: FloatArray
    remote_overshoot: FloatArray
    _found: list[BreachTable] = dataclasses.field(default_factory=list)
    _postponed: list[Filling] = dataclasses.field(default_factory=list)
    _bounds: tuple[FloatArray, FloatArray] | None = None
    _replaced: dict[int, Breach] = dataclasses.field(default_factory=dict)

    @classmethod
    def unknown(cls, cluster: cluster_module.ClusterState, status: IntArray,
                newcomer: newcomer_profiles.Profile) -> Assessment:
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
        return np.asarray(self.overshoot > 0)

    @property
    def lower(self) -> FloatArray:
        """(2, h) lower confidence bounds of the newcomer's log responses, NaN where those are."""
        return self._filled()[0]

    @property
    def upper(self) -> FloatArray:
        """(2, h) upper confidence bounds of the newcomer's log responses, NaN where those are."""
        return self._filled()[1]

    @property
    def slowdown(self) -> FloatArray:
        """(h,) the newcomer's predicted slowdown; NaN where unknown."""
        return np.asarray(np.exp(self.log_response[0]))

    @property
    def iops_ratio(self) -> FloatArray:
        """(h,) the newcomer's predicted IOPS ratio; NaN where unknown or undefined."""
        return np.asarray(np.exp(-self.log_response[1]))

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
        if not self.overshoot[host] > 0:
            raise ValueError(f'host {self.cluster.hosts[host]} is not refused')
        if host in self._replaced:
            return self._replaced[host]
        for found in self._found:
            for entry in np.flatnonzero(found.hosts == host):
                # The worst, or the first that is worse by rounding alone.
                if not tie_breaking.less(found.overshoot[entry], self.overshoot[host]):
                    return self._breach(found, int(entry))
        raise ValueError(f'the breach on host {self.cluster.hosts[host]} was not noted')

    def breaches(self, host: int) -> list[Breach]:
        """Return all breaches on a host: of the newcomer, of each resident, and the worst of those
        on other hosts of its pool. Where a host was judged apart, the worst alone.
        """
        if host in self._replaced:
            return [self._replaced[host]]
        return [self._breach(found, int(entry)) for found in self._found
                for entry in np.flatnonzero((found.hosts == host) & (found.overshoot > 0))]

    def reasons(self, hosts: IntArray) -> dict[str, int]:
        """Count refused hosts by what is breached worst on each, such as ``resident slowdown``.

        :param hosts: indices
        """
        names = [f'{who} {response}' for who in (NEWCOMER, 'resident') for response in RESPONSES]
        kind = np.full(len(self.overshoot), -1, dtype=np.intp)
        for found in reversed(self._found):     # of equals the first, as breach() says
            worst = ~tie_breaking.less(found.overshoot, self.overshoot[found.hosts])
            kind[found.hosts[worst]] = (2 * (found.rows >= 0) + found.response)[worst]
        for host, breach in self._replaced.items():
            kind[host] = 2 * (breach.vm != NEWCOMER) + RESPONSES.index(breach.response)
        counts = np.bincount(kind[hosts][kind[hosts] >= 0], minlength=len(names))
        return {name: int(count) for name, count in zip(names, counts) if count}

    def _breach(self, found: BreachTable, entry: int) -> Breach:
        row = int(found.rows[entry])
        sign = 1 if found.response == 0 else -1
        return Breach(self.cluster.hosts[found.hosts[entry]],
                      NEWCOMER if row < 0 else self.cluster.uuids[row], RESPONSES[found.response],
                      float(np.exp(sign * found.bound[entry])),
                      float(np.exp(sign * found.limit[entry])))

    def note(self, found: BreachTable) -> None:
        """Remember breaches; each host keeps the worst."""
        np.maximum.at(self.overshoot, found.hosts, found.overshoot)
        if found.remote:
            np.maximum.at(self.remote_overshoot, found.hosts, found.overshoot)
        self._found.append(found)

    def add_remote(self, hosts: BoolArray, score: FloatArray) -> None:
        """Add harm to residents of other hosts, (m,), to the score of these hosts."""
        self.score[hosts] += score
        self.remote[hosts] += score

    def forget(self, hosts: BoolArray, reason: int | None = None) -> None:
        """Make these hosts unknown: no score, no refusal."""
        if reason is not None:
            self.status[hosts] = reason
        self.score[hosts] = np.nan
        self.overshoot[hosts] = -np.inf
        self.log_response[:, hosts] = np.nan

    def replace(self, hosts: IntArray, other: Assessment) -> None:
        """Put in another assessment's first hosts, in their order, for these.

        The other one knows nothing of hosts elsewhere; what is known of those stays.
        """
        first = slice(0, len(hosts))
        self.status[hosts] = other.status[first]
        self.log_response[:, hosts] = other.log_response[:, first]

        def fill(lower: FloatArray, upper: FloatArray) -> None:
            lower[:, hosts], upper[:, hosts] = other.lower[:, first], other.upper[:, first]

        self.postpone(fill)
        self.score[hosts] = other.score[first] + self.remote[hosts]
        known = other.known[first]
        self.overshoot[hosts] = np.where(
            known, np.maximum(other.overshoot[first], self.remote_overshoot[hosts]), -np.inf)
        for place, host in enumerate(hosts):
            self._replaced.pop(int(host), None)
            if known[place] and other.refused[place] and not tie_breaking.less(
                    other.overshoot[place], self.remote_overshoot[host]):
                self._replaced[int(host)] = other.breach(place)

    def postpone(self, filling: Filling) -> None:
        """Remember how confidence bounds are found: a request that breaks no limit asks for none.

        :param filling: of (2, h) lower and (2, h) upper bounds, which it fills in
        """
        self._postponed.append(filling)

    def _filled(self) -> tuple[FloatArray, FloatArray]:
        if self._bounds is None:
            self._bounds = (np.full(self.log_response.shape, np.nan),
                            np.full(self.log_response.shape, np.nan))
        for filling in self._postponed:
            filling(*self._bounds)
        self._postponed.clear()
        for bound in self._bounds:
            bound[np.isnan(self.log_response)] = np.nan
        return self._bounds


#: Of a rise of a log response, so much may be due to where the law's rounds end.
_ROUNDING = 5e-3
#: Seconds by which a time may be ahead of a clock.
AHEAD = 120.0


class Status(enum.IntEnum):
    """Whether a host's assessment is known, and if not, why."""

    KNOWN = 0
    UNKNOWN_CORES = 1
    STALE = 2
    UNKNOWN_PROFILE = 3
    UNKNOWN_STORAGE = 4
    UNKNOWN_HOST = 5
    #: Predictions and measurements differ too much on hosts of this type.
    DRIFTED = 6


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a breach is judged.

    :param confidence: of the one-sided lower bound that must cross a limit
    :param margin: by how much worse, as a share, a VM in breach already must get
    :param maximum_age: seconds after which a host's data is stale, thus unknown
    :param learnt: by host type, what slowdowns that were observed have taught the law of
        queueing; '' for hosts of no type
    :param pools: by name, what is known of storage backends that hosts share
    """

    confidence: float = 0.8
    margin: float = 0.05
    maximum_age: float = math.inf
    learnt: Mapping[str, queues.LearnedParameters] = dataclasses.field(default_factory=dict)
    pools: Mapping[str, queues.Pool] = dataclasses.field(default_factory=dict)

    @property
    def least_rise(self) -> float:
        """By how much the log response of a VM in breach must rise for it to count."""
        return max(math.log1p(self.margin), _ROUNDING)


class Assessor:
    """A cluster, prepared for requests.

    :ivar status: (h,) :class:`Status`, without staleness
    :ivar law: the hosts that are known, judged by the law of queueing
    :ivar solved: hosts that are not solved again
    """

    def __init__(self, cluster: cluster_module.ClusterState, settings: Settings = Settings(),
                 solved: SolvedHosts | None = None) -> None:
        self.cluster = cluster
        self.settings = settings
        self.solved = solved
        self.status = self._host_status()
        self.law = queues.Queues(cluster, np.flatnonzero(self.status == Status.KNOWN),
                                 settings.learnt, settings.pools, solved)

    def of(self, cluster: cluster_module.ClusterState) -> Assessor:
        """Return what judges another state of these hosts by the same settings."""
        return Assessor(cluster, self.settings, self.solved)

    def assess(self, newcomer: newcomer_profiles.Profile,
               limits: Sequence[limits_module.Limits] | limits_module.Limits = limits_module.NONE,
               now: float | None = None, pool: int = -1,
               remote: bool = True, felt: bool = True) -> Assessment:
        """Judge every host for one newcomer.

        On each host it shares all it does with those on the same storage backend, and the CPU
        with the others. Its storage is the host's own, unless its profile is set apart or it
        stays on a pool.

        :param newcomer: its expected profile
        :param limits: its limits, the same everywhere or one for each host; what background work
            would suffer itself is in no score
        :param now: seconds since the epoch, for staleness; None: nothing is stale
        :param pool: index of a storage backend that it is on and stays on, whichever host it
            comes to, since it is a resident of one; -1 for none
        :param remote: whether residents of other hosts on the same storage count too
        :param felt: whether its I/O is among that of this state on the pool already
        :returns: arrays over the h hosts
        """
        count = len(self.cluster.hosts)
        result = Assessment.unknown(self.cluster, self.status, newcomer)
        stale = np.zeros(count, dtype=bool)
        if now is not None:
            stale |= self.stale(now)
        if newcomer.known:
            # Where its I/O is felt already, it is so by the same VMs of other hosts.
            remote &= not newcomer.apart and (pool < 0 or not felt)
            coming = queues.Newcomer(newcomer, pool, pool >= 0 and felt)
            background = (limits if isinstance(limits, limits_module.Limits) else
                          limits[0] if limits else limits_module.NONE).background
            self._assess_hosts(coming, _limit_exponents(limits, count), result, background)
            if remote:
                self._assess_pools(coming, stale, result)
        else:
            result.forget(result.known, Status.UNKNOWN_PROFILE)
        result.forget(stale & result.known, Status.STALE)
        result.forget(~result.known)
        return result

    def stale(self, now: float) -> BoolArray:
        """Return which hosts' data are too old at ``now``, in seconds since the epoch, (h,).

        Data with a time in the future has no known age.
        """
        age = now - self.cluster.updated_at
        return np.asarray((age > self.settings.maximum_age) | (age < -AHEAD))

    def log_responses(self) -> FloatArray:
        """Return what residents suffer now, (2, n): log slowdown and −log IOPS ratio.

        NaN where unknown, and in the second where the VM does too little I/O to have a ratio.
        """
        found = np.full((2, len(self.cluster.uuids)), np.nan)
        found[:, self.law.residents] = self.law.log_response
        return found

    def harm(self) -> FloatArray:
        """Return what counts of :meth:`log_responses` as harm, (2, n); 0 where unknown.

        What background work suffers counts nothing.
        """
        return np.where(self.cluster.background, 0.0, np.nan_to_num(self.log_responses()))

    def breaches(self) -> BoolArray:
        """Return which residents breach a limit now, by the lower confidence bound, (n,)."""
        return np.asarray(self.breaches_by_response().any(axis=0))

    def breaches_by_response(self) -> BoolArray:
        """Return which limits are breached now: of slowdown and of the IOPS ratio, (2, n)."""
        result = np.zeros((2, len(self.cluster.uuids)), dtype=bool)
        result[:, self.law.residents] = self._breached()
        return result

    def _breached(self) -> BoolArray:
        law = self.law
        return np.asarray(law.bound(1 - self.settings.confidence) > law.limit)

    def _assess_hosts(self, coming: queues.Newcomer, limits: tuple[FloatArray, FloatArray],
                      result: Assessment, background: bool) -> None:
        """Judge the newcomer, and those that are on its host."""
        law = self.law
        confidence, newcomer = self.settings.confidence, coming.newcomer
        own, after = law.beside(coming)
        rise = after - law.log_response
        result.score[law.hosts] += law.harm(rise)
        spread = law.spread(coming, own)

        def bounds(level: float) -> FloatArray:
            return law.newcomer_bound(level, coming, own, spread)
        responses = [0]
        if newcomer.mean[IO].sum() >= characteristics.MINIMUM_IOPS:
            responses.append(1)
        for index in responses:
            result.log_response[index, law.hosts] = own[index]
            if not background:
                result.score[law.hosts] += own[index]
            lower = bounds(1 - confidence)[index]
            limit = limits[index][law.hosts]
            over = np.flatnonzero(lower > limit)
            result.note(BreachTable(index, law.hosts[over], np.full(len(over), -1),
                                    lower[over] - limit[over], lower[over], limit[over]))

        def fill(lower: FloatArray, upper: FloatArray) -> None:
            for found, level in ((lower, 1 - confidence), (upper, confidence)):
                found[:, law.hosts] = bounds(level)
        result.postpone(fill)
        allowance = self._allowance()
        if not (rise > allowance).any():
            return
        if newcomer.deviation.any():
            # What is in breach is so beside the least that the newcomer may well demand.
            after = law.harmed_for_sure(
                coming, confidence, np.flatnonzero((rise > allowance).any(axis=0)))
            rise = after - law.log_response
        bound = law.bound(1 - confidence, after)
        for index in range(2):
            rows = np.flatnonzero(rise[index] > allowance[index])
            result.note(BreachTable(
                index, law.host_of(rows), law.residents[rows], (rise - allowance)[index, rows],
                bound[index, rows], law.limit[index, rows]))

    def _allowance(self) -> FloatArray:
        """Return by how much log responses of residents may rise without a breach, (2, n)."""
        law = self.law
        found: FloatArray = np.where(
            self._breached(), self.settings.least_rise,
            law.allowed(self.settings.confidence) - law.log_response)
        return found

    def _assess_pools(self, coming: queues.Newcomer, stale: BoolArray,
                      result: Assessment) -> None:
        """Add what a newcomer's I/O does to residents of other hosts.

        :param stale: (h,) hosts whose residents are not known any more
        """
        cluster, law = self.cluster, self.law
        rise = law.rise_on_pools(coming.newcomer.mean)
        rise[:, stale[cluster.host[law.residents]]] = 0.0
        if not np.nan_to_num(rise).any():
            return
        storage = coming.domain(cluster.host_io_domain)
        uses_pool = storage >= 0
        own = cluster.host[law.residents]
        harm = law.counted(rise).sum(axis=0)
        everywhere: FloatArray = np.bincount(
            law.domain + 1, harm, len(cluster.io_domains) + 1)[1:].astype(float)
        # On the newcomer's own host they are its neighbours, and were counted as such.
        at_home = np.bincount(own, np.where(law.domain == storage[own], harm, 0.0),
                              len(cluster.hosts))
        result.add_remote(uses_pool, everywhere[storage[uses_pool]] - at_home[uses_pool])
        confidence, allowance = self.settings.confidence, self._allowance()
        if not (rise > allowance).any():
            return
        # What is in breach is so beside the least that the newcomer may well demand.
        rise = law.rise_on_pools(coming.least(confidence))
        rise[:, stale[cluster.host[law.residents]]] = 0.0
        bound = law.bound(1 - confidence, law.log_response + rise)
        for index in range(2):
            rows = np.flatnonzero(rise[index] > allowance[index])
            self._note_remote(index, storage, law.residents[rows], (
                (rise - allowance)[index, rows], bound[index, rows], law.limit[index, rows]),
                result)

    def _host_status(self) -> IntArray:
        cluster = self.cluster
        status = np.full(len(cluster.hosts), int(Status.KNOWN), dtype=np.intp)
        status[cluster.host[~characteristics.is_known(cluster.profiles)]] = Status.UNKNOWN_PROFILE
        status[cluster.host_io_domain < 0] = Status.UNKNOWN_STORAGE
        status[cluster.host[cluster.io_domain < 0]] = Status.UNKNOWN_STORAGE
        status[np.isnan(cluster.cores)] = Status.UNKNOWN_CORES
        learnt = self.settings.learnt
        drifted = {name for name, one in learnt.items() if one.drifted}
        gone = np.array([(name or '') in drifted for name in cluster.host_type], dtype=bool)
        status[gone & (status == Status.KNOWN)] = Status.DRIFTED
        return status

    def _note_remote(self, index: int, storage: IntArray, residents: IntArray,
                     breach: tuple[FloatArray, FloatArray, FloatArray],
                     result: Assessment) -> None:
        """Note for each host of a pool the worst breach on the pool's other hosts.

        :param storage: (h,) of the newcomer on each host
        :param residents: (m,) their rows
        :param breach: of each its excess, bound and limit
        """
        cluster, (overshoot, bound, limit) = self.cluster, breach
        for domain in np.unique(cluster.io_domain[residents]):
            users = np.flatnonzero(storage == domain)
            left = np.flatnonzero((cluster.io_domain[residents] == domain) & (overshoot > 0))
            # The worst counts for all hosts but its own; there, the worst of another host does.
            for _again in range(2):
                if not len(left) or not len(users):
                    break
                worst = left[tie_breaking.argmax(overshoot[left])]
                own = cluster.host[residents[worst]]
                hosts = users[users != own]
                same = np.ones(len(hosts))
                result.note(BreachTable(
                    index, hosts, np.full(len(hosts), residents[worst]), overshoot[worst] * same,
                    bound[worst] * same, limit[worst] * same, True))
                users = users[users == own]
                left = left[cluster.host[residents[left]] != own]


def _limit_exponents(limits: Sequence[limits_module.Limits] | limits_module.Limits,
                     count: int) -> tuple[FloatArray, FloatArray]:
    if isinstance(limits, limits_module.Limits):
        slow = np.full(count, limits.max_slowdown)
        ratio = np.full(count, limits.min_iops_ratio)
    else:
        slow = np.array([one.max_slowdown for one in limits], dtype=np.float64)
        ratio = np.array([one.min_iops_ratio for one in limits], dtype=np.float64)
    with np.errstate(divide='ignore'):
        return np.log(slow), -np.log(ratio)
