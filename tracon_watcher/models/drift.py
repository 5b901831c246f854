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

"""Has the world changed since a model was fitted? Told from the errors of its predictions.

Errors here are measured minus predicted exponents, and what is usual of them is known from points
kept out of the fit. Two detectors with one contract: the Page–Hinkley test, and the rule of the
paper, which looks for a shift of the mean or a surge of the variance (TRACON, §4.6). The test
watches how large errors are, not where they point: when storage changes, some programs suffer more
and others less, and the mean error may stay where it was.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from typing import Protocol

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher import errors


# Of errors that do not differ at all, every other error would be infinitely far off.
_LEAST_DEVIATION = 1e-6


class Detector(Protocol):
    """Watches standardised errors, one after the other."""

    def update(self, error: float) -> bool:
        """Take one error; say whether there is drift. After an alarm it starts afresh."""


class PageHinkley:
    """The Page–Hinkley test (Page, Biometrika 1954) against a known mean of zero.

    It sums what errors exceed a tolerance by; a sum that has risen by more than the threshold from
    its lowest is no chance any more.

    :param tolerance: drift not worth an alarm, in standard deviations
    :param threshold: of the sum, in standard deviations. The mean time between false alarms grows
        as exp(2 · tolerance · threshold), the delay as threshold / (shift − tolerance)
    :param most: errors are cut off there, lest one outlier be an alarm
    :param both: whether a fall is drift as well as a rise

    ``lasted`` tells how many errors ago the present rise began, that of an alarm included: from
    there on, as far as anybody can tell, the world is another one.
    """

    def __init__(self, tolerance: float = 0.75, threshold: float = 46.0,
                 most: float = 4.0, both: bool = True) -> None:
        for name, value in (('tolerance', tolerance), ('threshold', threshold), ('most', most)):
            if not value > 0:
                raise errors.InvalidOption(name, value, 'expected a number above 0')
        self.tolerance, self.threshold, self.most = tolerance, threshold, most
        self.both = both
        self.lasted = 0
        self._above = self._below = 0.0

    def update(self, error: float) -> bool:
        """Take one standardised error; one that is not known says nothing."""
        if not math.isfinite(error):
            return False
        error = min(max(error, -self.most), self.most)
        resting = not (self._above or (self.both and self._below))
        self.lasted = 1 if resting else self.lasted + 1
        self._above = max(0.0, self._above + error - self.tolerance)
        self._below = max(0.0, self._below - error - self.tolerance)
        risen = max(self._above, self._below if self.both else 0.0)
        if not risen:
            self.lasted = 0
        if risen <= self.threshold:
            return False
        self._above = self._below = 0.0
        return True


class MeanAndVariance:
    """The paper's rule: the mean of the last errors has shifted, or their variance surged.

    How many errors, and how much is too much, is not published; these are ours.

    :param window: how many of the last errors are looked at
    :param shift: of their mean, in standard errors of a mean of so many
    :param surge: of their variance, as a factor
    """

    def __init__(self, window: int = 20, shift: float = 4.0, surge: float = 4.0) -> None:
        if window < 2:
            raise errors.InvalidOption('window', window, 'expected at least 2')
        self._last: collections.deque[float] = collections.deque(maxlen=window)
        self.shift, self.surge = shift, surge

    def update(self, error: float) -> bool:
        """Take one standardised error; one that is not known says nothing."""
        if not math.isfinite(error):
            return False
        self._last.append(error)
        count = len(self._last)
        if count < (self._last.maxlen or 0):
            return False
        mean = sum(self._last) / count
        variance = sum((one - mean) ** 2 for one in self._last) / (count - 1)
        if abs(mean) * count ** 0.5 <= self.shift and variance <= self.surge:
            return False
        self._last.clear()
        return True


@dataclasses.dataclass
class Watch:
    """A detector, and what turns an error into what it watches.

    :param magnitude: whether the size of an error counts, not its sign
    :param mean: of what counts, in exponents, while nothing drifts; its standard deviation is
        ``deviation``
    """

    detector: Detector
    magnitude: bool
    mean: float
    deviation: float

    def update(self, error: float) -> bool:
        """Take the error of one prediction; say whether there is drift."""
        seen = abs(error) if self.magnitude else error
        return self.detector.update((seen - self.mean) / self.deviation)


def ours(residuals: FloatArray) -> Watch:
    """Return the Page–Hinkley test of how large errors are; smaller ones are no reason for alarm.

    :param residuals: (n,) exponents measured minus predicted, of points left out of the fit
    """
    sizes = np.abs(residuals)
    return Watch(PageHinkley(both=False), True, float(sizes.mean()),
                 max(float(sizes.std()), _LEAST_DEVIATION))


def paper(residuals: FloatArray) -> Watch:
    """Return the paper's rule; parameters as in :func:`ours`."""
    return Watch(MeanAndVariance(), False, float(residuals.mean()),
                 max(float(residuals.std()), _LEAST_DEVIATION))
