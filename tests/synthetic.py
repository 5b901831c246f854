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

"""Synthetic models and clusters for tests of code. None of their numbers was measured."""

from __future__ import annotations

from hypothesis import strategies
import numpy as np

from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.prediction import anchored
from tracon_watcher.prediction import interval

HOST_TYPE = 'synthetic'
CAPACITY = np.array([1000.0, 500.0, 1.0, 1.0])


def model(response: str = 'slowdown', host_type: str = HOST_TYPE, seed: int = 0,
          hinges: bool = True, background: float = 4.0,
          width: float = 0.05) -> anchored.AnchoredModel:
    """Return an invented model that never falls when a background grows.

    :param background: the hull's largest background, in capacities
    :param width: of the interval, in exponents, at no interference
    """
    rng = np.random.default_rng([seed, response == 'slowdown'])
    curve = rng.uniform(0, 0.1, (4, 4))
    kinks = anchored.Hinges.none()
    if hinges:
        kinks = anchored.Hinges(
            np.array([[0, 0, 1.0, 1.0], [1.0, 1.0, 0, 0]]),
            np.array([[0, 0, 1.0, 1.0], [1.0, 1.0, 0, 0]]), np.array([1.0, 0.8]),
            np.array([0.5, 0.4]), np.array([[0, 0, 0.1, 0], [0.2, 0, 0, 0]]))
    levels = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    return anchored.AnchoredModel(
        response, host_type, CAPACITY.copy(), rng.uniform(0.1, 0.5, 4), (curve + curve.T) / 2,
        rng.uniform(0, 0.2, (4, 4)), kinks,
        anchored.Hull(np.zeros(4), CAPACITY.copy(), background * CAPACITY),
        interval.Interval(width, width, levels, np.array([-2.0, -1.28, 0.0, 1.28, 2.0])),
        {'synthetic': True}, {})


def models(host_type: str = HOST_TYPE, **options: float) -> dict[str, assessment.Models]:
    """Return both invented models of one host type."""
    return {host_type: assessment.Models(model('slowdown', host_type, **options),
                                         model('iops_ratio', host_type, **options))}


def profiles(largest: float = 0.5) -> strategies.SearchStrategy:
    """Strategy: one VM's (4,) demand, each characteristic up to a share of its capacity."""
    shares = strategies.lists(strategies.floats(0, largest), min_size=4, max_size=4)
    return shares.map(lambda share: np.array(share) * CAPACITY)


def hosts(largest: int = 4, storage: tuple[str | None, ...] = (cluster.LOCAL,),
          limited: bool = True) -> strategies.SearchStrategy:
    """Strategy: hosts with residents, for :func:`tracon_watcher.placement.cluster.build`.

    :param storage: storage backends to choose from
    """
    tolerances = strategies.just(limits.NONE)
    if limited:
        tolerances = strategies.builds(limits.Limits, strategies.floats(1.05, 8.0),
                                       strategies.floats(0.05, 0.95)) | tolerances
    residents = strategies.lists(strategies.tuples(profiles(), tolerances), max_size=3)
    one = strategies.tuples(residents, strategies.sampled_from(storage))
    return strategies.lists(one, min_size=1, max_size=largest).map(_named)


def _named(drawn: list) -> list[cluster.Host]:
    return [cluster.Host(
        f'host{place}',
        tuple(cluster.Resident(f'vm-{place}-{row}', profile, tolerance)
              for row, (profile, tolerance) in enumerate(residents)),
        HOST_TYPE, storage, 1000.0) for place, (residents, storage) in enumerate(drawn)]
