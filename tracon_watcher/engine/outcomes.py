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

"""Whether a move helped, and whether moves of its kind still do.

A move is *measured* some time after it ended: by how many exponents (log of the slowdown) the VMs
became faster for whose sake it was made, itself among them. It helped when that is at least what
a move costs. Whom a neighbour's change of heart made faster or slower in the meantime cannot be
told from this; over many moves it evens out, which is why no single one is ever judged by.

A kind of moves is suspended by a sequential test that may be looked at after each measurement,
as often as one likes. Let x be 1 for a move that helped and 0 for one that did not. As long as the
kind helps with probability :data:`WORTHWHILE` or more, whatever happened before, the factor

    L(x) = (1 − q₁) / (1 − q₀) for x = 0, q₁ / q₀ for x = 1, with q₁ < q₀ = WORTHWHILE,

is expected to be at most 1, so that the *evidence* M ← max(M, 1) · L(x) that it does not help
(Page's CUSUM of likelihood ratios; an e-detector in the sense of Shin, Ramdas and Rinaldo, 2023)
reaches 1 / α on average no sooner than after 1 / α measurements. That bound asks for no
independence. For independent moves, with the constants below, it is reached after 7 moves if none
helps, after 14 on average if one in five does, after 160 if every second does, and after thousands
if 70 % do. What is *unknown* is no evidence of anything.
"""

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
    """Return by how many exponents VMs became faster together: Σ log(before / after).

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

    :param measured: its gain, in exponents; NaN where unknown
    :param cost: what a move costs, in exponents
    """
    if math.isnan(measured):
        return UNKNOWN
    return HELPED if measured >= cost else DID_NOT_HELP


@dataclasses.dataclass(frozen=True)
class Backoff:
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
           backoff: Backoff = Backoff()) -> Standing:
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
