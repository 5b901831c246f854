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

"""Every way in which a service can fail to answer, from a real server on loopback."""

import gzip
import json
import logging
import unittest
from unittest import mock

from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1 import token_endpoint

from tests.unit.telemetry import http_server
from tests.unit.telemetry.http_server import Answer
from tracon_watcher.telemetry import rest
from tracon_watcher.telemetry import samples

PATIENT = rest.Timeouts(seconds=120.0, connecting=120.0, attempts=2, pause=0.0, largest=10000)
IMPATIENT = rest.Timeouts(seconds=0.2, connecting=0.2, attempts=2, pause=0.0)


class TestService(unittest.TestCase):

    def serve(self, answer):
        server = http_server.Server(answer if callable(answer) else lambda request: answer)
        self.addCleanup(server.stop)
        return server

    def service(self, url, patience=PATIENT, **arguments):
        self.pauses = []
        return rest.Service(rest.plain(url, **arguments), 'Gnocchi', patience,
                            self.pauses.append)

    def failure(self, answer, patience=PATIENT):
        """Ask for it, and return the error and the number of requests that it took."""
        server = self.serve(answer)
        with self.assertRaises(rest.Unanswered) as caught:
            self.service(server.url, patience).ask('GET', 'v1/x')
        self.assertIsInstance(caught.exception, samples.TelemetryUnavailable)
        # Whatever it is, the URL is in it.
        self.assertIn(f'Gnocchi at {server.url}/v1/x: ', str(caught.exception))
        return caught.exception, len(server.requests)

    def test_question_and_answer(self):
        server = self.serve(lambda request: {'said': request.body, 'asked': request.query})
        found = self.service(server.url + '/prefix/').ask(
            'POST', 'v1/x', {'a': ['1', '2'], 'b': 3}, {'ä': None})
        self.assertEqual({'said': {'ä': None}, 'asked': {'a': ['1', '2'], 'b': '3'}}, found)
        request, = server.requests
        self.assertEqual(('POST', '/prefix/v1/x', 'application/json'),
                         (request.method, request.path, request.headers['Accept']))
        self.assertNotIn('Authorization', request.headers)

    def test_basic_authentication(self):
        server = self.serve([])
        self.service(server.url, username='admin', password='').ask('GET', 'v1/x')
        self.assertEqual('Basic YWRtaW46', server.requests[0].headers['Authorization'])

    def test_secrets_are_not_told(self):
        with self.assertLogs(level='DEBUG') as logged:
            logging.getLogger('tests').debug('one line at least')
            for answer in (Answer([1]), Answer({'error': 'no'}, 401), Answer(b'', 500),
                           Answer(b'', 302, headers={'Location': 'http://127.0.0.1:1/'})):
                server = self.serve(answer)
                token = rest.Service(adapter.Adapter(
                    session.Session(token_endpoint.Token(server.url, 't0ken')),
                    endpoint_override=server.url), 'Gnocchi', PATIENT, lambda pause: None)
                for service, header in (
                        (self.service(server.url, username='admin', password='pa55'),
                         'Authorization'), (token, 'X-Auth-Token')):
                    try:
                        service.ask('GET', 'v1/x')
                    except rest.Unanswered as error:
                        for secret in ('pa55', 't0ken', 'YWRtaW46cGE1NQ=='):
                            self.assertNotIn(secret, str(error))
                    # It was sent.
                    self.assertIn(header, server.requests[-1].headers)
        for secret in ('pa55', 't0ken', 'YWRtaW46cGE1NQ=='):
            self.assertNotIn(secret, '\n'.join(logged.output))

    def test_a_compressed_answer(self):
        server = self.serve(Answer(gzip.compress(b'[1]'), headers={'Content-Encoding': 'gzip'}))
        self.assertEqual([1], self.service(server.url).ask('GET', 'v1/x'))

    def test_an_answer_in_pieces(self):
        def answer(request):
            return Answer(b'2\r\n[1\r\n3\r\n,2]\r\n0\r\n\r\n',
                          headers={'Transfer-Encoding': 'chunked'})
        server = self.serve(answer)
        self.assertEqual([1, 2], self.service(server.url).ask('GET', 'v1/x'))

    def test_500_is_asked_again_and_ends(self):
        for status in (500, 502, 503, 504, 429):
            error, requests = self.failure(Answer(b'{"error": "broken"}', status))
            self.assertEqual((2, status), (requests, error.status))
            self.assertIn(f'{status} came with', str(error))
            self.assertIn('broken', str(error))
            self.assertIn('attempts: 2', str(error))

    def test_a_service_that_recovers_is_not_a_failure(self):
        answers = [Answer(b'', 500), Answer(b'[1, 2', cut=3), Answer(b'', reset=True), Answer([7])]
        server = self.serve(lambda request: answers.pop(0))
        patience = rest.Timeouts(seconds=120, connecting=120, attempts=4, pause=1.0,
                                 longest_pause=2.0)
        self.assertEqual([7], self.service(server.url, patience).ask('GET', 'v1/x'))
        self.assertEqual(3, len(self.pauses))
        for pause, most in zip(self.pauses, (1.0, 2.0, 2.0)):
            self.assertTrue(most / 2 <= pause <= most, self.pauses)

    def test_one_that_does_not_answer_in_time(self):
        # It answers in no time at which a test could end.
        error, _requests = self.failure(Answer([], delay=3600), IMPATIENT)
        self.assertIn('timed out; attempts: 2', str(error))

    def test_one_that_answers_byte_by_byte(self):
        # Each byte comes in time, by the socket's clock.
        with mock.patch.object(rest, 'time', http_server.Hurrying(50.0)):
            error, requests = self.failure(Answer([0] * 1000, drip=0.001))
        self.assertEqual(2, requests)
        self.assertIn('only a part came in 120 s; attempts: 2', str(error))

    def test_half_an_answer(self):
        for headers in ({}, {'Content-Encoding': 'gzip'}):
            body = json.dumps(list(range(1000))).encode()
            body = gzip.compress(body) if headers else body
            error, requests = self.failure(Answer(body, headers=headers, cut=len(body) // 2))
            self.assertEqual(2, requests)
            self.assertIn('only a part came', str(error))

    def test_a_connection_that_breaks_or_is_refused(self):
        error, requests = self.failure(Answer(reset=True))
        self.assertEqual(2, requests)
        self.assertFalse(error.of_this)
        with self.assertRaisesRegex(rest.Unanswered, r'no connection: \[Errno 111\]'):
            self.service(f'http://127.0.0.1:{http_server.unused_port(self)}').ask('GET', 'v1/x')

    def test_an_empty_body(self):
        for body in (b'', b' \n'):
            error, requests = self.failure(Answer(body))
            self.assertEqual(2, requests)
            self.assertIn('200 came with an empty body', str(error))

    def test_what_is_no_json(self):
        for body, said in ((b'<html>Log in</html>', 'HTML'), (b'metric 1\n', 'what is no JSON'),
                           (b'[1, 2', 'what is no JSON'), (b'\xff\xfe\x00', 'what is no JSON'),
                           (b'[' * 9000, 'what is no JSON')):
            error, requests = self.failure(Answer(body))
            self.assertEqual(1, requests)
            self.assertIn(said, str(error))
            self.assertIn('check that the endpoint is that of this service', str(error))
            self.assertLess(len(str(error)), 600)

    def test_what_no_other_attempt_can_change(self):
        for status, remedy, of_this in ((400, 'see its log', True), (401, 'credentials', False),
                                        (403, 'a role that may read all projects', False),
                                        (404, 'without a version', True), (418, 'log', False)):
            error, requests = self.failure(Answer(b'{"cause": "because"}', status))
            self.assertEqual((1, status, of_this), (requests, error.status, error.of_this))
            self.assertIn('because', str(error))
            self.assertIn(remedy, error.remedy)

    def test_it_does_not_follow_to_another_host_with_its_password(self):
        thief = self.serve([])
        for status in (301, 302, 303, 307, 308):
            there = f'{thief.url}/login?next=secret'
            server = self.serve(Answer(b'', status, {'Location': there}))
            with self.assertRaises(rest.Unanswered) as caught:
                self.service(server.url, username='u', password='hidden').ask('GET', 'v1/x')
            self.assertIn(f'was sent on to {thief.url}/login', str(caught.exception))
            self.assertNotIn('secret', str(caught.exception))
        self.assertEqual([], thief.requests)

    def test_an_answer_without_end(self):
        error, requests = self.failure(Answer(b'[' + b'1,' * 10000))
        self.assertEqual(1, requests)
        self.assertIn('more than 10000 bytes came: ask for less at once', str(error))
        bomb = Answer(gzip.compress(b'0' * 10**7), headers={'Content-Encoding': 'gzip'})
        self.assertIn('more than 10000 bytes', str(self.failure(bomb)[0]))

    def test_passwords_are_neither_shown_nor_logged(self):
        for url in (self.serve(Answer(b'', 500)).url, self.serve(Answer(reset=True)).url,
                    f'http://127.0.0.1:{http_server.unused_port(self)}'):
            url = url.replace('//', '//someone:hidden@')
            with self.assertLogs(level='DEBUG') as logs, self.assertRaises(
                    rest.Unanswered) as caught:
                logging.getLogger('tests').debug('so that there is one line')
                self.service(url, username='u', password='hidden').ask('GET', 'v1/x')
            self.assertNotIn('hidden', str(caught.exception))
            self.assertNotIn('hidden', caught.exception.came)
            for line in logs.output:
                self.assertNotIn('Authorization', line)

    def test_through_keystone(self):
        # A catalogue without the service is an error of its own.
        class Catalogue(token_endpoint.Token):

            def get_endpoint(self, session, **kwargs):
                return super().get_endpoint(session) if kwargs.get(
                    'service_type') == 'metric' else None

        server = self.serve([3])
        keystone = session.Session(Catalogue(server.url, 'a-token'))
        found = rest.Service(adapter.Adapter(keystone, service_type='metric'), 'Gnocchi', PATIENT)
        self.assertEqual([3], found.ask('GET', 'v1/x'))
        self.assertEqual('a-token', server.requests[0].headers['X-Auth-Token'])
        lost = rest.Service(adapter.Adapter(keystone, service_type='nonesuch'), 'Aetos', PATIENT)
        with self.assertRaisesRegex(rest.Unanswered, 'Aetos at .*catalogue has this service'):
            lost.ask('GET', 'v1/x')

    def test_what_is_shown_of_an_unusable_answer_is_short(self):
        error = self.service('http://127.0.0.1:1').unusable(
            'v1/x', {'a' * 5000: ['b' * 5000] * 5000}, 'do this')
        self.assertLess(len(str(error)), 700)
        self.assertIn('http://127.0.0.1:1/v1/x', str(error))
        self.assertTrue(error.of_this)
