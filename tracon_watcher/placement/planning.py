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

"""The planner: the few live migrations that end breaches and lower the harm on both sides.

Greedy, one move after the other, each on the state that the moves before it leave. For each move
the VMs whose leaving would help most (:mod:`~tracon_watcher.placement.departure`) are weighed
against what they would do elsewhere (``assess``), and the best is judged exactly before it is
taken (:mod:`~tracon_watcher.placement.trial`). Since a move cannot gain more than the leaving
brings, VMs whose leaving brings less than the best move so far are not tried at all.

Every state between two moves is therefore one that was predicted whole: nobody newly in breach,
the destination not refused, its room not exceeded, no hard server group broken.
"""

from __future__ import annotations

import dataclasses
from typing import Iterator

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import constraints as constraint
from tracon_watcher.placement import departure
from tracon_watcher.placement import newcomer
from tracon_watcher.placement import occupancy
from tracon_watcher.placement import plan
from tracon_watcher.placement import trial

#: Hosts whose residents are left out one by one before the next, less harmed ones are.
_BATCH = 16
_SHOWN = 20


def plan_moves(assessor: assessment.Assessor,
               constraints: constraint.Constraints = constraint.Constraints(),
               parameters: plan.Parameters = plan.Parameters(), now: float = 0.0) -> plan.Plan:
    """Plan live migrations.

    Hosts of which something is unknown (stale, no model, a VM without a profile) are left alone
    on both sides.

    :param assessor: of the present state
    :param now: seconds since the epoch, for staleness and cooldowns
    """
    return _Planner(assessor, constraints, parameters, now).run()


@dataclasses.dataclass
class _Arrival:
    """What a VM would meet and do on each host: (h,) scores, NaN where it may not go."""

    score: FloatArray
    stale: set[int]


