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

"""Where the API is found, and what is said when it is not."""

import subprocess
import sys
import unittest

from tests.unit.osc import base as osc


class Endpoint(osc.OscCase):

    def test_from_the_catalogue_with_and_without_the_version(self):
        for url in (self.url, f'{self.url}/', f'{self.url}/v1', f'{self.url}/v1/'):
            self.identity.endpoints['interference'] = url
            self.assertEqual(6, len(self.json('vm', 'list')), url)

    def test_not_in_the_catalogue(self):
        self.identity.endpoints.clear()
        self.identity.endpoints['compute'] = 'http://127.0.0.1:1/'
        error = self.fails('vm', 'list')
        self.assertIn('no endpoint of the service type interference', error)
        self.assertIn('--interference-endpoint', error)

    def test_by_option_and_environment(self):
        self.identity.endpoints['interference'] = 'http://127.0.0.1:1/'
        for how in ({'options': ('--interference-endpoint', self.url)},
                    {'environment': {'OS_INTERFERENCE_ENDPOINT': f'{self.url}/v1'}.items()}):
            self.assertEqual(6, len(self.json('vm', 'list', **how)))

    def test_no_engine_answers(self):
        self.identity.endpoints['interference'] = 'http://127.0.0.1:1/'
        self.assertIn('is tracon-engine running', self.fails('vm', 'list'))

    def test_somebody_else_answers(self):
        def application(environ, start_response):
            start_response('200 OK', [('Content-Type', 'text/html')])
            return [b'<html>']

        self.identity.endpoints['interference'] = f'http://127.0.0.1:{self.serve(application)}'
        self.assertIn('is this the endpoint of tracon-engine?', self.fails('vm', 'list'))

    def test_not_ready(self):
        self.view = None
        error = self.fails('vm', 'list')
        self.assertIn('has not collected anything yet', error)
        self.assertIn('HTTP 503', error)

    def test_wrong_token(self):
        error = self.fails('vm', 'list', user='forged')
        self.assertIn('401', error)

    def test_names_are_quoted(self):
        error = self.fails('host', 'show', '../vms?limit=1')
        self.assertIn('HTTP 404', error)


class Imports(unittest.TestCase):

    def test_a_client_needs_nothing_of_the_engine(self):
        code = ('import sys\n'
                'from tracon_watcher.osc import explain, host, plugin, vm\n'
                'print(*sys.modules)')
        loaded = set(subprocess.run([sys.executable, '-W', 'ignore', '-c', code], check=True,
                                    capture_output=True, text=True).stdout.split())
        self.assertIn('tracon_watcher.osc.vm', loaded)
        for name in ('numpy', 'oslo_policy', 'oslo_messaging', 'tracon_watcher.api',
                     'tracon_watcher.engine', 'tracon_watcher.placement', 'tracon_watcher.conf'):
            self.assertNotIn(name, loaded)
