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

"""What a test cloud is made of: the one source of ports, passwords, paths and names."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
from typing import Any, Mapping

from tracon_lab.testcloud import errors as cloud_errors
from tracon_watcher import errors
from tracon_watcher.probe import images

DEFAULT_DIRECTORY = pathlib.Path('/var/tmp/tracon-cloud')
ADDRESS = '127.0.0.1'
REGION = 'RegionOne'
#: What listens, in the order of its ports, from `port_base` on. Only ever add at the end.
LISTENERS = ('mariadb', 'rabbitmq', 'epmd', 'rabbitmq-peers', 'memcached', 'keystone',
             'placement', 'glance', 'neutron', 'nova', 'gnocchi', 'watcher', 'interference',
             'probe', 'metrics', 'horizon')
DATABASES = ('keystone', 'placement', 'glance', 'neutron', 'nova_api', 'nova_cell0', 'nova',
             'gnocchi', 'watcher', 'tracon')
#: Service types of the catalogue: the listener behind each, and the path of its endpoint.
CATALOGUE = {
    'placement': ('placement', ''),
    'image': ('glance', ''),
    'network': ('neutron', ''),
    'compute': ('nova', '/v2.1'),
    'metric': ('gnocchi', ''),
    'infra-optim': ('watcher', ''),
    'interference': ('interference', ''),
}
_FILE = 'settings.json'


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything that decides how a cloud is configured.

    Fields that end in ``_extra`` are text in the format of oslo.config, appended to the file of
    that name: an option that is given there again is the one that counts.

    :param directory: data, configuration, logs and pid files
    :param cache: what is slow to make and does not change: images, empty databases
    :param hosts: names of the compute hosts
    :param cores: cores of each host's guests, such as ``('0', '1')``; by default each host has a
        core of its own where there are enough, and otherwise all of them
    :param port_base: the first of the ports, see :data:`LISTENERS`
    :param password: of every account; the services listen on the loopback device only
    :param polling_seconds: how often Ceilometer polls, and Gnocchi's granularity
    :param allocation_ratio: virtual CPUs for a core
    :param disk_mib: size of a guest's disk, whose blocks are all written
    :param memory_mib: memory of the flavors
    :param guest_shares: of the CPU, for all guests of a host together, where any other process
        has 1024
    :param nova_extra: nova.conf of every Nova service
    :param scheduler_extra: of nova-scheduler alone
    :param compute_extra: of nova-compute alone
    :param telemetry: folder with polling.yaml, pipeline.yaml and gnocchi_resources.yaml; by
        default this product's, and Ceilometer's own where there is none
    :param environment: variables of every service, such as PYTHONPATH
    """

    directory: pathlib.Path = DEFAULT_DIRECTORY
    cache: pathlib.Path = dataclasses.field(
        default_factory=lambda: images.default_cache() / 'testcloud')
    hosts: tuple[str, ...] = ('cmp1', 'cmp2')
    cores: tuple[str, ...] = ()
    port_base: int = 27000
    password: str = 'tracon'
    polling_seconds: int = 10
    scheduler_workers: int = 1
    allocation_ratio: float = 8.0
    disk_mib: int = 1024
    memory_mib: int = 256
    guest_shares: int = 8192
    debug: bool = False
    nova_extra: str = ''
    scheduler_extra: str = ''
    compute_extra: str = ''
    watcher_extra: str = ''
    ceilometer_extra: str = ''
    gnocchi_extra: str = ''
    telemetry: pathlib.Path | None = None
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.hosts or len(set(self.hosts)) != len(self.hosts):
            raise errors.InvalidOption('hosts', self.hosts, 'expected one or more, all different')
        for name in self.hosts:
            if not re.fullmatch(r'[a-z][a-z0-9]{0,14}', name):
                raise errors.InvalidOption('hosts', name, 'expected at most 15 lower-case letters '
                                                          'and digits, a letter first')
        if self.cores and len(self.cores) != len(self.hosts):
            raise errors.InvalidOption('cores', self.cores,
                                       f'expected one for each of {len(self.hosts)} hosts')
        if not 1024 <= self.port_base <= 32768 - len(LISTENERS):
            raise errors.InvalidOption(
                'port_base', self.port_base,
                f'expected 1024 to {32768 - len(LISTENERS)}: above are the ports that the kernel '
                f'gives to clients')
        if not re.fullmatch(r'[A-Za-z0-9]+', self.password):
            raise errors.InvalidOption('password', '...', 'expected letters and digits only: it '
                                                          'is part of URLs')
        if self.polling_seconds < 1:
            raise errors.InvalidOption('polling_seconds', self.polling_seconds,
                                       'expected 1 or more')
        if self.disk_mib < 1024 or self.disk_mib % 1024:
            raise errors.InvalidOption('disk_mib', self.disk_mib,
                                       'expected a multiple of 1024: flavors count in GiB')

    def port(self, listener: str) -> int:
        """Return the port of something that listens."""
        return self.port_base + LISTENERS.index(listener)

    def url(self, listener: str) -> str:
        """Return the root of an HTTP service."""
        return f'http://{ADDRESS}:{self.port(listener)}'

    @property
    def auth_url(self) -> str:
        """Keystone's API."""
        return self.url('keystone') + '/v3'

    def database_url(self, name: str) -> str:
        """Return the connection URL of a database."""
        return (f'mysql+pymysql://stack:{self.password}@{ADDRESS}:{self.port("mariadb")}/'
                f'{name}?charset=utf8mb3')

    @property
    def transport_url(self) -> str:
        """RabbitMQ, as oslo.messaging is told of it."""
        return f'rabbit://stack:{self.password}@{ADDRESS}:{self.port("rabbitmq")}/'

    def host_address(self, host: str) -> str:
        """Return the address of a compute host, on the loopback device and in no other cloud."""
        return (f'127.{self.port_base >> 8}.{self.port_base & 255}.'
                f'{self.hosts.index(host) + 1}')

    @property
    def network_address(self) -> str:
        """This machine's address on the network of guests, 24 bits of which are the network's."""
        # Of the networks for benchmarks, which no router knows (RFC 2544).
        return f'198.{18 + (self.port_base >> 8 & 1)}.{self.port_base & 255}.1'

    def host_cores(self, host: str) -> str:
        """Return the cores that a host's guests share."""
        number = self.hosts.index(host)
        if self.cores:
            return self.cores[number]
        usable = sorted(os.sched_getaffinity(0))
        if len(usable) >= len(self.hosts):
            return str(usable[number])
        return ','.join(map(str, usable))

    @property
    def configuration(self) -> pathlib.Path:
        """Folder of the configuration files."""
        return self.directory / 'etc'

    @property
    def data(self) -> pathlib.Path:
        """Folder of what the services store."""
        return self.directory / 'data'

    @property
    def logs(self) -> pathlib.Path:
        """Folder of the logs."""
        return self.directory / 'log'

    @property
    def run(self) -> pathlib.Path:
        """Folder of the pid files."""
        return self.directory / 'run'

    def host_directory(self, host: str) -> pathlib.Path:
        """Return the folder of what a compute host has for itself."""
        return self.directory / 'hosts' / host

    def access(self, user: str = 'admin', project: str = 'admin') -> dict[str, str]:
        """Return the environment variables that the openstack command reads."""
        return {
            'OS_AUTH_URL': self.auth_url, 'OS_USERNAME': user, 'OS_PASSWORD': self.password,
            'OS_PROJECT_NAME': project, 'OS_USER_DOMAIN_ID': 'default',
            'OS_PROJECT_DOMAIN_ID': 'default', 'OS_IDENTITY_API_VERSION': '3',
            'OS_REGION_NAME': REGION, 'OS_COMPUTE_API_VERSION': '2.96', 'no_proxy': ADDRESS,
            'NO_PROXY': ADDRESS,
        }

    def save(self) -> None:
        """Keep the settings where the other commands find them."""
        content = dataclasses.asdict(self)
        for name in ('directory', 'cache', 'telemetry'):
            content[name] = None if content[name] is None else str(content[name])
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / _FILE
        part = path.with_suffix('.part')
        part.write_text(json.dumps(content, indent=1), encoding='utf-8')
        part.chmod(0o600)
        part.replace(path)

    @classmethod
    def load(cls, directory: pathlib.Path) -> Settings:
        """Read what :meth:`save` has kept.

        :raises NoCloud: when there is none in that folder
        :raises InvalidDocument: when it is of another version
        """
        path = directory / _FILE
        try:
            content: dict[str, Any] = json.loads(path.read_text(encoding='utf-8'))
            for name in ('directory', 'cache', 'telemetry'):
                content[name] = None if content[name] is None else pathlib.Path(content[name])
            return cls(**{**content, 'hosts': tuple(content['hosts']),
                          'cores': tuple(content['cores'])})
        except FileNotFoundError:
            raise cloud_errors.NoCloud(directory) from None
        except (ValueError, KeyError, TypeError) as exc:
            raise errors.InvalidDocument(
                str(path), 'the file', str(exc),
                'not the settings of this version: stop what runs, and delete the folder'
                ) from None
