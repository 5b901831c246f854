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

"""What the pooled model is made of: pieces none of which falls when a background grows.

The exponent is linear in its coefficients over *raw columns*: b_j, b_j b_k, t_i b_j and, for each
hinge,
h_k and t_i h_k with h = max(0, u·t + v·b − c) − max(0, u·t − c). A raw column with a negative
coefficient may fall. An *atom* is a combination of raw columns that, inside the hull, never
falls in any b_j; a sum of atoms with coefficients ≥ 0 does not either. The atoms are

===========================  ================================================================
b_j                          rises alike everywhere
b_j b_k                      rises faster with more background
b_j B_k + b_k B_j − b_j b_k  rises ever slower (B: the hull's top; b_j (2B_j − b_j) for j = k)
h                            nothing until a capacity is reached
v·b − h                      rises until it is reached, then nothing
===========================  ================================================================

and those with b_j, h and v·b − h also times (t_i − low_i) and (high_i − t_i), neither of which is
negative inside the hull.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from tracon_watcher.characteristics import COUNT
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray

_PAIRS = np.triu_indices(COUNT)
_LINEAR = slice(0, COUNT)
_QUADRATIC = slice(COUNT, COUNT + len(_PAIRS[0]))
_INTERACTION = slice(_QUADRATIC.stop, _QUADRATIC.stop + COUNT * COUNT)
_HINGES = _INTERACTION.stop
_PER_HINGE = 1 + COUNT


@dataclasses.dataclass(frozen=True)
class Kinks:
    """Where K hinges are, before any has a weight: u (k, 4), v (k, 4) ≥ 0, c (k,)."""

    target: FloatArray
    background: FloatArray
    threshold: FloatArray

    def __len__(self) -> int:
        return len(self.threshold)

    def take(self, index: IntArray) -> Kinks:
        """Return the hinges that ``index`` selects."""
        return Kinks(self.target[index], self.background[index], self.threshold[index])


@dataclasses.dataclass(frozen=True)
class Box:
    """The hull, divided by capacity: target low and high, background top; (4,) each."""

    low: FloatArray
    high: FloatArray
    top: FloatArray


def raw_columns(target: FloatArray, background: FloatArray, kinks: Kinks) -> FloatArray:
    """Return the raw columns, (n, 30 + 5k), of (n, 4) characteristics divided by capacity."""
    products = background[:, _PAIRS[0]] * background[:, _PAIRS[1]]
    crossed = (target[:, :, None] * background[:, None, :]).reshape(len(target), -1)
    start = target @ kinks.target.T - kinks.threshold
    hinge = np.maximum(start + background @ kinks.background.T, 0) - np.maximum(start, 0)
    scaled = np.concatenate([hinge[:, :, None], hinge[:, :, None] * target[:, None, :]], axis=2)
    return np.hstack([background, products, crossed, scaled.reshape(len(target), -1)])


def atoms(box: Box, kinks: Kinks) -> FloatArray:
    """Return the atoms as columns over the raw columns, (30 + 5k, m)."""
    found: list[FloatArray] = []
    unit = np.eye(COUNT)
    for j in range(COUNT):
        found += _scaled(box, unit[j])
    for j, k in itertools.combinations_with_replacement(range(COUNT), 2):
        found.append(_pack(quadratic=_symmetric(j, k)))
        found.append(_pack(linear=box.top[k] * unit[j] + box.top[j] * unit[k],
                           quadratic=-_symmetric(j, k)))
    for index, slope in enumerate(kinks.background):
        nothing = np.zeros(COUNT)
        found += _scaled(box, nothing, index, 1.0)
        found += _scaled(box, slope, index, -1.0)
    width = _HINGES + _PER_HINGE * len(kinks)
    columns = np.zeros((width, len(found)))
    for index, atom in enumerate(found):
        columns[:len(atom), index] = atom
    return columns


def _symmetric(j: int, k: int) -> FloatArray:
    matrix = np.zeros((COUNT, COUNT))
    matrix[j, k] = 1.0
    return matrix


def _pack(linear: FloatArray | None = None, quadratic: FloatArray | None = None,
          interaction: FloatArray | None = None, hinge: int = -1,
          weights: FloatArray | None = None) -> FloatArray:
    """Return one combination of raw columns; it ends after its own hinge."""
    packed = np.zeros(_HINGES + _PER_HINGE * (hinge + 1))
    if linear is not None:
        packed[_LINEAR] = linear
    if quadratic is not None:
        packed[_QUADRATIC] = quadratic[_PAIRS]
    if interaction is not None:
        packed[_INTERACTION] = interaction.ravel()
    if weights is not None:
        packed[-_PER_HINGE:] = weights
    return packed


def _scaled(box: Box, slope: FloatArray, hinge: int = -1, sign: float = 0.0) -> list[FloatArray]:
    """Return slope·b + sign·h, alone and times (t_i − low_i) and (high_i − t_i)."""
    found = []
    factors = [(1.0, np.zeros(COUNT))]
    for i in range(COUNT):
        if box.high[i] > box.low[i]:
            factors += [(-box.low[i], np.eye(COUNT)[i]), (box.high[i], -np.eye(COUNT)[i])]
    for constant, gradient in factors:
        found.append(_pack(
            linear=constant * slope, interaction=np.outer(gradient, slope), hinge=hinge,
            weights=sign * np.concatenate([[constant], gradient]) if hinge >= 0 else None))
    return found
