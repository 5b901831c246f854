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

"""What I/O of other hosts does to VMs on the same storage, which many hosts share.

All of it counts as one neighbour that does that I/O and computes nothing. No such neighbour was
measured where every neighbour shares the core, and a polynomial may fall there; I/O of others
never helps. So the excess is tabulated over reads and writes, made to rise along both, and
interpolated, which keeps it rising. Beyond what was measured it stays as it is there.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracon_watcher.characteristics import COUNT, FloatArray, IntArray, IO
from tracon_watcher.prediction import pairwise

#: Of m VMs, (m, k, k).
Tables = npt.NDArray[np.float32]
#: Of reads and of writes, in shares of the most that a neighbour did in the training data.
LEVELS = np.array([0.0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0])
_SIZE = len(LEVELS)
# VMs that are tabulated at once; a few megabytes.
_AT_ONCE = 1 << 13


def tabulate(model: pairwise.PairwiseModel, sensitivity: FloatArray) -> Tables:
    """Return the excess of VMs at each level of reads and of writes, (m, k, k).

    :param sensitivity: (m, 14)
    """
    if not len(sensitivity):
        return np.empty((0, _SIZE, _SIZE), dtype=np.float32)
    profiles = np.zeros((_SIZE * _SIZE, COUNT))
    profiles[:, IO] = np.stack(np.meshgrid(LEVELS, LEVELS, indexing='ij'), axis=-1).reshape(-1, 2)
    pressure = model.pressure(profiles * model.hull.background_maximum).T
    # There may be as many tables as VMs; single precision is precise enough, and half the memory.
    tables = np.empty((len(sensitivity), _SIZE, _SIZE), dtype=np.float32)
    for start in range(0, len(sensitivity), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        excess = model.excess(sensitivity[part] @ pressure).reshape(-1, _SIZE, _SIZE)
        np.maximum.accumulate(excess, axis=1, out=excess)
        np.maximum.accumulate(excess, axis=2, out=excess)
        tables[part] = excess
    return tables


def excess(model: pairwise.PairwiseModel, tables: Tables, rows: IntArray, io: FloatArray,
           which: IntArray | None = None) -> FloatArray:
    """Return the excess of VMs beside I/O from elsewhere, (m,); NaN where that is unknown.

    :param tables: as :func:`tabulate` gives
    :param rows: (m,) of each VM its table
    :param io: (m, 2) reads and writes per second; or (k, 2), of which each VM has one
    :param which: (m,) of each VM its row of ``io``
    """
    top = np.maximum(model.hull.background_maximum[IO], 1e-9)
    share = np.clip(io / top, 0.0, 1.0)
    place = np.clip(np.searchsorted(LEVELS, share, side='right') - 1, 0, _SIZE - 2)
    weight = (share - LEVELS[place]) / (LEVELS[place + 1] - LEVELS[place])
    corner, (u, v) = place @ np.array([_SIZE, 1]), weight.T
    if which is not None:
        corner, u, v = corner[which], u[which], v[which]
    corner = corner + rows * (_SIZE * _SIZE)
    values = tables.ravel()
    low = values[corner] * (1 - v) + values[corner + 1] * v
    high = values[corner + _SIZE] * (1 - v) + values[corner + _SIZE + 1] * v
    found: FloatArray = low * (1 - u) + high * u
    return found
