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

"""Lets few requests at a time do what keeps the processor busy."""

from __future__ import annotations

import contextlib
import threading
from typing import Iterator

from tracon_watcher.api import faults

#: Seconds after which a client may try again.
_AGAIN = 5


class Gate:
    """Lets some through, has as many wait, and refuses the others at once.

    All threads of the API could otherwise wait here, and none would answer anything else.

    :param at_once: requests that work at the same time, and that wait
    :param patience: seconds that one waits
    """

    def __init__(self, at_once: int = 2, patience: float = 10.0) -> None:
        self._room = threading.BoundedSemaphore(at_once)
        self._places = threading.BoundedSemaphore(2 * at_once)
        self._patience = patience

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn.

        :raises tracon_watcher.api.faults.Unavailable: when too many work and wait
        """
        if not self._places.acquire(blocking=False):
            raise faults.Unavailable('Too many such questions are being worked out.', _AGAIN)
        try:
            if not self._room.acquire(timeout=self._patience):
                raise faults.Unavailable('Too many such questions are being worked out.', _AGAIN)
            try:
                yield
            finally:
                self._room.release()
        finally:
            self._places.release()
