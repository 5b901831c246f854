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

"""VMs, through Nova's API as anyone would use it."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping

import openstack

from tracon_lab.testcloud import access
from tracon_lab.testcloud import errors
from tracon_lab.testcloud import images

_MOVING = ('accepted', 'queued', 'preparing', 'running', 'post-migrating')


@dataclasses.dataclass(frozen=True)
class Server:
    """A VM as Nova knew it when it was asked last.

    :param host: the compute host it is on
    """

    id: str
    name: str
    host: str


class Servers:
    """What is done with VMs, and waited for.

    :param connection: of an administrator, who may choose hosts
    """

    def __init__(self, connection: openstack.connection.Connection) -> None:
        self._connection = connection
        self._compute = connection.compute

    def boot(self, name: str, host: str | None = None, flavor: str = 'tracon.small',
             image: str = images.GUEST, hints: Mapping[str, object] | None = None,
             patience: float = 120.0, **more: object) -> Server:
        """Boot a VM without a network, and wait until Nova says that it runs.

        :param host: where it has to be; by default the scheduler decides
        :param hints: for the scheduler
        :param more: fields of the request
        :raises CloudError: when Nova fails; the text is Nova's
        """
        return self.wait(self.create(name, host, flavor, image, hints, **more), patience)

    def create(self, name: str, host: str | None = None, flavor: str = 'tracon.small',
               image: str = images.GUEST, hints: Mapping[str, object] | None = None,
               **more: object) -> str:
        """Ask for a VM, and return its id at once."""
        body: dict[str, object] = {'server': {
            'name': name, 'imageRef': self._image(image), 'flavorRef': self._flavor(flavor),
            'networks': 'none', **({'host': host} if host else {}), **more}}
        if hints:
            body['os:scheduler_hints'] = dict(hints)
        return str(_ok(self._compute.post('/servers', json=body)).json()['server']['id'])

    def find(self, name: str) -> Server | None:
        """Return the VM of that name, None when there is none."""
        for one in self.all():
            if one.name == name:
                return one
        return None

    def all(self) -> list[Server]:
        """Return the VMs of all projects; one without a host has failed."""
        found = _ok(self._compute.get('/servers/detail?all_tenants=1')).json()['servers']
        return [_server(one) for one in found]

    def wait(self, server: str, patience: float = 120.0) -> Server:
        """Wait until a VM is active and nothing is being done with it.

        :param server: its id
        :raises CloudError: when it is in error, or this takes longer
        """
        def settled() -> Server | None:
            found = _ok(self._compute.get(f'/servers/{server}')).json()['server']
            if found['status'] == 'ERROR':
                raise errors.CloudError(f'server {found["name"]} is in error: '
                                        f'{found.get("fault", {}).get("message")}')
            if found['status'] != 'ACTIVE' or found['OS-EXT-STS:task_state']:
                return None
            return _server(found)
        return access.wait_for(f'server {server} becoming active', settled, patience)

    def migrate(self, server: Server, host: str | None = None, patience: float = 180.0) -> Server:
        """Move a VM while it runs, its disk too, and wait until it is there.

        :param host: where to; by default the scheduler decides
        :raises CloudError: when it stays, or this takes longer
        """
        _ok(self._compute.post(f'/servers/{server.id}/action', json={
            'os-migrateLive': {'host': host, 'block_migration': 'auto'}}))

        def ended() -> str | None:
            found = _ok(self._compute.get('/os-migrations', params={
                'instance_uuid': server.id})).json()['migrations']
            state = max(found, key=lambda one: one['id'])['status'] if found else 'queued'
            return None if state in _MOVING else str(state)
        state = access.wait_for(f'server {server.name} leaving {server.host}', ended, patience)
        moved = self.wait(server.id, 30.0)
        if state != 'completed':
            raise errors.CloudError(f'server {server.name} could not leave {server.host} for '
                                    f'{host or "any host"}: the migration is in state {state!r}; '
                                    f'the log of nova-compute-{server.host} says why')
        return moved

    def delete(self, server: Server, patience: float = 60.0) -> None:
        """Delete a VM and wait until it is gone."""
        self._compute.delete(f'/servers/{server.id}')
        access.wait_for(f'server {server.name} being gone', lambda: self._compute.get(
            f'/servers/{server.id}').status_code == 404, patience)

    def _image(self, name: str) -> str:
        return _only('image', name, _ok(self._connection.image.get(
            '/images', params={'name': name})).json()['images'])

    def _flavor(self, name: str) -> str:
        return _only('flavor', name, _ok(self._compute.get('/flavors')).json()['flavors'])


def _only(kind: str, name: str, found: list[dict[str, Any]]) -> str:
    for one in found:
        if one['name'] == name:
            return str(one['id'])
    raise errors.CloudError(f'there is no {kind} {name!r}; there are '
                            f'{", ".join(sorted(one["name"] for one in found)) or "none"}')


def _server(found: dict[str, Any]) -> Server:
    return Server(found['id'], found['name'], found['OS-EXT-SRV-ATTR:host'] or '')


def _ok(answer: Any) -> Any:
    openstack.exceptions.raise_from_response(answer)
    return answer
