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

"""Who runs where, what tenants and operators stated of it, and on which storage it is.

The number of requests depends on nothing but the size of a page: servers, compute services,
hypervisors, aggregates and volumes, one kind of request each. None of them makes Nova ask a
compute host; a listing of hypervisors does, host after host, in microversion 2.88 and later,
which do not tell the number of its cores either.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from typing import Any, Callable, Mapping

from oslo_utils import timeutils

from tracon_watcher import hypervisor_types
from tracon_watcher.inventory import listing
from tracon_watcher.inventory import vm_states
from tracon_watcher.inventory import volume_limits as limits_module

_USER = "the engine's user"
_QUOTA = 'quota:'
#: Of a core: POWER has eight.
_MOST_THREADS = 8
_NONE: Mapping[str, str] = {}


@dataclasses.dataclass(frozen=True)
class Server:
    """A VM as Nova has it.

    :param host: of its compute service, None where it has none
    :param flavor: the flavor's name
    :param extra_specs: of its flavor, as they were when it got it
    :param image: id, '' for one that boots from a volume
    :param volumes: ids of those attached
    :param local_disks: how many disks it has that are no volumes: root, ephemeral and swap
    :param launched_at: seconds since the epoch, 0 where Nova does not say
    :param resumed_at: when it was seen to run after it had stood still; 0 where that was not seen
    """

    uuid: str
    name: str
    project: str
    host: str | None
    flavor: str
    extra_specs: Mapping[str, str]
    image: str
    vm_state: str
    volumes: tuple[str, ...] = ()
    vcpus: int = 1
    local_disks: int = 1
    launched_at: float = 0.0
    resumed_at: float = 0.0

    @property
    def kind(self) -> tuple[str, str, str]:
        """What a newcomer's history is sought by: (project, flavor, image)."""
        return self.project, self.flavor, self.image

    @functools.cached_property
    def quotas(self) -> Mapping[str, str]:
        """The extra specs of its flavor that limit it; most have none."""
        return {name: value for name, value in self.extra_specs.items()
                if name.startswith(_QUOTA)} or _NONE


@dataclasses.dataclass(frozen=True)
class Hypervisor:
    """A compute host.

    :param host: of its compute service
    :param reachable: whether the cell it belongs to answers; nothing else is known where not
    :param cores: threads of its CPU that VMs share, None where Nova does not tell
    :param threads: of each core of its CPU
    :param type: Nova's ``hypervisor_type``, None where Nova does not tell
    """

    host: str
    enabled: bool
    up: bool
    reachable: bool = True
    cores: int | None = None
    threads: int = 1
    type: str | None = None


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """A host aggregate."""

    name: str
    hosts: frozenset[str]
    metadata: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Inventory:
    """All of it, at one time.

    :param servers: by uuid
    :param hypervisors: by host
    :param backends: by id of a volume, the name of its storage backend
    :param began_at: seconds since the epoch when the first service was asked
    :param volume_limits: by id of a volume, limits by their names in
        :data:`.volume_limits.NAMES`; of volumes that are not there they are unknown. None where
        limits of volumes do not count: there are none, or they are not told
    :param strangers: by uuid of a VM that has volumes and is not listed, their backends
    :param remembered: hosts of cells that do not answer whose VMs are here all the same, since an
        earlier listing had them
    """

    servers: Mapping[str, Server]
    hypervisors: Mapping[str, Hypervisor]
    aggregates: tuple[Aggregate, ...]
    backends: Mapping[str, str]
    began_at: float
    volume_limits: Mapping[str, Mapping[str, float]] | None = None
    strangers: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    remembered: frozenset[str] = frozenset()

    @property
    def unreachable(self) -> frozenset[str]:
        """The hosts of cells that do not answer: what runs there is not in the listing."""
        return frozenset(one.host for one in self.hypervisors.values() if not one.reachable)

    @property
    def unseen(self) -> frozenset[str]:
        """The hosts of which it is not known what runs there, nor has been known."""
        return self.unreachable - self.remembered

    def judged(self) -> Inventory:
        """Return it without the hosts whose service stands for several machines, and their VMs."""
        several = hypervisor_types.several_machines(
            {host: one.type for host, one in self.hypervisors.items()})
        return self if not several else dataclasses.replace(
            self, hypervisors={host: one for host, one in self.hypervisors.items()
                               if host not in several},
            servers={uuid: one for uuid, one in self.servers.items() if one.host not in several})


