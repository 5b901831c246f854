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

"""One move, judged exactly: the state before it and the state after it, predicted whole."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement.constraints import Against
from tracon_watcher.placement.constraints import Obstacle
from tracon_watcher.placement import plan
from tracon_watcher.placement import present
from tracon_watcher.placement import verdict as verdicts


@dataclasses.dataclass(frozen=True)
class Trial:
    """A move that may be made.

    :param move: with its expected gain
    :param cautious_gain: the same less what noise in profiles may feign
    """

    move: plan.Move
    cautious_gain: float


def attempt(before: assessment.Assessor, uuid: str, cost: float,
            noise: float = 0.0) -> Trial | Obstacle:
    """Judge one move.

    Storage stays what it is (:mod:`tracon_watcher.placement.storage`), so no other VM feels it.

    :param before: of the VM's host and its destination, in this order, before the move
    :param noise: see :class:`~tracon_watcher.placement.plan.Parameters`
    :returns: the trial, or what stands against the move
    """
    part = before.cluster
    _source, name = part.hosts
    row = part.resident_index[uuid]
    after = _again(before, part.moved({uuid: name}))
    # The one judgement, as for any newcomer: the destination as it is without the VM.
    alone = part.moved({uuid: None}).restricted([1])
    verdict = _again(before, alone).assess(
        part.resident_profile(row), part.resident_limits(row))
    if not verdict.known[0]:
        status = assessment.Status(int(verdict.status[0])).name.lower()
        return Obstacle(Against.UNKNOWN, f'is unknown: {status}')
    if verdict.refused[0]:
        breach = verdict.breach(0)
        whose = 'of its own' if breach.vm == verdicts.NEWCOMER else f'of {breach.vm}'
        return Obstacle(Against.LIMIT, f'{breach.response} {breach.bound:.2f} would cross the '
                        f'limit {breach.limit:.2f} {whose}')
    return _compare(before, after, uuid, cost, noise)


def _compare(before: assessment.Assessor, after: assessment.Assessor, uuid: str,
             cost: float, noise: float) -> Trial | Obstacle:
    source, name = before.cluster.hosts
    place = after.cluster.resident_index
    order = np.array([place[one] for one in before.cluster.uuids], dtype=np.intp)
    old = before.exponents()
    new = after.exponents()[:, order]
    # As assess() judges: each limit by itself, so that one that is breached already does not make
    # the other response's harmless rise a breach.
    was, becomes = before.breaches_by_response(), after.breaches_by_response()[:, order]
    rise = np.nan_to_num(new - old)
    bad = (becomes & (~was | (rise > before.settings.least_rise))).any(axis=0)
    was, becomes = np.asarray(was.any(axis=0)), np.asarray(becomes.any(axis=0))
    if bad.any():
        victim = before.cluster.uuids[int(np.flatnonzero(bad)[0])]
        return Obstacle(Against.LIMIT, f'{victim} would be in breach')
    gain = float(np.nansum(old) - np.nansum(new))
    bounds = [_bounds(before), _bounds(after)[:, order]]
    changes = tuple(
        plan.Change(one, math.exp(old[0, row]), math.exp(new[0, row]), math.exp(-old[1, row]),
                    math.exp(-new[1, row]), bool(was[row]), bool(becomes[row]),
                    *((float(each[0, row]), float(each[1, row])) for each in bounds))
        for row, one in enumerate(before.cluster.uuids)
        if not np.isnan(old[0, row]) and not np.isnan(new[0, row]))
    ended = [change.uuid for change in changes if change.breach_before and not change.breach_after]
    relieved = tuple(ended) or tuple(
        change.uuid for change in sorted(changes, key=_most_relieved)[:1])
    return Trial(plan.Move(uuid, source, name, gain, cost, len(ended), relieved, changes),
                 gain - (0.0 if ended else noise * _exposed(
                     old, new, before.cluster.resident_index[uuid])))


def _bounds(assessor: assessment.Assessor) -> FloatArray:
    """Return the confidence bounds of all slowdowns, (2, m), the lower ones first."""
    seen = present.look(assessor)
    return np.asarray(np.exp(np.stack([seen.lower[0], seen.upper[0]])))


def _most_relieved(change: plan.Change) -> tuple[float, str]:
    return -round(change.relief, 9), change.uuid


def _exposed(old: FloatArray, new: FloatArray, mover: int) -> float:
    """Return what noise in profiles is multiplied by in a gain, in exponents.

    A VM that stays is seen wrongly before and after alike, so only its change counts. The one
    that moves meets others before and after, and is itself part of all changes.

    :param old: (2, m) exponents before the move
    :param new: and after it
    """
    change = np.nan_to_num(new - old).sum(axis=0)
    change[mover] = 0.0
    own = [float(np.nansum(one[:, mover])) for one in (old, new)]
    return math.sqrt(own[0] ** 2 + own[1] ** 2 + float(change @ change)
                     + float(change.sum()) ** 2)


def _again(assessor: assessment.Assessor,
           cluster: cluster_module.ClusterState) -> assessment.Assessor:
    return assessment.Assessor(cluster, assessor.settings)
