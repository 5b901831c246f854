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

"""What of a new state is worth telling: small changes of demand are not, or all would be told."""

from __future__ import annotations

import dataclasses
from typing import Mapping

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.placement import cluster
from tracon_watcher.placement import newcomer_profiles

#: A change of demand below this share of what was told is not told, nor one below these floors:
#: requests a second, and cores. Either is far below what a prediction can tell the effect of.
SHARE = 0.05
FLOOR = np.array([1.0, 1.0, 0.01, 0.005])
#: Nor is one of the share of time that a VM waits for its own limits, or for storage.
OWN_WAIT = 0.02


def settled(told: cluster.ClusterState | None,
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
                     history: Mapping[str, newcomer_profiles.Profile]) -> dict[str, newcomer_profiles.Profile]:
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
