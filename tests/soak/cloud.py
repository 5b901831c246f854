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

"""What runs in the soak: a broker, a database, engines, workers of nova-scheduler, an auditor.

Only the compute side is synthetic (:mod:`tests.soak.world`).
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Iterator
import urllib.error
import urllib.request

from tests.functional import databases
from tests.functional import messaging
from tests.functional import ports
from tests.soak import notifier
from tests.soak import orders
from tests.soak import services
from tests.soak import world as worlds
from tracon_lab.cmd import bench_cluster

_ROOT = pathlib.Path(__file__).parents[2]
DATABASES = {kind.name: kind for kind in (databases.MariaDB, databases.PostgreSQL)}
ENGINES, SCHEDULERS = ('engine-a', 'engine-b'), 3
_PATIENCE = 180.0
_QUEUES = """
[oslo_messaging_rabbit]
rabbit_quorum_queue = true
rabbit_transient_quorum_queue = true
"""
# RabbitMQ keeps the messages of quorum queues in memory until it starts a new log file. The
# default size, 512 MiB, makes its memory rise and fall too slowly for a run to be compared.
_BROKER = 'raft.wal_max_size_bytes = 67108864\n'
_ENGINE = """\
[DEFAULT]
transport_url = {broker}
log_file = {folder}/{name}.log

[database]
connection = {database}

[engine]
host = {name}
telemetry = prometheus
polling_interval_seconds = {polling}
collection_interval_seconds = {polling}
window_seconds = {window}
maximum_age_seconds = {age}
repair_interval_seconds = {repair}
lease_seconds = 5
default_host_type = {host_type}

[prometheus]
url = {cloud}
scrape_seconds = 1
round_seconds = {polling}

[service_auth]
auth_type = v3password
auth_url = {cloud}/identity/v3
username = tracon
password = synthetic
user_domain_id = default
project_name = service
project_domain_id = default
region_name = RegionOne

[keystone_authtoken]
auth_type = none

[api]
port = {api}
metrics_port = {metrics}
"""
_NOVA = """\
[DEFAULT]
transport_url = {broker}
control_exchange = nova
host = controller

[tracon]
snapshot_source = engine
mode = enforce
engine_check_seconds = 5
pending_expiry_seconds = {expiry}
pending_directory = {folder}/pending
initial_wait_seconds = 30
"""
_WATCHER = """\
[DEFAULT]
transport_url = {broker}

