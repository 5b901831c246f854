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

"""Where each VM may go while a plan is being made: room, server groups, zones, closed hosts."""

from __future__ import annotations

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import constraints as constraint
from tracon_watcher.placement.constraints import Policy

_HARD = (Policy.AFFINITY, Policy.ANTI_AFFINITY)


class Occupancy:
    """Who is where and what room is left; changes with every move of a plan.

    :param cluster: the state that the plan starts from
    :param now: seconds since the epoch, for cooldowns
    """

    def __init__(self, cluster: cluster_module.ClusterState, rules: constraint.Constraints,
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

    def obstacle(self, uuid: str) -> str | None:
        """Return why a VM cannot move anywhere, or None."""
        if uuid in self._rules.immovable:
            return self._rules.immovable[uuid]
        until = self._rules.cooldown_until.get(uuid, -np.inf)
        if until > self._now:
            return f'was migrated a short time ago, cools down for {until - self._now:.0f} s more'
        if uuid in self._moved:
            return 'is moved by this plan already'
        if self._rules.needs is not None and uuid not in self._rules.needs:
            return 'its flavor is not known'
        for index in self._groups.get(uuid, ()):
            group = self._rules.groups[index]
            if group.policy is Policy.AFFINITY and (
                    group.elsewhere or self._members[index][self._host[uuid]] > 1):
                return f'would leave its affinity group {group.name}'
        return None

    def destinations(self, uuid: str) -> tuple[BoolArray, BoolArray]:
        """Return, (h,) each, where a VM may go, and where of this a soft group would suffer."""
        source = self._host[uuid]
        allowed = self._open.copy()
        allowed[source] = False
        if self._free is not None and self._rules.needs is not None:
            allowed &= (self._free >= np.array(self._rules.needs[uuid])).all(axis=1)
            if self._largest is not None:
                allowed &= (self._largest >= np.array(self._rules.needs[uuid])).all(axis=1)
        zone = self._rules.bound_to_zone.get(uuid)
        if zone:
            allowed &= np.asarray(self._zone == zone, dtype=bool)
        worse = np.zeros(len(allowed), dtype=bool)
        for index in self._groups.get(uuid, ()):
            group = self._rules.groups[index]
            others = self._members[index].copy()
            others[source] -= 1
            if group.policy is Policy.AFFINITY:
                allowed &= others == others.sum()
            elif group.policy is Policy.ANTI_AFFINITY:
                allowed &= others < group.maximum_per_host
            elif group.policy is Policy.SOFT_AFFINITY:
                worse |= others < others[source]
            else:
                worse |= others > others[source]
        return allowed, worse & allowed

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

    def groups_of(self, uuid: str) -> frozenset[int]:
        """Return the indices of the hard server groups of a VM."""
        return frozenset(index for index in self._groups.get(uuid, ())
                         if self._rules.groups[index].policy in _HARD)
