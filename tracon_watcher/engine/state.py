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

"""Brings inventory and telemetry together: the state of the cloud that judgements are made of."""

from __future__ import annotations

import dataclasses
import math
from typing import Callable, Mapping

import numpy as np

from tracon_watcher.characteristics import COUNT, FloatArray
from tracon_watcher.inventory import cloud
from tracon_watcher.inventory import vm_states
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer_profiles

#: Metadata of a host aggregate.
HOST_TYPE = 'tracon:host_type'
STORAGE = 'tracon:storage'
#: Of sensors (`tracon probe deploy`), which no limits hold for.
PROBE_FLAVOR = 'tracon-probe'
# A project's or an image's key says more than its flavor's when it stands for several VMs; and
# without this there may be as many keys as VMs.
_LEAST_OF_A_KIND = 2


@dataclasses.dataclass(frozen=True)
class Defaults:
    """What holds where no aggregate and no flavor says otherwise.

    :param host_type: None: hosts are of none
    :param storage: backend of ephemeral disks; ``local`` for each host's own
    """

    host_type: str | None = None
    storage: str = cluster.LOCAL
    limits: limits_module.Limits = limits_module.NONE


@dataclasses.dataclass(frozen=True)
class Demand:
    """What telemetry says of n VMs.

    :param profiles: (n, 4) uncontended demand by uuid's row, NaN where unknown
    :param deviation: (n, 4) standard deviations of what is not known of it
    :param updated_at: (n,) seconds since the epoch of each VM's latest sample
    :param rows: row by uuid; a VM that telemetry never told of has none
    :param own_wait: (n,) share of time that each waits for its own limits, NaN where unknown;
        None where all are 0
    :param storage_wait: (n,) part of its time alone that each vCPU waits for storage, NaN where
        unknown; None where all are
    """

    profiles: FloatArray
    deviation: FloatArray
    updated_at: FloatArray
    rows: Mapping[str, int]
    own_wait: FloatArray | None = None
    storage_wait: FloatArray | None = None

    def waits(self, row: int) -> float:
        """Return the share of its time that a VM waits for its own limits; 0 where unknown."""
        found = 0.0 if self.own_wait is None else float(self.own_wait[row])
        return 0.0 if math.isnan(found) else found

    def waits_for_storage(self, row: int) -> float:
        """Return the part of its time alone that each vCPU of a VM waits for storage, or NaN."""
        return math.nan if self.storage_wait is None else float(self.storage_wait[row])


NOTHING = Demand(np.empty((0, COUNT)), np.empty((0, COUNT)), np.empty(0), {})


@dataclasses.dataclass(frozen=True)
class _Rules:
    """What a host's aggregates state."""

    host_type: str | None
    storage: str
    limits: limits_module.Limits


