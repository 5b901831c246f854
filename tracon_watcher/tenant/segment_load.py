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

"""The load that segments of a table cause, and how much is to come before they expire (EASY).

Javadi, Analytical Approaches for Dynamic Scheduling in Cloud Environments (PhD thesis, Stony Brook
2019), section 6.3; Javadi et al., EASY, ICDCS'18. Two curves over the age x of a segment are
fitted to an interval of a query log, for each table:

    g(x) = a + b x^alpha    CPU time for each row that is scanned (normalized cpu_time)
    h(x) = c + d x^beta     scans of each row in a unit of time (normalized row_scan)

The thesis leaves two things open. The curves must not be negative before the expiry, so the fit
takes the least squares among such curves that rise or fall throughout. And below the least age of
the log both are constant here, since a power below -1 has no finite integral from age 0.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
from scipy import optimize
from scipy import special

from tracon_watcher import errors
from tracon_watcher.tenant.latency_model import FloatArray

#: Exponents that are tried; the thesis has the form c0 + c1 / x^alpha with alpha above 0.
_EXPONENTS = np.linspace(-3.0, -0.02, 60)


@dataclasses.dataclass(frozen=True)
class Curve:
    """A value over the age of a segment in days: constant + factor x age^exponent."""

    constant: float
    factor: float
    exponent: float

    def __call__(self, age: npt.ArrayLike) -> FloatArray:
        """Return the value at ages above 0, in days, of any shape."""
        return np.asarray(self.constant + self.factor * np.asarray(age) ** self.exponent)


@dataclasses.dataclass(frozen=True)
class Model:
    """What is known of the segments of one table.

    :ivar cpu_per_row: g, CPU seconds for each row that is scanned
    :ivar scans: h, how often each row is scanned in a day
    :ivar youngest: least age of the log, in days; both curves are constant below it
    :ivar expiry: age at which segments are removed, in days
    """

    cpu_per_row: Curve
    scans: Curve
    youngest: float
    expiry: float


def attribute(totals: FloatArray, query: npt.NDArray[np.intp], segment: npt.NDArray[np.intp],
              rows: FloatArray, segments: int) -> FloatArray:
    """Return what each segment caused of the queries' totals (eqs 6.1 and 6.2, or 6.3).

    :param totals: of each query, shape (queries,): CPU seconds, or rows scanned
    :param query: index of the query of each part, shape (parts,), and ``segment`` that it scanned
    :param rows: f_s x row_count_s of each part, above 0, shape (parts,)
    :returns: shape (segments,), in the unit of the totals
    """
    of_query = np.bincount(query, rows, len(totals))
    return np.asarray(np.bincount(segment, totals[query] * rows / of_query[query], segments))


def fit(ages: FloatArray, values: FloatArray, expiry: float,
        weights: FloatArray | None = None) -> Curve:
    """Return the curve of least squares that is not negative and monotone up to the expiry.

    With y the least age and u(x) = (x^p - expiry^p) / (y^p - expiry^p), which falls from 1 to 0,
    each such curve of exponent p is s u + e (1 - u) with s, e >= 0: a non-negative regression for
    each p, which is searched for.

    :param ages: in days, above 0, shape (n,), and ``expiry`` likewise
    :param values: shape (n,), at least 0; measurements with an unknown (NaN) are left out
    :param weights: of the squares, at least 0, shape (n,); None: all count the same
    :raises tracon_watcher.errors.NotEnoughData: at fewer than three different ages
    :raises tracon_watcher.errors.InvalidOption: for an expiry not above the least age
    """
    known = ~np.isnan(values)
    roots = np.ones(len(ages)) if weights is None else np.sqrt(weights)
    ages, values, roots = ages[known], values[known], roots[known]
    different = len(np.unique(ages))
    if different < 3:
        raise errors.NotEnoughData('a curve over the age of segments', different, 3)
    youngest = float(ages.min())
    if not expiry > youngest:
        raise errors.InvalidOption('expiry_days', expiry, f'expected more than {youngest:g}')
    scale = float(values.max()) or 1.0

    def regression(exponent: float) -> tuple[FloatArray, float]:
        first, last = youngest ** exponent, expiry ** exponent
        part = (ages ** exponent - last) / (first - last)
        return optimize.nnls(  # type: ignore[no-any-return]
            np.column_stack([part, 1.0 - part]) * roots[:, np.newaxis], values / scale * roots)

    place = int(np.argmin([regression(one)[1] for one in _EXPONENTS]))
    bounds = _EXPONENTS[[max(place - 1, 0), min(place + 1, len(_EXPONENTS) - 1)]]
    best = float(optimize.minimize_scalar(lambda one: regression(one)[1], bounds=bounds,
                                          method='bounded', options={'xatol': 1e-10}).x)
    (start, end), _residual = regression(best)
    factor = scale * (start - end) / (youngest ** best - expiry ** best)
    return Curve(float(scale * end - factor * expiry ** best), float(factor), best)


def integral(g: Curve, h: Curve, low: npt.ArrayLike, high: npt.ArrayLike) -> FloatArray:
    """Return the integral of g h over ages above 0 in closed form (the brackets of eq. 6.5)."""
    def power(exponent: float) -> FloatArray:
        # By exprel, which knows the limit: at -1 it is the logarithm, and near it nothing cancels.
        width = np.log(np.asarray(high) / low)
        return np.asarray(np.asarray(low) ** (exponent + 1.0) * width
                          * special.exprel((exponent + 1.0) * width))
    return np.asarray(g.constant * h.constant * power(0.0)
                      + g.constant * h.factor * power(h.exponent)
                      + g.factor * h.constant * power(g.exponent)
                      + g.factor * h.factor * power(g.exponent + h.exponent))


def remaining_load(model: Model, rows: npt.ArrayLike, age: npt.ArrayLike) -> FloatArray:
    """Return the CPU seconds that segments are still to cause before they expire (eq. 6.5).

    :param rows: row_count_s, any shape
    :param age: t - start_s, in days, at least 0, of a shape that fits
    :returns: 0 for segments that have expired
    """
    end = np.minimum(np.asarray(age, dtype=np.float64), model.expiry)
    start = np.maximum(end, model.youngest)
    constant = (model.cpu_per_row(model.youngest) * model.scans(model.youngest)
                * np.maximum(model.youngest - end, 0.0))
    later = integral(model.cpu_per_row, model.scans, start, model.expiry)
    return np.asarray(np.asarray(rows) * (constant + later))
