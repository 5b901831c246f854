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

"""HAProxy as DIAL sees it: its runtime API, its HTTP log, and what both say of an interval.

A tail percentile needs the time of each request. ``show stat`` has means over the last 1024
requests (``qtime``, ``ctime``, ``rtime``), its Prometheus endpoint the same; the log has every
request. The statistics say how many there were, so that a log that falls silent is noticed.
"""

from __future__ import annotations

import csv
import dataclasses
import math
import os
import pathlib
import re
import socket
import time
from typing import BinaryIO, Callable, Mapping

import numpy as np

from tracon_watcher import errors
from tracon_watcher.tenant import classification
from tracon_watcher.tenant import controller
from tracon_watcher.tenant import settings as dial_settings

#: Seconds that an answer may take, and its longest.
_DEADLINE, _LONGEST = 5.0, 1 << 24
#: Bytes of the log that are read at once (of more, the last), and of a line.
_BACKLOG, _LINE = 1 << 26, 1 << 16
#: The date is HAProxy's own in its first place only: behind it, the client has its say.
_DATE = re.compile(rb' \[\d\d/[A-Z][a-z][a-z]/\d{4}:[0-9:.]+\] ')
_NAMES = re.compile(rb'[^ ]+ ([^ /]+)/([^ ]+) ')
#: TR/Tw/Tc/Tr/Ta, status, bytes, two captured cookies, and who ended the session.
_FIGURES = re.compile(rb'(-1|\d{1,9})/(-1|\d{1,9})/(-1|\d{1,9})/(-1|\d{1,9})/(\+?)(\d{1,9}) '
                      rb'(-1|[1-5]\d\d) \+?\d+ [^ ]+ [^ ]+ (.)...? ')
#: Times longer than an hour are a clock's or a lie. A sum of rounded times exceeds their total.
_HOUR_MS, _ROUNDING_MS = 3600000, 5
#: Requests that HAProxy must have counted before the log is called silent.
_ENOUGH = 20


class HAProxyFailed(errors.TraconError):
    """HAProxy's runtime API or its log cannot be used now."""


@dataclasses.dataclass(frozen=True)
class Server:
    """A server of a backend.

    :ivar weight: in use
    :ivar configured: in HAProxy's configuration
    :ivar available: whether it is sent requests: up, and neither drained nor in maintenance
    :ivar sessions: since HAProxy started
    """

    weight: int
    configured: int
    available: bool
    sessions: int


