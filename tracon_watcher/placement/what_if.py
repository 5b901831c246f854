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

"""What-if analysis: the predicted effects of changes of the cloud that are not made."""

from __future__ import annotations

import dataclasses
import math
from typing import Iterable, Mapping

import numpy as np

from tracon_watcher.characteristics import CPU, FloatArray, IntArray, IO
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement import plan
from tracon_watcher.placement import plan_state
from tracon_watcher.placement import storage_backends
from tracon_watcher import tie_breaking

#: Hosts that are assessed for the VMs on one storage backend when a host is down.
_SHORTLIST = 200
#: Change of a log response from which on a VM counts as affected: that is 0.5 %.
_VISIBLE = 0.005


@dataclasses.dataclass(frozen=True)
class Evacuation:
    """Where the VMs of a host would go if it were down.

    :param destinations: by uuid, in the order in which they are placed, the name of the host;
        None where no host is known to be able to take the VM
    :param refused: uuids of VMs for which a limit would be breached on each assessed host
    :param assessed: number of hosts that were assessed
    :param effects: on all VMs of the hosts concerned; NaN where unknown
    """

    destinations: Mapping[str, str | None]
    refused: frozenset[str]
    assessed: int
    effects: tuple[plan.PredictedEffect, ...]


def evacuate(assessor: assessment.Assessor, host: int, now: float) -> Evacuation:
    """Predict the effects of the failure or the maintenance of a host.

    Its VMs are placed one by one, that with the highest demand first, each on the host with the
    lowest score among those without a breach, or else among all. A VM has the same demand there.
    Constraints of Nova (room, zones, server groups) are not considered.

    Of the known hosts that reach a VM's storage the least loaded ones are assessed.

    :param host: its index
    :param now: seconds since the epoch, for staleness
    """
    shortlist = _shortlist(assessor, host, now)
    part = assessor.cluster.restricted([host, *shortlist])
    state = plan_state.PlanState(assessor.of(part), plan.Parameters(), now)
    destinations: dict[str, str | None] = {}
    refused = set()
    for row in _by_demand(part, np.arange(part.first[1])):
        uuid = part.uuids[row]
        open_to_it = storage_backends.reachable(part, row)
        open_to_it[0] = False
        score = np.where(open_to_it, state.arrivals(uuid), np.nan)
        if np.isnan(score).all():
            score = np.where(open_to_it, state.arrivals(uuid, also_refused=True), np.nan)
            if np.isnan(score).all():
                destinations[uuid] = None
                continue
            refused.add(uuid)
        destination = tie_breaking.argmin(score)
        destinations[uuid] = part.hosts[destination]
        state.move(uuid, destination)
    # What is left on the host has no place in the model: its future is not known.
    return Evacuation(destinations, frozenset(refused), len(shortlist), tuple(
        one if destinations.get(one.uuid, '') is not None else dataclasses.replace(
            one, slowdown_after=math.nan, iops_ratio_after=math.nan, breach_after=False,
            bounds_after=(math.nan, math.nan)) for one in state.effects(0)))


def migrate(assessor: assessment.Assessor, uuid: str, host: int, now: float
            ) -> tuple[placement_constraints.Obstacle | None, tuple[plan.PredictedEffect, ...]]:
    """Predict the effects of one live migration.

    :param uuid: of a resident
    :param host: index of another host than its own
    :param now: seconds since the epoch, for staleness
    :returns: what the assessment has against it, None for nothing, and the effects on all VMs of
        both hosts, NaN where unknown
    """
    cluster = assessor.cluster
    row = cluster.resident_index[uuid]
    before = assessor.of(cluster.restricted([int(cluster.host[row]), host]))
    after = assessor.of(before.cluster.moved({uuid: cluster.hosts[host]}))
    effects = plan_state.predicted_effects(before, after, now)
    against = placement_constraints.Against
    if not storage_backends.reachable(cluster, row)[host]:
        return placement_constraints.Obstacle(
            against.STORAGE, 'does not reach its storage'), effects
    if assessor.stale(now)[host]:
        return placement_constraints.Obstacle(against.UNKNOWN, 'is unknown: stale'), effects
    found = plan_state.evaluate(before, uuid, 0.0)
    return found if isinstance(found, placement_constraints.Obstacle) else None, effects


def affected(effects: Iterable[plan.PredictedEffect],
             moved: Iterable[str]) -> list[plan.PredictedEffect]:
    """Return the effects on VMs that move, change visibly or are unknown.

    Those whose breach begins come first, then those that become slower by most.
    """
    moving = frozenset(moved)

    def order(one: plan.PredictedEffect) -> tuple[bool, float, str]:
        rise = one.slowdown_after / one.slowdown_before
        return (not (one.breach_after and not one.breach_before),
                math.inf if math.isnan(rise) else -round(rise, 9), one.uuid)

    return sorted((one for one in effects if one.uuid in moving
                   or not abs(one.relief) < _VISIBLE
                   or one.breach_before != one.breach_after), key=order)


def _shortlist(assessor: assessment.Assessor, host: int, now: float) -> IntArray:
    """Return known hosts that the VMs of a host may go to, by name."""
    cluster = assessor.cluster
    known = (assessor.status == assessment.Status.KNOWN) & ~assessor.stale(now)
    known[host] = False
    # By both ranks, since no unit is common to cores and requests.
    busy, requests = _loads(cluster)
    rank = tie_breaking.ranks(busy) + tie_breaking.ranks(requests)
    names = np.array(cluster.hosts, dtype=str)
    chosen = np.zeros(len(cluster.hosts), dtype=bool)
    rows = np.arange(cluster.first[host], cluster.first[host + 1])
    for row in rows[np.unique(cluster.io_domain[rows], return_index=True)[1]].tolist():
        open_to_it = np.flatnonzero(known & storage_backends.reachable(cluster, row))
        chosen[open_to_it[np.lexsort((names[open_to_it], rank[open_to_it]))[:_SHORTLIST]]] = True
    found = np.flatnonzero(chosen)
    return found[np.argsort(names[found])]


def _loads(cluster: cluster_module.ClusterState) -> tuple[FloatArray, FloatArray]:
    """Return the CPU demand over the cores and the requests per second of each host, (h,)."""
    demand = np.nan_to_num(cluster.profiles)
    count = len(cluster.hosts)
    requests: FloatArray = np.bincount(
        cluster.host, demand[:, IO].sum(axis=1), count).astype(float)
    return np.bincount(cluster.host, demand[:, CPU].sum(axis=1), count) / cluster.cores, requests


def _by_demand(cluster: cluster_module.ClusterState, rows: IntArray) -> list[int]:
    """Return rows of VMs, those with the highest CPU demand and then the most requests first."""
    demand = np.nan_to_num(cluster.profiles[rows])
    uuids = np.array([cluster.uuids[row] for row in rows], dtype=str)
    order = np.lexsort((uuids, -demand[:, IO].sum(axis=1), -demand[:, CPU].sum(axis=1)))
    return list(rows[order].tolist())
