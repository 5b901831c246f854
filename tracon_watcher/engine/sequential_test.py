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

"""Sequential test of moves: whether a move, and moves of its kind, help."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from tracon_watcher.characteristics import FloatArray

HELPED = 'helped'
DID_NOT_HELP = 'did_not_help'
UNKNOWN = 'unknown'
VERDICTS = (HELPED, DID_NOT_HELP, UNKNOWN)

#: Share of the moves that must help for their kind to be worth it, q₀ ...
WORTHWHILE = 0.5
# ... the share that the test is fastest to tell from it, q₁, and 1 / α.
_POOR = 0.2
_ENOUGH = 20.0


def gain(before: FloatArray, after: FloatArray) -> float:
    """Return the gain of VMs together as a log response: Σ log(before / after).

    :param before: (n,) slowdowns, NaN where unknown
    :param after: (n,) likewise; a VM that is unknown on either side does not count
    :return: NaN when no VM is known
    """
    both = np.isfinite(before) & np.isfinite(after) & (before > 0) & (after > 0)
    if not both.any():
        return math.nan
    return float(np.log(before[both] / after[both]).sum())


def verdict(measured: float, cost: float) -> str:
    """Judge one move.

    :param measured: its gain, in log responses; NaN where unknown
    :param cost: what a move costs, in log responses
    """
    if math.isnan(measured):
        return UNKNOWN
    return HELPED if measured >= cost else DID_NOT_HELP


@dataclasses.dataclass(frozen=True)
class SuspensionRule:
    """For how long a kind is suspended.

    :param first: seconds of the first suspension; each further one is twice as long
    :param longest: seconds at most
    :param forgiven_after: measurements without a new suspension after which the next one counts
        as the first again
    """

    first: float = 86400.0
    longest: float = 30 * 86400.0
    forgiven_after: int = 30

    def duration(self, level: int) -> float:
        """Return the seconds of the suspension number ``level``, from 1 on."""
        return float(min(self.first * 2.0 ** min(level - 1, 64), self.longest))


@dataclasses.dataclass(frozen=True)
class Standing:
    """What is known of a kind of moves.

    :param evidence: that it does not help, M; at :data:`_ENOUGH` it is suspended
    :param measured: moves since it began, or was last suspended
    :param helped: of these
    :param level: how often it was suspended in a row
    :param suspended_until: seconds since the epoch; NaN: never
    :param suspended_at: likewise, when the last suspension began
    """

    evidence: float = 1.0
    measured: int = 0
    helped: int = 0
    level: int = 0
    suspended_until: float = math.nan
    suspended_at: float = math.nan

    def suspended(self, now: float) -> bool:
        """Say whether it is suspended now.

        :param now: seconds since the epoch. A clock that was put back does not prolong it: it
            counts as over when ``now`` lies before its beginning by more than its length
        """
        if math.isnan(self.suspended_until):
            return False
        length = self.suspended_until - self.suspended_at
        return self.suspended_at - length < now < self.suspended_until


def follow(standing: Standing, outcome: str, now: float,
           backoff: SuspensionRule = SuspensionRule()) -> Standing:
    """Return the standing of a kind after one more of its moves was judged.

    After a suspension it is on trial: it begins with the evidence √(1 / α), so that 4 moves in a
    row that do not help suspend it again. While suspended it is not judged; moves that were under
    way then count neither for nor against the trial.

    :param outcome: one of :data:`VERDICTS`
    :param now: seconds since the epoch
    """
    if outcome == UNKNOWN or standing.suspended(now):
        return standing
    helped = outcome == HELPED
    factor = _POOR / WORTHWHILE if helped else (1 - _POOR) / (1 - WORTHWHILE)
    evidence = max(standing.evidence, 1.0) * factor
    if evidence < _ENOUGH:
        measured = standing.measured + 1
        return dataclasses.replace(
            standing, evidence=evidence, measured=measured, helped=standing.helped + helped,
            level=0 if measured >= backoff.forgiven_after else standing.level)
    level = standing.level + 1
    return Standing(math.sqrt(_ENOUGH), 0, 0, level, now + backoff.duration(level), now)
