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

"""A file of measurements as counters of VMs beside others and alone, and what they tell."""

import dataclasses
import typing

import numpy as np

from tracon_lab.contention import calibration
from tracon_lab.contention import hardware_events
from tracon_lab.contention import sizing
from tracon_lab.models import dataset
from tracon_lab.models import naming
from tracon_watcher import errors

TRACKING = ('file', 'host_type',
            *(field.name for field in dataclasses.fields(calibration.Tracking)))
LIMITS = ('file', 'host_type', 'program', 'beside', 'running', 'waiting_for_core',
          'waiting_for_storage', 'idle', 'limited_by', 'advice')
EVENTS = ('file', 'host_type', 'program', 'event', 'status', 'microseconds_per_event',
          'standard_error', 'p_value', 'r_squared', 'points')
#: What running time is regressed on: the three of Lim et al., and what every kernel counts.
REGRESSED = ('cache_references', 'cache_misses', 'cpu_migrations', 'context_switches')
VCPU_DELAY = 'vcpu_delay'
TOO_FEW = 'too few points'


def now(data: dataset.Dataset) -> calibration.Counters:
    """What was counted of each of n points' targets during the point; (n,) each, a second."""
    return _counters(data, 'target_observed_guest_cpu', 'target_observed_', 'target_')


def alone(data: dataset.Dataset) -> calibration.Counters:
    """What was counted of the same while it was alone; (n,) each, a second."""
    return _counters(data, 'target_alone_guest_cpu', 'target_alone_', 'target_alone_')


def _counters(data: dataset.Dataset, running: str, rates: str,
              others: str) -> calibration.Counters:
    return calibration.Counters(*(_column(data, name) for name in (
        running, others + 'vcpu_delay', rates + 'read_requests_per_second',
        rates + 'write_requests_per_second', others + 'read_latency', others + 'write_latency',
        others + 'instructions', others + 'cpu_cycles', others + 'context_switches')))


def _column(data: dataset.Dataset, name: str) -> np.ndarray:
    """A column, (n,); what the file does not have was not counted, hence is unknown."""
    return data.numbers.get(name, np.full(len(data.text['kind']), np.nan))


def tracking(data: dataset.Dataset) -> list[tuple[typing.Any, ...]]:
    """Rows of :data:`TRACKING`: how well each signal follows the slowdown of named programs."""
    kind, target = data.text['kind'], data.text['target']
    chosen = (kind != 'solo') & ~naming.generated(target)
    rows = calibration.tracking(_take(now(data), chosen), _take(alone(data), chosen),
                                data.numbers['slowdown'][chosen], target[chosen])
    return [(data.name, data.host_type, *dataclasses.astuple(row)) for row in rows]


def _take(counters: calibration.Counters, chosen: np.ndarray) -> calibration.Counters:
    return calibration.Counters(*(getattr(counters, field.name)[chosen]
                                  for field in dataclasses.fields(counters)))


def limits(data: dataset.Dataset) -> list[tuple[typing.Any, ...]]:
    """Rows of :data:`LIMITS`: what limits each program alone, and in the median beside others."""
    kind, target = data.text['kind'], data.text['target']
    time = sizing.spent(now(data))
    shares = np.column_stack([time.running, time.delayed, time.storage, time.idle])
    rows = []
    for name in np.unique(target[~naming.generated(target)]):
        for beside, chosen in (('none', kind == 'solo'), ('others', kind != 'solo')):
            own = shares[chosen & (target == name)]
            own = own[np.isfinite(own).all(axis=1)]
            if len(own):
                median = np.median(own, axis=0)
                limit = sizing.limits(sizing.Time(*(median[i:i + 1] for i in range(4))))[0]
                rows.append((data.name, data.host_type, str(name), beside, *map(float, median),
                             limit or 'unknown', sizing.ADVICE.get(limit or '', '')))
    return rows


def events(data: dataset.Dataset) -> list[tuple[typing.Any, ...]]:
    """Rows of :data:`EVENTS`: running time of each program as a function of hardware events.

    Of the vCPU delay, the event is a microsecond of it.
    """
    target = data.text['target']
    rows = []
    for name in np.unique(target[~naming.generated(target)]):
        own = target == name
        seconds = _column(data, 'time_per_unit')[own]
        # Events are counted all the time, also while a paced program sleeps between its units.
        each = _column(data, 'window_seconds')[own] / _column(data, 'units')[own]
        counted = {event: _column(data, 'target_' + event)[own] * each for event in REGRESSED}
        counted[VCPU_DELAY] = 1e6 * _column(data, 'target_vcpu_delay')[own] * each
        try:
            found = hardware_events.fit(seconds, counted)
        except errors.NotEnoughData as few:
            rows += [(data.name, data.host_type, str(name), event, TOO_FEW,
                      *[float('nan')] * 4, few.found) for event in counted]
            continue
        rows += [(data.name, data.host_type, str(name), slope.event, slope.status,
                  1e6 * slope.seconds, 1e6 * slope.deviation, slope.p_value, found.r_squared,
                  found.points) for slope in found.slopes]
    return rows
