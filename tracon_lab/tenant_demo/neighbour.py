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
"""What contends with a worker on its host, for one resource, until SIGTERM.

Usage: python3 -m tracon_lab.tenant_demo.neighbour HOST FILE KIND PERCENT

For training it takes 30, 60 or 90 % of a resource at an even pace. With 100 it takes all that it
gets, by another program than in training: it compresses instead of counting, adds arrays instead
of changing one, reads sixteen blocks at once instead of one, and sends in bursts.
"""

from __future__ import annotations

import mmap
import os
import random
import socket
import sys
import threading
import time
import zlib

import numpy as np

from tracon_lab.tenant_demo import hosts
from tracon_lab.tenant_demo import worker

KINDS = ('cpu', 'memory', 'disk', 'network')
_ARRAY = 64 << 20


def cpu(share: float) -> None:
    """Use a share of the host's CPU time."""
    text, began = random.Random(1).randbytes(1 << 16), time.monotonic()
    while True:
        if share == 1.0:
            zlib.compress(text)
        elif time.process_time() < (
                share * hosts.QUOTA_US / hosts.PERIOD_US * (time.monotonic() - began)):
            sum(range(10000))
        else:
            time.sleep(0.001)


def memory(share: float) -> None:
    """Empty the caches of the core, for which it needs some of the CPU, too."""
    one = np.zeros(_ARRAY // 8)
    other = np.zeros_like(one) if share == 1.0 else one
    part = len(one) // 16
    while True:
        for start in range(0, len(one), part):
            before = time.monotonic()
            one[start:start + part] += other[start:start + part] + 1.0
            time.sleep((time.monotonic() - before) * (1.0 / share - 1.0))


def disk(share: float, file: str) -> None:
    """Read a share of what the host's disk can."""
    reader, size = os.open(file, os.O_RDONLY | os.O_DIRECT), worker.BLOCK
    size *= 16 if share == 1.0 else 1

    def read() -> None:
        block, due = mmap.mmap(-1, size), time.monotonic()
        while True:
            os.preadv(reader, [block], random.randrange(worker.FILE_BYTES // size) * size)
            due += 2.0 / (share * hosts.READS)
            time.sleep(max(due - time.monotonic(), 0.0) if share < 1.0 else 0.0)
    for _ in range(1):
        threading.Thread(target=read, daemon=True).start()
    read()


def network(share: float, host: hosts.Host) -> None:
    """Send a share of what the host's link carries."""
    sender, packet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), bytes(1400)
    burst, due = (40 if share == 1.0 else 4), time.monotonic()
    while True:
        for _ in range(burst):
            sender.sendto(packet, (f'198.18.{host.number}.1', 9))
        due += burst * len(packet) * 8e-6 / (share * hosts.LINK_MBIT)
        time.sleep(max(due - time.monotonic(), 0.0))


def main(number: str, file: str, kind: str, percent: str) -> None:
    """Contend until the end."""
    host, share = hosts.Host(int(number)), int(percent) / 100.0
    hosts.enter(host, 'neighbour')
    if kind == 'cpu':
        cpu(share)
    elif kind == 'memory':
        memory(share)
    elif kind == 'disk':
        disk(share, file)
    network(share, host)


if __name__ == '__main__':
    main(*sys.argv[1:])
