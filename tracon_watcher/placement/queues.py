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

"""Hosts judged by the law of queueing.

What VMs do to each other on the cores they share follows from the number of cores and what each
VM does (:mod:`tracon_watcher.queueing`): nothing has to be measured of the host's type. As long as
that was not checked against the host type (:class:`LearnedParameters`), intervals are wide.

A vCPU of a VM is on the CPU for u = (guest CPU + host CPU) / vCPUs of its time alone, and waits
for storage for w, which its counters tell. The law says how many times as long S it takes for
what it does, the time included in which it has nothing to do; that does not stretch. What users
feel, and counters show, is the stretch of the time in which it works: the slowdown is
1 + (S − 1) / (u + w). An IOPS ratio is 1 / S, for VMs that do I/O.

How many requests a disk serves at once is not known until it is learnt; eight are assumed, so that
a slower disk does more harm than is predicted. A pool that hosts share serves many hosts, so it is
judged by all requests that it gets (:class:`Pools`): they do not become fewer when one host is
full.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from typing import Any, Mapping, Sequence

import numpy as np

from tracon_watcher import characteristics
from tracon_watcher.characteristics import BoolArray, CPU, FloatArray, IntArray, IO
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import current_interference
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import storage_backends
from tracon_watcher.queueing import capacity
from tracon_watcher.queueing import network
from tracon_watcher.queueing import normal

#: Standard deviation of log(slowdown − 1) on a host type that the law was not checked against.
SPREAD = 0.25
#: Requests that a host's own disk is taken to serve at once.
DISK = 8.0
#: Requests that a pool is taken to serve at once.
POOL = 64.0
#: A VM counts as busy for this part of its time at least.
LEAST_BUSY = 0.02
#: Share of slowdowns that should be in their interval.
COVERED = 0.8
#: VM hours of observation before anything is learnt, and before a host type counts as checked.
ENOUGH = 10.0
#: Of host types that are trusted less, nothing is said.
LEAST_TRUST = 0.5
#: What may be learnt of a host type.
GAINS, DISKS = capacity.GAINS, capacity.DISKS


@dataclasses.dataclass(frozen=True)
class LearnedParameters:
    """What observed slowdowns have taught of a host type.

    :param gain: by which waits for cores are longer than the law says
    :param disk: requests that a host's own disk serves at once; below 1 it serves one, and each
        wait is longer by its inverse
    :param spread: standard deviation of log(slowdown − 1)
    :param vm_hours: of observation that this rests on; the older, the less an hour counts
    :param error: mean relative error of the slowdown, and ``constant_error`` that of a constant:
        each VM as slow as all on average; NaN where nothing was observed
    :param coverage: share of the observed slowdowns in their 80 % interval
    """

    gain: float = 1.0
    disk: float = DISK
    spread: float = SPREAD
    vm_hours: float = 0.0
    error: float = math.nan
    constant_error: float = math.nan
    coverage: float = math.nan

    @property
    def trust(self) -> float:
        """How far predictions are to be trusted, 0 to 1: the coverage over what it should be."""
        if self.vm_hours < ENOUGH or math.isnan(self.coverage):
            return 1.0
        return min(self.coverage / COVERED, 1.0)

    @property
    def drifted(self) -> bool:
        """Whether so little of what was observed was as predicted that nothing is to be said."""
        return self.trust < LEAST_TRUST


UNCHECKED = LearnedParameters()


@dataclasses.dataclass(frozen=True)
class Pool:
    """What is known of a storage backend that hosts share.

    :param request: seconds that a request takes undisturbed
    :param at_once: requests that it serves at once, at least 1
    """

    request: float
    at_once: float = POOL


class Pools:
    """How long requests take on storage backends that hosts share.

    A pool that serves k requests at once has N others in it, as many as arrive while one takes as
    long as undisturbed; N has a Poisson distribution, taken for a normal one. A request then takes
    E[(1 + N) / min(1 + N, k)] times as long.

    :ivar listed: (d + 1,) backends of which something is known; False for index -1
    """

    def __init__(self, cluster: cluster_module.ClusterState, pools: Mapping[str, Pool]) -> None:
        rate = cluster.request_rate
        known = [None if math.isnan(there) else pools.get(name)
                 for name, there in zip(cluster.io_domains, rate)]
        self._request, self._at_once = np.array(
            [*((0.0, 1.0) if one is None else (one.request, one.at_once) for one in known),
             (0.0, 1.0)]).T
        self.listed = np.array([*(one is not None for one in known), False], dtype=bool)
        self._rate = np.append(np.nan_to_num(rate), 0.0)

    def request(self, domain: IntArray) -> FloatArray:
        """Return the seconds that a request takes undisturbed, (n,)."""
        found: FloatArray = self._request[domain]
        return found

    def stretch(self, domain: IntArray, own: FloatArray | float,
                more: FloatArray | float = 0.0) -> FloatArray:
        """Return how many times as long a request takes, (…, n); 1 where nothing is known.

        :param domain: (n,) storage backends
        :param own: (n,) requests a second that are there already and are not others
        :param more: (…, n) requests a second that would come
        """
        mean = self._request[domain] * np.maximum(self._rate[domain] + more - own, 0.0)
        at_once = self._at_once[domain]
        found: FloatArray = 1.0 + normal.excess(
            mean, np.sqrt(np.maximum(mean, 1e-12)), at_once - 1.0) / at_once
        return found


@dataclasses.dataclass(frozen=True)
class Newcomer:
    """A newcomer, and where its I/O is felt.

    :param pool: index of a storage backend on which it stays whichever host it comes to; -1: it
        uses the host's own, unless its profile is set apart
    :param felt: whether its I/O is among that of the pool already
    """

    newcomer: newcomer_profiles.Profile
    pool: int = -1
    felt: bool = True

    def domain(self, of_hosts: IntArray) -> IntArray:
        """Return on which storage backend it is on each host, (g,); -1 for one that is apart.

        :param of_hosts: (g,) those of the hosts
        """
        if self.pool >= 0 or self.newcomer.apart:
            return np.full(len(of_hosts), self.pool)
        return of_hosts

    def least(self, confidence: float) -> FloatArray:
        """Return the least that it may well demand, (4,)."""
        less = statistics.NormalDist().inv_cdf(confidence) * self.newcomer.deviation
        found: FloatArray = np.maximum(self.newcomer.mean - less, 0.0)
        return found


@dataclasses.dataclass(frozen=True)
class WaitShare:
    """Waits for one kind of resource.

    :param share: (n,) of each resident's slowdown
    :param key: (n,) which one each of them uses
    :param amount: (n,) how much of it each takes
    """

    share: FloatArray
    key: IntArray
    amount: FloatArray


class Queues:
    """Hosts judged by the law, with their residents.

    :ivar hosts: (g,) indices
    :ivar residents: (n,) indices of the VMs there
    :ivar place: (n,) index of each one's host in ``hosts``
    :ivar domain: (n,) index of each one's storage backend, -1 where unknown
    :ivar taken: (n,) cores that each would use alone
    :ivar log_response: (2, n) what they suffer: log slowdown and −log IOPS ratio, NaN in the
        second for a VM that does too little I/O to have a ratio
    :ivar law_spread: (g,) standard deviation of log(slowdown − 1) on each host
    """

    def __init__(self, cluster: cluster_module.ClusterState, hosts: IntArray,
                 learnt: Mapping[str, LearnedParameters], pools: Mapping[str, Pool],
                 solved: network.SolvedHosts | None = None) -> None:
        """Solve hosts.

        :param learnt: by host type; '' for hosts of none
        :param pools: by name
        :param solved: hosts that are not solved again
        """
        self.hosts = hosts
        taught = [learnt.get(cluster.host_type[host] or '', UNCHECKED) for host in hosts]
        gain, disk, self.law_spread = np.array(
            [(one.gain, one.disk, one.spread) for one in taught]).reshape(-1, 3).T
        place = np.full(len(cluster.hosts), -1, dtype=np.intp)
        place[hosts] = np.arange(len(hosts))
        self.residents = np.flatnonzero(place[cluster.host] >= 0)
        rows = self.residents
        self.place = place[cluster.host[rows]]
        profiles = cluster.profiles[rows]
        self._host_domain = cluster.host_io_domain[hosts]
        self.domain = cluster.io_domain[rows]
        self._rate = characteristics.request_rate(profiles)
        busy = characteristics.cpu_share(profiles, cluster.vcpus[rows])
        weight = cluster.cpu_weight[rows]
        # Who has cores of its own takes nothing of those that others share.
        shared = np.where(weight > 0.0, busy, 0.0)
        self.taken = shared * cluster.vcpus[rows]
        self._own_wait = cluster.own_wait[rows]
        self._does_io = self._rate >= characteristics.MINIMUM_IOPS
        self._foreground = ~cluster.background[rows]
        with np.errstate(divide='ignore'):
            #: (2, n) limits as log responses, infinite for none.
            self.limit = np.stack([np.log(cluster.max_slowdown[rows]),
                                   -np.log(cluster.min_iops_ratio[rows])])
        waits = cluster.storage_waits[rows]
        self._busy = _busy(busy, waits, self._does_io & np.isnan(cluster.storage_wait[rows]))
        self._pools = Pools(cluster, pools)
        self._pool_wait = np.where(self._pools.listed[self.domain], waits, 0.0)
        self._longer = self._longer_on_pools(slice(None), 0.0)
        # While it waits for a pool, a VM does not ask for a core.
        cores = cluster.cores[hosts]
        self._on = network.Hosts(cores, np.maximum(cores / cluster.threads[hosts], 1.0), gain)
        self._weight = np.where(weight > 0.0, weight, 1.0)
        self._vms = network.VMs(self.place, cluster.vcpus[rows], shared / self._longer,
                                self._weight)
        local = storage_backends.is_local(cluster)
        # The host's own disk has the number of the host.
        on_disk = np.flatnonzero((waits > 0.0) & local[cluster.io_domain[rows]]
                                 & (cluster.io_domain[rows] == cluster.host_io_domain[
                                     cluster.host[rows]]))
        self._uses = network.Usage(on_disk, self.place[on_disk], waits[on_disk],
                                   *capacity.disks(disk))
        self._has_disk = local[self._host_domain]
        self._request = cluster.mean_request
        felt = cluster.felt[hosts].T
        # (2, g) mean and standard deviation, by response. Those that do nothing suffer nothing.
        self._contention, self._contention_spread = felt[::2], felt[1::2]
        active = (busy > 0.0) | (self._rate > 0.0)
        self._felt, self._felt_spread = (one[:, self.place] * active for one in (
            self._contention, self._contention_spread))
        self._prepared = network.SolvedNetwork(self._on, self._vms, self._uses, solved)
        self._whole = self._prepared.effects.slowdown
        self.log_response = self._exponents(self._whole, self._longer)

    def beside(self, coming: Newcomer) -> tuple[FloatArray, FloatArray]:
        """Return log responses of a newcomer, (2, g), and of the residents, (2, n)."""
        return self._beside(coming, coming.newcomer.mean)

    def harmed_for_sure(self, coming: Newcomer, confidence: float, rows: IntArray) -> FloatArray:
        """Return the residents' log responses, (2, n), beside the least that it may well demand.

        :param rows: residents on whose hosts they are needed
        """
        hosts = np.zeros(len(self.hosts), dtype=bool)
        hosts[self.place[rows]] = True
        return self._beside(coming, coming.least(confidence), hosts)[1]

    def rise_on_pools(self, demand: FloatArray) -> FloatArray:
        """Return the rise of log responses, (2, n), of residents whose pool gets more requests.

        :param demand: (4,) of whom they come from
        """
        rows = np.arange(len(self.residents))
        return self.with_requests(rows, float(demand[IO].sum())) - self.log_response

    def with_requests(self, rows: IntArray, more: FloatArray | float) -> FloatArray:
        """Return what residents suffer, (2, m), when their pools get more requests.

        :param rows: (m,) places in ``residents``
        :param more: (m,) requests a second, or as many for each; negative for fewer
        """
        return self._exponents(self._whole[rows], self._longer_on_pools(rows, more), rows)

    def _longer_on_pools(self, rows: IntArray | slice, more: FloatArray | float) -> FloatArray:
        """Return how many times as long a unit of work takes on account of pools, (…, m).

        :param more: (…, m)
        """
        return 1.0 + self._pool_wait[rows] * (self._pools.stretch(
            self.domain[rows], self._rate[rows], more) - 1.0)

    def spread(self, coming: Newcomer, log_response: FloatArray) -> FloatArray | float:
        """Return the standard deviations, (2, g), of its log responses by uncertain demand.

        That of CPU time alone: what a request takes is less certain than how many there are.
        """
        newcomer = coming.newcomer
        deviation = math.hypot(*newcomer.deviation[CPU])
        if not deviation:
            return 0.0
        change = np.zeros(log_response.shape)
        for sign in (1.0, -1.0):
            # Both sorts of CPU time are one here.
            mean = newcomer.mean.copy()
            mean[CPU] = max(mean[CPU].sum() + sign * deviation, 0.0), 0.0
            own = self._beside(coming, mean, False)[0]
            change = np.maximum(change, np.abs(own - log_response))
        return change

    def counted(self, log_responses: FloatArray, rows: IntArray | slice = slice(None)
                ) -> FloatArray:
        """Return what counts as harm of residents' log responses, in their shape.

        That of background work does not, nor what is unknown.

        :param log_responses: (…, m)
        :param rows: (m,) places in ``residents``
        """
        return np.asarray(np.nan_to_num(log_responses) * self._foreground[rows])

    def harm(self, rise: FloatArray) -> FloatArray:
        """Return by how much log responses rise on each host, (g,), without background work.

        :param rise: (2, n) of the residents
        """
        found: FloatArray = np.bincount(self.place, self.counted(rise).sum(axis=0),
                                        len(self.hosts)).astype(float)
        return found

    def host_of(self, rows: IntArray) -> IntArray:
        """Return the hosts' indices of some residents, given by their place in ``residents``."""
        return self.hosts[self.place[rows]]

    def stretches(self, learnt: Sequence[LearnedParameters]) -> FloatArray:
        """Return by how much CPU time and requests of residents stretch, (k, n, 2).

        NaN for one that does not use the host's own disk.

        :param learnt: k answers to what might be learnt of all these hosts
        """
        times, count, hosts = len(learnt), len(self.residents), len(self.hosts)
        gain, disk = np.repeat([[one.gain for one in learnt], [one.disk for one in learnt]],
                               hosts, axis=1)

        def again(indices: IntArray, step: int) -> IntArray:
            found: IntArray = (np.tile(indices, times)
                               + step * np.repeat(np.arange(times), len(indices)))
            return found
        found = network.effects(
            dataclasses.replace(self._on.some(np.tile(np.arange(hosts), times)), gain=gain),
            network.VMs(again(self._vms.host, hosts), np.tile(self._vms.vcpus, times),
                        np.tile(self._vms.used, times), np.tile(self._weight, times)),
            network.Usage(again(self._uses.vm, count), again(self._uses.resource, hosts),
                          np.tile(self._uses.used, times), *capacity.disks(disk)))
        stretches = np.full((times * count, 2), np.nan)
        stretches[:, 0] = found.stretch
        stretches[again(self._uses.vm, count), 1] = found.resource_stretch
        return stretches.reshape(times, count, 2)

    def bound(self, level: float, log_response: FloatArray | None = None,
              rows: IntArray | slice = slice(None)) -> FloatArray:
        """Return confidence bounds of residents' log responses, (2, …, m).

        :param log_response: (2, …, m), what they suffer now by default
        :param rows: (m,) places in ``residents``
        """
        log_response = self.log_response[:, rows] if log_response is None else log_response
        between = tuple(range(1, log_response.ndim - 1))
        return _with_contention(
            log_response, level, self.law_spread[self.place[rows]], 0.0,
            *(np.expand_dims(one[:, rows], between) for one in (self._felt, self._felt_spread)))

    def newcomer_bound(self, level: float, coming: Newcomer, log_response: FloatArray,
                       spread: FloatArray | float) -> FloatArray:
        """Return confidence bounds of a newcomer's log responses on each host, (2, g).

        :param log_response: (2, g)
        :param spread: (2, g) standard deviation due to an uncertain profile
        """
        active = float(coming.newcomer.mean.any())
        return _with_contention(log_response, level, self.law_spread, spread,
                                active * self._contention, active * self._contention_spread)

    def allowed(self, confidence: float) -> FloatArray:
        """Return the residents' log responses whose lower bounds are just their limits, (2, n)."""
        quantile = statistics.NormalDist().inv_cdf(confidence)
        felt = np.maximum(self._felt - quantile * self._felt_spread, 0.0)
        return self._felt + allowed(np.maximum(self.limit - felt, 0.0), confidence,
                                    self.law_spread[self.place])

    @property
    def by_neighbours(self) -> FloatArray:
        """Return what residents suffer without what probes feel, (2, n)."""
        return self.log_response - self._felt

    def without(self, host: int, gone: bool = False) -> tuple[IntArray, FloatArray]:
        """Say what the residents of a host suffer without each one of them.

        :param host: one of ``hosts``
        :param gone: whether its requests to a pool are so too, or come from another host then
        :returns: their m places in ``residents``, and their log responses, (2, m, m): who leaves,
            who stays; 0 for who leaves
        """
        rows = np.flatnonzero(self.hosts[self.place] == host)
        whole = self._prepared.without(int(np.searchsorted(self.hosts, host)))
        longer = self._longer[rows]
        if gone:
            same = self.domain[rows][:, np.newaxis] == self.domain[rows]
            longer = self._longer_on_pools(rows, np.where(
                same, -self._rate[rows][:, np.newaxis], 0.0))
        found = self._exponents(whole, longer, rows)
        for one in found:
            np.fill_diagonal(one, 0.0)
        return rows, found

    def parts(self) -> list[WaitShare]:
        """Say of which waits residents' slowdowns are made: cores, own disks, pools."""
        effects, uses = self._prepared.effects, self._uses
        waits = np.zeros((3, len(self.residents)))
        waits[0] = self._vms.used * (effects.stretch - 1.0)
        disk = np.zeros(len(self.residents))
        disk[uses.vm] = uses.used * self._vms.vcpus[uses.vm]
        waits[1, uses.vm] = uses.used * (effects.resource_stretch - 1.0)
        waits[2] = self._longer - 1.0
        waits = np.maximum(waits, 0.0)
        share = waits / np.maximum(waits.sum(axis=0), 1e-12)
        rate = np.where(self._pools.listed[self.domain], self._rate, 0.0)
        return [WaitShare(*of_one) for of_one in zip(
            share, (self.place, self.place, self.domain), (self.taken, disk, rate))]

    def _beside(self, coming: Newcomer, mean: FloatArray,
                residents: BoolArray | bool = True) -> tuple[FloatArray, FloatArray]:
        newcomer = coming.newcomer
        busy = float(characteristics.cpu_share(mean[None, :], np.array([newcomer.vcpus]))[0])
        rate = float(mean[IO].sum())
        # As long as it does as much, whatever its requests are.
        share = rate / max(newcomer.mean[IO].sum(), 1e-9) * newcomer.storage_wait
        domain = coming.domain(self._host_domain)
        on_pool = self._pools.listed[domain]
        on_disk = self._has_disk & (domain == self._host_domain)
        if math.isnan(share):
            waited = np.where(on_disk, self._request, self._pools.request(domain)) * (
                rate / newcomer.vcpus)
        else:
            waited = np.full(len(domain), share)
        waited = np.minimum(waited, 1.0 - busy)
        disk: dict[str, Any] = {}
        if rate and on_disk.any():
            disk = {'resource': np.where(on_disk, np.arange(len(self.hosts)), -1)[:, np.newaxis],
                    'resource_used': waited[on_disk][:1]}
        longer = np.ones(len(self.hosts))
        residents_longer = self._longer
        if rate and on_pool.any():
            longer += np.where(on_pool, waited, 0.0) * (
                self._pools.stretch(domain, rate if coming.felt else 0.0) - 1.0)
            if not coming.felt:
                # Those beside it on its own host; others are looked at apart.
                residents_longer = np.where(domain[self.place] == self.domain,
                                            self._longer_on_pools(slice(None), rate),
                                            self._longer)
        shared, weight = (busy, newcomer.cpu_weight) if newcomer.cpu_weight > 0.0 else (0.0, 1.0)
        own, others = self._prepared.with_newcomer(
            network.Newcomer(newcomer.vcpus, shared / longer, weight, **disk), residents)
        whole = current_interference.beyond_own_wait(np.log(own * longer),
                                                     newcomer.own_wait or None)
        guessed = np.full(len(own), rate >= characteristics.MINIMUM_IOPS and math.isnan(share))
        work = _of_work(whole, _busy(np.full(len(own), busy), waited, guessed))
        return (np.stack([work, whole]) + float(mean.any()) * self._contention,
                np.fmax(self._exponents(others, residents_longer), self.log_response))

    def _exponents(self, whole: FloatArray, longer: FloatArray,
                   rows: IntArray | slice = slice(None)) -> FloatArray:
        """Return log responses of residents, (2, …, m).

        :param whole: (…, m) by how much what they do takes longer on account of their own hosts
        :param longer: (…, m) and on account of pools
        :param rows: (m,) places in ``residents``
        """
        log_response = current_interference.beyond_own_wait(np.log(whole * longer),
                                                            self._own_wait[rows])
        felt = self._felt[:, rows]
        return np.stack([_of_work(log_response, self._busy[rows]) + felt[0],
                         np.where(self._does_io[rows], log_response + felt[1], np.nan)])


