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

"""A cloud's services as doctor asks them, all of them at one HTTP server."""

import datetime
import email.utils
import time

from tests.unit.telemetry import http_server

VERSION = {'id': 'v2.1', 'status': 'CURRENT', 'version': '2.103', 'min_version': '2.1'}
_TYPES = ('compute', 'placement', 'metric', 'interference', 'infra-optim')


class Cloud:
    """Answers by path; :attr:`answers` replaces what a healthy cloud says.

    :ivar answers: by path, a body, or a :class:`http_server.Answer`
    """

    def __init__(self):
        self.server = http_server.Server(self._answer)
        self.url = self.server.url
        self.missing = set()
        self.roles = ['admin', 'service']
        self.answers = {
            '/identity/v3': {'version': {'id': 'v3.14', 'status': 'stable', 'links': [
                {'rel': 'self', 'href': f'{self.url}/identity/v3/'}]}},
            '/compute/v2.1': {'version': {**VERSION, 'links': [
                {'rel': 'self', 'href': f'{self.url}/compute/v2.1/'}]}},
            '/compute/v2.1/servers/detail': {'servers': [
                {'id': 'a', 'OS-EXT-STS:vm_state': 'active', 'OS-EXT-SRV-ATTR:host': 'c1'}]},
            '/compute/v2.1/os-services': {'services': [
                {'host': 'c1', 'status': 'enabled', 'state': 'up'},
                {'host': 'c2', 'status': 'enabled', 'state': 'up'},
                {'host': 'c3', 'status': 'disabled', 'state': 'up'},
                {'host': 'c4', 'status': 'UNKNOWN'}]},
            '/compute/v2.1/os-aggregates': {'aggregates': [
                {'name': 'rack', 'hosts': ['c1', 'c2'], 'metadata': {'tracon:host_type': 'x'}}]},
            '/placement': {}, '/metric': {}, '/infra-optim': {},
            '/metric/v1/search/resource/nova_compute': [],
            '/interference': {'versions': []},
            '/interference/healthz': {'checks': {'collect': True}, 'view': {'age_seconds': 60.0}},
            '/interference/v1/hosts': {'hosts': [
                {'name': name, 'status': 'known'} for name in ('c1', 'c2')], 'links': []},
            '/interference/v1/host_types': {'host_types': [
                {'host_type': 'x', 'hosts': 2, 'status': 'known'}], 'links': []},
            '/infra-optim/v1/audits/detail': {'audits': []},
        }

    def measured(self, seconds=60, count=4):
        """Let Gnocchi have samples of both hosts, the last one a minute old."""
        now = time.time()
        self.answers['/metric/v1/search/resource/nova_compute'] = [
            {'id': name, 'original_resource_id': name, 'ended_at': None,
             'revision_start': '2026-01-01T00:00:00+00:00'} for name in ('c1', 'c2')]
        self.answers['/metric/v1/aggregates'] = {'measures': {name: {'tracon.host.clock': {
            'last': [[datetime.datetime.fromtimestamp(
                now - 60 - seconds * (count - index), datetime.UTC).isoformat(), 60.0,
                1e9 * seconds * index] for index in range(1, count + 1)]}}
            for name in ('c1', 'c2')}}

    def asked(self, path):
        """Return the requests for a path."""
        return [one for one in self.server.requests if one.path.rstrip('/') == path]

    def _answer(self, request):
        path = request.path.rstrip('/')
        if path == '/identity/v3/auth/tokens':
            return self._token()
        if path == '/metric/v1/search/resource/nova_compute' and 'and' in (request.body or ()):
            return []
        if path.startswith('/compute/v2.1/flavors/'):
            found = self.answers.get('flavors', http_server.Answer({'badRequest': {}}, 400))
        else:
            found = self.answers.get(path, http_server.Answer({}, 404))
        if not isinstance(found, http_server.Answer):
            found = http_server.Answer(found)
        found.headers.setdefault('Content-Type', 'application/json')
        found.headers.setdefault('Date', email.utils.formatdate(usegmt=True))
        return found

    def _token(self):
        catalogue = [{'type': kind, 'name': kind, 'id': kind, 'endpoints': [
            {'interface': 'internal', 'region': 'R', 'region_id': 'R', 'id': kind,
             'url': f'{self.url}/{kind}' + {'compute': '/v2.1', 'identity': '/v3',
                                            'interference': '/v1'}.get(kind, '')}]}
            for kind in ('identity', *_TYPES) if kind not in self.missing]
        now = datetime.datetime.now(datetime.UTC)
        return http_server.Answer({'token': {
            'methods': ['password'], 'user': {'id': 'u', 'name': 'tracon', 'domain': {
                'id': 'default', 'name': 'Default'}},
            'project': {'id': 'p', 'name': 'service', 'domain': {
                'id': 'default', 'name': 'Default'}},
            'roles': [{'id': name, 'name': name} for name in self.roles],
            'issued_at': now.isoformat(),
            'expires_at': (now + datetime.timedelta(hours=1)).isoformat(),
            'catalog': catalogue}}, 201, {'X-Subject-Token': 'token'})
