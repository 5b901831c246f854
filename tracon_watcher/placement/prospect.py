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

"""A cluster while moves are made on paper: only the hosts of moves are predicted again.

A move changes its two hosts and no other: a VM on a pool stays on it
(:mod:`~tracon_watcher.placement.storage`), so that no VM elsewhere feels a difference. What was
predicted of all other hosts stays, and a long plan costs little more than its moves.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.placement import arrival
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import constraints
from tracon_watcher.placement import departure
from tracon_watcher.placement import plan
from tracon_watcher.placement import trial


@dataclasses.dataclass
class _Arrival:
    """What a VM would meet and do on each host.

    :param score: (h,), NaN where it may not go
    :param stale: hosts whose score is that of a state before
    """

    score: FloatArray
    stale: set[int]


class Prospect:
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
        count = len(assessor.cluster.hosts)
        #: (h,) exponents that the residents of each host suffer together.
        self.harm = np.zeros(count)
        #: (h,) residents of each host in breach.
        self.breaches: IntArray = np.zeros(count, dtype=np.intp)
        self._vms: IntArray = np.zeros(count, dtype=np.intp)
        self._slowdowns = np.zeros(count)
        self._worst = np.ones(count)
        self._sum_up(assessor, np.arange(count))
        self._moves: list[tuple[str, int, int]] = []
        self._host: dict[str, int] = {}
        self._touched: set[int] = set()
        self._parts: dict[tuple[int, ...], assessment.Assessor] = {}
        self._departures: dict[int, departure.Departures] = {}
        self._arrivals: dict[str, _Arrival] = {}
        self._trials: dict[tuple[str, int], trial.Trial | constraints.Obstacle] = {}

    @property
    def cluster(self) -> cluster_module.ClusterState:
        """The state before all moves, whose hosts and rows are counted by."""
        return self._first.cluster

    def host(self, uuid: str) -> int:
        """Return the index of a VM's host."""
        moved = self._host.get(uuid)
        return (int(self.cluster.host[self.cluster.resident_index[uuid]]) if moved is None
                else moved)

    def departures(self, host: int) -> departure.Departures:
        """Return what it brings that a host's residents leave it."""
        found = self._departures.get(host)
        if found is None:
            found = self._departures[host] = departure.departures(*self.of(host))
        return found

    def of(self, host: int) -> tuple[assessment.Assessor, int]:
        """Return what knows a host's residents, and the host's index there."""
        return (self._part((host,)), 0) if host in self._touched else (self._first, host)

    def arrivals(self, uuid: str) -> FloatArray:
        """Return the harm of a VM arriving, (h,); NaN where it is refused or unknown.

        What is said of its own host means nothing.
        """
        row = self._first.cluster.resident_index[uuid]
        kept = self._arrivals.get(uuid)
        if kept is None:
            kept = self._arrivals[uuid] = _Arrival(
                arrival.arrivals(self._first, self._first.cluster, row, self._now),
                set(self._touched))
        if kept.stale:
            hosts = tuple(sorted(kept.stale))
            kept.score[list(hosts)] = arrival.arrivals(
                self._part(hosts), self._first.cluster, row, self._now)
            kept.stale = set()
        return kept.score

    def attempt(self, uuid: str, destination: int) -> trial.Trial | constraints.Obstacle:
        """Judge one move; see :func:`tracon_watcher.placement.trial.attempt`."""
        found = self._trials.get((uuid, destination))
        if found is None:
            found = self._trials[uuid, destination] = trial.attempt(
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

    def outlook(self, known: BoolArray) -> plan.Outlook:
        """Sum up the residents of the hosts (h,) that are ``known``."""
        vms = int(self._vms[known].sum())
        return plan.Outlook(
            vms, int(self.breaches[known].sum()),
            float(self._slowdowns[known].sum() / vms) if vms else 1.0,
            float(self._worst[known].max(initial=1.0)), float(self.harm[known].sum()))

    def _sum_up(self, assessor: assessment.Assessor, hosts: IntArray) -> None:
        """Take down what the residents of ``hosts``, those of ``assessor``, suffer."""
        slow, ratio = assessor.exponents()
        count, host = len(hosts), assessor.cluster.host
        counted = ~np.isnan(slow)
        slowdown = np.where(counted, np.exp(np.nan_to_num(slow)), 0.0)
        self.harm[hosts] = np.bincount(host, np.nan_to_num(slow) + np.nan_to_num(ratio), count)
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
            found = self._parts[hosts] = assessment.Assessor(state, self._first.settings)
        return found
