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

"""What each neighbour does to a VM, and what several do together.

The exponent of one target beside one neighbour is f = Σ c_pq φ_p(t) ψ_q(v), with t and v their
four characteristics in shares of the host type's capacity, φ(t) = (1, t_i, t_i t_j) and
ψ(v) = (v_i, v_i v_j): nobody beside it gives exactly 0. Slowdown is exp(f), the IOPS ratio
exp(−f).

Request rates differ by decades from program to program, and a polynomial that follows the largest
tells the small ones no more apart. A share x may therefore be compressed, to
log(1 + k x) / log(1 + k): still 0 for nothing and 1 for all of the capacity.

Several neighbours add up by what each takes beyond 1, its *excess* e_j = exp(f_j) − 1. Three
programs that each need a whole core take three times as long on one, as the sum of excess has it.
That each two of them get in each other's way as well costs a share κ of g_j g_k, with
g = e / √(1 + e): E = Σ_j e_j + κ Σ_{j≠k} g_j g_k, and the slowdown is 1 + E, the IOPS ratio one
over that. (g_j g_k is about √(e_j e_k) of two that do much, and next to nothing of two that do
little, or else a hundred small neighbours would count for far more than all they ask for.)
Exponents that add up would see four times the time, and the sum of the neighbours'
characteristics, cut off at what was measured, twice. One more neighbour never makes a VM faster,
whatever the coefficients are, and E needs no more than two sums for each VM: of e − κ g², and
of g.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping

import numpy as np

from tracon_watcher.characteristics import BoolArray, COUNT, CPU, FloatArray, NAMES
from tracon_watcher.characteristics import RESPONSES, UNITS
from tracon_watcher import document
from tracon_watcher.prediction import hull as hulls
from tracon_watcher.prediction import interval as intervals

_FIELDS = ('schema', 'form', 'response', 'host_type', 'characteristics', 'units', 'capacity',
           'compression', 'coefficients', 'ceiling', 'crowding', 'hull', 'interval', 'training',
           'errors', 'checksum')
_TOLERANCE = 1e-7
# Share of a capacity by which a target may fall short of the hull without a flag, and multiple of
# the hull's maximum beyond which a VM is unknown rather than clamped.
_IDLE = 0.05
_FAR = 2.0
_PAIRS = np.triu_indices(COUNT)
#: No ceiling is larger, whatever a file says: such an exponent could not be told from infinity.
MOST_CEILING = 50.0
#: Of the coefficients: features of the target, features of the neighbour.
SHAPE = (1 + COUNT + len(_PAIRS[0]), COUNT + len(_PAIRS[0]))


def shares(values: FloatArray, capacity: FloatArray, compression: FloatArray) -> FloatArray:
    """Return (n, 4) characteristics in compressed shares of a capacity, (n, 4).

    :param compression: (4,) k, 0 for none
    """
    found = values / capacity
    for column in np.flatnonzero(compression):
        k = compression[column]
        found[:, column] = np.log1p(k * found[:, column]) / np.log1p(k)
    return found


def target_features(target: FloatArray) -> FloatArray:
    """Return φ, (n, 15), of (n, 4) shares."""
    return np.hstack([np.ones((len(target), 1)), target,
                      target[:, _PAIRS[0]] * target[:, _PAIRS[1]]])


def neighbour_features(neighbour: FloatArray) -> FloatArray:
    """Return ψ, (n, 14), of (n, 4) shares."""
    return np.hstack([neighbour, neighbour[:, _PAIRS[0]] * neighbour[:, _PAIRS[1]]])


#: Which features of a neighbour, (14,), its CPU alone makes: 1, and 0 for those with I/O in them.
CPU_ALONE = neighbour_features(np.array([np.isin(range(COUNT), range(COUNT)[CPU])], float))[0]


def coefficients(linear: FloatArray, quadratic: FloatArray,
                 interaction: FloatArray) -> FloatArray:
    """Return C of a model without terms of the third degree.

    :param linear: (4,) of v_j
    :param quadratic: (4, 4) of v_j v_k, symmetric
    :param interaction: (4, 4) of t_i v_j
    """
    found = np.zeros(SHAPE)
    found[0, :COUNT] = linear
    found[0, COUNT:] = (quadratic + quadratic.T - np.diag(np.diag(quadratic)))[_PAIRS]
    found[1:1 + COUNT, :COUNT] = interaction
    return found


def terms(degree: int) -> BoolArray:
    """Return which coefficients, of :data:`SHAPE`, belong to terms of at most this degree."""
    of_target = np.array([0] + [1] * COUNT + [2] * len(_PAIRS[0]))
    of_neighbour = np.array([1] * COUNT + [2] * len(_PAIRS[0]))
    chosen: BoolArray = of_target[:, None] + of_neighbour <= degree
    return chosen


def parts(excess: FloatArray, crowding: float) -> tuple[FloatArray, FloatArray]:
    """Return what neighbours add to the two sums, e − κ g² and g, (...) each.

    :param excess: (...) e of each
    :param crowding: κ, 0 to 1
    """
    cross = excess / np.sqrt(1 + excess)
    return excess - crowding * cross * cross, cross


def combined(single: FloatArray, cross: FloatArray, crowding: float) -> FloatArray:
    """Return the exponents of several neighbours, (...), from the sums of their parts."""
    # (Σ g)² = Σ g² + Σ_{j≠k} g_j g_k
    total: FloatArray = np.log1p(single + crowding * cross * cross)
    return total


def together(exponents: FloatArray, crowding: float = 0.0) -> FloatArray:
    """Return the exponents of several neighbours, (...), from those of each, (..., k)."""
    single, cross = parts(np.expm1(np.maximum(exponents, 0.0)), crowding)
    return combined(single.sum(axis=-1), cross.sum(axis=-1), crowding)


@dataclasses.dataclass(frozen=True)
class PairwiseModel:
    """One response on one host type; see the module for the equation.

    A VM enters in two ways: as a target by its *sensitivity*, φ(t)ᵀC, and as a neighbour by its
    *pressure*, ψ(v); both have 14 numbers, whose product is the exponent. They are computed once
    for each VM, whoever its neighbours are.

    :param capacity: (4,) what the host type can do, by which characteristics are divided
    :param compression: (4,) k of each characteristic, 0 for none
    :param coefficients: C, :data:`SHAPE`
    :param ceiling: the largest exponent that was measured; no single neighbour does more
    :param crowding: κ, what each two neighbours add by getting in each other's way
    :param training: where the data came from: file, sha256, points, window, dates
    :param errors: held-out errors, as ``models/`` measured them
    """

    response: str
    host_type: str
    capacity: FloatArray
    compression: FloatArray
    coefficients: FloatArray
    ceiling: float
    crowding: float
    hull: hulls.Hull
    interval: intervals.Interval
    training: Mapping[str, Any]
    errors: Mapping[str, Any]

    def sensitivity(self, target: FloatArray) -> FloatArray:
        """Return what (n, 4) profiles are sensitive to, (n, 14); profiles are clamped."""
        clamped = np.clip(target, self.hull.target_minimum, self.hull.target_maximum)
        found: FloatArray = target_features(
            shares(clamped, self.capacity, self.compression)) @ self.coefficients
        return found

    def pressure(self, neighbour: FloatArray) -> FloatArray:
        """Return what (n, 4) profiles press with, (n, 14); profiles are clamped."""
        clamped = np.minimum(neighbour, self.hull.background_maximum)
        return neighbour_features(shares(clamped, self.capacity, self.compression))

    def excess(self, exponent: FloatArray) -> FloatArray:
        """Return e = exp(f) − 1, not negative, of products of sensitivity and pressure, (...)."""
        found: FloatArray = np.expm1(np.clip(exponent, 0.0, self.ceiling))
        return found

    def parts(self, excess: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what neighbours add to the two sums that :meth:`total` takes, (...) each."""
        return parts(excess, self.crowding)

    def total(self, single: FloatArray, cross: FloatArray) -> FloatArray:
        """Return exponents beside several neighbours, (n,), from the (n,) sums of their parts."""
        return combined(single, cross, self.crowding)

    def outside(self, profile: FloatArray) -> BoolArray:
        """Return whether (n, 4) profiles, as target or as neighbour, lie outside the hull."""
        low, high = self.hull.target_minimum, self.hull.target_maximum
        # An idler target than any measured is close to the idlest; that is not worth a flag.
        return np.asarray(((low - profile > _IDLE * self.capacity)
                           | (profile > high * (1 + _TOLERANCE))).any(axis=1)
                          | self.beyond(profile))

    def beyond(self, neighbour: FloatArray) -> BoolArray:
        """Return whether (n, 4) neighbours do more of something than any that was measured."""
        most = self.hull.background_maximum * (1 + _TOLERANCE)
        return np.asarray((neighbour > most).any(axis=1))

    def far(self, profile: FloatArray) -> BoolArray:
        """Return whether (n, 4) profiles lie so far outside that nothing is known of them.

        That is at more than twice of what was measured, and 5 % of the host type's capacity: twice
        next to nothing is next to nothing.
        """
        return np.asarray((profile > _FAR * self.hull.target_maximum
                           + _IDLE * self.capacity).any(axis=1))

    def exponents(self, target: FloatArray, neighbour: FloatArray) -> FloatArray:
        """Return f, (n,), of (n, 4) targets each beside one of (n, 4) neighbours."""
        products = self.sensitivity(target) * self.pressure(neighbour)
        found: FloatArray = np.clip(products.sum(axis=1), 0.0, self.ceiling)
        return found

    def predict(self, target: FloatArray, neighbour: FloatArray) -> FloatArray:
        """Return the responses, (n,), of (n, 4) targets each beside one of (n, 4) neighbours."""
        return self.to_response(self.exponents(target, neighbour))

    def to_response(self, exponent: FloatArray) -> FloatArray:
        """Turn exponents into slowdowns or IOPS ratios, same shape."""
        found: FloatArray = np.exp(exponent if self.response == 'slowdown' else -exponent)
        return found

    def to_document(self) -> dict[str, Any]:
        """Return the sealed JSON form."""
        content: dict[str, Any] = {
            'schema': document.MODEL_SCHEMA, 'form': 'pairwise', 'response': self.response,
            'host_type': self.host_type, 'characteristics': list(NAMES), 'units': list(UNITS),
            'capacity': self.capacity.tolist(), 'compression': self.compression.tolist(),
            'coefficients': self.coefficients.tolist(), 'ceiling': self.ceiling,
            'crowding': self.crowding,
            'hull': self.hull.to_document(),
            'interval': self.interval.to_document(), 'training': dict(self.training),
            'errors': dict(self.errors)}
        content['checksum'] = document.checksum(content)
        return content

    @classmethod
    def from_fields(cls, fields: document.Fields, content: Mapping[str, Any],
                    strict: bool = True) -> PairwiseModel:
        """Read the JSON form.

        :param strict: whether fields are refused that are not known, rather than passed over
        :raises tracon_watcher.errors.InvalidDocument: naming the offending field
        """
        if strict:
            fields.only(_FIELDS)
        fields.string('schema', (document.MODEL_SCHEMA,))
        if fields.strings('characteristics') != list(NAMES):
            fields.refuse('characteristics', fields.raw('characteristics'),
                          f'expected {", ".join(NAMES)} in this order')
        if fields.strings('units') != list(UNITS):
            fields.refuse('units', fields.raw('units'), f'expected {", ".join(UNITS)}')
        for name in ('training', 'errors'):
            fields.section(name)
        model = cls(
            fields.string('response', RESPONSES), fields.string('host_type'),
            fields.array('capacity', (COUNT,), minimum=1e-9),
            fields.array('compression', (COUNT,), 0.0, 1e9),
            fields.array('coefficients', SHAPE),
            fields.number('ceiling', minimum=0.0, maximum=MOST_CEILING),
            fields.number('crowding', minimum=0.0, maximum=1.0),
            hulls.Hull.from_fields(fields.section('hull'), strict),
            intervals.Interval.from_fields(fields.section('interval'), strict),
            dict(fields.raw('training')), dict(fields.raw('errors')))
        document.check_seal(fields, content, 'run `tracon model fit` again')
        return model
