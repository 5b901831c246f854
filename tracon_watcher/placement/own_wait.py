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

"""What VMs suffer that wait for limits of their own anyway.

A VM at its CPU quota, or at a limit of its disks, waits for that limit for some share w of its
time. What neighbours delay it, it need not wait there, until that time is used up: of a slowdown
S that one without a limit would suffer, max(1, S − w) is left. In the same way an IOPS ratio R
becomes 1 / max(1, 1/R − w).
"""

from __future__ import annotations

import numpy as np

from tracon_watcher.characteristics import FloatArray


def felt(exponent: FloatArray, own_wait: FloatArray | float | None) -> FloatArray:
    """Return what is left of exponents, log S or −log R, in the shape of ``exponent``.

    NaN stays NaN. Where w is 0 the exponents stay as they are, to the last bit.

    :param own_wait: the shares w, from 0 to 1, in a shape that fits; None where all are 0
    """
    if own_wait is None:
        return exponent
    with np.errstate(over='ignore'):
        left = np.log(np.maximum(np.exp(exponent) - own_wait, 1.0))
    return np.asarray(np.where(np.asarray(own_wait) > 0, left, exponent))
