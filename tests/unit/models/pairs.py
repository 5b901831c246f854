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

"""Invented models of pairs for tests of code. None of their numbers was measured."""

import numpy as np

from tracon_watcher.prediction import hull
from tracon_watcher.prediction import interval
from tracon_watcher.prediction import pairwise

HOST_TYPE = 'synthetic'
CAPACITY = np.array([1000.0, 500.0, 1.0, 1.0])


def model(response: str = 'slowdown', host_type: str = HOST_TYPE, seed: int = 0,
          background: float = 4.0, width: float = 0.05, crowding: float = 0.2,
          wild: bool = False) -> pairwise.PairwiseModel:
    """Return an invented model that never falls when a neighbour does more.

    :param wild: or one that may, as those fitted to measurements do
    :param background: the hull's largest neighbour, in capacities
    :param width: of the interval, in exponents, at no interference
    """
    rng = np.random.default_rng([seed, response == 'slowdown'])
    curve = rng.uniform(0, 0.1, (4, 4))
    coefficients = pairwise.coefficients(rng.uniform(0.25, 0.6, 4), (curve + curve.T) / 2,
                                         rng.uniform(0, 0.2, (4, 4)))
    coefficients[5:] = rng.uniform(0, 0.05, coefficients[5:].shape)
    if wild:
        coefficients += rng.normal(0, 0.4, coefficients.shape)
    levels = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    return pairwise.PairwiseModel(
        response, host_type, CAPACITY.copy(), np.array([20.0, 0, 0, 5.0]), coefficients, 20.0,
        crowding,
        hull.Hull(np.zeros(4), background * CAPACITY, background * CAPACITY),
        interval.Interval(width, width, levels, np.array([-2.0, -1.28, 0.0, 1.28, 2.0])),
        {'synthetic': True}, {})