class RuntimeAPI:
    """HAProxy's runtime API, a stats socket of level admin."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path

    def servers(self, backend: str) -> dict[str, Server]:
        """Return the servers of a backend by name.

        :raises HAProxyFailed: when it does not answer, or has no such backend
        """
        version, *lines = (self._ask(f'show servers state {backend}') or 'no answer').splitlines()
        if version != '1' or not lines:
            raise HAProxyFailed(f'{self._path}: show servers state {backend}: {version}')
        found = {}
        try:
            sessions = {row['svname']: int(row['stot'] or 0) for row in csv.DictReader(
                self._ask(f'show stat {backend} 4 -1').lstrip('# ').splitlines())}
            for row in csv.DictReader((line.removeprefix('# ') for line in lines if line),
                                      delimiter=' '):
                weight = int(row['srv_uweight'])
                found[row['srv_name']] = Server(
                    weight, int(row['srv_iweight']),
                    # Operators drain with a weight of 0, too, which is never set here.
                    row['srv_op_state'] in '12' and row['srv_admin_state'] == '0' and weight > 0,
                    sessions.get(row['srv_name'], 0))
        except (KeyError, TypeError, ValueError) as error:
            raise HAProxyFailed(f'{self._path}: an answer that HAProxy 2.6 does not give '
                                f'({error!r})') from None
        return found

    def set_weights(self, backend: str, weights: Mapping[str, int]) -> None:
        """Set weights of servers.

        :raises HAProxyFailed: when it refuses, for example since the socket has no level admin
        """
        answer = self._ask('; '.join(f'set server {backend}/{name} weight {weight}'
                                     for name, weight in weights.items()))
        if answer:
            # It says so for each of them.
            raise HAProxyFailed(f'{self._path}: set server ... weight: {answer.splitlines()[0]}; '
                                f'the stats socket needs "level admin", the backend "balance '
                                f'roundrobin", "leastconn" or "random"')

    def _ask(self, command: str) -> str:
        answer, end = b'', time.monotonic() + _DEADLINE
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(_DEADLINE)
                connection.connect(os.fspath(self._path))
                connection.sendall(f'{command}\n'.encode())
                while part := connection.recv(1 << 16):
                    answer += part
                    if len(answer) > _LONGEST or time.monotonic() > end:
                        raise HAProxyFailed(f'{self._path}: an answer without end')
        except OSError as error:
            raise HAProxyFailed(f'{self._path}: {error.strerror or error}') from None
        return answer.decode(errors='replace').strip()


class LogFollower:
    """Reads what is appended to a log, which may be rotated or truncated.

    What is in the file at first is not read.

    :raises HAProxyFailed: when the file cannot be opened
    """

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._rest = b''
        self._stream = self._open()
        self._stream.seek(0, os.SEEK_END)

    def lines(self) -> list[bytes]:
        """Return the whole lines since the last call.

        :raises HAProxyFailed: when the file is away
        """
        found = self._read()
        fresh = self._open()
        if os.path.samestat(os.fstat(fresh.fileno()), os.fstat(self._stream.fileno())):
            fresh.close()
            return found
        self._stream.close()
        self._stream, self._rest = fresh, b''
        return found + self._read()

    def _open(self) -> BinaryIO:
        try:
            return self._path.open('rb')
        except OSError as error:
            raise HAProxyFailed(f'{self._path}: {error.strerror}; name the file that HAProxy\'s '
                                f'log ends in') from None

    def _read(self) -> list[bytes]:
        size, place = os.fstat(self._stream.fileno()).st_size, self._stream.tell()
        if size < place or size - place > _BACKLOG:
            # Truncated, or more than can be read at once.
            place, self._rest = (0 if size < place else size - _BACKLOG), b''
            self._stream.seek(place)
        *lines, rest = (self._rest + self._stream.read(size - place)).split(b'\n')
        self._rest = rest[:_LINE]
        return lines


def request(line: bytes, backend: str) -> tuple[str, float, float] | None:
    """Return server, latency and time to connect (ms) of a backend's request, from a log's line.

    The latency is the time in queues (Tw), to connect (Tc) and until the response begins (Tr):
    what the worker causes, unlike the times that the client takes to send and to receive. A
    request that the worker did not answer in time took as long as HAProxy waited. Other failures,
    which may be quick, have no latency (NaN).

    :returns: nothing for a line of something else
    :raises ValueError: for figures that cannot be true
    """
    date = _DATE.search(line)
    names = _NAMES.match(line, date.end()) if date else None
    if names is None or names[1] != backend.encode():
        return None
    figures = _FIGURES.match(line, names.end())
    if figures is None:
        raise ValueError('neither times nor status')
    client, queued, connected, answered = (int(figures[place]) for place in range(1, 5))
    total, partial, status, end = int(figures[6]), figures[5], int(figures[7]), figures[8]
    latency = math.nan
    if end == b's':
        latency = total - max(client, 0)
    elif min(queued, connected, answered) >= 0 and status < 500:
        latency = queued + connected + answered
        if not partial and latency > total + _ROUNDING_MS:
            raise ValueError('the parts take longer than the whole')
    if latency > _HOUR_MS or latency < 0:
        raise ValueError('a time that cannot be')
    return names[2].decode(errors='replace'), latency, connected if connected >= 0 else math.nan


class Observer:
    """Puts an interval together from HAProxy's log and statistics.

    :ivar refused: number of lines of the log whose figures could not be true
    """

    def __init__(self, settings: dial_settings.Settings, api: RuntimeAPI, log: LogFollower,
                 clock: Callable[[], float] = time.monotonic,
                 exporters: classification.Exporters | None = None) -> None:
        self._settings = settings
        self._exporters = exporters
        self._api = api
        self._log = log
        self._clock = clock
        self._at = clock()
        self._sessions: dict[str, int] = {}
        self.refused = 0

    def observe(self) -> tuple[controller.Observation, dict[str, Server]]:
        """Return what was seen since the last call, and the workers' servers where known."""
        names, blind = self._settings.workers, ''
        now = self._clock()
        seconds, self._at = now - self._at, now
        servers: dict[str, Server] = {}
        lines: list[bytes] = []
        try:
            lines = self._log.lines()
        except HAProxyFailed as error:
            blind = str(error)
        try:
            servers = {name: server for name, server in self._api.servers(
                self._settings.backend).items() if name in names}
        except HAProxyFailed as error:
            blind = str(error)
        usage = self._exporters.sample() if self._exporters else {}
        latencies: dict[str, list[float]] = {name: [] for name in names}
        connects: dict[str, list[float]] = {name: [] for name in names}
        logged = dict.fromkeys(names, 0)
        for line in lines:
            try:
                found = request(line, self._settings.backend)
            except ValueError:
                self.refused += 1
                continue
            if found and found[0] in logged:
                logged[found[0]] += 1
                if not math.isnan(found[1]):
                    latencies[found[0]].append(found[1])
                if not math.isnan(found[2]):
                    connects[found[0]].append(found[2])
        counted = {name: server.sessions - self._sessions[name]
                   for name, server in servers.items() if name in self._sessions}
        self._sessions = {name: server.sessions for name, server in servers.items()}
        if min(counted.values(), default=0) < 0:
            # HAProxy was restarted, and counts from 0.
            counted = {}
        number, known = sum(counted.values()), sum(logged.values())
        if not blind and number >= _ENOUGH and known < number / 2:
            blind = f'{self._settings.log} tells of {known} of {number} requests'
        arrivals = {**logged, **counted}
        readings = {name: [*usage[name], float(np.percentile(
            connects[name], self._settings.percentile)), arrivals[name] / seconds]
            for name in usage if connects.get(name)}
        return controller.Observation(
            seconds, [name for name in names if name in servers and servers[name].available],
            latencies, arrivals, blind, readings), servers
