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

"""Deployment of sensors: small servers of a service project, one on each compute host.

What is there is found by its mark, so that a second run repairs what it can and leaves the rest
alone. A host that fails does not stop the others.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import hashlib
import ipaddress
import os
import pathlib
import secrets
import time
from typing import Any, Callable, Iterator, Mapping

from keystoneauth1 import exceptions as keystone_errors
from openstack import exceptions as sdk_errors
from openstack import utils

from tracon_watcher import errors
from tracon_watcher import hypervisor_types
from tracon_watcher.probe import answers
from tracon_watcher.probe import controller

#: Metadata of a sensor's server, which is its host, and description of its port.
MARK = 'tracon:probe'
#: Of the flavor and the security group; names of servers, ports and images begin with it.
NAME = 'tracon-probe'
HOST_TYPE = 'tracon:host_type'
CREATED, KEPT, REPAIRED, REMOVED, LEFT_OUT = (
    'created', 'kept', 'repaired', 'removed', 'left out')
#: The first in which the scheduler is told a host, and checks it as any other.
_NAMED_HOST = '2.74'
#: The last in which hypervisors are listed from Nova's database, with their memory.
_HYPERVISORS = '2.87'
_PROPERTIES = {
    'hw_disk_bus': 'virtio',
    'hw_vif_model': 'virtio',
    'hw_video_model': 'none',
    # Without it a guest's clock is slow where it is emulated.
    'hw_time_hpet': 'True',
    # It has nothing to save.
    'os_shutdown_timeout': '1',
}
_UNSETTLED = ('BUILD', 'REBOOT', 'HARD_REBOOT', 'MIGRATING', 'REBUILD')
_REFUSALS = (sdk_errors.SDKException, keystone_errors.ClientException)


class DeploymentError(errors.TraconError):
    """A sensor cannot be deployed or removed; says why."""


@dataclasses.dataclass(frozen=True)
class Image:
    """What a sensor boots.

    :param command_line: of the kernel
    :param memory_mib: that it needs
    """

    kernel: pathlib.Path
    initramfs: pathlib.Path
    disk: pathlib.Path
    command_line: str
    memory_mib: int


@dataclasses.dataclass(frozen=True)
class DeploymentOptions:
    """What is to be deployed.

    :param network: name or id of the network of all sensors
    :param generators: networks that may ask sensors, as in ``192.0.2.0/24``
    :param headroom_mb: memory that stays free on each host
    :param hosts: names of compute services; none are all
    :param aggregate: whose hosts alone get a sensor
    :param host_type: of hosts whose aggregates state none
    """

    network: str
    generators: tuple[str, ...]
    secret: bytes
    headroom_mb: int = 1024
    hosts: tuple[str, ...] = ()
    aggregate: str | None = None
    host_type: str | None = None


@dataclasses.dataclass
class Row:
    """What became of one host, or of one thing that is removed.

    :param missing: whether a sensor should be there, or gone, and is not
    """

    host: str
    server: str
    address: str = ''
    state: str = LEFT_OUT
    why: str = ''
    missing: bool = False

    @contextlib.contextmanager
    def reporting(self, state: str = LEFT_OUT) -> Iterator[None]:
        """Take down what fails within, and what it leaves."""
        try:
            yield
        except (errors.TraconError, *_REFUSALS) as error:
            self.state, self.missing, self.why = state, True, _text(error)


def make_secret(path: pathlib.Path) -> bytes:
    """Read the secret, which is made where there is no such file.

    :raises tracon_watcher.errors.InvalidOption: naming the file
    """
    try:
        with contextlib.suppress(FileExistsError), open(os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), 'w') as out:
            out.write(secrets.token_hex(answers.SECRET_BYTES) + '\n')
    except OSError as error:
        raise errors.InvalidOption('--secret-file', str(path), f'{error.strerror}; name a file '
                                                               f'that can be made') from None
    return answers.read_secret(path)


class Project:
    """The sensors of the connection's project.

    :param connection: ``openstack.connection.Connection`` of an administrator
    :param patience: seconds that a server has to come or go
    """

    def __init__(self, connection: Any, patience: float = 300.0) -> None:
        self._nova, self._neutron = connection.compute, connection.network
        self._glance, self._placement = connection.image, connection.placement
        self._project = str(connection.current_project_id)
        self._patience = patience

    def servers(self) -> list[Any]:
        """Return the servers of sensors.

        :raises DeploymentError: when they cannot be listed
        """
        with _asking('servers'):
            return [one for one in self._nova.servers() if MARK in (one.metadata or {})]

    def sensors(self, host_type: str | None = None) -> list[controller.Sensor]:
        """Return those that can be asked: active, on their host, of a type that is known.

        :raises DeploymentError: when they cannot be listed
        """
        types, addresses = self.host_types(), self.addresses()
        found = {}
        for one in self.servers():
            host = one.metadata[MARK]
            kind = types.get(host, host_type)
            if kind is not None and _fault(one, addresses) is None:
                found[host] = controller.Sensor(host, kind, addresses[one.id])
        return [found[host] for host in sorted(found)]

    def addresses(self) -> dict[str, str]:
        """Return by id of a server where its sensor is; Neutron is surer of that than Nova.

        :raises DeploymentError: when they cannot be listed
        """
        with _asking('ports'):
            return {one.device_id: f'{ip}:{answers.PORT}' for one in self._ports()
                    for ip, _subnet in _fixed(one)}

    def host_types(self) -> dict[str, str]:
        """Return by host what its aggregates state, the first by name as the engine does.

        :raises DeploymentError: when they cannot be listed
        """
        with _asking('aggregates'):
            stated = sorted((one.metadata[HOST_TYPE], host) for one in self._nova.aggregates()
                            if (one.metadata or {}).get(HOST_TYPE) for host in one.hosts or ())
        return {host: kind for kind, host in reversed(stated)}

    def remove(self, servers: list[Any], everything: bool,
               report: Callable[[object, float], None]) -> list[Row]:
        """Remove these sensors, and all ports; what cannot be removed is marked as missing.

        :param everything: also flavor, images and security group
        :raises DeploymentError: when what is there cannot be listed
        """
        rows, addresses = [], self.addresses()
        for one in servers:
            row = Row(one.metadata[MARK], one.name, addresses.get(one.id, ''), REMOVED)
            rows.append(row)
            with row.reporting(KEPT):
                self._nova.delete_server(one)
        for one, row in zip(servers, rows):
            if not row.missing:
                with row.reporting(KEPT):
                    self._nova.wait_for_delete(one, interval=1, wait=self._patience)
            report(row.server, 1.0)
        for what, delete in list(self._rest(everything)):
            row = Row('', what, '', REMOVED)
            with row.reporting(KEPT):
                delete()
            if row.missing or not what.startswith('port'):
                rows.append(row)
        return rows

    def _rest(self, everything: bool) -> Iterator[tuple[str, Callable[[], None]]]:
        with _asking('ports, images, flavors and security groups'):
            for port in self._ports():
                yield f'port {port.name}', lambda one=port: self._neutron.delete_port(one)
            if not everything:
                return
            for image in self._glance.images(owner=self._project):
                if (image.name or '').startswith(f'{NAME}-'):
                    yield f'image {image.name}', lambda one=image: self._glance.delete_image(one)
            for flavor in self._flavors():
                yield f'flavor {NAME}', lambda one=flavor: self._nova.delete_flavor(one)
            for group in self._groups():
                yield (f'security group {NAME}',
                       lambda one=group: self._neutron.delete_security_group(one))

    def _flavors(self) -> list[Any]:
        return [one for one in self._nova.flavors(is_public=None) if one.name == NAME]

    def _groups(self) -> list[Any]:
        return list(self._neutron.security_groups(name=NAME, project_id=self._project))

    def _delete(self, server: Any) -> None:
        # Afterwards Neutron does not know whose they were.
        ports = self._ports(device_id=server.id)
        self._nova.delete_server(server)
        self._nova.wait_for_delete(server, interval=1, wait=self._patience)
        for one in ports:
            self._neutron.delete_port(one)

    def _ports(self, **query: str) -> list[Any]:
        return list(self._neutron.ports(description=MARK, project_id=self._project, **query))


class Deployment(Project):
    """Deploys sensors; :attr:`hosts` are those that are looked at.

    :param build: builds the image, when one is needed
    :raises DeploymentError: when the cloud does not tell what is there
    :raises tracon_watcher.errors.InvalidOption: for a wish that names what is not there
    """

    def __init__(self, connection: Any, wishes: DeploymentOptions, build: Callable[[], Image],
                 patience: float = 300.0) -> None:
        super().__init__(connection, patience)
        self._wishes, self._build = wishes, build
        with _asking('compute services'):
            self._services = {one.host: one for one in self._nova.services(binary='nova-compute')}
        self._types = self.host_types()
        self._addresses = self.addresses()
        self._there: dict[str, list[Any]] = {}
        for one in self.servers():
            self._there.setdefault(one.metadata[MARK], []).append(one)
        with _asking('network'):
            self._network = self._neutron.find_network(wishes.network)
        if self._network is None:
            raise errors.InvalidOption('--network', wishes.network, 'there is no such network')
        self.hosts = self._chosen()
        self._nodes: dict[str, Any] | None = None
        self._made: dict[str, Any] = {}

    def _chosen(self) -> list[str]:
        wanted, aggregate = set(self._wishes.hosts), self._wishes.aggregate
        for host in sorted(wanted - set(self._services)):
            raise errors.InvalidOption('--host', host, 'there is no such compute service')
        if aggregate is not None:
            with _asking('aggregates'):
                named = [one for one in self._nova.aggregates() if one.name == aggregate]
            if not named:
                raise errors.InvalidOption('--aggregate', aggregate, 'there is no such aggregate')
            members = set(named[0].hosts or ()) & set(self._services)
            return sorted(members & wanted if wanted else members)
        return sorted(wanted or {*self._services, *self._there})

    def deploy(self, report: Callable[[object, float], None]) -> list[Row]:
        """Give each host its sensor.

        :raises DeploymentError: when the security group cannot be made
        """
        with _asking('security group'):
            self._made['group'] = self._security_group()
        rows, begun = [], []
        for host in self.hosts:
            row = Row(host, f'{NAME}-{host}')
            rows.append(row)
            with row.reporting():
                server = self._begin(row)
                if server is not None:
                    begun.append((row, server, time.monotonic()))
                    report(host, 0.5)
                    continue
            report(host, 1.0)
        # Meanwhile they have booted beside each other.
        for row, server, since in begun:
            with row.reporting():
                self._booted(server, since)
            report(row.host, 1.0)
        return rows

    def _begin(self, row: Row) -> Any:
        """Put a host in order; return a server that was created and is not active yet."""
        there = self._there.get(row.host, [])
        service = self._services.get(row.host)
        if service is None or service.status == 'disabled':
            row.why = ('there is no compute service of that name' if service is None else
                       f'in maintenance: {service.disabled_reason or "no reason given"}')
            for one in there:
                self._delete(one)
                row.state = REMOVED
            return None
        if service.status != 'enabled' or service.state != 'up':
            row.state, row.why = KEPT if there else LEFT_OUT, 'its compute service does not answer'
            return None
        if not there and getattr(self._node(row.host), 'hypervisor_type', None) in (
                hypervisor_types.SEVERAL_MACHINES):
            row.state, row.why = LEFT_OUT, 'its compute service stands for several machines'
            return None
        if self._types.get(row.host, self._wishes.host_type) is None:
            raise DeploymentError(f'its type is not known: state {HOST_TYPE} in the metadata of '
                                  f'an aggregate it is in, or give --host-type')
        good = None
        for one in map(self._settled, there):
            fault = _fault(one, self._addresses) or (good and 'was there twice')
            if fault:
                row.why = fault
                self._delete(one)
            else:
                good = one
        if good is not None:
            row.state, row.address = KEPT, self._addresses[good.id]
            return None
        server = self._create(row, service)
        row.state = REPAIRED if there else CREATED
        return server

    def _settled(self, server: Any) -> Any:
        if server.status not in _UNSETTLED:
            return server
        with contextlib.suppress(DeploymentError, *_REFUSALS):
            return self._booted(server, time.monotonic())
        return server

    def _booted(self, server: Any, since: float) -> Any:
        left = max(since + self._patience - time.monotonic(), 1.0)
        try:
            return self._nova.wait_for_server(server, interval=1, wait=left)
        except sdk_errors.ResourceFailure as error:
            fault = self._nova.get_server(server.id).fault or {}
            raise DeploymentError(fault.get('message') or str(error)) from None

    def _create(self, row: Row, service: Any) -> Any:
        flavor = self._once('flavor', self._flavor)
        left = self._left(row.host, flavor)
        row.why = '; '.join(filter(None, (
            row.why, f'{left:.0f} MiB stay free, {self._wishes.headroom_mb} of them as headroom')))
        image = self._once('image', self._images)
        # What a run that was stopped has left.
        for one in self._ports(name=row.server):
            self._neutron.delete_port(one)
        port = self._neutron.create_port(
            name=row.server, network_id=self._network.id, description=MARK,
            security_groups=[self._made['group']])
        address, settings = self._settings(port)
        if utils.supports_microversion(self._nova, _NAMED_HOST):
            where = {'host': row.host}
        else:
            where = {'availability_zone': f'{service.availability_zone}:{row.host}'}
        server = self._nova.create_server(
            name=row.server, flavor_id=flavor.id, image_id=image, config_drive=True,
            networks=[{'port': port.id}], metadata={MARK: row.host},
            user_data=base64.b64encode(settings.encode()).decode(), **where)
        row.address = address
        return server

    def _settings(self, port: Any) -> tuple[str, str]:
        """Return where a sensor will be, and what it reads at its start."""
        found = _fixed(port)
        if not found:
            raise DeploymentError(f'network {self._wishes.network}: the port has no IPv4 address')
        address, uuid = found[0]
        subnet = self._once(f'subnet {uuid}', lambda: self._neutron.get_subnet(uuid))
        lines = {'secret': self._wishes.secret.hex(),
                 'address': f'{address}/{ipaddress.ip_network(subnet.cidr).prefixlen}',
                 'gateway': subnet.gateway_ip, 'port': answers.PORT, 'mtu': self._network.mtu}
        return f'{address}:{answers.PORT}', ''.join(
            f'{name}={value}\n' for name, value in lines.items() if value)

    def _left(self, host: str, flavor: Any) -> float:
        """Return the memory that stays free beside a new sensor, in MiB.

        :raises DeploymentError: when that is less than the headroom
        """
        memory, vcpus = self._free(host)
        wanted = flavor.ram + self._wishes.headroom_mb
        if memory < wanted or vcpus < flavor.vcpus:
            raise DeploymentError(
                f'{memory:.0f} MiB and {vcpus:.0f} vCPUs are free: the sensor needs {flavor.ram} '
                f'and {flavor.vcpus}, and --headroom-mb is {self._wishes.headroom_mb}')
        return memory - flavor.ram

    def _node(self, host: str) -> Any:
        if self._nodes is None:
            version = utils.maximum_supported_microversion(self._nova, _HYPERVISORS)
            self._nodes = {
                (one.service_details or {}).get('host'): one
                for one in self._nova.hypervisors(details=True, microversion=version)}
        return self._nodes.get(host)

    def _free(self, host: str) -> tuple[float, float]:
        node = self._node(host)
        if node is None:
            raise DeploymentError('no hypervisor of it is listed, so that its free memory is not '
                                  'known')
        try:
            used = self._placement.fetch_resource_provider_usages(node.id).usages
            free: Mapping[str, float] = {
                one.resource_class: (one.total - one.reserved) * one.allocation_ratio
                - used.get(one.resource_class, 0)
                for one in self._placement.resource_provider_inventories(node.id)}
        except _REFUSALS:
            # How many vCPUs may share a core is not known there; Nova sees to that.
            return float(node.memory_free or 0), float('inf')
        return free.get('MEMORY_MB', 0.0), free.get('VCPU', 0.0)

    # What all sensors share, which is made when the first of them needs it

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def _flavor(self) -> Any:
        known = self._flavors()
        if known:
            return known[0]
        # Without a disk of its own size a server gets that of the image.
        made = self._nova.create_flavor(
            name=NAME, vcpus=1, ram=self._once('build', self._build).memory_mib, disk=0,
            is_public=False)
        self._nova.flavor_add_tenant_access(made, self._project)
        return made

    def _security_group(self) -> str:
        groups = self._groups()
        group = groups[0] if groups else self._neutron.create_security_group(
            name=NAME, description=MARK)
        missing = set(self._wishes.generators)
        for rule in group.security_group_rules or ():
            if rule['direction'] == 'ingress':
                allowed = rule['remote_ip_prefix']
                if allowed in missing and rule['protocol'] == 'tcp' and (
                        rule['port_range_min'] == rule['port_range_max'] == answers.PORT):
                    missing.remove(allowed)
                else:
                    self._neutron.delete_security_group_rule(rule['id'])
        for cidr in sorted(missing):
            self._neutron.create_security_group_rule(
                security_group_id=group.id, direction='ingress', ether_type='IPv4',
                protocol='tcp', port_range_min=answers.PORT, port_range_max=answers.PORT,
                remote_ip_prefix=cidr)
        return str(group.id)

    def _images(self) -> str:
        built = self._once('build', self._build)
        kernel = self._upload('kernel', 'aki', built.kernel)
        ramdisk = self._upload('ramdisk', 'ari', built.initramfs)
        return self._upload('disk', 'raw', built.disk, **_PROPERTIES, kernel_id=kernel,
                            ramdisk_id=ramdisk, os_command_line=built.command_line,
                            min_ram=built.memory_mib)

    def _upload(self, part: str, disk_format: str, path: pathlib.Path, **properties: Any) -> str:
        """Return the id of an image of this content and these properties, whose name tells."""
        content = hashlib.sha256(path.read_bytes())
        content.update(repr(sorted(properties.items())).encode())
        name = f'{NAME}-{part}-{content.hexdigest()[:16]}'
        for one in list(self._glance.images(name=name, owner=self._project)):
            if one.status == 'active':
                return str(one.id)
            self._glance.delete_image(one)
        return str(self._glance.create_image(
            name, filename=str(path), disk_format=disk_format,
            container_format=disk_format if disk_format in ('aki', 'ari') else 'bare',
            allow_duplicates=True, validate_checksum=True, wait=True, visibility='private',
            **properties).id)


def _fault(server: Any, addresses: Mapping[str, str]) -> str | None:
    """Return why a server is of no use as a sensor, or None."""
    if server.status != 'ACTIVE':
        return f'was {server.status}'
    if server.compute_host != server.metadata[MARK]:
        return f'was on {server.compute_host}'
    return None if server.id in addresses else 'had no address'


def _fixed(port: Any) -> list[tuple[str, str]]:
    """Return a port's IPv4 address and the id of its subnet, or nothing."""
    return [(one['ip_address'], one['subnet_id']) for one in port.fixed_ips or ()
            if ipaddress.ip_address(one['ip_address']).version == 4][:1]


@contextlib.contextmanager
def _asking(what: str) -> Iterator[None]:
    try:
        yield
    except _REFUSALS as error:
        raise DeploymentError(f'{what}: {_text(error)}') from None


def _text(error: Exception) -> str:
    status = getattr(error, 'status_code', None) or getattr(error, 'http_status', None)
    return f'{error}' + (': the user has to be an administrator, and the project to have enough '
                         'quota' if status == 403 else '')
