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

"""Contention that probe VMs feel, as telemetry has it."""

from __future__ import annotations

import dataclasses
import logging
from typing import Mapping, Sequence

import numpy as np

from tracon_watcher.telemetry import meters
from tracon_watcher.telemetry import readings

LOG = logging.getLogger(__name__)

QUIET, CONTENDED, UNKNOWN = 'quiet', 'contended', 'unknown'
# Seconds by which a reading may be of the future.
_AHEAD = 60.0


@dataclasses.dataclass(frozen=True)
class Felt:
    """What a sensor has felt in one phase.

    :param state: quiet, contended or unknown
    :param at: seconds since the epoch, of the last reading; None without
    :param ratio: time of its work over that of its baseline; None where unknown
    :param low: lower end of the interval of ``ratio`` where contended, 1 where quiet
    """

    state: str
    at: float | None = None
    ratio: float | None = None
    low: float | None = None


#: Of a host that no sensor tells of.
SILENT: Mapping[str, Felt] = {phase: Felt(UNKNOWN) for phase in meters.PHASES}


class Probes:
    """Keeps the last reading of each host's sensor.

    :param maximum_age: seconds after which a reading says nothing any more
    """

    def __init__(self, reader: readings.Reader, maximum_age: float) -> None:
        self._reader = reader
        self._maximum_age = maximum_age
        self._last: dict[str, dict[str, Felt]] = {}
        self._failing = False

    def collect(self, hosts: Sequence[str], now: float) -> Mapping[str, Mapping[str, Felt]]:
        """Return what the sensors of hosts have felt; one that is silent is left out.

        Where telemetry does not answer, readings that it told before count until they are too old.

        :param now: seconds since the epoch
        """
        try:
            found = self._reader.read(now - self._maximum_age, now + _AHEAD,
                                      [one.name for one in meters.PROBE_METERS])
        except readings.TelemetryUnavailable as error:
            log_it = LOG.debug if self._failing else LOG.warning
            log_it('No readings of probes until telemetry answers: %s', error)
            self._failing = True
        else:
            self._failing = False
            self._take(found)
        wanted = set(hosts)
        self._last = {host: kept for host, of in self._last.items()
                      if host in wanted and (kept := self._fresh(of, now))}
        return {host: {**SILENT, **of} for host, of in self._last.items()}

    def _take(self, found: readings.Readings) -> None:
        # The latest sample of a host comes last.
        for index in np.argsort(found.at, kind='stable'):
            last = self._last.setdefault(found.resources[found.row[index]], {})
            at = float(found.at[index])
            pairs = found.values[index].reshape(-1, 2)
            for phase, (ratio, low) in zip(meters.PHASES, pairs.tolist()):
                # NaN is not greater than anything; a sensor without a state has no lower end.
                if ratio > 0 and (phase not in last or (last[phase].at or 0.0) <= at):
                    state = (QUIET if low == 1.0 else CONTENDED if low > 1.0 else UNKNOWN)
                    last[phase] = Felt(state, at, ratio, None if state == UNKNOWN else low)

    def _fresh(self, of: Mapping[str, Felt], now: float) -> dict[str, Felt]:
        return {phase: felt for phase, felt in of.items()
                if felt.at is not None and now - self._maximum_age <= felt.at <= now + _AHEAD}
