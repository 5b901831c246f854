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

"""View of the cloud at one moment, and the deadband for changes that are published."""

from __future__ import annotations

import dataclasses
from typing import Mapping

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.engine import collector as collectors
from tracon_watcher.engine import idle_shares
from tracon_watcher.engine import own_limits as limits_module
from tracon_watcher.engine import own_limits
from tracon_watcher.engine import probes
from tracon_watcher.inventory import cloud
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import newcomer_profiles


@dataclasses.dataclass(frozen=True)
class VM:
    """What an operator calls a VM by, and whose it is.

    :param host: of its compute service
    :param flavor: its name
    :param image: id, '' for a VM that boots from a volume
    """

    uuid: str
    name: str
    project: str
    host: str
    flavor: str = ''
    image: str = ''


@dataclasses.dataclass(frozen=True)
class View:
    """The state of a cloud, ready to be judged and shown.

    :param epoch: of the engine that leads; a snapshot is told by epoch and version
    :param assessor: the cluster (``assessor.cluster``) and how it is judged, as published
    :param moment: the same with what VMs demand at this moment, for who disturbs whom now;
        ``assessor`` itself where that is nothing else
    :param vms: by uuid; all residents of the cluster
    :param observed: (n,) slowdown that the counters show of each resident now, in the order of
        ``cluster.uuids``; NaN where unknown
    :param observed_error: mean relative error of ``observed``, as its calibration found it
    :param updated_at: seconds since the epoch of the latest telemetry
    :param own_limits: by uuid, the limits of VMs that their owners stated, and how often each was
        reached; VMs without any are not there
    :param held_back: uuids of VMs that their own limits hold back now, or may
    :param stretches: (n, 2) by how much the CPU time and the requests of each stretch now; NaN
        where unknown; None where nothing is known
    :param felt: by host and phase, what the sensors of probe VMs have felt; hosts whose sensor is
        silent are not there
    :param idle: idle shares of hosts by hour
    """

    epoch: int
    assessor: assessment.Assessor
    moment: assessment.Assessor
    vms: Mapping[str, VM]
    observed: FloatArray
    observed_error: float
    updated_at: float
    own_limits: Mapping[str, tuple[limits_module.OwnLimit, ...]] = dataclasses.field(
        default_factory=dict)
    held_back: frozenset[str] = frozenset()
    stretches: FloatArray | None = None
    felt: Mapping[str,
                  Mapping[str, probes.RelativeReading]] = dataclasses.field(default_factory=dict)
    idle: idle_shares.IdleShares = idle_shares.IdleShares()


#: A change of demand below this share of what was told is not told, nor one below these floors:
#: requests a second, and cores. Either is far below what a prediction can tell the effect of.
SHARE = 0.05
FLOOR = np.array([1.0, 1.0, 0.01, 0.005])
#: Nor is one of the share of time that a VM waits for its own limits, or for storage.
OWN_WAIT = 0.02


def deadband(told: cluster.ClusterState | None,
             state: cluster.ClusterState) -> cluster.ClusterState:
    """Return the state with each demand as it was told last, as long as that is near enough.

    Since it is compared with what was told, a slow drift is told in time.

    :param told: the state that was published last, None before the first
    """
    if told is None:
        return state
    rows = np.array([told.resident_index.get(uuid, -1) for uuid in state.uuids], dtype=np.intp)
    common = np.flatnonzero(rows >= 0)
    profiles = state.profiles.copy()
    before = told.profiles[rows[common]]
    near = _near(before, profiles[common])
    profiles[common[near]] = before[near]
    own_wait = state.own_wait.copy()
    waited = told.own_wait[rows[common]]
    # A VM that comes to a limit, or leaves it, is told of at once.
    same = (np.abs(own_wait[common] - waited) <= OWN_WAIT) & (
        (own_wait[common] > 0) == (waited > 0))
    own_wait[common[same]] = waited[same]
    storage_wait = state.storage_wait.copy()
    waited = told.storage_wait[rows[common]]
    same = np.abs(storage_wait[common] - waited) <= OWN_WAIT
    storage_wait[common[same]] = waited[same]
    return dataclasses.replace(state, profiles=profiles, own_wait=own_wait,
                               storage_wait=storage_wait,
                               history=_settled_history(told.history, state.history))


