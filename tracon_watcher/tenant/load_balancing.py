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

"""How much of the load each worker gets so that the tail latency of all is least (DIAL).

Javadi, Analytical Approaches for Dynamic Scheduling in Cloud Environments (PhD thesis, Stony Brook
2019), section 4.3; Javadi & Gandhi, DIAL, ICAC'17. A worker is an M/M/1 queue of throughput r_i
that gets the share p_i of all requests, which come at a rate a.

What is minimised is eq. 4.2, the mean of the workers' percentiles, weighted by shares. It is a
constant times the mean response time, so that the shares are those for every percentile x. The
percentile T of all requests together, sum_i p_i exp(-(r_i - a p_i) T) = 1 - x/100, is not the
same: its least is missed by less than 0.3 % at x = 90 and by less than 8 % at x = 99 among 100
random pairs of workers (tests.unit.tenant.test_load_balancing).
"""

from __future__ import annotations

import math

import numpy as np

from tracon_watcher import errors
from tracon_watcher.tenant.latency_model import FloatArray


class Overloaded(errors.TraconError):
    """Requests come at a rate that all workers together cannot serve."""

    def __init__(self, rate: float, throughput: float) -> None:
        super().__init__(f'requests come at a rate of {rate:g}, and the workers serve '
                         f'{throughput:g} together: add workers')


def tail_latency(shares: FloatArray, throughputs: FloatArray, rate: float,
                 percentile: float) -> float:
    """Return T_x of a cluster as DIAL approximates it (eq. 4.2), in units of time.

    :param shares: p_i, shape (n,), of sum 1
    :param throughputs: r_i, shape (n,), requests per unit of time
    :param rate: a, requests per unit of time
    :param percentile: x, above 0 and below 100
    """
    used = shares > 0
    spare = throughputs[used] - rate * shares[used]
    if (spare <= 0).any():
        return math.inf
    return float(-math.log(1.0 - percentile / 100.0) * (shares[used] / spare).sum())


def optimal_shares(throughputs: FloatArray, rate: float) -> FloatArray:
    """Return the shares p_i* of least tail latency (Lemma 1, eq. 4.3).

    With R = sum r_j, S = sum sqrt(r_j) and t = (R - a) / S over the workers in use, eq. 4.3 is
    p_i = sqrt(r_i) (sqrt(r_i) - t) / a: negative where sqrt(r_i) < t. The thesis does not say so,
    though an example of it has a weight of 0. Such workers are left out, and the rest is solved
    again. That makes t greater, since each of them takes less from R than t times what it takes
    from S: so none would come back, and where none is negative any more, the conditions of the
    optimum with p_i >= 0 hold for all. The fastest worker is never left out.

    :param throughputs: r_i = r (1 - rho_bg,i), shape (n,), requests per unit of time, at least 0
    :param rate: a, in the same unit, above 0
    :returns: shape (n,), at least 0, of sum 1
    :raises Overloaded: when the rate is not less than the sum of throughputs
    :raises tracon_watcher.errors.InvalidOption: for a value that is unknown or out of range
    """
    if not (throughputs >= 0).all() or not np.isfinite(throughputs).all():
        raise errors.InvalidOption('throughputs', throughputs.tolist(), 'expected numbers of at '
                                   'least 0')
    if not 0 < rate < math.inf:
        raise errors.InvalidOption('rate', rate, 'expected a number above 0')
    if rate >= throughputs.sum():
        raise Overloaded(rate, float(throughputs.sum()))
    roots = np.sqrt(throughputs)
    used = throughputs > 0
    while True:
        threshold = (throughputs[used].sum() - rate) / roots[used].sum()
        kept = used & (roots > threshold)
        if (kept == used).all():
            break
        used = kept
    shares = np.where(used, roots * (roots - threshold) / rate, 0.0)
    return np.asarray(shares / shares.sum())


def replica_shares(throughput: float, contended: float, workers: int, replicas: int,
                   rate: float) -> tuple[float, float]:
    """Return the shares of requests within a group of replicas that has one contended worker.

    Each request can be served by a group of c of the n workers only. With w the worker that is
    contended, p the share it gets of requests to its groups, and q = p c / n what that is of all
    requests, eq. 4.6 is eq. 4.2 with q in place of p_1; hence p* = p_1* n / c, at most 1. It
    requires that w shares as many groups with each of the others, and that groups without w split
    equally. The thesis says nothing of several contended workers but that it is similar; it is
    not implemented.

    :param throughput: r of each worker without contention, requests per unit of time
    :param contended: r_w, of the contended worker
    :param workers: n
    :param replicas: c, from 2 to n
    :param rate: a, in the unit of ``throughput``
    :returns: the share of w, and that of each of the c - 1 others in its groups
    :raises Overloaded: when the rate is not less than the sum of throughputs
    :raises tracon_watcher.errors.InvalidOption: for a value out of range
    """
    if not 2 <= replicas <= workers:
        raise errors.InvalidOption('replicas', replicas, f'expected 2 to {workers}, the number of '
                                   f'workers')
    throughputs = np.full(workers, float(throughput))
    throughputs[0] = contended
    share = min(float(optimal_shares(throughputs, rate)[0]) * workers / replicas, 1.0)
    return share, (1.0 - share) / (replicas - 1)
