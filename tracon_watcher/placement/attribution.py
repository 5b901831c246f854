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

"""Who slows a VM down, and whom it slows down: by leaving each one out in turn.

What j does to a VM is what would end if j were not there at all, neither on its host nor on the
storage they share: the *harm* log(S / S₋ⱼ), with S the VM's predicted slowdown and S₋ⱼ that
without j, and in parts of the *excess* S − 1 the *relief* S − S₋ⱼ. Co-residents count with what
they do on the host and storage they share, VMs of other hosts with their I/O on a pool; exactly as
:class:`~tracon_watcher.placement.assessment.Assessor` predicts the state without them.

Reliefs need not add up to the excess. Where they fall short of it the rest is *joint*: nobody's
leaving alone would end it. Where they exceed it, several get in each other's way and what they do
together is counted for each of them; then the part of the sum that is counted more than once is
joint. A culprit's *share* is its part of what is not joint, so that all shares and the joint part
make up 100 %.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tracon_watcher.characteristics import FloatArray, IntArray, IO
from tracon_watcher.placement import assessment
from tracon_watcher.placement import elsewhere
from tracon_watcher.placement import queues
from tracon_watcher.placement import residents
from tracon_watcher import tie_breaking

#: Less of an excess is rounding, which is nobody's.
_NOTHING = 1e-9


@dataclasses.dataclass(frozen=True)
class Influence:
    """Of k pairs of VMs, what one does to the other, as exponents.

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
        """(2, k) by how much less it would suffer; nobody's leaving ever harms."""
        return np.asarray(np.maximum(self.now - self.without, 0.0))

    @property
    def total(self) -> FloatArray:
        """(k,) both responses together, each where it is defined."""
        return np.asarray(np.nansum(self.harm, axis=0))


@dataclasses.dataclass(frozen=True)
class Attribution:
    """The m VMs that do something to one VM, the worst first.

    :param exponent: (2,) what it suffers: log slowdown and −log IOPS ratio; NaN where unknown
    :param influence: what each does to it
    :param share: (m,) of the excess of its slowdown, 0 to 1
    :param joint: the part of the excess that cannot be put down to one; 0 where there is none
    """

    exponent: FloatArray
    influence: Influence
    share: FloatArray
    joint: float

    @property
    def known(self) -> bool:
        """Whether its slowdown is."""
        return not bool(np.isnan(self.exponent[0]))


