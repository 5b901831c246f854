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

"""What Watcher's model of the cluster lacks, asked of Nova, Placement and Neutron in bulk.

The number of requests depends on nothing but the size of a page: one kind each for servers,
server groups, compute services, hypervisors, migrations, room, network ports and volumes. Whether
a VM is pinned comes from its flavor's extra specs and its image's properties, both part of the
list of servers from microversion 2.98 on. Of a VM that boots from a volume, Cinder has the
properties.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import math
from typing import Any, Iterable, Iterator, Mapping

from oslo_log import log
from oslo_utils import timeutils

from tracon_watcher import hypervisor_types
from tracon_watcher.inventory import cloud
from tracon_watcher.inventory import listing
from tracon_watcher.placement import placement_constraints

_USER = 'Watcher\'s user'
#: From which on Placement tells of all resources of a host, not of those asked for alone.
PLACEMENT_MICROVERSION = '1.29'
#: Seconds that a migration takes at most; older ones under way have been forgotten by somebody.
LONGEST_MIGRATION = 86400.0
#: What Nova calls a migration after which the VM will be on another host than it is on now.
_UNDER_WAY = frozenset(('accepted', 'queued', 'preparing', 'pre-migrating', 'migrating', 'running',
                        'post-migrating'))
#: The same, back to where it came from.
_GOING_BACK = 'reverting'
_ORDINARY, _UNTOLD = 'normal', 'unknown, since Neutron does not tell it to Watcher\'s user'
_RESOURCES = ('VCPU', 'MEMORY_MB', 'DISK_GB')
#: How the text of Nova's error begins where it found no host.
_NO_HOST = 'No valid host was found'
#: Properties of images that keep VMs from migrating.
PROPERTIES = ('hw_cpu_policy', 'hw_mem_encryption', 'hw_tpm_version')
LOG = log.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Server:
    """What Nova says of a VM.

    :param host: of its compute service, None where it has none
    :param extra_specs: of its flavor, as they were when it got it
    :param image_properties: of its image, or of the one that its boot volume was made of; None
        where it could not be found out
    :param pinned_zone: the availability zone it was requested for, None for any
    :param flavor: its name
    :param created: when it was requested, as Nova writes it
    """

    uuid: str
    name: str
    project: str
    host: str | None
    vm_state: str
    task_state: str | None
    locked: bool
    metadata: Mapping[str, str]
    extra_specs: Mapping[str, str]
    image_properties: Mapping[str, Any] | None
    pinned_zone: str | None
    flavor: str = ''
    created: str = ''


@dataclasses.dataclass(frozen=True)
class FailedBuild:
    """A VM that Nova found no host for, and that has not been deleted yet.

    :param failed_at: as Nova writes it
    :param image: '' for one that boots from a volume
    """

    server: Server
    failed_at: str
    image: str
    need: placement_constraints.Room


@dataclasses.dataclass(frozen=True)
class ServerGroup:
    """A server group as Nova lists it."""

    name: str
    policy: str
    maximum_per_host: int
    members: frozenset[str]


@dataclasses.dataclass(frozen=True)
class Service:
    """The compute service of a host.

    :param reachable: whether the cell it belongs to answers; nothing else is known where not
    """

    host: str
    enabled: bool
    up: bool
    zone: str
    disabled_reason: str | None
    reachable: bool = True


@dataclasses.dataclass(frozen=True)
class Inventory:
    """All that was asked.

    :param servers: by uuid
    :param services: by host
    :param moved_at: by uuid, when a VM's latest migration last changed, regardless of who ordered
        it, seconds since the epoch
    :param direct_ports: by uuid, the vNIC type of a port that is not an ordinary one
    :param moves: by uuid, how many migrations there were of late
    :param arriving: by host, the uuid of a VM that somebody is moving to it
    :param room: by uuid of a compute node, the vCPUs, MiB and GiB that are not allocated, infinity
        for what it does not account for; None: not known. A missing one has no memory left
    :param leaving: by uuid of a VM whose latest migration is under way, the host where it will be,
        None where Nova has not chosen it yet
    :param several: hosts whose service stands for several machines, as far as Nova tells
    :param failed_builds: VMs that found no host
    """

    servers: Mapping[str, Server]
    groups: tuple[ServerGroup, ...]
    services: Mapping[str, Service]
    moved_at: Mapping[str, float]
    direct_ports: Mapping[str, str]
    moves: Mapping[str, int] = dataclasses.field(default_factory=dict)
    arriving: Mapping[str, str] = dataclasses.field(default_factory=dict)
    room: Mapping[str, placement_constraints.Room] | None = None
    leaving: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    several: frozenset[str] = frozenset()
    failed_builds: tuple[FailedBuild, ...] = ()


def collect(connection: Any, moved_since: float) -> Inventory:
    """Ask Nova, Placement and Neutron.

    :param connection: ``openstack.connection.Connection``
    :param moved_since: seconds since the epoch; older migrations are not asked for
    :raises tracon_watcher.inventory.listing.CloudUnavailable: when one of them does not answer, so
        that nothing can be planned safely
    """
    compute, network, placement = (listing.Service(name, proxy, microversion, _USER)
                                   for name, proxy, microversion in (
        ('Nova', connection.compute, listing.MICROVERSION), ('Neutron', connection.network, None),
        ('Placement', connection.placement, PLACEMENT_MICROVERSION)))
    since = datetime.datetime.fromtimestamp(moved_since, datetime.timezone.utc)
    listed = [listing.shown(one, _USER) for one in compute.pages(
        '/servers/detail', 'servers', {'all_tenants': 'True'}) if not listing.is_partial(one)]
    properties = (_volume_properties(connection)
                  if any(not one.get('image') for one in listed) else {})
    servers = [_server(one, properties) for one in listed]
    builds = tuple(build for one, server in zip(listed, servers)
                   if (build := _failed_build(one, server)) is not None)
    migrations = compute.pages('/os-migrations', 'migrations',
                               {'changes-since': since.strftime('%Y-%m-%dT%H:%M:%SZ')})
    moved_at: dict[str, float] = {}
    moves: collections.Counter[str] = collections.Counter()
    arriving: dict[str, str] = {}
    leaving: dict[str, str | None] = {}
    for one in sorted(migrations, key=lambda one: str(one['created_at'])):
        uuid = one['instance_uuid']
        leaving.pop(uuid, None)
        if one['status'] in _UNDER_WAY or one['status'] == _GOING_BACK:
            end = 'source_compute' if one['status'] == _GOING_BACK else 'dest_compute'
            # Nova may not have chosen the host yet.
            leaving[uuid] = one.get(end) or None
            arriving.update({one[end]: uuid} if one.get(end) else {})
        changed = timeutils.parse_isotime(one['updated_at'] or one['created_at']).timestamp()
        moved_at[uuid] = max(changed, moved_at.get(uuid, -math.inf))
        moves[uuid] += 1
    services = [_service(one) for one in compute.pages(
        '/os-services', 'services', {'binary': 'nova-compute'}, limited=False)]
    ports = network.pages('/ports', 'ports', {'fields': ['device_id', 'binding:vnic_type']})
    return Inventory(
        {one.uuid: one for one in servers}, tuple(_groups(compute)),
        {one.host: one for one in services}, moved_at, _direct_ports(ports), moves,
        arriving, _room(placement, bool(builds)), leaving, hypervisor_types.several_machines({
            host: one['type'] for host, one in cloud.hypervisor_details(compute).items()}), builds)


def _direct_ports(ports: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return by VM the type of a port that is not an ordinary one, or is not told."""
    types: dict[str, str] = {}
    for one in ports:
        found = one.get('binding:vnic_type') or _UNTOLD
        if one.get('device_id') and types.get(one['device_id'], _ORDINARY) == _ORDINARY:
            types[one['device_id']] = found
    return {uuid: found for uuid, found in types.items() if found != _ORDINARY}


