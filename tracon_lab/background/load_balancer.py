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

"""HAProxy before the guests of the Web service, steered by DIAL, as a tenant would have it."""

from __future__ import annotations

import collections.abc
import contextlib
import dataclasses
import json
import pathlib
import sys
import time
import typing

from tracon_lab.background import web_service
from tracon_lab.testbed import daemons
from tracon_lab.testbed import errors
from tracon_lab.testbed import sensor_guest

#: Requests a second that a worker serves alone, about, and those of all clients.
PEAK, RATE = 100.0, 2 * web_service.RATE
#: DIAL's interval in seconds, and how many of them it learns.
INTERVAL, READINGS = 4.0, 20
_PORT = 8081
_HAPROXY = '''global
    log stdout format raw local0
    stats socket {folder}/admin.sock mode 600 level admin
defaults
    mode http
    log global
    option httplog
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend public
    bind {address}:{port}
    default_backend web
backend web
    balance roundrobin
    default-server weight 100
'''


@dataclasses.dataclass(frozen=True)
class Balancer:
    """HAProxy, as clients see it.

    :param service: with HAProxy's address
    :param log: of HAProxy
    """

    service: sensor_guest.Sensor
    log: pathlib.Path

    def served(self) -> list[int]:
        """Return how many requests the workers have served, in order."""
        text = self.log.read_text()
        return [text.count(f' web/{name} ') for name in ('w1', 'w2')]


@contextlib.contextmanager
def balanced(workers: typing.Sequence[sensor_guest.Sensor],
             folder: pathlib.Path) -> collections.abc.Iterator[Balancer]:
    """Run HAProxy and DIAL; DIAL has learnt when this yields.

    :param workers: two guests with one secret, behind the link of the Web service
    :raises TestbedError: when one of them ends
    """
    folder.mkdir(exist_ok=True)
    log, said = folder / 'haproxy.log', folder / 'dial.log'
    for old in (log, said):
        old.unlink(missing_ok=True)
    address = web_service.SINK[0]
    (folder / 'haproxy.cfg').write_text(
        _HAPROXY.format(folder=folder, address=address, port=_PORT)
        + ''.join(f'    server w{number} {one.address}:{one.port}\n'
                  for number, one in enumerate(workers, 1)))
    # JSON is YAML.
    (folder / 'dial.yaml').write_text(json.dumps({
        'socket': f'{folder}/admin.sock', 'log': str(log), 'backend': 'web',
        'workers': ['w1', 'w2'], 'peak_rate': PEAK, 'interval_seconds': INTERVAL,
        'quiet_readings': READINGS}))
    service = dataclasses.replace(workers[0], address=address, port=_PORT)
    with _running([*web_service.INSIDE, 'haproxy', '-db', '-f', f'{folder}/haproxy.cfg'], log), \
            _running([sys.executable, '-m', 'tracon_watcher.cmd.app', 'dial', 'run', '--config',
                      f'{folder}/dial.yaml'], said):
        with web_service.clients(service, (READINGS + 2) * INTERVAL, 0, RATE) as latencies:
            latencies()
        yield Balancer(service, log)


@contextlib.contextmanager
def _running(command: list[str], log: pathlib.Path) -> collections.abc.Iterator[None]:
    with daemons.running(command, log) as child:
        time.sleep(1.0)
        yield
        if child.poll() is not None:
            raise errors.TestbedError(f'{command} has ended; its output ends with: '
                                      f'{daemons.tail(log)}')
