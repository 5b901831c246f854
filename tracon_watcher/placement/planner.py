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

"""Planner of live migrations that end breaches and lower the harm on both hosts."""

from __future__ import annotations

import dataclasses
from typing import Iterator, Sequence

import numpy as np

from tracon_watcher.characteristics import BoolArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import joint_assignment
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement import placement_constraints as constraint
from tracon_watcher.placement.placement_constraints import Against
from tracon_watcher.placement.placement_constraints import Obstacle
from tracon_watcher.placement import plan
from tracon_watcher.placement import plan_state
from tracon_watcher.placement import preemption
from tracon_watcher.placement import storage_backends

#: VMs that are told of, of each host.
_LEAVERS = 6
_WHY = {Against.ROOM: 'has no room for it', Against.ZONE: 'is in another availability zone',
        Against.GROUP: 'would break its server group',
        Against.STORAGE: 'does not reach its storage'}
_RESPONSES = ('slowdown', 'IOPS ratio')


class PlanSearch:
    """Looks at the state that a plan leaves.

    :param known: (h,) hosts of which enough is known
    :param reached: whether the plan has as many moves as it may have
    """

    def __init__(self, ahead: plan_state.PlanState, room: placement_constraints.Occupancy,
                 known: BoolArray,
                 parameters: plan.Parameters, reached: bool) -> None:
        self._ahead = ahead
        self._cluster = ahead.cluster
        self._room = room
        self._known = known
        self._parameters = parameters
        self._threshold = parameters.min_gain + parameters.migration_cost
        self._otherwise = Obstacle(
            Against.CAP, f'max_migrations={parameters.max_migrations} is reached' if reached else
            f'was not tried: the search ends after {parameters.candidates} VMs')
        if parameters.standstill:
            self._otherwise = Obstacle(Against.BLACKOUT, parameters.standstill)
        self._alphabetical = np.argsort(np.argsort(np.array(self._cluster.hosts, dtype=str)))

    def remainders(self) -> tuple[plan.Remainder, ...]:
        """Return the hosts with breaches, then the most harmed ones."""
        harm, breaches = self._ahead.harm, self._ahead.breaches
        found = np.flatnonzero((breaches > 0) | (self._known & (harm > self._threshold)))
        order = np.lexsort((self._alphabetical[found], -np.round(harm[found], 9),
                            -breaches[found]))
        return tuple(self._remainder(int(host))
                     for host in found[order][:self._parameters.explained])

    def _remainder(self, host: int) -> plan.Remainder:
        return plan.Remainder(
            self._cluster.hosts[host], float(self._ahead.harm[host]), tuple(self._breaches(host)),
            tuple(self._options(host)) if self._known[host] else ())

    def _breaches(self, host: int) -> Iterator[plan.Breach]:
        assessor, place = self._ahead.of(host)
        state = assessor.cluster
        rows = range(state.first[place], state.first[place + 1])
        values = np.exp(assessor.log_responses() * np.array([[1.0], [-1.0]]))
        breached = assessor.breaches_by_response()
        for index, limit in enumerate((state.max_slowdown, state.min_iops_ratio)):
            for row in rows:
                if breached[index, row]:
                    yield plan.Breach(state.uuids[row], _RESPONSES[index],
                                      float(values[index, row]), float(limit[row]))

    def _options(self, host: int) -> Iterator[plan.Option]:
        leaving = self._ahead.departures(host)
        uuids = np.array(leaving.uuids, dtype=object)
        order = np.lexsort((np.arange(len(uuids)), -np.round(leaving.relief, 9), -leaving.ended))
        for row in order[:_LEAVERS]:
            for destination, hosts, obstacle in self._obstacles(
                    uuids[row], float(leaving.relief[row])):
                yield plan.Option(uuids[row], tuple(uuids[leaving.ends[row]]), destination, hosts,
                                  obstacle)

    def _obstacles(self, uuid: str, relief: float) -> Iterator[tuple[str | None, int, Obstacle]]:
        """Yield what stands against a VM's leaving: a host or None, how many hosts, and what."""
        of_vm = self._room.obstacle(uuid)
        if of_vm is None and relief <= self._threshold:
            of_vm = self._too_little('its leaving', relief)
        if of_vm is not None:
            yield None, 0, of_vm
            return
        row = self._cluster.resident_index[uuid]
        left = np.ones(len(self._cluster.hosts), dtype=bool)
        left[self._ahead.host(uuid)] = False
        against = {**self._room.against(uuid),
                   Against.STORAGE: ~storage_backends.reachable(self._cluster, row),
                   Against.UNKNOWN: ~self._known}
        for kind, hosts in against.items():
            here = left & hosts
            left &= ~hosts
            if here.any():
                first = self._first(here)
                yield self._cluster.hosts[first], int(here.sum()), Obstacle(
                    kind, self._why(kind, first))
        gain = relief - self._ahead.arrivals(uuid)
        refused = left & np.isnan(gain)
        if refused.any():
            yield self._judged(uuid, self._first(refused), int(refused.sum()))
        left &= ~refused
        if left.any():
            best = np.lexsort((self._alphabetical, -np.where(left, np.round(gain, 9), -np.inf)))
            yield self._judged(uuid, int(best[0]), int(left.sum()))

    def _judged(self, uuid: str, host: int, hosts: int) -> tuple[str, int, Obstacle]:
        name, found = self._cluster.hosts[host], self._ahead.attempt(uuid, host)
        if isinstance(found, Obstacle):
            return name, hosts, found
        if found.cautious_gain <= self._threshold:
            return name, hosts, self._too_little('the move', found.cautious_gain)
        if self._room.destinations(uuid)[1][host] and not found.move.ended:
            return name, hosts, Obstacle(
                Against.GROUP, 'would scatter or crowd its soft server group, and end no breach')
        return name, hosts, self._otherwise

    def _too_little(self, what: str, gain: float) -> Obstacle:
        return Obstacle(Against.GAIN, f'{what} would gain {gain:.3f}, not more than '
                        f'min_gain + migration_cost = {self._threshold:.3f}')

    def _why(self, kind: Against, host: int) -> str:
        if kind is Against.CLOSED:
            return f'takes no VM: {self._room.closed(self._cluster.hosts[host])}'
        if kind is Against.UNKNOWN:
            assessor, place = self._ahead.of(host)
            status = assessment.Status(int(assessor.status[place]))
            # An assessor knows no time, so that what is known to it has become stale.
            return 'is unknown: ' + (
                'stale' if status is assessment.Status.KNOWN else status.name.lower())
        return _WHY[kind]

    def _first(self, hosts: BoolArray) -> int:
        found = np.flatnonzero(hosts)
        return int(found[np.argmin(self._alphabetical[found])])


