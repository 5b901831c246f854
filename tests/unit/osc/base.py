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

"""``openstack interference …`` against the real API on a real socket.

In the place of Keystone stands a server that answers requests for tokens with those of
keystonemiddleware's fixture, and with a catalogue in which the API is.
"""

import contextlib
import io
import json
from unittest import mock
import uuid

from keystoneauth1 import fixture as tokens
from openstackclient.common import clientmanager
from openstackclient import shell
from osc_lib import clientmanager as osc_clientmanager
import webob
import webob.dec

from tests.unit.api import base
from tracon_watcher.api import server
from tracon_watcher.osc import capacity
from tracon_watcher.osc import explain
from tracon_watcher.osc import host
from tracon_watcher.osc import ledger
from tracon_watcher.osc import plugin
from tracon_watcher.osc import summary
from tracon_watcher.osc import vm
from tracon_watcher.osc import what_if

COMMANDS = {
    'interference capacity': capacity.ListCapacity,
    'interference explain': explain.Explain,
    'interference host list': host.ListHost, 'interference host show': host.ShowHost,
    'interference host type list': host.ListHostType,
    'interference ledger': ledger.Ledger,
    'interference summary': summary.ShowSummary,
    'interference vm list': vm.ListVM, 'interference vm show': vm.ShowVM,
    'interference what-if': what_if.WhatIf}

if plugin not in clientmanager.PLUGIN_MODULES:
    # Where the entry points are not installed yet: what they make OpenStackClient do.
    clientmanager.PLUGIN_MODULES.append(plugin)


class Keystone:
    """Gives the token whose name is that of the user, with a catalogue."""

    def __init__(self):
        self.endpoints = {}
        self.url = None

    @webob.dec.wsgify
    def __call__(self, request):
        if request.path_info == '/v3/auth/tokens':
            name = request.json['auth']['identity']['password']['user']['name']
            token = tokens.V3Token(user_name=name, project_id=uuid.uuid4().hex)
            for kind, url in self.endpoints.items():
                token.add_service(kind).add_standard_endpoints(public=url, region='R')
            return webob.Response(status=201, json_body=token,
                                  headers={'X-Subject-Token': name})
        found = tokens.DiscoveryList(self.url, v2=False)
        return webob.Response(status=300, json_body=found)


class OscCase(base.ApiCase):
    """Has a cloud, its API, a Keystone of a kind, and can run commands."""

    def setUp(self):
        super().setUp()
        self.url = f'http://127.0.0.1:{self.serve(lambda *asked: self.api.application(*asked))}'
        self.identity = Keystone()
        self.identity.url = f'http://127.0.0.1:{self.serve(self.identity)}'
        self.identity.endpoints['interference'] = self.url

    def serve(self, application):
        """Serve an application and return its port."""
        made = server.HTTPServer(application, '127.0.0.1', 0, threads=3, timeout=120.0)
        made.start()
        self.addCleanup(made.stop)
        return made.port

    def run_command(self, *arguments, user=base.ADMIN, environment=(), options=()):
        """Run a command; return its exit code, and what it wrote to its outputs."""
        clean = {'HOME': self.useFixture(base.fixtures.TempDir()).path, 'PATH': '/usr/bin:/bin',
                 'LC_ALL': 'C.UTF-8', **dict(environment)}
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.dict('os.environ', clean, clear=True), (
                contextlib.redirect_stdout(out)), contextlib.redirect_stderr(err):
            # One program, one client: it would keep that of the first.
            clientmanager.ClientManager.interference = osc_clientmanager.ClientCache(
                plugin.make_client)
            program = shell.OpenStackShell()
            for name, command in COMMANDS.items():
                program.command_manager.add_command(name, command)
            try:
                code = program.run([
                    '--os-auth-url', self.identity.url, '--os-username', user,
                    '--os-password', 'x', '--os-project-name', 'p', '--os-user-domain-id',
                    'default', '--os-project-domain-id', 'default',
                    '--os-identity-api-version', '3', *options, 'interference', *arguments])
            except SystemExit as end:       # argparse's
                code = end.code
        return code, out.getvalue(), err.getvalue()

    def told(self, *arguments, **options):
        """Return what a command that succeeds writes."""
        code, out, err = self.run_command(*arguments, **options)
        self.assertEqual(0, code, err)
        return out

    def json(self, *arguments, **options):
        """Return the JSON that a command writes."""
        return json.loads(self.told(*arguments, '-f', 'json', **options))

    def fails(self, *arguments, **options):
        """Return the error of a command that fails."""
        code, _out, err = self.run_command(*arguments, **options)
        self.assertNotEqual(0, code)
        return err
