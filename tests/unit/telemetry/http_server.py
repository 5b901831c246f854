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

"""A real HTTP server on loopback that answers as it is told, well or badly."""

import contextlib
import http.server
import json
import socket
import threading
import urllib.parse


class Answer:
    """An answer: status, headers and body, and what goes wrong with it."""

    def __init__(self, body=b'', status=200, headers=(), delay=0.0, drip=0.0, cut=None,
                 reset=False):
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.status = status
        self.headers = dict(headers)
        self.delay = delay
        self.drip = drip
        self.cut = cut
        self.reset = reset


class Request:
    """A request as it came."""

    def __init__(self, handler, body):
        parts = urllib.parse.urlsplit(handler.path)
        self.method = handler.command
        self.path = parts.path
        self.query = {name: values if len(values) > 1 else values[0] for name, values in
                      urllib.parse.parse_qs(parts.query).items()}
        self.headers = dict(handler.headers)
        self.body = json.loads(body) if body else None


class Server:
    """Answers each request with what a function of it returns; remembers the requests."""

    def __init__(self, answer):
        self.answer = answer
        self.requests = []
        self.stopping = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):

            protocol_version = 'HTTP/1.1'
            # A body right after its headers would wait for the acknowledgement of these.
            disable_nagle_algorithm = True

            def do_GET(self):
                outer.handle(self)

            do_POST = do_GET

            def log_message(self, *args):
                pass

        class Loopback(http.server.ThreadingHTTPServer):

            daemon_threads = True
            block_on_close = False

            def handle_error(self, request, client_address):
                # A client that has given up is what some tests are about.
                pass

        self.server = Loopback(('127.0.0.1', 0), Handler)
        self.url = f'http://127.0.0.1:{self.server.server_address[1]}'
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def handle(self, handler):
        body = handler.rfile.read(int(handler.headers.get('Content-Length') or 0))
        request = Request(handler, body)
        self.requests.append(request)
        answer = self.answer(request)
        if not isinstance(answer, Answer):
            answer = Answer(answer)
        self.stopping.wait(answer.delay)
        if answer.reset:
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                          b'\1\0\0\0\0\0\0\0')
            handler.connection.close()
            handler.close_connection = True
            return
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header('Content-Length', str(len(answer.body)))
        handler.end_headers()
        if answer.drip:
            for byte in answer.body:
                handler.wfile.write(bytes([byte]))
                handler.wfile.flush()
                if self.stopping.wait(answer.drip):
                    return
            return
        handler.wfile.write(answer.body[:answer.cut])
        if answer.cut is not None:
            handler.close_connection = True

    def stop(self):
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@contextlib.contextmanager
def serving(answer):
    """Have a server for a while."""
    server = Server(answer)
    try:
        yield server
    finally:
        server.stop()


def unused_port(case):
    """A port on which no program listens, nor can while the test runs."""
    holder = socket.socket()
    case.addCleanup(holder.close)
    holder.bind(('127.0.0.1', 0))
    return holder.getsockname()[1]


class Clock:
    """A clock that only moves when it is told, or by the real one's step."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Hurrying:
    """Stands for ``time``: goes on by so many seconds whenever it is read."""

    def __init__(self, step=0.0):
        self.now, self.step = 1000.0, step

    def monotonic(self):
        self.now += self.step
        return self.now
