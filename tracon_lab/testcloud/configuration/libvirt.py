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

"""libvirt, a private one for each compute host."""

from __future__ import annotations

import uuid

from tracon_lab.testcloud.configuration import ini
from tracon_lab.testcloud import settings as settings_module

#: Ports on which a host receives guests, from this one on.
_MIGRATION_PORTS = 49152
_PORTS_EACH = 64
_NAMESPACE = uuid.UUID('3b1d5f8e-0f7c-4a59-9b36-5d0c0b6f5c11')


def write(settings: settings_module.Settings) -> None:
    """Write libvirtd.conf and qemu.conf of each host, and the names of all hosts."""
    for number, host in enumerate(settings.hosts):
        files = settings.host_directory(host)
        address = settings.host_address(host)
        lowest = _MIGRATION_PORTS + number * _PORTS_EACH
        ini.write(files / 'etc/libvirtd.conf', render({
            # A guest is not moved to where it is, and that is told by this.
            'host_uuid': str(uuid.uuid5(_NAMESPACE, f'{settings.directory}/{host}')),
            'auth_unix_ro': 'none', 'auth_unix_rw': 'none', 'unix_sock_ro_perms': '0700',
        }))
        ini.write(files / 'etc/qemu.conf', render({
            'user': 'root', 'group': 'root', 'security_driver': 'none', 'namespaces': [],
            'migration_address': address, 'migration_port_min': lowest,
            'migration_port_max': lowest + _PORTS_EACH - 1,
        }))
        ini.write(files / 'hosts', hosts_file(settings))


def render(options: dict[str, object]) -> str:
    """Return the text of a file in libvirt's format."""
    return ''.join(f'{name} = {_shown(value)}\n' for name, value in options.items())


def hosts_file(settings: settings_module.Settings) -> str:
    """Return /etc/hosts of the compute hosts: each name is an address of its own."""
    return f'{settings_module.ADDRESS} localhost\n' + ''.join(
        f'{settings.host_address(host)} {host}\n' for host in settings.hosts)


def _shown(value: object) -> str:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return '[%s]' % ', '.join(_shown(one) for one in value)
    return f'"{value}"'
