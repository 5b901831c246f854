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

"""How much the exponents of many targets rise together, summed by host.

A request asks of 200,000 residents by how much each rises when a newcomer is added to its
background; but the score needs their sums by host alone. Within the hull a rise is
``gradient·δ + δᵀQδ`` and the kinks' share (:mod:`~tracon_watcher.prediction.anchored`), so all but
the kinks adds up beforehand. A row that is beyond a kink already adds ``strength·v·δ``, which adds
up as well; one that stays below adds nothing. What is left are the rows that δ carries over a kink
or out of the hull: they are found by bisection among rows kept in order, and are few.

The rows whose background is clamped already, in one characteristic or several, rise with the
others alone: they are a part of their own, for which δ is 0 where they are clamped.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from tracon_watcher.characteristics import BoolArray, COUNT, FloatArray, IntArray
from tracon_watcher.prediction import anchored

#: Rows below which it costs less to look at each than to keep sums.
_FEW = 2000


class Totals:
    """The rises of some targets of one model, summed by group.

    :param model: the model
    :param prepared: targets and backgrounds, as the model prepared them
    :param rows: (m,) which of them are summed
    :param group: (m,) the group of each, from 0 to ``count`` - 1
    :param count: number of groups
    """

    def __init__(self, model: anchored.AnchoredModel, prepared: anchored.Prepared, rows: IntArray,
                 group: IntArray, count: int) -> None:
        self._model = model
        self._prepared = prepared
        self._rows = rows
        self._group = group
        self._count = count

    def grow(self, added: FloatArray) -> FloatArray:
        """Return the sums of what the model's ``grow`` gives for each row, (count,).

        :param added: (4,) requests per second and cores, not negative
        """
        if not len(self._rows):
            return np.zeros(self._count)
        if len(self._rows) < _FEW:
            rises = self._model.grow(self._prepared.take(self._rows), added)
            return _summed(self._group, rises, self._count)
        delta = added / self._model.capacity
        total = np.zeros(self._count)
        for part in self._parts:
            part.add(self._model, self._prepared, delta * part.open, total)
        np.maximum(total, 0.0, out=total)
        return total

    def make_ready(self) -> None:
        """Sum and sort now what would otherwise be on the first request."""
        if len(self._rows) >= _FEW:
            _ = self._parts

    @functools.cached_property
    def _parts(self) -> tuple[_Part, ...]:
        clamped = self._prepared.room[self._rows] <= 0
        pattern = clamped @ (1 << np.arange(COUNT))
        return tuple(
            _part(self._model, self._prepared, self._rows[pattern == one],
                  self._group[pattern == one], self._count,
                  np.asarray(~clamped[pattern == one][0]))
            for one in np.unique(pattern))


@dataclasses.dataclass(frozen=True)
class _Ordered:
    """Rows in ascending order of a value."""

    values: FloatArray
    rows: IntArray
    group: IntArray

    @classmethod
    def by(cls, values: FloatArray, rows: IntArray, group: IntArray) -> _Ordered:
        order = np.argsort(values)
        return cls(values[order], rows[order], group[order])


@dataclasses.dataclass(frozen=True)
class _Part:
    """The rows that are clamped in the same characteristics.

    :param open: (4,) 0 where they are clamped, else 1
    :param number: (count,) rows of each group
    :param gradient: (count, 4) sums
    :param beyond: (k, count) sums of the strength of the rows beyond each kink
    :param below: k, the other rows by their position
    :param inside: of each characteristic, the rows by the room that is left to them
    """

    open: FloatArray
    number: FloatArray
    gradient: FloatArray
    beyond: FloatArray
    below: tuple[_Ordered, ...]
    inside: tuple[_Ordered | None, ...]

    def add(self, model: anchored.AnchoredModel, prepared: anchored.Prepared, delta: FloatArray,
            total: FloatArray) -> None:
        """Add the rises of all rows to ``total``, (count,).

        :param delta: (4,) by how much backgrounds grow, divided by the capacity
        """
        if not delta.any():
            return
        count = len(total)
        total += self.gradient @ delta
        total += self.number * (delta @ model.quadratic @ delta)
        for kink, step in enumerate(model.hinges.background @ delta):
            if step <= 0:
                continue
            total += self.beyond[kink] * step
            below = self.below[kink]
            first = int(np.searchsorted(below.values, -step, side='right'))
            if first < len(below.values):
                gain = ((below.values[first:] + step)
                        * prepared.strength[kink, below.rows[first:]])
                total += np.bincount(below.group[first:], gain, minlength=count)
        leaving = []
        for characteristic in np.flatnonzero(delta > 0):
            inside = self.inside[characteristic]
            assert inside is not None   # delta is 0 where rows are clamped
            last = int(np.searchsorted(inside.values, delta[characteristic], side='left'))
            leaving.append((inside.rows[:last], inside.group[:last]))
        rows, first_of = np.unique(np.concatenate([rows for rows, _group in leaving]),
                                   return_index=True)
        if len(rows):
            group = np.concatenate([group for _rows, group in leaving])[first_of]
            chosen = prepared.take(rows)
            excess = (model.rise(chosen, np.broadcast_to(delta, (len(rows), COUNT)))
                      - model.rise(chosen, np.minimum(delta, chosen.room)))
            total -= np.bincount(group, excess, minlength=count)


def _part(model: anchored.AnchoredModel, prepared: anchored.Prepared, rows: IntArray,
          group: IntArray, count: int, is_open: BoolArray) -> _Part:
    gradient = np.stack([_summed(group, prepared.gradient[rows, column], count)
                         for column in range(COUNT)], axis=1)
    beyond, below = [], []
    for position, strength in zip(prepared.position, prepared.strength):
        over = position[rows] > 0
        beyond.append(_summed(group[over], strength[rows[over]], count))
        under = np.flatnonzero(~over)
        below.append(_Ordered.by(position[rows[under]], rows[under], group[under]))
    return _Part(
        is_open.astype(float), _summed(group, np.ones(len(group)), count), gradient,
        np.asarray(beyond, dtype=np.float64).reshape(len(model.hinges.weight), count),
        tuple(below),
        tuple(_Ordered.by(prepared.room[rows, column], rows, group) if is_open[column] else None
              for column in range(COUNT)))


def _summed(group: IntArray, values: FloatArray, count: int) -> FloatArray:
    """Sum values (m,) by their group, (count,)."""
    return np.asarray(np.bincount(group, values, minlength=count), dtype=np.float64)
