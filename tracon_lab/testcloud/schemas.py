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

"""The databases, made by each service's own migrations, or taken from where they were kept."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import json
import os
import pathlib
import subprocess
from typing import Sequence

from tracon_lab.testcloud import errors
from tracon_lab.testcloud import infrastructure
from tracon_lab.testcloud import service
from tracon_lab.testcloud import services as services_module
from tracon_lab.testcloud import settings as settings_module
from tracon_lab.testcloud import steps

#: What a kept dump depends on, beside the settings that stand in it.
PACKAGES = ('keystone', 'openstack-placement', 'glance', 'neutron', 'nova', 'gnocchi',
            'python-watcher')
_FORMAT = 1
_CHARSET = 'CHARACTER SET utf8mb3'


class Schemas:
    """What has to be in the databases before the first service starts.

    :param services: by which the commands are run
    """

    def __init__(self, settings: settings_module.Settings,
                 services: services_module.Services) -> None:
        self._settings = settings
        self._services = services
        self._mark = settings.data / 'schemas'
        self._log = settings.logs / 'schemas.log'

    def steps(self) -> list[steps.Step]:
        """Return what is still to be done, the last of it called ``schemas``.

        :raises CloudError: when the databases were made by other releases, or with other settings
        """
        if self._mark.exists():
            if self._mark.read_text(encoding='ascii') != self.key():
                raise errors.CloudError(
                    f'what is stored in {self._settings.directory} was made by other releases, or '
                    f'with another password: "tracon cloud stop --delete" makes room')
            return [steps.Step('schemas', lambda: None, ('mariadb',), 0.1)]
        self._keys()
        create = steps.Step('databases', self._create, ('mariadb',))
        if self.kept().exists():
            return [create, steps.Step('schemas', self._load, ('databases',), 4.0)]
        etc = self._settings.configuration
        made = [create]

        def add(name: str, after: str, *command: str, weight: float = 5.0) -> None:
            made.append(steps.Step(name, lambda: self._services.run(*command), (after,), weight))
        nova = ('nova-manage', '--config-file', str(etc / 'nova/nova.conf'),
                '--config-file', str(etc / 'nova/control.conf'))
        cell = self._settings.database_url('nova_cell0')
        # The longest first: two at a time, they end together.
        add('neutron tables', 'databases', 'neutron-db-manage', '--config-file',
            str(etc / 'neutron/neutron.conf'), 'upgrade', 'heads', weight=15.0)
        add('nova api tables', 'databases', *nova, 'api_db', 'sync', weight=8.0)
        add('nova cell0', 'nova api tables', *nova, 'cell_v2', 'map_cell0',
            '--database_connection', cell)
        add('nova cell1', 'nova cell0', *nova, 'cell_v2', 'create_cell', '--name', 'cell1')
        add('nova tables', 'nova cell1', *nova, 'db', 'sync', weight=10.0)
        add('keystone tables', 'databases', 'keystone-manage', '--config-file',
            str(etc / 'keystone/keystone.conf'), 'db_sync', weight=8.0)
        roots = ('public', 'internal', 'admin')
        add('keystone admin', 'keystone tables', 'keystone-manage', '--config-file',
            str(etc / 'keystone/keystone.conf'), 'bootstrap', '--bootstrap-password',
            self._settings.password, '--bootstrap-region-id', settings_module.REGION,
            *(part for one in roots for part in (f'--bootstrap-{one}-url',
                                                 self._settings.auth_url)))
        add('glance tables', 'databases', 'glance-manage', '--config-file',
            str(etc / 'glance/glance-api.conf'), 'db_sync', weight=8.0)
        add('placement tables', 'databases', 'placement-manage', '--config-file',
            str(etc / 'placement/placement.conf'), 'db', 'sync')
        add('watcher tables', 'databases', 'watcher-db-manage', '--config-file',
            str(etc / 'watcher/watcher.conf'), 'upgrade')
        add('gnocchi tables', 'databases', 'gnocchi-upgrade', '--config-file',
            str(etc / 'gnocchi/gnocchi.conf'))
        made.append(steps.Step('schemas', self._keep, tuple(one.name for one in made), 2.0))
        return made

    def key(self) -> str:
        """Return what tells databases of these releases and settings from others."""
        installed = {one.name.lower(): one.version for one in importlib.metadata.distributions()}
        versions = {name: installed.get(name) for name in PACKAGES}
        told = {**versions, 'format': _FORMAT, 'transport': self._settings.transport_url,
                'database': self._settings.database_url(''), 'keystone': self._settings.auth_url}
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]

    def kept(self) -> pathlib.Path:
        """Return the path of the dump."""
        return self._settings.cache / f'databases-{self.key()}.sql'

    def _keys(self) -> None:
        """Make the keys that Keystone encrypts tokens and credentials with."""
        for name in ('tokens', 'credentials'):
            folder = self._settings.data / 'keystone' / name
            if not (folder / '1').exists():
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(0o700)
                for number in '01':
                    path = folder / number
                    path.touch(0o600)
                    path.write_bytes(base64.urlsafe_b64encode(os.urandom(32)))

    def _create(self) -> None:
        account = f"'stack'@'{settings_module.ADDRESS}'"
        lines = [f'CREATE DATABASE IF NOT EXISTS {name} {_CHARSET};'
                 for name in settings_module.DATABASES]
        lines += [f"CREATE USER IF NOT EXISTS {account} IDENTIFIED BY "
                  f"'{self._settings.password}';", f'GRANT ALL ON *.* TO {account};']
        self._client('mariadb', [], '\n'.join(lines).encode())

    def _load(self) -> None:
        self._client('mariadb', [], self.kept().read_bytes())
        self._finish()

    def _keep(self) -> None:
        dump = self._client('mariadb-dump', ['--single-transaction', '--databases',
                                             *settings_module.DATABASES], b'')
        self.kept().parent.mkdir(parents=True, exist_ok=True)
        part = self.kept().with_suffix(f'.{os.getpid()}.part')
        part.touch(0o600)
        part.write_bytes(dump)
        part.replace(self.kept())
        self._finish()

    def _finish(self) -> None:
        # Gnocchi's files are made by the same command as its tables, and are in no dump.
        self._services.run(
            'gnocchi-upgrade', '--config-file',
            str(self._settings.configuration / 'gnocchi/gnocchi.conf'), '--skip-index',
            '--skip-archive-policies-creation')
        self._mark.write_text(self.key(), encoding='ascii')

    def _client(self, name: str, arguments: Sequence[str], text: bytes) -> bytes:
        with self._log.open('ab') as log:
            ended = subprocess.run(
                [service.system_program(name, 'mariadb-client'), '--no-defaults', '--user=root',
                 f'--socket={infrastructure.database_socket(self._settings)}', *arguments],
                input=text, stdout=subprocess.PIPE, stderr=log, check=False)
        if ended.returncode:
            raise errors.ServiceFailed(name, f'has ended with code {ended.returncode}', self._log)
        return ended.stdout
