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

"""Assessments of newcomers of the kinds that are asked for again and again.

What a snapshot says of a kind of newcomer depends on nothing else, and costs a pass over all VMs
of all hosts. So it is remembered as long as the snapshot is in use, and of a new snapshot judged
beforehand, in the background, for the kinds that were asked for last, and for those that the cloud
has most VMs of. What differs from the snapshot is not part of it (:mod:`nova_filters.overlay`).
"""

from __future__ import annotations

import collections
import dataclasses

import numpy as np

from nova_filters import background
from tracon_watcher.characteristics import BoolArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer as newcomers
from tracon_watcher.placement import storage
from tracon_watcher.placement import verdict

#: Kinds that are remembered; each takes a few dozen bytes a host.
_MOST = 32
# Judging one takes a pass over all VMs, some tens of milliseconds for 200,000 of them.
_COMMON = 8

_Key = tuple[bytes, bytes, bool, float, int, str, float, limits_module.Limits]


@dataclasses.dataclass
class _Kept:
    """An assessment, (h,) which hosts were stale when it was made, and whether it was asked."""

    found: verdict.Assessment
    stale: BoolArray
    asked: bool = False


class Recall:
    """Remembers assessments of the latest snapshot."""

    def __init__(self) -> None:
        self._assessor: assessment.Assessor | None = None
        self._kept: collections.OrderedDict[_Key, _Kept] = collections.OrderedDict()
        # Snapshots are prepared natively, while requests ask.
        self._lock = background.native_lock()

    def assess(self, assessor: assessment.Assessor, newcomer: newcomers.Profile,
               limits: limits_module.Limits | list[limits_module.Limits],
               now: float) -> verdict.Assessment:
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
        common = [(storage.felt(assessor.cluster, history[key], newcomers.on_volume(
            key.rpartition('|')[-1])).source, limits)
            for key in newcomers.most_common(history, _COMMON)]
        # Those asked for come last, as they are the last to be forgotten.
        kinds = [kind for kind in common if kind not in asked] + asked
        ready: collections.OrderedDict[_Key, _Kept] = collections.OrderedDict()
        for source, bounds in kinds[-_MOST:]:
            profile = known.get(source.removesuffix(newcomers.APART))
            if profile is not None and source.endswith(newcomers.APART):
                profile = profile.set_apart()
            if profile is not None and profile.known:
                ready[_key(profile, bounds)] = _Kept(
                    assessor.assess(profile, bounds, now), assessor.stale(now),
                    (source, bounds) in asked)
        with self._lock:
            self._assessor, self._kept = assessor, ready

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


def _key(newcomer: newcomers.Profile, limits: limits_module.Limits) -> _Key:
    return (newcomer.mean.tobytes(), newcomer.deviation.tobytes(), newcomer.apart,
            newcomer.own_wait, newcomer.vcpus, str(newcomer.storage_wait),
            newcomer.cpu_weight, limits)