def hosts_by_hypervisor(connection: Any) -> dict[str, str]:
    """Return the hosts of compute services by the host names of their hypervisors.

    Nova gives none while a cell is down, nor to a user without the right to them.
    """
    compute = listing.Service('Nova', connection.compute, listing.HYPERVISORS, _USER)
    try:
        return {one['hypervisor_hostname']: one['service']['host']
                for one in compute.pages('/os-hypervisors/detail', 'hypervisors', {})}
    except listing.CloudUnavailable:
        return {}


def _room(placement: listing.Service,
          without_memory: bool) -> dict[str, placement_constraints.Room]:
    """Return what Placement says is left of each compute node that has any memory left.

    It knows of allocations that no VM on the host stands for: those of migrations under way, on
    both hosts, and of resizes that are not confirmed.

    :param without_memory: whether also of those that have vCPUs left, and no memory
    """
    room = {}
    for resources in ('MEMORY_MB:1', 'VCPU:1') if without_memory else ('MEMORY_MB:1',):
        body = placement.get('/allocation_candidates', 'provider_summaries',
                             {'resources': resources})
        for uuid, provider in body['provider_summaries'].items():
            left = {name: one['capacity'] - one['used']
                    for name, one in provider['resources'].items()}
            vcpus, memory, disk = (float(left.get(name, math.inf)) for name in _RESOURCES)
            room[uuid] = vcpus, memory, disk
    return room


