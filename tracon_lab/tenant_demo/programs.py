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
"""The programs of a host: its worker, and the neighbours that contend with it.

Usage: python3 -m tracon_lab.tenant_demo.programs HOST FILE KIND PERCENT, where KIND is ``worker``
or one of :data:`KINDS`

The worker serves one request after the other: it walks a list whose cells are all over memory,
reads the disk once, past the page cache, and answers with some kilobytes; walk and answer are
exponential in length. Beside, it says what node_exporter says.

For training, a neighbour takes all that it gets of a resource, for 40, 60 or 90 % of the time;
that of memory sweeps as often. With 100 it does so all the time, by another program than in
training: it compresses instead of adding numbers, adds arrays instead of a constant, reads sixteen
blocks at once instead of one, and sends forty packets at once instead of four.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pathlib
import random
import socket
import sys
import threading
import time
from typing import Any
import zlib

import numpy as np

from tracon_lab.tenant_demo import hosts

KINDS = ('cpu', 'memory', 'disk', 'network')
#: Cells of the list, steps and bytes of a request on average; bytes that are read at once.
CELLS, STEPS, ANSWER, BLOCK = 10000, 24000, 5000, 4096
#: Sizes of the file that is read, and of an array of the neighbour.
FILE_BYTES, _ARRAY = 64 << 20, 64 << 20
#: Seconds of which a neighbour works a share.
_PERIOD = 0.1


class Worker:
    """Serves requests, and keeps account of the time it waited for its disk."""

    def __init__(self, file: str, seed: int) -> None:
        self._random = random.Random(seed)
        self._file = os.open(file, os.O_RDONLY | os.O_DIRECT)
        # All cells come before the order, which so is none in memory.
        cells: list[list[Any]] = [[None] for _ in range(CELLS)]
        order = self._random.sample(cells, CELLS)
        for one, following in zip(order, order[1:] + order[:1]):
            one[0] = following
        self._cell, self._began = cells[0], time.monotonic()
        self._user = self._waited = 0.0

    def serve(self, listener: socket.socket) -> None:
        """Serve requests for ever."""
        body, block = bytes(20 * ANSWER), mmap.mmap(-1, BLOCK)
        while True:
            connection, _address = listener.accept()
            # A client, such as HAProxy, may have left.
            with connection, contextlib.suppress(OSError):
                if not connection.recv(4096):
                    continue
                cell, size = self._cell, min(self._random.expovariate(1.0), 20.0)
                before = time.thread_time()
                for _ in range(int(STEPS * size)):
                    cell = cell[0]
                self._user += time.thread_time() - before
                self._cell, before = cell, time.monotonic() - _stolen()
                os.preadv(self._file, [block], self._random.randrange(FILE_BYTES // BLOCK) * BLOCK)
                self._waited += time.monotonic() - _stolen() - before
                length = int(ANSWER * size)
                connection.sendall(b'HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n' % length
                                   + body[:length])

    def metrics(self) -> str:
        """Return what node_exporter says, of this worker instead of a VM.

        A VM's kernel calls waiting for the disk iowait, and waiting for the host's CPU steal.
        """
        # The kernel tells both apart by few ticks; here all but the walk counts as the system's.
        seconds = {'user': self._user, 'system': time.process_time() - self._user,
                   'iowait': self._waited, 'steal': _stolen()}
        seconds['idle'] = max(time.monotonic() - self._began - sum(seconds.values()), 0.0)
        _names, values = (line.split() for line in pathlib.Path('/proc/net/snmp').read_text(
            ).splitlines() if line.startswith('Tcp:'))
        return ''.join(f'node_cpu_seconds_total{{cpu="0",mode="{mode}"}} {value}\n'
                       for mode, value in seconds.items()) + (
            f'node_netstat_Tcp_RetransSegs {values[_names.index("RetransSegs")]}\n')

    def tell(self, listener: socket.socket) -> None:
        """Answer all that ask for metrics, for ever."""
        while True:
            connection, _address = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(4096)
                connection.sendall(f'HTTP/1.0 200 OK\r\n\r\n{self.metrics()}'.encode())


def _stolen() -> float:
    """Return how long the main thread was ready and waited for the CPU, in seconds."""
    return int(pathlib.Path('/proc/self/schedstat').read_bytes().split()[1]) / 1e9


def _pause(share: float) -> None:
    """Wait for the next period where a share of this one is over."""
    over = time.monotonic() % _PERIOD
    if over > share * _PERIOD:
        time.sleep(_PERIOD - over)


def cpu(share: float) -> None:
    """Compute."""
    text = random.Random(1).randbytes(1 << 14)
    while True:
        _pause(share)
        if share == 1.0:
            zlib.compress(text)
        else:
            sum(range(10000))


def memory(share: float) -> None:
    """Empty the cache of the core again and again, with little of the CPU."""
    one = np.zeros(_ARRAY // 8)
    other = np.ones_like(one) if share == 1.0 else one[:0]
    part = (2 << 20) // 8
    while True:
        for start in range(0, len(one), part):
            one[start:start + part] += other[start:start + part] if share == 1.0 else 1.0
            time.sleep(0.002 / share)


def disk(share: float, file: str) -> None:
    """Read two at once."""
    reader, size = os.open(file, os.O_RDONLY | os.O_DIRECT), BLOCK * (16 if share == 1.0 else 1)

    def read() -> None:
        block = mmap.mmap(-1, size)
        while True:
            _pause(share)
            os.preadv(reader, [block], random.randrange(FILE_BYTES // size) * size)
    threading.Thread(target=read, daemon=True).start()
    read()


def network(share: float, host: hosts.Host) -> None:
    """Send as much as the host's link carries."""
    sender, packet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), bytes(1400)
    burst, due = (40 if share == 1.0 else 4), time.monotonic()
    while True:
        _pause(share)
        for _ in range(burst):
            sender.sendto(packet, (f'198.18.{host.number}.1', 9))
        due = max(due, time.monotonic() - 0.02) + burst * len(packet) * 8e-6 / hosts.LINK_MBIT
        time.sleep(max(due - time.monotonic(), 0.0))


def main(number: str, file: str, kind: str, percent: str) -> None:
    """Work until the end."""
    host, share = hosts.Host(int(number)), int(percent) / 100.0
    hosts.enter(host, 'worker' if kind == 'worker' else 'neighbour')
    if kind == 'worker':
        worker = Worker(file, host.number)
        told = socket.create_server((host.address, hosts.METRICS))
        threading.Thread(target=worker.tell, args=(told,), daemon=True).start()
        listener = socket.create_server((host.address, hosts.PORT), backlog=1024)
        # While a request is on its way, others are served.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 5)
        worker.serve(listener)
    elif kind == 'disk':
        disk(share, file)
    elif kind == 'network':
        network(share, host)
    else:
        {'cpu': cpu, 'memory': memory}[kind](share)


if __name__ == '__main__':
    main(*sys.argv[1:])
