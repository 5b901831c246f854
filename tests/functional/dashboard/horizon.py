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

"""Horizon as pip installs it, with this plugin, against the real API of a synthetic cloud.

In the place of Keystone stands a server with what Horizon asks at a login.
"""

import os
import pathlib
import sys
import tempfile

from keystoneauth1 import fixture as tokens
import webob
import webob.dec

from tests.functional.dashboard import watcher
from tests.unit.api import base
from tracon_watcher.api import server

TOP = pathlib.Path(__file__).parents[3]
#: Roles by name of a user, whose token has the same name.
ROLES = {base.ADMIN: 'admin', base.MEMBER: 'member'}
_SETTINGS = '''
# Names without an underscore would become settings.
from openstack_dashboard.local import enabled as _enabled
import tracon_dashboard
_enabled.__path__.append(tracon_dashboard.__path__[0] + '/enabled')
ALLOWED_HOSTS = ['*']
CACHES = {{'default': {{'BACKEND': 'django.core.cache.backends.locmem.LocMemCache'}}}}
COMPRESS_ENABLED = False
DEBUG = False
OPENSTACK_HOST = '127.0.0.1'
OPENSTACK_KEYSTONE_URL = {keystone!r}
SECRET_KEY = 'tests'
SESSION_ENGINE = 'django.contrib.sessions.backends.signed_cookies'
STATIC_ROOT = {static!r}
TIME_ZONE = 'UTC'
'''


class Keystone:
    """Gives each user the token of that name, scoped to a project that all have."""

    def __init__(self):
        self.endpoints = {}
        self.url = None

    @webob.dec.wsgify
    def __call__(self, request):
        path = request.path_info.rstrip('/')
        if path == '/v3/auth/tokens':
            return self._token(request)
        if path == '/v3/auth/projects' or path.endswith('/projects'):
            return webob.Response(json_body={'links': {}, 'projects': [{
                'id': base.OWN, 'name': 'shop', 'domain_id': 'default', 'enabled': True}]})
        found = tokens.V3Discovery(f'{self.url}/v3')
        return webob.Response(json_body={'version': found} if path else tokens.DiscoveryList(
            self.url, v2=False), status=200 if path else 300)

    def _token(self, request):
        asked = request.json['auth']
        if 'password' in asked['identity']:
            name = asked['identity']['password']['user']['name']
        else:
            name = asked['identity']['token']['id'].removeprefix('unscoped-')
        if name not in ROLES:
            return webob.Response(status=401, json_body={'error': {
                'code': 401, 'title': 'Unauthorized', 'message': 'No.'}})
        token = tokens.V3Token(user_name=name, user_id=name, user_domain_id='default',
                               user_domain_name='Default')
        if 'project' not in asked.get('scope', {}):
            return webob.Response(status=201, json_body=token,
                                  headers={'X-Subject-Token': f'unscoped-{name}'})
        token.set_project_scope(base.OWN, 'shop', 'default', 'Default')
        token.add_role(ROLES[name], ROLES[name])
        for kind, url in self.endpoints.items():
            token.add_service(kind, kind).add_standard_endpoints(public=url, region='R')
        return webob.Response(status=201, json_body=token, headers={'X-Subject-Token': name})


def configure(keystone):
    """Have Horizon use a Keystone; once in a process.

    :param keystone: its URL
    """
    folder = tempfile.mkdtemp(prefix='tracon-horizon-')
    local = pathlib.Path(folder, 'local')
    local.mkdir()
    (local / '__init__.py').touch()
    (local / 'local_settings.py').write_text(_SETTINGS.format(
        keystone=f'{keystone}/v3', static=f'{folder}/static'))
    sys.path.insert(0, folder)
    os.environ['DJANGO_SETTINGS_MODULE'] = 'openstack_dashboard.settings'
    import django
    django.setup()


class Cloud(base.ApiCase):
    """Serves the API of a synthetic cloud, and a Keystone."""

    def begin(self):
        """Serve both, and return Keystone's URL."""
        self.identity = Keystone()
        self.identity.url = f'http://127.0.0.1:{self.serve(self.identity)}'
        self.identity.endpoints['interference'] = (
            f'http://127.0.0.1:{self.serve(lambda *asked: self.api.application(*asked))}')
        self.identity.endpoints['identity'] = f'{self.identity.url}/v3'
        self.identity.endpoints['compute'] = f'{self.identity.url}/compute'
        engine = watcher.Engine(self, self.view, self.now - 400)
        self.decisions.audit, self.decisions.moves = engine.records.audit, engine.records.moves
        self.watcher = watcher.Watcher(engine)
        self.identity.endpoints['infra-optim'] = f'http://127.0.0.1:{self.serve(self.watcher)}'
        return self.identity.url

    def serve(self, application):
        """Serve an application and return its port."""
        made = server.HTTPServer(application, '127.0.0.1', 0, threads=3, timeout=120.0)
        made.start()
        self.addCleanup(made.stop)
        return made.port
