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

"""Repeated assessments: of hosts that differ from the snapshot, and of frequent requests."""

from __future__ import annotations

import collections
import dataclasses

import numpy as np

from nova_filters import instance_changes
from nova_filters import periodic_worker
from tracon_watcher.characteristics import BoolArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import storage_backends


@dataclasses.dataclass(frozen=True)
class Reassessment:
    """Hosts that were assessed on a state of their own.

    :param hosts: their indices in the snapshot, in the order of the state's first hosts
    :param pool: index in that state of the pool on which the newcomer stays, where its own I/O is
        not felt; -1 for none
    """

    hosts: list[int]
    assessor: assessment.Assessor
    pool: int = -1


def reassess(assessor: assessment.Assessor, uuid: str, profile: newcomer_profiles.Profile,
             limits: limits_module.Limits | list[limits_module.Limits],
             changes: dict[int, instance_changes.HostChange],
             expected: dict[int, instance_changes.Arrivals],
             now: float, cache: AssessmentCache | None = None
             ) -> tuple[assessment.Assessment, assessment.Assessment, Reassessment | None]:
    """Assess a newcomer on the snapshot and on what is known beyond it.

    A VM that the snapshot shows is taken off the host where it is: it is never part of its own
    background. On a pool that other hosts share it is taken off there as well. One that is only
    intended for a host counts there in addition: until Nova lists it there, it may still be where
    it was.

    :param limits: the same for all hosts, or one for each host of the cluster
    :param changes: by host index
    :param expected: VMs that will most likely take the host, by host index and uuid
    :param cache: of assessments by the snapshot alone
    :returns: the assessment without and with those, one object when there are none; and the hosts
        that differ from the snapshot, None when there are none
    """
    cluster = assessor.cluster
    present = cluster.resident_index.get(uuid)
    changes = dict(changes)
    pool = storage_backends.pool_of(cluster, present)
    if present is not None:
        host = int(cluster.host[present])
        old = changes.get(host, instance_changes.HostChange())
        changes[host] = instance_changes.HostChange(old.gone | {uuid}, old.arrived)
    if cache is not None and present is None:
        result = cache.assess(assessor, profile, limits, now)
    else:
        result = assessor.assess(profile, limits, now, pool)
    solved = None if cache is None else cache.solved
    part = _replace(result, assessor, profile, limits, changes, now, present, solved)
    if not expected:
        return result, result, part
    foreseen = result.copy()
    nothing = instance_changes.HostChange()
    again = {index: instance_changes.HostChange(changes.get(index, nothing).gone,
                                                {**arrivals,
                                                 **changes.get(index, nothing).arrived})
             for index, arrivals in expected.items()}
    if present is not None:
        again.setdefault(host, changes[host])       # it is nowhere part of its own background
    _replace(foreseen, assessor, profile, limits, again, now, present, solved)
    return result, foreseen, part


def outdated(assessor: assessment.Assessor,
             profile: newcomer_profiles.Profile) -> assessment.Assessment:
    """Return the assessment of a newcomer by a snapshot that is stale: it costs nothing."""
    result = assessment.Assessment.unknown(assessor.cluster, assessor.status, profile)
    result.forget(result.known, assessment.Status.STALE)
    result.forget(~result.known)
    return result


