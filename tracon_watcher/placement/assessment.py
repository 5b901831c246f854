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

"""The one judgement: what a newcomer would suffer on each host, and do to those already there.

Vectorised over hosts and residents. All that does not depend on the newcomer is prepared once a
snapshot (:class:`Assessor`); a request then costs a few passes over arrays
(:meth:`Assessor.assess`), with neither model search nor input or output.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import statistics
from typing import Callable, Mapping, Sequence

import numpy as np

from tracon_watcher import characteristics
from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray, IO
from tracon_watcher.placement import bounds
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import encounter
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer as newcomers
from tracon_watcher.placement import queues
from tracon_watcher.placement import residents
from tracon_watcher.placement import verdict
from tracon_watcher.prediction import pairwise
from tracon_watcher import tie_breaking


class Status(enum.IntEnum):
    """Whether a host's assessment is known, and if not, why."""

    KNOWN = 0
    NO_MODEL = 1
    STALE = 2
    UNKNOWN_PROFILE = 3
    UNKNOWN_STORAGE = 4
    OUTSIDE_HULL = 5
    UNKNOWN_HOST = 6
    #: Measurements and predictions have parted ways on hosts of this type.
    DRIFTED = 7


@dataclasses.dataclass(frozen=True)
class Models:
    """The two models of one host type."""

    slowdown: pairwise.PairwiseModel
    iops_ratio: pairwise.PairwiseModel

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter((self.slowdown, self.iops_ratio))


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a breach is judged.

    :param confidence: of the one-sided lower bound that must cross a limit
    :param margin: by how much worse, as a share, a VM in breach already must get
    :param maximum_age: seconds after which a host's data is stale, thus unknown
    :param left_alone: types of hosts that are not judged without a model either
    :param learnt: by host type, what slowdowns that were observed have taught the law of
        queueing; '' for hosts of no type
    :param pools: by name, what is known of storage backends that hosts share
    """

    confidence: float = 0.8
    margin: float = 0.05
    maximum_age: float = math.inf
    left_alone: frozenset[str] = frozenset()
    learnt: Mapping[str, queues.Learnt] = dataclasses.field(default_factory=dict)
    pools: Mapping[str, queues.Pool] = dataclasses.field(default_factory=dict)


class Assessor:
    """A cluster with its models, prepared for requests.

    :param cluster: the state
    :param models: by host type
    :param settings: how a breach is judged
    """

    def __init__(self, cluster: cluster_module.ClusterState, models: Mapping[str, Models],
                 settings: Settings = Settings()) -> None:
        self.cluster = cluster
        self.models = models
        self.settings = settings
        self.status = self._host_status()
        by_law = queues.judged(cluster, (self.status == Status.NO_MODEL) & np.array(
            [name not in settings.left_alone for name in cluster.host_type], dtype=bool))
        #: Hosts without a model, None where there are none that can be judged without.
        self.queues = queues.Queues(
            cluster, by_law, settings.learnt, settings.pools) if len(by_law) else None
        self.status[by_law] = Status.KNOWN
        shared = residents.shared_domains(cluster)
        self.groups = tuple(
            residents.group(cluster, name, tuple(models[name]), shared, settings.confidence,
                            settings.margin)
            for name in sorted({name for name in cluster.host_type
                                if name is not None and name in models}))
        for group in self.groups:
            for response in group.responses:
                known = self.status[response.far] == Status.KNOWN
                self.status[response.far[known]] = Status.OUTSIDE_HULL

    def assess(self, newcomer: newcomers.Profile,
               limits: Sequence[limits_module.Limits] | limits_module.Limits = limits_module.NONE,
               now: float | None = None, pool: int = -1,
               elsewhere: bool = True, felt: bool = True) -> verdict.Assessment:
        """Judge every host for one newcomer.

        On each host it shares all it does with those on the same storage backend, and the CPU
        with the others. Its storage is the host's own, unless its profile is set apart or it
        stays on a pool.

        :param newcomer: its expected profile
        :param limits: its limits, the same everywhere or one for each host
        :param now: seconds since the epoch, for staleness; None: nothing is stale
        :param pool: index of a storage backend that it is on and stays on, whichever host it
            comes to, since it is a resident of one; -1 for none
        :param elsewhere: whether residents of other hosts on the same storage count too
        :param felt: whether its I/O is among that of this state on the pool already
        :returns: arrays over the h hosts
        """
        count = len(self.cluster.hosts)
        slow_limit, ratio_limit = _limit_exponents(limits, count)
        result = verdict.Assessment.unknown(self.cluster, self.status, newcomer)
        stale = np.zeros(count, dtype=bool)
        if now is not None:
            stale |= self.stale(now)
        if newcomer.known:
            # Where its I/O is felt already, it is so by the same VMs of other hosts.
            elsewhere &= not newcomer.apart and (pool < 0 or not felt)
            for group in self.groups:
                self._assess_group(group, newcomer, (slow_limit, ratio_limit), pool, felt, result)
                if elsewhere and len(group.pooled):
                    self._assess_pool(group, newcomer, pool, stale, result)
            if self.queues is not None:
                coming = queues.Coming(newcomer, pool, pool >= 0 and felt)
                self._assess_queues(self.queues, coming, (slow_limit, ratio_limit), result)
                if elsewhere:
                    self._assess_pools(self.queues, coming, stale, result)
        else:
            result.forget(result.known, Status.UNKNOWN_PROFILE)
        result.forget(stale & result.known, Status.STALE)
        result.forget(~result.known)
        return result

    def of_host(self, host: int) -> tuple[residents.Group, IntArray] | None:
        """Return a host's group and the rows of its residents in it; None without a model."""
        for group in self.groups:
            place = int(np.searchsorted(group.hosts, host))
            if place < len(group.hosts) and group.hosts[place] == host:
                return group, np.arange(group.first[place], group.first[place + 1])
        return None

    def stale(self, now: float) -> BoolArray:
        """Return which hosts' data are too old at ``now``, in seconds since the epoch, (h,)."""
        return np.asarray(self.cluster.updated_at < now - self.settings.maximum_age)

    def exponents(self) -> tuple[FloatArray, FloatArray]:
        """Return what residents suffer now: log slowdown and −log IOPS ratio, (n,) each.

        NaN where unknown, and in the second where the VM does too little I/O to have a ratio.
        """
        n = len(self.cluster.uuids)
        slow, ratio = np.full(n, np.nan), np.full(n, np.nan)
        for group in self.groups:
            for out, response in zip((slow, ratio), group.responses):
                out[group.residents] = np.where(response.counted, response.exponent, np.nan)
        if self.queues is not None:
            slow[self.queues.residents], ratio[self.queues.residents] = self.queues.exponent
        return slow, ratio

    def breaches(self) -> BoolArray:
        """Return which residents breach a limit now, by the lower confidence bound, (n,)."""
        return np.asarray(self.breaches_by_response().any(axis=0))

    def breaches_by_response(self) -> BoolArray:
        """Return which limits are breached now: of slowdown and of the IOPS ratio, (2, n)."""
        result = np.zeros((2, len(self.cluster.uuids)), dtype=bool)
        for group in self.groups:
            for index, response in enumerate(group.responses):
                result[index, group.residents[response.limited[response.breached]]] = True
        if self.queues is not None:
            result[:, self.queues.residents] = self._breached(self.queues)
        return result

    def lower(self, model: pairwise.PairwiseModel, exponent: FloatArray,
              spread: FloatArray | float = 0.0) -> FloatArray:
        """Return the one-sided lower confidence bound of exponents, (n,).

        :param spread: (n,) standard deviation due to an uncertain profile, in exponents
        """
        return bounds.lower(model, exponent, spread, self.settings.confidence)

    def upper(self, model: pairwise.PairwiseModel, exponent: FloatArray,
              spread: FloatArray | float = 0.0) -> FloatArray:
        """Return the one-sided upper confidence bound of exponents, (n,)."""
        return bounds.upper(model, exponent, spread, self.settings.confidence)

    def _breached(self, law: queues.Queues) -> BoolArray:
        """Return which limits of residents of hosts without a model are breached, (2, n)."""
        return np.asarray(law.bound(1 - self.settings.confidence) > law.limit)

    def _assess_queues(self, law: queues.Queues, coming: queues.Coming,
                       limits: tuple[FloatArray, FloatArray],
                       result: verdict.Assessment) -> None:
        """Judge the hosts without a model."""
        confidence, newcomer = self.settings.confidence, coming.newcomer
        own, after = law.beside(coming)
        rise = after - law.exponent
        result.score[law.hosts] += law.harm(rise)
        spread = law.spread(coming, own)

        def bounds_of(level: float) -> FloatArray:
            return queues.bound(own, level, law.law_spread, spread)
        responses = [0]
        if newcomer.mean[IO].sum() >= characteristics.MINIMUM_IOPS:
            responses.append(1)
        for index in responses:
            result.exponent[index, law.hosts] = own[index]
            result.score[law.hosts] += own[index]
            lower = bounds_of(1 - confidence)[index]
            limit = limits[index][law.hosts]
            over = np.flatnonzero(lower > limit)
            result.note(verdict.Found(index, law.hosts[over], np.full(len(over), -1),
                                      lower[over] - limit[over], lower[over], limit[over]))

        def fill(lower: FloatArray, upper: FloatArray) -> None:
            for found, level in ((lower, 1 - confidence), (upper, confidence)):
                found[:, law.hosts] = bounds_of(level)
        result.postpone(fill)
        allowance = self._allowance(law)
        if not (rise > allowance).any():
            return
        if newcomer.deviation.any():
            # What is in breach is so beside the least that the newcomer may well demand.
            after = law.harmed_for_sure(
                coming, confidence, np.flatnonzero((rise > allowance).any(axis=0)))
            rise = after - law.exponent
        bound = law.bound(1 - confidence, after)
        for index, row in zip(*np.nonzero(rise > allowance)):
            rows = np.array([row])
            result.note(verdict.Found(
                int(index), law.host_of(rows), law.residents[rows],
                (rise - allowance)[index, rows],
                bound[index, rows], law.limit[index, rows]))

    def _allowance(self, law: queues.Queues) -> FloatArray:
        """Return by how much exponents of residents may rise without a breach, (2, n)."""
        found: FloatArray = np.where(
            self._breached(law), residents.least_rise(self.settings.margin),
            queues.allowed(law.limit, self.settings.confidence, law.law_spread[law.place])
            - law.exponent)
        return found

    def _assess_pools(self, law: queues.Queues, coming: queues.Coming, stale: BoolArray,
                      result: verdict.Assessment) -> None:
        """Add what a newcomer's I/O does to residents of other hosts without a model.

        :param stale: (h,) hosts whose residents are not known any more
        """
        cluster = self.cluster
        rise = law.rise_on_pools(coming.newcomer.mean)
        rise[:, stale[cluster.host[law.residents]]] = 0.0
        if not np.nan_to_num(rise).any():
            return
        storage = coming.domain(cluster.host_io_domain)
        uses_pool = storage >= 0
        own = cluster.host[law.residents]
        harm = np.nan_to_num(rise).sum(axis=0)
        everywhere: FloatArray = np.bincount(
            law.domain + 1, harm, len(cluster.io_domains) + 1)[1:].astype(float)
        # On the newcomer's own host they are its neighbours, and were counted as such.
        at_home = np.bincount(own, np.where(law.domain == storage[own], harm, 0.0),
                              len(cluster.hosts))
        result.add_elsewhere(uses_pool, everywhere[storage[uses_pool]] - at_home[uses_pool])
        confidence, allowance = self.settings.confidence, self._allowance(law)
        if not (rise > allowance).any():
            return
        # What is in breach is so beside the least that the newcomer may well demand.
        rise = law.rise_on_pools(coming.least(confidence))
        bound = law.bound(1 - confidence, law.exponent + rise)
        for index in range(2):
            rows = np.flatnonzero(rise[index] > allowance[index])
            self._note_elsewhere(index, storage, law.residents[rows], (
                (rise - allowance)[index, rows], bound[index, rows], law.limit[index, rows]),
                result)

    def _host_status(self) -> IntArray:
        cluster = self.cluster
        status = np.full(len(cluster.hosts), int(Status.KNOWN), dtype=np.intp)
        lost = np.isnan(cluster.profiles).any(axis=1) | np.isnan(cluster.io_beyond).any(axis=1)
        status[cluster.host[lost]] = Status.UNKNOWN_PROFILE
        status[np.isnan(cluster.host_io_beyond).any(axis=1)] = Status.UNKNOWN_PROFILE
        status[cluster.host_io_domain < 0] = Status.UNKNOWN_STORAGE
        status[cluster.host[cluster.io_domain < 0]] = Status.UNKNOWN_STORAGE
        without = np.array([name not in self.models for name in cluster.host_type], dtype=bool)
        status[without] = Status.NO_MODEL
        return status

    def _assess_group(self, group: residents.Group, newcomer: newcomers.Profile,
                      limits: tuple[FloatArray, FloatArray], pool: int, felt: bool,
                      result: verdict.Assessment) -> None:
        does_io = newcomer.mean[IO].sum() >= characteristics.MINIMUM_IOPS
        for index, response in enumerate(group.responses):
            profile = newcomer.mean[None, :]
            meeting = encounter.Encounter(self.cluster, group, response, pool, felt,
                                          newcomer.apart, newcomer.own_wait)
            if meeting.storage is not None:
                lost = group.hosts[np.isnan(meeting.io_beyond[group.hosts]).any(axis=1)]
                result.status[lost[result.known[lost]]] = Status.UNKNOWN_PROFILE
            # Without I/O it is no target of the second response, only a neighbour of targets.
            target = index == 0 or does_io
            if (response.model.outside if target else response.model.beyond)(profile)[0]:
                result.clamped[group.hosts] = True
            if target:
                if response.model.far(profile)[0]:
                    known = group.hosts[result.status[group.hosts] == Status.KNOWN]
                    result.status[known] = Status.OUTSIDE_HULL
                exponent = meeting.newcomer(newcomer.mean)
                result.exponent[index, group.hosts] = exponent
                result.score[group.hosts] += exponent
                result.postpone(functools.partial(
                    self._interval, meeting, index, newcomer, exponent))
                self._assess_newcomer(meeting, index, newcomer, exponent,
                                      limits[index][group.hosts], result)
            if len(group.residents):
                self._assess_residents(meeting, index, newcomer, result)

    def _assess_newcomer(self, meeting: encounter.Encounter, index: int,
                         newcomer: newcomers.Profile, exponent: FloatArray, limit: FloatArray,
                         result: verdict.Assessment) -> None:
        # What is within the limit without a spread is so with one, which only lowers the bound.
        over = np.flatnonzero(self.lower(meeting.model, exponent) > limit)
        if not len(over):
            return
        spread = np.hypot(encounter.spread(meeting.newcomer_on(over), newcomer, exponent[over]),
                          meeting.doubt(newcomer.mean, exponent[over], over))
        lower = self.lower(meeting.model, exponent[over], spread)
        over, lower = over[lower > limit[over]], lower[lower > limit[over]]
        result.note(verdict.Found(index, meeting.group.hosts[over], np.full(len(over), -1),
                                  lower - limit[over], lower, limit[over]))

    def _interval(self, meeting: encounter.Encounter, index: int, newcomer: newcomers.Profile,
                  exponent: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
        """Fill in the newcomer's confidence bounds, (2, h) each, when somebody asks for them."""
        hosts = meeting.group.hosts
        spread = np.hypot(encounter.spread(meeting.newcomer, newcomer, exponent),
                          meeting.doubt(newcomer.mean, exponent))
        # Beside nobody there is no interference, which needs no model.
        somebody = (np.diff(meeting.group.first) > 0) | (
            meeting.io_beyond[hosts] > 0).any(axis=1)
        for bounds_of, found in ((self.lower, lower), (self.upper, upper)):
            found[index, hosts] = np.where(
                somebody, bounds_of(meeting.model, exponent, spread), 0.0)

    def _assess_residents(self, meeting: encounter.Encounter, index: int,
                          newcomer: newcomers.Profile, result: verdict.Assessment) -> None:
        """Add what the newcomer does to the residents of its own host."""
        group, response = meeting.group, meeting.response
        result.flagged[response.flagged] = True
        harm, rises = meeting.harm(newcomer.mean)
        result.score[group.hosts] += harm
        over = np.flatnonzero(rises > response.allowance)
        if not len(over):
            return
        rows = response.limited[over]
        excess, bound = self._excess(response, over, rises[over], newcomer,
                                     meeting.residents_of(rows))
        keep = excess > 0
        result.note(verdict.Found(
            index, group.hosts[group.place[rows[keep]]], group.residents[rows[keep]],
            excess[keep], bound[keep], response.limit[over[keep]]))

    def _assess_pool(self, group: residents.Group, newcomer: newcomers.Profile, pool: int,
                     stale: BoolArray, result: verdict.Assessment) -> None:
        """Add what its I/O does to residents of other hosts whose storage is the same pool.

        :param pool: on which it is whichever host it comes to, and is not felt; -1: the host's own
        :param stale: (h,) hosts whose residents are not known any more
        """
        cluster = self.cluster
        # Newcomers of any host that uses the pool are felt, whatever that host's type.
        storage = cluster.host_io_domain if pool < 0 else np.full(len(cluster.hosts), pool)
        uses_pool = storage >= 0
        fresh = ~stale[cluster.host[group.residents]]
        for index, response in enumerate(group.responses):
            meeting = encounter.Encounter(cluster, group, response, pool, felt=False)
            rows = group.pooled[response.counted[group.pooled] & fresh[group.pooled]]
            at_pool = group.at_pool
            if pool >= 0:
                at_pool = response.behaviour.domain == pool
                rows = rows[at_pool[rows]]
            rise = np.zeros(len(group.residents))
            rise[rows] = meeting.elsewhere(newcomer.mean, rows) - response.exponent[rows]
            everywhere = np.bincount(response.behaviour.domain[rows], rise[rows],
                                     minlength=len(cluster.io_domains))
            # On the newcomer's own host they are its neighbours, and were counted as such.
            at_home = np.zeros(len(cluster.hosts))
            at_home[group.hosts] = np.bincount(
                group.place, np.where(at_pool, rise, 0.0), minlength=len(group.hosts))
            result.add_elsewhere(uses_pool, everywhere[storage[uses_pool]]
                                 - at_home[uses_pool])
            over = np.flatnonzero(rise[response.limited] > response.allowance)
            if len(over):
                self._breached_elsewhere(meeting, index, newcomer, storage, over,
                                         rise[response.limited[over]], result)

    def _breached_elsewhere(self, meeting: encounter.Encounter, index: int,
                            newcomer: newcomers.Profile, storage: IntArray, over: IntArray,
                            rise: FloatArray, result: verdict.Assessment) -> None:
        """Note for each host of a pool the worst breach on the pool's other hosts.

        :param storage: (h,) of the newcomer on each host
        """
        response = meeting.response
        rows = response.limited[over]
        excess, bound = self._excess(response, over, rise, newcomer,
                                     functools.partial(meeting.elsewhere, rows=rows))
        self._note_elsewhere(index, storage, meeting.group.residents[rows],
                             (excess, bound, response.limit[over]), result)

    def _note_elsewhere(self, index: int, storage: IntArray, everybody: IntArray,
                        breach: tuple[FloatArray, FloatArray, FloatArray],
                        result: verdict.Assessment) -> None:
        """Note for each host of a pool the worst breach on the pool's other hosts.

        :param storage: (h,) of the newcomer on each host
        :param everybody: (m,) residents
        :param breach: of each its excess, bound and limit
        """
        cluster, (excess, bound, limit) = self.cluster, breach
        for domain in np.unique(cluster.io_domain[everybody]):
            users = np.flatnonzero(storage == domain)
            left = np.flatnonzero((cluster.io_domain[everybody] == domain) & (excess > 0))
            # The worst counts for all hosts but its own; there, the worst of another host does.
            for _again in range(2):
                if not len(left) or not len(users):
                    break
                worst = left[tie_breaking.argmax(excess[left])]
                own = cluster.host[everybody[worst]]
                hosts = users[users != own]
                same = np.ones(len(hosts))
                result.note(verdict.Found(
                    index, hosts, np.full(len(hosts), everybody[worst]), excess[worst] * same,
                    bound[worst] * same, limit[worst] * same, True))
                users = users[users == own]
                left = left[cluster.host[everybody[left]] != own]

    def _excess(self, response: residents.Response, over: IntArray, rise: FloatArray,
                newcomer: newcomers.Profile, exponents: Callable[[FloatArray], FloatArray],
                ) -> tuple[FloatArray, FloatArray]:
        """Return by how much rows rise beyond their allowance, and their lower bounds.

        :param over: (m,) indices into ``response.limited``, of rows beyond it on the newcomer's
            mean demand; where that is uncertain they may be within it on the lower bound
        :param exponents: of these rows, (m,), beside a newcomer of a (4,) profile
        """
        after = response.exponent[response.limited[over]] + rise
        excess: FloatArray = rise - response.allowance[over]
        doubt = response.doubt[response.limited[over]]
        if not newcomer.deviation.any():
            return excess, self.lower(response.model, after, doubt)
        spread = encounter.spread(exponents, newcomer, after)
        bound = self.lower(response.model, after, np.hypot(spread, doubt))
        within = bound <= response.limit[over]
        # What is in breach already stays so; the harm added must be certain, not the breach.
        score = statistics.NormalDist().inv_cdf(self.settings.confidence)
        certain = rise - score * spread > response.allowance[over]
        excess[np.where(response.breached[over], ~certain, within)] = 0.0
        return excess, bound


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
