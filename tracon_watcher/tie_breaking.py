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

The last bits of a result depend on the processor: OpenBLAS, numpy and the C library choose their
kernels by what it can do. Candidates that are equal on paper then differ by rounding, and a plain
``argmin`` takes another one on another machine. The functions here take values that are nearer to
each other than :data:`TOLERANCE` for equal, and the earlier of equals comes first: callers state
the order of preference by the order of their candidates.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray

#: Relative difference below which two values are equal: far above rounding (1e-16, and 1e-12 after
#: a solver), far below any difference that was measured.
TOLERANCE = 1e-9
#: The same of errors of fitted models, of whose coefficients a solver knows fewer digits.
FITTED = 1e-6

# Of rounding to decimals: powers of ten are taken from text, since the last bits of 10.0 ** x
# depend on the CPU. Smaller numbers have fewer digits; none is larger.
_LEAST_POWER, _MOST_POWER = -290, 308
#: The largest power of ten that is a floating-point number.
_EXACT_POWER = 22
#: Smaller numbers have no more than 300 decimals.
_TINY = 1e-290
_POWERS = np.array([float(f'1e{power}') for power in range(_LEAST_POWER, _MOST_POWER + 1)])


def argmin(values: npt.ArrayLike, tolerance: float = TOLERANCE) -> int:
    """Return the first index whose value is the least one, or equal to it.

    :param values: (n,) with n > 0; NaN is never the least where there is a number
    :param tolerance: relative to the least value's size, and absolute below 1
    :raises ValueError: for no values, and for more than one dimension
    """
    array = _array(values)
    if not len(array):
        raise ValueError('expected values to choose from, not none')
    known = ~np.isnan(array)
    least = np.min(array, where=known, initial=np.inf)
    return int(np.argmax(known & (array <= _above(least, tolerance))))


def argmax(values: npt.ArrayLike, tolerance: float = TOLERANCE) -> int:
    """Return the first index whose value is the greatest one, or equal to it.

    :param values: (n,) with n > 0; NaN is never the greatest where there is a number
    :param tolerance: as for :func:`argmin`
    :raises ValueError: for no values, and for more than one dimension
    """
    return argmin(-_array(values), tolerance)


def argmax_of_each(values: npt.ArrayLike, tolerance: float = TOLERANCE) -> IntArray:
    """Return the same along the last axis, (...).

    :param values: (..., n) with n > 0 and no NaN
    :param tolerance: relative to the greatest value's size, and absolute below 1
    """
    array = np.asarray(values, dtype=np.float64)
    least = -array.max(axis=-1, keepdims=True)
    return np.asarray(np.argmax(-array <= _above(least, tolerance), axis=-1), dtype=np.intp)


def argsort(values: npt.ArrayLike, tolerance: float = TOLERANCE) -> IntArray:
    """Return the indices, (..., n), in ascending order of value along the last axis.

    Equals, as in :func:`ranks`, keep their order; NaN is last.

    :param values: (..., n)
    :param tolerance: as for :func:`ranks`
    """
    return np.asarray(np.argsort(ranks(values, tolerance), axis=-1, kind='stable'),
                      dtype=np.intp)


def ranks(values: npt.ArrayLike, tolerance: float = TOLERANCE) -> IntArray:
    """Return ranks, (..., n), from 0 on along the last axis; equals share one, NaN has the last.

    For :func:`numpy.lexsort` beside other keys. Neighbours in ascending order whose difference is
    within the tolerance are equal, and so is a chain of them.

    :param values: (..., n)
    :param tolerance: relative to the lesser neighbour's size, and absolute below 1
    """
    array = np.asarray(values, dtype=np.float64)
    order = np.argsort(array, axis=-1, kind='stable')
    ordered = np.take_along_axis(array, order, axis=-1)
    before, after = ordered[..., :-1], ordered[..., 1:]
    rank = np.zeros(array.shape, dtype=np.intp)
    rank[..., 1:] = np.cumsum((after > _above(before, tolerance))
                              | (np.isnan(after) & ~np.isnan(before)), axis=-1)
    found = np.empty(array.shape, dtype=np.intp)
    np.put_along_axis(found, order, rank, axis=-1)
    return found


def less(values: npt.ArrayLike, others: npt.ArrayLike,
         tolerance: float = TOLERANCE) -> BoolArray:
    """Say which values are less than others by more than rounding; none is where either is NaN.

    :param values: of any shape, as ``others``
    :param tolerance: relative to the value's size, and absolute below 1
    """
    return np.asarray(np.asarray(others, dtype=np.float64)
                      > _above(np.asarray(values, dtype=np.float64), tolerance))


def rounded(values: npt.ArrayLike, digits: int = 10) -> FloatArray:
    """Return values with so many significant digits, so that what follows computes with the same.

    For what cannot be given a tolerance, such as a linear program: values that differ by rounding
    alone become the same number, but for the rare one that lies where two roundings meet.

    :param values: of any shape; NaN and infinities stay what they are, and what is smaller than
        1e-290 has no more than 300 decimals
    :param digits: 1 to 15
    :raises ValueError: for other numbers of digits
    """
    if not 1 <= digits <= 15:
        raise ValueError(f'expected 1 to 15 digits, not {digits}')
    array = np.asarray(values, dtype=np.float64)
    result = array.copy()
    usual = np.isfinite(array) & (array != 0)
    size = np.abs(array[usual])
    power = np.maximum(np.searchsorted(_POWERS, size, side='right') - 1, 0) + _LEAST_POWER
    # Of large numbers a power of ten is taken out, of small ones decimals are counted.
    decimals = digits - 1 - power
    small = decimals >= 0
    scale = _POWERS[np.abs(decimals) - _LEAST_POWER]
    with np.errstate(over='ignore'):
        whole = np.rint(np.where(small, size * scale, size / scale))
        found = np.where(small, whole / scale, whole * scale)
    # Larger powers of ten are no floating-point numbers, and one over one of them is off by a bit.
    for place in np.flatnonzero((np.abs(decimals) > _EXACT_POWER) & (size >= _TINY)):
        found[place] = float(f'{size[place]:.{digits - 1}e}')
    most = np.finfo(np.float64).max
    result[usual] = np.copysign(np.minimum(found, most), array[usual])
    return result


def _array(values: npt.ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f'expected one dimension, not shape {array.shape}')
    return array


def _above(values: npt.ArrayLike, tolerance: float) -> FloatArray:
    """Return the largest values that are equal to these."""
    size = np.maximum(1.0, np.abs(values))
    # An infinity is equal to itself alone.
    width = np.where(np.isfinite(size), tolerance * size, 0.0)
    with np.errstate(over='ignore'):
        return np.asarray(values + width)
