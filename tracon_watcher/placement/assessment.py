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
from typing import Mapping, Sequence

import numpy as np

from tracon_watcher import characteristics
from tracon_watcher.characteristics import BoolArray, CPU, FloatArray, IntArray
from tracon_watcher.placement import bounds
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer as newcomers
from tracon_watcher.placement import residents
from tracon_watcher.placement import verdict
from tracon_watcher.prediction import anchored


class Status(enum.IntEnum):
    """Whether a host's assessment is known, and if not, why."""

    KNOWN = 0
    NO_MODEL = 1
    STALE = 2
    UNKNOWN_PROFILE = 3
    UNKNOWN_STORAGE = 4
    OUTSIDE_HULL = 5
    UNKNOWN_HOST = 6


@dataclasses.dataclass(frozen=True)
class Models:
    """The two models of one host type."""

    slowdown: anchored.AnchoredModel
    iops_ratio: anchored.AnchoredModel

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter((self.slowdown, self.iops_ratio))


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a breach is judged.

    :param confidence: of the one-sided lower bound that must cross a limit
    :param margin: by how much worse, as a share, a VM in breach already must get
    :param maximum_age: seconds after which a host's data is stale, thus unknown
    """

    confidence: float = 0.8
    margin: float = 0.05
    maximum_age: float = math.inf


@dataclasses.dataclass(frozen=True)
class Pending:
    """A placement that the snapshot does not show yet."""

    uuid: str
    profile: newcomers.Profile
    limits: limits_module.Limits = limits_module.NONE


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
        shared = residents.shared_domains(cluster)
        self._groups = tuple(
            residents.group(cluster, name, tuple(models[name]), shared, settings.confidence,
                            settings.margin)
            for name in sorted({name for name in cluster.host_type
                                if name is not None and name in models}))

    def assess(self, newcomer: newcomers.Profile,
               limits: Sequence[limits_module.Limits] | limits_module.Limits = limits_module.NONE,
               now: float | None = None,
               pending: Mapping[int, Sequence[Pending]] | None = None) -> verdict.Assessment:
        """Judge every host for one newcomer.

        :param newcomer: its expected profile
        :param limits: its limits, the same everywhere or one for each host
        :param now: seconds since the epoch, for staleness; None: nothing is stale
        :param pending: by host index, placements that the cluster state does not show yet. On a
            storage pool they are counted on their own host, not on the pool's other hosts.
        :returns: arrays over the h hosts
        """
        count = len(self.cluster.hosts)
        slow_limit, ratio_limit = _limit_exponents(limits, count)
        result = verdict.Assessment.unknown(self.cluster, self.status, newcomer)
        if newcomer.known:
            for group in self._groups:
                self._assess_group(group, newcomer, (slow_limit, ratio_limit), result)
        else:
            known = result.status == Status.KNOWN
            result.status[known] = Status.UNKNOWN_PROFILE
        if now is not None:
            stale = now - self.cluster.updated_at > self.settings.maximum_age
            result.forget(stale & (result.status == Status.KNOWN), Status.STALE)
        if pending:
            self._assess_pending(newcomer, (slow_limit, ratio_limit), now, pending, result)
        result.forget(result.status != Status.KNOWN)
        return result

    def make_ready(self) -> None:
        """Do now what would otherwise be done on the first request."""
        for group in self._groups:
            for response in group.responses:
                for sums in (response.at_home, response.elsewhere, response.pooled_at_home,
                             response.pooled_elsewhere):
                    sums.make_ready()

    def exponents(self) -> tuple[FloatArray, FloatArray]:
        """Return what residents suffer now: log slowdown and −log IOPS ratio, (n,) each.

        NaN where unknown, and in the second where the VM does too little I/O to have a ratio.
        """
        n = len(self.cluster.uuids)
        slow, ratio = np.full(n, np.nan), np.full(n, np.nan)
        for group in self._groups:
            for out, response in zip((slow, ratio), group.responses):
                out[group.residents] = np.where(response.counted, response.prepared.exponent,
                                                np.nan)
        return slow, ratio

    def breaches(self) -> BoolArray:
        """Return which residents breach a limit now, by the lower confidence bound, (n,)."""
        return np.asarray(self.breaches_by_response().any(axis=0))

    def breaches_by_response(self) -> BoolArray:
        """Return which limits are breached now: of slowdown and of the IOPS ratio, (2, n)."""
        result = np.zeros((2, len(self.cluster.uuids)), dtype=bool)
        for group in self._groups:
            for index, response in enumerate(group.responses):
                result[index, group.residents[response.limited[response.breached]]] = True
        return result

    def lower(self, model: anchored.AnchoredModel, exponent: FloatArray,
              spread: FloatArray | float = 0.0) -> FloatArray:
        """Return the one-sided lower confidence bound of exponents, (n,).

        :param spread: (n,) standard deviation due to an uncertain profile, in exponents
        """
        return bounds.lower(model, exponent, spread, self.settings.confidence)

    def upper(self, model: anchored.AnchoredModel, exponent: FloatArray,
              spread: FloatArray | float = 0.0) -> FloatArray:
        """Return the one-sided upper confidence bound of exponents, (n,)."""
        return bounds.upper(model, exponent, spread, self.settings.confidence)

    def _host_status(self) -> IntArray:
        cluster = self.cluster
        status = np.full(len(cluster.hosts), int(Status.KNOWN), dtype=np.intp)
        load = cluster.load
        status[np.isnan(load).any(axis=1)] = Status.UNKNOWN_PROFILE
        lost = np.isnan(cluster.background).any(axis=1) | np.isnan(cluster.profiles).any(axis=1)
        status[cluster.host[lost]] = Status.UNKNOWN_PROFILE
        status[cluster.host_io_domain < 0] = Status.UNKNOWN_STORAGE
        status[cluster.host[cluster.io_domain < 0]] = Status.UNKNOWN_STORAGE
        without = np.array([name not in self.models for name in cluster.host_type], dtype=bool)
        status[without] = Status.NO_MODEL
        return status

    def _assess_group(self, group: residents.Group, newcomer: newcomers.Profile,
                      limits: tuple[FloatArray, FloatArray], result: verdict.Assessment) -> None:
        does_io = newcomer.mean[:2].sum() >= characteristics.MINIMUM_IOPS
        for index, response in enumerate(group.responses):
            exponent, outside, far = response.model.join(newcomer.mean, response.arrival)
            result.flagged[group.hosts[outside]] = True
            if far:
                known = group.hosts[result.status[group.hosts] == Status.KNOWN]
                result.status[known] = Status.OUTSIDE_HULL
            if index == 0 or does_io:
                result.exponent[index, group.hosts] = exponent
                result.score[group.hosts] += exponent
                result.postpone(functools.partial(
                    self._interval, group, index, newcomer, exponent))
                self._assess_newcomer(group, index, newcomer, exponent,
                                      limits[index][group.hosts], result)
            self._assess_residents(group, index, response, newcomer, result)

    def _assess_newcomer(self, group: residents.Group, index: int, newcomer: newcomers.Profile,
                         exponent: FloatArray, limit: FloatArray,
                         result: verdict.Assessment) -> None:
        model = group.responses[index].model
        # What is within the limit without a spread is so with one, which only lowers the bound.
        over = np.flatnonzero(self.lower(model, exponent) > limit)
        if not len(over):
            return
        lower = self.lower(model, exponent[over],
                           self._spread(model, newcomer, group.hosts[over]))
        over, lower = over[lower > limit[over]], lower[lower > limit[over]]
        result.note(verdict.Found(index, group.hosts[over], np.full(len(over), -1),
                                  lower - limit[over], lower, limit[over]))

    def _spread(self, model: anchored.AnchoredModel, newcomer: newcomers.Profile,
                hosts: IntArray) -> FloatArray | float:
        """Return by how much an uncertain profile makes the newcomer's exponents uncertain."""
        if not newcomer.deviation.any():
            return 0.0
        prepared = model.prepare(newcomer.mean[None, :], self.cluster.load[hosts])
        spread: FloatArray = np.sqrt((model.target_gradient(prepared) ** 2)
                                     @ newcomer.deviation ** 2)
        return spread

    def _interval(self, group: residents.Group, index: int, newcomer: newcomers.Profile,
                  exponent: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
        """Fill in the newcomer's confidence bounds, (2, h) each, when somebody asks for them."""
        model = group.responses[index].model
        spread = self._spread(model, newcomer, group.hosts)
        lower[index, group.hosts] = self.lower(model, exponent, spread)
        upper[index, group.hosts] = self.upper(model, exponent, spread)

    def _assess_residents(self, group: residents.Group, index: int, response: residents.Response,
                          newcomer: newcomers.Profile, result: verdict.Assessment) -> None:
        """Add what the newcomer does to the residents of its own host, and, where their storage
        is a pool, to those on the pool's other hosts.
        """
        if not len(group.residents):
            return
        added = newcomer.mean
        io_only = added.copy()
        io_only[CPU] = 0.0
        cpu_only = added - io_only
        result.flagged[response.flagged] = True
        result.status[response.far[result.status[response.far] == Status.KNOWN]] = (
            Status.OUTSIDE_HULL)
        result.score[group.hosts] += response.at_home.grow(added)
        rise = response.model.grow(response.at_limit, added)
        if group.has_elsewhere:
            # A resident on other storage than its host's newcomers shares only the CPU with them.
            result.score[group.hosts] += response.elsewhere.grow(cpu_only)
            rise[response.apart] = response.model.grow(
                response.at_limit.take(response.apart), cpu_only)
        over = np.flatnonzero(rise > response.allowance)
        if len(over):
            excess, bound = self._excess(response, over, rise[over], newcomer, added)
            keep = excess > 0
            rows = response.limited[over][keep]
            result.note(verdict.Found(
                index, group.hosts[group.place[rows]], group.residents[rows], excess[keep],
                bound[keep], response.limit[over[keep]]))
        if group.pooled.any():
            self._assess_pool(group, index, response, newcomer, io_only, result)

    def _assess_pool(self, group: residents.Group, index: int, response: residents.Response,
                     newcomer: newcomers.Profile, io_only: FloatArray,
                     result: verdict.Assessment) -> None:
        cluster = self.cluster
        at_home = np.zeros(len(cluster.hosts))
        at_home[group.hosts] = response.pooled_at_home.grow(io_only)
        everywhere = response.pooled_elsewhere.grow(io_only)
        on_pool = group.pools >= 0
        everywhere += np.bincount(group.pools[on_pool], at_home[group.hosts[on_pool]],
                                  minlength=len(cluster.io_domains))
        # Newcomers of any host that uses the pool are felt, whatever that host's type.
        uses_pool = cluster.host_io_domain >= 0
        result.score[uses_pool] += (everywhere[cluster.host_io_domain[uses_pool]]
                                    - at_home[uses_pool])
        rise = np.zeros(len(response.limited))
        rise[response.pooled] = response.model.grow(
            response.at_limit.take(response.pooled), io_only)
        over = np.flatnonzero(rise > response.allowance)
        if not len(over):
            return
        rows = response.limited[over]
        domain = cluster.io_domain[group.residents[rows]]
        excess, bound = self._excess(response, over, rise[over], newcomer, io_only)
        for entry in np.flatnonzero(excess > 0):
            hosts = np.flatnonzero(cluster.host_io_domain == domain[entry])
            same = np.ones(len(hosts))
            result.note(verdict.Found(
                index, hosts, np.full(len(hosts), group.residents[rows[entry]]),
                excess[entry] * same, bound[entry] * same, response.limit[over[entry]] * same))

    def _excess(self, response: residents.Response, over: IntArray, rise: FloatArray,
                newcomer: newcomers.Profile, added: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return by how much rows rise beyond their allowance, and their lower bounds.

        :param over: (m,) indices into ``response.limited``, of rows beyond it on the newcomer's
            mean demand; where that is uncertain they may be within it on the lower bound
        """
        rows = response.limited[over]
        after = response.prepared.exponent[rows] + rise
        excess: FloatArray = rise - response.allowance[over]
        if not newcomer.deviation.any():
            return excess, self.lower(response.model, after)
        gradient = response.model.background_gradient(response.prepared, added, rows)
        spread = np.sqrt(gradient ** 2 @ newcomer.deviation ** 2)
        bound = self.lower(response.model, after, spread)
        within = bound <= response.limit[over]
        # What is in breach already stays so; the harm added must be certain, not the breach.
        score = statistics.NormalDist().inv_cdf(self.settings.confidence)
        certain = rise - score * spread > response.allowance[over]
        excess[np.where(response.breached[over], ~certain, within)] = 0.0
        return excess, bound

    def _assess_pending(self, newcomer: newcomers.Profile, limits: tuple[FloatArray, FloatArray],
                        now: float | None, pending: Mapping[int, Sequence[Pending]],
                        result: verdict.Assessment) -> None:
        """Assess anew, on a state of their own, the hosts that have placements not shown yet."""
        chosen = [index for index in sorted(pending) if pending[index]]
        if not chosen:
            return
        part = self.cluster.restricted(chosen)
        for place, index in enumerate(chosen):
            for vm in pending[index]:
                part = part.with_resident(place, vm.uuid, vm.profile.mean, vm.limits)
        limits_here = [limits_module.Limits(math.exp(min(limits[0][index], 700.0)),
                                            math.exp(-limits[1][index])) for index in chosen]
        fresh = Assessor(part, self.models, self.settings).assess(newcomer, limits_here, now)
        result.replace(np.array(chosen, dtype=np.intp), fresh)


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
