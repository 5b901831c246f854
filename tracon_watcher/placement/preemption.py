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

"""Preemption: the fewest background VMs without which a request that found no host fits."""

from __future__ import annotations

import dataclasses
from typing import Callable, Sequence

from tracon_watcher.characteristics import BoolArray
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement import plan_state

#: Hosts that are judged exactly for a request.
_HOSTS = 50


@dataclasses.dataclass(frozen=True)
class Request:
    """A VM of the foreground that Nova found no host for.

    :param uuid: of the VM, which is on no host
    :param need: vCPUs, MiB of memory and GiB of local disk
    :param profile: its expected demand
    :param zone: availability zone it was requested for; None for any
    """

    uuid: str
    need: placement_constraints.Room
    profile: newcomer_profiles.Profile
    limits: limits_module.Limits = limits_module.NONE
    zone: str | None = None


class Preemption:
    """Serves requests one after the other; changes the state that a plan leaves.

    :param ahead: state of the cluster after all moves
    :param room: which of its room is free
    :param known: (h,) hosts of which enough is known
    """

    def __init__(self, ahead: plan_state.PlanState, room: placement_constraints.Occupancy,
                 known: BoolArray) -> None:
        self._ahead = ahead
        self._room = room
        self._known = known
        self._arrived: dict[int, list[Request]] = {}

    def serve(self, request: Request) -> tuple[int, frozenset[str]] | None:
        """Remove the fewest background VMs of one host so that a request fits there.

        It fits where its vCPUs, memory and disk do, and neither it nor a resident would be in
        breach. Of a host of which too little is known, only the room counts, and no VM is removed.

        :returns: host index and the VMs removed, none if it fits already; None if it fits nowhere
        """
        options = []
        for host in self._room.open_to(request.need, request.zone).tolist():
            some = self._removable(host)
            gone = _least(some, lambda gone: self._room.has_room(host, request.need, gone))
            if gone is not None:
                size = tuple(map(sum, zip(*map(self._room.size, gone))))
                options.append((len(gone), size, self._ahead.cluster.hosts[host], host, gone,
                                some))
        best: tuple[int, frozenset[str]] | None = None
        for count, _size, _name, host, gone, some in sorted(
                options, key=lambda one: one[:3])[:_HOSTS]:
            if best is not None and count >= len(best[1]):
                break
            found = gone if self._admits(host, request, gone) else _least(
                some, lambda gone: self._room.has_room(host, request.need, gone)
                and self._admits(host, request, gone))
            if found is not None and (best is None or len(found) < len(best[1])):
                best = host, found
        if best is not None:
            host, gone = best
            self._ahead.remove(host, gone)
            for uuid in sorted(gone):
                self._room.remove(uuid)
            self._room.add(host, request.need)
            self._arrived.setdefault(host, []).append(request)
        return best

    def _removable(self, host: int) -> list[str]:
        """Return the background VMs of a host that may be removed, the smallest first."""
        if not self._known[host]:
            return []
        state = self._ahead.of(host)[0].cluster
        place = state.host_index[self._ahead.cluster.hosts[host]]
        rows = range(state.first[place], state.first[place + 1])
        return sorted((state.uuids[row] for row in rows
                       if state.background[row] and self._room.removable(state.uuids[row])),
                      key=lambda uuid: (self._room.size(uuid), uuid))

    def _admits(self, host: int, request: Request, gone: frozenset[str]) -> bool:
        return not self._known[host] or self._ahead.admits(
            host, gone, request.profile, request.limits,
            [(one.uuid, one.profile, one.limits) for one in self._arrived.get(host, ())
             if one.profile.known])


def _least(some: list[str], enough: Callable[[frozenset[str]], bool]) -> frozenset[str] | None:
    """Return the VMs whose removal is enough; None if that of all is not.

    These are none, else the first one that is enough by itself, else the minimal ones.

    :param some: the smallest first
    """
    for few in (frozenset[str](), *(frozenset((uuid,)) for uuid in some)):
        if enough(few):
            return few
    return minimal(some, enough) if enough(frozenset(some)) else None


def minimal(some: Sequence[str], enough: Callable[[frozenset[str]], bool]) -> frozenset[str]:
    """Return those of some VMs that are left when needless ones are left out, one by one.

    :param some: VMs that are enough together, in the order in which they are left out
    """
    gone = frozenset(some)
    for uuid in some:
        if enough(gone - {uuid}):
            gone -= {uuid}
    return gone