def build(inventory: cloud.Inventory, demand: Demand, defaults: Defaults, version: int,
          now: float, report: Callable[[str, str], None],
          contention: Mapping[str, tuple[float, ...]] = {},
          patience: float = math.inf, skews: Mapping[str, float] = {}) -> cluster.ClusterState:
    """Return the state.

    :param now: seconds since the epoch
    :param patience: seconds in which a VM that runs is heard of
    :param skews: by host, seconds by which its clock is ahead
    :param contention: that is felt, by host
    :param report: called with a kind and a text for each thing that is not as it should be
    """
    inventory = _named(inventory.judged(), report)
    history = _history(inventory, demand)
    rules = {host: _rules(inventory, host, defaults, report) for host in inventory.hypervisors}
    lost = _lost(inventory, rules, report)
    reachable = [one for one in inventory.hypervisors.values() if one.reachable]
    if reachable and all(one.cores is None for one in reachable):
        report('cores', 'Nova does not tell how many cores its hosts have: they are unknown; '
                        "let the engine's user list hypervisors")
    _report_unmatched(inventory, report)
    residents: dict[str, list[cluster.Resident]] = {host: [] for host in inventory.hypervisors}
    latest = dict.fromkeys(inventory.hypervisors, 0.0)
    running: set[str] = set()
    flavors: dict[tuple[tuple[str, str], ...], limits_module.Limits] = {}
    for uuid, server in inventory.servers.items():
        row = demand.rows.get(uuid)
        if server.host not in residents or server.vm_state in vm_states.ABSENT or (
                # One that its host counts runs, whatever has failed.
                server.vm_state == vm_states.FAILED and row is None):
            continue
        # A launch has its time from the clock of its host.
        launched_at = server.launched_at and server.launched_at - skews.get(server.host, 0.0)
        if server.vm_state not in vm_states.IDLE:
            running.add(server.host)
            # All that was to be known of it at its launch was that, as when it stood still. It is
            # soon to be heard of.
            latest[server.host] = max(latest[server.host], *(
                _past(at, now) for at in (launched_at, server.resumed_at)))
        if row is not None:
            latest[server.host] = max(latest[server.host], _past(demand.updated_at[row], now))
        key = tuple(sorted(server.extra_specs.items()))
        if key not in flavors:
            flavors[key] = _limits(f'flavor {server.flavor}', server.extra_specs, report,
                                   limits_module.of_flavor)
        stated = limits_module.NONE if server.flavor == PROBE_FLAVOR else (
            flavors[key].or_else(rules[server.host].limits).or_else(defaults.limits))
        began = max(launched_at, server.resumed_at)
        overdue = began > 0.0 and not now - patience <= began <= now + assessment.AHEAD
        profile, own_wait, storage_wait = _profile(server, row, demand, history, overdue)
        residents[server.host].append(cluster.Resident(
            uuid, profile, stated, _known(_backend(server, inventory.backends), lost), own_wait,
            max(server.vcpus, 1), storage_wait, limits.cpu_weight(server.extra_specs)))
    return cluster.build([
        cluster.Host(host, tuple(vms), rules[host].host_type,
                     _known(rules[host].storage, lost),
                     # VMs that stand still report nothing; where none runs, that is all there
                     # is to know, unless Nova does not know either who is there.
                     latest[host] if host in running or not inventory.hypervisors[host].reachable
                     else now, inventory.hypervisors[host].cores,
                     inventory.hypervisors[host].threads, contention.get(host))
        for host, vms in residents.items()], history, version, now)


def _past(at: float, now: float) -> float:
    """Return when something was, by its host's clock; 0 where that is not known."""
    return min(at, now) if at <= now + assessment.AHEAD else 0.0


def _named(inventory: cloud.Inventory, report: Callable[[str, str], None]) -> cloud.Inventory:
    """Return the inventory without hosts whose names no snapshot can have; report odd ones."""
    try:
        cluster.check_case(sorted(inventory.hypervisors))
    except ValueError as error:
        report('hosts', f'Nova lists compute services: {error}; delete that of the one '
                        'that is gone')
    unfit = [name for name in inventory.hypervisors if not name or not name.isprintable()]
    for name in unfit:
        report('hosts', f'Nova has a compute service on {name!r}, which is no name of a host: it '
                        'is left out; delete that compute service')
    return inventory if not unfit else dataclasses.replace(inventory, hypervisors={
        name: one for name, one in inventory.hypervisors.items() if name not in unfit})


def _report_unmatched(inventory: cloud.Inventory, report: Callable[[str, str], None]) -> None:
    """Report what VMs refer to and no listing has; the texts do not change with each VM."""
    homeless: set[str] = set()
    strange: dict[str, str] = {}
    on_volumes: set[str] = set()
    for uuid, server in inventory.servers.items():
        if server.vm_state in vm_states.HOMELESS:
            continue
        if server.host is None:
            homeless.add(uuid)
        elif server.host not in inventory.hypervisors:
            strange[server.host] = min(uuid, strange.get(server.host, uuid))
        if not server.image and not all(
                volume in inventory.backends for volume in server.volumes):
            on_volumes.add(uuid)
    for host, uuid in strange.items():
        report('hosts', f'VM {uuid} is on host {host}, and Nova lists no compute service of that '
                        'name: VMs there are left out; see "openstack compute service list"')
    if homeless:
        report('hosts', f'VM {min(homeless)} runs, and Nova names no host of it: such VMs are '
                        'left out; see the VM\'s state in Nova')
    if on_volumes:
        report('storage', f'VM {min(on_volumes)} boots from a volume, and Cinder tells no storage '
                          'backend of it: the hosts of such VMs are unknown; let the engine\'s '
                          'user list volumes of all projects and see '
                          'volume_extension:volume_host_attribute')


