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

"""Ports for servers that tests start."""

import random
import socket

#: Below those that the kernel gives to clients, which could take one before the server does.
_RANGE = range(20000, 30000)
_given = set()


def free():
    """Return a TCP port that is free, and that this process was not given before.

    :raises AssertionError: when there is none
    """
    for port in random.SystemRandom().sample(_RANGE, len(_RANGE)):
        if port in _given:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(('', port))
            except OSError:
                continue
        _given.add(port)
        return port
    raise AssertionError(f'no port is free from {_RANGE.start} to {_RANGE.stop - 1}')
