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
"""An open-loop load generator: requests leave at intended times, whatever answers do.

Latency counts from the intended time, as wrk2 does it: a generator that waits for answers sends
less while they are slow, and so leaves out the worst (coordinated omission).
"""

from __future__ import annotations

import asyncio
import random
import threading
import time

#: Seconds after which a request has failed; it counts as that long.
PATIENCE = 5.0


class Load(threading.Thread):
    """Sends requests at random (Poisson) times, in a thread.

    :ivar done: intended time on the monotonic clock, seconds from it to the end of the answer
        (:data:`PATIENCE` for those that failed)
    """

    def __init__(self, port: int, rate: float, seed: int) -> None:
        super().__init__(daemon=True)
        self._port, self._rate, self._seed = port, rate, seed
        self._ended = threading.Event()
        self.done: list[tuple[float, float]] = []

    def run(self) -> None:
        """Send until :meth:`stop`."""
        asyncio.run(self._send())

    def stop(self) -> None:
        """Stop, and wait for answers that are under way."""
        self._ended.set()
        self.join()

    async def _send(self) -> None:
        gaps, due, asked = random.Random(self._seed), time.monotonic(), set()
        while not self._ended.is_set():
            due += gaps.expovariate(self._rate)
            await asyncio.sleep(max(due - time.monotonic(), 0.0))
            task = asyncio.create_task(self._ask(due))
            asked.add(task)
            task.add_done_callback(asked.discard)
        await asyncio.gather(*asked)

    async def _ask(self, due: float) -> None:
        self.done.append((due, await fetch('127.0.0.1', self._port, due)))


async def fetch(address: str, port: int, due: float) -> float:
    """Ask once; return seconds from an intended time to the end of the answer."""
    taken = PATIENCE
    try:
        async with asyncio.timeout_at(asyncio.get_running_loop().time() + PATIENCE):
            reader, writer = await asyncio.open_connection(address, port)
            try:
                writer.write(b'GET / HTTP/1.0\r\n\r\n')
                if (await reader.read())[8:13] == b' 200 ':
                    taken = min(time.monotonic() - due, PATIENCE)
            finally:
                writer.close()
    except (OSError, TimeoutError):
        pass
    return taken
