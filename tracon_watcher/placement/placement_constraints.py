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

"""Constraints on where a VM may go: room, server groups, zones, closed hosts."""

from __future__ import annotations

import dataclasses
import enum
from typing import Collection, Mapping, NamedTuple

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.placement import cluster as cluster_module

#: Free room or need: vCPUs, MiB of memory, GiB of local disk.
Room = tuple[float, float, float]


class Against(enum.Enum):
    """What may stand against a move."""

    #: Of the VM itself: it must stay, or moved a short time ago, or moves in this plan.
    STAYS = 'stays'
    COOLDOWN = 'cooldown'
    MOVES = 'moves'
    #: Of hosts: they take no VM, or not this one.
    CLOSED = 'closed'
    ROOM = 'room'
    ZONE = 'zone'
    STORAGE = 'storage'
    #: Of either: a server group, something that is unknown.
    GROUP = 'group'
    UNKNOWN = 'unknown'
    #: Of the move: a limit would be breached, or it would bring too little.
    LIMIT = 'limit'
    GAIN = 'gain'
    #: Nothing but the number of moves that a plan may have, or the hour.
    CAP = 'cap'
    BLACKOUT = 'blackout'


class Obstacle(NamedTuple):
    """What stands against a move, and in words."""

    against: Against
    why: str


class GroupPolicy(enum.Enum):
    """What a server group asks of its members' hosts."""

    AFFINITY = 'affinity'
    ANTI_AFFINITY = 'anti-affinity'
    SOFT_AFFINITY = 'soft-affinity'
    SOFT_ANTI_AFFINITY = 'soft-anti-affinity'


@dataclasses.dataclass(frozen=True)
class Group:
    """A server group.

    :param members: uuids; those that are not in the cluster count nowhere
    :param maximum_per_host: members that anti-affinity allows on one host
    :param outside: members that run on hosts outside the cluster
    """

    name: str
    policy: GroupPolicy
    members: frozenset[str]
    maximum_per_host: int = 1
    outside: int = 0


@dataclasses.dataclass(frozen=True)
class Constraints:
    """All that an administrator, a tenant or the hardware forbids.

    :param immovable: uuids of VMs that must stay, with the reason
    :param closed: names of hosts that take no VM, with the reason; VMs may leave them
    :param needs: of each VM by uuid; None: room is not considered. A VM that is missing stays
    :param free: of each host by name; None: room is not considered. A host that is missing takes
        no VM
    :param zones: availability zone of hosts by name
    :param bound_to_zone: by uuid, the availability zone that a VM must not leave
    :param cooldown_until: by uuid, seconds since the epoch before which a VM must not move again
    :param largest: the most that a single VM may need of each host by name, Placement's max_unit;
        None: not considered
    :param removable: uuids of background VMs that a plan may remove from their host
    :param full: names of hosts that are closed for want of room alone
    """

    immovable: Mapping[str, str] = dataclasses.field(default_factory=dict)
    closed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    needs: Mapping[str, Room] | None = None
    free: Mapping[str, Room] | None = None
    groups: tuple[Group, ...] = ()
    zones: Mapping[str, str] = dataclasses.field(default_factory=dict)
    bound_to_zone: Mapping[str, str] = dataclasses.field(default_factory=dict)
    cooldown_until: Mapping[str, float] = dataclasses.field(default_factory=dict)
    largest: Mapping[str, Room] | None = None
    removable: frozenset[str] = frozenset()
    full: frozenset[str] = frozenset()


_HARD = (GroupPolicy.AFFINITY, GroupPolicy.ANTI_AFFINITY)


