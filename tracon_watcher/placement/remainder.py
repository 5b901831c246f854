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

"""Why nothing more moves: what is left when a plan ends, and what stood against each option.

An option is one VM leaving its host. What stands against it holds for the VM itself (it must stay,
cools down, would leave its affinity group), for hosts (closed, without room, in another zone, not
on its storage, unknown, a limit breached there), or for the move (too little gain; the plan has as
many moves as it may have; nothing may move now). Each host counts once, by the first of these.
"""

from __future__ import annotations

from typing import Iterator

import numpy as np

from tracon_watcher.characteristics import BoolArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement.constraints import Against
from tracon_watcher.placement.constraints import Obstacle
from tracon_watcher.placement import occupancy
from tracon_watcher.placement import plan
from tracon_watcher.placement import prospect
from tracon_watcher.placement import storage

#: VMs that are told of, of each host.
_LEAVERS = 6
_WHY = {Against.ROOM: 'has no room for it', Against.ZONE: 'is in another availability zone',
        Against.GROUP: 'would break its server group',
        Against.STORAGE: 'does not reach its storage'}
_RESPONSES = ('slowdown', 'IOPS ratio')


class Search:
    """Looks at the state that a plan leaves.

    :param known: (h,) hosts of which enough is known
    :param reached: whether the plan has as many moves as it may have
    """

    def __init__(self, ahead: prospect.Prospect, room: occupancy.Occupancy, known: BoolArray,
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
        values = np.exp(assessor.exponents() * np.array([[1.0], [-1.0]]))
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
                   Against.STORAGE: ~storage.reachable(self._cluster, row),
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
