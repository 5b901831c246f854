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
"""Contention of each kind beside one worker, once for each way to balance load."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import time
from typing import Any, Iterator, Mapping, Sequence

import numpy as np
import yaml

from tracon_lab.tenant_demo import hosts
from tracon_lab.tenant_demo import load
from tracon_lab.tenant_demo import programs
from tracon_watcher import errors

#: Each way to balance load, with HAProxy's algorithm.
ARMS = {'round robin': 'roundrobin', 'least connections': 'leastconn', 'DIAL': 'roundrobin'}
QUIET = 'none'
COLUMNS = ('contention', 'round_robin_ms', 'least_connections_ms', 'dial_ms', 'dial_later_ms',
           'against_round_robin_percent', 'against_least_connections_percent', 'seen',
           'delay_intervals', 'named')
#: Requests a second to all workers, and what one serves at most.
RATE, PEAK_RATE = 190.0, 200.0
#: Lengths in intervals of DIAL: of quiet times, between contention, and of runs of training.
LEAST_QUIET, _PAUSE, _RUN = 10, 3, 3
#: Intervals that DIAL may take to see that contention has ended.
END = 15
_NAMES = [f'w{host.number}' for host in hosts.HOSTS]
_HAPROXY = '''global
    log stdout format raw local0
    stats socket {folder}/admin.sock mode 600 level admin
defaults
    mode http
    log global
    option httplog
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend public
    bind 127.0.0.1:{port}
    default_backend web
backend web
    balance {algorithm}
    default-server weight 100
'''


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What clients measured in one arm.

    :ivar windows: begin and end of each kind of contention, seconds from the arm's begin
    :ivar sent: intended times of requests, seconds from the arm's begin, shape (n,)
    :ivar taken: their latencies, s, shape (n,)
    :ivar named: what DIAL said that the contention of a kind is
    :ivar delay: intervals until DIAL said so; infinite where it did not
    :ivar false_alarms: how often DIAL said it in quiet times
    """

    windows: dict[str, tuple[float, float]]
    sent: np.ndarray
    taken: np.ndarray
    named: dict[str, str]
    delay: dict[str, float]
    false_alarms: int = 0

    def tail_ms(self, kind: str, later: bool = False) -> float:
        """Return T90 of the requests sent during a kind of contention, or its second half."""
        begin, end = self.windows[kind]
        inside = (self.sent >= (begin + end * later) / (1 + later)) & (self.sent < end)
        return float(np.percentile(self.taken[inside], 90.0)) * 1e3


def table(outcomes: Mapping[str, Sequence[Outcome]]) -> list[tuple[Any, ...]]:
    """Return rows of :data:`COLUMNS`: medians over rounds, by kind of contention."""
    rows: list[tuple[Any, ...]] = []
    for kind in (QUIET, *programs.KINDS):
        tails = {arm: float(np.median([one.tail_ms(kind) for one in found]))
                 for arm, found in outcomes.items()}
        dial = tails['DIAL']
        later = float(np.median([one.tail_ms(kind, True) for one in outcomes['DIAL']]))
        named = [one.named.get(kind, '') for one in outcomes['DIAL']]
        delays = np.array([one.delay.get(kind, np.inf) for one in outcomes['DIAL']])
        # In quiet times, what is seen is a false alarm.
        seen = (sum(one.false_alarms for one in outcomes['DIAL']) if kind == QUIET
                else int(np.isfinite(delays).sum()))
        rows.append((kind, *tails.values(), later,
                     *(100.0 * (dial / tails[arm] - 1.0) for arm in list(ARMS)[:2]), seen,
                     float(np.median(delays[np.isfinite(delays)])) if np.isfinite(delays).any()
                     else None,
                     ' '.join(f'{one} {named.count(one)}' for one in sorted(set(named)) if one)))
    return rows


