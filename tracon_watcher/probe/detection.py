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

"""Detection of contention from a sensor's readings and the baseline of its host type."""

from __future__ import annotations

import dataclasses
import enum
import math
import os
from typing import Mapping, Sequence

import numpy as np
from scipy import stats

from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher.probe import phases
from tracon_watcher.probe import readings

SCHEMA = 'tracon-probe-baselines/1'
_COMMAND = 'tracon probe baseline'
_FIELDS = ('host_type', 'phase', 'rate', 'seconds', 'amount', 'mean', 'half', 'deviation',
           'readings', 'at')


@dataclasses.dataclass(frozen=True)
class SensorBaseline:
    """Of one type of host, one phase and one setting.

    :param mean: seconds
    :param half: half of the 95 % confidence interval of the mean, seconds
    :param deviation: standard deviation between readings, seconds; 0 where it is not known
    :param readings: how many there were
    :param at: seconds since the epoch, of the last one
    """

    host_type: str
    phase: str
    setting: phases.Setting
    mean: float
    half: float
    deviation: float
    readings: int
    at: float

    @property
    def reach(self) -> float:
        """Return by how much the next reading may be off the mean, seconds."""
        if self.deviation == 0:
            return self.half
        quantile = float(stats.t.ppf(0.5 + readings.CONFIDENCE / 2, self.readings - 1))
        return quantile * self.deviation * math.sqrt(1 + 1 / self.readings)


#: Baselines by type of host and phase.
Baselines = Mapping[tuple[str, str], SensorBaseline]


def learn(host_type: str, found: Sequence[readings.Reading]) -> SensorBaseline:
    """Return the baseline that readings of one phase and setting make.

    :raises tracon_watcher.errors.NotEnoughData: with too few of them
    """
    if len(found) < phases.LEAST_READINGS:
        raise errors.NotEnoughData('a baseline', len(found), phases.LEAST_READINGS)
    (phase, setting), = {(one.phase, one.setting) for one in found}
    means = [one.mean for one in found]
    mean, half = readings.interval(means)
    return SensorBaseline(host_type, phase, setting, mean, half, float(np.std(means, ddof=1)),
                          len(found), max(one.at for one in found))


def load(path: str | os.PathLike[str]) -> dict[tuple[str, str], SensorBaseline]:
    """Read baselines from a JSON file.

    :raises tracon_watcher.errors.InvalidDocument: naming file, field and value
    """
    fields = document.read(path, _COMMAND)
    fields.only(('schema', 'baselines', 'checksum'))
    fields.string('schema', (SCHEMA,))
    found: dict[tuple[str, str], SensorBaseline] = {}
    for one in fields.sections('baselines'):
        baseline = _read(one)
        key = baseline.host_type, baseline.phase
        if key in found:
            one.refuse('phase', baseline.phase, f'{baseline.host_type} has two; remove one')
        found[key] = baseline
    fields.check_seal(f'run `{_COMMAND}` again')
    return found


def _read(fields: document.Fields) -> SensorBaseline:
    fields.only(_FIELDS)
    phase = phases.PHASES[fields.string('phase', tuple(phases.PHASES))]
    setting = phases.Setting(fields.number('rate'), fields.number('seconds'),
                             int(fields.number('amount')))
    try:
        setting.check(phase)
    except errors.InvalidOption as error:
        fields.refuse('rate', fields.raw('rate'), str(error))
    count = int(fields.number('readings', minimum=1))
    deviation = fields.number('deviation', minimum=0.0)
    if deviation and count < 2:
        fields.refuse('readings', count, 'a deviation needs two at least')
    return SensorBaseline(fields.string('host_type'), phase.name, setting,
                          fields.number('mean', minimum=1e-9), fields.number('half', minimum=0.0),
                          deviation, count, fields.number('at'))


def save(found: Baselines, path: str | os.PathLike[str]) -> None:
    """Write baselines, atomically."""
    document.write(document.sealed({'schema': SCHEMA, 'baselines': [
        {'host_type': one.host_type, 'phase': one.phase, **dataclasses.asdict(one.setting),
         **{name: getattr(one, name) for name in _FIELDS[5:]}}
        for _, one in sorted(found.items())]}), path)


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
class RelativeReading:
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


def compare(reading: readings.Reading, baseline: SensorBaseline) -> RelativeReading:
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


def ratio(reading: readings.Reading, baseline: SensorBaseline) -> RelativeReading:
    """Return a reading over its baseline, with the interval that both of theirs make."""
    half = 0.0 if math.isnan(reading.half) else reading.half
    below, above = baseline.mean - baseline.reach, baseline.mean + baseline.reach
    return RelativeReading(reading.mean / baseline.mean, max(reading.mean - half, 0.0) / above,
                           (reading.mean + half) / below if below > 0 else math.inf)


class Detector:
    """The state of one phase of one sensor."""

    def __init__(self) -> None:
        self.state = State.UNKNOWN
        #: Why it is unknown.
        self.reason = 'no reading yet'
        #: The last one; None without.
        self.felt: RelativeReading | None = None
        self._flagged = False
        self._alike = 0

    def update(self, felt: RelativeReading) -> State:
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
