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

"""State of a cluster while moves are planned, and the evaluation of one move."""

from __future__ import annotations

import dataclasses
import math
from typing import Sequence

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import assessment as verdicts
from tracon_watcher.placement import attribution
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import current_interference
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement.placement_constraints import Against
from tracon_watcher.placement.placement_constraints import Obstacle
from tracon_watcher.placement import plan
from tracon_watcher.placement import storage_backends


@dataclasses.dataclass
class _Arrival:
    """What a VM would meet and do on each host.

    :param score: (h,), NaN where unknown
    :param refused: (h,) hosts on which a limit would be breached
    :param stale: hosts whose score is that of a state before
    """

    score: FloatArray
    refused: BoolArray
    stale: set[int]


class PlanState:
    """The state that some moves leave.

    :param assessor: of the state before all moves
    :param parameters: of the plan, by which moves are judged
    :param now: seconds since the epoch, for staleness
    """

    def __init__(self, assessor: assessment.Assessor, parameters: plan.Parameters,
                 now: float) -> None:
        self._first = assessor
        self._parameters = parameters
        self._now = now
        self._solved = assessment.SolvedHosts()
        count = len(assessor.cluster.hosts)
        #: (h,) log responses that the residents of each host suffer together, background work
        #: left out.
        self.harm = np.zeros(count)
        #: (h,) residents of each host in breach.
        self.breaches: IntArray = np.zeros(count, dtype=np.intp)
        self._vms: IntArray = np.zeros(count, dtype=np.intp)
        self._slowdowns = np.zeros(count)
        self._worst = np.ones(count)
        self._sum_up(assessor, np.arange(count))
        self._moves: list[tuple[str, int, int]] = []
        self._removed: set[str] = set()
        self._host: dict[str, int] = {}
        self._touched: set[int] = set()
        self._parts: dict[tuple[int, ...], assessment.Assessor] = {}
        self._departures: dict[int, attribution.LeaveOneOut] = {}
        self._arrivals: dict[str, _Arrival] = {}
        self._trials: dict[tuple[str, int], MoveEvaluation | placement_constraints.Obstacle] = {}

    @property
    def cluster(self) -> cluster_module.ClusterState:
        """The state before all moves, whose hosts and rows are counted by."""
        return self._first.cluster

    def host(self, uuid: str) -> int:
        """Return the index of a VM's host."""
        moved = self._host.get(uuid)
        return (int(self.cluster.host[self.cluster.resident_index[uuid]]) if moved is None
                else moved)

    def departures(self, host: int) -> attribution.LeaveOneOut:
        """Return what it brings that a host's residents leave it."""
        found = self._departures.get(host)
        if found is None:
            found = self._departures[host] = attribution.leave_one_out(*self.of(host))
        return found

    def of(self, host: int) -> tuple[assessment.Assessor, int]:
        """Return what knows a host's residents, and the host's index there."""
        return (self._part((host,)), 0) if host in self._touched else (self._first, host)

    def arrivals(self, uuid: str, also_refused: bool = False) -> FloatArray:
        """Return the harm of a VM arriving, (h,); NaN where it is refused or unknown.

        What is said of its own host means nothing.

        :param also_refused: whether hosts on which a limit would be breached have a number too
        """
        row = self._first.cluster.resident_index[uuid]
        kept = self._arrivals.get(uuid)
        if kept is None:
            kept = self._arrivals[uuid] = _Arrival(
                *arrivals(self._first, self._first.cluster, row, self._now), set(self._touched))
        if kept.stale:
            hosts = tuple(sorted(kept.stale))
            kept.score[list(hosts)], kept.refused[list(hosts)] = arrivals(
                self._part(hosts), self._first.cluster, row, self._now)
            kept.stale = set()
        return kept.score if also_refused else np.where(kept.refused, np.nan, kept.score)

    def effects(self, host: int) -> tuple[plan.PredictedEffect, ...]:
        """Predict what the moves so far do to the VMs of their hosts and of ``host``.

        NaN where unknown.
        """
        hosts = tuple(sorted(self._touched | {host}))
        return predicted_effects(
            assessment.Assessor(self.cluster.restricted(hosts), self._first.settings,
                                self._solved), self._part(hosts), self._now)

    def attempt(self, uuid: str,
                destination: int) -> MoveEvaluation | placement_constraints.Obstacle:
        """Judge one move; see :func:`tracon_watcher.placement.plan_state.evaluate`."""
        found = self._trials.get((uuid, destination))
        if found is None:
            found = self._trials[uuid, destination] = evaluate(
                self._part((self.host(uuid), destination)), uuid,
                self._parameters.migration_cost, self._parameters.noise)
        return found

    def move(self, uuid: str, destination: int) -> frozenset[int]:
        """Make a move and return its two hosts."""
        source = self.host(uuid)
        changed = frozenset((source, destination))
        self._moves.append((uuid, source, destination))
        self._host[uuid] = destination
        self._touched |= changed
        self._parts = {hosts: part for hosts, part in self._parts.items()
                       if changed.isdisjoint(hosts)}
        self._trials = {(vm, host): found for (vm, host), found in self._trials.items()
                        if host not in changed and self.host(vm) not in changed}
        for host in changed:
            self._departures.pop(host, None)
        for kept in self._arrivals.values():
            kept.stale |= changed
        self._sum_up(self._part((source, destination)), np.array((source, destination)))
        return changed

    def breached(self, host: int, gone: frozenset[str] = frozenset()) -> frozenset[str]:
        """Return the uuids of the residents of a host in breach, with some of them gone."""
        return _breached(_without(self._part((host,)), gone))

    def slowdowns(self, host: int) -> dict[str, float]:
        """Return the predicted slowdown of each resident of a host, by uuid; NaN where unknown."""
        assessor = self._part((host,))
        return dict(zip(assessor.cluster.uuids, np.exp(assessor.log_responses()[0]).tolist()))

    def admits(self, host: int, gone: frozenset[str], profile: newcomer_profiles.Profile,
               limits: limits_module.Limits, before: Sequence[
                   tuple[str, newcomer_profiles.Profile, limits_module.Limits]] = ()) -> bool:
        """Say whether a newcomer is not refused on a host; one of which nothing is known is not.

        :param gone: residents that have left
        :param before: uuid, profile and limits of newcomers that have come before it
        """
        assessor = _without(self._part((host,)), gone)
        if before:
            assessor = assessor.of(assessor.cluster.with_residents(
                [(0, *one) for one in before]))
        return not bool(assessor.assess(profile, limits).refused[0])

    def remove(self, host: int, uuids: frozenset[str]) -> None:
        """Remove residents of a host, after all moves."""
        self._removed |= uuids
        self._touched.add(host)
        self._parts.clear()
        self._trials.clear()
        self._departures.pop(host, None)
        for kept in self._arrivals.values():
            kept.stale.add(host)
        self._sum_up(self._part((host,)), np.array([host]))

    def outlook(self, known: BoolArray) -> plan.Outlook:
        """Sum up the residents of the hosts (h,) that are ``known``."""
        vms = int(self._vms[known].sum())
        return plan.Outlook(
            vms, int(self.breaches[known].sum()),
            float(self._slowdowns[known].sum() / vms) if vms else 1.0,
            float(self._worst[known].max(initial=1.0)), float(self.harm[known].sum()))

    def _sum_up(self, assessor: assessment.Assessor, hosts: IntArray) -> None:
        """Take down what the residents of ``hosts``, those of ``assessor``, suffer."""
        slow = assessor.log_responses()[0]
        count, host = len(hosts), assessor.cluster.host
        counted = ~np.isnan(slow)
        slowdown = np.where(counted, np.exp(np.nan_to_num(slow)), 0.0)
        self.harm[hosts] = np.bincount(host, assessor.harm().sum(axis=0), count)
        self.breaches[hosts] = np.bincount(host, assessor.breaches() & counted, count)
        self._vms[hosts] = np.bincount(host, counted, count)
        self._slowdowns[hosts] = np.bincount(host, slowdown, count)
        worst = np.ones(count)
        np.maximum.at(worst, host, slowdown)
        self._worst[hosts] = worst

    def _part(self, hosts: tuple[int, ...]) -> assessment.Assessor:
        """Return these hosts alone, as the moves so far leave them."""
        found = self._parts.get(hosts)
        if found is None:
            moves = [move for move in self._moves if move[1] in hosts or move[2] in hosts]
            # A VM that came from another host or went there is known with that host only.
            ends = {end for _vm, *two in moves for end in two}
            state = self._first.cluster.restricted([*hosts, *sorted(ends.difference(hosts))])
            if moves:
                names = self._first.cluster.hosts
                state = state.moved({vm: names[end] for vm, _start, end in moves}).restricted(
                    range(len(hosts)))
            state = state.moved(dict.fromkeys(self._removed.intersection(state.uuids)))
            found = self._parts[hosts] = assessment.Assessor(
                state, self._first.settings, self._solved)
        return found