@dataclasses.dataclass(frozen=True)
class Volumes:
    """What storage one VM uses.

    :param attached: ids of its volumes
    :param backends: by id of a volume, the name of its storage backend, as far as it has one
    """

    attached: tuple[str, ...]
    backends: Mapping[str, str]


def collect(connection: Any, clock: Callable[[], float] = time.time,
            volume_limits: limits_module.VolumeLimits | None = None) -> Inventory:
    """Ask Nova and, where there is one, Cinder.

    :param connection: ``openstack.connection.Connection``
    :param volume_limits: learns what volumes are limited to; None: it is not asked for
    :raises tracon_watcher.inventory.listing.CloudUnavailable: when one of them does not answer
    """
    began = clock()
    nova = listing.Service('Nova', connection.compute, listing.MICROVERSION, _USER)
    before = _hypervisors(nova)
    details = hypervisor_details(nova)
    # Of a cell that is down, Nova lists no servers, or records with hardly anything in them.
    servers = {one.uuid: one for one in (
        server(listing.shown(entry, _USER)) for entry in nova.pages(
            '/servers/detail', 'servers', {'all_tenants': 'True'})
        if not listing.is_partial(entry))}
    # A cell may have come back, or gone, while servers were listed.
    hypervisors = {
        host: dataclasses.replace(one if before.get(host, one).reachable else before[host],
                                  **details.get(host, {}))
        for host, one in _hypervisors(nova).items()}
    _check_hosts(servers, hypervisors)
    aggregates = tuple(
        Aggregate(entry['name'], frozenset(entry['hosts']), entry['metadata'])
        for entry in nova.pages('/os-aggregates', 'aggregates', {}, limited=False))
    cinder = listing.Service('Cinder', connection.block_storage, None, _USER)
    volumes, strangers = _volumes(cinder, servers)
    backends = {one.id: one.host for one in volumes or () if one.host}
    limits = (None if volume_limits is None or volumes is None
              else volume_limits.collect(cinder, volumes))
    return Inventory(servers, hypervisors, aggregates, backends, began, limits, strangers)


def _check_hosts(servers: Mapping[str, Server], hypervisors: Mapping[str, Hypervisor]) -> None:
    """See that VMs are on hosts that there are: were they nowhere, all hosts would seem empty.

    :raises tracon_watcher.inventory.listing.CloudUnavailable: when no VM is on any
    """
    settled = [one for one in servers.values() if one.vm_state not in vm_states.HOMELESS]
    if not settled or any(one.host in hypervisors for one in settled):
        return
    one = min(settled, key=lambda each: each.uuid)
    services = ', '.join(sorted(hypervisors)[:1]) or 'none'
    raise listing.CloudUnavailable(
        f'Nova: GET /servers/detail: no VM is on a host that has a compute service: VM {one.uuid} '
        f'is on {one.host}, compute services are {services}: see "openstack compute service list" '
        f'and whether {_USER} may list what it needs')


def server(entry: Mapping[str, Any]) -> Server:
    """Return a server out of Nova's listing."""
    flavor = entry['flavor']
    return Server(
        entry['id'], entry['name'], entry['tenant_id'], entry.get('OS-EXT-SRV-ATTR:host'),
        flavor.get('original_name') or flavor.get('id', ''), flavor.get('extra_specs', {}),
        (entry.get('image') or {}).get('id', ''), entry['OS-EXT-STS:vm_state'],
        tuple(one['id'] for one in entry.get('os-extended-volumes:volumes_attached', ())),
        flavor.get('vcpus', 1), local_disks(bool(entry.get('image')), flavor.get('ephemeral'),
                                            flavor.get('swap')),
        launched_at=seconds(entry.get('OS-SRV-USG:launched_at')))


def local_disks(image: bool, ephemeral: Any, swap: Any) -> int:
    """Return how many disks a server has that are no volumes.

    :param image: whether it boots from one
    :param ephemeral: size of its flavor's ephemeral disk, and ``swap``; none for 0, '' and None
    """
    return bool(image) + bool(ephemeral) + bool(swap)


