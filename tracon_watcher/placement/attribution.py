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

"""Attribution of slowdown to VMs, by leaving each one out in turn."""

from __future__ import annotations

import dataclasses
from typing import Mapping

import numpy as np

from tracon_watcher import characteristics
from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import queues
from tracon_watcher.placement import storage_backends
from tracon_watcher import tie_breaking


def without_each(part: cluster_module.ClusterState) -> cluster_module.ClusterState:
    """Return the state of m hosts, each the only host of ``part`` without one of its m residents.

    Each has storage backends of its own, with the I/O from elsewhere that the host's have: no VM
    is felt on another host. The uuids are not all different.

    :param part: of one host, with at least one resident
    """
    count = len(part.uuids)
    used = np.unique(np.concatenate([part.io_domain, part.host_io_domain]))
    used = used[used >= 0]
    number = np.full(len(part.io_domains) + 1, -1, dtype=np.intp)      # the last one is of -1
    number[used] = np.arange(len(used))
    rows = np.array([row for left in range(count) for row in range(count) if row != left],
                    dtype=np.intp)
    host = np.repeat(np.arange(count), count - 1)
    own, stays = number[part.host_io_domain[0]], number[part.io_domain[rows]]
    rate = None if part.rate_elsewhere is None else np.tile(part.rate_elsewhere[used], count)
    return dataclasses.replace(
        part, hosts=tuple(f'{part.hosts[0]}-{place}' for place in range(count)),
        host_type=part.host_type * count,
        host_io_domain=np.where(own >= 0, own + np.arange(count) * len(used), -1).astype(np.intp),
        updated_at=np.repeat(part.updated_at, count), cores=np.repeat(part.cores, count),
        threads=np.repeat(part.threads, count),
        contention=np.repeat(part.felt, count, axis=0),
        uuids=tuple(part.uuids[row] for row in rows), host=host.astype(np.intp),
        io_domain=np.where(stays >= 0, stays + host * len(used), -1).astype(np.intp),
        profiles=part.profiles[rows], max_slowdown=part.max_slowdown[rows],
        min_iops_ratio=part.min_iops_ratio[rows], own_wait=part.own_wait[rows],
        vcpus=part.vcpus[rows], storage_wait=part.storage_wait[rows],
        cpu_weight=part.cpu_weight[rows], background=part.background[rows],
        io_domains=tuple(_named(part.io_domains[domain], place) for place in range(count)
                         for domain in used), rate_elsewhere=rate)


def pools_without(part: cluster_module.ClusterState,
                  known: Mapping[str, queues.Pool]) -> dict[str, queues.Pool]:
    """Return by name what is known of the storage backends that :func:`copies` have.

    :param known: by name, of those of ``part``
    """
    return {_named(name, place): known[name] for place in range(len(part.uuids))
            for name in part.io_domains if name in known}


def _named(backend: str, place: int) -> str:
    return f'{backend}-{place}'


#: Less of an increase is rounding, which no VM causes.
_NOTHING = 1e-9


@dataclasses.dataclass(frozen=True)
class Influence:
    """Of k pairs of VMs, what one does to the other, as log responses.

    The first row is of log slowdown, the second of −log IOPS ratio; NaN where unknown, and in the
    second where the VM that suffers does too little I/O to have a ratio.

    :param rows: (k,) the other VM of each pair, index into ``cluster.uuids``
    :param now: (2, k) what the VM that suffers does suffer
    :param without: (2, k) what it would suffer without the one that harms
    """

    rows: IntArray
    now: FloatArray
    without: FloatArray

    @property
    def harm(self) -> FloatArray:
        """(2, k) by how much less it would suffer; no VM harms others by leaving."""
        return np.asarray(np.maximum(self.now - self.without, 0.0))

    @property
    def total(self) -> FloatArray:
        """(k,) both responses together, each where it is defined."""
        return np.asarray(np.nansum(self.harm, axis=0))


@dataclasses.dataclass(frozen=True)
class Attribution:
    """The m VMs that do something to one VM, the worst first.

    :param log_response: (2,) what it suffers: log slowdown and −log IOPS ratio; NaN where unknown
    :param influence: what each does to it
    :param share: (m,) of the increase of its slowdown, 0 to 1
    :param joint: the part of the increase that cannot be put down to one; 0 where there is none
    """

    log_response: FloatArray
    influence: Influence
    share: FloatArray
    joint: float

    @property
    def known(self) -> bool:
        """Whether its slowdown is."""
        return not bool(np.isnan(self.log_response[0]))


