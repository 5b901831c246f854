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

"""A synthetic cluster with invented models, to measure the time of the code by."""

from __future__ import annotations

import time
import uuid

import numpy as np

from tracon_watcher.characteristics import COUNT, CPU, RESPONSES
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer
from tracon_watcher.prediction import hull
from tracon_watcher.prediction import interval
from tracon_watcher.prediction import pairwise

HOST_TYPE = 'synthetic'
_CAPACITY = np.array([10000.0, 5000.0, 32.0, 32.0])


def build(hosts: int, vms_per_host: int, limited: float,
          models: list[pairwise.PairwiseModel] | None = None,
          storage: str = cluster_module.LOCAL, cores: int | None = None
          ) -> tuple[cluster_module.ClusterState, dict[str, assessment.Models]]:
    """Return a cluster with random demand, and models for it.

    :param limited: share of the VMs that have limits
    :param models: slowdown and IOPS ratio; None for invented ones
    :param storage: backend of all hosts
    :param cores: of each host; None where unknown. The VMs use 32 of them on the average
    """
    rng = np.random.default_rng(0)
    pair = assessment.Models(*(models or invented()))
    host_type = pair.slowdown.host_type
    # Together the VMs keep a host busy by half on the average.
    share = rng.uniform(0, 1 / max(vms_per_host, 1), (hosts, vms_per_host, COUNT))
    demand = np.minimum(share * pair.slowdown.capacity, pair.slowdown.hull.target_maximum)
    has_limits = rng.random((hosts, vms_per_host)) < limited
    vcpus = np.maximum(np.ceil(demand[:, :, CPU].sum(axis=2)), 1)
    waits = rng.uniform(0, 0.04, (hosts, vms_per_host))
    now = time.time()
    listed = [cluster_module.Host(
        f'compute-{index:05}', tuple(cluster_module.Resident(
            str(uuid.UUID(int=index * vms_per_host + row, version=4)), demand[index, row],
            limits_module.Limits(3.0, 0.2) if has_limits[index, row] else limits_module.NONE,
            vcpus=int(vcpus[index, row]), storage_wait=float(waits[index, row]))
            for row in range(vms_per_host)), host_type, storage, now, cores)
        for index in range(hosts)]
    typical = (demand.reshape(-1, COUNT) if vms_per_host else _CAPACITY[None, :] / 40)[:1000]
    history = {newcomer.ALL: newcomer.Profile(typical.mean(axis=0), typical.std(axis=0), 1000,
                                              'all VMs')}
    return cluster_module.build(listed, history, 1, now), {host_type: pair}


def invented() -> list[pairwise.PairwiseModel]:
    """Return a slowdown and an IOPS ratio model that nobody has measured."""
    return [_invented(response) for response in RESPONSES]


def _invented(response: str) -> pairwise.PairwiseModel:
    rng = np.random.default_rng([7, response == 'slowdown'])
    curve = rng.uniform(0, 0.1, (COUNT, COUNT))
    return pairwise.PairwiseModel(
        response, HOST_TYPE, _CAPACITY.copy(), np.array([100.0, 100, 0, 0]),
        pairwise.coefficients(rng.uniform(0.1, 0.5, COUNT), (curve + curve.T) / 2,
                              rng.uniform(0, 0.2, (COUNT, COUNT))),
        3.0, 0.1, hull.Hull(np.zeros(COUNT), _CAPACITY.copy(), _CAPACITY.copy()),
        interval.Interval(0.05, 0.05, np.array([0.0, 0.1, 0.5, 0.9, 1.0]),
                          np.array([-2.0, -1.28, 0.0, 1.28, 2.0])),
        {'synthetic': True}, {})
