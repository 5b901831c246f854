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

"""What ``tracon bench polling`` polls: recorded statistics, replayed in three ways, or real VMs.

libvirt's test driver has domains, and answers the calls that Ceilometer makes, but of statistics
it has the state of a domain alone. So its answers are filled up with recorded ones. What it does
take is the time of the calls themselves, and where a libvirtd runs, of going there and back.
"""

from __future__ import annotations

import importlib.resources
import json
import pathlib
from typing import Any
from xml.sax import saxutils

import libvirt

from tracon_watcher import errors

#: A guest with one virtual CPU and two disks, as libvirt 9.0 reported it.
RECORDING = 'recorded_domain.json'
_DISKS = ('vda', 'vdb')
_DOMAIN = '''<domain type="test"><name>{name}</name><uuid>{uuid}</uuid><memory>524288</memory>
<vcpu>1</vcpu><os><type arch="x86_64">hvm</type></os><devices>{disks}</devices></domain>'''
_DISK = '''<disk type="file" device="disk"><source file="/dev/null"/>
<target dev="{}" bus="virtio"/></disk>'''


def recorded() -> dict[str, Any]:
    """Return the recorded statistics of one domain."""
    text = (importlib.resources.files('tracon_lab.cmd') / RECORDING).read_text()
    found: dict[str, Any] = json.loads(text)
    return found


def definition(name: str, uuid: str) -> str:
    return _DOMAIN.format(name=saxutils.escape(name), uuid=uuid,
                          disks=''.join(map(_DISK.format, _DISKS)))


class Domain:
    """A domain that answers from a recording.

    :param inner: of libvirt's, which is asked as well; without it nothing is
    """

    def __init__(self, connection: Connection, uuid: str, inner: Any = None) -> None:
        self.connection = connection
        self.inner = inner
        self._uuid = uuid

    def _ask(self, method: str, *arguments: Any) -> Any:
        self.connection.calls += 1
        return getattr(self.inner, method)(*arguments) if self.inner is not None else None

    def UUIDString(self) -> str:
        return self._uuid

    def ID(self) -> int:
        return int(self._uuid[-12:], 16)

    def vcpuPinInfo(self) -> list[tuple[bool, ...]]:
        return [(True,) * 64]

    def name(self) -> str:
        return self._uuid

    def info(self) -> Any:
        return self._ask('info') or [libvirt.VIR_DOMAIN_RUNNING, 524288, 524288, 1, 1]

    def memoryStats(self) -> dict[str, int]:
        self._ask('memoryStats')
        return {'actual': 524288, 'rss': 250000}

    def XMLDesc(self, flags: int = 0) -> str:
        return self._ask('XMLDesc', flags) or definition(self._uuid, self._uuid)

    def _block(self, device: str, field: str) -> int:
        return self.connection.stats[f'block.{_DISKS.index(device)}.{field}']

    def blockStats(self, device: str) -> tuple[int, ...]:
        self._ask('blockStats', device)
        return (*(self._block(device, field) for field in (
            'rd.reqs', 'rd.bytes', 'wr.reqs', 'wr.bytes')), 0)

    def blockStatsFlags(self, device: str, flags: int) -> dict[str, int]:
        """The test driver has no such call, and is asked for the other one instead."""
        self._ask('blockStats', device)
        return {'rd_total_times': self._block(device, 'rd.times'),
                'wr_total_times': self._block(device, 'wr.times')}


class Connection:
    """The calls that either way of polling makes, counted.

    :param uuids: of the domains
    :param inner: libvirt's connection, with these domains
    """

    def __init__(self, uuids: list[str], inner: Any = None) -> None:
        self.stats = recorded()
        self.calls = 0
        self._inner = inner
        self._uuids = uuids

    def isAlive(self) -> bool:
        return True

    def lookupByUUIDString(self, uuid: str) -> Domain:
        self.calls += 1
        inner = self._inner.lookupByUUIDString(uuid) if self._inner is not None else None
        return Domain(self, uuid, inner)

    def domainListGetStats(self, domains: list[Domain], groups: int) -> list[Any]:
        self.calls += 1
        if self._inner is not None:
            self._inner.domainListGetStats([domain.inner for domain in domains], groups)
        return [(domain, dict(self.stats)) for domain in domains]

    def getAllDomainStats(self, groups: int, flags: int) -> list[Any]:
        self.calls += 1
        if self._inner is None:
            return [(Domain(self, uuid), dict(self.stats)) for uuid in self._uuids]
        # The test driver does not know the flag by which occupied domains are not waited for.
        known = flags & ~libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT
        return [(domain, {**self.stats, **stats})
                for domain, stats in self._inner.getAllDomainStats(groups, known)]


class Counted:
    """A connection or a domain of libvirt's, whose calls are counted.

    :param counter: what has the attribute ``calls``; the connection itself has its own
    """

    def __init__(self, inner: Any, counter: Counted | None = None) -> None:
        self.inner = inner
        self.calls = 0
        self._counter = counter or self

    def isAlive(self) -> int:
        return self.inner.isAlive()

    def UUIDString(self) -> str:
        return self.inner.UUIDString()

    # What libvirt tells of a domain without being asked is no call.
    def ID(self) -> int:
        return self.inner.ID()

    def name(self) -> str:
        return self.inner.name()

    def lookupByUUIDString(self, uuid: str) -> Counted:
        self.calls += 1
        return Counted(self.inner.lookupByUUIDString(uuid), self)

    def domainListGetStats(self, domains: list[Counted], groups: int) -> list[Any]:
        self.calls += 1
        return self.inner.domainListGetStats([domain.inner for domain in domains], groups)

    def __getattr__(self, name: str) -> Any:
        self._counter.calls += 1
        return getattr(self.inner, name)


def real(uri: str) -> tuple[Counted, list[str]]:
    """Return a connection and the UUIDs of the domains that run there.

    :raises InvalidOption: when there is no connection, or no domain
    """
    libvirt.registerErrorHandler(lambda *unused: None, None)
    try:
        connection = libvirt.openReadOnly(uri)
        uuids = [domain.UUIDString() for domain in connection.listAllDomains(
            libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE)]
    except libvirt.libvirtError as error:
        raise errors.InvalidOption('--uri', uri, str(error)) from error
    if not uuids:
        raise errors.InvalidOption('--uri', uri, 'no domain runs there')
    return Counted(connection), uuids


def connections(uuids: list[str], folder: pathlib.Path) -> dict[str, Connection]:
    """Return the ways to replay, by what they are called; the last only where libvirtd runs."""
    path = folder / 'node.xml'
    path.write_text('<node>%s</node>' % ''.join(definition(uuid, uuid) for uuid in uuids))
    folder.chmod(0o755)
    found = {'recorded': Connection(uuids),
             'test driver': Connection(uuids, libvirt.open(f'test://{path}'))}
    libvirt.registerErrorHandler(lambda *unused: None, None)
    try:
        found['test driver in libvirtd'] = Connection(uuids, libvirt.open(f'test+unix://{path}'))
    except libvirt.libvirtError:
        pass        # it does not run here, which the table shows
    return found