def _busy(used: FloatArray, waits: FloatArray, guessed: BoolArray) -> FloatArray:
    """Return in which part of its time alone a vCPU works, (n,).

    :param used: (n,) part in which it is on the CPU, ``waits``, in which it waits for storage
    :param guessed: (n,) whether that is not told; where nothing else tells it either, it may be
        all of the time
    """
    found: FloatArray = np.where(guessed & (waits == 0.0), 1.0,
                                 np.clip(used + waits, LEAST_BUSY, 1.0))
    return found


def _of_work(log_response: FloatArray, busy: FloatArray) -> FloatArray:
    """Return by how much the time stretches in which VMs work, as log responses, (…, n).

    :param log_response: (…, n) by how much all of their time does
    :param busy: (n,)
    """
    found: FloatArray = np.log1p(np.expm1(log_response) / busy)
    return found


def bound(log_response: FloatArray, level: float, of_law: FloatArray | float,
          spread: FloatArray | float = 0.0) -> FloatArray:
    """Return confidence bounds of log responses, (n,).

    :param level: below which they are with this probability
    :param of_law: (n,) standard deviation of log(slowdown − 1)
    :param spread: (n,) standard deviation due to an uncertain profile, in log responses
    """
    quantile = statistics.NormalDist().inv_cdf(level)
    off = np.log1p(np.expm1(log_response) * np.exp(quantile * of_law)) - log_response
    found: FloatArray = np.maximum(
        log_response + math.copysign(1.0, quantile) * np.hypot(off, quantile * spread), 0.0)
    return found


def _with_contention(log_response: FloatArray, level: float, of_law: FloatArray,
                     spread: FloatArray | float, mean: FloatArray, deviation: FloatArray
                     ) -> FloatArray:
    """Return the bounds of the law's part of log responses, plus those of the contention in them.

    :param mean: of the contention, and ``deviation``, its standard deviation
    """
    felt = np.maximum(mean + statistics.NormalDist().inv_cdf(level) * deviation, 0.0)
    return bound(log_response - mean, level, of_law, spread) + felt


def allowed(limit: FloatArray, confidence: float, of_law: FloatArray | float) -> FloatArray:
    """Return the log responses whose lower bounds are just these limits, (n,)."""
    with np.errstate(over='ignore'):
        found: FloatArray = np.log1p(np.expm1(limit) * np.exp(
            statistics.NormalDist().inv_cdf(confidence) * of_law))
    return found