def _without(assessor: assessment.Assessor, gone: frozenset[str]) -> assessment.Assessor:
    return assessor.of(assessor.cluster.moved(dict.fromkeys(gone))) if gone else assessor


def _breached(assessor: assessment.Assessor) -> frozenset[str]:
    return frozenset(uuid for uuid, bad in zip(
        assessor.cluster.uuids, assessor.breaches().tolist()) if bad)


def arrivals(assessor: assessment.Assessor, cluster: cluster_module.ClusterState, row: int,
             now: float) -> tuple[FloatArray, BoolArray]:
    """Return the harm of a VM arriving, (h,), NaN where unknown, and where it is refused, (h,).

    On a host's own disk it is a newcomer like any other; on a pool its I/O is felt already.

    :param assessor: of the h hosts that it may come to
    :param cluster: which has the VM in ``row``
    """
    verdict = assessor.assess(cluster.resident_profile(row), cluster.resident_limits(row),
                              now, pool=storage_backends.pool_of(cluster, row, assessor.cluster))
    return np.where(verdict.known, verdict.score, np.nan), verdict.refused


@dataclasses.dataclass(frozen=True)
class MoveEvaluation:
    """A move that may be made.

    :param move: with its expected gain
    :param cautious_gain: the same less what noise in profiles may feign
    """

    move: plan.Move
    cautious_gain: float


