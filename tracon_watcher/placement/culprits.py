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

"""Of all VMs at once: who slows each down most, and what each costs the others.

The same as :mod:`~tracon_watcher.placement.attribution` finds VM by VM. On a pool that very many
VMs share, only those with the most I/O on it are left out one by one; the others do so little each
that what they do is taken for proportional to their I/O.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray, IO
from tracon_watcher.placement import assessment
from tracon_watcher.placement import attribution
from tracon_watcher.placement import neighbours
from tracon_watcher.placement import queues
from tracon_watcher.placement import residents
from tracon_watcher import tie_breaking

#: Pairs of VMs on pools that are looked at exactly; about a second.
_PAIRS = 1 << 22
#: Of each pool that many with the most I/O are left out one by one in any case.
_LARGEST = 16
_AT_ONCE = 1 << 18


@dataclasses.dataclass(frozen=True)
class Culprits:
    """Arrays over the n residents of a cluster.

    :param culprit: (n,) row of the VM that does most to each; -1 for none or unknown
    :param share: (n,) of the excess, that VM's; NaN where unknown
    :param joint: (n,) of the excess, what cannot be put down to one; NaN where unknown
    :param harm: (n,) exponents, log slowdown and −log IOPS ratio together, that each adds to what
        others suffer, wherever they are; NaN where unknown
    """

    culprit: IntArray
    share: FloatArray
    joint: FloatArray
    harm: FloatArray


def find(assessor: assessment.Assessor, pairs: int = _PAIRS) -> Culprits:
    """Find the worst culprit of every resident, and the harm every one does to others.

    Of VMs that do equally much the first of the host counts, before those of other hosts.

    :param pairs: about so many pairs of VMs on pools are looked at exactly
    """
    tally = _Tally(len(assessor.cluster.uuids))
    for group in assessor.groups:
        for index, response in enumerate(group.responses):
            _near(group, response, tally, index == 0)
    if assessor.queues is not None:
        _by_law(assessor.queues, tally)
    pooled = sum(len(group.pooled) for group in assessor.groups)
    if pooled:
        _far(assessor, max(pairs // pooled, _LARGEST), tally)
    return tally.result(assessor)


class _Tally:
    """Sums and maxima that grow while pairs are looked at."""

    def __init__(self, count: int) -> None:
        self.culprit = np.full(count, -1, dtype=np.intp)
        self.most = np.zeros(count)
        self.relief = np.zeros(count)
        self.harm = np.zeros(count)

    def blame(self, targets: IntArray, who: IntArray, relief: FloatArray,
              total: FloatArray) -> None:
        """Note, (m,) each, what ends if all others leave in turn, and who does most.

        :param targets: rows, all different
        :param relief: of the one who does most
        :param total: the sum over all
        """
        self.relief[targets] += total
        # Of equals the one that was looked at first, not the one that rounding favours.
        worse = tie_breaking.less(self.most[targets], relief)
        self.culprit[targets[worse]] = who[worse]
        self.most[targets[worse]] = relief[worse]

    def result(self, assessor: assessment.Assessor) -> Culprits:
        slow, _ratio = assessor.exponents()
        factor, joint = attribution.shares(self.relief, np.expm1(slow))
        unknown = np.isnan(slow)
        # Where a host's residents are unknown, so is what they do to each other.
        blind = ~np.isin(assessor.status, (assessment.Status.KNOWN,
                                           assessment.Status.OUTSIDE_HULL))[assessor.cluster.host]
        return Culprits(np.where(unknown, -1, self.culprit),
                        np.where(unknown, np.nan, self.most * factor),
                        np.where(unknown, np.nan, joint), np.where(blind, np.nan, self.harm))


def _near(group: residents.Group, response: residents.Response, tally: _Tally,
          blame: bool) -> None:
    """Reckon in what VMs do to others on their host."""
    for rows in neighbours.by_size(group.place, len(group.hosts)):
        harm, relief = _ended(response.exponent[rows][:, :, None],
                              attribution.beside_all_but(response, rows),
                              response.counted[rows][:, :, None])
        residents_of = group.residents[rows]
        tally.harm[residents_of] += harm.sum(axis=1)
        if blame:
            most = tie_breaking.argmax_of_each(relief)
            tally.blame(residents_of.ravel(),
                        np.take_along_axis(residents_of, most, axis=1).ravel(),
                        relief.max(axis=2).ravel(), relief.sum(axis=2).ravel())


def _by_law(law: queues.Queues, tally: _Tally) -> None:
    """Reckon in what VMs do to others on hosts without a model, by how long each is on the CPU.

    To leave each out in turn would take a solution for each pair.
    """
    if not len(law.residents):
        return
    taken, place = law.taken, law.place
    total = np.bincount(place, taken, len(law.hosts))
    others = np.maximum(total[place] - taken, 1e-9)
    # Who takes most of each host, and who does beside that one.
    order = np.lexsort((-taken, place))
    first = np.searchsorted(place[order], np.arange(len(law.hosts)))
    second = np.minimum(first + 1, len(order) - 1)
    worst = order[first[place]]
    itself = worst == np.arange(len(place))
    worst[itself] = order[second[place[itself]]]
    alone = place[worst] != place
    excess = np.expm1(law.exponent[0])
    known = np.flatnonzero(~alone & (worst != np.arange(len(place))))
    tally.blame(law.residents[known], law.residents[worst[known]],
                (excess * taken[worst] / others)[known], excess[known])
    for exponent in np.nan_to_num(law.exponent):
        each = exponent / others
        tally.harm[law.residents] += taken * (
            np.bincount(place, each, len(law.hosts))[place] - each)


def _far(assessor: assessment.Assessor, largest: int, tally: _Tally) -> None:
    """Reckon in what VMs do to others on other hosts, with which they share a pool."""
    cluster = assessor.cluster
    io = np.nan_to_num(cluster.profiles[:, IO])
    order = np.argsort(cluster.io_domain, kind='stable')
    first = np.searchsorted(cluster.io_domain[order], np.arange(len(cluster.io_domains) + 1))
    for group in assessor.groups:
        domain = cluster.io_domain[group.residents[group.pooled]]
        for one in np.unique(domain[domain >= 0]):
            users = order[first[one]:first[one + 1]]
            pool = _Pool(cluster.host[users], users, io[users], largest)
            for index, response in enumerate(group.responses):
                rows = group.pooled[domain == one]
                pool.reckon(assessor, group, response, rows[response.counted[rows]], tally,
                            index == 0)


class _Pool:
    """The m VMs on one storage backend as those who do something to others there.

    :param host: (m,) index of each one's host
    :param users: (m,) rows
    :param io: (m, 2)
    :param largest: how many are left out one by one
    """

    def __init__(self, host: IntArray, users: IntArray, io: FloatArray, largest: int) -> None:
        busy = io.any(axis=1)
        host, users, io = host[busy], users[busy], io[busy]
        # By what each does of the pool's reads or of its writes, whichever is more.
        weight = (io / np.maximum(io.max(axis=0, initial=0.0), 1e-9)).max(axis=1)
        order = tie_breaking.argsort(-weight)
        large, small = order[:largest], order[largest:]
        self._large = users[large]
        self._large_host, self._large_io = host[large], io[large]
        self._small, self._small_host, self._small_io = users[small], host[small], io[small]

    def reckon(self, assessor: assessment.Assessor, group: residents.Group,
               response: residents.Response, rows: IntArray, tally: _Tally, blame: bool) -> None:
        step = max(_AT_ONCE // max(len(self._large), 1), 1)
        for start in range(0, len(rows), step):
            self._one_by_one(assessor, group, response, rows[start:start + step], tally, blame)
        if len(self._small):
            self._in_proportion(assessor, group, response, rows, tally, blame)

    def _one_by_one(self, assessor: assessment.Assessor, group: residents.Group,
                    response: residents.Response, rows: IntArray, tally: _Tally,
                    blame: bool) -> None:
        cluster, count = assessor.cluster, len(self._large)
        targets = group.residents[rows]
        if not count or not len(rows):
            return
        elsewhere: BoolArray = cluster.host[targets][:, None] != self._large_host
        without = attribution.without_far(
            np.repeat(cluster.io_beyond[targets], count, axis=0), group, response,
            np.repeat(rows, count), np.tile(self._large_io, (len(rows), 1)))
        harm, relief = _ended(response.exponent[rows][:, None],
                              without.reshape(len(rows), count), elsewhere)
        tally.harm[self._large] += harm.sum(axis=0)
        if blame:
            tally.blame(targets, self._large[tie_breaking.argmax_of_each(relief)],
                        relief.max(axis=1), relief.sum(axis=1))

    def _in_proportion(self, assessor: assessment.Assessor, group: residents.Group,
                       response: residents.Response, rows: IntArray, tally: _Tally,
                       blame: bool) -> None:
        cluster = assessor.cluster
        targets = group.residents[rows]
        beyond, host = cluster.io_beyond[targets], cluster.host[targets]
        hosts = len(cluster.hosts)
        for column in range(2):
            # As much as the largest of them does.
            step = np.minimum(self._small_io[:, column].max(), beyond[:, column])
            less = np.zeros((len(rows), 2))
            less[:, column] = step
            harm, relief = _ended(
                response.exponent[rows],
                attribution.without_far(beyond, group, response, rows, less), step > 0)
            per_request = np.maximum(step, 1e-9)
            harm, relief = harm / per_request, relief / per_request
            # Whoever is on the target's own host is a neighbour there, and none from elsewhere.
            at_home = np.bincount(host, harm, minlength=hosts)
            tally.harm[self._small] += self._small_io[:, column] * (
                harm.sum() - at_home[self._small_host])
            if blame:
                own = np.bincount(self._small_host, self._small_io[:, column], minlength=hosts)
                tally.relief[targets] += relief * (self._small_io[:, column].sum() - own[host])


def _ended(now: FloatArray, without: FloatArray, counted: BoolArray
           ) -> tuple[FloatArray, FloatArray]:
    """Return the harm, and the relief, that end with each who leaves; 0 where not counted."""
    harm = np.where(counted, np.maximum(now - without, 0.0), 0.0)
    return harm, np.where(counted, np.exp(now) * -np.expm1(-harm), 0.0)
