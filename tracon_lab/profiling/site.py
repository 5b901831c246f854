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

"""What a measurement makes in the cloud, on one host: VMs, their images, a flavor.

All of it is found again by its name and mark, so that what an earlier run has left can be removed,
and nothing but that: VMs and images of this project, marked as ours.
"""

from __future__ import annotations

import dataclasses
import pathlib
import time
from typing import Any, Callable, Iterator, Mapping

from tracon_lab.profiling import errors
from tracon_lab.profiling import hosts
from tracon_lab.profiling import schedule
from tracon_lab.profiling import service
from tracon_lab.testbed import image
from tracon_lab.testbed import interruption

#: The VMs, by what runs in them.
TARGET, BACKGROUND = 'target', 'background'
ROLES = (TARGET, BACKGROUND)
#: Metadata of our VMs and images: the host they are for. Then the key that keeps Watcher away.
MARK = 'tracon_measure'
STAY = {'tracon:exclude': 'true'}
_PROPERTIES = {
    'os_command_line': 'console=ttyS0 quiet panic=-1 scratch=/dev/vda',
    # Without it a guest's clock is slow where it is emulated.
    'hw_time_hpet': 'True',
    'hw_disk_bus': 'virtio',
    'hw_video_model': 'none',
}
# The VM's disk is as large as its flavor says; of its image nothing is read.
_DISK = bytes(1 << 20)
# Lines are short and one a window, so this is what a console has at most of a day.
_CONSOLE_LINES = 400
_PAUSE = 1.0


@dataclasses.dataclass(frozen=True)
class Size:
    """What the VMs have.

    :param flavor: the name of one that is there; None makes one of one virtual CPU
    """

    memory_mib: int = 512
    disk_gib: int = 2
    flavor: str | None = None


