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

"""Assesses anew the few hosts that differ from the snapshot, or that the newcomer leaves."""

from __future__ import annotations

import numpy as np

from nova_filters import residency
from tracon_watcher.placement import assessment
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer as newcomers
from tracon_watcher.placement import verdict


def assess(assessor: assessment.Assessor, uuid: str, profile: newcomers.Profile,
           limits: limits_module.Limits | list[limits_module.Limits],
           changes: dict[int, residency.Change], expected: dict[int, residency.Arrivals],
           now: float) -> tuple[verdict.Assessment, verdict.Assessment]:
    """Assess a newcomer on the snapshot and on what is known beyond it.

    A VM that the snapshot shows is taken off the host where it is: it is never part of its own
    background. On a pool that other hosts share it is taken off there as well.

    :param limits: the same for all hosts, or one for each host of the cluster
    :param changes: by host index
    :param expected: VMs that will most likely take the host, by host index and uuid
    :returns: the assessment without and with those; one object when there are none
    """
    cluster = assessor.cluster
    present = cluster.resident_index.get(uuid)
    changes = dict(changes)
    if present is not None:
        host = int(cluster.host[present])
        if cluster.io_domain[present] >= 0 and _shared(assessor, int(cluster.io_domain[present])):
            cluster = cluster.moved({uuid: None})
            assessor = assessment.Assessor(cluster, assessor.models, assessor.settings)
            if host in changes:
                changes[host] = residency.Change(changes[host].gone - {uuid},
                                                 changes[host].arrived)
        else:
            old = changes.get(host, residency.Change())
            changes[host] = residency.Change(old.gone | {uuid}, old.arrived)
    result = assessor.assess(profile, limits, now)
    _replace(result, assessor, profile, limits, changes, now)
    if not expected:
        return result, result
    foreseen = result.copy()
    nothing = residency.Change()
    _replace(foreseen, assessor, profile, limits, {
        index: residency.Change(changes.get(index, nothing).gone,
                                {**arrivals, **changes.get(index, nothing).arrived})
        for index, arrivals in expected.items()}, now)
    return result, foreseen


def _replace(result: verdict.Assessment, assessor: assessment.Assessor,
             profile: newcomers.Profile,
             limits: limits_module.Limits | list[limits_module.Limits],
             changes: dict[int, residency.Change], now: float) -> None:
    """Assess anew, on a state of their own, the hosts that differ from the snapshot."""
    chosen = sorted(changes)
    if not chosen:
        return
    cluster = assessor.cluster
    part = cluster.restricted(chosen)
    gone: dict[str, str | None] = {
        name: None for index in chosen for name in changes[index].gone}
    if gone:
        part = part.moved(gone)
    for place, index in enumerate(chosen):
        for vm in changes[index].arrived.values():
            part = part.with_resident(place, vm.uuid, vm.profile.mean, vm.limits)
    here = limits if isinstance(limits, limits_module.Limits) else [limits[i] for i in chosen]
    fresh = assessment.Assessor(part, assessor.models, assessor.settings).assess(
        profile, here, now)
    result.replace(np.array(chosen, dtype=np.intp), fresh)


def _shared(assessor: assessment.Assessor, domain: int) -> bool:
    return int(np.count_nonzero(assessor.cluster.host_io_domain == domain)) > 1
