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

"""Cache of the inventory: the last full listing, and the changes that Nova has notified since."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from typing import Any, Callable, Mapping

from tracon_watcher.inventory import cloud
from tracon_watcher.inventory import vm_states

#: Ends of operations after which Nova's record of a VM's host is the right one. Other
#: notifications carry it too, but some are sent while it changes.
_SETTLED = frozenset(
    f'instance.{name}.end' for name in (
        'create', 'live_migration_post_dest', 'live_migration_rollback', 'rebuild',
        'resize_finish', 'resize_confirm', 'resize_revert', 'shelve_offload', 'unshelve'))
_GONE = 'instance.delete.end'
#: What changes more than a VM: the next listing is made soon.
_WIDER = ('aggregate.', 'service.', 'instance.evacuate')
#: After these a VM has other volumes.
_VOLUMES = frozenset(('instance.volume_attach.end', 'instance.volume_detach.end'))
#: In these a VM does not run, or it is not known whether it does.
_STILL = vm_states.IDLE | vm_states.ABSENT | {vm_states.FAILED}


class InventoryCache:
    """The inventory, kept up to date. Safe for use by several threads.

    :param on_moved: called with a VM's uuid and the host that it has come to from another one
    """

    def __init__(self, on_moved: Callable[[str, str], None] = lambda vm, host: None) -> None:
        self._on_moved = on_moved
        self._lock = threading.Lock()
        self._inventory: cloud.Inventory | None = None
        self._servers: dict[str, cloud.Server] = {}
        self._told_at: dict[str, float] = {}
        self._removed: dict[str, float] = {}
        #: Hosts whose VMs a listing has had.
        self._seen: frozenset[str] = frozenset()
        #: When each VM whose volumes are not known was last told of.
        self._questions: dict[str, float] = {}
        #: The same of those whose volumes were answered since the last listing began.
        self._answered: dict[str, float] = {}
        self._backends: dict[str, str] = {}
        #: Set when something changed that only a full listing shows.
        self.repair_wanted = threading.Event()
        #: Set when there is something to ask of single VMs.
        self.lookup_wanted = threading.Event()

    def forget(self) -> None:
        """Know nothing, as before the first listing."""
        with self._lock:
            self._inventory, self._seen = None, frozenset()
            for one in (self._servers, self._told_at, self._removed, self._questions,
                        self._answered, self._backends):
                one.clear()

    def replace(self, inventory: cloud.Inventory) -> int:
        """Take a full listing; of VMs that Nova told of since it began, what was told stays.

        :returns: how many VMs were not as notifications had left them
        """
        with self._lock:
            since = inventory.began_at
            servers = dict(inventory.servers)
            for uuid, at in self._told_at.items():
                if at >= since and uuid in self._servers:
                    servers[uuid] = self._servers[uuid]
            for uuid, at in self._removed.items():
                if at >= since:
                    servers.pop(uuid, None)
            for uuid, before in self._servers.items():
                if uuid in servers:
                    servers[uuid] = _resumed(before, servers[uuid], since)
            # The listing may have passed by a VM before Nova told that it has other volumes.
            self._answered = {uuid: since for uuid, at in self._answered.items()
                              if at >= since and uuid in servers and uuid in self._servers}
            backends: dict[str, str] = {}
            for uuid in self._answered:
                attached = self._servers[uuid].volumes
                servers[uuid] = dataclasses.replace(servers[uuid], volumes=attached)
                backends.update((one, self._backends[one]) for one in attached
                                if one in self._backends)
            known = self._inventory is not None
            inventory = self._with_details(inventory)
            # A cell that does not answer is left out of a listing; its VMs run on.
            servers.update({uuid: one for uuid, one in self._servers.items()
                            if one.host in inventory.unreachable and uuid not in servers
                            and uuid not in self._removed})
            repaired = sum(1 for uuid in servers.keys() | self._servers.keys()
                           if _place(servers.get(uuid)) != _place(self._servers.get(uuid)))
            # The next listing is newer than all that was told so far, whatever clocks say.
            self._told_at = {uuid: since for uuid, at in self._told_at.items() if at >= since}
            self._removed = {uuid: since for uuid, at in self._removed.items() if at >= since}
            self._questions = {uuid: at for uuid, at in self._questions.items()
                               if at >= since and uuid in servers}
            self._backends = backends
            both = [(self._servers[uuid], server) for uuid, server in servers.items()
                    if uuid in self._servers]
            self._seen = frozenset(host for host, one in inventory.hypervisors.items()
                                   if one.reachable or host in self._seen)
            self._servers = servers
            self._inventory = dataclasses.replace(
                inventory, remembered=self._seen & inventory.unreachable)
        # Without the lock: it may take its time, and Nova goes on telling.
        for before, after in both:
            self._tell_moved(before, after)
        return repaired if known else 0

    def _with_details(self, inventory: cloud.Inventory) -> cloud.Inventory:
        """Return the listing with types and cores as they were where they are not known now."""
        if self._inventory is None:
            return inventory
        before = self._inventory.hypervisors
        return dataclasses.replace(inventory, hypervisors={
            host: dataclasses.replace(one, type=one.type or before[host].type,
                                      **({} if one.cores else {
                                          'cores': before[host].cores,
                                          'threads': before[host].threads}))
            if host in before else one
            for host, one in inventory.hypervisors.items()})

    def current(self) -> cloud.Inventory | None:
        """Return the inventory as it is known now, None before the first listing."""
        with self._lock:
            if self._inventory is None:
                return None
            return dataclasses.replace(
                self._inventory, servers=dict(self._servers),
                backends={**self._inventory.backends, **self._backends}
                if self._backends else self._inventory.backends)

    def questions(self, most: int) -> dict[str, float]:
        """Return VMs whose volumes are to be asked for, ``most`` of them, oldest first.

        :returns: by uuid, when Nova told that they changed
        """
        with self._lock:
            return dict(itertools.islice(self._questions.items(), most))

    def answer(self, uuid: str, told_at: float, found: cloud.Volumes | None) -> None:
        """Take the answer to a question.

        :param told_at: as :meth:`questions` returned it; what Nova told since is asked again
        :param found: None where nothing can be said of the VM
        """
        with self._lock:
            if self._questions.get(uuid) == told_at:
                del self._questions[uuid]
            known = self._servers.get(uuid)
            if found is not None and known is not None:
                self._servers[uuid] = dataclasses.replace(known, volumes=found.attached)
                self._backends.update(found.backends)
                self._answered[uuid] = told_at

    def postpone(self, uuid: str, told_at: float) -> None:
        """Put a question last, since there was no answer; what Nova told since stays in its place.

        :param told_at: as :meth:`questions` returned it
        """
        with self._lock:
            if self._questions.get(uuid) == told_at:
                del self._questions[uuid]
                self._questions[uuid] = told_at

    def tell(self, event: str, payload: Mapping[str, Any], at: float) -> bool:
        """Take one of Nova's versioned notifications.

        :param event: its type, such as ``instance.create.end``
        :param payload: what it says, without the versioned object's wrapping
        :param at: seconds since the epoch when it came
        :returns: whether it changed anything
        """
        if event.startswith(_WIDER):
            self.repair_wanted.set()
        uuid = payload.get('uuid')
        if not event.startswith('instance.') or not isinstance(uuid, str):
            return False
        with self._lock:
            if event == _GONE:
                self._removed[uuid] = at
                self._questions.pop(uuid, None)
                return self._servers.pop(uuid, None) is not None
            if uuid in self._removed:
                return False
            before = self._servers.get(uuid)
            found = self._update(before, event, payload)
            if event in _VOLUMES and before is not None or (
                    found is not None and not found.image and not found.volumes):
                # Which volumes a VM has, and where they are, no notification says.
                self._questions[uuid] = at
                self.lookup_wanted.set()
            if found is None or found == before:
                return False
            if before is not None:
                found = _resumed(before, found, at)
            self._servers[uuid] = found
            self._told_at[uuid] = at
        if before is not None:
            self._tell_moved(before, found)
        return True

    def _tell_moved(self, before: cloud.Server, after: cloud.Server) -> None:
        if before.host is not None and after.host is not None and before.host != after.host:
            self._on_moved(after.uuid, after.host)

    @staticmethod
    def _update(known: cloud.Server | None, event: str,
                payload: Mapping[str, Any]) -> cloud.Server | None:
        settled = event in _SETTLED
        if known is None:
            return _server(payload) if settled else None
        state = payload.get('state') or known.vm_state
        if not settled:
            return dataclasses.replace(known, vm_state=state)
        # A resize brings another flavor, a rebuild another image.
        told = _server(payload)
        return dataclasses.replace(told, volumes=known.volumes)


def _resumed(before: cloud.Server, after: cloud.Server, at: float) -> cloud.Server:
    """Return what a VM has become, with the time at which it began to run again.

    :param at: when that is seen, seconds since the epoch
    """
    begins = before.vm_state in vm_states.IDLE and after.vm_state not in _STILL
    resumed_at = at if begins else max(before.resumed_at, after.resumed_at)
    # As a rule it never stood still, and there may be many.
    return after if after.resumed_at == resumed_at else dataclasses.replace(
        after, resumed_at=resumed_at)


def _place(server: cloud.Server | None) -> tuple[str | None, str] | None:
    return None if server is None else (server.host, server.vm_state)


def _server(payload: Mapping[str, Any]) -> cloud.Server:
    """Return a server.

    :raises KeyError: where the payload has no host, which is not that there is none
    """
    flavor = unwrapped(payload.get('flavor') or {})
    return cloud.Server(
        payload['uuid'], payload.get('display_name') or '', payload.get('tenant_id') or '',
        payload['host'], flavor.get('name') or '', flavor.get('extra_specs') or {},
        payload.get('image_uuid') or '', payload.get('state') or '',
        vcpus=flavor.get('vcpus') or 1, local_disks=cloud.local_disks(
            bool(payload.get('image_uuid')), flavor.get('ephemeral_gb'), flavor.get('swap')),
        launched_at=cloud.seconds(payload.get('launched_at')))


def unwrapped(versioned: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the data of a versioned object."""
    found = versioned.get('nova_object.data', versioned)
    return found if isinstance(found, Mapping) else {}
