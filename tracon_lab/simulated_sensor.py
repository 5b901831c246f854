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

"""Simulated sensors: answer as real ones do, after times that are drawn (synthetic)."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Callable

from tracon_watcher.probe import answers

#: Seconds of an iteration, an integer, a block read and a block written.
STEPS = {'/connection': 1e-7, '/memory': 1e-7, '/read': 2e-4, '/write': 1e-3}


class Sensor:
    """A sensor in this process, which does one request after the other, but no work.

    :param steps: seconds that a unit of the amount takes, by path
    :param spread: relative standard deviation of the time of a request
    :param slower: by how much contention stretches work, by path; 1 without
    :param spoil: changes head and body of an answer, for tests; None holds it back
    """

    def __init__(self, secret: bytes, steps: dict[str, float] = STEPS, spread: float = 0.1,
                 seed: int = 1, slower: dict[str, float] | None = None,
                 spoil: Callable[[int, bytes, str], tuple[int, bytes, str] | None]
                 = lambda *answer: answer) -> None:
        self._secret, self._steps, self._spread, self._spoil = secret, steps, spread, spoil
        self.slower = slower if slower is not None else {}
        self._random = random.Random(seed)
        self._free_at = 0.0
        self._server: asyncio.Server | None = None
        self.answered = 0

    async def start(self, port: int = 0) -> str:
        """Listen on this machine; return the address."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), '127.0.0.1', port,
                                                backlog=1024)
        return '127.0.0.1:%d' % self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    def ready(self, amount: int, path: str) -> tuple[float, float]:
        """Return the seconds of a request's work, and until its answer is ready."""
        seconds = (self._steps[path] * amount * self.slower.get(path, 1.0)
                   * max(self._random.gauss(1.0, self._spread), 0.1))
        now = asyncio.get_running_loop().time()
        self._free_at = max(self._free_at, now) + seconds
        return seconds, self._free_at - now

    def answer(self, asked: str, signature: str, seconds: float) -> bytes | None:
        """Return the whole answer."""
        if signature != answers.sign(self._secret, asked.encode()):
            status, body = 403, b'the signature is not that of the shared secret'
        else:
            status, body = 200, json.dumps({
                'schema': answers.SCHEMA, 'target': asked, 'seconds': round(seconds, 9),
                'result': str(answers.expected(asked))}).encode()
        spoilt = self._spoil(status, body, answers.sign(self._secret, body))
        if spoilt is None:
            return None
        status, body, signature = spoilt
        self.answered += 1
        return (f'HTTP/1.1 {status} \r\nContent-Type: application/json\r\nConnection: close\r\n'
                f'Content-Length: {len(body)}\r\n{answers.SIGNATURE}: {signature}\r\n\r\n'
                ).encode() + body


class _Connection(asyncio.Protocol):

    def __init__(self, sensor: Sensor) -> None:
        self._sensor, self._got = sensor, b''

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._got += data
        if not self._got.endswith(b'\r\n\r\n'):
            return
        request, *lines = self._got.decode().split('\r\n')
        asked = request.split(' ')[1]
        headers = dict(line.split(': ', 1) for line in lines if line)
        seconds, wait = self._sensor.ready(int(asked.rpartition('=')[2]), asked.partition('?')[0])
        asyncio.get_running_loop().call_later(
            wait, self._answer, asked, headers.get(answers.SIGNATURE, ''), seconds)

    def _answer(self, asked: str, signature: str, seconds: float) -> None:
        answer = self._sensor.answer(asked, signature, seconds)
        if answer is not None and not self._transport.is_closing():
            self._transport.write(answer)
            self._transport.close()
