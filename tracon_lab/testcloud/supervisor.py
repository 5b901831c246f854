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

"""Starts services, knows them again by their pid files, and stops them."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import resource
import signal
import subprocess
import threading
import time
from typing import Iterable, Mapping

from tracon_lab.testcloud import errors
from tracon_lab.testcloud import pidfile
from tracon_lab.testcloud import service as service_module

#: Seconds for which a service that cannot be asked has to live before it counts as up.
PROBATION = 1.0
_OPEN_FILES = 65536


@dataclasses.dataclass(frozen=True)
class Status:
    """What is seen of a service.

    :param state: `running`, `stopped`, or `died` when it ended without being stopped
    :param resident_bytes: of the process and its children, what they share counted for each
    """

    name: str
    state: str
    pid: int | None = None
    processes: int = 0
    resident_bytes: int = 0


class Supervisor:
    """Services of one data directory.

    :param run: folder of the pid files
    :param logs: folder of the logs
    :param environment: variables of every service
    """

    def __init__(self, run: pathlib.Path, logs: pathlib.Path,
                 environment: Mapping[str, str]) -> None:
        self._run = run
        self._logs = logs
        self._environment = dict(environment)
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()

    def log(self, name: str) -> pathlib.Path:
        """Return the path of a service's log."""
        return self._logs / f'{name}.log'

    def recorded(self, name: str) -> pidfile.Recorded | None:
        """Return the process that a pid file names, whether it is alive or not."""
        return pidfile.Recorded.read(self._pid_file(name))

    def running(self, name: str) -> bool:
        """Whether the service's process is alive."""
        self._reap()
        found = self.recorded(name)
        return found is not None and found.alive

    def start(self, service: service_module.Service) -> bool:
        """Start a service unless it runs as it should; return whether it had to be started.

        One that runs with another command, or has read files that say something else by now, is
        restarted.
        """
        mark = service.mark
        before = self.recorded(service.name)
        if before is not None:
            if before.mark == mark and self.running(service.name):
                return False
            # Even if it has ended: children that it left behind hold its ports.
            self.stop(service.name, service.stop_patience)
        self._run.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)
        with self.log(service.name).open('ab') as log:
            child = subprocess.Popen(
                service.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**self._environment, **service.environment}, start_new_session=True,
                preexec_fn=_allow_files, cwd='/')
        found = pidfile.Recorded.of(child.pid, mark)
        assert found is not None        # a child that has ended stays until it is waited for
        found.write(self._pid_file(service.name))
        with self._lock:
            self._children[child.pid] = child
        return True

    def wait(self, service: service_module.Service) -> None:
        """Wait until a service is up.

        :raises ServiceFailed: when it ends, or takes longer than its patience
        """
        started = time.monotonic()
        ready = service.ready or (lambda: time.monotonic() >= started + PROBATION)
        pause = 0.05
        while not ready():
            if not self.running(service.name):
                raise errors.ServiceFailed(service.name, f'has ended{self._code(service.name)}',
                                           self.log(service.name))
            if time.monotonic() > started + service.patience:
                raise errors.ServiceFailed(
                    service.name, f'was not up within {service.patience:.0f} s',
                    self.log(service.name))
            time.sleep(pause)
            pause = min(0.5, pause * 1.3)

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Signal a service's process, as a fault would hit it.

        :raises CloudError: when it does not run
        """
        found = self.recorded(name)
        if found is None or not found.send(number):
            raise errors.CloudError(f'{name} does not run, so that it cannot get signal {number}')
        self._reap()

    def stop(self, name: str, patience: float = 15.0) -> None:
        """Stop a service and its children, and forget it; one that does not run is forgotten."""
        found = self.recorded(name)
        if found is not None:
            reaper = threading.Thread(target=self._await, args=(found.pid, patience + 5))
            reaper.start()
            found.end(patience)
            reaper.join()
        self._pid_file(name).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """Return the services that have a pid file, in the order they were started."""
        files = [(path.stat().st_mtime_ns, path.stem) for path in self._run.glob('*.pid')]
        return [name for _at, name in sorted(files)]

    def status(self, names: Iterable[str]) -> list[Status]:
        """Look at services."""
        self._reap()
        found = []
        for name in names:
            recorded = self.recorded(name)
            if recorded is None:
                found.append(Status(name, 'stopped'))
                continue
            session = recorded.session()
            found.append(Status(
                name, 'running' if recorded.alive else 'died',
                recorded.pid if recorded.alive else None, len(session),
                sum(one.resident_bytes for one in session.values())))
        return found

    def _pid_file(self, name: str) -> pathlib.Path:
        return self._run / f'{name}.pid'

    def _reap(self) -> None:
        with self._lock:
            for child in self._children.values():
                child.poll()

    def _await(self, pid: int, seconds: float) -> None:
        """Take a child's code as soon as it ends: until then it is there, though dead."""
        child = self._children.get(pid)
        if child is not None:
            try:
                child.wait(seconds)
            except subprocess.TimeoutExpired:
                return

    def _code(self, name: str) -> str:
        found = self.recorded(name)
        child = None if found is None else self._children.get(found.pid)
        return '' if child is None else f' with code {child.returncode}'


def _allow_files() -> None:
    """Run in the child: RabbitMQ and MariaDB want more open files than a shell allows."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    os.umask(0o022)
