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

"""The API over real sockets."""

import datetime
import ipaddress
import json
import pathlib
import socket
import ssl
import tempfile
import threading
import time
import unittest
from unittest import mock
from urllib import error
from urllib import request

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization
from cryptography import x509
from cryptography.x509 import oid

from tracon_watcher.api import server


def application(environ, start_response):
    start_response('200 OK', [('Content-Type', 'application/json')])
    return [json.dumps({'path': environ['PATH_INFO']}).encode()]


def large(environ, start_response):
    """Answer more than sockets hold, unless asked whether it is ready."""
    start_response('200 OK', [])
    return [b'x' * (5 if environ['PATH_INFO'] == '/ready' else 40_000_000)]


def take_slowly(connected, begun, enough):
    """Read on and on, but not fast: it would take minutes."""
    try:
        while connected.recv(6000):
            begun.set()
            if enough.wait(0.05):
                return
    except OSError:
        pass


def ended(connected):
    """Wait until the other side has ended a connection; say whether it said nothing before."""
    try:
        return connected.recv(1) == b''
    except ConnectionResetError:
        # It had not read yet what it was sent.
        return True


def certify(folder):
    """Write a certificate of this machine, and its key; return their files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(oid.NameOID.COMMON_NAME, '127.0.0.1')])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (x509.CertificateBuilder().subject_name(name).issuer_name(name)
            .public_key(key.public_key()).serial_number(1)
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([
                x509.IPAddress(ipaddress.ip_address('127.0.0.1'))]), False)
            .add_extension(x509.BasicConstraints(True, None), True).sign(key, hashes.SHA256()))
    written = {
        'certificate.pem': made.public_bytes(serialization.Encoding.PEM),
        'key.pem': key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption())}
    for file, content in written.items():
        (pathlib.Path(folder) / file).write_bytes(content)
    return tuple(str(pathlib.Path(folder) / file) for file in written)


class Server(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 0.0

    def serve(self, of=application, **options):
        """Have a server whose patience ends when ``self.now`` is past it, and not before."""
        made = server.HTTPServer(of, '127.0.0.1', 0, **{'timeout': 600.0, **options})
        made.start()
        made._server._gathering._clock = lambda: self.now
        self.addCleanup(made.stop)
        return made

    def wait_for(self, condition):
        until = time.monotonic() + 120
        while not condition():
            self.assertLess(time.monotonic(), until, 'waited in vain')
            time.sleep(0.01)

    @staticmethod
    def gathered(made):
        """Return how many bytes have come of each head that is not whole yet."""
        return [len(head) for _deadline, head in list(made._server._gathering._waiting.values())
                if head is not None]

    def test_answers_and_stops(self):
        made = server.HTTPServer(application, '127.0.0.1', 0, threads=2, timeout=600.0)
        made.start()
        url = f'http://127.0.0.1:{made.port}/v1'
        with request.urlopen(url, timeout=120) as response:
            self.assertEqual({'path': '/v1'}, json.load(response))
            self.assertEqual('tracon', response.headers['Server'])
        made.stop()
        self.assertRaises(error.URLError, request.urlopen, url, timeout=120)
        self.assertFalse(any(thread.name == f'http-{made.port}'
                             for thread in threading.enumerate()))

    def test_many_at_once(self):
        made, found = self.serve(threads=4), []

        def ask(place):
            with request.urlopen(f'http://127.0.0.1:{made.port}/{place}', timeout=120) as response:
                found.append(json.load(response)['path'])

        threads = [threading.Thread(target=ask, args=(place,)) for place in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({f'/{place}' for place in range(40)}, set(found))

    def test_limits(self):
        made = self.serve()
        for headers, body, status in (({'X-Long': 'x' * 70000}, None, 413),
                                      ({}, b'x' * 70000, 413)):
            asked = request.Request(f'http://127.0.0.1:{made.port}/', data=body, headers=headers)
            with self.assertRaises(error.HTTPError) as caught:
                request.urlopen(asked, timeout=120)
            self.assertEqual(status, caught.exception.code)
            caught.exception.close()

    def test_a_head_that_is_too_large_keeps_no_other_waiting(self):
        for tls in (False, True):
            with self.subTest(tls=tls), tempfile.TemporaryDirectory() as folder:
                certificate, key = certify(folder) if tls else (None, None)
                made = self.serve(threads=2, certificate=certificate, key=key)
                trusted = ssl.create_default_context(cafile=certificate) if tls else None
                for _place in range(6):
                    one = socket.create_connection(('127.0.0.1', made.port), timeout=120)
                    self.addCleanup(one.close)
                    if tls:
                        one = trusted.wrap_socket(one, server_hostname='127.0.0.1')
                        self.addCleanup(one.close)
                    one.sendall(b'x' * (server._LARGEST_HEADER + 1))
                    self.assertIn(b'413', one.recv(1000))
                scheme = 'https' if tls else 'http'
                with request.urlopen(f'{scheme}://127.0.0.1:{made.port}/ready', timeout=120,
                                     context=trusted) as response:
                    self.assertEqual({'path': '/ready'}, json.load(response))

    def test_who_was_refused_and_sends_on_is_dropped_in_time(self):
        made = self.serve()
        with socket.create_connection(('127.0.0.1', made.port), timeout=120) as one:
            one.sendall(b'x' * (server._LARGEST_HEADER + 1))
            self.assertIn(b'413', one.recv(1000))

            def dropped():
                try:
                    one.sendall(b'x')
                except OSError:
                    return True
                return False

            self.assertFalse(dropped())
            self.now = 600.0
            self.wait_for(dropped)

    def test_who_takes_an_answer_slowly_keeps_no_thread_busy(self):
        for tls in (False, True):
            with self.subTest(tls=tls), tempfile.TemporaryDirectory() as folder, \
                    self.assertNoLogs('tracon_watcher.api.server', 'WARNING'):
                certificate, key = certify(folder) if tls else (None, None)
                made = self.serve(large, threads=1, certificate=certificate, key=key)
                trusted = ssl.create_default_context(cafile=certificate) if tls else None
                # So that each part of the answer is taken in time.
                made._server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 40000)
                one = socket.socket()
                self.addCleanup(one.close)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
                one.connect(('127.0.0.1', made.port))
                if tls:
                    one = trusted.wrap_socket(one, server_hostname='127.0.0.1')
                    self.addCleanup(one.close)
                one.sendall(b'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
                begun, enough = threading.Event(), threading.Event()
                slow = threading.Thread(target=take_slowly, args=(one, begun, enough))
                self.addCleanup(slow.join)
                self.addCleanup(enough.set)
                slow.start()
                self.assertTrue(begun.wait(120))
                # Of the answer it has had a part, and its time is over.
                self.now += 600.0
                scheme = 'https' if tls else 'http'
                with request.urlopen(f'{scheme}://127.0.0.1:{made.port}/ready', timeout=120,
                                     context=trusted) as response:
                    self.assertEqual(b'xxxxx', response.read())

    def test_silent_clients_are_dropped(self):
        made = self.serve()
        with socket.create_connection(('127.0.0.1', made.port), timeout=120) as one:
            one.sendall(b'GET / HTTP/1.1\r\nHost')
            self.wait_for(lambda: self.gathered(made) == [20])
            self.now = 600.0
            made._server._gathering._wake()
            said = b''
            while chunk := one.recv(1000):
                said += chunk
            self.assertIn(b'408', said)

    def test_those_that_drip_their_requests_keep_no_other_waiting(self):
        for tls in (False, True):
            with self.subTest(tls=tls), tempfile.TemporaryDirectory() as folder:
                certificate, key = certify(folder) if tls else (None, None)
                made = self.serve(threads=2, certificate=certificate, key=key)
                trusted = ssl.create_default_context(cafile=certificate) if tls else None
                for place in range(30):
                    one = socket.create_connection(('127.0.0.1', made.port), timeout=120)
                    self.addCleanup(one.close)
                    if tls and place % 2:
                        one = trusted.wrap_socket(one, server_hostname='127.0.0.1')
                        self.addCleanup(one.close)
                    # Of a handshake as of a request, a part.
                    one.sendall(b'\x16\x03\x01' if tls and not place % 2 else
                                b'GET / HTTP/1.1\r\nX-Drip: ')
                scheme = 'https' if tls else 'http'
                with request.urlopen(f'{scheme}://127.0.0.1:{made.port}/ready', timeout=120,
                                     context=trusted) as response:
                    self.assertEqual({'path': '/ready'}, json.load(response))

    def test_one_that_cannot_be_read_ends_no_other(self):
        made = self.serve()
        real = server.PendingConnections._read

        def fail(one, connection):
            fails.__exit__(None, None, None)
            raise RuntimeError('a mistake')

        fails = mock.patch.object(server.PendingConnections, '_read', autospec=True,
                                  side_effect=fail)
        fails.__enter__()
        with self.assertLogs('tracon_watcher.api.server', 'ERROR'), \
                socket.create_connection(('127.0.0.1', made.port), timeout=120) as one:
            self.assertEqual(b'', one.recv(1))
        self.assertIs(real, server.PendingConnections._read)
        with request.urlopen(f'http://127.0.0.1:{made.port}/', timeout=120) as response:
            self.assertEqual(200, response.status)

    def test_one_that_is_closed_already_ends_no_other(self):
        made = self.serve()
        real = server.PendingConnections._take

        def closed(one, connection):
            fails.__exit__(None, None, None)
            connection.socket.close()
            real(one, connection)

        fails = mock.patch.object(server.PendingConnections, '_take', autospec=True,
                                  side_effect=closed)
        fails.__enter__()
        with self.assertLogs('tracon_watcher.api.server', 'ERROR'), \
                socket.create_connection(('127.0.0.1', made.port), timeout=120), \
                request.urlopen(f'http://127.0.0.1:{made.port}/', timeout=120) as response:
            self.assertEqual(200, response.status)

    def test_who_waits_longest_makes_room(self):
        with mock.patch.object(server, '_MOST_WAITING', 3):
            made = self.serve()
        waiting = []
        for _place in range(5):
            one = socket.create_connection(('127.0.0.1', made.port), timeout=120)
            self.addCleanup(one.close)
            one.sendall(b'GET /')
            waiting.append(one)
        self.assertTrue(all(ended(one) for one in waiting[:2]))
        waiting[4].sendall(b'late HTTP/1.1\r\nHost: x\r\n\r\n')
        self.assertIn(b'200 OK', waiting[4].recv(1000))

    def test_a_request_in_pieces_is_read_whole(self):
        made = self.serve()
        with socket.create_connection(('127.0.0.1', made.port), timeout=120) as one:
            sent = 0
            for piece in (b'GET /in', b'-pieces HTTP/1.1\r\nHo', b'st: x\r\n\r'):
                one.sendall(piece)
                sent += len(piece)
                self.wait_for(lambda sent=sent: self.gathered(made) == [sent])
            one.sendall(b'\n')
            said = b''
            while chunk := one.recv(1000):
                said += chunk
        self.assertIn(b'200 OK', said)
        self.assertIn(b'/in-pieces', said)

    def test_address_that_is_taken_is_named(self):
        made = self.serve()
        other = server.HTTPServer(application, '127.0.0.1', made.port)
        with self.assertRaises(server.CannotServe) as caught:
            other.start()
        self.assertIn(f'127.0.0.1:{made.port}', str(caught.exception))

    def test_certificate_that_is_missing_is_named(self):
        with self.assertRaises(server.CannotServe) as caught:
            server.HTTPServer(application, '127.0.0.1', 0, certificate='/missing.pem',
                              key='/k.pem')
        self.assertIn('/missing.pem', str(caught.exception))

    def test_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = certify(folder)
            made = self.serve(certificate=certificate, key=key)
            trusted = ssl.create_default_context(cafile=certificate)
            url = f'https://127.0.0.1:{made.port}/v1'
            with request.urlopen(url, timeout=120, context=trusted) as response:
                self.assertEqual({'path': '/v1'}, json.load(response))
            self.assertRaises(error.URLError, request.urlopen, url, timeout=120)
