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

"""What is told without a token, and that it is no more than this."""

import json

from tests.unit.api import base


class Versions(base.ApiCase):

    def test_root_and_version(self):
        for path in ('/', ''):
            (version,) = self.get(path, None)['versions']
            self.assertEqual(('v1.0', 'CURRENT'), (version['id'], version['status']))
            self.assertEqual('http://localhost/v1', version['links'][0]['href'])
        for path in ('/v1', '/v1/'):
            found = self.get(path, None)
            self.assertIn('http://localhost/v1/vms', found['resources'])
            self.assertNotIn('http://localhost/v1/models', found['resources'])

    def test_behind_a_proxy_the_links_are_the_proxys(self):
        headers = {'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'cloud.example',
                   'X-Forwarded-Prefix': '/interference'}
        for allowed, expected in ((True, 'https://cloud.example/interference/v1'),
                                  (False, 'http://localhost/v1')):
            self.conf.set_override('enable_proxy_headers_parsing', allowed,
                                   group='oslo_middleware')
            response = self.ask('/', None, headers=headers.items())
            self.assertEqual(expected, json.loads(response.body)['versions'][0]['links'][0][
                'href'])


class Health(base.ApiCase):

    def test_well(self):
        self.checks['messaging'] = lambda: True
        self.now += 5
        found = self.get('/healthz', None)
        self.assertEqual({
            'live': True, 'ready': True, 'checks': {'messaging': True},
            'view': {'epoch': base.EPOCH, 'version': base.VERSION, 'age_seconds': 5.0}}, found)
        self.assertEqual(found, self.get('/healthz/ready', None))

    def test_live_though_not_ready(self):
        def broken():
            raise ValueError('amqp://user:secret@host')

        for name, check in (('database', lambda: False), ('messaging', broken)):
            self.checks.clear()
            self.checks[name] = check
            response = self.ask('/healthz', None)
            self.assertEqual(200, response.status_int)
            self.assertEqual({name: False}, json.loads(response.body)['checks'])
            response = self.ask('/healthz/ready', None)
            self.assertEqual(503, response.status_int)
            self.assertIs(False, json.loads(response.body)['ready'])
            self.assertNotIn('secret', response.text)

    def test_a_check_that_goes_on_failing_is_logged_once(self):
        failing = [True]

        def check():
            if failing[0]:
                raise ValueError('gone')
            return True

        self.checks['messaging'] = check
        with self.assertLogs('tracon_watcher.api.application', 'WARNING') as logged:
            for _look in range(3):
                self.assertFalse(self.get('/healthz', None)['checks']['messaging'])
            failing[0] = False
            self.assertTrue(self.get('/healthz', None)['checks']['messaging'])
            failing[0] = True
            self.get('/healthz', None)
        self.assertEqual(2, len(logged.output))

    def test_until_there_is_a_view_it_is_not_ready(self):
        self.view = None
        found = self.get('/healthz', None)
        self.assertEqual((True, False, None), (found['live'], found['ready'], found['view']))
        self.assertEqual(503, self.ask('/healthz/ready', None).status_int)
