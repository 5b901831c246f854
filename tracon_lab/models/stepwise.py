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

"""Stepwise choice of terms by Akaike's information criterion, both ways, one term a step.

Chiang & Huang, TRACON, SC'11, §3.1 score a model by AIC = −2 ln L + 2k. With normal residuals of
unknown variance that is n ln(RSS/n) + 2k, up to a constant that all models on the same n points
share; k counts the chosen terms, the constant and the variance.

*Zero residual.* A model that passes through every point has RSS = 0 and AIC = −∞, and so has each
larger one; then the criterion says nothing. RSS is therefore never taken smaller than what
rounding alone leaves of the response (:data:`ROUNDING` of its norm, squared): among models that
are exact to rounding, the one with the fewest terms wins.

*Collinear terms.* A term that is, on these points, a combination of the constant and of earlier
terms cannot be told from them. It is never a candidate, so no choice among collinear terms is
made; it is reported as not identifiable, and the rank counts those that are.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import scipy.linalg

from tracon_watcher.characteristics import BoolArray
from tracon_watcher.characteristics import FloatArray
from tracon_watcher import tie_breaking

#: Share of the response's norm below which a residual is nothing but rounding.
ROUNDING = 1e-12
#: A term is collinear when less than this share of its norm is left beside the earlier terms.
COLLINEAR = 1e-8
# An AIC that falls by less than this has not fallen; it keeps the search from going in circles.
_LEAST_GAIN = 1e-9


@dataclasses.dataclass(frozen=True)
class Selection:
    """What the search found.

    :param intercept: the constant
    :param coefficients: (m,) of all candidate terms, 0 where a term was not chosen
    :param chosen: (m,) which terms the model has
    :param identifiable: (m,) which terms these points can tell from the constant and from
        earlier terms
    :param rank: number of identifiable terms, and one for the constant
    :param aic: of the model, up to the constant named above
    :param residual: sum of the squared residuals
    """

    intercept: float
    coefficients: FloatArray
    chosen: BoolArray
    identifiable: BoolArray
    rank: int
    aic: float
    residual: float


def aic(residual: float, points: int, terms: int, floor: float = 0.0) -> float:
    """Return Akaike's criterion of a least-squares model, up to a constant of the data.

    :param residual: sum of the squared residuals
    :param terms: number of coefficients beside the constant
    :param floor: the least sum of squares that means anything; see the module
    """
    least = max(residual, floor)
    if least <= 0.0:
        return -math.inf
    return points * math.log(least / points) + 2 * (terms + 2)


def identifiable(columns: FloatArray) -> BoolArray:
    """Say which of the (n, m) columns are no combination of the constant and earlier columns."""
    raw = np.linalg.norm(columns, axis=0)
    centred = columns - columns.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    found = np.zeros(columns.shape[1], dtype=bool)
    basis = np.empty((columns.shape[0], 0))
    for index in range(columns.shape[1]):
        if norms[index] <= COLLINEAR * raw[index] or basis.shape[1] >= columns.shape[0] - 1:
            continue
        rest = centred[:, index] / norms[index]
        for _ in range(2):  # once loses orthogonality where little is left
            rest = rest - basis @ (basis.T @ rest)
        length = float(np.linalg.norm(rest))
        if length > COLLINEAR:
            found[index] = True
            basis = np.column_stack([basis, rest / length])
    return found


def search(columns: FloatArray, response: FloatArray, start: str = 'empty') -> Selection:
    """Choose among the terms by AIC, adding or dropping one a step until neither helps.

    The points enter once, through an orthogonal decomposition; every step works on the triangle
    that is left of it, so its cost does not depend on their number.

    :param columns: (n, m) candidate terms
    :param response: (n,)
    :param start: ``empty`` starts from the constant, ``full`` from every identifiable term
    """
    points, count = columns.shape
    usable = identifiable(columns)
    kept = np.flatnonzero(usable)
    mean, centre = columns[:, kept].mean(axis=0), float(response.mean())
    centred = columns[:, kept] - mean
    scale = np.linalg.norm(centred, axis=0)
    triangle = np.atleast_2d(scipy.linalg.qr(
        np.column_stack([centred / scale, response - centre]), mode='r')[0])
    floor = (ROUNDING * float(np.linalg.norm(response))) ** 2
    active = _walk(triangle, points, floor, start)

    design, target = triangle[:, active], triangle[:, -1]
    solution = np.linalg.lstsq(design, target, rcond=None)[0] if active else np.empty(0)
    residual = float(np.sum((target - design @ solution) ** 2))
    coefficients, chosen = np.zeros(count), np.zeros(count, dtype=bool)
    coefficients[kept[active]] = solution / scale[active]
    chosen[kept[active]] = True
    return Selection(centre - float(mean[active] @ coefficients[kept[active]]), coefficients,
                     chosen, usable, len(kept) + 1,
                     aic(residual, points, len(active), floor), residual)


def _walk(triangle: FloatArray, points: int, floor: float, start: str) -> list[int]:
    """Return the chosen columns of ``triangle``, whose last column is the response."""
    count = triangle.shape[1] - 1
    most = min(count, points - 2)  # one degree of freedom for the variance
    active = list(range(most)) if start == 'full' else []
    best = aic(_residual(triangle, active), points, len(active), floor)
    while True:
        added, dropped = _neighbours(triangle, active)
        # Of equals the first: a term less before a term more, and terms in their order.
        steps = [(index, False, aic(residual, points, len(active) - 1, floor))
                 for index, residual in dropped.items()]
        if len(active) < most:
            steps += [(index, True, aic(residual, points, len(active) + 1, floor))
                      for index, residual in added.items()]
        if not steps:
            return active
        index, adds, least = steps[tie_breaking.argmin([step[2] for step in steps])]
        if least >= best - _LEAST_GAIN:
            return active
        candidate = sorted([*active, index]) if adds else [i for i in active if i != index]
        score = aic(_residual(triangle, candidate), points, len(candidate), floor)
        if score >= best - _LEAST_GAIN:  # what was foreseen was rounding
            return active
        active, best = candidate, score


def _residual(triangle: FloatArray, active: list[int]) -> float:
    target = triangle[:, -1]
    if active:
        design = triangle[:, active]
        target = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    return float(target @ target)


def _neighbours(triangle: FloatArray,
                active: list[int]) -> tuple[dict[int, float], dict[int, float]]:
    """Return the residual sums of squares with each one term more, and with each one less."""
    inactive = [i for i in range(triangle.shape[1] - 1) if i not in active]
    target, others = triangle[:, -1], triangle[:, inactive]
    dropped: dict[int, float] = {}
    if active:
        basis, upper = scipy.linalg.qr(triangle[:, active], mode='economic')
        projected = basis.T @ target
        for _ in range(2):
            target = target - basis @ (basis.T @ target)
            others = others - basis @ (basis.T @ others)
        inverse = scipy.linalg.solve_triangular(upper, np.eye(len(active)))
        losses = (inverse @ projected) ** 2 / np.sum(inverse ** 2, axis=1)
        rss = float(target @ target)
        dropped = {index: rss + float(loss) for index, loss in zip(active, losses)}
    lengths = np.sum(others ** 2, axis=0)
    share = np.divide(target @ others, lengths, out=np.zeros(len(inactive)),
                      where=lengths > COLLINEAR ** 2)
    left = np.sum((target[:, None] - others * share) ** 2, axis=0)
    return dict(zip(inactive, left.tolist())), dropped
