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

"""A door of HTTP on loopback into a Nova that runs within this process.

Nova and Watcher both own oslo.config's global object, so that one process cannot hold both. Nova's
functional fixtures run it without a socket; behind this door other processes reach its API, the
Placement beside it, its network ports, and a service catalogue to find them in, as they would in
any cloud. Only the catalogue and the list of ports are this module's own; every client is the
administrator.
"""

from __future__ import annotations

import json
import socketserver
import threading
from typing import Any, Callable, Iterable, Mapping
import urllib.parse
from wsgiref import simple_server

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
TOKEN = 'admin'
ROLES = ('admin', 'member', 'reader')
_SERVICES = {'identity': 'v3', 'compute': 'v2.1', 'placement': '', 'network': ''}


class _Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True
    request_queue_size = 128

    def server_bind(self) -> None:
        # The base class would look its own name up, in a DNS that may not answer.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]
        self.setup_environ()


class _Silent(simple_server.WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass

    def address_string(self) -> str:
        return str(self.client_address[0])


class Door:
    """Serves a cloud's APIs over HTTP until stopped.

    :param compute: Nova's API
    :param placement: Placement's API
    :param ports: returns the network ports, as Neutron's API shows them
    :param project: whose administrator every client is
    """

    def __init__(self, compute: Application, placement: Application,
                 ports: Callable[[], list[dict[str, Any]]], project: str) -> None:
        self._apps: dict[str, Application] = {
            'identity': self._identity, 'compute': compute, 'placement': placement,
            'network': self._network}
        self._ports = ports
        self._project = project
        self._server = simple_server.make_server('127.0.0.1', 0, self._route, _Server, _Silent)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,),
                                        name='cloud door', daemon=True)
        #: (service, method, path) of each request, for those who count them
        self.requests: list[tuple[str, str, str]] = []
        self.url = f'http://127.0.0.1:{self._server.server_port}'

    @classmethod
    def of_nova(cls, api: Any, placement: Any, neutron: Any) -> Door:
        """Open a door into Nova's functional fixtures.

        :param api: ``OSAPIFixture``
        :param placement: Nova's ``PlacementFixture``
        :param neutron: ``NeutronFixture``
        """
        from placement import deploy
        return cls(api.app(), deploy.loadapp(placement.conf_fixture.conf),
                   lambda: neutron.list_ports(is_admin=True)['ports'], api.project_id)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Serve no longer."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _route(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        name, _slash, rest = environ['PATH_INFO'].lstrip('/').partition('/')
        if name not in self._apps:
            return _answer(start_response, {'error': f'no service {name}'}, '404 Not Found')
        self.requests.append((name, environ['REQUEST_METHOD'], '/' + rest))
        environ['SCRIPT_NAME'] = f'/{name}'
        environ['PATH_INFO'] = '/' + rest
        environ['HTTP_X_AUTH_TOKEN'] = TOKEN
        environ['HTTP_X_AUTH_USER'] = environ['HTTP_X_USER_ID'] = 'admin'
        environ['HTTP_X_AUTH_PROJECT_ID'] = self._project
        environ['HTTP_X_ROLES'] = ','.join(ROLES)
        return self._apps[name](environ, start_response)

    def _identity(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ['REQUEST_METHOD'] == 'POST':
            return _answer(start_response, {'token': self._token()}, '201 Created',
                           [('X-Subject-Token', TOKEN)])
        return _answer(start_response, {'version': {
            'id': 'v3.14', 'status': 'stable',
            'links': [{'rel': 'self', 'href': f'{self.url}/identity/v3/'}]}})

    def _network(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ['PATH_INFO'].rstrip('/') != '/v2.0/ports':
            return _answer(start_response, {'versions': [{
                'id': 'v2.0', 'status': 'CURRENT',
                'links': [{'rel': 'self', 'href': f'{self.url}/network/v2.0/'}]}]})
        query = urllib.parse.parse_qs(environ.get('QUERY_STRING', ''))
        fields = query.get('fields')
        return _answer(start_response, {'ports': [
            {key: value for key, value in port.items() if fields is None or key in fields}
            for port in self._ports()]})

    def _token(self) -> Mapping[str, Any]:
        domain = {'id': 'default', 'name': 'Default'}
        return {
            'methods': ['password'], 'expires_at': '2099-12-31T23:59:59.000000Z',
            'issued_at': '2000-01-01T00:00:00.000000Z',
            'user': {'id': 'admin', 'name': 'admin', 'domain': domain},
            'project': {'id': self._project, 'name': 'admin', 'domain': domain},
            'roles': [{'id': role, 'name': role} for role in ROLES],
            'catalog': [{'type': name, 'name': name, 'id': name, 'endpoints': [{
                'id': name, 'interface': 'public', 'region': 'RegionOne',
                'region_id': 'RegionOne', 'url': f'{self.url}/{name}/{path}'.rstrip('/')}]}
                for name, path in _SERVICES.items()]}


def _answer(start_response: Any, body: Mapping[str, Any], status: str = '200 OK',
            headers: Iterable[tuple[str, str]] = ()) -> Iterable[bytes]:
    content = json.dumps(body).encode()
    start_response(status, [('Content-Type', 'application/json'),
                            ('Content-Length', str(len(content))), *headers])
    return [content]
