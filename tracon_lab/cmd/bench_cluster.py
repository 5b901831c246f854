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

"""A synthetic cluster, to measure the time of the code by."""

from __future__ import annotations

import time
import uuid

import numpy as np

from tracon_watcher.characteristics import COUNT, CPU
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer_profiles

HOST_TYPE = 'synthetic'
CORES = 16


def capacity(cores: int) -> np.ndarray:
    """Return the requests of a host's disk and the CPU of its cores, both sorts of it alike."""
    return np.array([10000.0, 5000.0, cores / 2, cores / 2])


def build(hosts: int, vms_per_host: int, limited: float, storage: str = cluster_module.LOCAL,
          cores: int = CORES) -> cluster_module.ClusterState:
    """Return a cluster with random demand.

    :param limited: share of the VMs that have limits
    :param storage: backend of all hosts
    :param cores: of each host
    """
    rng = np.random.default_rng(0)
    # Together the VMs keep a host busy by half on the average.
    share = rng.uniform(0, 1 / max(vms_per_host, 1), (hosts, vms_per_host, COUNT))
    demand = share * capacity(cores)
    has_limits = rng.random((hosts, vms_per_host)) < limited
    vcpus = np.maximum(np.ceil(demand[:, :, CPU].sum(axis=2)), 1)
    waits = rng.uniform(0, 0.04, (hosts, vms_per_host))
    now = time.time()
    listed = [cluster_module.Host(
        f'compute-{index:05}', tuple(cluster_module.Resident(
            str(uuid.UUID(int=index * vms_per_host + row, version=4)), demand[index, row],
            limits_module.Limits(3.0, 0.2) if has_limits[index, row] else limits_module.NONE,
            vcpus=int(vcpus[index, row]), storage_wait=float(waits[index, row]))
            for row in range(vms_per_host)), HOST_TYPE, storage, now, cores)
        for index in range(hosts)]
    typical = (demand.reshape(-1, COUNT) if vms_per_host else capacity(cores)[None, :] / 40)[:1000]
    history = {newcomer_profiles.ALL: newcomer_profiles.Profile(typical.mean(axis=0),
                                                                typical.std(axis=0), 1000,
                                                                'all VMs')}
    return cluster_module.build(listed, history, 1, now)
