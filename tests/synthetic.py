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
from tracon_watcher.placement import elsewhere
from tracon_watcher.placement import limits
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


def models(host_type: str = HOST_TYPE, **options: float) -> dict[str, assessment.Models]:
    """Return both invented models of one host type."""
    return {host_type: assessment.Models(model('slowdown', host_type, **options),
                                         model('iops_ratio', host_type, **options))}


def exponents(state: cluster.ClusterState, model: pairwise.PairwiseModel) -> np.ndarray:
    """Predict every resident the slow way, neighbour by neighbour, (n,)."""
    found = np.zeros(len(state.uuids))
    for row, (host, domain) in enumerate(zip(state.host, state.io_domain)):
        neighbours, beyond = [], np.zeros(4)
        if state.io_elsewhere is not None:
            beyond[:2] = state.io_elsewhere[domain]
        for other in range(len(state.uuids)):
            profile = state.profiles[other].copy()
            if state.io_domain[other] != domain:
                profile[:2] = 0
            if other != row and state.host[other] == host:
                neighbours.append(profile)
            elif other != row:
                beyond[:2] += profile[:2]
        each = np.expm1([model.exponents(state.profiles[row][None], profile[None])[0]
                         for profile in neighbours])
        table = elsewhere.tabulate(model, model.sensitivity(state.profiles[row][None]))
        each = np.append(each, elsewhere.excess(model, table, np.zeros(1, dtype=int),
                                                beyond[None, :2]))
        pairs = np.outer(each, each) / np.sqrt(np.outer(1 + each, 1 + each))
        slowed = 1 + each.sum() + model.crowding * (pairs.sum() - np.trace(pairs))
        found[row] = np.log(max(slowed - state.own_wait[row], 1.0))
    return found


def profiles(largest: float = 0.5) -> strategies.SearchStrategy:
    """Strategy: one VM's (4,) demand, each characteristic up to a share of its capacity."""
    shares = strategies.lists(strategies.floats(0, largest), min_size=4, max_size=4)
    return shares.map(lambda share: np.array(share) * CAPACITY)


def hosts(largest: int = 4, storage: tuple[str | None, ...] = (cluster.LOCAL,),
          limited: bool = True) -> strategies.SearchStrategy:
    """Strategy: hosts with residents, for :func:`tracon_watcher.placement.cluster.build`.

    :param storage: storage backends to choose from; with several a resident may be on another
        one than its host's newcomers
    """
    tolerances = strategies.just(limits.NONE)
    if limited:
        tolerances = strategies.builds(limits.Limits, strategies.floats(1.05, 8.0),
                                       strategies.floats(0.05, 0.95)) | tolerances
    own = strategies.none()
    if len(storage) > 1:
        own |= strategies.sampled_from(storage)
    waits = strategies.just(0.0) | strategies.floats(0.01, 0.99) if limited else (
        strategies.just(0.0))
    residents = strategies.lists(strategies.tuples(profiles(), tolerances, own, waits),
                                 max_size=3)
    one = strategies.tuples(residents, strategies.sampled_from(storage))
    return strategies.lists(one, min_size=1, max_size=largest).map(_named)


def _named(drawn: list) -> list[cluster.Host]:
    return [cluster.Host(
        f'host{place}',
        tuple(cluster.Resident(f'vm-{place}-{row}', *resident)
              for row, resident in enumerate(residents)),
        HOST_TYPE, storage, 1000.0) for place, (residents, storage) in enumerate(drawn)]
