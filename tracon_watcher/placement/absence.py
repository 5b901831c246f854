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

"""A host without each of its residents in turn, as a cluster of so many hosts.

So all of them are prepared and judged in one go, instead of one by one.
"""

from __future__ import annotations

import dataclasses
from typing import Mapping

import numpy as np

from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import queues


def copies(part: cluster_module.ClusterState) -> cluster_module.ClusterState:
    """Return the state of m hosts, each the only host of ``part`` without one of its m residents.

    Each has storage backends of its own, with the I/O from elsewhere that the host's have: no VM
    is felt on another host. The uuids are not all different.

    :param part: of one host, with at least one resident
    """
    count = len(part.uuids)
    used = np.unique(np.concatenate([part.io_domain, part.host_io_domain]))
    used = used[used >= 0]
    number = np.full(len(part.io_domains) + 1, -1, dtype=np.intp)      # the last one is of -1
    number[used] = np.arange(len(used))
    rows = np.array([row for left in range(count) for row in range(count) if row != left],
                    dtype=np.intp)
    host = np.repeat(np.arange(count), count - 1)
    own, stays = number[part.host_io_domain[0]], number[part.io_domain[rows]]
    rate = None if part.rate_elsewhere is None else np.tile(part.rate_elsewhere[used], count)
    return dataclasses.replace(
        part, hosts=tuple(f'{part.hosts[0]}-{place}' for place in range(count)),
        host_type=part.host_type * count,
        host_io_domain=np.where(own >= 0, own + np.arange(count) * len(used), -1).astype(np.intp),
        updated_at=np.repeat(part.updated_at, count), cores=np.repeat(part.cores, count),
        threads=np.repeat(part.threads, count),
        contention=np.repeat(part.felt, count, axis=0),
        uuids=tuple(part.uuids[row] for row in rows), host=host.astype(np.intp),
        io_domain=np.where(stays >= 0, stays + host * len(used), -1).astype(np.intp),
        profiles=part.profiles[rows], max_slowdown=part.max_slowdown[rows],
        min_iops_ratio=part.min_iops_ratio[rows], own_wait=part.own_wait[rows],
        vcpus=part.vcpus[rows], storage_wait=part.storage_wait[rows],
        cpu_weight=part.cpu_weight[rows],
        io_domains=tuple(_named(part.io_domains[domain], place) for place in range(count)
                         for domain in used), rate_elsewhere=rate)


def pools(part: cluster_module.ClusterState,
          known: Mapping[str, queues.Pool]) -> dict[str, queues.Pool]:
    """Return by name what is known of the storage backends that :func:`copies` have.

    :param known: by name, of those of ``part``
    """
    return {_named(name, place): known[name] for place in range(len(part.uuids))
            for name in part.io_domains if name in known}


def _named(backend: str, place: int) -> str:
    return f'{backend}-{place}'
