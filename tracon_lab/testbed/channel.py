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

"""The line protocol with the program in a guest, over its virtio-serial port."""

import dataclasses
import pathlib
import socket
import time

from tracon_lab.testbed import errors

TURN = 1.0
PAUSE = 0.1


@dataclasses.dataclass(frozen=True)
class Progress:
    """What a guest's program has done since it was started; times in seconds.

    `clock` is the guest's monotonic clock; `service` the summed time of whole
    units, without the sleep of paced ones.
    """

    clock: float
    units: int
    service: float
    reads: int
    read_time: float
    writes: int
    write_time: float

    def since(self, earlier: 'Progress') -> 'Progress':
        return Progress(*(a - b for a, b in zip(dataclasses.astuple(self),
                                                dataclasses.astuple(earlier), strict=True)))

    @property
    def time_per_unit(self) -> float | None:
        return self.service / self.units if self.units > 0 else None


class Channel:
    """Commands to one guest.

    :param path: the UNIX socket QEMU listens on for the guest's port; none where a subclass
        connects in another way
    """

    def __init__(self, path: pathlib.Path | None, name: str) -> None:
        self._path = path
        self._name = name
        self._pending = b''
        self._socket: socket.socket | None = None

    def wait_for_boot(self, timeout: float) -> None:
        """Ask until the guest answers; what was asked too early is lost.

        :raises GuestError: after `timeout` seconds
        """
        waited = 0.0
        while waited < timeout:
            try:
                if self._socket is None:
                    self._socket = self._connect()
                self.ask('read', TURN)
                self._drain()
                return
            except errors.GuestError:
                waited += TURN
            except OSError:
                self.close()
            time.sleep(PAUSE)
            waited += PAUSE
        raise errors.GuestError('guest %s did not answer within %.0f s of its start'
                                % (self._name, timeout))

    def _connect(self) -> socket.socket:
        found = socket.socket(socket.AF_UNIX)
        try:
            found.connect(str(self._path))
        except OSError:
            found.close()
            raise
        return found

    def _drain(self) -> None:
        """Throw away the answers to questions that were asked more than once."""
        assert self._socket is not None
        self._socket.settimeout(0.3)
        try:
            while self._socket.recv(4096):
                pass
        except OSError:
            pass
        self._pending = b''

    def ask(self, command: str, timeout: float = 60.0) -> str:
        """Send a line, return the line it is answered with.

        :raises GuestError: when there is no answer in time, or an error
        """
        if self._socket is None:
            raise errors.GuestError('guest %s is not connected' % self._name)
        waited = 0.0
        try:
            # in short turns, so that a process which was itself stopped does not take the
            # time it slept for the guest's silence
            self._socket.settimeout(min(timeout, TURN))
            self._socket.sendall(command.encode() + b'\n')
            while b'\n' not in self._pending:
                try:
                    got = self._socket.recv(4096)
                except TimeoutError:
                    waited += TURN
                    if waited >= timeout:
                        raise errors.GuestError(
                            'guest %s did not answer %r within %.0f s'
                            % (self._name, command.split()[0], timeout)) from None
                    continue
                if not got:
                    raise OSError('it has gone')
                self._pending += got
        except OSError as exc:
            raise errors.GuestError('guest %s: %s' % (self._name, exc)) from exc
        line, self._pending = self._pending.split(b'\n', 1)
        answer = line.decode(errors='replace')
        if answer.startswith('error'):
            raise errors.GuestError('guest %s: %s' % (self._name, answer))
        return answer

    def read(self) -> Progress:
        return parse_progress(self.ask('read'))

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._pending = b''


def parse_progress(line: str) -> Progress:
    """An answer to `read`.

    :raises GuestError: when it is not seven numbers
    """
    try:
        clock, units, service, reads, readtime, writes, writetime = map(int, line.split())
    except ValueError:
        raise errors.GuestError('not a progress line: %r' % line) from None
    return Progress(clock * 1e-9, units, service * 1e-9, reads, readtime * 1e-9, writes,
                    writetime * 1e-9)
