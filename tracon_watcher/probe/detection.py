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

"""Detection: whether a sensor feels contention, by readings beside its baseline.

A reading is flagged when its interval lies beyond that of the baseline and the two do not overlap
(Mukherjee, section 4.3.1). One flagged reading may be a burst, and one that is not flagged a gap;
so two in a row make contention, and two in a row end it. Without a reading there is no knowing:
the state is unknown at once, and after that it takes two readings again.
"""

from __future__ import annotations

import dataclasses
import enum
import math

from tracon_watcher.probe import baselines
from tracon_watcher.probe import readings

#: Readings that have to agree.
HYSTERESIS = 2
# A sensor is not faster than its baseline by more than this, unless that is another host's.
_FASTER = 0.8
# Intervals that touch overlap.
_ROUNDING = 1e-9


class State(enum.Enum):
    """What is known of one phase of one sensor."""

    QUIET = 'quiet'
    CONTENDED = 'contended'
    UNKNOWN = 'unknown'


@dataclasses.dataclass(frozen=True)
class Felt:
    """A reading beside its baseline, as a ratio: 1 is undisturbed.

    :param ratio: mean of the reading over the mean of the baseline
    :param low: lower end of its interval, from both intervals; above 1 where they do not overlap
    :param high: upper end
    """

    ratio: float
    low: float
    high: float

    @property
    def flagged(self) -> bool:
        """Say whether the intervals do not overlap."""
        return self.low > 1.0 + _ROUNDING


def compare(reading: readings.Reading, baseline: baselines.Baseline) -> Felt:
    """Return what a sensor felt.

    :raises tracon_watcher.probe.readings.NoReading: where the two do not belong together
    """
    if reading.setting != baseline.setting:
        raise readings.NoReading(
            'baseline', f'the {reading.phase} phase was read with {reading.setting}, and the '
                        f'baseline of {baseline.host_type} is for {baseline.setting}')
    felt = ratio(reading, baseline)
    if felt.high < 1.0 and felt.ratio < _FASTER:
        raise readings.NoReading(
            'baseline', f'the {reading.phase} phase took {felt.ratio:.0%} of the baseline of '
                        f'{baseline.host_type}: this host is of another type, or has changed; '
                        f'run `tracon probe baseline`')
    return felt


def ratio(reading: readings.Reading, baseline: baselines.Baseline) -> Felt:
    """Return a reading over its baseline, with the interval that both of theirs make."""
    half = 0.0 if math.isnan(reading.half) else reading.half
    below, above = baseline.mean - baseline.reach, baseline.mean + baseline.reach
    return Felt(reading.mean / baseline.mean, max(reading.mean - half, 0.0) / above,
                (reading.mean + half) / below if below > 0 else math.inf)


class Detector:
    """The state of one phase of one sensor."""

    def __init__(self) -> None:
        self.state = State.UNKNOWN
        #: Why it is unknown.
        self.reason = 'no reading yet'
        #: The last one; None without.
        self.felt: Felt | None = None
        self._flagged = False
        self._alike = 0

    def update(self, felt: Felt) -> State:
        """Take a reading into account."""
        self._alike = self._alike + 1 if felt.flagged == self._flagged else 1
        self._flagged, self.felt = felt.flagged, felt
        if self._alike >= HYSTERESIS:
            self.state = State.CONTENDED if felt.flagged else State.QUIET
            self.reason = ''
        elif self.state is State.UNKNOWN:
            self.reason = 'one reading so far, and two are needed'
        return self.state

    def lose(self, reason: str) -> State:
        """Forget what was known: a sensor that is silent is not quiet."""
        self.state, self.reason, self.felt, self._alike = State.UNKNOWN, reason, None, 0
        return self.state