def seconds(text: Any) -> float:
    """Return one of Nova's times in seconds since the epoch, 0 for none."""
    try:
        return float(timeutils.parse_isotime(text).timestamp()) if text else 0.0
    except (TypeError, ValueError):
        return 0.0


def volumes_of(connection: Any, uuid: str, known: Mapping[str, str]) -> Volumes | None:
    """Ask Nova and Cinder for the volumes of one VM.

    :param known: by id of a volume, the backend where it need not be asked for
    :returns: None where there is no such VM, or its cell is down
    :raises tracon_watcher.inventory.listing.CloudUnavailable: when one of them does not answer
    """
    nova = listing.Service('Nova', connection.compute, listing.MICROVERSION, _USER)
    cinder = listing.Service('Cinder', connection.block_storage, None, _USER)
    try:
        entry = nova.get(f'/servers/{uuid}', 'server', {})['server']
    except listing.NotFound:
        return None
    if listing.is_partial(entry):
        return None
    attached = server(entry).volumes
    backends: dict[str, str | None] = {}
    for volume in attached:
        try:
            backends[volume] = known.get(volume) or cinder.get(
                f'/volumes/{volume}', 'volume', {})['volume'].get('os-vol-host-attr:host')
        except (listing.NotFound, listing.NoEndpoint):
            continue
    return Volumes(attached, {volume: host for volume, host in backends.items() if host})


def _hypervisors(nova: listing.Service) -> dict[str, Hypervisor]:
    return {entry['host']: _hypervisor(entry) for entry in nova.pages(
        '/os-services', 'services', {'binary': 'nova-compute'}, limited=False)}


def _hypervisor(entry: Mapping[str, Any]) -> Hypervisor:
    # A cell that is down shows in the service's status, and leaves out its state.
    reachable = entry.get('state') is not None
    return Hypervisor(entry['host'], entry.get('status') == 'enabled',
                      entry.get('state') == 'up', reachable)


def hypervisor_details(nova: listing.Service) -> dict[str, dict[str, Any]]:
    """Return by host its ``type``, its ``cores`` and their ``threads``, as far as Nova tells them.

    Nova gives no such listing while a cell is down, nor to a user without the right to it.
    Everything else is known without.
    """
    nova = dataclasses.replace(nova, microversion=listing.HYPERVISORS)
    found: dict[str, dict[str, Any]] = {}
    try:
        for entry in nova.pages('/os-hypervisors/detail', 'hypervisors', {}):
            host, count = (entry.get('service') or {}).get('host'), entry.get('vcpus')
            if not host:
                continue
            found[host] = {'type': entry.get('hypervisor_type')}
            if isinstance(count, int) and count > 0:
                found[host] |= {'cores': count, 'threads': _threads(entry.get('cpu_info'))}
    except listing.CloudUnavailable:
        return {}
    return found


def _threads(cpu_info: Any) -> int:
    """Return the threads of a core, 1 where a driver does not tell: VMware's gives no topology."""
    topology = cpu_info.get('topology') if isinstance(cpu_info, dict) else None
    count = topology.get('threads') if isinstance(topology, dict) else None
    return count if isinstance(count, int) and 1 <= count <= _MOST_THREADS else 1


def _volumes(cinder: listing.Service, servers: Mapping[str, Server]
             ) -> tuple[list[limits_module.Volume] | None, dict[str, frozenset[str]]]:
    """Return all volumes, and the backends of those of VMs that are not listed, by the VM's uuid.

    None where there is no Cinder.
    """
    found: list[limits_module.Volume] = []
    strangers: dict[str, frozenset[str]] = {}
    try:
        for one in cinder.pages('/volumes/detail', 'volumes', {'all_tenants': 'True'}):
            host = one.get('os-vol-host-attr:host')
            # Of each entry next to nothing is kept: there may be as many as VMs.
            found.append(limits_module.Volume(one['id'], host, one.get('volume_type'),
                                              one.get('size') or 0))
            for attachment in one.get('attachments') or () if host else ():
                uuid = attachment.get('server_id')
                if uuid and uuid not in servers:
                    strangers[uuid] = strangers.get(uuid, frozenset()) | {host}
    except listing.NoEndpoint:
        return None, {}
    return found, strangers
