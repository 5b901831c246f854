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

"""Choices among floating-point numbers that are the same on every CPU.

The last bits of a result depend on the processor: OpenBLAS and numpy choose their kernels by what
it can do. Candidates that are equal on paper then differ by rounding, and a plain ``argmin`` takes
another one on another machine. The functions here take values that are nearer to each other than
:data:`TOLERANCE` for equal, and the earlier of equals comes first.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracon_watcher.characteristics import FloatArray, IntArray

#: Relative difference below which two values are equal: far above rounding (1e-16, and 1e-12 after
#: a solver), far below any difference that was measured.
TOLERANCE = 1e-9


def argmin(values: npt.ArrayLike, tolerance: float = TOLERANCE) -> int:
    """Return the first index whose value is the least one, or equal to it.

    :param values: (n,) with n > 0; NaN is never the least where there is a number
    :param tolerance: relative to the least value's size, and absolute below 1
    """
    array = _array(values)
    least = array.min()
    return int(np.argmax(array <= least + _width(least, tolerance)))


def argmax(values: npt.ArrayLike, tolerance: float = TOLERANCE) -> int:
    """Return the first index whose value is the greatest one, or equal to it.

    :param values: (n,) with n > 0; NaN is never the greatest where there is a number
    :param tolerance: as for :func:`argmin`
    """
    return argmin(-np.asarray(values, dtype=np.float64), tolerance)


def argsort(values: npt.ArrayLike, tolerance: float = TOLERANCE) -> IntArray:
    """Return the indices, (n,), in ascending order of value; equals keep their order, NaN is last.

    Neighbours in that order whose difference is within the tolerance are equal, and so is a chain
    of them.

    :param values: (n,)
    :param tolerance: as for :func:`argmin`
    """
    array = _array(values)
    order = np.argsort(array, kind='stable')
    ordered = array[order]
    with np.errstate(invalid='ignore'):
        apart = np.diff(ordered) > _width(ordered[:-1], tolerance)
    group = np.concatenate([[0], np.cumsum(apart)])[:len(order)]
    return np.asarray(order[np.lexsort((order, group))], dtype=np.intp)


def rounded(values: npt.ArrayLike, digits: int = 10) -> FloatArray:
    """Return values with so many significant digits, so that what follows computes with the same.

    For what cannot be given a tolerance, such as a linear program: values that differ by rounding
    alone become the same number, but for the rare one that lies where two roundings meet.

    :param values: of any shape; NaN and infinities stay what they are
    """
    array = np.asarray(values, dtype=np.float64)
    result = array.copy()
    usual = np.isfinite(array) & (array != 0)
    scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(array[usual]))))
    result[usual] = np.round(array[usual] * scale) / scale
    return result


def _array(values: npt.ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f'expected one dimension, not shape {array.shape}')
    return np.where(np.isnan(array), np.inf, array)


def _width(values: npt.ArrayLike, tolerance: float) -> FloatArray:
    finite = np.where(np.isfinite(values), values, 0.0)
    return np.asarray(tolerance * np.maximum(1.0, np.abs(finite)))