def _near(before: FloatArray, after: FloatArray) -> np.ndarray:
    """Return which rows of (n, 4) demands differ too little, (n,); unknown from known never."""
    allowed = np.maximum(SHARE * before, FLOOR)
    with np.errstate(invalid='ignore'):
        near: np.ndarray = (np.abs(after - before) <= allowed).all(axis=1)
    return near


def _settled_history(told: Mapping[str, newcomer_profiles.Profile],
                     history: Mapping[
                         str, newcomer_profiles.Profile]) -> dict[str, newcomer_profiles.Profile]:
    result = {}
    for key, profile in history.items():
        old = told.get(key)
        same = old is not None and _same_waits(old, profile) and bool(_near(
            np.stack([old.mean, old.deviation]), np.stack([profile.mean,
                                                           profile.deviation])).all())
        result[key] = old if same and old is not None else profile
    return result


def _same_waits(old: newcomer_profiles.Profile, profile: newcomer_profiles.Profile) -> bool:
    if np.isnan(old.storage_wait) != np.isnan(profile.storage_wait):
        return False
    return (abs(old.own_wait - profile.own_wait) <= OWN_WAIT
            and not abs(old.storage_wait - profile.storage_wait) > OWN_WAIT)


def make_view(epoch: int, assessor: assessment.Assessor, inventory: cloud.Inventory,
              collected: collectors.Collection, now: float,
              felt: Mapping[str, Mapping[str, probes.RelativeReading]] = {},
              idle: idle_shares.IdleShares = idle_shares.IdleShares()) -> View:
    """Return the view; parameters as there."""
    uuids = assessor.cluster.uuids
    profiles = collected.profiles
    rows = [collected.demand.rows.get(uuid, -1) for uuid in uuids]
    # One row more, of nothing, for those that telemetry never told of.
    observed, width = (np.append(values, np.nan)[rows] for values in (
        profiles.slowdown, profiles.slowdown_deviation))
    vms = {uuid: VM(uuid, server.name, server.project, server.host or '', server.flavor,
                    server.image)
           for uuid, server in ((uuid, inventory.servers[uuid]) for uuid in uuids)}
    known = width[np.isfinite(width)]
    return View(epoch, assessor, _moment(assessor, collected), vms, observed,
                float(known.mean()) if len(known) else float('nan'), now,
                _own_limits(collected), frozenset(
        profiles.vms[row] for row in np.flatnonzero(profiles.limited)),
        np.append(profiles.stretches, np.full((1, 2), np.nan), axis=0)[rows], felt, idle)


def _own_limits(collected: collectors.Collection
                ) -> dict[str, tuple[own_limits.OwnLimit, ...]]:
    profiles, limits = collected.profiles, collected.limits
    some = (np.isfinite(limits.smallest).any(axis=1) | limits.light
            | (np.nan_to_num(profiles.reached) > 0).any(axis=1))
    return {profiles.vms[row]: own_limits.stated(limits, row, profiles.reached[row])
            for row in np.flatnonzero(some).tolist()}


def _moment(assessor: assessment.Assessor,
            collected: collectors.Collection) -> assessment.Assessor:
    """Return the same with what VMs demand at this moment."""
    cluster, profiles = assessor.cluster, collected.profiles
    other = np.flatnonzero((profiles.present != profiles.mean).any(axis=1)
                           & np.isfinite(profiles.present).all(axis=1))
    rows = np.array([cluster.resident_index.get(profiles.vms[row], -1) for row in other],
                    dtype=np.intp)
    there = rows >= 0
    if not there.any():
        return assessor
    demanded = cluster.profiles.copy()
    demanded[rows[there]] = profiles.present[other[there]]
    own_wait = cluster.own_wait.copy()
    own_wait[rows[there]] *= profiles.at_limit[other[there]].any(axis=1)
    return assessment.Assessor(
        dataclasses.replace(cluster, profiles=demanded, own_wait=own_wait),
        assessor.settings)
