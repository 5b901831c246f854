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

"""The normal distribution from tables, the same on every CPU, and its positive part."""

from __future__ import annotations

import math

import numpy as np

from tracon_watcher.characteristics import FloatArray

_STEPS = 1024
_LIMIT = 6


def _table(function: object, low: int) -> FloatArray:
    # Rounded: libraries for mathematics differ in the last digit.
    return np.array([round(function(low + step / _STEPS), 12)  # type: ignore[operator]
                     for step in range(2 * _LIMIT * _STEPS + 2)])


def _probability(z: float) -> float:
    return 0.5 * (1.0 + math.erf(z / math.sqrt(2.0)))


def _density(z: float) -> float:
    return math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def _scale(ratio: float) -> float:
    return ratio / (ratio * _probability(ratio) + _density(ratio))


def _beyond(z: float) -> float:
    return z * (1.0 - _probability(z)) - _density(z)


_PROBABILITY = _table(_probability, -_LIMIT)
_BEYOND = _table(_beyond, -_LIMIT)
_DENSITY = _table(_density, -_LIMIT)
_SCALE = _table(_scale, 0)


def _look_up(table: FloatArray, low: int, at: FloatArray) -> FloatArray:
    place = np.clip((at - low) * _STEPS, 0.0, 2.0 * _LIMIT * _STEPS)
    index = place.astype(np.intp)
    found: FloatArray = table[index]
    found += (place - index) * (table[index + 1] - found)
    return found


def probability(z: FloatArray) -> FloatArray:
    """Return P(Z ≤ z) of a standard normal Z, to 1e-7.

    :param z: array of any shape
    """
    return _look_up(_PROBABILITY, -_LIMIT, z)


def mean_beyond(begin: FloatArray, end: FloatArray) -> FloatArray:
    """Return the mean of P(Z > z) over z from ``begin`` to ``end``, of a standard normal Z.

    :param begin: array of any shape
    :param end: array of the same shape
    """
    width = end - begin
    narrow = np.abs(width) < 1e-3
    found: FloatArray = (integral_beyond(end) - integral_beyond(begin)) \
        / np.where(narrow, 1.0, width)
    if narrow.any():
        found[narrow] = 1.0 - probability(begin[narrow])
    return found


def integral_beyond(z: FloatArray) -> FloatArray:
    """Return ∫ P(Z > z) dz = z P(Z > z) − φ(z), of a standard normal Z."""
    return _look_up(_BEYOND, -_LIMIT, z) + np.minimum(z + _LIMIT, 0.0)


def scale(mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return α with E[α X⁺] = mean, where X is normal.

    What is counted cannot be negative. α X⁺ never is, and keeps the mean. Few that are seldom
    there would otherwise seem to be more.

    :param mean: of X, at least 0
    :param deviation: standard deviation of X, of the same shape, more than 0
    """
    return np.maximum(_look_up(_SCALE, 0, mean / deviation), 1e-9)


def excess(mean: FloatArray, deviation: FloatArray,
           over: FloatArray | float) -> FloatArray:
    """Return E[(α X⁺ − over)⁺], where X is normal and α keeps its mean.

    :param mean: of X, at least 0
    :param deviation: standard deviation of X, of the same shape, more than 0
    :param over: at least 0; one for all, or of the same shape
    """
    alpha = scale(mean, deviation)
    distance = mean - over / alpha
    z = distance / deviation
    found: FloatArray = alpha * (distance * probability(z)
                                 + deviation * _look_up(_DENSITY, -_LIMIT, z))
    return np.maximum(found, 0.0) if np.any(over) else mean
