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

"""The latency of a worker over its load, and the background load that a latency tells (DIAL).

Javadi, Analytical Approaches for Dynamic Scheduling in Cloud Environments (PhD thesis, Stony Brook
2019), eq. 4.1; Javadi & Gandhi, DIAL, ICAC'17. The x-th percentile of response times is

    T_x = c0 + c1 / (1 - rho) + c2 / (1 - rho)^2,    rho = rho_fg + rho_bg,

where rho_fg is the worker's own load and rho_bg that of VMs beside it, both as shares of the
resource they compete for. With u = 1 / (1 - rho) it is a parabola in u >= 1.

The thesis fits it by linear regression and does not say what is to be done when the parabola then
falls somewhere, so that a latency belongs to two loads or to none. It rises everywhere exactly if
it is k + a u + b (u - 1)^2 with a, b >= 0, not both 0 (c0 = k + b, c1 = a - 2b, c2 = b). So the
regression here takes the least squares among rising parabolas; where the plain regression rises,
both are the same.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tracon_watcher import errors

FloatArray = npt.NDArray[np.float64]
#: Latencies of a worker that is one M/M/1 queue, in units of its percentile when it has no load:
#: the coefficients c0, c1, c2 where none are measured.
MM1 = (0.0, 1.0, 0.0)


def latency(load: FloatArray | float, coefficients: tuple[float, float, float]) -> FloatArray:
    """Return T_x at a total load (eq. 4.1).

    :param load: rho_fg + rho_bg, any shape; from 1 on, the latency is infinite
    :param coefficients: c0, c1, c2, in the unit of the latency
    """
    spare = 1.0 - np.asarray(load, dtype=np.float64)
    with np.errstate(divide='ignore'):
        factor = np.where(spare > 0, 1.0 / spare, np.where(np.isnan(spare), np.nan, np.inf))
    c0, c1, c2 = coefficients
    # One term at a time: infinity less infinity would be unknown.
    return np.asarray(c0 + factor * (c1 + (c2 * factor if c2 else 0.0)))


def fit(loads: FloatArray, latencies: FloatArray) -> tuple[float, float, float]:
    """Return c0, c1, c2 of eq. 4.1, by least squares among curves that rise with load.

    :param loads: rho_fg + rho_bg of each measurement, shape (n,), at least 0 and below 1
    :param latencies: T_x, shape (n,); measurements with an unknown (NaN) are left out
    :raises tracon_watcher.errors.NotEnoughData: at fewer than three different loads
    :raises tracon_watcher.errors.InvalidOption: for a load outside the range, or when latency does
        not rise with load at all
    """
    known = ~(np.isnan(loads) | np.isnan(latencies))
    loads, latencies = loads[known], latencies[known]
    for wrong in loads[(loads < 0) | (loads >= 1)]:
        raise errors.InvalidOption('load', float(wrong), 'expected at least 0 and less than 1; '
                                   'divide what is used by what can be used at most')
    different = len(np.unique(loads))
    if different < 3:
        raise errors.NotEnoughData('a curve of latency over different loads', different, 3)
    u = 1.0 / (1.0 - loads)
    terms = np.column_stack([np.ones_like(u), u, (u - 1.0) ** 2])
    best, least = None, math.inf
    for columns in ([0, 1, 2], [0, 1], [0, 2]):
        found = np.zeros(3)
        found[columns] = np.linalg.lstsq(terms[:, columns], latencies, rcond=None)[0]
        residual = float(((terms @ found - latencies) ** 2).sum())
        # A curve with one term less can only be better where that with both falls somewhere.
        if found[1] >= 0 and found[2] >= 0 and found[1:].any() and residual < least:
            best, least = found, residual
    if best is None:
        raise errors.InvalidOption('latencies', 'fall with load', 'expected latencies that rise '
                                   'with load; measure at higher loads')
    return float(best[0] + best[2]), float(best[1] - 2.0 * best[2]), float(best[2])


def background_load(tail: FloatArray | float, own_load: FloatArray | float,
                    coefficients: tuple[float, float, float]) -> FloatArray:
    """Return rho_bg, the load of others that explains a latency (eq. 4.1, inverted).

    :param tail: T_x, finite, any shape; unknown (NaN) stays unknown
    :param own_load: rho_fg, of a shape that fits
    :param coefficients: c0, c1, c2 of a curve that rises, in the unit of ``tail``
    :returns: at least 0, where the own load alone explains more, and less than 1
    """
    c0, c1, c2 = coefficients
    over = np.asarray(tail, dtype=np.float64) - c0
    # The greater root is the one on the rising branch. Below the vertex there is none: no load.
    root = np.sqrt(np.maximum(c1 * c1 + 4.0 * c2 * over, 0.0))
    # Of two forms of it, the one that subtracts nothing from what is nearly as great.
    u = 2.0 * over / (root + c1) if c1 > 0 else (root - c1) / (2.0 * c2)
    return np.asarray(np.maximum(1.0 - 1.0 / np.maximum(u, 1.0) - own_load, 0.0))
