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

"""HTTP services of the soak's synthetic cloud: identity, compute, storage, network, Prometheus.

They answer as the real ones do, as far as they are asked. Only this machine reaches them.
"""

from __future__ import annotations

import calendar
import collections
import json
import re
import threading
import time
from typing import Any, Callable, Iterable, Iterator
import urllib.parse

from cheroot import wsgi

from tests.soak import world as worlds

_PAGE = 1000
_PREFIX = 'ceilometer_'
_COLUMNS = {_PREFIX + name.replace('.', '_'): column
            for column, name in enumerate(worlds.METERS)}
_COUNT = re.compile(r'max\(count by \(__name__\) \(\{__name__=~"[^"]*"\} @ ([\d.]+)\)\)')
#: A VM or a volume in a path.
_NAMES = re.compile('/[0-9a-f]{8}-[0-9a-f-]{27}')
_RANGE = re.compile(r'(\w+)\{(?:resource=~"(?:\.\*)(.*)")?\}\[(\d+)s\] @ ([\d.]+)')
#: Seconds for which Prometheus takes a sample for the present one.
_LOOKBACK = 300.0
Answer = tuple[int, bytes, list[tuple[str, str]]]


class Services:
    """Serves a world.

    :param port: 0 for a free one
    """

    def __init__(self, world: worlds.World) -> None:
        self._world = world
        self._server = wsgi.Server(('127.0.0.1', 0), self._serve, numthreads=6)
        self._server.prepare()
        self.url = f'http://127.0.0.1:{self._server.bind_addr[1]}'
        self._asked: collections.Counter[str] = collections.Counter()
        self._lock = threading.Lock()

    def run(self) -> None:
        """Serve until :meth:`stop`."""
        self._server.serve()

    def stop(self) -> None:
        """End."""
        self._server.stop()

    def asked(self) -> dict[str, int]:
        """Return the requests so far by service and kind of resource."""
        with self._lock:
            return dict(self._asked)

    def _serve(self, environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environment['PATH_INFO'].rstrip('/')
        query = dict(urllib.parse.parse_qsl(environment['QUERY_STRING']))
        with self._lock:
            self._asked[_NAMES.sub('/ID', path)] += 1
        try:
            status, body, headers = self._answer(path, query)
        except KeyError as error:
            status, body, headers = 404, json.dumps(
                {'error': {'code': 404, 'message': f'no {error}'}}).encode(), []
        start(f'{status} answer', [('Content-Type', 'application/json'),
                                   ('Content-Length', str(len(body))), *headers])
        return [body]

    def _answer(self, path: str, query: dict[str, str]) -> Answer:
        service, _slash, rest = path.lstrip('/').partition('/')
        made: Any
        headers: list[tuple[str, str]] = []
        status = 200
        if service == 'identity':
            made, status = _token(self.url), 201
            headers = [('X-Subject-Token', 'synthetic')]
        elif service == 'api':
            return 200, self._prometheus(query['query']), []
        elif rest.count('/') == 0 and rest in ('', 'v2.1', 'v3', 'v2.0'):
            made = _versions(service, self.url)
        else:
            made = getattr(self, f'_{service}')(rest.partition('/')[2] if service != 'placement'
                                                else rest, query)
        return status, json.dumps(made).encode(), headers

    def _compute(self, path: str, query: dict[str, str]) -> Any:
        world, parts = self._world, path.split('/')
        if path == 'servers/detail':
            found = sorted(world.listed(), key=lambda vm: vm.uuid)
            return _page(found, query, 'servers', self._server_of, lambda vm: vm.uuid,
                         f'{self.url}/compute/v2.1/servers/detail')
        if parts[0] == 'servers':
            if parts[-1] == 'shares':
                return {'shares': []}
            with world.lock:
                return {'server': self._server_of(world.vms[parts[1]])}
        if path == 'os-services':
            return {'services': [
                {'id': name, 'binary': 'nova-compute', 'host': name, 'zone': 'nova',
                 'status': 'enabled', 'state': 'up', 'disabled_reason': None,
                 'forced_down': False} for name in world.hosts]}
        if path == 'os-hypervisors/detail':
            return {'hypervisors': [{'service': {'host': name}, 'vcpus': worlds.CORES}
                                    for name in world.hosts]}
        if path == 'os-migrations':
            since = calendar.timegm(time.strptime(query['changes-since'], '%Y-%m-%dT%H:%M:%SZ'))
            with world.lock:
                return {'migrations': [one for one in world.migrations if calendar.timegm(
                    time.strptime(one['updated_at'], '%Y-%m-%dT%H:%M:%S.000000')) >= since]}
        return {'os-aggregates': {'aggregates': []},
                'os-server-groups': {'server_groups': []}}[path]

    def _volume(self, path: str, query: dict[str, str]) -> Any:
        world, parts = self._world, path.split('/')
        if path == 'volumes/detail':
            found = sorted((volume, vm) for vm in world.listed() for volume in vm.volumes)
            return _page(found, query, 'volumes', lambda one: _volume(*one), lambda one: one[0],
                         f'{self.url}/volume/v3/volumes/detail')
        if path == 'types':
            return {'volume_types': []}
        if path == 'qos-specs':
            return {'qos_specs': []}
        if parts[0] == 'volumes':
            with world.lock:
                for vm in world.vms.values():
                    if parts[1] in vm.volumes:
                        return {'volume': _volume(parts[1], vm)}
        raise KeyError(path)

    @staticmethod
    def _network(path: str, _query: dict[str, str]) -> Any:
        return {'ports': {'ports': []}}[path]

    def _placement(self, path: str, _query: dict[str, str]) -> Any:
        if path != 'allocation_candidates':
            raise KeyError(path)
        # There is room for all VMs everywhere.
        return {'allocation_requests': [], 'provider_summaries': {
            node_uuid(number): {'resources': {
                name: {'capacity': capacity, 'used': 0} for name, capacity in (
                    ('VCPU', 512), ('MEMORY_MB', 1048576), ('DISK_GB', 10000))},
                'traits': [], 'parent_provider_uuid': None,
                'root_provider_uuid': node_uuid(number)}
            for number in range(len(self._world.hosts))}}

    def _server_of(self, vm: worlds.Vm) -> dict[str, Any]:
        kind, host = vm.kind, self._world.hosts[vm.host]
        return {
            'id': vm.uuid, 'name': f'{kind.flavor}-{vm.uuid[:8]}', 'tenant_id': kind.project,
            'status': 'ACTIVE', 'locked': False, 'metadata': {},
            'flavor': {'vcpus': kind.vcpus, 'ram': 1024 * kind.vcpus, 'disk': 10, 'ephemeral': 0,
                       'swap': 0, 'original_name': kind.flavor, 'extra_specs': kind.extra_specs},
            'image': {'id': kind.image, 'properties': {}} if kind.image else '',
            'pinned_availability_zone': None, 'OS-EXT-AZ:availability_zone': 'nova',
            'OS-EXT-SRV-ATTR:host': host, 'OS-EXT-SRV-ATTR:hypervisor_hostname': host,
            'OS-EXT-SRV-ATTR:root_device_name': '/dev/vda', 'OS-EXT-STS:task_state': None,
            'OS-EXT-STS:vm_state': 'active', 'OS-EXT-STS:power_state': 1,
            'OS-SRV-USG:launched_at': time.strftime('%Y-%m-%dT%H:%M:%S.000000',
                                                    time.gmtime(vm.launched)),
            'os-extended-volumes:volumes_attached': [{'id': one} for one in vm.volumes]}

    def _prometheus(self, query: str) -> bytes:
        counted = _COUNT.fullmatch(query)
        if counted:
            until = float(counted[1])
            heard: set[str] = set()
            for poll in self._polls(until - _LOOKBACK, until):
                heard.update(poll.uuids)
            result = [{'metric': {}, 'value': [until, str(len(heard))]}] if heard else []
            return json.dumps({'status': 'success', 'data': {
                'resultType': 'vector', 'result': result}}).encode()
        # Without conditions there are no braces to speak of.
        asked = _RANGE.fullmatch(query)
        if asked is None or asked[1] not in _COLUMNS:
            return json.dumps({'status': 'error', 'error': f'not understood: {query}'}).encode()
        column, until = _COLUMNS[asked[1]], float(asked[4])
        series: dict[str, list[str]] = {}
        for poll in self._polls(until - float(asked[3]), until):
            places = (range(len(poll.uuids)) if asked[2] is None
                      else poll.places.get(asked[2], []))
            for place, value in zip(places, poll.counters[places, column].tolist()):
                series.setdefault(poll.uuids[place], []).append(f'[{poll.at:.3f},"{value:.0f}"]')
        texts = (f'{{"metric":{{"resource":"{name}"}},"values":[{",".join(points)}]}}'
                 for name, points in series.items())
        return ('{"status":"success","data":{"resultType":"matrix","result":['
                + ','.join(texts) + ']}}').encode()

    def _polls(self, since: float, until: float) -> list[worlds.Poll]:
        with self._world.lock:
            return [one for one in self._world.polls if since < one.at <= until]


def node_uuid(number: int) -> str:
    """Return the uuid of a compute node, by which Placement knows it too."""
    return f'00000000-0000-4000-8000-{number:012}'


def _volume(name: str, vm: worlds.Vm) -> dict[str, Any]:
    return {'id': name, 'os-vol-host-attr:host': worlds.POOL,
            'volume_type': None, 'size': 10, 'bootable': 'false', 'status': 'in-use',
            'attachments': [{'server_id': vm.uuid, 'device': '/dev/vdb', 'volume_id': name}]}


def _page(found: list[Any], query: dict[str, str], key: str, form: Callable[[Any], Any],
          name: Callable[[Any], str], url: str) -> dict[str, Any]:
    left: Iterator[Any] = iter(found)
    if 'marker' in query:
        left = (one for one in found if name(one) > query['marker'])
    shown = [one for one, _number in zip(left, range(int(query.get('limit', _PAGE))))]
    body: dict[str, Any] = {key: [form(one) for one in shown]}
    if shown and name(shown[-1]) != name(found[-1]):
        following = urllib.parse.urlencode({**query, 'marker': name(shown[-1])})
        body[f'{key}_links'] = [{'rel': 'next', 'href': f'{url}?{following}'}]
    return body


def _versions(service: str, url: str) -> dict[str, Any]:
    name, low, high = {'compute': ('v2.1', '2.1', '2.100'), 'volume': ('v3.0', '3.0', '3.71'),
                       'network': ('v2.0', '', ''),
                       'placement': ('v1.0', '1.0', '1.39')}[service]
    path = {'compute': '/v2.1', 'volume': '/v3', 'network': '/v2.0', 'placement': ''}[service]
    return {'versions': [{
        'id': name, 'status': 'CURRENT', 'version': high, 'min_version': low,
        'max_version': high, 'updated': '2026-01-01T00:00:00Z',
        'links': [{'rel': 'self', 'href': f'{url}/{service}{path}/'}]}]}


def _token(url: str) -> dict[str, Any]:
    return {'token': {
        'methods': ['password'], 'expires_at': '2099-01-01T00:00:00.000000Z',
        'issued_at': '2026-01-01T00:00:00.000000Z', 'audit_ids': ['synthetic'],
        'user': {'id': 'tracon', 'name': 'tracon', 'domain': {'id': 'default', 'name': 'Default'}},
        'project': {'id': 'service', 'name': 'service',
                    'domain': {'id': 'default', 'name': 'Default'}},
        'roles': [{'id': 'admin', 'name': 'admin'}],
        'catalog': [{'type': kind, 'name': kind, 'id': kind, 'endpoints': [
            {'id': f'{kind}-{interface}', 'interface': interface, 'region': 'RegionOne',
             'region_id': 'RegionOne', 'url': url + path}
            for interface in ('public', 'internal', 'admin')]}
            for kind, path in (('compute', '/compute/v2.1'), ('block-storage', '/volume/v3'),
                               ('network', '/network'), ('placement', '/placement'))]}}
