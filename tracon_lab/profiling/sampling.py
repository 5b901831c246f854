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

"""What telemetry saw of VMs during a window."""

from __future__ import annotations

import dataclasses
import math
import typing

import numpy as np

from tracon_lab.profiling import console
from tracon_lab.testbed import observation
from tracon_watcher.contention import demand_estimator
from tracon_watcher.contention import intervals
from tracon_watcher.engine import collector
from tracon_watcher.telemetry import samples

_METERS = tuple(one.name for one in collector.METERS)
# Libvirt reads the times of a VM's threads one after the other, see collector.py.
_SLACK = np.array([20e6 if name == 'tracon.cpu.host' else 0.0 for name in _METERS])
# By how much the requests that a VM counts may differ from those that telemetry has.
_SHARE, _REQUESTS = 0.3, 5.0


@dataclasses.dataclass(frozen=True)
class Seen:
    """A VM over the polls that lie wholly within a window.

    :param intervals: between those polls
    """

    observation: observation.Observation
    intervals: int

    def objections(self, report: console.Report) -> list[str]:
        """Say why this cannot be what the VM itself has reported of the window."""
        found = []
        for name, counted, rate in (
                ('reads', report.reads, self.observation.read_requests_per_second),
                ('writes', report.writes, self.observation.write_requests_per_second)):
            own = counted / report.seconds
            if abs(own - rate) > _REQUESTS + _SHARE * max(own, rate):
                found.append('the VM did %.0f %s a second, telemetry has %.0f: are they of the '
                             'same time?' % (own, name, rate))
        return found


class Samples:
    """What was read at one time.

    :param found: samples of :data:`.collector.METERS`
    :param rules: what counts as an interval
    :param before: seconds before its time that a sample may have been taken, and ``after``
    """

    def __init__(self, found: samples.Readings, rules: intervals.Rules, before: float,
                 after: float) -> None:
        self._found = found
        self._rules = rules
        self._before, self._after = before, after
        self._whole = ~np.isnan(found.values).any(axis=1)

    def count(self, vm: str) -> int:
        """Return how many samples there are of a VM, with all meters."""
        if vm not in self._found.resources:
            return 0
        return int((self._whole & (self._found.row == self._found.resources.index(vm))).sum())

    def seen(self, vm: str, begin: float, end: float) -> Seen | None:
        """Return what was seen of a VM; None where there are not two polls in that time."""
        found = self._found
        if vm not in found.resources:
            return None
        chosen = (self._whole & (found.row == found.resources.index(vm))
                  & (found.at - self._before >= begin) & (found.at + self._after <= end))
        between = intervals.between(found.row[chosen], found.at[chosen], found.values[chosen],
                                    0, self._rules, _SLACK)
        known = between.known() & np.isfinite(between.rates).all(axis=1)
        if not known.any():
            return None
        weights = between.elapsed_seconds[known]
        rates = np.average(between.rates[known, 1:], axis=0, weights=weights)
        usage = demand_estimator.of_columns(rates[None, :], 1e-9)
        return Seen(_observation(usage, float(weights.sum())), int(known.sum()))


def _observation(usage: demand_estimator.Usage, seconds: float) -> observation.Observation:
    return observation.Observation(
        float(usage.reads[0]), float(usage.writes[0]), float(usage.running[0]),
        float(usage.host[0]), float(usage.delay[0]), float(usage.read_latency[0]),
        float(usage.write_latency[0]),
        round(float(usage.reads[0] + usage.writes[0]) * seconds))


class Sampler:
    """Reads what there is of a time.

    :param polling: seconds between two samples
    :param before: seconds before its time that a sample may have been taken, and ``after``
    """

    def __init__(self, reader: samples.Reader, polling: float, before: float = 0.0,
                 after: float = math.nan) -> None:
        self._reader = reader
        self._before = before
        self._after = reader.resolution if math.isnan(after) else after
        self._rules = intervals.Rules(
            resolution=max(polling, reader.resolution), longest=max(15 * polling, 60.0),
            shortest=min(1.0, polling / 4))

    def read(self, since: float, until: float) -> Samples:
        """Return the samples.

        :raises tracon_watcher.telemetry.samples.TelemetryUnavailable: when there are none to read
        """
        return Samples(self._reader.read(since, until, _METERS), self._rules, self._before,
                       self._after)


class Sampling(typing.Protocol):
    """What takes samples: :class:`Sampler`, or a recorded one."""

    def read(self, since: float, until: float) -> Samples:
        """Return the samples of a time."""
        ...
