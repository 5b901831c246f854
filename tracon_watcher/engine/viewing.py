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

"""Makes a view of what a cycle brought."""

from __future__ import annotations

import dataclasses
from typing import Mapping

import numpy as np

from tracon_watcher.engine import collector as collectors
from tracon_watcher.engine import own_limits
from tracon_watcher.engine import probes
from tracon_watcher.engine import view as views
from tracon_watcher.inventory import cloud
from tracon_watcher.placement import assessment


def look(epoch: int, assessor: assessment.Assessor, inventory: cloud.Inventory,
         collected: collectors.Collected, now: float,
         felt: Mapping[str, Mapping[str, probes.Felt]] = {}) -> views.View:
    """Return the view; parameters as there."""
    uuids = assessor.cluster.uuids
    profiles = collected.profiles
    rows = [collected.demand.rows.get(uuid, -1) for uuid in uuids]
    # One row more, of nothing, for those that telemetry never told of.
    observed, width = (np.append(values, np.nan)[rows] for values in (
        profiles.slowdown, profiles.slowdown_deviation))
    vms = {uuid: views.VM(uuid, server.name, server.project, server.host or '')
           for uuid, server in ((uuid, inventory.servers[uuid]) for uuid in uuids)}
    known = width[np.isfinite(width)]
    return views.View(epoch, assessor, _moment(assessor, collected), vms, observed,
                      float(known.mean()) if len(known) else float('nan'), now,
                      _own_limits(collected), frozenset(
                          profiles.vms[row] for row in np.flatnonzero(profiles.limited)),
                      np.append(profiles.stretches, np.full((1, 2), np.nan), axis=0)[rows], felt)


def _own_limits(collected: collectors.Collected
                ) -> dict[str, tuple[own_limits.OwnLimit, ...]]:
    profiles, limits = collected.profiles, collected.limits
    some = (np.isfinite(limits.smallest).any(axis=1) | limits.light
            | (np.nan_to_num(profiles.reached) > 0).any(axis=1))
    return {profiles.vms[row]: own_limits.stated(limits, row, profiles.reached[row])
            for row in np.flatnonzero(some).tolist()}


def _moment(assessor: assessment.Assessor,
            collected: collectors.Collected) -> assessment.Assessor:
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
