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

"""virtlogd, libvirtd and nbdkit, started only where none runs, and stopped again."""

import collections.abc
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import time

from tracon_lab.testbed import errors
from tracon_lab.testbed import interruption

RUN = pathlib.Path('/run/libvirt')
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def die_with_parent() -> None:
    """Runs in the child: a killed measurement leaves no process behind."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    os.setsid()     # Ctrl-C reaches the measurement alone, which then tidies up in order


def start(command: list[str], ready: pathlib.Path, log: pathlib.Path,
          timeout: float = 15.0) -> subprocess.Popen[bytes]:
    """Start a daemon in the foreground and wait for its socket.

    :param ready: the socket that says it is up
    :raises TestbedError: when it is not installed, ends, or is not up in time
    """
    child = _started(command, log)
    deadline = time.monotonic() + timeout
    while not ready.exists():
        if child.poll() is not None or time.monotonic() > deadline:
            stop(child)
            raise errors.TestbedError('%s did not start: %s' % (command[0], tail(log)))
        time.sleep(0.05)
    return child


def _started(command: list[str], log: pathlib.Path) -> subprocess.Popen[bytes]:
    if not shutil.which(command[0]):
        raise errors.TestbedError('%s is not installed; the testbed needs it' % command[0])
    with open(log, 'ab') as out:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                preexec_fn=die_with_parent)


def tail(log: pathlib.Path) -> str:
    """Return the end of what a program has written."""
    return log.read_text(errors='replace')[-500:].strip() or 'no message'


@contextlib.contextmanager
def running(command: list[str],
            log: pathlib.Path) -> collections.abc.Iterator[subprocess.Popen[bytes]]:
    """Run a program in the foreground until the context ends.

    :raises TestbedError: when it is not installed
    """
    child = _started(command, log)
    try:
        yield child
    finally:
        stop(child)


def stop(child: subprocess.Popen[bytes], timeout: float = 10.0) -> None:
    child.terminate()
    try:
        child.wait(timeout)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


class Libvirt:
    """libvirt's daemons while the testbed lives.

    :param directory: where their log may be written
    """

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory
        self._children: list[subprocess.Popen[bytes]] = []
        self._had_run = RUN.exists()

    def __enter__(self) -> 'Libvirt':
        with interruption.signals.held():
            self._start()
        return self

    def _start(self) -> None:
        try:
            for name, socket in (('virtlogd', 'virtlogd-sock'), ('libvirtd', 'libvirt-sock')):
                if not _listens(RUN / socket):
                    (RUN / socket).unlink(missing_ok=True)
                    self._children.append(
                        start([name], RUN / socket, self._directory / (name + '.log')))
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *unused: object) -> None:
        for child in reversed(self._children):
            stop(child)
        if self._children and not self._had_run:
            shutil.rmtree(RUN, ignore_errors=True)
        self._children.clear()

    def processes(self) -> list[int]:
        """Of the daemons started here."""
        return [child.pid for child in self._children]


def _listens(path: pathlib.Path) -> bool:
    """Whether a process listens there; a stale socket file does not."""
    if not path.exists():
        return False
    for line in pathlib.Path('/proc/net/unix').read_text().splitlines():
        fields = line.split()
        if fields[-1] == str(path) and int(fields[3], 16) & 0x10000:
            return True
    return False
