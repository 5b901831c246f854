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

"""What forbids a VM to move, as plain data."""

from __future__ import annotations

import dataclasses
import enum
from typing import Mapping, NamedTuple

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


class Policy(enum.Enum):
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
    :param elsewhere: members that run on hosts outside the cluster
    """

    name: str
    policy: Policy
    members: frozenset[str]
    maximum_per_host: int = 1
    elsewhere: int = 0


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
