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

"""Hosts for which no model was learnt, judged by the law of queueing.

What VMs do to each other on the cores they share follows from the number of cores and what each
VM does (:mod:`tracon_watcher.queueing`): nothing has to be measured of the host's type.
Contention for storage is not in it. What it says was not checked against the host type, so
intervals are wide.

A vCPU of a VM is on the CPU for u = (guest CPU + host CPU) / vCPUs of its time alone. An IOPS
ratio is the inverse of the slowdown, for VMs that do I/O.
"""

from __future__ import annotations

import math
import statistics

import numpy as np

from tracon_watcher import characteristics
from tracon_watcher.characteristics import BoolArray, CPU, FloatArray, IntArray
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import newcomer as newcomers
from tracon_watcher.placement import own_wait as own_waits
from tracon_watcher.queueing import network

#: Standard deviation of log(slowdown − 1) on a host type that the law was not checked against.
SPREAD = 0.25


def judged(cluster: cluster_module.ClusterState, without_model: BoolArray) -> IntArray:
    """Return the hosts that can be judged by the law.

    :param without_model: (h,)
    """
    can = without_model & ~np.isnan(cluster.cores)
    can[cluster.host[~characteristics.is_known(cluster.profiles)]] = False
    return np.flatnonzero(can)


class Queues:
    """Hosts judged by the law, with their residents.

    :ivar hosts: (g,) indices
    :ivar residents: (n,) indices of the VMs there
    :ivar place: (n,) index of each one's host in ``hosts``
    :ivar taken: (n,) cores that each would use alone
    :ivar exponent: (2, n) what they suffer: log slowdown and −log IOPS ratio, NaN in the second
        for a VM that does too little I/O to have a ratio
    """

    def __init__(self, cluster: cluster_module.ClusterState, hosts: IntArray) -> None:
        self.hosts = hosts
        place = np.full(len(cluster.hosts), -1, dtype=np.intp)
        place[hosts] = np.arange(len(hosts))
        self.residents = np.flatnonzero(place[cluster.host] >= 0)
        rows = self.residents
        self.place = place[cluster.host[rows]]
        profiles = cluster.profiles[rows]
        self._on = network.Hosts(cluster.cores[hosts])
        self._vms = network.VMs(self.place, cluster.vcpus[rows],
                                used(profiles, cluster.vcpus[rows]))
        self._own_wait = cluster.own_wait[rows]
        self.taken = self._vms.used * self._vms.vcpus
        self._does_io = characteristics.request_rate(profiles) >= characteristics.MINIMUM_IOPS
        with np.errstate(divide='ignore'):
            #: (2, n) limits as exponents, infinite for none.
            self.limit = np.stack([np.log(cluster.max_slowdown[rows]),
                                   -np.log(cluster.min_iops_ratio[rows])])
        self._prepared = network.Prepared(self._on, self._vms)
        self.exponent = self._exponents(self._prepared.effects.slowdown)

    def beside(self, newcomer: newcomers.Profile) -> tuple[FloatArray, FloatArray]:
        """Return the exponents of a newcomer on each host, (g,), and of the residents, (2, n)."""
        return self._beside(newcomer, newcomer.mean)

    def harmed_for_sure(self, newcomer: newcomers.Profile, confidence: float) -> FloatArray:
        """Return the residents' exponents, (2, n), beside the least that it may well demand."""
        less = statistics.NormalDist().inv_cdf(confidence) * newcomer.deviation
        return self._beside(newcomer, np.maximum(newcomer.mean - less, 0.0))[1]

    def spread(self, newcomer: newcomers.Profile, exponent: FloatArray) -> FloatArray | float:
        """Return the standard deviations, (g,), that an uncertain demand gives its exponents."""
        deviation = math.hypot(*newcomer.deviation[CPU])
        if not deviation:
            return 0.0
        change = np.zeros(len(self.hosts))
        for sign in (1.0, -1.0):
            # Both sorts of CPU time are one here.
            mean = newcomer.mean.copy()
            mean[CPU] = max(mean[CPU].sum() + sign * deviation, 0.0), 0.0
            change = np.maximum(change, np.abs(self._beside(newcomer, mean)[0] - exponent))
        return change

    def harm(self, rise: FloatArray) -> FloatArray:
        """Return by how much exponents rise on each host, (g,).

        :param rise: (2, n) of the residents
        """
        found: FloatArray = np.bincount(self.place, np.nan_to_num(rise).sum(axis=0),
                                        len(self.hosts)).astype(float)
        return found

    def host_of(self, rows: IntArray) -> IntArray:
        """Return the hosts' indices of some residents, given by their place in ``residents``."""
        return self.hosts[self.place[rows]]

    def without(self, host: int) -> tuple[IntArray, FloatArray]:
        """Say what the residents of a host suffer without each one of them.

        :param host: one of ``hosts``
        :returns: their m places in ``residents``, and their exponents, (2, m, m): who leaves, who
            stays; 0 for who leaves
        """
        rows = np.flatnonzero(self.hosts[self.place] == host)
        case, vm, slowdown = network.without(self._on, self._vms, rows)
        whole = np.ones((len(rows), len(self.residents)))
        whole[case, vm] = slowdown
        found = np.stack([self._exponents(one)[:, rows] for one in whole], axis=1) \
            if len(rows) else np.zeros((2, 0, 0))
        for one in found:
            np.fill_diagonal(one, 0.0)
        return rows, found

    def _beside(self, newcomer: newcomers.Profile,
                mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        own, others = self._prepared.with_newcomer(network.Newcomer(
            newcomer.vcpus, float(used(mean[None, :], np.array([newcomer.vcpus]))[0])))
        return (own_waits.felt(np.log(own), newcomer.own_wait or None),
                np.fmax(self._exponents(others), self.exponent))

    def _exponents(self, slowdown: FloatArray) -> FloatArray:
        one = own_waits.felt(np.log(slowdown), self._own_wait)
        return np.stack([one, np.where(self._does_io, one, np.nan)])


def used(profiles: FloatArray, vcpus: IntArray) -> FloatArray:
    """Return which part of its time alone each vCPU is on the CPU, (n,).

    :param profiles: (n, 4)
    :param vcpus: (n,)
    """
    found: FloatArray = np.clip(profiles[:, CPU].sum(axis=1) / vcpus, 0.0, 1.0)
    return found


def bound(exponent: FloatArray, level: float, spread: FloatArray | float = 0.0) -> FloatArray:
    """Return confidence bounds of exponents, (n,).

    :param level: below which they are with this probability
    :param spread: (n,) standard deviation due to an uncertain profile, in exponents
    """
    quantile = statistics.NormalDist().inv_cdf(level)
    of_law = np.log1p(np.expm1(exponent) * math.exp(quantile * SPREAD)) - exponent
    found: FloatArray = np.maximum(
        exponent + math.copysign(1.0, quantile) * np.hypot(of_law, quantile * spread), 0.0)
    return found


def allowed(limit: FloatArray, confidence: float) -> FloatArray:
    """Return the exponents whose lower bounds are just these limits, (n,)."""
    with np.errstate(over='ignore'):
        found: FloatArray = np.log1p(np.expm1(limit) * math.exp(
            statistics.NormalDist().inv_cdf(confidence) * SPREAD))
    return found