#: Hosts whose residents are left out one by one before the next, less harmed ones are.
_BATCH = 16
#: VMs that are tried of one host.
_OF_ONE_HOST = 12
#: By how much less harm, in log responses, destinations that are sought together must leave.
_WORTH_A_CHANGE = 1e-6


def plan_moves(assessor: assessment.Assessor,
               constraints: constraint.Constraints = constraint.Constraints(),
               parameters: plan.Parameters = plan.Parameters(), now: float = 0.0,
               assign: joint_assignment.Assign | None = None,
               requests: Sequence[preemption.Request] = ()) -> plan.Plan:
    """Plan live migrations, and removals of background VMs.

    Hosts of which something is unknown (stale, no cores, a VM without a profile) are left alone
    on both sides.

    :param assessor: of the present state
    :param now: seconds since the epoch, for staleness and cooldowns
    :param assign: solves assignments, so that destinations are also sought together; None: not
    :param requests: that found no host, in the order in which they are served
    """
    first = _Planner(assessor, constraints, parameters, now)
    made = first.run()
    together = None if assign is None or len(made.moves) < 2 else _together(
        assessor, constraints, parameters, now, assign, made)
    if together is None:
        return first.end(made, requests)
    second, found = together
    return second.end(found, requests)


def _together(assessor: assessment.Assessor, constraints: constraint.Constraints,
              parameters: plan.Parameters, now: float, assign: joint_assignment.Assign,
              made: plan.Plan) -> tuple[_Planner, plan.Plan] | None:
    """Seek the destinations of a plan's moves all at once; None where that is no better."""
    found = joint_assignment.destinations(
        assessor, placement_constraints.Occupancy(assessor.cluster, constraints, now),
        [move.uuid for move in made.moves], assign, parameters.migration_cost, now)
    if found is None:
        return None
    planner = _Planner(assessor, constraints, parameters, now)
    again = planner.run_through(found)
    if again is None or again.after.in_breach > made.after.in_breach:
        return None
    saved = (len(made.moves) - len(again.moves)) * parameters.migration_cost
    if again.after.harm - saved >= made.after.harm - _WORTH_A_CHANGE:
        return None
    return planner, dataclasses.replace(
        again, reason=f'{made.reason}; destinations chosen together')