class Site:
    """One host, and what is made for measuring it; a context that removes all of it.

    :param connection: ``openstack.connection.Connection`` of an administrator
    :param built: kernel and ramdisk of guests
    """

    def __init__(self, connection: Any, host: str, size: Size, built: image.Image,
                 patience: float = 300.0, clock: Callable[[], float] = time.monotonic,
                 sleep: Callable[[float], None] = time.sleep) -> None:
        self.host = host
        self._nova = service.Service('Nova', connection.compute)
        self._glance = service.Service('Glance', connection.image)
        self._size = size
        self._built = built
        self._patience = patience
        self._clock, self._sleep = clock, sleep
        self._project = str(connection.current_project_id)
        self._prefix = hosts.prefix(host)
        self._servers: dict[str, str] = {}
        self._images: list[str] = []
        self._kernel: str | None = None
        self._flavor: str | None = None

    def __enter__(self) -> Site:
        return self

    def __exit__(self, *unused: object) -> None:
        with interruption.signals.held():
            self.remove()

    # What there was

    def remove(self) -> int:
        """Remove everything of ours on this host, also what an earlier run left; say how much.

        :raises CloudRefused: naming what is left, when something cannot be removed
        """
        gone, failed = 0, []
        for name, remove in [*self._left_servers(), *self._left_images(), *self._left_flavors()]:
            try:
                remove()
                gone += 1
            except errors.CloudRefused as error:
                failed.append(f'{name} ({error})')
        self._servers.clear()
        self._images.clear()
        self._kernel = self._flavor = None
        if failed:
            raise errors.CloudRefused(
                'what was made for measuring could not be removed: ' + '; '.join(failed)
                + '; the next measurement of this host tries again')
        return gone

    def _left_servers(self) -> Iterator[tuple[str, Callable[[], None]]]:
        for one in self._nova.get('/servers/detail', 'servers', {'name': f'^{self._prefix}'}):
            if one['name'].startswith(self._prefix) and one['metadata'].get(MARK) == self.host:
                yield f'server {one["name"]}', lambda uuid=one['id']: self._delete_server(uuid)

    def _left_images(self) -> Iterator[tuple[str, Callable[[], None]]]:
        for one in self._glance.get('/images', 'images', {
                MARK: self.host, 'owner': self._project, 'limit': '200'}):
            yield f'image {one["name"]}', lambda uuid=one['id']: self._glance.delete(
                f'/images/{uuid}')

    def _left_flavors(self) -> Iterator[tuple[str, Callable[[], None]]]:
        for one in self._nova.get('/flavors', 'flavors', {'is_public': 'None'}):
            if one['name'] == self._prefix + 'flavor':
                yield f'flavor {one["name"]}', lambda uuid=one['id']: self._nova.delete(
                    f'/flavors/{uuid}')

    def _delete_server(self, uuid: str) -> None:
        path = f'/servers/{uuid}'
        self._nova.delete(path)
        deadline = self._clock() + self._patience
        while self._nova.find(path, 'server') is not None:
            if self._clock() > deadline:
                raise errors.CloudRefused(f'server {uuid} is still there {self._patience:.0f} s '
                                          f'after it was deleted: see the log of nova-compute')
            self._sleep(_PAUSE)

    # What is made

    def boot(self, schedules: Mapping[str, str]) -> None:
        """Boot VMs with these schedules, by role, and wait until Nova says that they run.

        VMs that were booted before are deleted.

        :raises CloudRefused: with what Nova said of a VM that failed
        """
        self.clear()
        with interruption.signals.held():
            for role, text in schedules.items():
                made = self._image(f'{role}-image', 'raw', _DISK, {
                    **_PROPERTIES, 'kernel_id': self._kernel_image(),
                    'ramdisk_id': self._image(
                        f'{role}-ramdisk', 'ari', schedule.ramdisk(self._built.initramfs, text))})
                self._servers[role] = self._create(role, made)
        for role, uuid in self._servers.items():
            self._wait(role, uuid)

    def clear(self) -> None:
        """Delete the VMs and their images; the kernel and the flavor stay."""
        with interruption.signals.held():
            for role in list(self._servers):
                self._delete_server(self._servers.pop(role))
            while self._images:
                self._glance.delete(f'/images/{self._images.pop()}')

    def id(self, role: str) -> str:
        """Return the uuid of a VM that was booted."""
        return self._servers[role]

    def console(self, role: str) -> str:
        """Return the end of what one of our VMs has said."""
        answer = self._nova.post(f'/servers/{self._servers[role]}/action', {
            'os-getConsoleOutput': {'length': _CONSOLE_LINES}})
        return str(answer.get('output') or '')

    def others(self) -> list[str]:
        """Return the names of the VMs on the host that are not ours."""
        found = self._nova.get('/servers/detail', 'servers', {
            'all_tenants': 'True', 'host': self.host})
        return sorted(f'{one["name"]} ({one["id"]})' for one in found
                      if one['id'] not in self._servers.values())

    def _create(self, role: str, image_id: str) -> str:
        answer = self._nova.post('/servers', {'server': {
            'name': self._prefix + role, 'imageRef': image_id, 'flavorRef': self._flavor_id(),
            'networks': 'none', 'host': self.host, 'metadata': {MARK: self.host, **STAY}}})
        return str(answer['server']['id'])

    def _wait(self, role: str, uuid: str) -> None:
        deadline = self._clock() + self._patience
        while True:
            interruption.signals.check()
            server = self._nova.find(f'/servers/{uuid}', 'server') or {'status': 'gone'}
            if server['status'] == 'ACTIVE':
                return
            if server['status'] in ('ERROR', 'gone'):
                fault = server.get('fault', {}).get('message', 'Nova says no more')
                raise errors.CloudRefused(
                    f'the {role} VM on {self.host} is {server["status"]}: {fault}: see the logs '
                    f'of nova-scheduler and of nova-compute on {self.host}')
            if self._clock() > deadline:
                raise errors.CloudRefused(
                    f'the {role} VM on {self.host} is {server["status"]} still, '
                    f'{self._patience:.0f} s after it was asked for: see nova-compute\'s log')
            self._sleep(_PAUSE)

    def _flavor_id(self) -> str:
        if self._flavor is None and self._size.flavor is not None:
            known = {one['name']: one['id'] for one in self._nova.get(
                '/flavors', 'flavors', {'is_public': 'None'})}
            if self._size.flavor not in known:
                raise errors.ProfilingError(f'flavor {self._size.flavor}: there is none of that '
                                            f'name; leave --flavor out, and one is made')
            self._flavor = str(known[self._size.flavor])
        if self._flavor is None:
            answer = self._nova.post('/flavors', {'flavor': {
                'name': self._prefix + 'flavor', 'vcpus': 1, 'ram': self._size.memory_mib,
                'disk': self._size.disk_gib, 'os-flavor-access:is_public': False}})
            self._flavor = str(answer['flavor']['id'])
        return self._flavor

    def _kernel_image(self) -> str:
        if self._kernel is None:
            self._kernel = self._upload('kernel', 'aki', self._built.kernel)
        return self._kernel

    def _image(self, name: str, disk_format: str, content: bytes,
               properties: Mapping[str, str] | None = None) -> str:
        uuid = self._upload(name, disk_format, content, properties)
        self._images.append(uuid)
        return uuid

    def _upload(self, name: str, disk_format: str, content: bytes | pathlib.Path,
                properties: Mapping[str, str] | None = None) -> str:
        container = disk_format if disk_format in ('aki', 'ari') else 'bare'
        made = self._glance.post('/images', {
            'name': self._prefix + name, 'disk_format': disk_format,
            'container_format': container, MARK: self.host, **(properties or {})})
        self._glance.upload(f'/images/{made["id"]}/file', content if isinstance(
            content, bytes) else content.read_bytes())
        return str(made['id'])
