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

"""Learner of host types: compares the law of queueing with the slowdown that counters show."""

from __future__ import annotations

import dataclasses
import logging
import math
import statistics
from typing import Mapping

import numpy as np

from tracon_watcher import characteristics
from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.engine import view as views
from tracon_watcher.placement import assessment
from tracon_watcher.placement import queues
from tracon_watcher.placement import storage_backends
from tracon_watcher import tie_breaking

LOG = logging.getLogger(__name__)
#: By host, its VMs and since when it has these, in seconds since the epoch.
_Companies = dict[str, tuple[tuple[str, ...], float]]

#: Requests that a pool may be found to serve at once.
POOLS = tuple(2.0 ** step for step in range(9))
#: Seconds between two checks of a host type, or of the pools, at least.
SPACING = 300.0
#: Hosts that are looked at in a check, at most.
MOST_HOSTS = 20
#: VMs of a pool, likewise.
MOST_VMS = 500
#: Seconds in which the weight of an observation halves, and between two steps of a number.
_HALF_LIFE, _PAUSE = 86400.0, 3600.0
_LONG_AGO = 100 * _HALF_LIFE
#: What an observation counts at most, in seconds.
_LONGEST = 600.0
#: By so much log stretches with different values must differ to tell which is right.
_TELLING = 0.01
_LEAST_VMS = 3
#: Share of the present value's errors below which another one is taken.
_BETTER = 0.97
_LEAST_SPREAD, _MOST_SPREAD = 0.1, 1.0
#: Weight that observations keep when a number takes another value.
_STALE = 0.25