def shares(relief: FloatArray, excess: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what reliefs are multiplied by to be shares, and the joint parts, (n,) each.

    :param relief: (n,) sums of the reliefs of all that do something to each VM
    :param excess: (n,) of its slowdown
    """
    something = excess > _NOTHING
    with np.errstate(divide='ignore', invalid='ignore'):
        # At most 100 % together: what is missing of, or counted twice in, the larger is joint.
        least = np.where(something, np.minimum(relief, excess) / np.maximum(relief, excess), 1.0)
        factor = np.where(something & (relief > 0), least / relief, 0.0)
    return factor, np.asarray(1.0 - least)


def attribute(assessor: assessment.Assessor, row: int) -> Attribution:
    """Find all who do something to the VM in ``row``; exact, also on a pool of many hosts.

    :returns: with nobody in it and NaN exponents where what it suffers is unknown
    """
    cluster = assessor.cluster
    exponent = np.full((2, 1), np.nan)
    host = int(cluster.host[row])
    if assessor.queues is not None and host in assessor.queues.hosts:
        return _by_law(assessor.queues, host, row)
    found = assessor.of_host(host)
    if found is None:
        return _nobody(exponent)
    group, own = found
    at = int(own[0]) + row - int(cluster.first[cluster.host[row]])
    place = at - int(own[0])
    near = own[own != at]
    far = np.zeros(0, dtype=np.intp)
    if group.table[at] >= 0:
        far = np.flatnonzero((cluster.io_domain == cluster.io_domain[row])
                             & (cluster.host != cluster.host[row])
                             & (cluster.profiles[:, IO] > 0).any(axis=1))
    rows = np.concatenate([group.residents[near], far])
    without = np.full((2, len(rows)), np.nan)
    for index, response in enumerate(group.responses):
        if not response.counted[at]:
            continue
        exponent[index] = response.exponent[at]
        without[index, :len(near)] = np.delete(
            beside_all_but(response, own[None, :])[0, place], place)
        if len(far):
            without[index, len(near):] = without_far(
                cluster.io_beyond[row], group, response, np.full(len(far), at),
                cluster.profiles[far, IO])
    if np.isnan(exponent[0, 0]):
        return _nobody(exponent)
    return _attribution(exponent, rows, without)


def _by_law(law: queues.Queues, host: int, row: int) -> Attribution:
    places, after = law.without(host)
    target = int(np.flatnonzero(law.residents[places] == row)[0])
    others = np.delete(np.arange(len(places)), target)
    return _attribution(law.exponent[:, places[[target]]], law.residents[places[others]],
                        after[:, others, target])


def _attribution(exponent: FloatArray, rows: IntArray, without: FloatArray) -> Attribution:
    """Return what VMs do to one, the worst first.

    :param exponent: (2, 1) of the one
    :param rows: (m,) the others
    :param without: (2, m) exponents without each
    """
    influence = Influence(rows, np.broadcast_to(exponent, without.shape), without)
    relief = np.maximum(np.exp(exponent[0]) - np.exp(without[0]), 0.0)
    factor, joint = shares(relief.sum(keepdims=True), np.expm1(exponent[0]))
    share = relief * factor
    order = tie_breaking.argsort(-influence.harm[0])
    return Attribution(exponent[:, 0], _taken(influence, order), share[order], float(joint[0]))


def victims(assessor: assessment.Assessor, row: int) -> Influence:
    """Find all to whom the VM in ``row`` does something, the worst hit first.

    Victims of whom nothing is known are left out.
    """
    cluster = assessor.cluster
    io, domain, host = cluster.profiles[row, IO], int(cluster.io_domain[row]), cluster.host[row]
    parts = []
    found = assessor.of_host(int(host))
    if assessor.queues is not None and host in assessor.queues.hosts:
        law = assessor.queues
        places, after = law.without(int(host))
        leaver = int(np.flatnonzero(law.residents[places] == row)[0])
        others = np.delete(np.arange(len(places)), leaver)
        parts.append(Influence(law.residents[places[others]], law.exponent[:, places[others]],
                               after[:, leaver, others]))
    elif found is not None:
        group, own = found
        place = row - int(cluster.first[host])
        others = np.delete(np.arange(len(own)), place)
        parts.append(_influence(group, own[others], [
            beside_all_but(response, own[None, :])[0, others, place]
            for response in group.responses]))
    if domain >= 0 and io.any():
        for group in assessor.groups:
            rows = group.pooled[(cluster.io_domain[group.residents[group.pooled]] == domain)
                                & (cluster.host[group.residents[group.pooled]] != host)]
            beyond = cluster.io_beyond[group.residents[rows]]
            parts.append(_influence(group, rows, [
                without_far(beyond, group, response, rows, io) for response in group.responses]))
    if not parts:
        return Influence(np.zeros(0, dtype=np.intp), np.zeros((2, 0)), np.zeros((2, 0)))
    all_of = Influence(np.concatenate([one.rows for one in parts]),
                       np.concatenate([one.now for one in parts], axis=1),
                       np.concatenate([one.without for one in parts], axis=1))
    known = np.flatnonzero(~np.isnan(all_of.harm).all(axis=0))
    all_of = _taken(all_of, known)
    return _taken(all_of, tie_breaking.argsort(-all_of.total))


def beside_all_but(response: residents.Response, rows: IntArray) -> FloatArray:
    """Return the exponents of targets (axis 1) without each other VM of their host (axis 2).

    :param rows: (k, m) the VMs of each host
    :returns: (k, m, m)
    """
    single, cross = response.model.parts(response.behaviour.excess(rows))
    # What is taken away was added before; rounding may leave less than nothing.
    np.maximum(response.single[rows][:, :, None] - single, 0.0, out=single)
    np.maximum(response.cross[rows][:, :, None] - cross, 0.0, out=cross)
    return response.total(single, cross, rows, (2,))


def without_far(beyond: FloatArray, group: residents.Group, response: residents.Response,
                rows: IntArray, io: FloatArray) -> FloatArray:
    """Return the exponents of VMs on a pool, (m,), with less I/O from other hosts on it.

    :param beyond: (m, 2) or (2,) the I/O from other hosts now
    :param rows: (m,) of the group
    :param io: (m, 2) or (2,) the I/O that is not there any more
    """
    left = np.broadcast_to(np.maximum(beyond - io, 0.0), (len(rows), 2))
    return response.beside(rows, beyond=elsewhere.excess(
        response.model, response.tables, group.table[rows], left))


def _influence(group: residents.Group, rows: IntArray, without: list[FloatArray]) -> Influence:
    counted = np.stack([response.counted[rows] for response in group.responses])
    now = np.stack([response.exponent[rows] for response in group.responses])
    return Influence(group.residents[rows], np.where(counted, now, np.nan),
                     np.where(counted, np.stack(without), np.nan))


def _taken(influence: Influence, order: IntArray) -> Influence:
    return Influence(influence.rows[order], influence.now[:, order], influence.without[:, order])


def _nobody(exponent: FloatArray) -> Attribution:
    none = np.zeros((2, 0))
    return Attribution(exponent[:, 0], Influence(np.zeros(0, dtype=np.intp), none, none),
                       np.zeros(0), 0.0)