def evaluate(before: assessment.Assessor, uuid: str, cost: float,
             noise: float = 0.0) -> MoveEvaluation | Obstacle:
    """Judge one move.

    Storage stays what it is (:mod:`tracon_watcher.placement.storage_backends`), so no other VM
    feels it.

    :param before: of the VM's host and its destination, in this order, before the move
    :param noise: see :class:`~tracon_watcher.placement.plan.Parameters`
    :returns: the trial, or what stands against the move
    """
    part = before.cluster
    _source, name = part.hosts
    row = part.resident_index[uuid]
    # The one judgement, as for any newcomer: the destination as it is without the VM.
    alone = part.moved({uuid: None}).restricted([1])
    verdict = before.of(alone).assess(part.resident_profile(row), part.resident_limits(row))
    if not verdict.known[0]:
        status = assessment.Status(int(verdict.status[0])).name.lower()
        return Obstacle(Against.UNKNOWN, f'is unknown: {status}')
    if verdict.refused[0]:
        breach = verdict.breach(0)
        whose = 'of its own' if breach.vm == verdicts.NEWCOMER else f'of {breach.vm}'
        return Obstacle(Against.LIMIT, f'{breach.response} {breach.bound:.2f} would cross the '
                        f'limit {breach.limit:.2f} {whose}')
    return _compare(before, before.of(part.moved({uuid: name})), uuid, cost, noise)


def _compare(before: assessment.Assessor, after: assessment.Assessor, uuid: str,
             cost: float, noise: float) -> MoveEvaluation | Obstacle:
    source, name = before.cluster.hosts
    place = after.cluster.resident_index
    order = np.array([place[one] for one in before.cluster.uuids], dtype=np.intp)
    old = before.log_responses()
    new = after.log_responses()[:, order]
    # As assess() judges: each limit by itself, so that one that is breached already does not make
    # the other response's harmless rise a breach.
    was, becomes = before.breaches_by_response(), after.breaches_by_response()[:, order]
    rise = np.nan_to_num(new - old)
    bad = (becomes & (~was | (rise > before.settings.least_rise))).any(axis=0)
    if bad.any():
        victim = before.cluster.uuids[int(np.flatnonzero(bad)[0])]
        return Obstacle(Against.LIMIT, f'{victim} would be in breach')
    harm_before, harm_after = before.harm(), after.harm()[:, order]
    gain = float(harm_before.sum() - harm_after.sum())
    changes = tuple(one for one in predicted_effects(before, after) if not (
        math.isnan(one.slowdown_before) or math.isnan(one.slowdown_after)))
    ended = [change.uuid for change in changes if change.breach_before and not change.breach_after]
    background = dict(zip(before.cluster.uuids, before.cluster.background.tolist()))
    relieved = tuple(ended) or tuple(change.uuid for change in sorted(
        changes, key=lambda one: (background[one.uuid], *_most_relieved(one)))[:1])
    return MoveEvaluation(plan.Move(uuid, source, name, gain, cost, len(ended), relieved, changes),
                          gain - (0.0 if ended else noise * _exposed(
                              harm_before, harm_after, before.cluster.resident_index[uuid])))


def predicted_effects(before: assessment.Assessor, after: assessment.Assessor,
                      now: float | None = None) -> tuple[plan.PredictedEffect, ...]:
    """Predict what each VM suffers in two states that have the same VMs; NaN where unknown.

    :param now: seconds since the epoch, for staleness; None: nothing is stale
    """
    place = after.cluster.resident_index
    first, second = (current_interference.current_interference(one, now)
                     for one in (before, after))
    return tuple(
        plan.PredictedEffect(
            uuid, math.exp(first.log_response[0, row]), math.exp(second.log_response[0, at]),
            math.exp(-first.log_response[1, row]), math.exp(-second.log_response[1, at]),
            bool(first.breached[:, row].any()), bool(second.breached[:, at].any()),
            *((math.exp(each.lower[0, index]), math.exp(each.upper[0, index]))
              for each, index in ((first, row), (second, at))))
        for row, (uuid, at) in enumerate((one, place[one]) for one in before.cluster.uuids))


def _most_relieved(change: plan.PredictedEffect) -> tuple[float, str]:
    return -round(change.relief, 9), change.uuid


def _exposed(old: FloatArray, new: FloatArray, mover: int) -> float:
    """Return what noise in profiles is multiplied by in a gain, in log responses.

    A VM that stays is seen wrongly before and after alike, so only its change counts. The one
    that moves meets others before and after, and is itself part of all changes.

    :param old: (2, m) harm before the move
    :param new: and after it
    """
    change = (new - old).sum(axis=0)
    change[mover] = 0.0
    own = [float(one[:, mover].sum()) for one in (old, new)]
    return math.sqrt(own[0] ** 2 + own[1] ** 2 + float(change @ change)
                     + float(change.sum()) ** 2)
