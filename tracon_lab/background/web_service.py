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

"""A Web service in a guest, its clients, and the link that its host shares with background work.

The service is a sensor, which does a piece of work for each request of HTTP. Its clients are in a
network namespace; what the guest and the background send them goes through one emulated link.
"""

from __future__ import annotations

import asyncio
import collections.abc
import contextlib
import ctypes
import ipaddress
import multiprocessing
import multiprocessing.connection
import os
import random
import signal
import socket
import subprocess
import time
import typing

import aiohttp

from tracon_lab.testbed import daemons
from tracon_lab.testbed import errors
from tracon_lab.testbed import sensor_guest
from tracon_watcher.probe import answers
from tracon_watcher.probe import generator

#: Mbit/s of the link.
CAPACITY = 100.0
#: The background's own interface, its address, and that of what it sends to.
DEVICE, ADDRESS, SINK = 'tracon-bg', '198.19.0.2', ('198.19.0.1', 9000)
_SPACE, _BRIDGE, _LINK, _PORT = 'tracon-clients', 'tracon-br', 'tracon-up', 'tracon-bp'
_NEW_NETWORK = 0x40000000       # CLONE_NEWNET
#: What runs a command where the clients are, before all others on its core as they are.
INSIDE = ('nsenter', f'--net=/run/netns/{_SPACE}', 'chrt', '--rr', '1')
#: Requests a second, the mean of steps of a CPU loop in each, and seconds after which one has
#: failed.
RATE, WORK, PATIENCE = 30.0, 1e6, 10.0


@contextlib.contextmanager
def link(*sensors: sensor_guest.Sensor) -> collections.abc.Iterator[None]:
    """Put guests and the interface of background work behind one link, with a sink at its end.

    :raises TestbedError: naming the command that failed
    """
    taps = [one.domain.name()[len('tracon-'):] for one in sensors]
    _remove()
    try:
        for command in (
                f'ip netns add {_SPACE}',
                f'ip link add {_BRIDGE} type bridge',
                f'ip link add {_LINK} type veth peer name eth0 netns {_SPACE}',
                f'ip link add {DEVICE} type veth peer name {_PORT}',
                *(f'ip address flush dev {tap}' for tap in taps),
                *(f'ip link set {one} master {_BRIDGE}' for one in (_LINK, _PORT, *taps)),
                *(f'ip link set {one} up' for one in (_BRIDGE, _LINK, _PORT, DEVICE)),
                f'ip address add {ADDRESS}/30 dev {DEVICE}',
                f'ip -n {_SPACE} address add {SINK[0]}/30 dev eth0',
                # The addresses that this machine had before.
                *(f'ip -n {_SPACE} address add {ipaddress.ip_address(one.address) - 1}/30 dev eth0'
                  for one in sensors),
                f'ip -n {_SPACE} link set eth0 up', f'ip -n {_SPACE} link set lo up',
                f'tc qdisc add dev {_LINK} root tbf rate {CAPACITY:g}mbit burst 64kb latency '
                f'50ms'):
            done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
            if done.returncode:
                raise errors.TestbedError(f'{command}: {done.stderr.strip()}')
        with _process(_swallow):
            yield
    finally:
        _remove()


def _remove() -> None:
    for command in (f'ip netns delete {_SPACE}', f'ip link delete {_LINK}',
                    f'ip link delete {DEVICE}', f'ip link delete {_BRIDGE}'):
        subprocess.run(command.split(), capture_output=True, check=False)


@contextlib.contextmanager
def _process(work: typing.Callable[..., None],
             *arguments: typing.Any) -> collections.abc.Iterator[None]:
    """A process in the network namespace of the clients, before all others on its core."""
    child = multiprocessing.Process(target=_entered, args=(work, *arguments), daemon=True)
    child.start()
    try:
        yield
    finally:
        child.kill()
        child.join()


def _entered(work: typing.Callable[..., None], *arguments: typing.Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    daemons.die_with_parent()
    space = os.open(f'/run/netns/{_SPACE}', os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(space, _NEW_NETWORK):
        raise OSError(ctypes.get_errno(), 'setns')
    # In a cloud the clients are on other machines.
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    work(*arguments)


def _swallow() -> None:
    """Take what background work sends."""
    with socket.create_server(SINK) as server:
        while True:
            sender, _address = server.accept()
            with sender, contextlib.suppress(OSError):
                while sender.recv(1 << 20):
                    pass


@contextlib.contextmanager
def clients(sensor: sensor_guest.Sensor, seconds: float, seed: int,
            rate: float) -> collections.abc.Iterator[typing.Callable[[], list[float]]]:
    """Send requests that come at random times, whether or not earlier ones were answered.

    Both the time between two requests and the work of each have an exponential distribution. The
    context is a function that waits for the end and returns the seconds from when each request was
    due. It raises :class:`TestbedError` when the clients say nothing.

    :param seed: of both
    """
    results, far = multiprocessing.Pipe(duplex=False)

    def latencies() -> list[float]:
        if not results.poll(seconds + 3 * PATIENCE):
            raise errors.TestbedError('the clients of the Web service have ended: see their '
                                      'message')
        found: list[float] = results.recv()
        return found

    with _process(_ask, far, sensor.address, sensor.port, sensor.secret,
                  arrivals(seconds, rate, seed)):
        yield latencies


def arrivals(seconds: float, rate: float, seed: int) -> list[tuple[float, int]]:
    """Return requests: when each is due, in seconds from the beginning, and its steps of work."""
    rng, found, due = random.Random(seed), [], 0.0
    while (due := due + rng.expovariate(rate)) < seconds:
        found.append((due, 1 + int(rng.expovariate(1 / WORK))))
    return found


def _ask(results: multiprocessing.connection.Connection, address: str, port: int, secret: bytes,
         requests: list[tuple[float, int]]) -> None:
    results.send(asyncio.run(_open_loop(f'http://{address}:{port}', secret, requests)))
    time.sleep(PATIENCE)        # the parent ends it


async def _open_loop(url: str, secret: bytes,
                     requests: list[tuple[float, int]]) -> list[float]:
    clock = asyncio.get_running_loop().time
    begin = clock()

    async def request(due: float, work: int) -> float:
        asked = answers.target('/connection', 'work', work)
        try:
            async with asyncio.timeout(PATIENCE), client.get(url + asked, headers={
                    answers.SIGNATURE: answers.sign(secret, asked.encode())}) as got:
                got.raise_for_status()
                await got.read()
        except (TimeoutError, OSError, aiohttp.ClientError):
            return PATIENCE
        return clock() - due

    async with generator.session() as client, asyncio.TaskGroup() as group:
        tasks = []
        for due, work in requests:
            await asyncio.sleep(max(begin + due - clock(), 0.0))
            tasks.append(group.create_task(request(begin + due, work)))
    return [task.result() for task in tasks]
