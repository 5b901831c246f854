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

"""Builds the constraints on moves from the inventory."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Collection, Mapping

from oslo_utils import strutils
from oslo_utils import timeutils

from tracon_watcher.decision_engine import inventory
from tracon_watcher.decision_engine import records
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import cooldown
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement import preemption
from tracon_watcher.placement import storage_backends

_POLICIES = frozenset(one.value for one in placement_constraints.GroupPolicy)
_PINNING = ('dedicated', 'mixed')
#: Metadata of a sensor, as `tracon probe deploy` makes it.
PROBE = 'tracon:probe'
#: Extra specs, and image properties, that tie a VM to one host's devices whatever their value.
_DEVICE_SPECS = ('pci_passthrough:alias', 'accel:device_profile', 'hw:pmem')
#: Namespaces of extra specs that ask nothing of a host.
_UNDEMANDING = frozenset((limits.CLASS.partition(':')[0], 'quota', 'hw_rng', 'hw_video'))
#: Requests that an audit serves at most, the latest ones.
_MOST_REQUESTS = 20
_DEVICE_CLASSES = ('VGPU', 'PCPU', 'PCI_DEVICE', 'SRIOV_NET_VF', 'FPGA', 'PGPU')


@dataclasses.dataclass(frozen=True)
class ConstraintParameters:
    """What the audit's parameters say of who must stay.

    :param excluded_projects: ids of projects whose VMs stay
    :param opt_out_key: a VM with this key in its metadata stays, unless it says false
    :param cooldown_seconds: after a migration, regardless of who ordered it; doubled by each
        further one within a day, up to six hours
    :param removes_background: whether background VMs may be removed to end a breach
    :param request_age_seconds: for how long background VMs may be removed for a request that found
        no host; 0: they are not
    """

    excluded_projects: frozenset[str]
    opt_out_key: str
    cooldown_seconds: float
    removes_background: bool = False
    request_age_seconds: float = 0.0


def build(found: inventory.Inventory, model: Any, wishes: ConstraintParameters,
          hosts: Collection[str],
          recorded: records.Records = records.Records()) -> placement_constraints.Constraints:
    """Collect what forbids VMs to move.

    :param recorded: what Watcher's database says
    :param model: Watcher's model of the cluster
    :param hosts: names of all hosts that the plan knows of, those outside of the scope included
    """
    nodes = {node.hostname: node for node in model.get_all_compute_nodes().values()}
    immovable: dict[str, str] = {}
    needs: dict[str, placement_constraints.Room] = {}
    free: dict[str, placement_constraints.Room] = {}
    closed = {host: why for host, why in (
        (service.host, _closed(service)) for service in found.services.values()) if why}
    for host, node in nodes.items():
        free[host] = _free(model, node, found)
        service = found.services.get(host)
        if service is None:
            closed[host] = 'Nova lists no compute service for it'
        for instance in model.get_node_instances(node):
            needs[instance.uuid] = (instance.vcpus, instance.memory, instance.disk)
            why = obstacle(found, instance.uuid, host, wishes)
            if why is None and instance.watcher_exclude:
                why = 'is excluded by the scope of the audit'
            if why is None and host in found.several:
                why = f'the compute service {host} stands for several machines'
            if why is None and (service is None or not service.up):
                why = f'the compute service on {host} does not answer'
            if why is None and instance.uuid in recorded.vms:
                why = f'action plan {recorded.vms[instance.uuid]}, which is under way, acts on it'
            if why is not None:
                immovable[instance.uuid] = why
    for host, uuid in found.arriving.items():
        # What this host will be like, and whether a group still holds there, is not known yet.
        closed.setdefault(host, f'VM {uuid} is on its way to it')
    for uuid in found.leaving:
        server = found.servers.get(uuid)
        if server is not None and server.host is not None and server.task_state:
            # It counts there no longer, and stays if its migration fails.
            closed.setdefault(server.host, f'VM {uuid} is on its way from it')
    for group in found.groups:
        if len(group.members) > 1 and group.policy not in _POLICIES:
            for uuid in group.members:
                immovable.setdefault(uuid, f'is in server group {group.name}, whose policy '
                                           f'{group.policy} is not known to this release')
    for host, plan in recorded.hosts.items():
        if host in nodes:
            closed.setdefault(host, f'action plan {plan}, which is under way, acts on it')
    for uuid in found.servers.keys() - needs.keys():
        immovable[uuid] = 'is not in Watcher\'s model: outside of the scope, or too new'
    for host in found.services:
        if host not in nodes:
            closed[host] = 'is outside of the scope of the audit'
    full = {host: f'Placement names no memory left on its node {node.uuid}: the host is full, or '
                  'Placement does not know the node' for host, node in nodes.items()
            if found.room is not None and node.uuid not in found.room and host not in closed}
    closed.update(full)
    return placement_constraints.Constraints(
        immovable, closed, needs, free, tuple(
            _group(one, found, hosts) for one in found.groups
            if len(one.members) > 1 and one.policy in _POLICIES),
        {service.host: service.zone for service in found.services.values()},
        {one.uuid: one.pinned_zone for one in found.servers.values() if one.pinned_zone},
        _cooldowns(found, recorded, wishes),
        {host: (node.vcpus, node.memory, node.disk) for host, node in nodes.items()},
        # Nova's own word counts, and not that of a snapshot alone.
        frozenset(uuid for uuid, server in found.servers.items() if wishes.removes_background
                  and limits.of_flavor(server.extra_specs).background), frozenset(full))


def requests(found: inventory.Inventory, state: cluster_module.ClusterState,
             wishes: ConstraintParameters, recorded: records.Records,
             now: float) -> tuple[preemption.Request, ...]:
    """Return the requests for which background VMs may be removed, the oldest first.

    They are of the foreground, found no host a short time ago, and ask nothing of a host that
    cannot be judged here. Each of them counts in one plan with removals at most. A later VM of the
    same project and flavor that has a host is taken for the retry of one of them.

    :param state: with the profiles of earlier VMs
    :param now: seconds since the epoch
    """
    if not (wishes.request_age_seconds and found.failed_builds):
        return ()
    grouped = frozenset().union(*(group.members for group in found.groups
                                  if not group.policy.startswith('soft')))
    placed = sorted((one.created, one.project, one.flavor) for one in found.servers.values()
                    if one.host and one.created)
    chosen = []
    for build in sorted(found.failed_builds, key=lambda one: (one.failed_at, one.server.uuid)):
        server, failed_at = build.server, timeutils.parse_isotime(build.failed_at).timestamp()
        properties = server.image_properties or {}
        stated = limits.of_flavor(server.extra_specs)
        if (stated.background or failed_at <= recorded.preempted_at
                or not -assessment.AHEAD <= now - failed_at <= wishes.request_age_seconds
                or server.uuid in grouped or PROBE in server.metadata
                or any(key.partition(':')[0] not in _UNDEMANDING for key in server.extra_specs)
                or tied(server.extra_specs, properties)):
            continue
        served = next((one for one in placed if one[0] > build.failed_at
                       and one[1:] == (server.project, server.flavor)), None)
        if served is not None:
            placed.remove(served)
            continue
        profile = dataclasses.replace(
            newcomer_profiles.expected(state.history, server.project, server.flavor, build.image),
            vcpus=int(build.need[0]), cpu_weight=limits.cpu_weight(server.extra_specs))
        chosen.append(preemption.Request(
            server.uuid, build.need, storage_backends.felt(state, profile, not build.image),
            stated, server.pinned_zone))
    return tuple(chosen[-_MOST_REQUESTS:])


def _cooldowns(found: inventory.Inventory, recorded: records.Records,
               wishes: ConstraintParameters) -> dict[str, float]:
    """Return until when VMs stay where they are, seconds since the epoch, by uuid.

    Nova refuses some migrations without a record; Watcher has one.
    """
    until = {}
    for uuid in found.moved_at.keys() | recorded.failed.keys():
        failed = recorded.failed.get(uuid, ())
        last = max(found.moved_at.get(uuid, 0.0), *failed, 0.0)
        # One that Nova began and that failed is in both records, and counts twice.
        moves = found.moves.get(uuid, int(uuid in found.moved_at)) + len(failed)
        until[uuid] = last + cooldown.length(moves, wishes.cooldown_seconds)
    return until


def _free(model: Any, node: Any, found: inventory.Inventory) -> placement_constraints.Room:
    """Return what is left of a host, by Watcher's count and by Placement's."""
    counted = model.get_node_free_resources(node)
    left = (counted['vcpu'], counted['memory'], counted['disk'])
    if found.room is None:
        return left
    vcpus, memory, disk = (
        min(pair) for pair in zip(left, found.room.get(node.uuid, (0.0, 0.0, math.inf))))
    return vcpus, memory, disk


def obstacle(found: inventory.Inventory, uuid: str, host: str,
             wishes: ConstraintParameters) -> str | None:
    """Return why a VM must stay where it is, or None.

    :param host: where Watcher's model has it
    """
    server = found.servers.get(uuid)
    if server is None:
        return 'Nova does not list it; it may have been deleted'
    if server.host != host:
        return f'Nova has it on {server.host}; Watcher\'s model is out of date'
    if server.vm_state != 'active':
        return f'is {server.vm_state}, not active'
    if server.task_state:
        return f'is busy: task state {server.task_state}'
    if server.locked:
        return 'is locked'
    if server.project in wishes.excluded_projects:
        return f'its project {server.project} is excluded'
    if PROBE in server.metadata:
        return f'is a sensor, of this host alone: its metadata has {PROBE}'
    if wishes.opt_out_key in server.metadata and opted_out(server.metadata[wishes.opt_out_key]):
        return (f'its metadata says {wishes.opt_out_key}='
                f'{server.metadata[wishes.opt_out_key]}')
    if uuid in found.direct_ports:
        return f'has a network port of type {found.direct_ports[uuid]}'
    if server.image_properties is None:
        return ('the properties of its image, or of that of the volume that it boots from, are '
                'not known')
    return tied(server.extra_specs, server.image_properties)


def opted_out(value: str) -> bool:
    """Say whether a metadata value opts out: everything does but a plain no."""
    return bool(strutils.bool_from_string(value, default=True))


def tied(extra_specs: Mapping[str, str], properties: Mapping[str, Any]) -> str | None:
    """Return what ties a VM to its host's CPUs or devices, or None."""
    for name, value in (('extra spec hw:cpu_policy', extra_specs.get('hw:cpu_policy')),
                        ('image property hw_cpu_policy', properties.get('hw_cpu_policy'))):
        if value in _PINNING:
            return f'is pinned: {name}={value}'
    for key, value in extra_specs.items():
        if key in _DEVICE_SPECS:
            return f'has a device of its host: extra spec {key}={value}'
        prefix, _colon, resource = key.partition(':')
        if prefix.startswith('resources') and resource in _DEVICE_CLASSES:
            what = 'is pinned' if resource == 'PCPU' else 'has a device of its host'
            return f'{what}: extra spec {key}={value}'
        if prefix.startswith('resources') and resource.startswith('CUSTOM_'):
            # Nova may call virtual GPUs, persistent memory and PCI devices so; its API does not
            # tell which of them are none.
            return f'may have a device of its host: extra spec {key}={value}'
    for name, found in (('extra spec hw:tpm_version', extra_specs.get('hw:tpm_version')),
                        ('image property hw_tpm_version', properties.get('hw_tpm_version'))):
        security = extra_specs.get('hw:tpm_secret_security') or 'user'
        if found and security != 'host':
            return (f'has a virtual TPM, which does not migrate with '
                    f'hw:tpm_secret_security={security}: {name}={found}')
    for name, value in (('hw:mem_encryption', extra_specs.get('hw:mem_encryption')),
                        ('hw_mem_encryption', properties.get('hw_mem_encryption'))):
        if value is not None and strutils.bool_from_string(value):
            return f'has encrypted memory, which does not migrate: {name}={value}'
    return None


def _closed(service: inventory.Service) -> str | None:
    if not service.up:
        return 'its compute service does not answer'
    if not service.enabled:
        return f'its compute service is disabled: {service.disabled_reason or "no reason given"}'
    return None


def _group(one: inventory.ServerGroup, found: inventory.Inventory,
           hosts: Collection[str]) -> placement_constraints.Group:
    placed = [found.servers[uuid].host for uuid in one.members if uuid in found.servers]
    return placement_constraints.Group(
        one.name, placement_constraints.GroupPolicy(one.policy), one.members, one.maximum_per_host,
        sum(1 for host in placed if host is not None and host not in hosts))