class Site:
    """Workers on their hosts, and what runs before them.

    :param interval: of DIAL, s; everything takes a multiple of it
    :param contention: intervals that each contention lasts
    :param quiet: intervals without contention before the first, where DIAL balances load
    """

    def __init__(self, folder: pathlib.Path, interval: float, contention: int = 10,
                 quiet: int = LEAST_QUIET) -> None:
        self._folder, self.interval, self.contention = folder, interval, contention
        self._quiet = quiet
        self._file = folder / 'disk'
        with self._file.open('wb') as stream:
            for _ in range(programs.FILE_BYTES >> 20):
                stream.write(bytes(range(256)) * 4096)
        with socket.create_server(('127.0.0.1', 0)) as free:
            self._port = free.getsockname()[1]
        (folder / 'dial.yaml').write_text(yaml.safe_dump({
            'socket': f'{folder}/admin.sock', 'log': f'{folder}/haproxy.log', 'backend': 'web',
            'workers': _NAMES, 'peak_rate': PEAK_RATE, 'interval_seconds': interval,
            'quiet_readings': 20, 'trickle': 0.05, 'runs': 3, 'run_intervals': _RUN,
            'model': f'{folder}/model.json',
            'exporters': {name: f'http://{host.address}:{hosts.METRICS}/metrics'
                          for name, host in zip(_NAMES, hosts.HOSTS)},
            'stressors': {kind: {_NAMES[0]: shlex.join(self.program(
                hosts.HOSTS[0], kind, '{percent}'))} for kind in programs.KINDS}}),
            encoding='utf-8')

    @contextlib.contextmanager
    def workers(self) -> Iterator[None]:
        """Run the workers on their hosts, which are removed at the end."""
        hosts.create(self._file)
        with contextlib.ExitStack() as stack:
            stack.callback(hosts.remove)
            # The load, HAProxy and DIAL leave the first host's core alone.
            os.sched_setaffinity(0, set(hosts.CORES[:-1] or hosts.CORES))
            stack.callback(os.sched_setaffinity, 0, set(hosts.CORES))
            for host in hosts.HOSTS:
                stack.enter_context(running(self.program(host, 'worker')))
            for host in hosts.HOSTS:
                _wait_for(host.address, hosts.PORT)
            yield

    def train(self) -> str:
        """Train the model, and return the table of its cross-validation as CSV."""
        with self._serving('roundrobin', seed=0):
            done = subprocess.run(
                [*_tracon('train', self._folder), '-o', f'{self._folder}/model.json', '-f', 'csv'],
                check=False, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise errors.TraconError('"tracon dial train" failed, and has said why')
        return done.stdout

    def play(self, arm: str, round_number: int = 0) -> Outcome:
        """Play all kinds of contention in one arm, the last one first in every second round."""
        windows: dict[str, tuple[float, float]] = {}
        named: dict[str, str] = {}
        delay: dict[str, float] = {}
        said = self._folder / 'dial.log'
        begin = said.stat().st_size if said.exists() else 0
        with self._serving(ARMS[arm], seed=round_number + 1) as (generator, began), \
                contextlib.ExitStack() as stack:
            if arm == 'DIAL':
                stack.enter_context(running(_tracon('run', self._folder), said))
            self.sleep(self._quiet if arm == 'DIAL' else LEAST_QUIET)
            windows[QUIET] = 0.0, time.monotonic() - began
            false = len(re.findall('is contended', said.read_text()[begin:])) if (
                arm == 'DIAL') else 0
            for kind in programs.KINDS[::-1 if round_number % 2 else 1]:
                place = said.stat().st_size if said.exists() else 0
                with running(self.program(hosts.HOSTS[0], kind)):
                    start = time.monotonic() - began
                    while (passed := time.monotonic() - began - start) < (
                            self.contention * self.interval):
                        time.sleep(self.interval / 5.0)
                        if arm == 'DIAL' and kind not in named and (found := re.search(
                                r'w1 is contended \((\w+)\)', said.read_text()[place:])):
                            named[kind], delay[kind] = found[1], passed / self.interval
                    windows[kind] = start, time.monotonic() - began
                if arm == 'DIAL':
                    named.setdefault(kind, 'not seen')
                self.sleep(END if arm == 'DIAL' else _PAUSE)
        sent, taken = np.array(sorted(generator.done)).T
        return Outcome(windows, sent - began, taken, named, delay, false)

    @contextlib.contextmanager
    def _serving(self, algorithm: str, seed: int) -> Iterator[tuple[load.Load, float]]:
        """Run HAProxy and the load; yield the load and its begin."""
        (self._folder / 'haproxy.cfg').write_text(
            _HAPROXY.format(folder=self._folder, port=self._port, algorithm=algorithm)
            + ''.join(f'    server {name} {host.address}:{hosts.PORT}\n'
                      for name, host in zip(_NAMES, hosts.HOSTS)), encoding='utf-8')
        with running(['haproxy', '-db', '-f', f'{self._folder}/haproxy.cfg'],
                     self._folder / 'haproxy.log'):
            _wait_for('127.0.0.1', self._port)
            generator, began = load.Load(self._port, RATE, seed), time.monotonic()
            generator.start()
            try:
                yield generator, began
            finally:
                generator.stop()

    def program(self, host: hosts.Host, kind: str, percent: str = '100') -> list[str]:
        """Return the command line of a program of a host: its worker, or a neighbour."""
        return host.command(sys.executable, '-m', 'tracon_lab.tenant_demo.programs',
                            str(host.number), str(self._file), kind, percent)

    def sleep(self, intervals: int) -> None:
        """Wait for some intervals."""
        time.sleep(intervals * self.interval)


def _tracon(action: str, folder: pathlib.Path) -> list[str]:
    return [sys.executable, '-m', 'tracon_watcher.cmd.app', 'dial', action, '--config',
            f'{folder}/dial.yaml']


@contextlib.contextmanager
def running(command: list[str], log: pathlib.Path | None = None) -> Iterator[None]:
    """Run a command, with its output in a log; end it."""
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(log.open('ab')) if log else subprocess.DEVNULL
        process = subprocess.Popen(command, stdout=stream, stderr=stream if log else None)
        stack.callback(process.wait)
        stack.callback(process.terminate)
        yield
        if process.poll() is not None:
            raise errors.TraconError(f'{shlex.join(command)} ended by itself with status '
                                     f'{process.returncode}; see {log or "above"}')


def _wait_for(address: str, port: int) -> None:
    """Wait until something listens."""
    until = time.monotonic() + 20.0
    while True:
        try:
            return socket.create_connection((address, port), 1.0).close()
        except OSError as error:
            if time.monotonic() > until:
                raise errors.TraconError(f'{address}:{port}: {error}; what should listen there '
                                         'has said why it does not') from None
            time.sleep(0.1)
