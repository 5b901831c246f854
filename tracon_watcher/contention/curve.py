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

"""The curve of a calibration, evaluated with numpy alone."""

from __future__ import annotations

import dataclasses

import numpy as np

from tracon_watcher.characteristics import FloatArray


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