[tracon]
snapshot_source = engine
"""


class Cloud:
    """All of it; begins with :meth:`start`.

    :param polling: seconds between two polls of the agents
    :param candidates: hosts that Placement offers for a request
    :param folder: for configurations and logs; None: one that goes with the cloud
    :param database: of :data:`DATABASES`
    """

    def __init__(self, world: worlds.World, polling: float, candidates: int,
                 folder: pathlib.Path | None = None, database: str = 'mariadb') -> None:
        self.world = world
        self._database = database
        self._candidates = candidates
        self._given = folder
        self.polling = polling
        #: Seconds after which data is stale.
        self.stale = 15 * polling
        self._stack = contextlib.ExitStack()
        self.engines: dict[str, subprocess.Popen[bytes]] = {}
        self._ended = threading.Event()
        self.folder = pathlib.Path()

    def __enter__(self) -> Cloud:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *unused: object) -> None:
        self._ended.set()
        self._stack.close()

    def _start(self) -> None:
        enter = self._stack.enter_context
        self.folder = self._given or pathlib.Path(
            enter(tempfile.TemporaryDirectory(prefix='tracon-soak-')))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.rabbit = messaging.RabbitMQ(settings=_BROKER)
        self.rabbit.setUp()
        self._stack.callback(self.rabbit.cleanUp)
        self.database = DATABASES[self._database]()
        self._stack.callback(self.database.stop)
        self.database.start()
        address = self.database.create()
        self.services = services.Services(self.world)
        self._thread(self.services.run)
        self._stack.callback(self.services.stop)
        self._thread(self._poll)
        self._metrics = {name: ports.free() for name in ENGINES}
        for name in ENGINES:
            self._write(f'{name}.conf', (_ENGINE + _QUEUES).format(
                name=name, database=address, polling=self.polling, window=12 * self.polling,
                age=self.stale, repair=6 * self.polling, host_type=bench_cluster.HOST_TYPE,
                cloud=self.services.url, api=ports.free(),
                metrics=self._metrics[name], folder=self.folder, broker=self.rabbit.url))
        subprocess.run(
            [sys.executable, '-W', 'ignore', '-m', 'tracon_watcher.cmd.app', 'db', 'upgrade',
             '--config-file', str(self.folder / f'{ENGINES[0]}.conf')], cwd=_ROOT, check=True,
            stdout=subprocess.DEVNULL)
        nova = self._write('nova.conf', (_NOVA + _QUEUES).format(
            broker=self.rabbit.url, expiry=5 * self.polling, folder=self.folder))
        watcher = self._write('watcher.conf', (_WATCHER + _QUEUES).format(broker=self.rabbit.url))
        # Nova is there before the engine: its exchange is Nova's to make.
        self.notifier = notifier.Notifier(nova, self.world)
        self._stack.callback(self.notifier.stop)
        for name in ENGINES:
            self.start_engine(name)
            self._stack.callback(self.kill_engine, name)
        self.schedulers = [
            orders.Process('scheduler', self.folder / f'scheduler-{number}.log', nova,
                           len(self.world.hosts), self._candidates)
            for number in range(SCHEDULERS)]
        self.auditor = orders.Process('auditor', self.folder / 'auditor.log', watcher,
                                      self.services.url)
        for one in (*self.schedulers, self.auditor):
            self._stack.callback(one.stop)

    def start_engine(self, name: str) -> None:
        """Run an engine as a service would be."""
        with open(self.folder / f'{name}.out', 'ab') as out:
            self.engines[name] = subprocess.Popen(
                [sys.executable, '-W', 'ignore', '-m', 'tracon_watcher.cmd.engine',
                 '--config-file', str(self.folder / f'{name}.conf')], cwd=_ROOT, stdout=out,
                stderr=out, stdin=subprocess.DEVNULL,
                env={**os.environ, 'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1'})

    def kill_engine(self, name: str) -> None:
        """End an engine as a power cut would."""
        found = self.engines.pop(name, None)
        if found is not None:
            found.kill()
            found.wait()

    def leader(self) -> str:
        """Return the name of the engine that leads, '' where none does."""
        for name in ENGINES:
            if self.metrics(name).get('tracon_engine_leading') == 1.0:
                return name
        return ''

    def metrics(self, name: str) -> dict[str, float]:
        """Return what an engine says of itself; nothing where it does not answer."""
        try:
            with urllib.request.urlopen(
                    f'http://127.0.0.1:{self._metrics[name]}/metrics', timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except (OSError, urllib.error.URLError):
            return {}
        return {key: float(value) for key, _space, value in (
            line.rpartition(' ') for line in lines if line and not line.startswith('#'))}

    def mebibytes(self) -> dict[str, float]:
        """Return the memory that each process has in use."""
        found = {name: one.pid for name, one in self.engines.items()}
        found |= {f'scheduler-{number}': one.pid for number, one in enumerate(self.schedulers)}
        found |= {'auditor': self.auditor.pid}
        own = list(_descendants(os.getpid()))
        found['rabbitmq'] = next((pid for pid, command in own if 'beam.smp' in command), 0)
        folder = str(self.database.folder)
        return {name: _resident(pid) for name, pid in found.items() if pid} | {
            # PostgreSQL is many processes, whose memory is for the most part shared.
            'database': sum(_resident(pid, 'smaps_rollup', 'Pss:') for pid, command in own
                            if folder in command or command.startswith('postgres:'))}

    def faults_logged(self) -> dict[str, int]:
        """Return how many lines each process has logged as errors or worse."""
        return {path.stem: sum(1 for line in path.read_text(errors='replace').splitlines()
                               if ' ERROR ' in line or ' CRITICAL ' in line
                               or line.startswith(('ERROR', 'CRITICAL', 'Traceback')))
                for path in sorted(self.folder.glob('*.log'))}

    def wait(self, what: str, holds: Any) -> None:
        """Wait until something holds.

        :raises RuntimeError: when that takes too long
        """
        end = time.monotonic() + _PATIENCE
        while not holds():
            if time.monotonic() > end:
                raise RuntimeError(f'waited {_PATIENCE:g} s in vain for {what}: {self.tails()}')
            time.sleep(0.5)

    def tails(self) -> str:
        """Return how the logs end."""
        return '\n'.join(f'{path.name}:\n{path.read_text(errors="replace")[-1500:]}'
                         for path in sorted(self.folder.glob('*.log')))

    def _poll(self) -> None:
        while not self._ended.wait(max(self.polling - self._took, 0.1)):
            began = time.monotonic()
            self.world.poll()
            self._took = time.monotonic() - began

    _took = 0.0

    def _thread(self, run: Any) -> None:
        threading.Thread(target=run, daemon=True).start()

    def _write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)


def _descendants(pid: int) -> Iterator[tuple[int, str]]:
    """Yield processes that this one has begun, however far down, and their command lines."""
    parents: dict[int, list[int]] = {}
    for path in pathlib.Path('/proc').glob('[0-9]*'):
        try:
            parent = int((path / 'stat').read_text().rpartition(')')[2].split()[1])
        except OSError:
            continue
        parents.setdefault(parent, []).append(int(path.name))
    waiting = list(parents.get(pid, ()))
    while waiting:
        one = waiting.pop()
        waiting += parents.get(one, ())
        try:
            yield one, pathlib.Path(f'/proc/{one}/cmdline').read_text()
        except OSError:
            continue


def _resident(pid: int, file: str = 'status', name: str = 'VmRSS:') -> float:
    try:
        lines = pathlib.Path(f'/proc/{pid}/{file}').read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(name)), 0.0)
