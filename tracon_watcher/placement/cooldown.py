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

"""How long a VM stays where it is after a migration, or after one that failed."""

from __future__ import annotations

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
