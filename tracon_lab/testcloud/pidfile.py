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

"""Processes that outlive the one that started them, and are known again without doubt."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import time
from typing import Callable

BOOT = pathlib.Path('/proc/sys/kernel/random/boot_id')
PROC = pathlib.Path('/proc')
_PAGE = os.sysconf('SC_PAGE_SIZE')


@dataclasses.dataclass(frozen=True)
class Stat:
    """A line of /proc/PID/stat.

    :param started: clock ticks since the machine started; with the number it names a process
    """

    state: str
    session: int
    started: int
    resident_bytes: int


def stat(pid: int, proc: pathlib.Path = PROC) -> Stat | None:
    """Return what the kernel tells of a process, None when there is none."""
    try:
        line = (proc / str(pid) / 'stat').read_text(encoding='utf-8', errors='replace')
    except OSError:
        return None
    # The command stands in parentheses and may contain anything, parentheses too.
    fields = line.rsplit(')', 1)[1].split()
    return Stat(fields[0], int(fields[3]), int(fields[19]), int(fields[21]) * _PAGE)


@dataclasses.dataclass(frozen=True)
class Recorded:
    """A process, the leader of its session, as it was when it was started.

    :param mark: what it was started with, in few letters
    """

    pid: int
    started: int
    boot: str
    mark: str = ''

    @classmethod
    def of(cls, pid: int, mark: str = '') -> Recorded | None:
        """Describe a running process."""
        found = stat(pid)
        return None if found is None else cls(pid, found.started, _boot(), mark)

    def write(self, path: pathlib.Path) -> None:
        """Write a pid file."""
        part = path.with_suffix('.part')
        part.write_text(json.dumps(dataclasses.asdict(self)), encoding='utf-8')
        part.replace(path)

    @classmethod
    def read(cls, path: pathlib.Path) -> Recorded | None:
        """Read a pid file; None when there is none, or it was cut off."""
        try:
            content = json.loads(path.read_text(encoding='utf-8'))
            return cls(int(content['pid']), int(content['started']), str(content['boot']),
                       str(content.get('mark', '')))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def alive(self) -> bool:
        """Whether this very process runs; another one with its number does not count."""
        if self.boot != _boot():
            return False
        found = stat(self.pid)
        return found is not None and found.started == self.started and found.state not in 'ZX'

    def session(self, proc: pathlib.Path = PROC) -> dict[int, Stat]:
        """Return the processes of its session, itself included, as far as they live.

        The kernel gives a number to no new process while a session has it, so that members are
        known even after their leader has ended.
        """
        leader = stat(self.pid, proc)
        if self.boot != _boot() or (leader is not None and leader.started != self.started):
            return {}
        found = {}
        for entry in proc.iterdir():
            if entry.name.isdigit():
                one = stat(int(entry.name), proc)
                if (one is not None and one.session == self.pid and one.state not in 'ZX'
                        and one.started >= self.started):
                    found[int(entry.name)] = one
        return found

    def send(self, number: int) -> bool:
        """Signal the process; return whether it was there."""
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(self.pid)
            try:
                # Between the check and the signal the number could go to another process; what
                # the descriptor stands for cannot.
                if self.alive:
                    signal.pidfd_send_signal(descriptor, number)
                    return True
            finally:
                os.close(descriptor)
        return False

    def end(self, patience: float, grace: float = 2.0) -> None:
        """Terminate the process, and kill what is left of its session.

        :param patience: seconds for an orderly end
        :param grace: seconds for the rest of the session
        """
        members = self.session()
        self.send(signal.SIGTERM)
        _wait(lambda: self.alive, patience)
        rest = {pid: one.started for pid, one in {**members, **self.session()}.items()}
        _each(rest, signal.SIGTERM)
        _wait(lambda: any(_is(pid, started) for pid, started in rest.items()), grace)
        _each({**rest, **{pid: one.started for pid, one in self.session().items()}},
              signal.SIGKILL)


def _each(processes: dict[int, int], number: int) -> None:
    for pid, started in processes.items():
        Recorded(pid, started, _boot()).send(number)


def _is(pid: int, started: int) -> bool:
    found = stat(pid)
    return found is not None and found.started == started and found.state not in 'ZX'


def _wait(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while condition() and time.monotonic() < deadline:
        time.sleep(0.05)


def _boot() -> str:
    return BOOT.read_text(encoding='ascii').strip()
