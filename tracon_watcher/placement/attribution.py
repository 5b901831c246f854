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
they do on the host and storage they share, VMs of other hosts with their I/O on a pool; nearly as
:class:`~tracon_watcher.placement.assessment.Assessor` predicts the state without them.

Reliefs need not add up to the excess. Where they fall short of it the rest is *joint*: no VM would
end it by leaving alone. Where they exceed it, several get in each other's way and what they do
together is counted for each of them; then the part of the sum that is counted more than once is
joint. A culprit's *share* is its part of what is not joint, so that all shares and the joint part
make up 100 %.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tracon_watcher import characteristics
from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import storage
from tracon_watcher import tie_breaking

#: Less of an excess is rounding, which no VM causes.
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
        """(2, k) by how much less it would suffer; no VM harms others by leaving."""
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
    """Find all who do something to the VM in ``row``, on its host and on its pool.

    :returns: with no VM in it and NaN exponents where what it suffers is unknown
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
    return _attribution(law.exponent[:, places[[target]]],
                        np.concatenate([law.residents[places[others]], far]),
                        np.concatenate([near[:, others, target], without], axis=1))


def _on_pool(cluster: cluster_module.ClusterState, row: int) -> tuple[IntArray, FloatArray]:
    """Return the VMs of other hosts on the pool of a VM, (k,), and their requests a second."""
    domain = cluster.io_domain[row]
    if domain < 0 or storage.is_local(cluster)[domain]:
        return np.zeros(0, dtype=np.intp), np.zeros(0)
    rate = characteristics.request_rate(cluster.profiles)
    rows = np.flatnonzero((cluster.io_domain == domain) & (cluster.host != cluster.host[row])
                          & (rate > 0.0))
    return rows, rate[rows]


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
        away &= ~storage.is_local(cluster)[law.domain] & (law.domain >= 0)
        far = np.flatnonzero(away & (cluster.host[law.residents] != host))
    rows = np.concatenate([near, far])
    all_of = Influence(law.residents[rows], law.exponent[:, rows],
                       np.concatenate([beside, law.with_requests(far, -rate)], axis=1))
    return _taken(all_of, tie_breaking.argsort(-all_of.total))


def _taken(influence: Influence, order: IntArray) -> Influence:
    return Influence(influence.rows[order], influence.now[:, order], influence.without[:, order])