def has_shares(connection: Any, uuid: str) -> bool:
    """Ask Nova whether a VM has shares of Manila's, which keep it from migrating.

    No listing tells, so that only those are asked for that are to be moved.

    :raises tracon_watcher.inventory.listing.CloudUnavailable: when Nova does not answer
    """
    compute = listing.Service('Nova', connection.compute, listing.MICROVERSION, _USER)
    return bool(compute.get(f'/servers/{uuid}/shares', 'shares', {})['shares'])


#: By uuid of a VM and the name of the device, properties of the image that a volume was made of,
#: which are none for most volumes.
_Properties = Mapping[tuple[str, str | None], Mapping[str, Any]]


def _volume_properties(connection: Any) -> _Properties | None:
    """Return the properties of images that volumes were made of; None where Cinder does not tell.
    """
    cinder = listing.Service('Cinder', connection.block_storage, None, _USER)
    told = False
    found: dict[tuple[str, str | None], dict[str, Any]] = {}
    try:
        for one in cinder.pages('/volumes/detail', 'volumes', {'all_tenants': 'True'}):
            image = one.get('volume_image_metadata') or {}
            told = told or bool(image)
            for where in one.get('attachments', ()):
                found[where['server_id'], where['device']] = {
                    name: image[name] for name in PROPERTIES if name in image}
        # Who may not see them gets volumes without; so is a volume that was made of no image.
        why: object = None if told else (
            'Cinder tells them of no volume; let Watcher\'s user list volumes of all projects and '
            'see volume_extension:volume_image_metadata')
    except listing.CloudUnavailable as error:
        why = error
    if why is None:
        return found
    LOG.warning('VMs that boot from volumes stay where they are, since the properties of '
                'their images are not known: %s', why)
    return None


def _server(one: Mapping[str, Any], of_volumes: _Properties | None) -> Server:
    properties: Mapping[str, Any] | None = None
    if one.get('image'):
        properties = one['image'].get('properties')
    elif of_volumes is not None:
        # Cinder lists a user who is no administrator the volumes of one project, without a word.
        properties = of_volumes.get((one['id'], one.get('OS-EXT-SRV-ATTR:root_device_name')))
    return Server(
        one['id'], one['name'], one['tenant_id'], one.get('OS-EXT-SRV-ATTR:host'),
        one['OS-EXT-STS:vm_state'], one['OS-EXT-STS:task_state'], one['locked'],
        one['metadata'], one['flavor'].get('extra_specs', {}), properties,
        one.get('pinned_availability_zone'), str(one['flavor'].get('original_name') or ''),
        str(one.get('created') or ''))


def _failed_build(one: Mapping[str, Any], server: Server) -> FailedBuild | None:
    """Return a request that found no host; None for any other VM, and where it cannot be read."""
    try:
        if (server.vm_state != 'error' or server.host
                or not one['fault']['message'].startswith(_NO_HOST)):
            return None
        flavor, image = one['flavor'], one.get('image')
        # Placement counts swap in GiB, too, and no root disk of a VM that boots from a volume.
        disk = bool(image) * flavor['disk'] + flavor['ephemeral'] + math.ceil(
            (flavor['swap'] or 0) / 1024)
        timeutils.parse_isotime(one['fault']['created'])
        return FailedBuild(server, one['fault']['created'], image['id'] if image else '',
                           (float(flavor['vcpus']), float(flavor['ram']), float(disk)))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _service(one: Mapping[str, Any]) -> Service:
    # Of a cell that is down Nova gives the name and the status UNKNOWN.
    reachable = one.get('state') is not None
    return Service(one['host'], one.get('status') == 'enabled', one.get('state') == 'up',
                   one.get('zone') or '', one.get('disabled_reason'), reachable)


def _groups(compute: listing.Service) -> Iterator[ServerGroup]:
    """Nova pages server groups by offset, and says not when it is done but with an empty page."""
    offset = 0
    while True:
        page = compute.get('/os-server-groups', 'server_groups', {
            'all_projects': 'True', 'limit': listing.PAGE, 'offset': offset})['server_groups']
        if not page:
            return
        for one in page:
            limit = (one.get('rules') or {}).get('max_server_per_host')
            yield ServerGroup(one['name'], one['policy'], int(limit or 1),
                              frozenset(one['members']))
        offset += len(page)
