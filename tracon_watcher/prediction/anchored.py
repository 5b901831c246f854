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

"""The anchored pooled model: one response of any tenant on one type of host.

With t the target's four characteristics and b the background's, both divided by the host type's
capacity, the model's *exponent* is

    f(t, b) = β·b + bᵀQb + tᵀTb + Σ_k (w_k + p_k·t) (max(0, u_k·t + v_k·b − c_k)
                                                    − max(0, u_k·t − c_k))

and the response is exp(f) for the slowdown, exp(−f) for the IOPS ratio. Without a background f is
0, so a VM alone is predicted exactly 1. The first three terms are the part with background of
TRACON's quadratic (Chiang & Huang, SC'11, eq. 2); the hinges are the kinks that a quadratic has
not: a core or a device that is full.

Inside the hull f never falls when a background grows; loading checks that. Outside it both
arguments are clamped to the hull, and the prediction is flagged.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any, Mapping

import numpy as np

from tracon_watcher.characteristics import BoolArray, COUNT, FloatArray, IntArray, NAMES
from tracon_watcher.characteristics import UNITS
from tracon_watcher.prediction import document
from tracon_watcher.prediction import interval as intervals

SCHEMA = 'tracon-model/1'
RESPONSES = ('slowdown', 'iops_ratio')
_FIELDS = ('schema', 'form', 'response', 'host_type', 'characteristics', 'units', 'capacity',
           'linear', 'quadratic', 'interaction', 'hinges', 'hull', 'interval', 'training',
           'errors', 'checksum')
# A fit rounds; a gradient below zero by less than this share of an exponent is still level.
_TOLERANCE = 1e-7
# Share of a capacity by which a target may fall short of the hull without a flag, and multiple of
# the hull's maximum beyond which a target is unknown rather than clamped.
_IDLE = 0.05
_FAR = 2.0


@dataclasses.dataclass(frozen=True)
class Hinges:
    """K kinks of the model's equation.

    ``target`` (k, 4) is u, ``background`` (k, 4) is v ≥ 0, ``threshold`` (k,) is c, ``weight``
    (k,) is w and ``target_weight`` (k, 4) is p.
    """

    target: FloatArray
    background: FloatArray
    threshold: FloatArray
    weight: FloatArray
    target_weight: FloatArray

    @classmethod
    def none(cls) -> Hinges:
        """Return no kinks."""
        return cls(np.empty((0, COUNT)), np.empty((0, COUNT)), np.empty(0), np.empty(0),
                   np.empty((0, COUNT)))


@dataclasses.dataclass(frozen=True)
class Hull:
    """The box of the training data, in requests per second and cores; (4,) each."""

    target_minimum: FloatArray
    target_maximum: FloatArray
    background_maximum: FloatArray


@dataclasses.dataclass(frozen=True)
class Prepared:
    """What is known of n targets in their present backgrounds, ready for added background.

    Inside the hull a background that grows by δ changes the exponent by gradient·δ + δᵀQδ plus
    the hinges' share, exactly; so nothing but these arrays is touched on a request.

    :param target: (n, 4) divided by capacity, clamped to the hull
    :param background: (n, 4) likewise
    :param exponent: (n,)
    :param gradient: (n, 4), of the part without hinges
    :param room: (n, 4) how far the background may grow before it leaves the hull
    :param position: (k, n) of each hinge: u·t + v·b − c
    :param strength: (k, n) of each hinge: w + p·t
    :param outside: (n,) whether target or background lies outside the hull already. A clamped
        background makes the exponent a lower bound, since it never falls when one grows.
    :param far: (n,) whether the target lies so far outside that nothing is known of it
    """

    target: FloatArray
    background: FloatArray
    exponent: FloatArray
    gradient: FloatArray
    room: FloatArray
    position: FloatArray
    strength: FloatArray
    outside: BoolArray
    far: BoolArray

    @functools.cached_property
    def highest(self) -> FloatArray:
        """(k,): the farthest that any row has come at each hinge; -inf without rows."""
        return np.asarray(self.position.max(axis=1, initial=-np.inf))

    @functools.cached_property
    def least_room(self) -> FloatArray:
        """(4,): the least room of any row; inf without rows."""
        return np.asarray(self.room.min(axis=0, initial=np.inf))

    def take(self, index: Any) -> Prepared:
        """Return the rows that ``index`` selects."""
        return Prepared(self.target[index], self.background[index], self.exponent[index],
                        self.gradient[index], self.room[index], self.position[:, index],
                        self.strength[:, index], self.outside[index], self.far[index])


@dataclasses.dataclass(frozen=True)
class Backgrounds:
    """n backgrounds, ready for whatever target joins them.

    :param background: (n, 4) divided by capacity, clamped to the hull
    :param outside: (n,) whether they lay outside it
    :param curved: (n,) bᵀQb
    :param push: (k, n) of each hinge: v·b
    """

    background: FloatArray
    outside: BoolArray
    curved: FloatArray
    push: FloatArray


@dataclasses.dataclass(frozen=True)
class AnchoredModel:
    """One response on one host type; see the module for the equation.

    :param capacity: (4,) what the host type can do, by which characteristics are divided
    :param linear: β, (4,)
    :param quadratic: Q, (4, 4), symmetric
    :param interaction: T, (4, 4), rows target, columns background
    :param training: where the data came from: file, sha256, points, window, dates
    :param errors: held-out errors, as ``models/`` measured them
    """

    response: str
    host_type: str
    capacity: FloatArray
    linear: FloatArray
    quadratic: FloatArray
    interaction: FloatArray
    hinges: Hinges
    hull: Hull
    interval: intervals.Interval
    training: Mapping[str, Any]
    errors: Mapping[str, Any]

    def prepare(self, target: FloatArray, background: FloatArray) -> Prepared:
        """Evaluate the exponents of n targets and keep what a growing background needs.

        :param target: (n, 4) profiles, requests per second and cores; or (1, 4), one for all
        :param background: (n, 4) sums over their co-residents, same units; NaN gives NaN
        """
        low, high = self.hull.target_minimum, self.hull.target_maximum
        top = self.hull.background_maximum
        # An idler target than any measured is close to the idlest; that is not worth a flag.
        outside = np.asarray((
            (low - target > _IDLE * self.capacity) | (target > high * (1 + _TOLERANCE))
            | (background > top * (1 + _TOLERANCE))).any(axis=1))
        far = np.broadcast_to((target > _FAR * high + _IDLE * self.capacity).any(axis=1),
                              outside.shape)
        t = np.clip(target, low, high) / self.capacity
        b = np.minimum(background, top) / self.capacity
        strength = self.hinges.weight[:, None] + self.hinges.target_weight @ t.T
        start = self.hinges.target @ t.T - self.hinges.threshold[:, None]
        position = start + self.hinges.background @ b.T
        level = self.linear + t @ self.interaction
        curve = b @ self.quadratic
        exponent = ((level + curve) * b).sum(axis=1) + (
            strength * (np.maximum(position, 0) - np.maximum(start, 0))).sum(axis=0)
        return Prepared(t, b, np.maximum(exponent, 0.0), np.asfortranarray(level + 2 * curve),
                        top / self.capacity - b, position, strength, outside, far)

    def backgrounds(self, background: FloatArray) -> Backgrounds:
        """Evaluate of n backgrounds, (n, 4), what does not depend on the target."""
        top = self.hull.background_maximum
        b = np.minimum(background, top) / self.capacity
        return Backgrounds(
            b, np.asarray((background > top * (1 + _TOLERANCE)).any(axis=1)),
            ((b @ self.quadratic) * b).sum(axis=1), self.hinges.background @ b.T)

    def join(self, target: FloatArray,
             backgrounds: Backgrounds) -> tuple[FloatArray, BoolArray, bool]:
        """Evaluate one target, (4,), in each of n backgrounds.

        :returns: exponents (n,); whether target or background lies outside the hull, (n,); and
            whether the target lies so far outside that nothing is known of it
        """
        low, high = self.hull.target_minimum, self.hull.target_maximum
        off = bool(((low - target > _IDLE * self.capacity)
                    | (target > high * (1 + _TOLERANCE))).any())
        far = bool((target > _FAR * high + _IDLE * self.capacity).any())
        t = np.clip(target, low, high) / self.capacity
        exponent: FloatArray = backgrounds.background @ (self.linear + t @ self.interaction)
        exponent += backgrounds.curved
        strength = self.hinges.weight + self.hinges.target_weight @ t
        start = self.hinges.target @ t - self.hinges.threshold
        for index, push in enumerate(backgrounds.push):
            if strength[index]:
                exponent += strength[index] * (np.maximum(start[index] + push, 0.0)
                                               - max(start[index], 0.0))
        return np.maximum(exponent, 0.0), backgrounds.outside | off, far

    def exponents(self, target: FloatArray, background: FloatArray) -> FloatArray:
        """Return f of shape (n,) for (n, 4) targets and backgrounds."""
        return self.prepare(target, background).exponent

    def predict(self, target: FloatArray, background: FloatArray) -> FloatArray:
        """Return the response (slowdown ≥ 1 or IOPS ratio ≤ 1), shape (n,)."""
        return self.to_response(self.exponents(target, background))

    def to_response(self, exponent: FloatArray) -> FloatArray:
        """Turn exponents into slowdowns or IOPS ratios, same shape."""
        response: FloatArray = np.exp(exponent if self.response == 'slowdown' else -exponent)
        return response

    def grow(self, prepared: Prepared, added: FloatArray) -> FloatArray:
        """Return by how much each exponent rises when every background grows by ``added``.

        :param added: (4,) requests per second and cores, not negative
        :returns: (n,), not negative
        """
        delta = added / self.capacity
        rise: FloatArray = prepared.gradient @ delta
        rise += delta @ self.quadratic @ delta
        for index, step in enumerate(self.hinges.background @ delta):
            # A kink that nobody reaches, before or after, costs nothing.
            if step > 0 and prepared.highest[index] + step > 0:
                position = prepared.position[index]
                gain = np.maximum(position + step, 0.0)
                gain -= np.maximum(position, 0.0)
                gain *= prepared.strength[index]
                rise += gain
        # A background that leaves the hull is clamped: it grows by the room that it has.
        leaving = np.flatnonzero((delta > 0) & (prepared.least_room < delta))
        if len(leaving):
            rows = np.flatnonzero((prepared.room[:, leaving] < delta[leaving]).any(axis=1))
            chosen = prepared.take(rows)
            rise[rows] = self.rise(chosen, np.minimum(delta, chosen.room))
        np.maximum(rise, 0.0, out=rise)
        return rise

    def rise(self, prepared: Prepared, delta: FloatArray) -> FloatArray:
        """Return by how much each exponent rises when each background grows by its own ``delta``.

        :param delta: (n, 4) divided by the capacity, not more than the room
        :returns: (n,)
        """
        rise: FloatArray = ((prepared.gradient + delta @ self.quadratic) * delta).sum(axis=1)
        for index, background in enumerate(self.hinges.background):
            position = prepared.position[index]
            rise += prepared.strength[index] * (
                np.maximum(position + delta @ background, 0.0) - np.maximum(position, 0.0))
        return rise

    def target_gradient(self, prepared: Prepared) -> FloatArray:
        """Return ∂f/∂t per unit of each characteristic, (n, 4).

        It tells how far an uncertain profile makes the exponent uncertain.
        """
        gradient = prepared.background @ self.interaction.T
        for index in range(len(self.hinges.weight)):
            position = prepared.position[index]
            start = position - prepared.background @ self.hinges.background[index]
            gain = np.maximum(position, 0) - np.maximum(start, 0)
            active = (position > 0).astype(float) - (start > 0)
            gradient = gradient + np.outer(gain, self.hinges.target_weight[index]) + np.outer(
                prepared.strength[index] * active, self.hinges.target[index])
        return gradient / self.capacity

    def background_gradient(self, prepared: Prepared, added: FloatArray,
                            rows: IntArray) -> FloatArray:
        """Return ∂f/∂b per unit of each background characteristic after ``added``, for m rows.

        :param rows: (m,) indices into ``prepared``
        :returns: (m, 4)
        """
        delta = added / self.capacity
        gradient = prepared.gradient[rows] + 2 * (self.quadratic @ delta)
        for index, step in enumerate(self.hinges.background):
            active = prepared.position[index, rows] + step @ delta > 0
            gradient += np.outer(prepared.strength[index, rows] * active, step)
        result: FloatArray = gradient / self.capacity
        return result

    def lowest_gradient(self) -> FloatArray:
        """Return a lower bound, (4,), of ∂f/∂b over the hull; not negative for a sound model."""
        b_top = self.hull.background_maximum / self.capacity
        curve = 2 * np.minimum(self.quadratic * b_top, 0.0).sum(axis=1)
        corners = np.array(list(itertools.product(*zip(
            self.hull.target_minimum / self.capacity, self.hull.target_maximum / self.capacity))))
        strength = self.hinges.weight + corners @ self.hinges.target_weight.T
        gradients = (self.linear + corners @ self.interaction + curve
                     + np.minimum(strength, 0.0) @ self.hinges.background)
        lowest: FloatArray = gradients.min(axis=0)
        return lowest

    def to_document(self) -> dict[str, Any]:
        """Return the sealed JSON form."""
        content: dict[str, Any] = {
            'schema': SCHEMA, 'form': 'anchored', 'response': self.response,
            'host_type': self.host_type, 'characteristics': list(NAMES), 'units': list(UNITS),
            'capacity': self.capacity.tolist(), 'linear': self.linear.tolist(),
            'quadratic': self.quadratic.tolist(), 'interaction': self.interaction.tolist(),
            'hinges': {name: getattr(self.hinges, name).tolist() for name in
                       ('target', 'background', 'threshold', 'weight', 'target_weight')},
            'hull': {name: getattr(self.hull, name).tolist() for name in
                     ('target_minimum', 'target_maximum', 'background_maximum')},
            'interval': self.interval.to_document(), 'training': dict(self.training),
            'errors': dict(self.errors)}
        content['checksum'] = document.checksum(content)
        return content

    @classmethod
    def from_fields(cls, fields: document.Fields, content: Mapping[str, Any]) -> AnchoredModel:
        """Read the JSON form.

        :raises tracon_watcher.errors.InvalidDocument: naming the offending field
        """
        fields.only(_FIELDS)
        fields.string('schema', (SCHEMA,))
        if fields.strings('characteristics') != list(NAMES):
            fields.refuse('characteristics', fields.raw('characteristics'),
                          f'expected {", ".join(NAMES)} in this order')
        if fields.strings('units') != list(UNITS):
            fields.refuse('units', fields.raw('units'), f'expected {", ".join(UNITS)}')
        kinks = fields.section('hinges')
        count = len(kinks.array('threshold', (-1,)))
        box = fields.section('hull')
        model = cls(
            fields.string('response', RESPONSES), fields.string('host_type'),
            fields.array('capacity', (COUNT,), minimum=1e-9),
            fields.array('linear', (COUNT,)), fields.array('quadratic', (COUNT, COUNT)),
            fields.array('interaction', (COUNT, COUNT)),
            Hinges(kinks.array('target', (count, COUNT)),
                   kinks.array('background', (count, COUNT), minimum=0.0),
                   kinks.array('threshold', (count,)), kinks.array('weight', (count,)),
                   kinks.array('target_weight', (count, COUNT))),
            Hull(box.array('target_minimum', (COUNT,), minimum=0.0),
                 box.array('target_maximum', (COUNT,), minimum=0.0),
                 box.array('background_maximum', (COUNT,), minimum=0.0)),
            intervals.Interval.from_fields(fields.section('interval')),
            dict(fields.raw('training')), dict(fields.raw('errors')))
        if not np.allclose(model.quadratic, model.quadratic.T):
            fields.refuse('quadratic', model.quadratic.tolist(), 'expected a symmetric matrix')
        if (model.hull.target_minimum > model.hull.target_maximum).any():
            box.refuse('target_minimum', model.hull.target_minimum.tolist(),
                       'lies above target_maximum')
        lowest = model.lowest_gradient()
        if (lowest < -_TOLERANCE).any():
            fields.refuse('linear', fields.raw('linear'),
                          f'with these coefficients more background could mean less interference '
                          f'({NAMES[int(lowest.argmin())]}); fit the model anew')
        document.check_seal(fields, content, 'run `tracon model fit` again')
        return model
