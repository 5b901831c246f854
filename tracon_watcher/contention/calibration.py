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

"""Calibration of the estimates of demand and slowdown, as a document and as a curve."""

from __future__ import annotations

import dataclasses
import importlib.resources
import os
from typing import Any, Mapping

import numpy as np

from tracon_watcher.characteristics import COUNT, FloatArray, NAMES
from tracon_watcher import document


@dataclasses.dataclass(frozen=True)
class Calibration:
    """A monotone curve from a signal to the slowdown.

    :param signal: (k,) rising
    :param slowdown: (k,) rising, at least 1
    :param error: mean |estimated − actual| / actual for programs that it was not made from
    """

    signal: FloatArray
    slowdown: FloatArray
    error: float

    def estimate(self, signal: FloatArray) -> FloatArray:
        """Return the slowdown, (n,); beyond the curve's ends it is that of the ends."""
        known = np.isfinite(signal)
        estimated = np.full(len(signal), np.nan)
        estimated[known] = np.exp(np.interp(np.log(signal[known]), np.log(self.signal),
                                            np.log(self.slowdown)))
        return estimated


SCHEMA = 'tracon-calibration/1'
_FIELDS = ('schema', 'characteristics', 'curve', 'slowdown_width', 'demand_width', 'slack',
           'self_delay', 'standing_host_cpu', 'training', 'errors', 'checksum')
_REMEDY = 'run `tracon model calibrate` again'


@dataclasses.dataclass(frozen=True)
class Calibrated:
    """What :mod:`.demand_estimator` needs to know of the world.

    :param curve: from the stretch of time to the slowdown, and its held-out relative error
    :param of_slowdown: (2,) relative standard error of a slowdown s: offset + slope × log s
    :param of_demand: (2, 4) that of a demand, with the throttling f for s
    :param slack: c, share of idle time within what a VM does not need at which it is taken for
        throttled by 1/e of what a closed loop would be
    :param self_delay: (2,) seconds that a VM alone waits for a core, for each second of running
        and of host CPU
    :param standing_host_cpu: cores that a VM costs the host which does nothing
    :param training: where the numbers came from
    :param errors: held-out errors
    """

    curve: Calibration
    of_slowdown: FloatArray
    of_demand: FloatArray
    slack: float
    self_delay: FloatArray
    standing_host_cpu: float
    training: Mapping[str, Any]
    errors: Mapping[str, Any]

    def slowdown_width(self, slowdown: FloatArray) -> FloatArray:
        """Return the relative standard error of (n,) slowdowns."""
        width: FloatArray = self.of_slowdown[0] + self.of_slowdown[1] * np.log(slowdown)
        return width

    def demand_width(self, throttled: FloatArray) -> FloatArray:
        """Return the relative standard errors, (n, 4), of demands of VMs throttled so, (n,).

        What is throttled more than anything measured is as wrong as what was throttled most.
        """
        most = np.log(np.minimum(throttled, self.curve.signal[-1]))
        width: FloatArray = self.of_demand[0] + self.of_demand[1] * most[:, None]
        return width

    def to_document(self) -> dict[str, Any]:
        """Return the sealed JSON form."""
        return document.sealed({
            'schema': SCHEMA, 'characteristics': list(NAMES),
            'curve': {'signal': self.curve.signal.tolist(),
                      'slowdown': self.curve.slowdown.tolist(), 'error': self.curve.error},
            'slowdown_width': self.of_slowdown.tolist(),
            'demand_width': self.of_demand.tolist(), 'slack': self.slack,
            'self_delay': self.self_delay.tolist(),
            'standing_host_cpu': self.standing_host_cpu, 'training': dict(self.training),
            'errors': dict(self.errors)})


def from_fields(fields: document.Fields) -> Calibrated:
    """Read the JSON form.

    :raises tracon_watcher.errors.InvalidDocument: naming the offending field
    """
    fields.only(_FIELDS)
    fields.string('schema', (SCHEMA,))
    if fields.strings('characteristics') != list(NAMES):
        fields.refuse('characteristics', fields.raw('characteristics'),
                      f'expected {", ".join(NAMES)} in this order')
    for name in ('training', 'errors'):
        fields.section(name)
    found = Calibrated(
        _curve(fields.section('curve')), fields.array('slowdown_width', (2,), 0.0, 10.0),
        fields.array('demand_width', (2, COUNT), 0.0, 10.0),
        fields.number('slack', minimum=1e-3, maximum=1e3),
        fields.array('self_delay', (2,), 0.0, 10.0),
        fields.number('standing_host_cpu', minimum=0.0, maximum=1.0),
        dict(fields.raw('training')), dict(fields.raw('errors')))
    fields.check_seal(_REMEDY)
    return found


def _curve(fields: document.Fields) -> Calibration:
    fields.only(('signal', 'slowdown', 'error'))
    signal = fields.array('signal', (-1,), 1e-6, 1e6)
    slowdown = fields.array('slowdown', (len(signal),), 1.0, 1e6)
    if len(signal) < 2 or (np.diff(signal) <= 0).any():
        fields.refuse('signal', signal.tolist(), 'expected two or more rising numbers')
    if (np.diff(slowdown) < 0).any():
        fields.refuse('slowdown', slowdown.tolist(), 'slowdowns do not fall while signals rise')
    return Calibration(signal, slowdown, fields.number('error', minimum=0.0))


def load(path: str | os.PathLike[str]) -> Calibrated:
    """Read a calibration from a JSON file.

    :raises tracon_watcher.errors.InvalidDocument: naming file, field and value
    """
    return from_fields(document.read(path, 'tracon model calibrate'))


def loads(text: str, source: str) -> Calibrated:
    """Read a calibration from its JSON text.

    :raises tracon_watcher.errors.InvalidDocument: naming source, field and value
    """
    return from_fields(document.parse(text, source))


def packaged() -> Calibrated:
    """Return the calibration that comes with the package."""
    file = importlib.resources.files('tracon_watcher.contention') / 'calibration.json'
    return loads(file.read_text(encoding='utf-8'), 'the calibration of the package')


def save(found: Calibrated, path: str | os.PathLike[str]) -> None:
    """Write a calibration, atomically."""
    document.write(found.to_document(), path)
