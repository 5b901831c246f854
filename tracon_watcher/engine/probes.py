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

"""Contention that probe VMs feel, as telemetry has it, and what it means for a host's VMs.

The law of queueing says by how much a host's own VMs slow a sensor down. What it feels beyond that
is contention that no counter shows. With ρ the ratio of a reading to its baseline and p what the
law predicts, f = ln ρ − p counts when the lower end of ρ lies above the upper end of p. A sensor
does nothing but what the contention is for; how much of a VM's work is so is not known, and any
part between none and all is as likely. So each VM of the host, and each newcomer, is slower by a
factor with the logarithm f / 2 ± √(f² / 12 + (σ² + τ²) / 4), where σ and τ are the standard
deviations of ln ρ and p.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from typing import Iterator, Mapping, Sequence

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import queues
from tracon_watcher.telemetry import meters
from tracon_watcher.telemetry import samples

LOG = logging.getLogger(__name__)

QUIET, CONTENDED, UNKNOWN = 'quiet', 'contended', 'unknown'
# Of two-sided 95 % intervals.
_QUANTILE, _UPPER = 1.96, 0.975
# What a sensor does while it works: it computes, or waits for its disk.
_SENSORS = {'connection': newcomer_profiles.own(np.array([0.0, 0.0, 0.05, 0.01])),
            'memory': newcomer_profiles.own(np.array([0.0, 0.0, 0.05, 0.01])),
            'storage': newcomer_profiles.own(np.array([10.0, 10.0, 0.01, 0.02]))}
# A contention that changes by less is not told again.
_DIGITS = 2


@dataclasses.dataclass(frozen=True)
class RelativeReading:
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
SILENT: Mapping[str,
                RelativeReading] = {phase: RelativeReading(UNKNOWN) for phase in meters.PHASES}


class Probes:
    """Keeps the last reading of each host's sensor.

    :param maximum_age: seconds after which a reading says nothing any more
    """

    def __init__(self, reader: samples.Reader, maximum_age: float) -> None:
        self._reader = reader
        self._maximum_age = maximum_age
        #: What is not as it should be after the last reading.
        self.troubles: tuple[str, ...] = ()
        self._last: dict[str, dict[str, RelativeReading]] = {}
        self._failing = False
        self._heard_at: float | None = None

    def collect(self, hosts: Sequence[str], now: float, skews: Mapping[str, float] = {}
                ) -> Mapping[str, Mapping[str, RelativeReading]]:
        """Return what the sensors of hosts have felt; one that is silent is left out.

        Where telemetry does not answer, readings that it told before count until they are too old.

        :param now: seconds since the epoch
        :param skews: by host, seconds by which its clock is ahead
        """
        behind = max(0.0, -min(skews.values(), default=0.0))
        try:
            found = self._reader.read(now - self._maximum_age - behind,
                                      now + max(assessment.AHEAD, self._reader.ahead),
                                      [one.name for one in meters.PROBE_METERS])
        except samples.TelemetryUnavailable as error:
            log_it = LOG.debug if self._failing else LOG.warning
            log_it('No readings of probes until telemetry answers: %s', error)
            self._failing = True
        else:
            self._failing = False
            self._take(found, now, skews)
            self.troubles = tuple(self._look(found, hosts, now))
        wanted = set(hosts)
        self._last = {host: kept for host, of in self._last.items()
                      if host in wanted and (kept := self._fresh(of, now))}
        return {host: {**SILENT, **of} for host, of in self._last.items()}

    def _look(self, found: samples.Readings, hosts: Sequence[str], now: float) -> Iterator[str]:
        """Yield that no sensor is heard of, or one of a host that there is not."""
        strange = set(found.resources).difference(hosts)
        if strange:
            yield (f'a sensor tells of host {min(strange)}, and Nova lists no compute service of '
                   f'that name (but {min(hosts, default="none")}): it counts nowhere; deploy '
                   'sensors by the names that "openstack compute service list" shows')
        if self._heard_at is None or found.resources or now < self._heard_at:
            self._heard_at = now
        if now - self._heard_at > self._maximum_age:
            yield ('[engine] probes is on, and no sensor has been heard of for more than '
                   f'{self._maximum_age:g} s: {found.asked or "meters of probes were asked for"}: '
                   'see whether tracon-probe runs and Ceilometer polls it, or set the option to '
                   'false')

    def _take(self, found: samples.Readings, now: float, skews: Mapping[str, float]) -> None:
        # The latest sample of a host comes last.
        for index in np.argsort(found.at, kind='stable'):
            host = found.resources[found.row[index]]
            at = float(found.at[index]) - skews.get(host, 0.0)
            if at > now + assessment.AHEAD:
                continue
            last = self._last.setdefault(host, {})
            pairs = found.values[index].reshape(-1, 2)
            for phase, (ratio, low) in zip(meters.PHASES, pairs.tolist()):
                # NaN is not greater than anything; a sensor without a state has no lower end.
                if 0 < ratio < np.inf and low != np.inf and (
                        phase not in last or (last[phase].at or 0.0) <= at):
                    state = (QUIET if low == 1.0 else CONTENDED if low > 1.0 else UNKNOWN)
                    last[phase] = RelativeReading(state, at, ratio,
                                                  None if state == UNKNOWN else low)

    def _fresh(self, of: Mapping[str, RelativeReading], now: float) -> dict[str, RelativeReading]:
        return {phase: felt for phase, felt in of.items() if felt.at is not None
                and now - self._maximum_age <= felt.at <= now + assessment.AHEAD}


def contention(felt: Mapping[str, Mapping[str, RelativeReading]], assessor: assessment.Assessor
               ) -> dict[str, tuple[float, ...]]:
    """Return by host what is felt beyond what its own VMs explain.

    :param assessor: what is known of these hosts; of one of which too little is known, nothing is
        said
    :returns: as :attr:`tracon_watcher.placement.cluster.ClusterState.contention` has it
    """
    law = assessor.law
    place = {assessor.cluster.hosts[host]: index for index, host in enumerate(law.hosts)}
    predicted: dict[str, tuple[FloatArray, FloatArray]] = {}
    found: dict[str, tuple[float, ...]] = {}
    for host, phases in felt.items():
        most = (0.0, 0.0)
        storage = (0.0, 0.0)
        for phase, one in phases.items():
            if one.state != CONTENDED or one.ratio is None or one.low is None \
                    or host not in place:
                continue
            if phase not in predicted:
                predicted[phase] = _predicted(law, assessor.cluster.felt[law.hosts], phase)
            mean, upper = (float(values[place[host]]) for values in predicted[phase])
            beyond = math.log(one.ratio) - mean
            if math.log(one.low) <= upper or beyond <= 0.0:
                continue
            spread = math.hypot(math.log(one.ratio / one.low), upper - mean) / _QUANTILE
            share = beyond / 2, math.hypot(beyond / math.sqrt(12), spread / 2)
            most = max(most, share)
            if phase == 'storage':
                storage = share
        if most[0]:
            found[host] = tuple(round(value, _DIGITS) for value in (*most, *storage))
    return found


def _predicted(law: queues.Queues, told: FloatArray, phase: str) -> tuple[FloatArray, FloatArray]:
    """Return what a sensor should feel on each host, (g,) log slowdown, and its upper end.

    :param told: (g, 4) contention that predictions have in them already
    """
    own, _others = law.beside(queues.Newcomer(_SENSORS[phase]))
    bare = own - told.T[::2]
    upper = queues.bound(bare, _UPPER, law.law_spread)
    # While it waits for its disk, that is all it does.
    response = 1 if phase == 'storage' else 0
    return bare[response], upper[response]