class HostTypeLearner:
    """Keeps what was learnt of each host type; '' stands for hosts of none.

    :param interval: seconds between two samples of a VM
    """

    def __init__(self, interval: float) -> None:
        self._spacing = max(SPACING, 2 * interval)
        self._types: dict[str, _Type] = {}
        self._pools: dict[str, _Pool] = {}
        self._pools_checked_at = -math.inf
        self._companies: _Companies = {}
        self._rng = np.random.default_rng(0)

    @property
    def learnt(self) -> dict[str, queues.LearnedParameters]:
        """What has been learnt, by host type."""
        return {name: one.learnt for name, one in self._types.items()}

    @property
    def pools(self) -> dict[str, queues.Pool]:
        """What is known of the storage backends that hosts share, by name."""
        return {name: one.known for name, one in self._pools.items()}

    def adopt(self, learnt: Mapping[str, queues.LearnedParameters],
              pools: Mapping[str, queues.Pool], age: float = 0.0) -> None:
        """Go on from what another engine had learnt.

        :param age: of these values, in seconds
        """
        fade = 0.5 ** (min(age, _LONG_AGO) / _HALF_LIFE)
        self._types = {name: _Type(dataclasses.replace(one, vm_hours=fade * one.vm_hours))
                       for name, one in learnt.items()}
        self._pools = {name: _Pool(one) for name, one in pools.items()}

    def take(self, view: views.View) -> None:
        """Learn of a cycle; one host type is checked, the one whose turn is longest overdue."""
        self._companies = _together(view, self._companies)
        self._check_pools(view)
        # Counters, which predictions are compared with, do not show what probes feel.
        cluster = dataclasses.replace(view.moment.cluster, contention=None)
        by_type: dict[str, list[int]] = {}
        stale = view.moment.stale(view.updated_at)
        # That a type suits the law again is seen only if the type is looked at.
        for host in np.flatnonzero(np.isin(view.moment.status, (
                assessment.Status.KNOWN, assessment.Status.DRIFTED))).tolist():
            company, since = self._companies[cluster.hosts[host]]
            if len(company) > 1 and view.updated_at - since >= self._spacing and not stale[host]:
                by_type.setdefault(cluster.host_type[host] or '', []).append(host)
        for name in by_type:
            self._types.setdefault(name, _Type())
        due = [name for name in by_type
               if _over(view.updated_at, self._types[name].checked_at, self._spacing)]
        if not due:
            return
        name = min(due, key=lambda one: (self._types[one].checked_at, one))
        hosts = np.array(by_type[name], dtype=np.intp)
        if len(hosts) > MOST_HOSTS:
            hosts = np.sort(self._rng.choice(hosts, MOST_HOSTS, replace=False))
        before = self._types[name].learnt
        after = self._types[name].check(name, view, hosts)
        if (before.gain, before.disk) != (after.gain, after.disk):
            LOG.info('Host type %s: observed slowdowns of %.0f VM hours suit waits for cores that '
                     'are %.2f times as long as predicted, and disks that serve %g requests at '
                     'once', name or '(none)', after.vm_hours, after.gain, after.disk)
        if after.drifted and not before.drifted:
            LOG.warning('Host type %s has drifted: %.0f %% of the slowdowns observed in %.0f VM '
                        'hours are in their 80 %% interval; its hosts are unknown, neither '
                        'refused nor preferred, until more are', name or '(none)',
                        100 * after.coverage, after.vm_hours)
        if before.drifted and not after.drifted:
            LOG.info('Host type %s has recovered: %.0f %% of the slowdowns observed in %.0f VM '
                     'hours are in their 80 %% interval; its hosts are judged again',
                     name or '(none)', 100 * after.coverage, after.vm_hours)

    def _check_pools(self, view: views.View) -> None:
        cluster = view.moment.cluster
        seconds = max(view.updated_at - self._pools_checked_at, 0.0)
        if not _over(view.updated_at, self._pools_checked_at, self._spacing):
            return
        self._pools_checked_at = view.updated_at
        rate = characteristics.request_rate(cluster.profiles)
        waited = cluster.storage_wait * cluster.vcpus
        telling = np.isfinite(waited) & (rate >= characteristics.MINIMUM_IOPS) & (
            cluster.io_domain >= 0) & ~storage_backends.is_local(cluster)[cluster.io_domain]
        # Of a pool that no sample tells of at the moment, what was learnt stays.
        found = {name: one for name, one in self._pools.items() if name in cluster.io_domains}
        for domain in np.unique(cluster.io_domain[telling]).tolist():
            rows = np.flatnonzero(telling & (cluster.io_domain == domain))
            name = cluster.io_domains[domain]
            one = found.get(name)
            request = float(waited[rows].sum() / rate[rows].sum())
            if one is None:
                one = _Pool(queues.Pool(request))
            if len(rows) > MOST_VMS:
                rows = np.sort(self._rng.choice(rows, MOST_VMS, replace=False))
            one.check(view, rows, request, min(seconds, _LONGEST),
                      0.5 ** (min(seconds, _LONG_AGO) / _HALF_LIFE))
            found[name] = one
        self._pools = found