class _Planner:
    def __init__(self, assessor: assessment.Assessor, rules: constraint.Constraints,
                 parameters: plan.Parameters, now: float) -> None:
        self._parameters = parameters
        self._cluster = assessor.cluster
        self._occupancy = placement_constraints.Occupancy(assessor.cluster, rules, now)
        self._prospect = plan_state.PlanState(assessor, parameters, now)
        self._known: BoolArray = np.asarray(
            (assessor.status == assessment.Status.KNOWN) & ~assessor.stale(now))
        #: Of each host its place among all names, since the order of hosts must not decide.
        self._alphabetical = np.argsort(np.argsort(np.array(assessor.cluster.hosts, dtype=str)))
        self._threshold = parameters.min_gain + parameters.migration_cost
        self._unfinished = False
        self._made: list[tuple[frozenset[int], frozenset[int]]] = []

    def run(self) -> plan.Plan:
        before = self._prospect.outlook(self._known)
        moves: list[plan.Move] = []
        while not self._parameters.standstill and (
                len(moves) < self._parameters.max_migrations):
            move = self._best()
            if move is None:
                break
            moves.append(dataclasses.replace(move, after=self._apply(move)))
        after = self._prospect.outlook(self._known)
        return plan.Plan(tuple(moves), self._reason(moves, before, after), before, after)

    def run_through(self, wanted: list[tuple[str, int]]) -> plan.Plan | None:
        """Make these moves, (uuid, host index), in an order in which each is worth it by itself.

        :returns: None where there is no such order, as far as the best next one tells
        """
        before = self._prospect.outlook(self._known)
        moves: list[plan.Move] = []
        left = sorted(wanted)
        while left:
            tried = [(found, one) for one in left if (found := self._judge(*one)) is not None]
            if not tried:
                return None
            best, one = max(tried, key=lambda each: (_worth(each[0]), each[1]))
            moves.append(dataclasses.replace(best.move, after=self._apply(best.move)))
            left.remove(one)
        return plan.Plan(tuple(moves), '', before, self._prospect.outlook(self._known))

    def end(self, made: plan.Plan, requests: Sequence[preemption.Request]) -> plan.Plan:
        """Return a plan whose moves were made, with the removals after them and what is left."""
        removals = tuple(self._removals())
        if removals:
            ended = sum(len(one) for one in {removal.host: removal.ends
                                             for removal in removals}.values())
            made = dataclasses.replace(
                made, removals=removals, after=self._prospect.outlook(self._known),
                reason=f'{made.reason}; removals of background VMs: {len(removals)}, which end '
                       f'breaches: {ended}')
        if requests and not self._parameters.standstill:
            made = self._preempt(made, requests)
        return dataclasses.replace(made, remainders=PlanSearch(
            self._prospect, self._occupancy, self._known, self._parameters,
            len(self._made) == self._parameters.max_migrations).remainders())

    def _removals(self) -> Iterator[plan.Removal]:
        """Remove the least background VMs whose leaving ends breaches that no move ends.

        While more moves are possible, none is removed: the next audit may still move it.
        """
        if (self._parameters.standstill or self._unfinished
                or len(self._made) == self._parameters.max_migrations):
            return
        hosts = np.flatnonzero(self._known & (self._prospect.breaches > 0))
        for host in hosts[np.argsort(self._alphabetical[hosts])].tolist():
            leaving = self._prospect.departures(host)
            order = np.lexsort((np.array(leaving.uuids, dtype=str), np.round(leaving.relief, 9)))
            some = [leaving.uuids[row] for row in order
                    if self._cluster.background[self._cluster.resident_index[leaving.uuids[row]]]
                    and self._occupancy.removable(leaving.uuids[row])]
            left = self._prospect.breached(host, frozenset(some))
            ends = self._prospect.breached(host) - left
            if not ends:
                continue
            # Those that help least come back first, as long as no breach comes back with them.
            gone = preemption.minimal(
                some, lambda fewer: self._prospect.breached(host, fewer) <= left)
            before = self._prospect.slowdowns(host)
            self._prospect.remove(host, gone)
            after = self._prospect.slowdowns(host)
            victims = tuple(sorted(ends))
            for uuid in sorted(gone):
                yield plan.Removal(uuid, self._cluster.hosts[host], victims, slowdowns=tuple(
                    (before[one], after[one]) for one in victims))

    def _preempt(self, made: plan.Plan, requests: Sequence[preemption.Request]) -> plan.Plan:
        """Return a plan with the removals that make room for requests."""
        for one in made.removals:
            self._occupancy.remove(one.uuid)
        serving = preemption.Preemption(self._prospect, self._occupancy, self._known)
        found = [(request, serving.serve(request)) for request in requests]
        removals = [plan.Removal(uuid, self._cluster.hosts[one[0]], request=request.uuid)
                    for request, one in found if one is not None for uuid in sorted(one[1])]
        served = len({one.request for one in removals})
        nowhere = sum(one is None for _request, one in found)
        return dataclasses.replace(
            made, removals=(*made.removals, *removals),
            after=self._prospect.outlook(self._known), reason=(
                f'of {len(found)} requests that found no host {served} fit without '
                f'{len(removals)} background VMs, {len(found) - served - nowhere} fit already, '
                f'{nowhere} nowhere; {made.reason}'))

    def _judge(self, uuid: str, destination: int) -> plan_state.MoveEvaluation | None:
        """Judge one move, as :meth:`_try` does the best of a VM."""
        cluster = self._cluster
        if self._occupancy.obstacle(uuid) is not None:
            return None
        allowed, worse = self._occupancy.destinations(uuid)
        if not (allowed[destination] and self._known[destination]
                and self._known[self._prospect.host(uuid)]
                and storage_backends.reachable(cluster,
                                               cluster.resident_index[uuid])[destination]):
            return None
        result = self._prospect.attempt(uuid, destination)
        if isinstance(result, constraint.Obstacle) or result.cautious_gain <= self._threshold or (
                worse[destination] and not result.move.ended):
            return None
        return result

    def _reason(self, moves: list[plan.Move], before: plan.Outlook, after: plan.Outlook) -> str:
        if self._parameters.standstill:
            return f'no migration: {self._parameters.standstill}'
        if len(moves) == self._parameters.max_migrations:
            return f'max_migrations={self._parameters.max_migrations} is reached'
        if not self._known.any():
            return ('no beneficial migration: nothing is known of any host '
                    '(stale data, cores unknown, or VMs without a profile)')
        if not moves and before.harm <= self._threshold:
            return (f'no beneficial migration: all harm together, {before.harm:.3f}, is less than '
                    f'min_gain + migration_cost = {self._threshold:.3f}')
        if self._unfinished:
            return (f'no beneficial migration among the {self._parameters.candidates} VMs whose '
                    f'leaving would help most; VMs in breach: {after.in_breach}')
        left = f'VMs {"still " if moves else ""}in breach: {after.in_breach}'
        return (f'no {"further " if moves else ""}beneficial migration: none lowers the harm by '
                f'more than min_gain + migration_cost = {self._threshold:.3f} without breaching '
                f'a limit or a constraint; {left}')

    def _best(self) -> plan.Move | None:
        """Return the next move, or None when there is none that is worth it."""
        tried = 0
        for batch in self._sources():
            best: plan_state.MoveEvaluation | None = None
            for uuid, relief, ended in self._candidates(batch):
                floor = self._threshold
                if best is not None and ended <= best.move.ended:
                    _ended, floor = _worth(best)
                    if ended < best.move.ended or round(relief, 9) <= floor:
                        break
                tried += 1
                found = self._try(uuid, relief, floor)
                if found is not None and (best is None or _worth(found) > _worth(best)):
                    best = found
            if best is not None:
                return best.move
            if tried >= self._parameters.candidates:
                self._unfinished = True
                break
        return None

    def _sources(self) -> Iterator[list[int]]:
        """Yield known hosts, some at a time: those with breaches first, then the most harmed."""
        harm, breaches = self._prospect.harm, self._prospect.breaches
        hosts = np.flatnonzero(self._known & (harm > self._threshold)).tolist()
        hosts.sort(key=lambda host: (-breaches[host], -round(float(harm[host]), 9),
                                     self._cluster.hosts[host]))
        for start in range(0, len(hosts), _BATCH):
            yield hosts[start:start + _BATCH]

    def _candidates(self, hosts: list[int]) -> list[tuple[str, float, int]]:
        """Return (uuid, relief, breaches ended) of the VMs worth moving away, the best first."""
        def order(one: tuple[str, float, int]) -> tuple[int, float, str]:
            return -one[2], -round(one[1], 9), one[0]

        found = []
        for host in hosts:
            leaving = self._prospect.departures(host)
            here = []
            for uuid, relief, ended in zip(leaving.uuids, leaving.relief, leaving.ended):
                if relief > self._threshold and self._occupancy.obstacle(uuid) is None:
                    here.append((uuid, float(relief), int(ended)))
            found += sorted(here, key=order)[:_OF_ONE_HOST]
        return sorted(found, key=order)

    def _try(self, uuid: str, relief: float, floor: float) -> plan_state.MoveEvaluation | None:
        """Return the best move of one VM, None when it has none that gains more than ``floor``."""
        cluster = self._cluster
        allowed, worse = self._occupancy.destinations(uuid)
        allowed &= self._known & storage_backends.reachable(cluster, cluster.resident_index[uuid])
        if not allowed.any():
            return None
        score = self._prospect.arrivals(uuid)
        # A soft server group is made worse only where nothing else ends the breach.
        for hosts, necessary in ((allowed & ~worse, False), (allowed & worse, True)):
            candidates = np.flatnonzero(hosts & ~np.isnan(score))
            gains = np.round(relief - score[candidates], 9)
            for place in np.lexsort((self._alphabetical[candidates], -gains))[
                    :self._parameters.destinations]:
                if gains[place] <= floor:
                    if floor > self._threshold:
                        return None
                    break
                result = self._prospect.attempt(uuid, int(candidates[place]))
                if isinstance(result, plan_state.MoveEvaluation) and (
                        result.cautious_gain > self._threshold) and (
                        result.move.ended or not necessary):
                    return result
        return None

    def _apply(self, move: plan.Move) -> tuple[int, ...]:
        """Make a move, and return which earlier ones it was assessed upon.

        Those are the ones that share a host or a hard server group with it.
        """
        destination = self._cluster.host_index[move.destination]
        changed = self._prospect.move(move.uuid, destination)
        groups = self._occupancy.groups_of(move.uuid)
        waits_for = tuple(place for place, (hosts, others) in enumerate(self._made)
                          if hosts & changed or others & groups)
        self._made.append((changed, groups))
        self._occupancy.move(move.uuid, destination)
        return waits_for


def _worth(found: plan_state.MoveEvaluation) -> tuple[int, float]:
    """Return what a move is preferred by; rounding that depends on the hosts' order is not."""
    return found.move.ended, round(found.cautious_gain, 9)