def _profile(server: cloud.Server, row: int | None, demand: Demand,
             history: Mapping[str, newcomer_profiles.Profile],
             overdue: bool) -> tuple[FloatArray | None, float, float]:
    """Return what a VM demands, None where unknown, and how long it waits for its own limits, and
    for storage.

    :param overdue: it should have been heard of; when it began to run may not be known
    """
    if server.vm_state in vm_states.IDLE:
        return np.zeros(COUNT), 0.0, 0.0
    known = row is not None and not np.isnan(demand.profiles[row]).any()
    if row is None or not known and server.resumed_at > demand.updated_at[row]:
        # It is new, or has stood still for long: until its own counters speak, it does what VMs of
        # its kind do.
        expected = newcomer_profiles.expected(history, *server.kind)
        if not expected.known or overdue:
            return None, 0.0, math.nan
        return expected.mean, expected.own_wait, expected.storage_wait
    if not known:
        return None, 0.0, math.nan
    return demand.profiles[row], demand.waits(row), demand.waits_for_storage(row)


def _history(inventory: cloud.Inventory, demand: Demand) -> dict[str, newcomer_profiles.Profile]:
    known = [(row, inventory.servers[uuid].kind) for uuid, row in demand.rows.items()
             if uuid in inventory.servers
             and inventory.servers[uuid].vm_state not in vm_states.IDLE]
    rows = [row for row, _kind in known]
    return newcomer_profiles.learn_profiles(
        demand.profiles[rows], demand.deviation[rows], [kind for _row, kind in known],
        _LEAST_OF_A_KIND, np.array([demand.waits(row) for row in rows]),
        np.array([demand.waits_for_storage(row) for row in rows]))


def _backend(server: cloud.Server, backends: Mapping[str, str]) -> str | None:
    """Return the storage that a VM's requests go to; None for its host's own.

    A VM that boots from an image has its busiest disk there as a rule, whatever is attached.
    """
    if server.image:
        return None
    found = {backends.get(volume) for volume in server.volumes}
    if len(found) == 1:
        return found.pop() or cluster.UNKNOWN
    return cluster.UNKNOWN


def _lost(inventory: cloud.Inventory, rules: Mapping[str, _Rules],
          report: Callable[[str, str], None]) -> frozenset[str]:
    """Return the pools on which VMs may be that no listing has had, since their cell is silent.

    Neither how many they are is known nor what they do, so nothing is known of these pools.
    """
    unseen = inventory.unseen
    if not unseen:
        return frozenset()
    found = {rules[host].storage for host in unseen} - {cluster.LOCAL, cluster.UNKNOWN}
    for uuid, backends in inventory.strangers.items():
        if uuid not in inventory.servers:
            found |= backends
    for name in sorted(found):
        report('cells', f'storage {name}: it is not known which VMs of a cell that does not '
                        'answer use it; hosts that use it are unknown until the cell answers')
    return frozenset(found)


def _known(storage: str | None, lost: frozenset[str]) -> str | None:
    return cluster.UNKNOWN if storage in lost else storage


def _rules(inventory: cloud.Inventory, host: str, defaults: Defaults,
           report: Callable[[str, str], None]) -> _Rules:
    found = [one for one in inventory.aggregates if host in one.hosts]
    values = []
    for key, default in ((HOST_TYPE, defaults.host_type), (STORAGE, defaults.storage)):
        stated = sorted({one.metadata[key] for one in found if one.metadata.get(key)})
        if len(stated) > 1:
            report('aggregates', f'host {host}: {key} is {", ".join(stated)} in different '
                                 f'aggregates: {stated[0]} is taken; state one of them')
        values.append(stated[0] if stated else default)
    return _Rules(values[0], values[1] or cluster.LOCAL, limits_module.strictest(
        _limits(f'aggregate {one.name}', one.metadata, report) for one in found))


def _limits(where: str, metadata: Mapping[str, str], report: Callable[[str, str], None],
            read: Callable[[Mapping[str, str], list[str]], limits_module.Limits]
            = limits_module.from_metadata) -> limits_module.Limits:
    faults: list[str] = []
    found = read(metadata, faults)
    for text in faults:
        report('limits', f'{where}: {text}; it counts as unset')
    return found