def shares(relief: FloatArray, slowdown_increase: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what reliefs are multiplied by to be shares, and the joint parts, (n,) each.

    :param relief: (n,) sums of the reliefs of all that do something to each VM
    :param slowdown_increase: (n,) of its slowdown
    """
    something = slowdown_increase > _NOTHING
    with np.errstate(divide='ignore', invalid='ignore'):
        # At most 100 % together: what is missing of, or counted twice in, the larger is joint.
        least = np.where(something, np.minimum(relief, slowdown_increase)
                         / np.maximum(relief, slowdown_increase), 1.0)
        factor = np.where(something & (relief > 0), least / relief, 0.0)
    return factor, np.asarray(1.0 - least)


def attribute(assessor: assessment.Assessor, row: int) -> Attribution:
    """Find all who do something to the VM in ``row``, on its host and on its pool.

    :returns: with no VM in it and NaN log responses where what it suffers is unknown
    """
    cluster, law = assessor.cluster, assessor.law
    host = int(cluster.host[row])
    if host not in law.hosts:
        empty = np.zeros((2, 0))
        return Attribution(np.full(2, np.nan),
                           Influence(np.zeros(0, dtype=np.intp), empty, empty), np.zeros(0), 0.0)
    places, near = law.without(host, gone=True)
    target = int(np.searchsorted(law.residents[places], row))
    others = np.delete(np.arange(len(places)), target)
    far, rate = _on_pool(cluster, row)
    without = law.with_requests(np.full(len(far), places[target]), -rate)
    return _attribution(law.log_response[:, places[[target]]],
                        np.concatenate([law.residents[places[others]], far]),
                        np.concatenate([near[:, others, target], without], axis=1))


def _on_pool(cluster: cluster_module.ClusterState, row: int) -> tuple[IntArray, FloatArray]:
    """Return the VMs of other hosts on the pool of a VM, (k,), and their requests a second."""
    domain = cluster.io_domain[row]
    if domain < 0 or storage_backends.is_local(cluster)[domain]:
        return np.zeros(0, dtype=np.intp), np.zeros(0)
    rate = characteristics.request_rate(cluster.profiles)
    rows = np.flatnonzero((cluster.io_domain == domain) & (cluster.host != cluster.host[row])
                          & (rate > 0.0))
    return rows, rate[rows]


def _attribution(log_response: FloatArray, rows: IntArray, without: FloatArray) -> Attribution:
    """Return what VMs do to one, the worst first.

    :param log_response: (2, 1) of the one
    :param rows: (m,) the others
    :param without: (2, m) log responses without each
    """
    influence = Influence(rows, np.broadcast_to(log_response, without.shape), without)
    relief = np.maximum(np.exp(log_response[0]) - np.exp(without[0]), 0.0)
    factor, joint = shares(relief.sum(keepdims=True), np.expm1(log_response[0]))
    share = relief * factor
    order = tie_breaking.argsort(-influence.harm[0])
    return Attribution(log_response[:, 0], _taken(influence, order), share[order], float(joint[0]))


def victims(assessor: assessment.Assessor, row: int) -> Influence:
    """Find all to whom the VM in ``row`` does something, the worst hit first.

    Victims of whom nothing is known are left out.
    """
    cluster, law = assessor.cluster, assessor.law
    host = int(cluster.host[row])
    near, far = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    beside = np.zeros((2, 0))
    if host in law.hosts:
        places, after = law.without(host, gone=True)
        leaver = int(np.searchsorted(law.residents[places], row))
        others = np.delete(np.arange(len(places)), leaver)
        near, beside = places[others], after[:, leaver, others]
    rate = float(characteristics.request_rate(cluster.profiles[[row]])[0])
    if rate > 0.0:
        away = law.domain == cluster.io_domain[row]
        away &= ~storage_backends.is_local(cluster)[law.domain] & (law.domain >= 0)
        far = np.flatnonzero(away & (cluster.host[law.residents] != host))
    rows = np.concatenate([near, far])
    all_of = Influence(law.residents[rows], law.log_response[:, rows],
                       np.concatenate([beside, law.with_requests(far, -rate)], axis=1))
    return _taken(all_of, tie_breaking.argsort(-all_of.total))


def _taken(influence: Influence, order: IntArray) -> Influence:
    return Influence(influence.rows[order], influence.now[:, order], influence.without[:, order])


@dataclasses.dataclass(frozen=True)
class LeaveOneOut:
    """What the leaving of each of a host's m residents brings on that host.

    :param uuids: the m residents
    :param relief: (m,) log responses, log slowdown and −log IOPS ratio together, that end: the
        leaver's own and its part in those of all others, background work left out
    :param ends: (m, m) whose breach ends, a line for each leaver; its own breach among them
    """

    uuids: tuple[str, ...]
    relief: FloatArray
    ends: BoolArray

    @property
    def ended(self) -> IntArray:
        """(m,) breaches that end."""
        return np.asarray(self.ends.sum(axis=1), dtype=np.intp)


def leave_one_out(assessor: assessment.Assessor, host: int) -> LeaveOneOut:
    """Predict a host's residents without each one of them; who leaves stays on its pool."""
    cluster, law = assessor.cluster, assessor.law
    if host not in law.hosts:
        uuids = cluster.uuids[cluster.first[host]:cluster.first[host + 1]]
        return LeaveOneOut(uuids, np.zeros(len(uuids)),
                           np.zeros((len(uuids), len(uuids)), dtype=bool))
    rows, after = law.without(host)
    before = law.log_response[:, rows]
    relief = (law.counted(before, rows).sum(axis=(0, 1))
              - law.counted(after, rows).sum(axis=(0, 2)))
    level, limit = 1 - assessor.settings.confidence, law.limit[:, rows]
    breached = law.bound(level, before, rows) > limit
    still = law.bound(level, after, rows) > limit[:, np.newaxis, :]
    for one in still:
        np.fill_diagonal(one, False)
    return LeaveOneOut(tuple(cluster.uuids[row] for row in law.residents[rows]), relief,
                       np.asarray(breached.any(axis=0) & ~still.any(axis=0)))


@dataclasses.dataclass(frozen=True)
class Culprits:
    """Arrays over the n residents of a cluster.

    :param culprit: (n,) row of the VM that does most to each; -1 for none or unknown
    :param share: (n,) of the increase, that VM's; NaN where unknown
    :param harm: (n,) log responses, log slowdown and −log IOPS ratio together, that each adds to
        what others suffer, wherever they are, background work left out; NaN where unknown
    """

    culprit: IntArray
    share: FloatArray
    harm: FloatArray


def find_culprits(assessor: assessment.Assessor) -> Culprits:
    """Find the worst culprit of every resident, and the harm every one does to others."""
    law, count = assessor.law, len(assessor.cluster.uuids)
    culprit, share = np.full(count, -1, dtype=np.intp), np.full(count, np.nan)
    harm = np.full(count, np.nan)
    if len(law.residents):
        who, most, done = _of_law(law)
        culprit[law.residents] = np.where(who >= 0, law.residents[who], -1)
        share[law.residents] = most
        harm[law.residents] = done
    return Culprits(culprit, share, harm)


def _of_law(law: queues.Queues) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the worst culprit of each resident, -1 for none, its share, and each one's harm."""
    parts = law.parts()
    suffered = law.counted(law.by_neighbours).sum(axis=0)
    something = np.expm1(law.by_neighbours[0]) > _NOTHING
    harm = np.zeros(len(suffered))
    others = []
    for part in parts:
        total = np.bincount(part.key + 1, part.amount)
        rest = np.maximum(total[part.key + 1] - part.amount, 1e-9)
        others.append(rest)
        each = suffered * part.share / rest
        harm += part.amount * (np.bincount(part.key + 1, each)[part.key + 1] - each)
    culprit, most = np.full(len(harm), -1, dtype=np.intp), np.zeros(len(harm))
    for part in parts:
        candidate = _largest_other(part)
        relief = np.zeros(len(harm))
        for one, rest in zip(parts, others):
            together = one.key[candidate] == one.key
            relief += np.where(together, one.share * one.amount[candidate] / rest, 0.0)
        # Of equals the one that was looked at first, not the one that rounding favours.
        worse = (candidate >= 0) & something & tie_breaking.less(most, relief)
        culprit[worse], most[worse] = candidate[worse], relief[worse]
    return culprit, np.minimum(most, 1.0), harm


def _largest_other(part: queues.WaitShare) -> IntArray:
    """Return who else takes most of what each one uses, (n,); -1 for no other."""
    count = len(part.key)
    order = np.lexsort((np.arange(count), -part.amount, part.key))
    key = part.key[order]
    first = np.searchsorted(key, part.key)
    second = np.minimum(first + 1, count - 1)
    found = order[first]
    itself = found == np.arange(count)
    found[itself] = np.where((second > first) & (key[second] == part.key),
                             order[second], -1)[itself]
    found[(part.amount[found] <= 0.0) | (part.key < 0)] = -1
    return np.asarray(found)
