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

"""Cooldown: how long a VM stays on its host after a migration or a failed one."""

from __future__ import annotations

import dataclasses

#: Seconds after the first migration.
FIRST = 3600.0
#: Seconds that it grows to, where it is not longer to begin with.
LONGEST = 21600.0


def length(moves: int, first: float = FIRST, longest: float = LONGEST) -> float:
    """Return the seconds that a VM stays: each further migration doubles them.

    :param moves: how many migrations there were of late, those that failed included
    :param first: seconds after the first one
    """
    # The exponent is bounded, since no number may overflow whatever a cloud does.
    return max(first, min(first * 2.0 ** min(moves - 1, 64), longest))


@dataclasses.dataclass(frozen=True)
class Cooldown:
    """A VM stays where it is.

    :param moves: how many there were in a row
    :param moved_at: of the last, seconds since the epoch
    :param until: likewise
    """

    vm: str
    moves: int
    moved_at: float
    until: float

    def remaining(self, now: float) -> float:
        """Return the seconds that are left, 0 if none.

        A clock that was put back does not prolong it: it never lasts longer than it did at first.
        """
        return max(min(self.until - now, self.until - self.moved_at), 0.0)


@dataclasses.dataclass(frozen=True)
class Rule:
    """How cooldowns grow.

    :param first: seconds after the first move; each further one in a row doubles it
    :param longest: seconds at most, and for how long a VM must have been left alone after a
        cooldown for its next move to count as the first again
    :param same: reports of a move that lie no more seconds apart are of one and the same, which
        several tell of: the planner, Nova's notifications, the list of migrations
    """

    first: float = FIRST
    longest: float = LONGEST
    same: float = 300.0

    def after(self, before: Cooldown | None, vm: str, at: float) -> Cooldown:
        """Return the cooldown of a VM that was moved.

        :param before: the one that was known, None for none
        :param at: when it was moved, seconds since the epoch
        """
        if before is not None and at <= before.moved_at + self.same:
            return before
        moves = 1
        if before is not None and at < before.until + self.longest:
            moves = before.moves + 1
        return Cooldown(vm, moves, at, at + length(moves, self.first, self.longest))
