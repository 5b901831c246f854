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

"""Synthetic clusters for tests of code. None of their numbers was measured."""

from __future__ import annotations

import dataclasses
import math

from hypothesis import strategies
import numpy as np

from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits

HOST_TYPE = 'synthetic'
#: A demand that fills a core, and much of what a disk can do.
CAPACITY = np.array([1000.0, 500.0, 1.0, 1.0])
CORES = (1, 2, 4, 16)


def profiles(largest: float = 0.5) -> strategies.SearchStrategy:
    """Strategy: one VM's (4,) demand, each characteristic up to a share of its capacity."""
    # Less than a thousandth is nothing: one request in weeks, which takes forever, is no demand.
    shares = strategies.lists(strategies.floats(0, largest), min_size=4, max_size=4)
    return shares.map(lambda share: np.round(share, 3) * CAPACITY)


def hosts(largest: int = 4, storage: tuple[str | None, ...] = (cluster.LOCAL,),
          limited: bool = True, background: bool = False) -> strategies.SearchStrategy:
    """Strategy: hosts with residents, for :func:`tracon_watcher.placement.cluster.build`.

    :param storage: storage backends to choose from; with several a resident may be on another
        one than its host's newcomers
    :param background: whether some of them are background work
    """
    tolerances = strategies.just(limits.NONE)
    if limited:
        tolerances = strategies.builds(limits.Limits, strategies.floats(1.05, 8.0),
                                       strategies.floats(0.05, 0.95)) | tolerances
    if background:
        tolerances |= strategies.just(limits.BACKGROUND)
    own = strategies.none()
    if len(storage) > 1:
        own |= strategies.sampled_from(storage)
    waits = strategies.just(0.0) | strategies.floats(0.01, 0.99) if limited else (
        strategies.just(0.0))
    residents = strategies.lists(strategies.tuples(
        profiles(), tolerances, own, waits, strategies.integers(1, 4),
        strategies.floats(0.0, 0.9) | strategies.just(math.nan),
        strategies.sampled_from((1.0, 0.25, 4.0, 0.0))), max_size=3)
    felt = strategies.none() | strategies.tuples(
        *[strategies.floats(0.0, 1.0).map(lambda value: round(value, 2))] * 4)
    one = strategies.tuples(residents, strategies.sampled_from(storage),
                            strategies.sampled_from(CORES), strategies.integers(1, 2), felt)
    return strategies.lists(one, min_size=1, max_size=largest).map(_named)


def _named(drawn: list) -> list[cluster.Host]:
    # No VM has more virtual CPUs than its host has cores.
    return [cluster.Host(
        f'host{place}',
        tuple(cluster.Resident(f'vm-{place}-{row}', profile, tolerance, own, wait,
                               min(vcpus, cores), storage_wait, weight)
              for row, (profile, tolerance, own, wait, vcpus, storage_wait, weight)
              in enumerate(residents)),
        HOST_TYPE, storage, 1000.0, cores, threads, *felt)
        for place, (residents, storage, cores, threads, *felt) in enumerate(drawn)]


def state(given: list[cluster.Host]) -> cluster.ClusterState:
    """Build a cluster of which it is told for how long each VM waits for storage.

    Where it is not told, it is guessed from the VMs that are there, and each that comes or goes
    changes it.
    """
    built = cluster.build(given)
    return dataclasses.replace(built, storage_wait=np.nan_to_num(built.storage_wait, nan=0.2))