class _Planner:
    def __init__(self, assessor: assessment.Assessor, rules: constraint.Constraints,
                 parameters: plan.Parameters, now: float) -> None:
        self._parameters = parameters
        self._now = now
        self._assessor = assessor
        self._occupancy = occupancy.Occupancy(assessor.cluster, rules, now)
        cluster = assessor.cluster
        stale = now - cluster.updated_at > assessor.settings.maximum_age
        self._known: BoolArray = np.asarray((assessor.status == assessment.Status.KNOWN) & ~stale)
        self._shared = _shared_storage(assessor)
        self._departures: dict[int, departure.Departures] = {}
        self._arrivals: dict[str, _Arrival] = {}
        self._passed_over: dict[str, str] = {}
        self._threshold = parameters.min_gain + parameters.migration_cost
        self._made: list[tuple[set[int], frozenset[int]]] = []

    def run(self) -> plan.Plan:
        before = plan.outlook(self._assessor, self._known)
        moves: list[plan.Move] = []
        while len(moves) < self._parameters.max_migrations:
            move = self._best()
            if move is None:
                break
            moves.append(dataclasses.replace(move, after=self._apply(move)))
        after = plan.outlook(self._assessor, self._known)
        taken = {move.uuid for move in moves}
        passed = {uuid: why for uuid, why in self._passed_over.items() if uuid not in taken}
        return plan.Plan(tuple(moves), self._reason(moves, before, after), before, after,
                         dict(list(passed.items())[:_SHOWN]))

    def _reason(self, moves: list[plan.Move], before: plan.Outlook, after: plan.Outlook) -> str:
        if len(moves) == self._parameters.max_migrations:
            return f'max_migrations={self._parameters.max_migrations} is reached'
        if not self._known.any():
            return ('no beneficial migration: nothing is known of any host '
                    '(stale data, no model, or VMs without a profile)')
        if not moves and before.harm <= self._threshold:
            return (f'no beneficial migration: all harm together, {before.harm:.3f}, is less than '
                    f'min_gain + migration_cost = {self._threshold:.3f}')
        left = f'{after.in_breach} VMs in breach are left' if moves else (
            f'{after.in_breach} VMs are in breach')
        return (f'no {"further " if moves else ""}beneficial migration: none lowers the harm by '
                f'more than min_gain + migration_cost = {self._threshold:.3f} without breaching '
                f'a limit or a constraint; {left}')

    def _best(self) -> plan.Move | None:
        """Return the next move, or None when there is none that is worth it."""
        tried = 0
        for batch in self._sources():
            best: trial.Trial | None = None
            for uuid, relief, ended in self._candidates(batch):
                if best is not None and (ended < best.move.ended or (
                        relief <= best.cautious_gain and not self._is_shared(uuid))):
                    break
                tried += 1
                if tried > self._parameters.candidates:
                    break
                found = self._try(uuid, relief)
                if found is not None and (best is None or (
                        found.move.ended, found.cautious_gain) > (
                        best.move.ended, best.cautious_gain)):
                    best = found
            if best is not None:
                return best.move
            if tried > self._parameters.candidates:
                break
        return None

    def _sources(self) -> Iterator[list[int]]:
        """Yield known hosts, some at a time: those with breaches first, then the most harmed."""
        cluster = self._assessor.cluster
        slow, ratio = self._assessor.exponents()
        count = len(cluster.hosts)
        harm = np.bincount(cluster.host, np.nan_to_num(slow) + np.nan_to_num(ratio),
                           minlength=count)
        breaches = np.bincount(cluster.host, self._assessor.breaches(), minlength=count)
        hosts = [int(host) for host in np.flatnonzero(self._known)
                 if harm[host] > self._threshold or self._shared[host]]
        hosts.sort(key=lambda host: (-breaches[host], -round(float(harm[host]), 9), cluster.hosts[host]))
        for start in range(0, len(hosts), _BATCH):
            yield hosts[start:start + _BATCH]

    def _candidates(self, hosts: list[int]) -> list[tuple[str, float, int]]:
        """Return (uuid, relief, breaches ended) of the VMs worth moving away, the best first."""
        cluster = self._assessor.cluster
        found = []
        for host in hosts:
            if host not in self._departures:
                self._departures[host] = departure.departures(self._assessor, host)
            leaving = self._departures[host]
            for place, row in enumerate(range(cluster.first[host], cluster.first[host + 1])):
                relief = float(leaving.relief[place])
                if relief > self._threshold or self._shared[host]:
                    found.append((cluster.uuids[row], relief, int(leaving.ended[place])))
        found.sort(key=lambda one: (-one[2], -round(one[1], 9), one[0]))
        free = []
        for uuid, relief, ended in found:
            why = self._occupancy.obstacle(uuid)
            if why is None:
                free.append((uuid, relief, ended))
            else:
                self._passed_over[uuid] = why
        return free

    def _try(self, uuid: str, relief: float) -> trial.Trial | None:
        """Return the best move of one VM, None when it has none."""
        allowed, worse = self._occupancy.destinations(uuid)
        allowed &= self._known
        if not allowed.any():
            self._passed_over[uuid] = 'no host has room for it and is open to it'
            return None
        relief, score = self._arrival(uuid, relief)
        rejected = 'every other host is refused or unknown to it'
        # A soft server group is made worse only where nothing else ends the breach.
        for hosts, necessary in ((allowed & ~worse, False), (worse, True)):
            candidates = np.flatnonzero(hosts & ~np.isnan(score))
            gains = np.round(relief - score[candidates], 9)
            names = [self._assessor.cluster.hosts[host] for host in candidates]
            for place in sorted(range(len(candidates)), key=lambda one: (-gains[one], names[one]))[
                    :self._parameters.destinations]:
                if gains[place] <= self._threshold:
                    rejected = (f'the best destination, {names[place]}, would gain '
                                f'{gains[place]:.3f}, not more than {self._threshold:.3f}')
                    break
                result = trial.attempt(self._assessor, uuid, int(candidates[place]),
                                       self._parameters.migration_cost)
                if isinstance(result, str):
                    rejected = result
                elif result.cautious_gain > self._threshold and (
                        result.move.ended or not necessary):
                    return result
                else:
                    rejected = f'the gain on {names[place]} is not certain enough'
        self._passed_over[uuid] = rejected
        return None

    def _arrival(self, uuid: str, relief: float) -> tuple[float, FloatArray]:
        """Return what leaving brings, and (h,) what arriving costs, NaN where it is refused."""
        assessor = self._assessor
        cluster = assessor.cluster
        row = cluster.resident_index[uuid]
        if self._is_shared(uuid):
            # Its I/O is felt on other hosts too, wherever it is: judged on the state without it.
            without = assessment.Assessor(cluster.moved({uuid: None}), assessor.models,
                                          assessor.settings)
            relief = _harm(assessor) - _harm(without)
            verdict = without.assess(newcomer.own(cluster.profiles[row]), now=self._now)
            return relief, np.where(verdict.known, verdict.score, np.nan)
        arrival = self._arrivals.get(uuid)
        if arrival is None:
            arrival = self._arrivals[uuid] = _Arrival(
                np.empty(len(cluster.hosts)), set(range(len(cluster.hosts))))
        if arrival.stale:
            hosts = sorted(arrival.stale)
            judge = assessor
            if len(hosts) < len(cluster.hosts):
                judge = assessment.Assessor(cluster.restricted(hosts), assessor.models,
                                            assessor.settings)
            verdict = judge.assess(newcomer.own(cluster.profiles[row]),
                                   cluster.resident_limits(row), self._now)
            arrival.score[hosts] = np.where(verdict.known & ~verdict.refused, verdict.score,
                                            np.nan)
            arrival.stale = set()
        return relief, arrival.score

    def _is_shared(self, uuid: str) -> bool:
        """Whether other hosts use a VM's storage backend."""
        return bool(self._shared[self._assessor.cluster.host[
            self._assessor.cluster.resident_index[uuid]]])

    def _apply(self, move: plan.Move) -> tuple[int, ...]:
        """Make a move, and return which earlier ones it was assessed upon: those that share a
        host, a storage backend or a hard server group with it."""
        assessor, cluster = self._assessor, self._assessor.cluster
        destination = cluster.host_index[move.destination]
        changed = set(trial.touched(cluster, move.uuid, destination))
        groups = self._occupancy.groups_of(move.uuid)
        waits_for = tuple(place for place, (hosts, others) in enumerate(self._made)
                          if hosts & changed or others & groups)
        self._made.append((changed, groups))
        self._occupancy.move(move.uuid, destination)
        self._assessor = assessment.Assessor(cluster.moved({move.uuid: move.destination}),
                                             assessor.models, assessor.settings)
        for host in changed:
            self._departures.pop(host, None)
        for arrival in self._arrivals.values():
            arrival.stale |= changed
        return waits_for


def _harm(assessor: assessment.Assessor) -> float:
    slow, ratio = assessor.exponents()
    return float(np.nansum(slow) + np.nansum(ratio))


def _shared_storage(assessor: assessment.Assessor) -> BoolArray:
    """Return, (h,), whether a host's VMs or newcomers use storage that other hosts use too."""
    cluster = assessor.cluster
    pairs = np.unique(np.concatenate([
        np.stack([cluster.host_io_domain, np.arange(len(cluster.hosts))], axis=1),
        np.stack([cluster.io_domain, cluster.host], axis=1)]), axis=0)
    users = np.bincount(pairs[pairs[:, 0] >= 0, 0], minlength=len(cluster.io_domains) + 1)
    shared = np.zeros(len(cluster.hosts), dtype=bool)
    shared[pairs[(users > 1)[pairs[:, 0]] & (pairs[:, 0] >= 0), 1]] = True
    return shared
