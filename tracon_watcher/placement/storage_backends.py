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

"""Storage backends that hosts share or have for themselves."""

from __future__ import annotations

import functools

import numpy as np

from tracon_watcher.characteristics import BoolArray
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import newcomer_profiles


def is_local(cluster: cluster_module.ClusterState) -> BoolArray:
    """Return, (d + 1,), which storage backends are a host's own disk; False for index -1."""
    return _is_local(cluster.io_domains)


@functools.lru_cache(maxsize=8)
def _is_local(names: tuple[str, ...]) -> BoolArray:
    # Asked for again and again while a plan is made, and there may be one for each host.
    prefix = f'{cluster_module.LOCAL}:'
    found = np.array([*(name.startswith(prefix) for name in names), False], dtype=bool)
    found.flags.writeable = False
    return found


def pool_of(cluster: cluster_module.ClusterState, row: int | None,
            part: cluster_module.ClusterState | None = None) -> int:
    """Return the index of the pool on which a VM's I/O is felt; -1 for none, or an own disk.

    :param row: of the VM in ``cluster``; None for one that is not there
    :param part: in which the index is meant, where that has other storage backends
    """
    domain = -1 if row is None else int(cluster.io_domain[row])
    if domain < 0 or is_local(cluster)[domain]:
        return -1
    if part is None or part.io_domains is cluster.io_domains:
        return domain
    name = cluster.io_domains[domain]
    return part.io_domains.index(name) if name in part.io_domains else -1


def is_one_pool(cluster: cluster_module.ClusterState) -> bool:
    """Return whether all hosts keep their VMs' disks on one and the same pool.

    Then a volume is on it as well, as far as anybody can tell before it is attached.
    """
    domains = cluster.host_io_domain
    return bool(len(domains)) and bool((domains == domains[0]).all()) and (
        domains[0] >= 0 and not is_local(cluster)[domains[0]])


def felt(cluster: cluster_module.ClusterState, profile: newcomer_profiles.Profile,
         on_volume: bool) -> newcomer_profiles.Profile:
    """Return a newcomer's demand as it is felt where it is placed.

    The I/O of one that boots from a volume is felt on the volume's pool, whichever host it comes
    to. A request does not say which pool that is, so it shares the CPU alone with the VMs that it
    comes to, as the next snapshot will have it, unless there is only one pool.

    :param on_volume: whether it boots from a volume
    """
    if on_volume and profile.known and not is_one_pool(cluster):
        return profile.set_apart()
    return profile


def brought(cluster: cluster_module.ClusterState, uuid: str,
            profile: newcomer_profiles.Profile) -> str | None:
    """Return the storage backend that a VM brings along to a host; None: it takes the host's own.

    Of one that the state shows it is the pool it is on. One that is on a volume, of which nothing
    else is known, has one to itself.
    """
    row = cluster.resident_index.get(uuid)
    if row is not None and cluster.io_domain[row] < 0:
        return cluster_module.UNKNOWN
    pool = pool_of(cluster, row)
    if pool >= 0:
        return cluster.io_domains[pool]
    return f'volume:{uuid}' if profile.apart else None


def reachable(cluster: cluster_module.ClusterState, row: int) -> BoolArray:
    """Return, (h,), on which hosts the VM in ``row`` finds storage of the kind it has."""
    local = is_local(cluster)
    domain = int(cluster.io_domain[row])
    if local[domain]:
        return np.asarray(local[cluster.host_io_domain])
    return np.asarray((cluster.host_io_domain == domain) & (domain >= 0))