class Occupancy:
    """Who is where and what room is left; changes with every move of a plan.

    :param cluster: the state that the plan starts from
    :param now: seconds since the epoch, for cooldowns
    """

    def __init__(self, cluster: cluster_module.ClusterState, rules: Constraints,
                 now: float) -> None:
        self._hosts = cluster.host_index
        self._host = dict(zip(cluster.uuids, cluster.host.tolist()))
        self._rules = rules
        self._now = now
        self._moved: set[str] = set()
        count = len(cluster.hosts)
        self._open = np.array([name not in rules.closed for name in cluster.hosts], dtype=bool)
        self._free: FloatArray | None = None
        if rules.free is not None:
            self._free = np.array([rules.free.get(name, (-np.inf,) * 3)
                                   for name in cluster.hosts], dtype=np.float64).reshape(-1, 3)
        self._largest: FloatArray | None = None
        if rules.largest is not None:
            self._largest = np.array([rules.largest.get(name, (-np.inf,) * 3)
                                      for name in cluster.hosts], dtype=np.float64).reshape(-1, 3)
        self._zone = np.array([rules.zones.get(name, '') for name in cluster.hosts], dtype=object)
        self._groups: dict[str, list[int]] = {}
        self._members: list[IntArray] = []
        for index, group in enumerate(rules.groups):
            members = np.zeros(count, dtype=np.intp)
            for uuid in sorted(group.members):
                if uuid in self._host:
                    members[self._host[uuid]] += 1
                    self._groups.setdefault(uuid, []).append(index)
            self._members.append(members)

    def removable(self, uuid: str) -> bool:
        """Say whether a plan may remove a VM from its host: nothing that keeps it there may be."""
        return uuid in self._rules.removable and self.obstacle(uuid) is None

    def obstacle(self, uuid: str) -> Obstacle | None:
        """Return why a VM cannot move anywhere, or None."""
        if uuid in self._rules.immovable:
            return Obstacle(Against.STAYS, self._rules.immovable[uuid])
        until = self._rules.cooldown_until.get(uuid, -np.inf)
        if until > self._now:
            return Obstacle(Against.COOLDOWN, 'was migrated a short time ago, cools down for '
                            f'{until - self._now:.0f} s more')
        if uuid in self._moved:
            return Obstacle(Against.MOVES, 'is moved by this plan already')
        if self._rules.needs is not None and uuid not in self._rules.needs:
            return Obstacle(Against.UNKNOWN, 'its flavor is not known')
        for index in self._groups.get(uuid, ()):
            group = self._rules.groups[index]
            if group.policy is GroupPolicy.AFFINITY and (
                    group.outside or self._members[index][self._host[uuid]] > 1):
                return Obstacle(Against.GROUP, f'would leave its affinity group {group.name}')
        return None

    def closed(self, host: str) -> str:
        """Return why a host takes no VM."""
        return self._rules.closed[host]

    def destinations(self, uuid: str) -> tuple[BoolArray, BoolArray]:
        """Return, (h,) each, where a VM may go, and where of this a soft group would suffer."""
        allowed = ~np.logical_or.reduce(list(self.against(uuid).values()))
        allowed[self._host[uuid]] = False
        return allowed, self._worse(uuid) & allowed

    def against(self, uuid: str) -> dict[Against, BoolArray]:
        """Return which hosts a VM may not go to, (h,) each, by what stands against it."""
        found = {Against.CLOSED: ~self._open}
        if self._free is not None and self._rules.needs is not None:
            need = np.array(self._rules.needs[uuid])
            full = self._free < need
            if self._largest is not None:
                full |= self._largest < need
            found[Against.ROOM] = np.asarray(full.any(axis=1))
        zone = self._rules.bound_to_zone.get(uuid)
        if zone:
            found[Against.ZONE] = np.asarray(self._zone != zone, dtype=bool)
        broken = np.zeros(len(self._open), dtype=bool)
        for index in self._groups.get(uuid, ()):
            group, others = self._rules.groups[index], self._others(index, uuid)
            if group.policy is GroupPolicy.AFFINITY:
                broken |= others != others.sum()
            elif group.policy is GroupPolicy.ANTI_AFFINITY:
                broken |= others >= group.maximum_per_host
        return {**found, Against.GROUP: broken}

    def _worse(self, uuid: str) -> BoolArray:
        source = self._host[uuid]
        worse = np.zeros(len(self._open), dtype=bool)
        for index in self._groups.get(uuid, ()):
            policy, others = self._rules.groups[index].policy, self._others(index, uuid)
            if policy is GroupPolicy.SOFT_AFFINITY:
                worse |= others < others[source]
            elif policy is GroupPolicy.SOFT_ANTI_AFFINITY:
                worse |= others > others[source]
        return worse

    def _others(self, group: int, uuid: str) -> IntArray:
        """Return how many other members of a VM's group each host has, (h,)."""
        others = self._members[group].copy()
        others[self._host[uuid]] -= 1
        return others

    def move(self, uuid: str, destination: int) -> None:
        """Take note of a move."""
        source = self._host[uuid]
        if self._free is not None and self._rules.needs is not None:
            need = np.array(self._rules.needs[uuid])
            self._free[source] += need
            self._free[destination] -= need
        for index in self._groups.get(uuid, ()):
            self._members[index][source] -= 1
            self._members[index][destination] += 1
        self._host[uuid] = destination
        self._moved.add(uuid)

    def open_to(self, need: Room, zone: str | None) -> IntArray:
        """Return the indices of the hosts that a newcomer may come to once they have room."""
        if self._free is None or self._rules.needs is None:
            return np.empty(0, dtype=np.intp)
        found = self._open | np.array([name in self._rules.full for name in self._hosts],
                                      dtype=bool)
        if self._largest is not None:
            found &= (self._largest >= np.array(need)).all(axis=1)
        if zone:
            found &= np.asarray(self._zone == zone, dtype=bool)
        return np.flatnonzero(found)

    def size(self, uuid: str) -> Room:
        """Return what a VM needs."""
        return (self._rules.needs or {})[uuid]

    def has_room(self, host: int, need: Room, gone: Collection[str]) -> bool:
        """Say whether a newcomer has room on a host once some of its VMs are gone."""
        assert self._free is not None
        return all(free + sum(left) >= wanted for free, wanted, *left in zip(
            self._free[host].tolist(), need, *map(self.size, gone)) if wanted)

    def remove(self, uuid: str) -> None:
        """Take note that a VM leaves its host, and comes to no other one."""
        if self._free is not None and self._rules.needs is not None:
            self._free[self._host[uuid]] += np.array(self._rules.needs[uuid])

    def add(self, host: int, need: Room) -> None:
        """Take note that a newcomer comes to a host."""
        assert self._free is not None
        self._free[host] -= np.array(need)

    def groups_of(self, uuid: str) -> frozenset[int]:
        """Return the indices of the hard server groups of a VM."""
        return frozenset(index for index in self._groups.get(uuid, ())
                         if self._rules.groups[index].policy in _HARD)
