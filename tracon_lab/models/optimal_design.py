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

"""Which few backgrounds to measure, so that a model learns from them what all would tell it.

TRACON trains with every combination of five intensities of CPU, reads and writes, 125 runs for an
application. A model with a dozen terms does not need so many, only the right ones: those that make
its predictions for all the others least uncertain (an I-optimal design, found by exchange).

Reads and writes are the same to the terms, so that many settings, and whole designs, are equal on
paper. Which of them is chosen is stated, not left to rounding, which differs between CPUs: a
measurement that is begun on one must find the same plan on another. Of equals the one with the
least CPU is preferred, then the one with the fewest writes. The plans that were measured before
that was stated are those of this order.
"""

from __future__ import annotations

from typing import Callable

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray
from tracon_watcher import tie_breaking

# Keeps the first few points, too few for all terms, comparable.
_RIDGE = 1e-3
_MOST_SWEEPS = 20
# Of reads and writes: requests a second differ by decades.
_COMPRESSION = 100.0
_KINKS = (1 / 3, 1 / 2)

#: What a response may depend on: (n, p) of (n, d) intensities between 0 and 1, CPU first.
Terms = Callable[[FloatArray], FloatArray]


def compressed(settings: FloatArray) -> FloatArray:
    """Return terms of degree one and two, of CPU as it is and of compressed reads and writes.

    There is no constant, since a VM without neighbours is not disturbed.
    """
    values = settings.copy()
    values[:, 1:] = np.log1p(_COMPRESSION * settings[:, 1:]) / np.log1p(_COMPRESSION)
    return _to_degree_two(values)


def with_kinks(settings: FloatArray) -> FloatArray:
    """Return terms of degree one and two, and two kinks in the mean of the intensities.

    The plan ``reduced`` of the lab was chosen by these, and stays what it was.
    """
    total = settings.mean(axis=1)
    return np.column_stack([_to_degree_two(settings),
                            *(np.maximum(total - kink, 0.0) for kink in _KINKS)])


def _to_degree_two(values: FloatArray) -> FloatArray:
    count = values.shape[1]
    columns = [values[:, i] for i in range(count)]
    columns += [values[:, i] * values[:, j] for i in range(count) for j in range(i, count)]
    return np.column_stack(columns)


def choose(settings: FloatArray, count: int, terms: Terms = compressed) -> IntArray:
    """Return the indices, (count,), of the settings to measure, ascending.

    Of settings that are equally good the one is taken whose first intensity is least, then the
    one whose last is, then the one before.

    :param settings: (n, d) all that could be measured, intensities between 0 and 1
    :param count: how many may be; all of them if that is no fewer
    :param terms: of the model whose predictions are to be least uncertain
    """
    if count >= len(settings):
        return np.arange(len(settings))
    preferred = np.lexsort(np.roll(settings.T, -1, axis=0))     # the last key is the first
    columns = terms(settings[preferred])
    wanted = columns.T @ columns / len(columns)
    information = _RIDGE * np.eye(columns.shape[1])
    chosen: list[int] = []
    while len(chosen) < count:
        left = [i for i in range(len(columns)) if i not in chosen]
        best, _least = _best(information, columns, left, wanted)
        chosen.append(best)
        information = information + np.outer(columns[best], columns[best])
    for _ in range(_MOST_SWEEPS):
        if not _exchange(columns, wanted, chosen):
            break
    return np.sort(preferred[chosen])


def uncertainty(settings: FloatArray, chosen: IntArray, terms: Terms = compressed) -> float:
    """Return the mean variance of predictions for all settings, in those of one measurement."""
    columns = terms(settings)
    information = _RIDGE * np.eye(columns.shape[1]) + columns[chosen].T @ columns[chosen]
    return float(np.trace(np.linalg.solve(information, columns.T @ columns / len(columns))))


def _variance(information: FloatArray, added: FloatArray, wanted: FloatArray) -> float:
    return float(np.trace(np.linalg.solve(information + np.outer(added, added), wanted)))


def _exchange(columns: FloatArray, wanted: FloatArray, chosen: list[int]) -> bool:
    """Swap chosen points for better ones, one after the other; says whether any was.

    One that is better by rounding alone is not better.
    """
    changed = False
    for place, old in enumerate(chosen):
        others = np.array([one for one in chosen if one != old], dtype=np.intp)
        information = (_RIDGE * np.eye(columns.shape[1])
                       + columns[others].T @ columns[others])
        left = [i for i in range(len(columns)) if i not in chosen]
        before = _variance(information, columns[old], wanted)
        best, least = _best(information, columns, left, wanted)
        if tie_breaking.less(least, before):
            chosen[place] = best
            changed = True
    return changed


def _best(information: FloatArray, columns: FloatArray, left: list[int],
          wanted: FloatArray) -> tuple[int, float]:
    """Return the first of the points that leave the least variance, and that variance."""
    variances = [_variance(information, columns[one], wanted) for one in left]
    place = tie_breaking.argmin(variances)
    return left[place], variances[place]
