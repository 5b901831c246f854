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

"""A compute host: namespaces, a libvirt of its own, nova-compute and a polling agent."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
from typing import Any, Callable, Mapping, Sequence

from tracon_lab.testcloud import control
from tracon_lab.testcloud import enclosure
from tracon_lab.testcloud import errors
from tracon_lab.testcloud import pidfile
from tracon_lab.testcloud import service as service_module
from tracon_lab.testcloud import settings as settings_module
from tracon_lab.testcloud import supervisor as supervisor_module

# Seconds that killed guests may take to be gone.
_EXIT_PATIENCE = 15.0


class Host:
    """One compute host.

    :param name: its host name
    """

    def __init__(self, settings: settings_module.Settings,
                 supervisor: supervisor_module.Supervisor, name: str) -> None:
        self.name = name
        self.directory = settings.host_directory(name)
        self._settings = settings
        self._supervisor = supervisor
        # Another cloud may have hosts of the same names.
        self._group = f'tracon-{settings.port_base}-{name}'

    def prepare(self) -> None:
        """Remove what an earlier run has left: guests, libvirt's sockets and states."""
        if not self._supervisor.running(self.name):
            self.clear()
            shutil.rmtree(self.directory / 'run', ignore_errors=True)
            (self.directory / enclosure.READY).unlink(missing_ok=True)
        (self.directory / 'lib/nova/instances').mkdir(parents=True, exist_ok=True)

    def enclosure(self) -> service_module.Service:
        """Return what holds the namespaces; it has to run before anything else here."""
        ready = self.directory / enclosure.READY
        return service_module.Service(self.name, enclosure.command(
            self.directory, self.name, self._group, self._settings.guest_shares),
            # Guests live in its namespaces.
            ready=ready.exists, lasting=True)

    def names(self) -> list[str]:
        """Return the names of this host's services, in the order they have to start."""
        return [self.name, *(f'{one}-{self.name}' for one in (
            'virtlogd', 'libvirtd', 'nova-compute', 'ceilometer-polling'))]

    def service(self, name: str) -> service_module.Service:
        """Return one of :meth:`names`.

        :raises CloudError: when the host itself does not run yet
        """
        if name == self.name:
            return self.enclosure()
        kind = name.removesuffix(f'-{self.name}')
        etc = self._settings.configuration
        if kind in ('virtlogd', 'libvirtd'):
            socket = {'virtlogd': 'virtlogd-sock', 'libvirtd': 'libvirt-sock'}[kind]
            return self.inside(
                kind, (service_module.system_program(kind, 'libvirt-daemon-system'),
                       '--pid-file', f'/run/libvirt/{kind}.pid'),
                service_module.accepts(self.root / 'run/libvirt' / socket),
                reads=[self.directory / 'etc' / one for one in ('libvirtd.conf', 'qemu.conf')])
        if kind == 'nova-compute':
            files = [etc / 'nova/nova.conf', etc / f'nova/{self.name}.conf']
            return self.inside(kind, (service_module.program(kind), *control.config_files(files)),
                               reads=files)
        files = [etc / 'ceilometer/ceilometer.conf', etc / f'ceilometer/{self.name}.conf']
        return self.inside(
            kind, (service_module.program(kind), '--polling-namespaces', 'compute',
                   *control.config_files(files)),
            reads=[*files, etc / 'ceilometer/polling.yaml'])

    def inside(self, name: str, command: Sequence[str],
               ready: Callable[[], bool] | None = None,
               environment: Mapping[str, str] | None = None,
               reads: Sequence[pathlib.Path] = ()) -> service_module.Service:
        """Return a service in this host's namespaces; its name ends with the host's.

        :raises CloudError: when the host does not run
        """
        return service_module.Service(
            f'{name}-{self.name}', (
                service_module.system_program('nsenter', 'util-linux'), '--target', str(self.pid),
                *enclosure.NAMESPACES, '--', *command),
            environment or {}, ready, tuple(reads), host=self.name)

    @property
    def pid(self) -> int:
        """The process that holds the namespaces.

        :raises CloudError: when the host does not run
        """
        found = self._supervisor.recorded(self.name)
        if found is None or not found.alive:
            raise errors.CloudError(f'host {self.name} does not run: "tracon cloud start" '
                                    f'starts what is not running')
        return found.pid

    @property
    def root(self) -> pathlib.Path:
        """The host's file system, as seen from outside."""
        return pathlib.Path(f'/proc/{self.pid}/root')

    def connect(self) -> Any:
        """Return a connection to the host's libvirt, a context.

        :raises CloudError: when it does not answer
        """
        import libvirt
        libvirt.registerErrorHandler(lambda *unused: None, None)
        socket = self.root / 'run/libvirt/libvirt-sock'
        try:
            return libvirt.open(f'qemu+unix:///system?socket={socket}')
        except libvirt.libvirtError as exc:
            raise errors.CloudError(f'libvirtd-{self.name} does not answer: {exc}') from exc

    def definition(self, server_id: str) -> str:
        """Return libvirt's definition of a guest as it runs, XML.

        :raises CloudError: when it is not on this host
        """
        import libvirt
        with self.connect() as connection:
            try:
                return str(connection.lookupByUUIDString(server_id).XMLDesc())
            except libvirt.libvirtError as exc:
                raise errors.CloudError(
                    f'server {server_id} is not on {self.name}: {exc}') from exc

    def clear(self) -> None:
        """Kill whatever still runs in the host's namespaces: its guests."""
        try:
            namespace = (self.directory / enclosure.READY).read_text(encoding='ascii')
        except OSError:
            return
        for entry in pidfile.PROC.iterdir():
            # Between reading the link and the signal a number could change hands; what was
            # recorded before cannot.
            if not entry.name.isdigit() or not (found := pidfile.Recorded.of(int(entry.name))):
                continue
            with contextlib.suppress(OSError):
                if os.readlink(entry / 'ns/mnt') == namespace:
                    found.send(signal.SIGKILL)
        (self.directory / enclosure.READY).unlink(missing_ok=True)

    def leave(self) -> None:
        """End the host, its guests too."""
        self.clear()
        self._supervisor.stop(self.name)
        # A killed guest gives its memory back before it leaves its groups.
        enclosure.remove_groups(self._group, _EXIT_PATIENCE)