@dataclasses.dataclass
class _Scale:
    """One number, and how wrong predictions were with it and with the values near it.

    :param values: in ascending order
    :param place: of the present value
    :param below: how many values below the present one are near it: where requests seldom meet,
        the first step down may make no difference
    """

    values: tuple[float, ...]
    place: int
    below: int = 2

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Drop all errors that were added up."""
        self._near = [place for place in (self.place, self.place + 1, *range(
            self.place - 1, self.place - 1 - self.below, -1)) if 0 <= place < len(self.values)]
        self._losses = np.zeros(len(self._near))
        self._weight = 0.0

    @property
    def value(self) -> float:
        """The present value."""
        return self.values[self.place]

    @property
    def near(self) -> list[float]:
        """The present value, and those near it."""
        return [self.values[place] for place in self._near]

    def take(self, predicted: FloatArray, observed: FloatArray, hours: float, fade: float) -> None:
        """Add up errors.

        :param predicted: (k, n) log stretches with each value of ``near``
        :param observed: (n,)
        :param hours: that each observation counts
        :param fade: weight of former ones
        """
        telling = np.isfinite(observed) & (np.ptp(predicted, axis=0) > _TELLING)
        self._losses *= fade
        self._weight *= fade
        if np.count_nonzero(telling) >= _LEAST_VMS:
            wrong = np.abs(predicted[:, telling] - observed[telling])
            self._losses += hours * wrong.sum(axis=1)
            self._weight += hours * np.count_nonzero(telling)

    def step(self) -> bool:
        """Go one step towards the value with the smallest errors; say whether there was one."""
        if self._weight < queues.ENOUGH:
            return False
        best = tie_breaking.argmin(self._losses.tolist())
        if self._losses[best] >= _BETTER * self._losses[0]:
            return False
        self.place += 1 if self._near[best] > self.place else -1
        return True


class _Type:
    """What is known of one host type."""

    def __init__(self, learnt: queues.LearnedParameters = queues.UNCHECKED) -> None:
        self.learnt = learnt
        self.checked_at = -math.inf
        self._gain = _Scale(queues.GAINS, _nearest(queues.GAINS, learnt.gain))
        self._disk = _Scale(queues.DISKS, _nearest(queues.DISKS, learnt.disk))
        self._stepped_at = -math.inf
        self._hours = learnt.vm_hours
        # Sums over VM hours: errors of the law and of a constant, what was covered, log responses.
        known = self._hours if math.isfinite(learnt.error) else 0.0
        self._sums = known * np.nan_to_num(
            [learnt.error, learnt.constant_error, learnt.coverage, 0.0])
        self._squares = self._hours * learnt.spread ** 2
        self._slowed = self._hours

    def check(self, name: str, view: views.View, hosts: IntArray) -> queues.LearnedParameters:
        """Compare predictions with observations on some hosts of this type, and learn."""
        cluster = view.moment.cluster
        age = max(view.updated_at - self.checked_at, 0.0)
        seconds = min(age, _LONGEST)
        # The first one does not know how old is what another engine had learnt.
        fade = 0.5 ** (age / _HALF_LIFE) if math.isfinite(self.checked_at) else 1.0
        self.checked_at = view.updated_at
        law = queues.Queues(cluster, hosts, {name: self.learnt}, view.moment.settings.pools)
        told = _told(view, law.residents)
        observed = np.log(np.maximum(view.observed[law.residents[told]], 1.0))
        hours = seconds / 3600
        self._judge(law, told, observed, view.observed_error, hours, fade)
        if view.stretches is not None:
            stretches = np.log(np.maximum(view.stretches[law.residents[told]], 1.0))
            gains = [dataclasses.replace(self.learnt, gain=gain) for gain in self._gain.near]
            disks = [dataclasses.replace(self.learnt, disk=disk) for disk in self._disk.near]
            predicted = np.log(law.stretches(gains + disks[1:])[:, told])
            self._gain.take(predicted[:len(gains), :, 0], stretches[:, 0], hours, fade)
            self._disk.take(np.concatenate([predicted[:1], predicted[len(gains):]])[:, :, 1],
                            stretches[:, 1], hours, fade)
        self._learn(view.updated_at)
        return self.learnt

    def _judge(self, law: queues.Queues, told: BoolArray, observed: FloatArray,
               deviation: float, hours: float, fade: float) -> None:
        """Add up how good predictions were.

        :param told: (n,) residents that were observed
        :param deviation: of an observation, in log responses
        """
        self._sums *= fade
        self._squares *= fade
        self._slowed *= fade
        self._hours = float(self._hours * fade + hours * len(observed))
        if not len(observed):
            return
        predicted = law.log_response[0, told]
        self._sums[3] += hours * observed.sum()
        mean = self._sums[3] / self._hours
        quantile = statistics.NormalDist().inv_cdf(0.5 + queues.COVERED / 2)
        lower, upper = (law.bound(level)[0, told]
                        for level in (0.5 - queues.COVERED / 2, 0.5 + queues.COVERED / 2))
        noise = quantile * np.nan_to_num(deviation)
        covered = ((observed >= predicted - np.hypot(predicted - lower, noise))
                   & (observed <= predicted + np.hypot(upper - predicted, noise)))
        for place, values in enumerate((np.abs(np.expm1(predicted - observed)),
                                        np.abs(np.expm1(mean - observed)), covered)):
            self._sums[place] += hours * values.sum()
        # The less a VM is slowed down, the more of the difference is an error of the observation.
        slowdown_increase = np.maximum(np.expm1(predicted), 1e-6)
        noise = np.nan_to_num(deviation) * (1.0 + slowdown_increase) / slowdown_increase
        weight = hours / (1.0 + noise ** 2)
        off = np.clip(np.expm1(observed) / slowdown_increase - 1.0, -1.0, 1.0)
        self._squares += float((weight * (off ** 2 - np.minimum(noise, 1.0) ** 2)).sum())
        self._slowed += float(weight.sum())

    def _learn(self, now: float) -> None:
        if _over(now, self._stepped_at, _PAUSE):
            if any([scale.step() for scale in (self._gain, self._disk)]):
                self._stepped_at = now
                # Errors of the one number were those beside the former value of the other, and
                # what was predicted with former values is predicted otherwise now.
                self._gain.forget()
                self._disk.forget()
                # Enough is left for a type that has drifted to remain so until more was seen.
                left = max(_STALE * self._hours, queues.ENOUGH)
                self._sums *= left / self._hours
                self._squares *= left / self._hours
                self._slowed *= left / self._hours
                self._hours = left
        spread = math.sqrt(max(queues.ENOUGH * queues.SPREAD ** 2 + self._squares, 0.0)
                           / (queues.ENOUGH + self._slowed))
        known = self._sums[:3] / self._hours if self._hours > 0 else np.full(3, math.nan)
        self.learnt = queues.LearnedParameters(
            self._gain.value, self._disk.value, min(max(spread, _LEAST_SPREAD), _MOST_SPREAD),
            self._hours, *(float(value) for value in known))


class _Pool:
    """What is known of one storage backend that hosts share."""

    def __init__(self, known: queues.Pool) -> None:
        self.known = known
        self._at_once = _Scale(POOLS, _nearest(POOLS, known.at_once), len(POOLS))
        self._stepped_at = -math.inf

    def check(self, view: views.View, rows: IntArray, request: float, seconds: float,
              fade: float) -> None:
        """Compare how requests of some of its VMs stretch, and learn.

        :param request: seconds that one takes undisturbed
        :param seconds: since the last check
        :param fade: weight of what was seen before
        """
        cluster = view.moment.cluster
        if view.stretches is not None:
            stretches = np.log(np.maximum(view.stretches[rows, 1], 1.0))
            domain = cluster.io_domain[rows]
            own = characteristics.request_rate(cluster.profiles[rows])
            name = cluster.io_domains[domain[0]]
            self._at_once.take(np.log([
                queues.Pools(cluster, {name: queues.Pool(request, value)}).stretch(domain, own)
                for value in self._at_once.near]), stretches, seconds / 3600, fade)
            if _over(view.updated_at, self._stepped_at, _PAUSE) and self._at_once.step():
                self._stepped_at = view.updated_at
                self._at_once.forget()
        self.known = queues.Pool(request, self._at_once.value)


def _over(now: float, since: float, seconds: float) -> bool:
    """Say whether a time is over; it is where the clock was put back meanwhile."""
    return not 0 <= now - since < seconds


def _together(view: views.View, before: _Companies) -> _Companies:
    """Return who is on each host, and since when; a host that has the same VMs keeps its time.

    :param before: what was returned of the cycle before
    """
    cluster, found = view.moment.cluster, {}
    for index, host in enumerate(cluster.hosts):
        company = cluster.uuids[cluster.first[index]:cluster.first[index + 1]]
        old = before.get(host)
        found[host] = company, min(view.updated_at, old[1] if old is not None
                                   and old[0] == company else math.inf)
    return found


def _told(view: views.View, rows: IntArray) -> BoolArray:
    """Return which residents' slowdown is observed, and not by their own limits, (n,)."""
    cluster = view.moment.cluster
    observed = view.observed[rows]
    held = np.array([cluster.uuids[row] in view.held_back for row in rows.tolist()], dtype=bool)
    return np.asarray(np.isfinite(observed) & (observed > 0) & ~held
                      & (cluster.own_wait[rows] == 0))


def _nearest(values: tuple[float, ...], value: float) -> int:
    return tie_breaking.argmin([abs(math.log(one / value)) for one in values])
