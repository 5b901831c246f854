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

"""What would have had to differ for a host to be judged otherwise; every answer is judged again.

For a host that is refused: which limits, at what value, would have let it pass, and which single
VM's absence would have. For any host: how much of its score is due to each of its residents. None
of it is derived from formulas: the host is judged again with that limit, or without that VM, and
what is said is what came of it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Callable, Sequence

import numpy as np

from tracon_watcher.characteristics import FloatArray, IO, RESPONSES
from tracon_watcher.placement import assessment
from tracon_watcher.placement import attribution
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import storage_backends
from tracon_watcher import tie_breaking

#: Other hosts of a pool that are looked at for VMs whose limits the newcomer breaches there.
_OTHER_HOSTS = 8
#: Beyond the bound that just passes, so that rounding does not make it fail.
_BEYOND = 1e-9


@dataclasses.dataclass(frozen=True)
class Needed:
    """A limit that stands in the way, and the closest one that would not.

    :param vm: uuid, or :data:`tracon_watcher.placement.assessment.NEWCOMER`
    :param response: ``slowdown`` or ``iops_ratio``
    """

    vm: str
    response: str
    limit: float
    needed: float


@dataclasses.dataclass(frozen=True)
class Absence:
    """What would be if one VM were not there.

    :param passes: whether a refused host would not be; None for others
    :param relief: by how much less its score would be
    """

    vm: str
    passes: bool | None
    relief: float


@dataclasses.dataclass(frozen=True)
class Effect:
    """What a newcomer does to one VM: log responses, NaN where unknown or undefined.

    :param before: (2,) log slowdown and −log IOPS ratio
    :param after: (2,)
    """

    vm: str
    before: FloatArray
    after: FloatArray


@dataclasses.dataclass(frozen=True)
class Counterfactual:
    """One host, judged as it is and as it might be.

    :param score: of the newcomer on that host
    :param limits: that all would have to be what is needed; empty where the host is not refused
    :param absences: of its residents, the one with the most relief first, and after them of VMs
        on other hosts of its pool whose limits are breached; None where they were not tried
    :param complete: False where limits may be breached on more hosts of its pool than were looked
        at
    """

    host: str
    score: float
    refused: bool
    limits: tuple[Needed, ...]
    absences: tuple[Absence, ...] | None
    complete: bool = True


class CounterfactualSearch:
    """Judges hosts again.

    :param assessor: of the state in which the decision was made
    :param profile: of the newcomer
    :param limits: of the newcomer on a host, by index
    :param vm: uuid of the newcomer, which the state may show on some host already
    :param now: seconds since the epoch, for staleness; None: nothing is stale
    :param most: times that hosts are judged again in all; a millisecond or two each
    :param judged: the judgement of all hosts, if it is at hand
    """

    def __init__(self, assessor: assessment.Assessor, profile: newcomer_profiles.Profile,
                 limits: Callable[[int], limits_module.Limits], vm: str | None = None,
                 now: float | None = None, most: int = 1500,
                 judged: assessment.Assessment | None = None) -> None:
        self._assessor = assessor
        self._profile = profile
        self._limits = limits
        self._now = now
        self._left = most
        if judged is not None:
            self.everywhere = judged
        self._beyond_limits: dict[int, list[int]] = {}
        cluster = assessor.cluster
        row = None if vm is None else cluster.resident_index.get(vm)
        self._present = None if row is None else (str(vm), int(cluster.host[row]))
        self._row = row
        self._vm = str(vm)
        self._pool = storage_backends.pool_of(cluster, row)

    @functools.cached_property
    def everywhere(self) -> assessment.Assessment:
        """The judgement of all hosts, with nothing changed."""
        cluster = self._assessor.cluster
        result = self._assessor.assess(
            self._profile, [self._limits(host) for host in range(len(cluster.hosts))],
            self._now, self._pool)
        if self._present is not None and result.known[self._present[1]]:
            own = self._present[1]
            part = self._part(own, ())
            result.replace(np.array([own]), self._judge(part, own, self._limits(own)))
        return result

    def of(self, host: int) -> Counterfactual | None:
        """Judge a host as it is and as it might be; None where nothing is known of it."""
        found = self.everywhere
        if not found.known[host]:
            return None
        refused = bool(found.refused[host])
        others = self._concerned(host) if refused else []
        part = self._part(host, others[:_OTHER_HOSTS])
        return Counterfactual(
            self._assessor.cluster.hosts[host], float(found.score[host]), refused,
            self._needed(part, host) if refused else (), self._absences(part, host, refused),
            len(others) <= _OTHER_HOSTS)

    def effects(self, host: int) -> tuple[Effect, ...]:
        """Predict the residents of a host before and after, the one hit hardest first."""
        name = self._assessor.cluster.hosts[host]
        if self._present is not None and self._present[1] != host:
            part = self._assessor.cluster.restricted([host, self._present[1]])
            after = part.moved({self._present[0]: name})
        else:
            part = self._part(host, ())
            backend = storage_backends.brought(self._assessor.cluster, self._vm, self._profile)
            after = part.with_residents(
                [(0, assessment.NEWCOMER, self._profile, limits_module.NONE)],
                {assessment.NEWCOMER: backend} if backend else None)
        uuids = [part.uuids[row] for row in range(part.first[0], part.first[1])]
        log_responses = []
        for state in (part, after):
            self._left -= 1
            both = self._assessor.of(state).log_responses()
            log_responses.append(both[:, [state.resident_index[uuid] for uuid in uuids]])
        rise = np.nansum(log_responses[1] - log_responses[0], axis=0)
        return tuple(Effect(uuids[place], log_responses[0][:, place], log_responses[1][:, place])
                     for place in tie_breaking.argsort(-rise))

    def _part(self, host: int, others: Sequence[int]) -> cluster_module.ClusterState:
        """Return the state of this host and some others, without the newcomer on this one."""
        part = self._assessor.cluster.restricted(
            [host, *others], [self._pool] if self._pool >= 0 else ())
        if self._present is not None and self._present[1] == host:
            part = part.moved({self._present[0]: None})
        return part

    def _judge(self, part: cluster_module.ClusterState, host: int,
               limits: limits_module.Limits) -> assessment.Assessment:
        """Judge the first host of a part."""
        return self._judged(part, host, limits)[1]

    def _judged(self, part: cluster_module.ClusterState, host: int, limits: limits_module.Limits
                ) -> tuple[assessment.Assessor, assessment.Assessment]:
        self._left -= _cost(part)
        assessor = self._assessor.of(part)
        return assessor, assessor.assess(self._profile, limits,
                                         pool=self._pool_seen_from(host, part),
                                         felt=not self._is_on(host))

    def _pool_seen_from(self, host: int, part: cluster_module.ClusterState) -> int:
        """Return the index in a part of the pool on which the newcomer stays; -1 for none."""
        # On the host where it is, with that pool as the host's own, it is like any newcomer.
        if self._is_on(host) and self._assessor.cluster.host_io_domain[host] == self._pool:
            return -1
        return storage_backends.pool_of(self._assessor.cluster, self._row, part)

    def _is_on(self, host: int) -> bool:
        return self._present is not None and self._present[1] == host

    def _needed(self, part: cluster_module.ClusterState, host: int) -> tuple[Needed, ...]:
        """Relax the limits that are breached, until none is."""
        limits, needed = self._limits(host), dict[tuple[str, str], Needed]()
        for _again in range(4 * (len(part.uuids) + 1)):
            assessor, found = self._judged(part, host, limits)
            if not found.refused[0]:
                return tuple(needed.values())
            changed = part.max_slowdown.copy(), part.min_iops_ratio.copy()
            for breach in found.breaches(0):
                index = RESPONSES.index(breach.response)
                bound = _worst(assessor, breach, index)
                value = bound * (1 + _BEYOND) if index == 0 else bound * (1 - _BEYOND)
                old = needed.get((breach.vm, breach.response))
                needed[breach.vm, breach.response] = Needed(
                    breach.vm, breach.response, breach.limit if old is None else old.limit, value)
                if breach.vm != assessment.NEWCOMER:
                    changed[index][part.resident_index[breach.vm]] = value
                elif index == 0:
                    limits = dataclasses.replace(limits, max_slowdown=value)
                else:
                    limits = dataclasses.replace(limits, min_iops_ratio=value)
            part = dataclasses.replace(part, max_slowdown=changed[0], min_iops_ratio=changed[1])
        return ()

    def _absences(self, part: cluster_module.ClusterState, host: int,
                  refused: bool) -> tuple[Absence, ...] | None:
        here = self._judge(part, host, self._limits(host))
        own = [part.uuids[row] for row in range(part.first[0], part.first[1])]
        others = []
        if here.remote_overshoot[0] > 0:
            limited = np.isfinite(part.max_slowdown) | (part.min_iops_ratio > 0)
            others = [part.uuids[row] for row in np.flatnonzero(limited & (part.host > 0))]
        if len(part.hosts) == 1 and self._pool_seen_from(host, part) < 0:
            if self._left <= 0:
                return None
            tried = self._all_at_once(part, host, here, refused)
        else:
            if self._left < (len(own) + len(others)) * _cost(part):
                return None
            tried = [_absence(uuid, here, self._judge(
                part.moved({uuid: None}), host, self._limits(host)), 0, refused)
                for uuid in (*own, *others)]
        count = len(own)
        here_first = sorted(tried[:count], key=lambda one: one.vm)
        order = tie_breaking.argsort([-one.relief for one in here_first])
        return (*(here_first[place] for place in order), *tried[count:])

    def _all_at_once(self, part: cluster_module.ClusterState, host: int,
                     here: assessment.Assessment, refused: bool) -> list[Absence]:
        """Judge a host without each of its residents, side by side, as if there were so many."""
        if not part.uuids:
            return []
        settings = self._assessor.settings
        copies = attribution.without_each(part)
        self._left -= _cost(copies)
        without = assessment.Assessor(copies, dataclasses.replace(
            settings, pools=attribution.pools_without(part, settings.pools))).assess(
                self._profile, self._limits(host))
        return [_absence(uuid, here, without, place, refused)
                for place, uuid in enumerate(part.uuids)]

    def _concerned(self, host: int) -> list[int]:
        """Return the other hosts of its pool with VMs that may breach a limit, the worst first.

        That are also those in breach already, which would not be without another VM.
        """
        cluster = self._assessor.cluster
        domain = int(cluster.host_io_domain[host])
        if domain not in self._beyond_limits:
            self._beyond_limits[domain] = self._by_excess(domain)
        return [one for one in self._beyond_limits[domain] if one != host]

    def _by_excess(self, domain: int) -> list[int]:
        cluster, law = self._assessor.cluster, self._assessor.law
        rows = np.flatnonzero(law.domain == domain)
        after = law.with_requests(rows, float(self._profile.mean[IO].sum()))
        bound = law.bound(1 - self._assessor.settings.confidence, after, rows)
        overshoot = bound - law.limit[:, rows]
        most = np.nan_to_num(overshoot, nan=-np.inf).max(axis=0, initial=-np.inf)
        worst: dict[int, float] = {}
        for place in np.flatnonzero(most > 0):
            where = int(cluster.host[law.residents[rows[place]]])
            worst[where] = max(worst.get(where, 0.0), float(most[place]))
        hosts = sorted(worst)
        return [hosts[place] for place in tie_breaking.argsort([-worst[one] for one in hosts])]


def _cost(part: cluster_module.ClusterState) -> int:
    # Of about a millisecond, until there are many VMs in it.
    return 1 + len(part.uuids) // 100


def _worst(assessor: assessment.Assessor, breach: assessment.Breach, index: int) -> float:
    """Return the bound that a limit must not be within, now and afterwards.

    A resident in breach already would stay in breach with a limit that only its state afterwards
    keeps, where a newcomer of whom little is known has a wide interval.
    """
    if breach.vm == assessment.NEWCOMER:
        return breach.bound
    row = assessor.cluster.resident_index[breach.vm]
    place = np.flatnonzero(assessor.law.residents == row)
    now = float(assessor.law.bound(1 - assessor.settings.confidence)[index, place[0]])
    return (max(breach.bound, math.exp(now)) if index == 0
            else min(breach.bound, math.exp(-now)))


def _absence(uuid: str, here: assessment.Assessment, without: assessment.Assessment, place: int,
             refused: bool) -> Absence:
    # What others on other hosts suffer is not part of what a resident here accounts for.
    relief = (here.score[0] - here.remote[0]) - (
        without.score[place] - without.remote[place])
    return Absence(uuid, bool(without.known[place] and not without.refused[place]) if refused
                   else None, float(relief))
