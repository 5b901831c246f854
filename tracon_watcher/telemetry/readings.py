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

"""What readers return, whichever vendor they ask: samples of cumulative meters, as arrays."""

from __future__ import annotations

import dataclasses
from typing import Protocol, Sequence

from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher import errors


class TelemetryUnavailable(errors.TraconError):
    """A source of telemetry does not answer, or not with what was asked for."""


@dataclasses.dataclass(frozen=True)
class Readings:
    """Samples of k meters of n resources.

    :param resources: n ids
    :param meters: k names, in the order of the columns
    :param row: (m,) index of each sample's resource
    :param at: (m,) seconds since the epoch, of the sample or of the bucket it was put in
    :param values: (m, k) cumulative, in the unit of the meter; NaN where it has no sample then
    :param asked: what was asked for, of whom, and what came beside samples; for an operator
    """

    resources: tuple[str, ...]
    meters: tuple[str, ...]
    row: IntArray
    at: FloatArray
    values: FloatArray
    asked: str = ''


class Reader(Protocol):
    """A source of telemetry.

    :param resolution: seconds by which a sample may have been taken before or after its time
    :param ahead: seconds by which samples may be of the future, since the clocks of their hosts
        give them their times; 0 where the source's own does
    """

    resolution: float
    ahead: float

    def read(self, since: float, until: float, meters: Sequence[str]) -> Readings:
        """Return all samples of these meters, of every resource that has any.

        :param since: seconds since the epoch; samples at ``since`` and before ``until``
        :raises TelemetryUnavailable: naming the source, what was asked and what came
        """
        ...
