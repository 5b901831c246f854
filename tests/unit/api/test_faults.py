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

"""Requests that are no plain questions, and what the log says of all of them."""

import json

import webob

from tests.unit.api import base


class Faults(base.ApiCase):

    def test_nothing_is_changed(self):
        for method in ('POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'BREW'):
            response = self.ask('/v1/vms', method=method)
            self.assertEqual(405, response.status_int)
            self.assertEqual('GET, HEAD', response.headers['Allow'])

    def test_head_has_no_body(self):
        response = self.ask('/v1/vms', method='HEAD')
        self.assertEqual(200, response.status_int)

    def test_no_body_is_read(self):
        for headers in ({'Content-Length': '5'}, {'Content-Length': str(1 << 40)},
                        {'Content-Length': 'five'}, {'Transfer-Encoding': 'chunked'}):
            for path in ('/v1/vms', '/healthz'):
                response = self.ask(path, headers=headers.items())
                self.assertEqual(413, response.status_int, headers)

    def test_no_endless_query(self):
        response = self.ask('/v1/vms?' + 'a' * 9000)
        self.assertEqual(413, response.status_int)

    def test_paths_that_are_none(self):
        for path in ('/v2', '/v1/nothing', '/v1/vms/a/b', '/v1/explanations', '/v1/vms/%00',
                     '/etc/passwd', '/v1/../healthz', '/v1/hosts/..%2f..'):
            self.assertEqual(404, self.ask(path).status_int, path)

    def test_what_is_no_utf8(self):
        for path in ('/v1/vms/%ff%fe', '/v1/vms?name=%ff'):
            self.assertEqual(400, self.ask(path).status_int)

    def test_unforeseen_errors_say_nothing(self):
        def find(name):
            raise RuntimeError('password=secret')

        self.decisions.find = find
        error = self.refused(500, '/v1/explanations/req-1')
        self.assertNotIn('secret', json.dumps(error))
        self.assertIn(error['request_id'], error['detail'])
        self.assertIn('RuntimeError', self.log.output)

    def test_of_the_middleware_too(self):
        def fail(token, **_options):
            raise webob.exc.HTTPServiceUnavailable('Keystone at 10.0.0.1 is down')

        self.patch(type(self.keystone), 'fetch_token', lambda _self, token, **_named: fail(token))
        self.keystone.setUp()
        error = self.refused(503, '/v1/vms')
        self.assertNotIn('10.0.0.1', json.dumps(error))


class Log(base.ApiCase):

    def test_a_line_for_each_request_without_tokens(self):
        token = 'gAAAAAB' + 'x' * 100
        self.keystone.add_token(base.roles()[base.ADMIN], token)
        self.ask('/v1/vms', token, limit=2)
        self.ask('/v1/vms', 'gAAAAAC' + 'y' * 100)
        self.assertNotIn('gAAAAA', self.log.output)
        self.assertIn('"GET /v1/vms?limit=2" status: 200', self.log.output)
        self.assertIn('status: 401', self.log.output)
        self.assertRegex(self.log.output, r'time: 0\.\d{4} \[req-')

    def test_no_client_writes_lines_of_its_own(self):
        self.ask('/v1/vms/%0aroot logged in')
        self.ask('/v1/vms?name=%0aroot')
        for line in self.log.output.splitlines():
            self.assertFalse(line.startswith('root'), line)

    def test_each_request_has_an_id_of_its_own(self):
        ids = {self.ask('/v1').headers['X-Openstack-Request-Id'] for _again in range(3)}
        self.assertEqual(3, len(ids))
