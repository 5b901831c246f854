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

"""All services of a cloud by name: found, started, broken, looked at."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Callable

from tracon_lab.testcloud import control
from tracon_lab.testcloud import errors
from tracon_lab.testcloud import host as host_module
from tracon_lab.testcloud import infrastructure
from tracon_lab.testcloud import service as service_module
from tracon_lab.testcloud import settings as settings_module
from tracon_lab.testcloud import supervisor as supervisor_module

#: The services that are not of a compute host, in the order in which they start.
COMMON: dict[str, Callable[[settings_module.Settings], service_module.Service]] = {
    'mariadb': infrastructure.mariadb,
    'epmd': infrastructure.epmd,
    'rabbitmq': infrastructure.rabbitmq,
    'memcached': infrastructure.memcached,
    'keystone': control.keystone,
    'placement': control.placement,
    'glance-api': control.glance,
    'neutron-api': control.neutron,
    'nova-api': control.nova_api,
    'nova-conductor': control.nova_conductor,
    'nova-scheduler': control.nova_scheduler,
    'gnocchi-api': control.gnocchi_api,
    'gnocchi-metricd': control.gnocchi_metricd,
    'ceilometer-notification': control.ceilometer_notification,
    'watcher-api': control.watcher_api,
    'watcher-decision-engine': control.watcher_decision_engine,
    'watcher-applier': control.watcher_applier,
}


class Services:
    """The services of one cloud."""

    def __init__(self, settings: settings_module.Settings) -> None:
        self.settings = settings
        self.environment = {
            'PATH': f'{os.environ.get("PATH", "")}:/usr/sbin:/sbin',
            'HOME': str(settings.data), 'LC_ALL': 'C.UTF-8', 'PYTHONWARNINGS': 'ignore',
            # Linear algebra in many threads would only fight for the cores.
            'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1', **settings.environment}
        self.supervisor = supervisor_module.Supervisor(
            settings.run, settings.logs, self.environment)
        self.hosts = {name: host_module.Host(settings, self.supervisor, name)
                      for name in settings.hosts}
        self.extra: dict[str, service_module.Service] = {}

    def names(self) -> list[str]:
        """Return the names of all services, in the order in which they start."""
        return [*COMMON, *(name for host in self.hosts.values() for name in host.names()),
                *self.extra]

    def find(self, name: str) -> service_module.Service:
        """Return a service by its name.

        :raises CloudError: when there is none of that name, or its host does not run
        """
        if name in self.extra:
            return self.extra[name]
        if (kept := self._kept(name)).exists():
            command, environment = json.loads(kept.read_text(encoding='utf-8'))
            return service_module.Service(name, tuple(command), environment)
        if name in COMMON:
            return COMMON[name](self.settings)
        for host in self.hosts.values():
            if name in host.names():
                return host.service(name)
        raise errors.CloudError(f'there is no service {name!r}: it is one of '
                                f'{", ".join(self.names())}')

    def add(self, service: service_module.Service) -> None:
        """Take one more service in; who comes later knows its command too."""
        self.extra[service.name] = service
        self.settings.run.mkdir(parents=True, exist_ok=True)
        kept = self._kept(service.name)
        kept.touch(0o600)
        kept.write_text(json.dumps([service.command, dict(service.environment)]),
                        encoding='utf-8')

    def _kept(self, name: str) -> pathlib.Path:
        return self.settings.run / f'{name}.extra'

    def start(self, name: str) -> None:
        """Start a service unless it runs, and wait until it is up.

        :raises ServiceFailed: when it is not up in time
        """
        found = self.find(name)
        if self.supervisor.start(found) or found.ready is not None:
            self.supervisor.wait(found)

    def check(self, *names: str) -> None:
        """Make sure that services run.

        :raises ServiceFailed: when one has ended
        """
        for name in names:
            if not self.supervisor.running(name):
                raise errors.ServiceFailed(name, 'has ended', self.supervisor.log(name))

    def run(self, name: str, *arguments: str, patience: float = 120.0) -> None:
        """Run a program of the environment to its end; it writes to the log of its name.

        :raises ServiceFailed: when it fails, or takes longer
        """
        log = self.supervisor.log(name)
        with log.open('ab') as out:
            try:
                code = subprocess.run(
                    [service_module.program(name), *arguments], stdin=subprocess.DEVNULL,
                    stdout=out, stderr=out, env=self.environment, cwd='/', timeout=patience,
                    check=False).returncode
            except subprocess.TimeoutExpired:
                raise errors.ServiceFailed(name, f'took more than {patience:.0f} s',
                                           log) from None
        if code:
            raise errors.ServiceFailed(name, f'has ended with code {code}', log)
