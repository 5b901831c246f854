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

"""Reconciles Watcher's model of the cluster with the snapshot."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Collection, Container, Mapping, Sequence

import numpy as np

from tracon_watcher.characteristics import COUNT
from tracon_watcher.decision_engine import inventory
from tracon_watcher.inventory import vm_states
from tracon_watcher.placement import cluster

_STILL = 'stopped'


def matched(known: cluster.ClusterState, hosts: Collection[str],
            by_hypervisor: Callable[[], Mapping[str, str]],
            ) -> tuple[cluster.ClusterState, tuple[str, ...]]:
    """Return the snapshot's cluster by the names that Nova has for hosts.

    One that was written by hand may name hosts by their hypervisors' host names, as the filter
    takes them, too.

    :param hosts: of compute services
    :param by_hypervisor: returns them by the host names of their hypervisors; asked where names
        differ
    :returns: the cluster, and those of ``hosts`` that it does not have
    """
    missing = set(hosts) - known.host_index.keys()
    if missing and not known.host_index.keys() <= set(hosts):
        services = by_hypervisor()
        names = {}
        for name in known.hosts:
            # Several hypervisors may have one service.
            if services.get(name) in missing:
                names[name] = services[name]
                missing.discard(services[name])
        known = _renamed(known, names)
    return known, tuple(sorted(missing))


def unmatched(known: cluster.ClusterState, missing: Sequence[str]) -> str:
    """Say that the snapshot does not have hosts that Nova has.

    :param missing: those, one at least
    """
    more = f' and {len(missing) - 1} more' if len(missing) > 1 else ''
    return (f'the snapshot does not have {missing[0]}{more} of Nova\'s hosts (it has '
            f'{next(iter(known.hosts), "none")}), which are unknown: write one of this cloud, and '
            'name hosts as "openstack compute service list" does')


def _renamed(known: cluster.ClusterState, names: Mapping[str, str]) -> cluster.ClusterState:
    local = {f'{cluster.LOCAL}:{old}': f'{cluster.LOCAL}:{new}' for old, new in names.items()}
    return dataclasses.replace(
        known, hosts=tuple(names.get(name, name) for name in known.hosts),
        io_domains=tuple(local.get(name, name) for name in known.io_domains))


def reconcile(known: cluster.ClusterState, model: Any,
              found: inventory.Inventory) -> cluster.ClusterState:
    """Return the snapshot's cluster with the VMs where they are now.

    Watcher's model says where VMs are; for hosts outside of the audit's scope, which it lacks,
    Nova does, and so for a VM that left the host Watcher's model has it on. A VM that the snapshot
    does not have is unknown, which makes its host unknown. One that exists no longer is dropped,
    as are hosts, VMs that are being built, and those in state error that the snapshot does not
    have; one in a cell that does not answer stays where it was. Hosts whose service stands for
    several machines are left out with their VMs.

    One that is on its way to another host counts there, so that nothing is done against harm that
    ends by itself. Where that host is not known, and of one that is about to stand still, its
    host is as if it stood still already.

    :param known: the snapshot's state
    :param model: Watcher's model of the cluster
    """
    residents: dict[str, list[cluster.Resident]] = {
        node.hostname: [] for node in model.get_all_compute_nodes().values()
        if node.hostname not in found.several}
    modelled: dict[str, tuple[str, str]] = {}
    for node in model.get_all_compute_nodes().values():
        for instance in model.get_node_instances(node):
            modelled[instance.uuid] = (node.hostname, instance.state)
    for host in known.hosts:
        if host in found.services and host not in found.several:
            residents.setdefault(host, [])
    for uuid, server in found.servers.items():
        if server.host is not None:
            modelled[uuid] = _soon(server, found, residents)
    unreachable = {one.host for one in found.services.values() if not one.reachable}
    for uuid, (host, state) in modelled.items():
        if host in residents and _runs(known, uuid, state) and (
                uuid in found.servers or host in unreachable):
            residents[host].append(_resident(known, uuid, state))
    return cluster.build([_host(known, host, vms) for host, vms in residents.items()],
                         known.history, known.version, known.generated_at)


def _soon(server: inventory.Server, found: inventory.Inventory,
          hosts: Container[str]) -> tuple[str, str]:
    """Return the host and the state of a VM when what Nova does with it now has ended."""
    assert server.host is not None
    if server.task_state in vm_states.ENDING:
        return server.host, _STILL
    # Without a task its migration has ended, whatever its record says.
    if server.task_state and server.uuid in found.leaving:
        host = found.leaving[server.uuid]
        return (host, server.vm_state) if host in hosts else (server.host, _STILL)
    return server.host, server.vm_state


def _runs(known: cluster.ClusterState, uuid: str, state: str) -> bool:
    # Of those that have failed, the snapshot has what ran until then.
    return state not in vm_states.ABSENT and (
        state != vm_states.FAILED or uuid in known.resident_index)


def _resident(known: cluster.ClusterState, uuid: str, state: str) -> cluster.Resident:
    row = known.resident_index.get(uuid)
    if state in vm_states.IDLE:
        profile = np.zeros(COUNT)
    elif row is None or np.isnan(known.profiles[row]).any():
        profile = None
    else:
        profile = known.profiles[row]
    if row is None:
        return cluster.Resident(uuid, profile)
    return cluster.Resident(uuid, profile, known.resident_limits(row), _pool(known, row),
                            0.0 if state in vm_states.IDLE else float(known.own_wait[row]),
                            int(known.vcpus[row]),
                            0.0 if state in vm_states.IDLE else float(known.storage_wait[row]),
                            float(known.cpu_weight[row]))


def _pool(known: cluster.ClusterState, row: int) -> str | None:
    """Return a VM's storage backend where it is not its host's own."""
    domain = int(known.io_domain[row])
    if domain == known.host_io_domain[known.host[row]]:
        return None
    if domain < 0:
        return cluster.UNKNOWN
    name = known.io_domains[domain]
    return None if name.startswith(f'{cluster.LOCAL}:') else name


def _host(known: cluster.ClusterState, name: str,
          residents: list[cluster.Resident]) -> cluster.Host:
    index = known.host_index.get(name)
    if index is None:
        return cluster.Host(name, tuple(residents), None, None)
    domain = int(known.host_io_domain[index])
    storage = None if domain < 0 else known.io_domains[domain]
    if storage == f'{cluster.LOCAL}:{name}':
        storage = cluster.LOCAL
    return cluster.Host(name, tuple(residents), known.host_type[index], storage,
                        float(known.updated_at[index]),
                        None if np.isnan(known.cores[index]) else int(known.cores[index]),
                        int(known.threads[index]))
