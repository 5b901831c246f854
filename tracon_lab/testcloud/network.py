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

"""The network of guests that are given one: a pair of devices, and what Neutron knows of it.

One end carries the guests' macvtap devices, the other has an address of this machine: what is
on top of a device cannot be reached through that device itself.
"""

from __future__ import annotations

import subprocess

import openstack

from tracon_lab.testcloud import errors
from tracon_lab.testcloud import service
from tracon_lab.testcloud import settings as settings_module

NAME = 'tracon'


def devices(settings: settings_module.Settings) -> tuple[str, str]:
    """Return the names of the ends: this machine's, and the guests'."""
    return f'tracon{settings.port_base}', f'tracon{settings.port_base}g'


def create(settings: settings_module.Settings) -> None:
    """Make the devices, unless they are there.

    :raises CloudError: naming what the kernel refuses
    """
    own, guests = devices(settings)
    if _ip('link', 'show', own) is not None:
        _made('link', 'add', own, 'type', 'veth', 'peer', 'name', guests)
        _made('address', 'add', f'{settings.network_address}/24', 'dev', own)
    for device in (own, guests):
        _made('link', 'set', device, 'up')


def remove(settings: settings_module.Settings) -> None:
    """Remove the devices, if they are there."""
    _ip('link', 'delete', devices(settings)[0])


def publish(connection: openstack.connection.Connection,
            settings: settings_module.Settings) -> None:
    """Tell Neutron of the network, unless it knows."""
    neutron = connection.network
    if neutron.find_network(NAME) is None:
        made = neutron.create_network(
            name=NAME, is_shared=True, provider_network_type='flat',
            provider_physical_network=devices(settings)[1])
        neutron.create_subnet(
            name=NAME, network_id=made.id, ip_version=4, is_dhcp_enabled=False,
            cidr=f'{settings.network_address}/24', gateway_ip=settings.network_address)


def _made(*arguments: str) -> None:
    fault = _ip(*arguments)
    if fault is not None:
        raise errors.CloudError(f'ip {" ".join(arguments)}: {fault}')


def _ip(*arguments: str) -> str | None:
    """Run ip(8); return what it complains of, or None."""
    found = subprocess.run([service.system_program('ip', 'iproute2'), *arguments],
                           capture_output=True, text=True, check=False)
    return (found.stderr.strip() or f'code {found.returncode}') if found.returncode else None
