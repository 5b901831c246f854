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

"""A whole OpenStack: started, used, broken on purpose, and stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import pathlib
import signal
import types
from typing import Any, Callable, Iterator, Mapping, Sequence

import openstack

from tracon_lab.testcloud import access
from tracon_lab.testcloud import configuration
from tracon_lab.testcloud import errors
from tracon_lab.testcloud import guest as guest_module
from tracon_lab.testcloud import host as host_module
from tracon_lab.testcloud import infrastructure
from tracon_lab.testcloud import launch
from tracon_lab.testcloud import requirements
from tracon_lab.testcloud import servers as servers_module
from tracon_lab.testcloud import service as service_module
from tracon_lab.testcloud import services
from tracon_lab.testcloud import settings as settings_module
from tracon_lab.testcloud import steps
from tracon_lab.testcloud import supervisor as supervisor_module

#: Steps at a time: most of them keep a core busy with imports, and wait now and then.
STARTERS = 3
STOPPERS = 8
#: Called with a step that is done, the seconds it took, and the share of all that is done.
Report = Callable[[steps.Step, float, float], None]


class TestCloud:
    """A context in which the cloud runs; one that ran before still runs afterwards."""

    __test__ = False

    def __init__(self, settings: settings_module.Settings | None = None,
                 report: Report = lambda step, seconds, share: None) -> None:
        self.settings = settings or settings_module.Settings()
        self._report = report
        self._services = services.Services(self.settings)
        self._launch = launch.Launch(self._services)
        self._ran = False

    def __enter__(self) -> TestCloud:
        self._ran = self.up
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: types.TracebackType | None) -> None:
        if not self._ran:
            self.stop()

    @property
    def up(self) -> bool:
        """Whether every service runs."""
        return all(map(self._services.supervisor.running, self._services.names()))

    def start(self) -> None:
        """Start what is not running, or runs with other settings, and make what is missing.

        :raises CloudError: when something is not installed, or a service does not start
        """
        requirements.check(self.settings)
        with self._alone():
            self.settings.save()
            infrastructure.prepare(self.settings)
            configuration.write(self.settings)
            self._perform(self._launch.up(), STARTERS)

    def stop(self) -> None:
        """Stop everything, guests too; what is stored stays."""
        with self._alone():
            self._perform(self._launch.down(), STOPPERS)
        self._services.extra.clear()

    def status(self) -> list[supervisor_module.Status]:
        """Look at all services, and at whatever else was started here."""
        names = self._services.names()
        supervisor = self._services.supervisor
        return supervisor.status([*names, *(
            name for name in supervisor.names() if name not in names)])

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Two that start or stop the same cloud at once would undo each other."""
        self.settings.directory.mkdir(parents=True, exist_ok=True)
        with (self.settings.directory / 'lock').open('w') as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise errors.CloudError(f'the cloud in {self.settings.directory} is being started '
                                        f'or stopped by somebody else: wait for it') from None
            yield

    def _perform(self, listed: list[steps.Step], workers: int) -> None:
        total, done = sum(step.weight for step in listed), 0.0

        def report(step: steps.Step, seconds: float) -> None:
            nonlocal done
            done += step.weight
            self._report(step, seconds, done / total)
        steps.perform(listed, workers, report)

    # Services

    @property
    def hosts(self) -> dict[str, host_module.Host]:
        """The compute hosts by name."""
        return self._services.hosts

    def restart(self, name: str) -> None:
        """Stop a service and start it again, and wait until it is up."""
        found = self._services.find(name)
        self._services.supervisor.stop(name, found.stop_patience)
        self._services.start(name)

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Signal a service's process; :meth:`restart` brings it back."""
        self._services.supervisor.kill(name, number)

    def end(self, name: str) -> None:
        """Stop one service for good, unless another is started in its place."""
        self._services.supervisor.stop(name, self._services.find(name).stop_patience)

    def log(self, name: str) -> pathlib.Path:
        """Return the path of a service's log."""
        return self._services.supervisor.log(name)

    def extra_service(self, name: str, command: Sequence[str],
                      environment: Mapping[str, str] | None = None,
                      ready: Callable[[], bool] | None = None, host: str | None = None,
                      reads: Sequence[pathlib.Path] = ()) -> None:
        """Run one more process, which is stopped with the others.

        :param ready: tells whether it is up
        :param reads: files that it reads at its start; when they have changed it is restarted
        :param host: the compute host on which it runs
        """
        if host is None:
            made = service_module.Service(name, tuple(command), environment or {}, ready,
                                          tuple(reads))
        else:
            made = dataclasses.replace(
                self.hosts[host].inside(name, command, ready, environment, reads), name=name)
        self.add(made)

    def add(self, service: service_module.Service) -> None:
        """Run one more service, which is stopped with the others."""
        self._services.add(service)
        self._services.start(service.name)

    # Use

    def environment(self, user: str = 'admin', project: str = 'admin') -> dict[str, str]:
        """Return the variables that the openstack command reads."""
        return self.settings.access(user, project)

    def connection(self, user: str = 'admin',
                   project: str = 'admin') -> openstack.connection.Connection:
        """Return a connection of the SDK."""
        return access.connect(self.settings, user, project)

    @property
    def servers(self) -> servers_module.Servers:
        """VMs, as the administrator sees them."""
        return servers_module.Servers(self.connection())

    def boot(self, name: str, host: str | None = None, **more: Any) -> servers_module.Server:
        """Boot a VM, see :meth:`.servers.Servers.boot`."""
        return self.servers.boot(name, host, **more)

    def guest(self, server: servers_module.Server,
              patience: float = guest_module.BOOT_PATIENCE) -> guest_module.Guest:
        """Return the connection to a VM's program, once it has booted.

        :raises TraconError: when it does not answer in time
        """
        found = guest_module.find(self.hosts[server.host], server.id, server.name)
        found.wait_for_boot(patience)
        return found
