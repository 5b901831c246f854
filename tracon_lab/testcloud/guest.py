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

"""The tenant's side of a guest: starts its program and asks how far it has come.

The guest's second serial line is a socket on its host's address. The code that plays the tenant
speaks through it; this product's own services never do.
"""

from __future__ import annotations

import socket
import typing
from xml.etree import ElementTree

from tracon_lab.testbed import channel
from tracon_lab.testbed import programs
from tracon_lab.testcloud import errors

if typing.TYPE_CHECKING:
    from tracon_lab.testcloud import host as host_module

BOOT_PATIENCE = 60.0
_CALIBRATION = 5_000_000
_LINE = '1'


class Guest(channel.Channel):
    """The program in one guest; only one such connection to a guest is answered at a time.

    :param address: and port of the serial line
    """

    def __init__(self, address: tuple[str, int], name: str) -> None:
        super().__init__(None, name)
        self._address = address
        self._iterations: float | None = None

    def _connect(self) -> socket.socket:
        return socket.create_connection(self._address, channel.TURN)

    def begin(self, unit: programs.Unit, seed: int = 1) -> None:
        """Start a program over and over, in the place of the one before."""
        self.ask(unit.command(self.iterations_per_second, seed))

    def end(self) -> None:
        """Stop the program."""
        self.ask('stop')

    @property
    def iterations_per_second(self) -> float:
        """How fast the CPU loop is; measured when it is asked for first, so best while idle."""
        if self._iterations is None:
            nanoseconds = int(self.ask(f'calibrate {_CALIBRATION}'))
            self._iterations = _CALIBRATION / (nanoseconds * 1e-9)
        return self._iterations

    @iterations_per_second.setter
    def iterations_per_second(self, value: float) -> None:
        self._iterations = value


def find(host: host_module.Host, server_id: str, name: str) -> Guest:
    """Return the connection to a guest's program, which may not have booted yet.

    :raises CloudError: when the guest is not on that host, or has no second serial line
    """
    return Guest(serial_address(host.definition(server_id), name), name)


def serial_address(definition: str, name: str) -> tuple[str, int]:
    """Return where a domain's second serial line listens.

    :raises CloudError: when it has none
    """
    for line in ElementTree.fromstring(definition).iterfind("./devices/serial[@type='tcp']"):
        source, target = line.find('source'), line.find('target')
        if source is not None and target is not None and target.get('port') == _LINE:
            return str(source.get('host')), int(str(source.get('service')))
    raise errors.CloudError(f'server {name} has no second serial line: boot it from the image '
                            f'"tracon-guest"')