def _replace(result: assessment.Assessment, assessor: assessment.Assessor,
             profile: newcomer_profiles.Profile,
             limits: limits_module.Limits | list[limits_module.Limits],
             changes: dict[int, instance_changes.HostChange], now: float,
             present: int | None, solved: assessment.SolvedHosts | None) -> Reassessment | None:
    """Assess the hosts that differ from the snapshot, on a state of their own.

    :param present: row of the newcomer in the snapshot, None where it is not there; the host that
        it is on is then one of them, without it
    :param solved: hosts that are not solved again
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
                                if (backend := storage_backends.brought(cluster, vm.uuid,
                                                                        vm.profile))})
    here = limits
    if not isinstance(limits, limits_module.Limits):
        here = [limits[index] for index in (*chosen, *left)]
    its_own = assessment.Assessor(part, assessor.settings, solved)
    pool = storage_backends.pool_of(cluster, present, part)
    result.replace(np.array(chosen, dtype=np.intp),
                   its_own.assess(profile, here, now, pool, remote=False, felt=False))
    return Reassessment(chosen, its_own, pool)


#: Kinds that are remembered; each takes a few dozen bytes a host.
_MOST = 32
# Judging one takes a pass over all VMs, some tens of milliseconds for 200,000 of them.
_COMMON = 8

_Key = tuple[bytes, bytes, bool, float, int, str, float, limits_module.Limits]


@dataclasses.dataclass
class _Kept:
    """An assessment, (h,) which hosts were stale when it was made, and whether it was asked."""

    found: assessment.Assessment
    stale: BoolArray
    asked: bool = False


class AssessmentCache:
    """Remembers assessments of the latest snapshot.

    :ivar solved: hosts that differ from it
    """

    def __init__(self) -> None:
        self.solved = assessment.SolvedHosts()
        self._assessor: assessment.Assessor | None = None
        self._kept: collections.OrderedDict[_Key, _Kept] = collections.OrderedDict()
        # Snapshots are prepared natively, while requests ask.
        self._lock = periodic_worker.native_lock()

    def assess(self, assessor: assessment.Assessor, newcomer: newcomer_profiles.Profile,
               limits: limits_module.Limits | list[limits_module.Limits],
               now: float) -> assessment.Assessment:
        """Judge a newcomer as ``assessor.assess`` does; the result may be changed."""
        if not isinstance(limits, limits_module.Limits):
            return assessor.assess(newcomer, limits, now)
        key = _key(newcomer, limits)
        stale = assessor.stale(now)
        with self._lock:
            kept = self._kept.get(key) if self._assessor is assessor else None
            if kept is not None:
                kept.asked = True
                self._kept.move_to_end(key)
        if kept is None or not np.array_equal(kept.stale, stale):
            kept = _Kept(assessor.assess(newcomer, limits, now), stale, True)
            self._keep(assessor, key, kept)
        found = kept.found.copy()
        found.newcomer = newcomer
        return found

    def prepare(self, assessor: assessment.Assessor, limits: limits_module.Limits,
                now: float) -> None:
        """Judge, by a snapshot that is about to be used, the kinds that were asked for last, and
        the most common ones under these limits.

        Their profiles are those that the new snapshot has of the same kinds.
        """
        history = assessor.cluster.history
        with self._lock:
            asked = [(kept.found.newcomer.source, key[-1])
                     for key, kept in self._kept.items() if kept.asked]
        known = {profile.source: profile for profile in history.values()}
        common = [
            (storage_backends.felt(assessor.cluster, history[key], newcomer_profiles.on_volume(
                key.rpartition('|')[-1])).source, limits)
            for key in newcomer_profiles.most_common(history, _COMMON)]
        # Those asked for come last, as they are the last to be forgotten.
        kinds = [kind for kind in common if kind not in asked] + asked
        ready: collections.OrderedDict[_Key, _Kept] = collections.OrderedDict()
        for source, bounds in kinds[-_MOST:]:
            profile = known.get(source.removesuffix(newcomer_profiles.APART))
            if profile is not None and source.endswith(newcomer_profiles.APART):
                profile = profile.set_apart()
            if profile is not None and profile.known:
                ready[_key(profile, bounds)] = _Kept(
                    assessor.assess(profile, bounds, now), assessor.stale(now),
                    (source, bounds) in asked)
        with self._lock:
            self._assessor, self._kept = assessor, ready
            self.solved = assessment.SolvedHosts()

    def _keep(self, assessor: assessment.Assessor, key: _Key, kept: _Kept) -> None:
        with self._lock:
            if self._assessor is None:
                self._assessor = assessor
            # A request may be on the former snapshot yet, and another one on the next already.
            if self._assessor is not assessor:
                return
            self._kept[key] = kept
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)


def _key(newcomer: newcomer_profiles.Profile, limits: limits_module.Limits) -> _Key:
    return (newcomer.mean.tobytes(), newcomer.deviation.tobytes(), newcomer.apart,
            newcomer.own_wait, newcomer.vcpus, str(newcomer.storage_wait),
            newcomer.cpu_weight, limits)
