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

"""Assesses again the few hosts that differ from the snapshot, or that the newcomer leaves."""

from __future__ import annotations

import dataclasses

import numpy as np

from nova_filters import recall as recalls
from nova_filters import residency
from tracon_watcher.placement import assessment
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer as newcomers
from tracon_watcher.placement import storage
from tracon_watcher.placement import verdict


@dataclasses.dataclass(frozen=True)
class Part:
    """Hosts that were assessed on a state of their own.

    :param hosts: their indices in the snapshot, in the order of the state's first hosts
    :param pool: index in that state of the pool on which the newcomer stays, where its own I/O is
        not felt; -1 for none
    """

    hosts: list[int]
    assessor: assessment.Assessor
    pool: int = -1


def assess(assessor: assessment.Assessor, uuid: str, profile: newcomers.Profile,
           limits: limits_module.Limits | list[limits_module.Limits],
           changes: dict[int, residency.Change], expected: dict[int, residency.Arrivals],
           now: float,
           recall: recalls.Recall | None = None,
           parts: list[Part] | None = None) -> tuple[verdict.Assessment, verdict.Assessment]:
    """Assess a newcomer on the snapshot and on what is known beyond it.

    A VM that the snapshot shows is taken off the host where it is: it is never part of its own
    background. On a pool that other hosts share it is taken off there as well. One that is only
    intended for a host counts there in addition: until Nova lists it there, it may still be where
    it was.

    :param limits: the same for all hosts, or one for each host of the cluster
    :param changes: by host index
    :param expected: VMs that will most likely take the host, by host index and uuid
    :param recall: of assessments by the snapshot alone
    :param parts: gets the hosts that differ from the snapshot, if there are any
    :returns: the assessment without and with those; one object when there are none
    """
    cluster = assessor.cluster
    present = cluster.resident_index.get(uuid)
    changes = dict(changes)
    pool = storage.pool_of(cluster, present)
    if present is not None:
        host = int(cluster.host[present])
        old = changes.get(host, residency.Change())
        changes[host] = residency.Change(old.gone | {uuid}, old.arrived)
    if recall is not None and present is None:
        result = recall.assess(assessor, profile, limits, now)
    else:
        result = assessor.assess(profile, limits, now, pool)
    part = _replace(result, assessor, profile, limits, changes, now, present)
    if parts is not None and part is not None:
        parts.append(part)
    if not expected:
        return result, result
    foreseen = result.copy()
    nothing = residency.Change()
    again = {index: residency.Change(changes.get(index, nothing).gone,
                                     {**arrivals, **changes.get(index, nothing).arrived})
             for index, arrivals in expected.items()}
    if present is not None:
        again.setdefault(host, changes[host])       # it is nowhere part of its own background
    _replace(foreseen, assessor, profile, limits, again, now, present)
    return result, foreseen


def outdated(assessor: assessment.Assessor, profile: newcomers.Profile) -> verdict.Assessment:
    """Return the assessment of a newcomer by a snapshot that is stale: it costs nothing."""
    result = verdict.Assessment.unknown(assessor.cluster, assessor.status, profile)
    result.forget(result.known, assessment.Status.STALE)
    result.forget(~result.known)
    return result


def _replace(result: verdict.Assessment, assessor: assessment.Assessor,
             profile: newcomers.Profile,
             limits: limits_module.Limits | list[limits_module.Limits],
             changes: dict[int, residency.Change], now: float,
             present: int | None) -> Part | None:
    """Assess the hosts that differ from the snapshot, on a state of their own.

    :param present: row of the newcomer in the snapshot, None where it is not there; the host that
        it is on is then one of them, without it
    """
    chosen = sorted(changes)
    if not chosen:
        return None
    cluster = assessor.cluster
    # Who has come to one of these hosts is no longer where the snapshot shows it.
    came = {uuid: int(cluster.host[cluster.resident_index[uuid]])
            for index in chosen for uuid, vm in changes[index].arrived.items()
            if not vm.intended and uuid in cluster.resident_index}
    left = sorted(set(came.values()) - set(chosen))
    part = cluster.restricted([*chosen, *left])
    gone: dict[str, str | None] = {uuid: None for uuid in came}
    gone.update((uuid, None) for index in chosen for uuid in changes[index].gone
                if uuid in part.resident_index)
    if gone:
        part = part.moved(gone)
    part = part.with_residents([(place, vm.uuid, vm.profile, vm.limits)
                                for place, index in enumerate(chosen)
                                for vm in changes[index].arrived.values()],
                               {vm.uuid: backend for index in chosen
                                for vm in changes[index].arrived.values()
                                if (backend := storage.brought(cluster, vm.uuid, vm.profile))})
    here = limits
    if not isinstance(limits, limits_module.Limits):
        here = [limits[index] for index in (*chosen, *left)]
    its_own = assessment.Assessor(part, assessor.settings)
    pool = storage.pool_of(cluster, present, part)
    result.replace(np.array(chosen, dtype=np.intp),
                   its_own.assess(profile, here, now, pool, elsewhere=False, felt=False))
    return Part(chosen, its_own, pool)
